"""One self-contained HTML page about a result: no requests, light and dark, telephone and paper; a script sorts tables.

Its words come from `verdict`, its pictures from `pictures`, its markup from `templates`.
"""

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Mapping, Sequence, Sized
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import ArrayLike

from isthmus import __version__
from isthmus.diagnostics import Diagnosis
from isthmus.discovery import Discovery
from isthmus.discovery.evidence.straight_halves import straight_halves
from isthmus.plots.style import PALETTE
from isthmus.reports.depth_words import depth_table
from isthmus.reports.meaning import meaning_table, of_coordinates
from isthmus.reports.picture import Picture, inline_svg
from isthmus.reports.pictures import pictures_of
from isthmus.reports.straight_words import straight_section
from isthmus.reports.tables import (
    block_table,
    cut_table,
    data_link,
    head_table,
    layer_table,
    lookup_table,
    rows_by,
    skipped_table,
)
from isthmus.reports.verdict import verdict_of, verdict_of_control
from isthmus.tasks.arrays import check_same_length
from isthmus.tasks.foreign import check_row_labels
from isthmus.tasks.names import shown
from isthmus.writing.atomic import write_text

MOST_NAMES = 100  # of columns on a page
_RECORDS = {"input_columns", "input_ranges"}  # as long as the table is wide; result.json has them
_PACKAGES = ("torch", "matplotlib")
_START_COLUMNS = {
    "ridge": "ridge",
    "start": "start",
    "kind": "kind",
    "objective": "objective",
    "data_loss": "data loss",
    "heldout_error": "held-out error",
    "jacobian_rank": "Jacobian rank",
    "activation_rank": "activation rank",
    "outcome": "outcome",
    "stationarity": "stationarity",
    "seconds": "seconds",
}
_READINGS = {
    "objective_rank": "rank by the objective",
    "sharpness": "sharpness (logarithm of the objective's jump)",
    "spread": "how far the trained starts lie above the least objective (logarithm)",
    "scree_rank": "rank by the held-out error",
    "scree_margin": "margin of the held-out rule",
    "jacobian_rank": "rank by the gap of the Jacobian",
    "heldout_error": "held-out error through that many dimensions",
    "train_error": "error of the rows trained on",
    "rows": "rows trained on",
    "linear_rank": "rank a linear map needs for the same error",
    "one_fewer": "error with one dimension fewer / error",
    "ridge": "ridge chosen",
    "foretold": "share of what is missed that is a further dimension: the inputs, or one direction, tell it",
    "columns_holding": "columns that hold 95 % of the variance, on one scale",
    "most_rank": "rank that no map of these inputs to these targets exceeds",
    "resample_share": "share of resampled held-out rows that read the rank",
    "start_share": "share of starts that read the rank",
    "bound": "least of the other ranks, which bounds this one",
}


def report(
    result: Discovery | Diagnosis,
    path: str | os.PathLike[str],
    *,
    x: ArrayLike | None = None,
    command: str | None = None,
    pictures: Sequence[Picture] | None = None,
    meaning: xr.Dataset | None = None,
    y: ArrayLike | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write one self-contained HTML page about `result`.

    Args:
        result: what `discover` or `diagnose` returned.
        path: the file to write, whole or not at all; its folder must exist.
        x: samples in the user's units, to show their coordinates.
        command: the command that made the result, for the page's last section.
        pictures: those that `write_pictures` made of the same result, so that they are not drawn again.
        meaning: what `isthmus.interpret` says of the coordinates of a discovery, to be shown beside them.
        y: targets of the samples `x`, to show them against combinations of the inputs; predictions unless given.
        notes: what else is to be known of the data, as what was filled in where they were read; above the warnings.

    Raises:
        OSError: the file cannot be written.

    >>> path = Path(tempfile.mkdtemp()) / "page.html"
    >>> isthmus.report(isthmus.diagnose(module, x), path, pictures={})
    >>> path.read_text()[:15].lower()
    '<!doctype html>'
    """
    if not isinstance(result, Discovery | Diagnosis):  # pyright: ignore[reportUnnecessaryIsInstance] - callers
        raise TypeError(f"report(result, path): needs what discover or diagnose returned, got {type(result).__name__}.")
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"report(result, path): needs the path of a file, got {type(path).__name__}.")
    if isinstance(x, Sized) and isinstance(y, Sized):
        check_same_length(len(x), len(y), name="report(x, y)")
    check_row_labels(x, {"y": y}, in_order=False)
    write_text(Path(path), rendered("page.html", _content(result, x, y, command, pictures, meaning, notes)))


def rendered(template: str, content: Mapping[str, object]) -> str:
    """A page: all text that enters it is escaped, and a policy forbids whatever is not ours should that ever fail."""
    templates = Environment(
        loader=PackageLoader("isthmus.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    style = templates.get_template("style.css").render(palette=PALETTE)
    script = templates.get_template("page.js").render()
    policy = _policy(style, script)
    return templates.get_template(template).render(content, style=Markup(style), script=Markup(script), policy=policy)


def _policy(style: str, script: str) -> str:
    """What a browser may do with a page: apply this very style, run this very script, show images that stand in it."""
    allowed = (f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in (style, script))
    return (
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'"
    ).format(*allowed)


def _visible(value: object) -> object:
    """Text with what turns the direction of a line, or cannot be written, escaped; names of others may hold it."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(c if c in "\n\t" or c.isprintable() else shown(c) for c in value)


def _content(
    result: Discovery | Diagnosis,
    x: ArrayLike | None,
    y: ArrayLike | None,
    command: str | None,
    pictures: Sequence[Picture] | None,
    meaning: xr.Dataset | None,
    notes: Sequence[str],
) -> dict[str, object]:
    discovery = result if isinstance(result, Discovery) else None
    diagnosis = result if isinstance(result, Diagnosis) else result.diagnosis
    control = discovery.control if discovery else None
    halves = straight_halves(discovery, x, y) if discovery else []
    warnings = (*notes, *(discovery.warnings if discovery else ()), *diagnosis.warnings)
    return {
        "title": _title("Rank of a task" if discovery else "Rank of a network", command),
        "json_link": data_link(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False), "application/json"),
        "state": discovery.verdict.name.lower() if discovery else "plain",
        "verdict": verdict_of(result, x, y),
        "straight": [straight_section(one, half) for one, half in halves],
        "pictures": page_figures(pictures if pictures is not None else pictures_of(result, x, meaning, y), ""),
        "control": verdict_of_control(control) if control else None,
        "control_pictures": page_figures(_curves(control), "control-") if control else [],
        "warnings": list(dict.fromkeys(warnings)),
        "starts": rows_by(discovery.runs, "run", _START_COLUMNS) if discovery else None,
        "depths": depth_table(discovery.depth_path) if discovery and discovery.depth_path else None,
        "coordinates": meaning_table(meaning) if meaning is not None else None,
        "of_coordinates": of_coordinates(discovery.kind) if discovery else "",
        "cuts": None if discovery else cut_table(diagnosis),  # run folders hold none
        "blocks": block_table(diagnosis),
        "heads": head_table(diagnosis),
        "lookups": lookup_table(diagnosis),
        "layers": layer_table(diagnosis),
        "skipped": skipped_table(diagnosis),
        "readings": _readings(discovery) if discovery else {},
        "columns": _columns(discovery) if discovery else {},
        "provenance": _provenance(result, command),
    }


def _title(what: str, command: str | None) -> str:
    """What the page is about: the data or network that the command names, and the day."""
    try:
        words = shlex.split(command or "")
    except ValueError:  # whatever made the page calls it a command
        words = []
    name = f": {Path(words[2]).name}" if words[:1] == ["isthmus"] and len(words) > 2 else ""
    return f"{what}{name}, {datetime.now(UTC).date().isoformat()}"


def _curves(control: Discovery) -> list[Picture]:
    return [picture for picture in pictures_of(control) if picture.name in {"scree", "objective_curve"}]


def page_figures(pictures: Sequence[Picture], prefix: str) -> list[dict[str, object]]:
    """Pictures as the template `gallery` takes them; the prefix keeps the names of several results apart."""
    # our own drawing, in which matplotlib has escaped all text: safe as it stands
    return [{"svg": Markup(inline_svg(p, prefix)), "caption": p.caption, "name": f"{prefix}{p.name}"} for p in pictures]


def _readings(found: Discovery) -> dict[str, str]:
    return {_READINGS.get(name, name.replace("_", " ")): _setting(value) for name, value in found.readings.items()}


def _columns(found: Discovery) -> dict[str, str]:
    """How many columns there are, and the names of the first."""
    columns = {"inputs": found.input_names}
    if found.task != "autoencoding":
        columns["classes" if found.task == "classification" else "targets"] = found.target_names
    return {
        f"{len(names)} {what if len(names) > 1 else what[:-1]}": _listed(names)
        for what, names in columns.items()
        if names
    }


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    text = ", ".join(map(shown, names[:MOST_NAMES]))
    return f"{text} and {more:,} more, see result.json" if more > 0 else text


def _provenance(result: Discovery | Diagnosis, command: str | None) -> dict[str, str]:
    lines: dict[str, object] = {"command": command} if command else {}
    if isinstance(result, Discovery):
        lines |= {"task": result.task}
        lines |= {name.replace("_", " "): value for name, value in result.settings.items() if name not in _RECORDS}
    else:
        lines |= {name.replace("_", " "): value for name, value in result.layers.attrs.items() if value is not None}
        lines |= {"random choices": _chances(result)}
    lines |= {
        "page written by": ", ".join([f"isthmus {__version__}", *(f"{name} {version(name)}" for name in _PACKAGES)])
    }
    return {name: _setting(value) for name, value in lines.items()}


def _chances(found: Diagnosis) -> str:
    if "tangent_kernel_trace_error" in found.layers:
        return "the combinations of outputs that are differentiated, with a fixed seed: the same on every run"
    return "none: no seed enters"


def _setting(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_setting(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_setting(item) for item in value)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)
