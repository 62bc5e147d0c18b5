"""The rank as a function of depth: the objective of each rank, a line in the number of middle layers.

How the objectives are computed: `discovery`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from isthmus.plots.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SURFACE,
    axes_or_new,
    in_own_settings,
    legend,
    whole_numbers,
)

_LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"), (PURPLE, "^"))


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
    """
    ax = axes_or_new(ax)
    middle = dataset["middle_layers"].values
    for i, rank in enumerate(dataset["rank"].values.tolist()):
        objective = dataset["objective"].sel(rank=rank).values
        shown = np.isfinite(objective)
        if not shown.any():
            continue
        color, marker = _LOOKS[i % len(_LOOKS)]
        sound = dataset["holds"].sel(rank=rank).values & (dataset["true_rank"].sel(rank=rank).values >= rank)
        last = np.flatnonzero(shown)[-1]
        line = objective[last] + dataset.attrs["ridge"] * rank * (middle - middle[last])
        ax.plot(middle, line, color=color, linewidth=0.9, linestyle=":")
        ax.plot(middle[shown], objective[shown], color=color, marker=marker, markersize=5, label=f"rank {rank}")
        hollow = shown & ~sound
        ax.plot(middle[hollow], objective[hollow], marker, color=color, markersize=5, markerfacecolor=SURFACE)
    if switch is not None and np.isfinite(switch) and middle[0] <= switch <= middle[-1]:
        ax.axvline(switch, color=INK, linestyle=(0, (4, 2)), linewidth=1.2, zorder=1.5)
        ax.text(switch, 1.015, "switch", transform=ax.get_xaxis_transform(), ha="center", va="bottom", color=MUTED)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("linear middle layers")
    ax.set_ylabel("least objective of this rank")
    whole_numbers(ax)
    legend(ax)
    return ax
