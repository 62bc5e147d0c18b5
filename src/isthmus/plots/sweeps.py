"""A number of a sweep against one of its settings, one line for each value of another.

The table comes from `sweeps.run_table`; files: `cli`.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from isthmus.plots.style import (
    HUES,
    INK,
    MUTED,
    SMALL,
    axes_or_new,
    in_own_settings,
    legend,
    plain_text,
    whole_numbers,
)
from isthmus.tasks.arrays import counted
from isthmus.training import Outcome

_COLORS = (*HUES, INK, MUTED)
_MARKERS = "os^Dv<>P*X"
_DASHES = ("-", (0, (4, 3)), (0, (1, 2)), (0, (6, 2, 1, 2)))  # ranks are often equal: what lies below shows through
_LOST = [outcome.name for outcome in Outcome if outcome.is_lost]
_LETTERS = 40  # below an axis, side by side
_WIDE = 20.0  # ratio of largest to smallest from which an axis is logarithmic


@in_own_settings
def sweep_lines(
    table: pd.DataFrame, ax: Axes | None = None, *, axis: str, quantity: str, by: str | None = None
) -> Axes:
    """Every run as a point, and a line through the medians of the runs that share their settings.

    A line breaks where its runs lack the quantity. Kinds of networks have lines of their own, and every line looks the
    same in each picture of a table. Where runs are left out, their number stands above the axes.

    Args:
        table: one row per run, with the columns named below; rows without the quantity or the setting along the axis,
            and those whose training diverged or collapsed, are left out (`drawn_rows`; in words: `left_out`).
        ax: axes to draw into; new ones unless given.
        axis: the column of settings along the horizontal axis, numbers or words.
        quantity: the column of numbers to draw.
        by: the column whose values get a line each, "none" of the runs that lack it.

    Returns:
        The axes.

    >>> table = pd.DataFrame({"network.depth": [4, 8, 4, 8], "objective": [0.3, 0.2, 0.31, 0.22]})
    >>> plots.sweep_lines(table, axis="network.depth", quantity="objective").get_ylabel()
    'objective'
    """
    ax = axes_or_new(ax)
    places, words = _places(table[axis])
    drawn = _is_drawn(table, axis, quantity)
    for i, (label, part) in enumerate(_groups(table, axis, by)):
        own = drawn[part]
        if not own.any():
            continue  # its colour stays its own
        x, y = places[part], table[quantity].to_numpy(float, na_value=np.nan)[part]
        color = _COLORS[i % len(_COLORS)]
        middle = pd.Series(np.where(own, y, np.nan)).groupby(x).median()
        ax.plot(x[own], y[own], linestyle="none", marker=".", markersize=4, color=color, alpha=0.45)
        ax.plot(
            middle.index, middle.to_numpy(), marker=_MARKERS[i % len(_MARKERS)], markersize=max(3.5, 7.5 - 1.5 * i),
            linestyle="none" if words else _DASHES[i % len(_DASHES)], color=color, label=label or None,
        )  # fmt: skip
    _scale(ax, places[drawn], table[quantity].to_numpy(float, na_value=np.nan)[drawn], words)
    ax.set_xlabel(_short(axis).replace("_", " "))
    ax.set_ylabel(quantity.replace("_", " "))
    if drawn.sum() < len(table):
        ax.set_title(f"{drawn.sum()} of {counted(len(table), 'run')}", loc="right", fontsize=SMALL, color=MUTED)
    if ax.get_legend_handles_labels()[1]:
        legend(ax)
    return ax


def drawn_rows(table: pd.DataFrame, *, axis: str, quantity: str) -> pd.DataFrame:
    """The rows that have both, a finite number of the quantity, and whose training did not diverge or collapse."""
    rows: Any = table[_is_drawn(table, axis, quantity)]
    return rows


def left_out(table: pd.DataFrame, *, axis: str, quantity: str) -> str:
    """How many rows are not drawn, and why; nothing where all are."""
    lost = _outcomes(table)
    told = [f"{count} {name}" for name in _LOST if (count := int((lost == name).sum()))]
    rest = ~np.isin(lost, _LOST)
    lacking = [int((rest & ~known).sum()) for known in (_has(table, axis), _has(table, axis) <= _has(table, quantity))]
    told += [f"{count} without {_short(name)}" for name, count in zip((axis, quantity), lacking, strict=True) if count]
    return f"left out: {', '.join(told)}" if told else ""


def _is_drawn(table: pd.DataFrame, axis: str, quantity: str) -> np.ndarray:
    return _has(table, axis) & _has(table, quantity) & ~np.isin(_outcomes(table), _LOST)


def _outcomes(table: pd.DataFrame) -> np.ndarray:
    return table["outcome"].to_numpy(object) if "outcome" in table else np.full(len(table), "", dtype=object)


def _has(table: pd.DataFrame, name: str) -> np.ndarray:
    return np.isfinite(_places(table[name])[0])


def _places(column: Any) -> tuple[np.ndarray, list[str]]:
    """Where values stand on an axis, NaN where there is none; of words their names in order, else no names."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy(float, na_value=np.nan), []
    known = column.notna().to_numpy()
    if not known.any() or all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in column[known]
    ):
        return column.to_numpy(float, na_value=np.nan), []
    names = sorted(map(str, column[known].unique()), key=_in_order)
    return np.array([names.index(str(v)) if has else np.nan for v, has in zip(column, known, strict=True)]), names


def _in_order(name: str) -> list[tuple[bool, float, str]]:
    """Of widths such as "6" and "10 10" as numbers, before words."""
    return [(not word.isdecimal(), float(word) if word.isdecimal() else 0.0, word) for word in name.split()]


def _groups(table: pd.DataFrame, axis: str, by: str | None) -> list[tuple[str, np.ndarray]]:
    """The lines of a table with their names and places of rows: of all rows, so that none depends on what is drawn."""
    kinds = [name for name in table if _short(str(name)) == "kind" and name not in {axis, by}]
    kinds = [name for name in kinds if len(table[name].unique()) > 1]
    columns = [name for name in (by, *kinds) if name is not None]
    if not columns:
        return [("", np.arange(len(table)))]
    found = table.reset_index(drop=True).groupby(columns, dropna=False).indices
    named = [(values if isinstance(values, tuple) else (values,), rows) for values, rows in found.items()]
    return [
        (plain_text(", ".join(map(_named, columns, values))), rows) for values, rows in sorted(named, key=_order)
    ]  # fmt: skip


def _order(group: tuple[tuple[Any, ...], np.ndarray]) -> list[tuple[bool, bool, Any]]:
    return [(_is_none(value), isinstance(value, str), 0 if _is_none(value) else value) for value in group[0]]


def _is_none(value: Any) -> bool:
    return bool(pd.isna(value))


def _named(column: str, value: Any) -> str:
    return f"{_short(column)} {'none' if _is_none(value) else value}"


def _short(column: str) -> str:
    """The key of "section.key"."""
    return column.rpartition(".")[2]


def _scale(ax: Axes, x: np.ndarray, y: np.ndarray, words: list[str]) -> None:
    """Logarithmic where the values are positive and far apart; whole numbers where they are counts; words as such."""
    for values, name in ((x, "x"), (y, "y")):
        if len(values) == 0:
            continue
        if name == "x" and words:
            ax.set_xticks(range(len(words)), [plain_text(word) for word in words])
            if sum(map(len, words)) > _LETTERS:
                for label in ax.get_xticklabels():
                    label.set(rotation=30, ha="right", rotation_mode="anchor")
            ax.set_xlim(-0.5, len(words) - 0.5)
        elif values.min() > 0 and values.max() / values.min() >= _WIDE:
            (ax.set_xscale if name == "x" else ax.set_yscale)("log")
        elif np.array_equal(values, np.round(values)):
            whole_numbers(ax, y=name == "y")
