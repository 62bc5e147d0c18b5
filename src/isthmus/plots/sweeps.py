"""A number of a sweep against one of its settings, one line for each value of another.

The table comes from `sweeps.run_table`; files: `cli`.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from isthmus.plots.style import HUES, INK, MUTED, axes_or_new, in_own_settings, legend, plain_text, whole_numbers

_COLORS = (*HUES, INK, MUTED)
_MARKERS = "os^Dv<>P*X"
_DASHES = ("-", (0, (4, 3)), (0, (1, 2)), (0, (6, 2, 1, 2)))  # ranks are often equal: what lies below shows through
_WIDE = 20.0  # ratio of largest to smallest from which an axis is logarithmic


@in_own_settings
def sweep_lines(
    table: pd.DataFrame, ax: Axes | None = None, *, axis: str, quantity: str, by: str | None = None
) -> Axes:
    """Every run as a point, and a line through the medians of the runs that share their settings.

    Args:
        table: one row per run, with the columns named below; rows without the quantity or the setting along the axis
            are left out (`drawn_rows` says how many are drawn).
        ax: axes to draw into; new ones unless given.
        axis: the column of settings along the horizontal axis, numbers.
        quantity: the column of numbers to draw.
        by: the column whose values get a line each, "none" of the runs that lack it.

    Returns:
        The axes.

    >>> table = pd.DataFrame({"network.depth": [4, 8, 4, 8], "objective": [0.3, 0.2, 0.31, 0.22]})
    >>> plots.sweep_lines(table, axis="network.depth", quantity="objective").get_ylabel()
    'objective'
    """
    ax = axes_or_new(ax)
    rows: Any = drawn_rows(table, axis=axis, quantity=quantity)
    groups: list[tuple[str, Any]] = [("", rows)]
    if by is not None:
        groups = [
            (plain_text(f"{_short(by)} {'none' if pd.isna(value) else value}"), part)
            for value, part in rows.groupby(by, dropna=False)
        ]
    for i, (label, part) in enumerate(groups):
        x, y = part[axis].to_numpy(float), part[quantity].to_numpy(float)
        color = _COLORS[i % len(_COLORS)]
        middle = pd.Series(y).groupby(x).median()
        ax.plot(x, y, linestyle="none", marker=".", markersize=4, color=color, alpha=0.45)
        ax.plot(
            middle.index, middle.to_numpy(), marker=_MARKERS[i % len(_MARKERS)], markersize=max(3.5, 7.5 - 1.5 * i),
            linestyle=_DASHES[i % len(_DASHES)], color=color, label=label or None,
        )  # fmt: skip
    _scale(ax, rows[axis].to_numpy(float), rows[quantity].to_numpy(float))
    ax.set_xlabel(_short(axis).replace("_", " "))
    ax.set_ylabel(quantity.replace("_", " "))
    if by is not None and len(groups):
        legend(ax)
    return ax


def drawn_rows(table: pd.DataFrame, *, axis: str, quantity: str) -> pd.DataFrame:
    """The rows that have a finite number of both."""
    known = [np.isfinite(table[name].to_numpy(dtype=float, na_value=np.nan)) for name in (axis, quantity)]
    rows: Any = table[known[0] & known[1]]
    return rows


def _short(column: str) -> str:
    """The key of "section.key"."""
    return column.rpartition(".")[2]


def _scale(ax: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Logarithmic where the values are positive and far apart; whole numbers where they are counts."""
    for values, name in ((x, "x"), (y, "y")):
        if len(values) == 0:
            continue
        if values.min() > 0 and values.max() / values.min() >= _WIDE:
            (ax.set_xscale if name == "x" else ax.set_yscale)("log")
        elif np.array_equal(values, np.round(values)):
            whole_numbers(ax, y=name == "y")
