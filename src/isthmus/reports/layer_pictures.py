"""The pictures of a table by layer: spectra over depth, and the profiles of its numbers.

Drawing itself: `plots`. Pictures of a discovery's curves: `pictures`.
"""

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from isthmus import plots
from isthmus.plots.profiles import has_numbers
from isthmus.reports.picture import Picture
from isthmus.tasks.arrays import counted

_PROFILES: tuple[tuple[str, str, Callable[[xr.Dataset], Axes], str, str], ...] = (
    (
        "departures",
        "identity_defect",
        plots.departures,
        "How far each layer is from an identity: what its activation function takes away (nonlinearity impact), and "
        "how far its matrix is from a rotation of what enters (identity defect). Where both are near 0 a layer only "
        "passes its input on and could be merged.",
        "Nonlinearity impact and identity defect of every layer.",
    ),
    (
        "tangent_kernel",
        "tangent_kernel_trace",
        plots.tangent_kernel,
        "Trace of the tangent kernel: how much the outputs move when the weights of a layer move. High layers learn "
        "fast, layers near 0 hardly matter.",
        "Trace of the tangent kernel of every layer, on a logarithmic axis.",
    ),
    (
        "balance",
        "balance_residual",
        plots.balance,
        "Imbalance between what enters and what leaves a neuron, where ReLUs join two layers. It is 0 at a minimum "
        "with an L2 penalty; large values say that the penalty was weak, or the training short.",
        "Balance residual of the layers that have one, on a logarithmic axis.",
    ),
    (
        "energies",
        "cost_of_identity",
        plots.energies,
        "Energies of the residual stream: the cost of keeping the representation as it is, and the kinetic energy of "
        "changing it. Exact for leaky networks, a heuristic for other streams.",
        "Cost of identity and kinetic energy along the residual stream.",
    ),
    (
        "hamiltonian",
        "hamiltonian",
        plots.hamiltonian,
        "The Hamiltonian of the residual stream. In a leaky network of small steps it is constant over depth at a "
        "minimum of the penalised objective; in other streams it is a heuristic.",
        "The Hamiltonian along the residual stream.",
    ),
)


def profile_pictures(layers: xr.Dataset, rank: int | None) -> list[Picture]:
    """Numbers over depth, as far as the table has them."""
    count = layers.sizes["layer"]
    found: list[Picture] = []
    if has_numbers(layers, "dimension_activation"):
        found.append(
            Picture(
                "dimensions",
                "Dimensions of the centred activations: by the largest gap of their spectrum, and by the participation "
                "ratio, a soft count. The participation ratio is low where few directions carry most of the variance.",
                f"Dimensions of the activations of {counted(count, 'layer')} by two measures{_marked(rank)}.",
                lambda: plots.dimensions(layers, rank=rank),
            )
        )
    for name, variable, draw, caption, description in _PROFILES:
        if has_numbers(layers, variable):
            found.append(Picture(name, caption, description, lambda draw=draw: draw(layers)))
    return found


def layer_pictures(layers: xr.Dataset, rank: int | None, *, returned: bool = False) -> list[Picture]:
    """Spectra over depth, and that of the Jacobian, as far as the table has them; None: no rank stands out.

    Of what a discovery `returned`, which was cut to its rank, the Jacobian is not the one that was read.
    """
    whose = " that is returned" if returned else ""
    read = " What the verdict says of the Jacobian was read before it was cut to its rank." if returned else ""
    marked = _marked(rank)
    pictures: list[Picture] = []
    if "activation_singular_values" in layers:
        pictures.append(
            Picture(
                "layer_spectra",
                "Singular values of the centred activations in every layer, bright is large. A bottleneck shows as "
                f"layers that go dark behind {'the dashed line' if rank is not None else 'a few directions'}.",
                f"Map of relative singular values for {counted(layers.sizes['layer'], 'layer')}{marked}.",
                lambda: plots.layer_spectra(layers, rank=rank),
            )
        )
    if "jacobian_singular_values" in layers and _num_components(layers["jacobian_singular_values"]) > 1:
        pictures.append(
            Picture(
                "jacobian_spectrum",
                f"Singular values of the Jacobian of the network{whose}: how many directions of the input matter near "
                f"a sample.{read}",
                f"Singular values of the Jacobian relative to the first{marked}.",
                lambda: plots.jacobian_spectrum(layers, rank=rank),
            )
        )
    return pictures


def _marked(rank: int | None) -> str:
    return "" if rank is None else f"; rank {rank} is marked"


def _num_components(spectra: xr.DataArray) -> int:
    """How many there are: of one alone, as one target has it, there is no gap to see."""
    return int(
        np.isfinite(spectra.transpose("component", ...).values).reshape(spectra.sizes["component"], -1).any(1).sum()
    )
