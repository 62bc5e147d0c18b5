"""What stands behind a discovered rank: error against rank, objective against rank or depth, every start.

How the curves are computed: `discovery`. Spectra of one network: `spectra`.
"""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from isthmus.discovery.choices import SLACK
from isthmus.plots.style import (
    BLUE,
    GREEN,
    INK,
    LOOKS,
    MUTED,
    ORANGE,
    SMALL,
    SURFACE,
    above,
    axes_or_new,
    floor,
    in_own_settings,
    legend,
    mark_rank,
    whole_numbers,
)
from isthmus.theory.comparison import Comparison, by_ratio

_ERRORS = (
    ("heldout_error", "held out", BLUE, "o", "-"),
    ("train_error", "training", GREEN, "^", "--"),
    ("linear_error", "linear, held out", ORANGE, "s", ":"),
)
_FLOOR = 1e-4
_BELOW = 30.0  # how far below the errors of the networks the axis of a scree plot goes, for those of linear maps


@in_own_settings
def scree(dataset: xr.Dataset, ax: Axes | None = None, *, rank: int | None = None, noun: str = "dimension") -> Axes:
    """Error against the number of dimensions, on a logarithmic axis.

    The axis ends a factor of 30 below the least error of the networks: a linear map through all dimensions has 1e-15.

    Args:
        dataset: `Discovery.scree` (dimension "rank"; any of `train_error`, `heldout_error`, `linear_error`).
        ax: axes to draw into; new ones unless given.
        rank: the chosen rank, marked by a dashed line.
        noun: what is counted (`RankKind.noun`).

    Returns:
        The axes.

    >>> plots.scree(found.scree, rank=found.rank).get_yscale()
    'log'
    """
    ax = axes_or_new(ax)
    for name, label, color, marker, line in _ERRORS:
        if name in dataset:
            values = dataset[name].where(dataset[name] > 0)
            ax.plot(dataset["rank"], values, line, marker=marker, markersize=4.5, color=color, label=label)
    ax.set_yscale("log")
    networks = [dataset[name].values for name in ("heldout_error", "train_error") if name in dataset]
    least = min((float(v[v > 0].min()) for v in networks if (v > 0).any()), default=0.0)
    if ax.get_ylim()[0] < least / _BELOW:
        ax.set_ylim(bottom=least / _BELOW)
    # through no dimension: the unit of this axis, so that a rank of 1 has something to fall from
    ax.axhline(1.0, color=MUTED, linewidth=1.2, linestyle=(0, (1, 2)), label="best constant")
    ax.set_xlabel(f"{noun}s")
    ax.set_ylabel("error / error of the best constant")
    mark_rank(ax, rank)
    whole_numbers(ax)
    legend(ax)
    return ax


@in_own_settings
def objective_curve(
    dataset: xr.Dataset,
    ax: Axes | None = None,
    *,
    rank: int | None = None,
    noun: str = "dimension",
    compared: Comparison = by_ratio,
) -> Axes:
    """Excess of the least objective through r dimensions over that through the most, one line per ridge.

        100 * (F(r) / F(K) - 1), cut off below at 0.01 per cent; the rank is the least r at or below the slack

    Args:
        dataset: `Discovery.objective_curve` (dimensions "ridge" and "rank"; `objective`, and `chosen` per ridge).
        ax: axes to draw into; new ones unless given.
        rank: the chosen rank, marked by a dashed line.
        noun: what is counted (`RankKind.noun`).
        compared: how objectives are compared (`Loss.compared`); of losses in nats, nats are drawn.

    Returns:
        The axes.

    >>> plots.objective_curve(found.objective_curve, rank=found.rank).get_yscale()
    'log'
    """
    ax = axes_or_new(ax)
    for i, ridge in enumerate(dataset["ridge"].values):
        objective = dataset["objective"].isel(ridge=i).values
        finite = np.isfinite(objective)
        if not finite.any():
            continue
        rises = [max(compared.rise(value, objective[finite][-1]), _FLOOR) for value in objective[finite].tolist()]
        chosen = bool(dataset["chosen"].values[i]) if "chosen" in dataset else False
        label = f"ridge {ridge:.3g}" + (" (chosen)" if chosen else "")
        marker = "o" if chosen else "osD^v<>P*X"[(i + 1) % 10]
        excess = [compared.amount(rise) for rise in rises]
        (line,) = ax.plot(dataset["rank"].values[finite], excess, marker=marker, markersize=4.5, label=label)
        line.set(color=BLUE if chosen else MUTED, linewidth=2.2 if chosen else 1.0, zorder=3 if chosen else 2)
    ax.axhline(compared.amount(math.log1p(SLACK)), color=INK, linewidth=0.9, linestyle=":")
    ax.set_yscale("log")
    ax.set_ylim(bottom=compared.amount(_FLOOR) / 2)
    floor(ax, compared.amount(_FLOOR), "no rise")
    ax.set_xlabel(f"{noun}s allowed")
    ax.set_ylabel(f"objective above its least, {compared.amount_unit}")
    mark_rank(ax, rank)
    whole_numbers(ax)
    legend(ax)
    return ax


@in_own_settings
def starts(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Objective of each start over the least at its ridge; the number inside a mark is the Jacobian rank.

    Args:
        dataset: `Discovery.runs` (dimension "run"; `ridge`, `objective`, `kind`, `jacobian_rank`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    >>> plots.starts(found.runs).get_xlabel()
    'ridge'
    """
    ax = axes_or_new(ax)
    ridge, objective = dataset["ridge"].values, dataset["objective"].values
    kinds = dataset["kind"].values.astype(str)
    ridges = np.unique(ridge)[::-1]
    columns = np.array([ridges.tolist().index(value) for value in ridge])
    least = np.array([np.fmin.reduce(objective[ridge == value], initial=np.inf) for value in ridges])[columns]
    # side by side in the order of the starts, so that equal minima do not hide each other
    order = np.array([np.sum(columns[:run] == column) for run, column in enumerate(columns)])
    place = columns + 0.8 * ((order + 0.5) / np.bincount(columns)[columns] - 0.5)
    for i, kind in enumerate(dict.fromkeys(kinds)):
        color, marker = LOOKS[i % len(LOOKS)]
        shown = (kinds == kind) & np.isfinite(objective)
        height = objective[shown] / least[shown]
        ax.plot(place[shown], height, marker, color=color, markersize=11, label=f"{kind} start")
        for x, y, number in zip(place[shown], height, dataset["jacobian_rank"].values[shown], strict=True):
            text = f"{number:.0f}"
            ax.annotate(text, (x, y), ha="center", va="center_baseline", fontsize=SMALL - 1, color=SURFACE)
    ax.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    ax.set_xticks(range(len(ridges)), [f"{value:.3g}" for value in ridges])
    ax.set_xlim(-0.6, len(ridges) - 0.4)
    ax.margins(y=0.15)
    # less than the slack is no difference, and is not to look like one
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 1 - SLACK / 2), max(high, 1 + 2 * SLACK))
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_xlabel("ridge")
    ax.set_ylabel("objective / least at this ridge")
    legend(ax)
    return ax


@in_own_settings
def depth_path(dataset: xr.Dataset, ax: Axes | None = None, *, switch: float | None = None) -> Axes:
    """Objective of each rank against the number of linear middle layers; the lowest line is the rank of that depth.

    Each rank costs ridge * rank for every layer, the slope of the thin line through its deepest point. Hollow marks are
    networks that do not hold the data together, or whose middle ended with a lower rank.

    Args:
        dataset: `Discovery.depth_path.table` (dimensions "rank" and "middle_layers"; `objective`, `holds`,
            `true_rank`, attribute `ridge`).
        ax: axes to draw into; new ones unless given.
        switch: depth at which the flat and the deep rank exchange places, marked by a dashed line; none if NaN.

    Returns:
        The axes.

    >>> table = xr.Dataset(coords={"rank": [1, 2], "middle_layers": [1, 4]}, attrs={"ridge": 0.1})
    >>> table["objective"] = ("rank", "middle_layers"), [[0.9, 1.2], [0.6, 1.3]]
    >>> table["holds"] = ("rank", "middle_layers"), [[True, True], [True, True]]
    >>> table["true_rank"] = ("rank", "middle_layers"), [[1, 1], [2, 2]]
    >>> plots.depth_path(table).get_xlabel()
    'linear middle layers'
    """
    ax = axes_or_new(ax)
    middle = dataset["middle_layers"].values
    for i, rank in enumerate(dataset["rank"].values.tolist()):
        objective = dataset["objective"].sel(rank=rank).values
        shown = np.isfinite(objective)
        if not shown.any():
            continue
        color, marker = LOOKS[i % len(LOOKS)]
        sound = dataset["holds"].sel(rank=rank).values & (dataset["true_rank"].sel(rank=rank).values >= rank)
        last = np.flatnonzero(shown)[-1]
        line = objective[last] + dataset.attrs["ridge"] * rank * (middle - middle[last])
        ax.plot(middle, line, color=color, linewidth=0.9, linestyle=":")
        ax.plot(middle[shown], objective[shown], color=color, marker=marker, markersize=5, label=f"rank {rank}")
        hollow = shown & ~sound
        ax.plot(middle[hollow], objective[hollow], marker, color=color, markersize=5, markerfacecolor=SURFACE)
    if switch is not None and np.isfinite(switch) and middle[0] <= switch <= middle[-1]:
        ax.axvline(switch, color=INK, linestyle=(0, (4, 2)), linewidth=1.2, zorder=1.5)
        above(ax, switch, "switch", color=MUTED)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("linear middle layers")
    ax.set_ylabel("least objective of this rank")
    whole_numbers(ax)
    legend(ax)
    return ax
