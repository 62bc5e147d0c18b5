"""How each kind of result shows itself in one line, in sentences, as a dictionary and in a notebook: one row for each.

What asks for it: `writing.shown`. The page with everything: `page`.
"""

from collections.abc import Callable
from html import escape
from typing import Any

import xarray as xr

from isthmus.diagnostics import Diagnosis
from isthmus.discovery import Compression, Discovery
from isthmus.reports.picture import inline_svg
from isthmus.reports.pictures import pictures_of
from isthmus.reports.verdict import verdict_of
from isthmus.training import FitResult
from isthmus.writing.shown import Look, Shown

_CARD = "<div style='max-width:60em'><p><b>{line}</b></p><dl>{lines}</dl>{pictures}</div>"


def look_of(result: Shown) -> Look:
    """The look of a result, of its class."""
    return LOOKS[type(result)]


def card(result: Shown, look: Look) -> str:
    """A result as a piece of HTML for a notebook: the verdict, its sentences, its first pictures."""
    lines = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in look.lines(result))
    found = {picture.name: picture for picture in _pictures(result)}
    drawn = "".join(_coloured(inline_svg(found[name], f"card-{id(result)}-")) for name in look.first if name in found)
    return _CARD.format(line=escape(look.line(result)), lines=lines, pictures=drawn)


def _coloured(svg: str) -> str:
    """The picture with colours of its own: a notebook knows nothing of those of a page."""
    from isthmus.plots.style import PALETTE

    for name, (light, _dark) in PALETTE.items():
        svg = svg.replace(f"var(--{name})", light)
    return f"<div style='max-width:36em;background:#fff'>{svg}</div>"


def _pictures(result: Any) -> list[Any]:
    return pictures_of(result) if isinstance(result, Discovery | Diagnosis) else []


def _drawers(result: Any) -> dict[str, Callable[[], Any]]:
    return {picture.name: picture.draw for picture in _pictures(result)}


def _lines(result: Discovery | Diagnosis) -> list[tuple[str, str]]:
    return [(line.label, line.text) for line in verdict_of(result).lines]


def _table(table: xr.Dataset) -> dict[str, object]:
    return {str(name): values.values for name, values in table.variables.items()}


def _of_discovery(found: Discovery) -> dict[str, object]:
    names = ("rank", "kind", "verdict", "reasons", "ranks", "task", "input_names", "target_names", "warnings", "groups")
    return {
        **{name: getattr(found, name) for name in names},
        "headline": verdict_of(found).headline,
        "interval": [found.interval.lower, found.interval.upper],
        "probability": found.probability,
        "rank_set": list(found.rank_set),
        "directions": found.directions,
        "readings": found.readings,
        "scree": _table(found.scree),
        "objective_curve": _table(found.objective_curve),
        "remedies": found.remedies,
        "settings": found.settings,
    }


def _of_diagnosis(found: Diagnosis) -> dict[str, object]:
    rank = found.rank
    return {
        "headline": verdict_of(found).headline,
        "rank": rank.estimate,
        "rank_missing": rank.missing or None,
        "interval": [rank.lower, rank.upper],
        "layers": _table(found.layers),
        "skipped": found.skipped,
        "warnings": found.warnings,
        "cuts": None if found.cuts is None else _table(found.cuts),
    }


_FIT = (
    "objective",
    "data_loss",
    "penalty",
    "outcome",
    "stationarity",
    "gradient_evaluations",
    "steps",
    "seconds",
    "rank",
)
_COMPRESSED = (
    "relative_error", "error_bound", "rows_reporting", "speedup", "speedup_interval", "seconds_before", "seconds_after",
    "flops_before", "flops_after", "parameters_before", "parameters_after", "refused", "was_tried", "is_unchanged",
)  # fmt: skip


def _fit_line(found: FitResult) -> str:
    return f"objective {found.objective:.6g} after {found.gradient_evaluations} gradients; {found.outcome.value}"


def _compression_line(found: Compression) -> str:
    if found.is_unchanged:
        return f"nothing was saved of {found.parameters_before} parameters"
    return (
        f"{found.parameters_before} to {found.parameters_after} parameters, relative error {found.relative_error:.3g}, "
        f"{found.speedup:.2f} times as fast"
    )


LOOKS: dict[type[Any], Look] = {
    Discovery: Look(
        lambda found: verdict_of(found).headline, _lines, _of_discovery, _drawers, ("scree", "objective_curve")
    ),
    Diagnosis: Look(lambda found: verdict_of(found).headline, _lines, _of_diagnosis, _drawers, ("layer_spectra",)),
    FitResult: Look(
        _fit_line,
        lambda found: [("loss", f"{found.data_loss:.6g}"), ("penalty", f"{found.penalty:.6g}"),
                       ("stationarity", f"{found.stationarity:.3g}"), ("seconds", f"{found.seconds:.3g}")],
        lambda found: {**{name: getattr(found, name) for name in _FIT}, "history": _table(found.history)},
    ),
    Compression: Look(
        _compression_line,
        lambda found: [("error on fresh rows", f"at most {found.error_bound:.3g} with 95 % confidence"),
                       ("operations", f"{found.flops_before} to {found.flops_after} for one sample"),
                       ("moves", ", ".join(change.what for change in found.changes) or "none")],
        lambda found: {**{name: getattr(found, name) for name in _COMPRESSED},
                       "changes": [change.what for change in found.changes]},
    ),
}  # fmt: skip
