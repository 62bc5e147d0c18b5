"""Numbers over depth: dimensions, departures from identities, tangent kernel, balance, energies; ranks over training.

The tables are those of `diagnostics`. Spectra over depth: `spectra`. Samples on their way through layers: `planes`.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes

from isthmus.plots.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    axes_or_new,
    in_own_settings,
    legend,
    plain_text,
    whole_numbers,
)

_LOOKS = ((BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", ":"))
_SMALLEST = 1e-12  # what counts as zero on a logarithmic axis
MOST_NAMED = 8  # layers over training in the legend: of more, only the first and the last


@in_own_settings
def dimensions(dataset: xr.Dataset, ax: Axes | None = None, *, rank: int | None = None) -> Axes:
    """Dimensions of the centred activations over depth: the gap integer and the participation ratio.

    Args:
        dataset: `Diagnosis.layers` (dimension "layer"; `dimension_activation`, `dimension_participation`).
        ax: axes to draw into; new ones unless given.
        rank: of the network, drawn as a dashed line.

    Returns:
        The axes.

    Raises:
        ValueError: the table has none of the variables.

    >>> plots.dimensions(isthmus.diagnose(network, x).layers, rank=2).get_xlabel()
    'layer'
    """
    curves = {"dimension_activation": "gap", "dimension_participation": "participation ratio"}
    ax = _over_depth("dimensions", dataset, ax, "dimensions", curves)
    if rank is not None:
        ax.axhline(rank, color=INK, linestyle=(0, (4, 2)), linewidth=1.2, label=f"rank {rank}", zorder=1.5)
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax


@in_own_settings
def departures(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """How far each layer is from an identity: nonlinearity impact and identity defect, both 0 for a rotation.

    Args:
        dataset: `Diagnosis.layers` (dimension "layer"; `nonlinearity_impact`, `identity_defect`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the table has none of the variables.

    >>> plots.departures(isthmus.diagnose(network, x).layers).get_xlabel()
    'layer'
    """
    curves = {"nonlinearity_impact": "nonlinearity impact", "identity_defect": "identity defect"}
    ax = _over_depth("departures", dataset, ax, "distance from an identity", curves)
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax


@in_own_settings
def tangent_kernel(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Mean squared derivative of the outputs by the weights of each layer, on a logarithmic axis.

    Args:
        dataset: `Diagnosis.layers` (dimension "layer"; `tangent_kernel_trace`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the table lacks the variable.

    >>> plots.tangent_kernel(isthmus.diagnose(network, x).layers).get_yscale()
    'log'
    """
    curves = {"tangent_kernel_trace": "tangent kernel"}
    return _on_log(_over_depth("tangent_kernel", dataset, ax, "trace of the tangent kernel", curves))


@in_own_settings
def balance(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Balance residual of every layer whose neurons can be rescaled against the next: 0 at a minimum with a penalty.

    Args:
        dataset: `Diagnosis.layers` (dimension "layer"; `balance_residual`, NaN where layers are not homogeneous).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the table lacks the variable.

    >>> plots.balance(isthmus.diagnose(network, x).layers).get_xlabel()
    'layer'
    """
    return _on_log(_over_depth("balance", dataset, ax, "balance residual", {"balance_residual": "balance residual"}))


@in_own_settings
def energies(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Cost of identity and kinetic energy along a residual stream.

    Args:
        dataset: `Diagnosis.layers` of a network with a residual stream, or a table of `leaky_diagnosis`
            (`cost_of_identity` and, where known, `kinetic_energy`; over `position` where it is there).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the table has none of the variables.

    >>> table = xr.Dataset({"position": ("layer", [0.5, 1.0])}, coords={"layer": [1, 2]})
    >>> table["cost_of_identity"], table["kinetic_energy"] = ("layer", [3.2, 3.1]), ("layer", [0.2, 0.1])
    >>> len(plots.energies(table).get_lines())
    2
    """
    curves = {"cost_of_identity": "cost of identity", "kinetic_energy": "kinetic energy"}
    ax = _over_depth("energies", dataset, ax, "energy", curves)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    legend(ax)
    return ax


@in_own_settings
def hamiltonian(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Hamiltonian along a residual stream: constant over depth at a minimum, but for errors of the step size.

    Args:
        dataset: as for `energies`, with `hamiltonian`.
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the table lacks the variable.

    >>> table = xr.Dataset({"position": ("layer", [0.5, 1.0])}, coords={"layer": [1, 2]})
    >>> table["hamiltonian"] = "layer", [-3.0, -2.9]
    >>> plots.hamiltonian(table).get_lines()[0].get_ydata().tolist()
    [-3.0, -2.9]
    """
    ax = _over_depth("hamiltonian", dataset, ax, "Hamiltonian", {"hamiltonian": "Hamiltonian"})
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 0.0), max(high, 0.0))  # a constant must look constant: zero is in sight
    return ax


@in_own_settings
def rank_over_training(history: xr.Dataset, ax: Axes | None = None, *, variable: str = "dimension_activation") -> Axes:
    """The dimensions of every layer over the steps of a training: plateaus are saddles that it rests at.

    Args:
        history: `Monitor.history` (dimensions "step" and "layer").
        ax: axes to draw into; new ones unless given.
        variable: which of its numbers; one count per record is drawn as a step.

    Returns:
        The axes.

    Raises:
        ValueError: the table lacks the variable.

    >>> monitor = isthmus.Monitor(module, x, every=1)
    >>> stepped = [monitor.step() for _ in range(2)]
    >>> plots.rank_over_training(monitor.history).get_xlabel()
    'step'
    """
    if variable not in history or history[variable].dims != ("step", "layer"):
        raise ValueError(
            f"rank_over_training(variable={variable!r}): needs a table by step and layer with it, as Monitor.history; "
            f"got {sorted(map(str, history.data_vars))}."
        )
    ax = axes_or_new(ax)
    steps, layers = history["step"].values, history["layer"].values
    shades = colormaps["viridis"](np.linspace(0.05, 0.85, len(layers)))
    for place, (name, shade) in enumerate(zip(layers, shades, strict=True)):
        is_named = len(layers) <= MOST_NAMED or place in {0, len(layers) - 1}
        label = plain_text(name) if is_named else None
        ax.step(steps, history[variable].values[:, place], where="post", color=shade, linewidth=1.4, label=label)
    ax.set_xlabel("step")
    ax.set_ylabel(variable.replace("_", " "))
    ax.set_ylim(bottom=0)
    if variable == "dimension_activation":
        whole_numbers(ax, y=True)
    legend(ax)
    return ax


def _over_depth(call: str, dataset: xr.Dataset, ax: Axes | None, height: str, curves: Mapping[str, str]) -> Axes:
    """Variables, with their names in the legend, over position where the table has one for them, else over layers."""
    shown = [variable for variable in curves if has_numbers(dataset, variable)]
    if not shown:
        names = " or ".join(curves)
        raise ValueError(
            f"plots.{call}(dataset): needs numbers in {names}; the table has {', '.join(map(str, dataset))}."
        )
    ax = axes_or_new(ax)
    is_along = call in {"energies", "hamiltonian"} and has_numbers(dataset, "position")
    place = dataset["position"].values if is_along else dataset["layer"].values
    for variable, (color, marker, line) in zip(shown, _LOOKS, strict=False):
        values = np.asarray(dataset[variable].values, dtype=np.float64)
        there = np.isfinite(values) & np.isfinite(place)
        # a marker alone where the neighbours have no number; small ones where there are many
        size = 4.5 if there.sum() <= 40 else 2.2
        if call == "dimensions":  # a layer without a gap breaks the line; of blocks only some layers have numbers
            there[:] = True
        ax.plot(place[there], values[there], line, marker=marker, markersize=size, color=color, label=curves[variable])
    ax.set_ylabel(height)
    ax.set_xlabel("position along the stream" if is_along else "layer")
    if not is_along:
        ax.set_xlim(place[0] - 0.5, place[-1] + 0.5)
        whole_numbers(ax)
    return ax


def _on_log(ax: Axes) -> Axes:
    line = ax.get_lines()[0]
    values = np.asarray(line.get_ydata(), dtype=np.float64)
    if (values > _SMALLEST).any():
        line.set_ydata(np.clip(values, _SMALLEST, None))
        ax.set_yscale("log")
        ax.relim()
        ax.autoscale_view()
    return ax


def has_numbers(dataset: xr.Dataset, variable: str) -> bool:
    """Whether a table has at least one number for this variable."""
    return variable in dataset and bool(np.isfinite(np.asarray(dataset[variable].values, dtype=np.float64)).any())
