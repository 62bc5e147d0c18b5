"""The pictures of a result with their captions and descriptions, and as files.

Drawing itself: `plots`. Those of a table by layer: `layer_pictures`. The page around the pictures: `page`.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from isthmus import plots
from isthmus.diagnostics import Diagnosis
from isthmus.discovery import Discovery
from isthmus.discovery.choices import SLACK
from isthmus.discovery.data.new_rows import targets_in_order
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.evidence.straight_halves import straight_halves
from isthmus.discovery.halves import RANK_KINDS
from isthmus.plots.style import own_settings
from isthmus.reports.layer_pictures import layer_pictures, profile_pictures
from isthmus.reports.meaning import meaning_pictures
from isthmus.reports.picture import Picture, drawn, svg_of
from isthmus.reports.straight_pictures import straight_pictures
from isthmus.tasks.arrays import counted
from isthmus.theory import Verdict
from isthmus.writing.atomic import atomic_path
from isthmus.writing.staying import made_folder

_DPI = 200


def pictures_of(
    result: Discovery | Diagnosis,
    x: ArrayLike | None = None,
    meaning: xr.Dataset | None = None,
    y: ArrayLike | None = None,
) -> list[Picture]:
    """The pictures of a result in reading order; with samples `x`, also their first coordinates.

    With `meaning`, a table of `interpret`, also what these coordinates save, follow and resemble. Of a linear half its
    loadings, with samples also its spectrum and the targets `y`, or predictions, against the combinations.
    """
    if isinstance(result, Diagnosis):
        return [
            *layer_pictures(result.layers, result.rank.estimate),
            *profile_pictures(result.layers, result.rank.estimate),
        ]
    if not result.scree.sizes["rank"]:  # a constant target: nothing was trained
        return []
    found = [*_curve_pictures(result), *layer_pictures(result.diagnosis.layers, marked_rank(result), returned=True)]
    starts = Picture(
        "starts",
        "Every start: its objective over the least one at the same ridge (lower is better). The number is the rank of "
        "its Jacobian. Different starts end in minima of different rank, so objectives decide, not averages.",
        f"{counted(result.runs.sizes['run'], 'start')}, each with its objective relative to the least one at "
        f"its ridge.",
        lambda: plots.starts(result.runs),
    )
    depth = [_depth_picture(result.depth_path)] if result.depth_path is not None else []
    coordinates = _coordinate_pictures(result, x, y) if x is not None and result.rank else []
    straight = [
        picture if one is result else replace(picture, name=f"{one.kind}_{picture.name}")
        for one, half in straight_halves(result, x, y)
        for picture in straight_pictures(one, half, x, y)
    ]
    kind = RANK_KINDS[result.kind]
    of_meaning = [] if meaning is None else meaning_pictures(meaning, kind)
    return [*straight, *found, starts, *depth, *coordinates, *of_meaning]


def marked_rank(found: Discovery) -> int | None:
    """The rank that pictures mark: none where the verdict says that none stands out."""
    return found.rank if found.verdict in {Verdict.CONFIDENT, Verdict.DOUBTFUL} else None


def write_pictures(
    result: Discovery | Diagnosis,
    folder: str | os.PathLike[str],
    x: ArrayLike | None = None,
    meaning: xr.Dataset | None = None,
    y: ArrayLike | None = None,
) -> list[Picture]:
    """Write every picture of a result into `folder` (made if missing) as PNG and SVG; returns them, drawn.

    Raises:
        OSError: the folder cannot be written.
    """
    pictures = pictures_of(result, x, meaning, y)
    save_pictures(pictures, folder)
    return pictures


def save_pictures(pictures: Sequence[Picture], folder: str | os.PathLike[str]) -> None:
    """Write pictures into `folder` (made if missing) as PNG and SVG.

    Raises:
        OSError: the folder cannot be written.
    """
    place = Path(folder)
    made_folder(place)
    for picture in pictures:
        figure = drawn(picture)
        with atomic_path(place / f"{picture.name}.png") as temporary, own_settings():
            figure.savefig(temporary, dpi=_DPI)
        with atomic_path(place / f"{picture.name}.svg") as temporary:
            temporary.write_text(svg_of(picture, picture.name), encoding="utf-8")


def _of_the_usual_depth(found: Discovery) -> str:
    """What the objective curve does not show, where several depths decided."""
    path = found.depth_path
    if not found.remedies or path is None or not path.deep_rank == found.rank != found.readings["objective_rank"]:
        return ""
    return f" These networks have the usual depth; deeper ones decided for {found.rank}, see the rank over depth."


def _curve_pictures(found: Discovery) -> list[Picture]:
    words = found.loss.words
    linear = words.autoencoder if found.task == "autoencoding" else words.linear
    last, rank = found.scree["rank"].values.max(initial=0), marked_rank(found)
    marked = "" if rank is None else f", with the chosen rank {rank} marked"
    noun, compared = RANK_KINDS[found.kind].noun, found.loss.compared
    slack = f"{compared.amount(math.log1p(SLACK)):.2g} {compared.amount_unit}"
    return [
        Picture(
            "scree",
            f"Error through each number of {noun}s, over {words.unit}. A rank stands out where the held-out error "
            f"falls steeply up to it and no further, from 1 through none; squares: {linear}.",
            f"Error against the number of {noun}s from 1 to {last}{marked}.",
            lambda: plots.scree(found.scree, rank=rank, noun=noun),
        ),
        Picture(
            "objective_curve",
            f"How much the least objective rises when fewer {noun}s are allowed, for each ridge. The rank is the "
            f"least number below the dotted line at {slack}; the jump to its left says how sharp it is."
            f"{_of_the_usual_depth(found)}",
            f"Excess objective against {noun}s allowed, one line per ridge{marked}.",
            lambda: plots.objective_curve(found.objective_curve, rank=rank, noun=noun, compared=compared),
        ),
    ]


def _depth_picture(path: DepthPath) -> Picture:
    last = path.table["middle_layers"].values[-1]
    return Picture(
        "depth_path",
        "The least objective through each number of dimensions as linear layers are added in the middle. A dimension "
        "costs the same in every layer, so each is a line (dotted: the slope of theory) and the winner falls with "
        "depth, to fewer and more curved coordinates. Hollow marks cut the data open, or fell to a lower rank.",
        f"Objective against depth up to {last} middle layers, one line for each rank: {path.flat_rank} when shallow, "
        f"{path.deep_rank} when deep.",
        lambda: plots.depth_path(path.table, switch=path.reading.switch),
    )


def _coordinate_pictures(found: Discovery, x: ArrayLike, y: ArrayLike | None) -> list[Picture]:
    values = found.transform(x)
    table = xr.Dataset({"coordinates": (("sample", "coordinate"), values)})
    if (shown := _shown(found, y)) is not None and len(shown) == len(values):
        table["shown"] = xr.DataArray(shown, dims="sample", attrs={"name": found.target_names[0]})
    count = min(found.rank, values.shape[1])  # the network may have fewer coordinates than the rank that is read
    if count == 1:
        caption, description = "The samples in the one coordinate found.", f"Histogram of {len(values)} samples."
        return [Picture("coordinate_1", caption, description, lambda: plots.coordinates(table))]
    return [_pair_picture(table, pair) for pair in ((0, 1), (0, 2), (1, 2)) if pair[1] < count]


def _shown(found: Discovery, y: ArrayLike | None) -> np.ndarray | None:
    """What samples are coloured by: the names of their classes, or the first target."""
    if y is None or found.task == "autoencoding":
        return None
    values = np.asarray(targets_in_order(y, found.target_names))
    if found.task != "classification":
        return values.reshape(len(values), -1)[:, 0].astype(np.float64)
    if values.ndim == 2 and values.shape[1] == len(found.target_names):  # 0/1 columns
        return np.array(found.target_names)[values.argmax(1)]
    return values.reshape(-1).astype(str)


def _pair_picture(table: xr.Dataset, pair: tuple[int, int]) -> Picture:
    first, second = pair[0] + 1, pair[1] + 1
    return Picture(
        f"coordinates_{first}_{second}",
        f"The samples in the coordinates found, {first} and {second}.",
        f"Scatter of {table.sizes['sample']} samples in coordinates {first} and {second}.",
        lambda: plots.coordinates(table, pair=pair),
    )
