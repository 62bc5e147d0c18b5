"""Whether the finished run in a folder is the one that was asked for. What is done where there is none: `discover_run`.

What an option asks for is compared, as this version and as older ones recorded it.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.cli.data import Rows
from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.run_folder import RESULT, WORK
from isthmus.discovery import Discovery, load
from isthmus.discovery.asked import adapted_settings, base_settings, with_halves
from isthmus.discovery.data.checking import CheckedData
from isthmus.discovery.data.scaling import Scaling
from isthmus.discovery.data.splitting import digest_of
from isthmus.discovery.halves import RANK, Side
from isthmus.discovery.remedies.remedy import Effort
from isthmus.discovery.settings import Settings, StartKind
from isthmus.errors import DataError
from isthmus.training import Limits
from isthmus.writing.checksums import opened_json
from isthmus.writing.regular import contents

GROWN = ("width", "linear_width")  # no option asks for them, and a search widens its networks by itself


def finished(folder: Path, rows: Rows, request: DiscoverRequest, data: CheckedData) -> Discovery:
    """The result that stands in the folder, if it is the one that was asked for.

    Args:
        folder: of a finished run.
        rows: what was read.
        request: what was asked for.
        data: the rows, checked, as they are searched.

    Raises:
        DataError: it has other columns, data or options; the line says which.
    """
    found = load(folder)
    shutil.rmtree(folder / WORK, ignore_errors=True)  # of a kill just before it was removed
    if found.input_names != rows.names:
        raise DataError(f"{folder}: the finished run there has other columns. Give another folder with --out.")
    settings = _settings(found, rows, request, data)
    asked = json.loads(json.dumps(settings.as_dict()))
    for name in (*GROWN, *(["scaling"] if request.scaling in {None, Scaling.AUTO.value} else [])):
        del asked[name]
    # a run from before a setting existed counts as one that left it alone
    stored = json.loads(json.dumps({**Settings().as_dict(), **found.settings}))
    if settings.rank_kind is not RANK and _began_otherwise(folder, stored, request.starts):
        del asked["starts"]
    other = [name for name, value in asked.items() if stored[name] != value]
    if found.loss.name != data.loss.name:  # of which the fingerprint speaks too
        other = ["loss", *other]
    elif found.settings.get("data") not in {None, data.fingerprint()}:
        other = ["data", *other]
    total = len(rows.x) - int(str(found.settings.get("copies", 0)))
    if request.rows is not None and found.settings.get("first_rows", total) != min(request.rows, total):
        other.append("rows")
    if request.ranks and len(found.ranks) == 1 and found.scree.sizes["rank"]:
        other.append("ranks (one only)")
    known = found.settings  # what older versions did not record counts as asked for
    if "effort" in known and known["effort"] != (request.effort or Effort.DEFAULT.value):
        other.append("effort")
    if "effort" in known and known.get("labels") != (
        None if rows.groups is None else digest_of(np.asarray(rows.groups))
    ):
        other.append("groups")
    if request.control and found.control is None and found.scree.sizes["rank"]:
        other.append("control (none)")
    if request.depth_path and found.depth_path is None and found.scree.sizes["rank"]:
        other.append("depth path (none)")
    if other:
        raise DataError(
            f"{folder}: the finished run there has other {', '.join(other)}. Give another folder with --out."
        )
    return found


def _settings(found: Discovery, rows: Rows, request: DiscoverRequest, data: CheckedData) -> Settings:
    """What a run would have that was asked for now."""
    scaling = Scaling(request.scaling or Scaling.AUTO)
    settings = base_settings(request.network, request.seed, ordered=rows.ordered, scaling=scaling)
    limits = Limits(evaluations=request.evaluations)
    settings = adapted_settings(
        settings, depth=request.depth, ridge=request.ridges, starts=request.starts, limits=limits
    )  # fmt: skip
    halves = {"encoder": request.encoder, "decoder": request.decoder}
    if "encoder_side" not in found.settings:  # a run from before halves could be linear
        halves = {name: side or Side.CURVED for name, side in halves.items()}
    return with_halves(settings, data, **halves, starts=request.starts, depth_path=request.depth_path)


def _began_otherwise(folder: Path, stored: Mapping[str, Any], asked: int | None) -> bool:
    """Whether these are the starts that an older version made of --starts where a half is linear.

    The first came from the linear map, and two were taken for the usual three. Such a run has no word on remedies.
    """
    first: Sequence[str] = [StartKind.RANDOM] * 3 if asked == 2 else [StartKind.LINEAR]
    made = [*first, *[StartKind.RANDOM] * ((asked or 0) - len(first))]
    return asked is not None and stored["starts"] == made and "remedies" not in opened_json(contents(folder / RESULT))
