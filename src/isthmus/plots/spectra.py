"""Singular values layer by layer, those of the network's Jacobian, and those that a linear half leaves.

How the tables are made: `diagnostics`. Curves over ranks: `curves`.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import NullFormatter

from isthmus.plots.style import (
    BLUE,
    MUTED,
    SMALL,
    axes_or_new,
    colour_bar,
    floor,
    in_own_settings,
    mark_rank,
    whole_numbers,
)

_FLOOR = 1e-6
_MOST_COMPONENTS = 24  # unless the rank lies beyond
_BEHIND = 6  # directions behind the rank, or at the floor, that have room


@in_own_settings
def layer_spectra(
    dataset: xr.Dataset,
    ax: Axes | None = None,
    *,
    variable: str = "activation_singular_values",
    rank: int | None = None,
) -> Axes:
    """Relative singular values of every layer as a map, layer by component, on a logarithmic colour scale.

    Args:
        dataset: `Diagnosis.layers` (dimensions "layer" and "component").
        ax: axes to draw into; new ones unless given.
        variable: the spectra to draw; each layer is divided by its largest value.
        rank: the chosen rank; a dashed line stands just behind that many components.

    Returns:
        The axes.

    >>> plots.layer_spectra(found.diagnosis.layers, rank=found.rank).get_xlabel()
    'component (the first 24 of 48; blank: the layer is narrower)'
    """
    ax = axes_or_new(ax)
    spectra = dataset[variable].transpose("layer", "component").values
    values = spectra[:, : max(_MOST_COMPONENTS, (rank or 0) + (rank or 0) // 2)]
    largest = np.fmax.reduce(values, axis=1, initial=0.0)[:, None]
    relative = np.clip(values / np.where(largest > 0, largest, np.nan), _FLOOR, None)
    num_layers, num_components = relative.shape
    cells = ax.pcolormesh(
        np.arange(num_components + 1) + 0.5,
        np.arange(num_layers + 1) + 0.5,
        np.ma.masked_invalid(relative),
        norm=LogNorm(_FLOOR, 1.0),
        cmap="cividis",
        zorder=1,
    )
    ax.invert_yaxis()
    ax.grid(visible=False)
    wide = int(np.isfinite(spectra).sum(1).max(initial=0))
    part = f"the first {num_components} of {wide}; " if wide > num_components else ""
    ax.set_xlabel(f"component ({part}blank: the layer is narrower)")
    ax.set_ylabel("layer")
    mark_rank(ax, rank, between=True)
    whole_numbers(ax)
    whole_numbers(ax, y=True)
    colour_bar(ax, cells, "singular value / largest", cut=bool((relative <= _FLOOR).any()))
    return ax


@in_own_settings
def jacobian_spectrum(dataset: xr.Dataset, ax: Axes | None = None, *, rank: int | None = None) -> Axes:
    """Singular values of the network's Jacobian relative to the first; median over points with a band from 10 to 90 %.

    Args:
        dataset: `Diagnosis.layers`; `jacobian_singular_values` with dimension "component", of the first layer where it
            has a dimension "layer", over points where it has a dimension "sample".
        ax: axes to draw into; new ones unless given.
        rank: the chosen rank; a dashed line stands just behind that many components.

    Returns:
        The axes.

    >>> plots.jacobian_spectrum(isthmus.diagnose(network, x).layers, rank=2).get_yscale()
    'log'
    """
    ax = axes_or_new(ax)
    spectrum = dataset["jacobian_singular_values"]
    if "layer" in spectrum.dims:
        spectrum = spectrum.isel(layer=0)  # by the input of the first layer: df/dx
    values = (
        spectrum.values.reshape(1, -1) if "sample" not in spectrum.dims else spectrum.transpose("sample", ...).values
    )
    relative = np.clip(values / np.where(values[:, :1] > 0, values[:, :1], np.nan), _FLOOR, None)
    relative = relative[:, ~np.isnan(relative).all(axis=0)]
    whole = relative.shape[1]
    relative = relative[:, : _drawn(relative, rank)]  # hundreds of zeros leave no room for what is not
    components = np.arange(1, relative.shape[1] + 1)
    if relative.size:
        low, middle, high = np.nanquantile(relative, [0.1, 0.5, 0.9], axis=0)
        if len(values) > 1:
            ax.fill_between(components, low, high, color=BLUE, alpha=0.2, linewidth=0)
        ax.plot(components, middle, "o-", color=BLUE, markersize=4.5)
    ax.set_yscale("log")
    if relative.size and np.nanmin(relative) <= _FLOOR:
        floor(ax, _FLOOR, "a millionth or less")
    ax.set_xlabel(f"component of the Jacobian{f', of {whole}' if relative.shape[1] < whole else ''}")
    ax.set_ylabel("singular value / first")
    mark_rank(ax, rank, between=True)
    whole_numbers(ax)
    return ax


def _drawn(relative: np.ndarray, rank: int | None) -> int:
    """How many components are drawn: those above the floor at some point, and half as many behind them."""
    above = np.flatnonzero((relative > _FLOOR).any(axis=0))
    last = max(int(above[-1]) + 1 if len(above) else 0, rank or 0)
    return last + max(_BEHIND, last // 2)


@in_own_settings
def direction_spectrum(dataset: xr.Dataset, ax: Axes | None = None, *, columns: int | None = None) -> Axes:
    """The spectrum of a map with a linear half over its directions; behind the rank it is 0 by construction.

    Args:
        dataset: of `straight_half` (dimension "component"; `spectrum`; attribute `kind`).
        ax: axes to draw into; new ones unless given.
        columns: how many directions there could be; up to six behind the rank have room on the axis.

    Returns:
        The axes.

    >>> table = xr.Dataset({"spectrum": ("direction", [1.0, 0.2])}, coords={"direction": [1, 2]})
    >>> plots.direction_spectrum(table).get_yscale()
    'log'
    """
    ax = axes_or_new(ax)
    values = dataset["spectrum"].values
    count = len(values)
    relative = np.clip(values / (values[0] or 1.0), _FLOOR**2, None)
    ax.plot(np.arange(1, count + 1), relative, "o-", color=BLUE, markersize=5)
    ax.set_yscale("log")
    ax.set_ylim(min(float(relative.min()) / 3, 0.05), 2.0)
    ax.yaxis.set_minor_formatter(NullFormatter())
    beyond = min((columns or count) - count, _BEHIND)
    ax.set_xlim(0.4, count + max(beyond, 0) + 0.6)
    if beyond > 0:
        place, words = count + 0.5 + beyond / 2, "0 by\nconstruction"
        ax.text(
            place, 0.5, words, transform=ax.get_xaxis_transform(), ha="center", va="center", fontsize=SMALL, color=MUTED
        )
    index = dataset.attrs.get("kind", "index") == "index"
    ax.set_xlabel("direction of the inputs" if index else "direction of the outputs")
    ax.set_ylabel("eigenvalue / first" if index else "singular value / first")
    mark_rank(ax, count, between=True)
    whole_numbers(ax)
    return ax
