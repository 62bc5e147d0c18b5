"""Pruning neurons by Caratheodory's theorem: exact on given data, never a larger penalty (LEAKY-10, layer by layer).

Neurons that can be deleted without data: `networks.pruning`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import check_samples, walk
from isthmus.networks.pruning import Layers, incoming_rows, keep_neurons, scale_incoming


def caratheodory_prune(
    network: FullyConnected, x: Float[Tensor, "n d_in"], *, relative: float = 1e-13
) -> FullyConnected:
    """The network with so few neurons that none is a combination of the others on `x` (*exact* on `x`).

        sum_i c_i A_i = sum_i c'_i A_i,   A_i = a_i(x) o_i^T / (|r_i| |o_i|),   c_i = |r_i| |o_i|,   sum c' <= sum c

    with r_i = (w_i, b_i), o_i the outgoing weights: what a layer passes on is a conic combination of rank-one atoms, so
    at most as many neurons as the atoms have dimensions (n width_{l+1} at most) are needed, and a balanced neuron costs
    2 c_i. Gains only in layers wider than that. Incoming and outgoing directions of the neurons that stay are kept.

    Args:
        network: any fully connected network; it is not changed.
        x: samples as rows.
        relative: singular values below this times the largest count as zero when atoms are called dependent.

    Returns:
        A new network; layers that were pruned are balanced neuron by neuron. The penalty never rises.

    Raises:
        ShapeError: `x` does not fit the network, or has no rows.
        ValueError: `relative` is not in [0, 1).

    Cost: one singular value decomposition of (n width_{l+1}, width_l) per layer and one of (rank, rank + 1) per
    neuron removed.
    Source: Jacot and Kaiser 2024, Proposition 3 (LEAKY-10, there for a leaky residual network). Test: laws/test_moves.

    >>> network = isthmus.FullyConnected.from_layers([torch.ones(3, 1), torch.ones(1, 3)])
    >>> networks.caratheodory_prune(network, torch.tensor([[1.0], [2.0]]).double()).dimensions
    (1, 1, 1)
    """
    if not 0 <= relative < 1:
        raise ValueError(f"caratheodory_prune(relative={relative}): needs 0 <= relative < 1; 1e-13 is rounding.")
    check_samples("caratheodory_prune(network, x)", x, network.dimensions[0])
    for l in range(1, network.depth):
        with torch.no_grad():
            activation = walk(network, x)[l - 1].activation
        layers = network.written_layers()
        if _prune_layer(layers, l, activation, relative):
            network = network.rewritten(*layers)
    return network if network.depth > 1 else network.rewritten(*network.written_layers())


def _prune_layer(layers: Layers, l: int, activation: Tensor, relative: float) -> bool:
    """Prune hidden layer `l` in place: whether it changed."""
    incoming, outgoing = incoming_rows(layers, l).double().norm(dim=1), layers[0][l].double().norm(dim=0)
    alive = (incoming > 0) & (outgoing > 0)
    inputs = activation.double()[:, alive] / incoming[alive]
    directions = layers[0][l].double()[:, alive] / outgoing[alive]
    atoms = torch.einsum("ni,mi->nmi", inputs, directions).flatten(0, 1)
    before = (incoming * outgoing)[alive]
    after = conic_combination(atoms, before, relative=relative)
    if (after > 0).sum() == len(alive):
        return False
    mass = torch.zeros_like(incoming)
    mass[alive] = after
    keep = mass > 0
    scale_incoming(layers, l, torch.where(keep, mass.sqrt() / incoming, 0.0).to(activation.dtype))
    layers[0][l] = layers[0][l] * torch.where(keep, mass.sqrt() / outgoing, 0.0).to(activation.dtype)
    keep_neurons(layers, l, keep)
    return True


def conic_combination(
    atoms: Float[Tensor, "size width"], coefficients: Float[Tensor, " width"], *, relative: float = 1e-13
) -> Float[Tensor, " width"]:
    """Coefficients >= 0 with the same combination of the atoms, no larger sum, and at most rank(atoms) non-zero.

    Caratheodory's proof: along a dependence of the atoms, in the direction in which the sum does not grow, walk until
    a coefficient reaches zero; repeat.
    """
    coefficients = coefficients.clone()
    if atoms.numel() == 0:
        return torch.zeros_like(coefficients)
    _, singular_values, right = torch.linalg.svd(atoms, full_matrices=False)
    rank = int((singular_values > relative * singular_values[0]).sum())
    reduced = singular_values[:rank, None] * right[:rank]
    active = torch.nonzero(coefficients > 0).flatten()
    while len(active) > rank:
        chosen = active[: rank + 1]
        dependence = torch.linalg.svd(reduced[:, chosen], full_matrices=True)[2][-1]
        if dependence.sum() > 0:
            dependence = -dependence
        falling = torch.where(dependence < 0, coefficients[chosen] / -dependence, torch.inf)
        first = int(falling.argmin())
        coefficients[chosen] = (coefficients[chosen] + falling[first] * dependence).clamp(min=0)
        coefficients[chosen[first]] = 0
        active = active[coefficients[active] > 0]
    return coefficients
