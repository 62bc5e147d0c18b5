"""Samples in a plane: their path through the layers, an autoencoder's arrows, the regions of classes.

The tables come from `diagnostics.principal_planes` and `diagnostics.class_slices`. Pieces by rank: `regions`.
"""

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from isthmus.plots.regions import regions
from isthmus.plots.style import (
    BLUE,
    GREEN,
    INK,
    LONGEST_AXIS,
    MUTED,
    ORANGE,
    SMALL,
    axes_or_new,
    in_own_settings,
    legend,
    plain_text,
)


@in_own_settings
def representation_path(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Every sample as a line through the layers, in two principal components; a dot where it ends.

    Lines are coloured by where samples start along the first component. Layers of other widths have components of
    their own: then the longest run of layers that share theirs is drawn.

    Args:
        dataset: of `diagnostics.representation_path` (`path`, `group`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    >>> from isthmus.diagnostics import representation_path
    >>> plots.representation_path(representation_path(network, torch.from_numpy(x))).get_ylabel()
    'principal component 2'
    """
    ax = axes_or_new(ax)
    groups, counts = np.unique(dataset["group"].values, return_counts=True)
    members = dataset["group"].values == groups[counts.argmax()]
    path = dataset["path"].transpose("sample", "layer", "component").values[:, members]
    layers = dataset["layer"].values[members]
    order = path[:, 0, 0].argsort().argsort() / max(len(path) - 1, 1)
    colors = matplotlib.colormaps["viridis"](0.9 * order)
    many = len(path) > 300
    lines = LineCollection(list(path), colors=colors, linewidths=0.5 if many else 0.9, alpha=0.6, rasterized=many)
    ax.add_collection(lines)
    ax.scatter(path[:, -1, 0], path[:, -1, 1], s=8, c=colors, linewidths=0, zorder=3, rasterized=many)
    ax.autoscale_view()
    ax.set_xlabel("principal component 1")
    ax.set_ylabel("principal component 2")
    ax.set_title(f"layers {layers[0]} to {layers[-1]}", fontsize=SMALL, color=INK)
    return ax


@in_own_settings
def autoencoder_arrows(
    dataset: xr.Dataset,
    ax: Axes | None = None,
    *,
    names: tuple[str, str] = ("sample", "reconstruction"),
    axis_names: tuple[str, str] = ("principal component 1", "principal component 2"),
) -> Axes:
    """An arrow from every sample to what the autoencoder makes of it; arrows end on the learned surface.

    Args:
        dataset: of `diagnostics.reconstruction_arrows` (`start`, `end`); with `data` (dimensions "row" and
            "component") also what the autoencoder was trained on, where the samples are others.
        ax: axes to draw into; new ones unless given.
        names: what the legend calls where arrows start and where they end.
        axis_names: what the two components are.

    Returns:
        The axes.

    >>> from isthmus.diagnostics import reconstruction_arrows
    >>> plots.autoencoder_arrows(reconstruction_arrows(torch.nn.Linear(4, 4), torch.from_numpy(x).float())).get_xlabel()
    'principal component 1'
    """
    ax = axes_or_new(ax)
    start = dataset["start"].transpose("sample", "component").values
    end = dataset["end"].transpose("sample", "component").values
    step = end - start
    if "data" in dataset:
        data = dataset["data"].transpose("row", "component").values
        ax.plot(*data.T, "D", color=GREEN, markersize=2.0, label="training data", zorder=1.8)
    ax.quiver(
        *start.T, *step.T, angles="xy", scale_units="xy", scale=1.0, color=MUTED, width=0.003, headwidth=4, zorder=2
    )
    ax.plot(*start.T, "o", color=BLUE, markersize=2.5, label=plain_text(names[0]))
    ax.plot(*end.T, "s", color=ORANGE, markersize=2.5, label=plain_text(names[1]), zorder=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(plain_text(axis_names[0], most=LONGEST_AXIS))
    ax.set_ylabel(plain_text(axis_names[1], most=LONGEST_AXIS))
    legend(ax)
    return ax


@in_own_settings
def decision_regions(dataset: xr.Dataset, ax: Axes | None = None, *, axis_names: tuple[str, str] = ("u", "v")) -> Axes:
    """The regions of a plane in which a classifier answers each class, with the points where three of them meet.

    Args:
        dataset: of `diagnostics.class_slice`: `vertices` with dimensions "piece", "vertex", "component" (2), padded
            with NaN; `label` of each piece; where known `class_name` (dimension "class"), `tripoints` and `points`
            (each by "component").
        ax: axes to draw into; new ones unless given.
        axis_names: what the two components are.

    Returns:
        The axes.

    >>> square = [[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]]
    >>> table = xr.Dataset({"vertices": (("piece", "vertex", "component"), square), "label": ("piece", [0])})
    >>> table["class_name"] = "class", ["yes", "no"]
    >>> table["tripoints"] = ("tripoint", "component"), np.zeros((0, 2))
    >>> plots.decision_regions(table).get_xlabel()
    'u'
    """
    vertices = dataset["vertices"].transpose("piece", "vertex", "component").values
    polygons = [corners[np.isfinite(corners).all(axis=1)] for corners in vertices]
    labels = dataset["label"].values
    words = dataset["class_name"].values if "class_name" in dataset else None
    names = {int(k): f"class {k}" if words is None else str(words[int(k)]) for k in np.unique(labels)}
    points, tripoints = (dataset[name].values if name in dataset else None for name in ("points", "tripoints"))
    return regions(polygons, labels, ax, names=names, points=points, tripoints=tripoints, axis_names=axis_names)
