"""Every training start of a discovery: how low it came, and of which rank it is.

Where starts come from and how they are compared: `discovery`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from isthmus.plots.style import BLUE, GREEN, INK, ORANGE, PURPLE, SMALL, SURFACE, axes_or_new, in_own_settings, legend

_LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"), (PURPLE, "^"))


@in_own_settings
def starts(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Objective of each start over the least at its ridge; the number inside a mark is the Jacobian rank.

    Args:
        dataset: `Discovery.runs` (dimension "run"; `ridge`, `objective`, `kind`, `jacobian_rank`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.
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
        color, marker = _LOOKS[i % len(_LOOKS)]
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
    ax.set_xlabel("ridge")
    ax.set_ylabel("objective / least at this ridge")
    legend(ax)
    return ax
