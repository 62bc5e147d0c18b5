"""Jacobians of fully connected networks with bounds on what rounding can have done to them.

The Jacobians themselves: `jacobians`. What bounds make of the rounding: `theory.enclosures`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from isthmus.networks.departures import check_as_written
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.jacobians import activated, samples_of
from isthmus.networks.layers import LayerState, activation_derivative, walk

WIDEST, AT_ONCE = 1000, 20_000_000  # neurons of a layer, and numbers at once, where rounding is followed closely
LOOSE = 1e-9  # of the Jacobian, above which an error is followed closely too


@dataclass(frozen=True, slots=True)
class EnclosedJacobians:
    """Jacobians of a network with bounds on their rounding.

    Attributes:
        values: as `jacobians` returns them.
        error: for each sample, a bound on the operator norm of (values - the exact product of the weights).
        certain: whether no preactivation is so near to 0 that rounding could have chosen its slope; where one is, this
            may be the Jacobian of a neighbour, or of no point at all.

    >>> network = isthmus.FullyConnected.from_layers([2 * torch.eye(2), torch.eye(2)])
    >>> made = networks.enclosed_jacobians(network, torch.ones(1, 2).double())
    >>> bool((made.error < 1e-12).all())
    True
    """

    values: Float[Tensor, "n d_out d_in"]
    error: Float[Tensor, " n"]
    certain: Bool[Tensor, " n"]


def enclosed_jacobians(
    network: FullyConnected, x: Float[Tensor, "n d_in"] | NDArray[Any] | list[Any]
) -> EnclosedJacobians:
    """`jacobians` with what their rounding can be: pass `error` on to the bounds of `theory` (*upper bound*).

        e_l = |W_l|_op e_{l-1} + (n + 2) eps |W_l|_F |P_{l-1}|_F,    P_l = D_l W_l P_{l-1} as computed

    a sum of n products errs by at most (n + 2) eps times the sum of their magnitudes. The patterns D_l are those that
    were computed: `certain` says where they are those of exact arithmetic. Neurons that are constant around a sample
    have any slope there. Where these norms leave a sign open or a billionth of the Jacobian, as they do in deep
    networks, rounding is followed through the layers sample by sample, in 4 L w^3 operations each, of layers of up to
    1,000 neurons.

    Args:
        network: any fully connected network.
        x: samples as rows, a tensor, an array or lists, in any precision.

    Raises:
        ShapeError: `x` does not fit the network. ValueError: its weights need not say what it computes, as with a hook.

    Accuracy: the bound is first order in eps, with one part in a hundred to spare. Test: FC-13.

    >>> network = isthmus.FullyConnected.from_layers([2 * torch.eye(2), torch.eye(2)])
    >>> networks.enclosed_jacobians(network, torch.ones(1, 2).double()).values.tolist()
    [[[2.0, 0.0], [0.0, 2.0]]]
    """
    check_as_written("enclosed_jacobians", network, FullyConnected)
    rows = samples_of("enclosed_jacobians", network, x)
    with torch.no_grad():
        found = _by_norms(network, rows)
        loose = found.error > LOOSE * torch.linalg.matrix_norm(found.values)
        left = (~found.certain | loose).nonzero()[:, 0]
        widest = max(network.dimensions)
        if widest <= WIDEST:
            for some in left.split(max(1, AT_ONCE // widest**2)):
                error, certain = _closely(network, rows[some])
                found.error[some] = torch.minimum(found.error[some], error)
                found.certain[some] |= certain
    return found


def _by_norms(network: FullyConnected, rows: Tensor) -> EnclosedJacobians:
    """By the operator norms of the weights: a layer multiplies what was wrong by no more."""
    product = torch.eye(network.dimensions[0], dtype=rows.dtype, device=rows.device).expand(len(rows), -1, -1)
    error, unsure = product.new_zeros(len(rows)), product.new_zeros(len(rows))  # of J a_l, and of a_l
    certain = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    entering = rows
    for state in walk(network, rows):
        unit = _unit(state)
        # no smaller than the largest singular value, whatever its rounding
        reach = torch.linalg.matrix_norm(state.weight, 2) * (1 + 8 * unit) if state.weight.numel() else 0.0
        error = reach * error + _of_product(state, product)
        new = _of_sums(state, entering)
        product = state.weight @ product
        if network.is_activated(state.position):
            moves = state.weight.norm(dim=1) * unsure[:, None] + new
            certain &= _are_fixed(state, moves, product)
        unsure, entering = 1.01 * (reach * unsure + new.norm(dim=1)), state.activation
        product = activated(network, state.position, state.preactivation, product)
    return EnclosedJacobians(product, 1.01 * error, certain)


def _closely(network: FullyConnected, rows: Tensor) -> tuple[Tensor, Tensor]:
    """By what the layers behind make of the rounding of each, while their patterns are certain: they are linear then.

        a_m - its exact value = sum_{l <= m} M_lm rho_l,   M_lm = D_m W_m .. W_{l+1} D_l,   |rho_l| <= r_l
        |its entry i|^2 <= (sum_l r_l^2) S_ii,   S = sum_l M_lm M_lm^T,   S <- D_m (W_m S W_m^T + 1) D_m

    and so for the Jacobian. `grown` is S. Products of norms double with every layer of initial weights, S does not.
    """
    wide, number = max(network.dimensions), torch.finfo(rows.dtype)
    product = torch.eye(network.dimensions[0], dtype=rows.dtype, device=rows.device).expand(len(rows), -1, -1)
    grown = torch.zeros_like(product)
    of_sums, of_product, certain = rows.new_zeros(len(rows)), rows.new_zeros(len(rows)), rows.new_ones(len(rows)).bool()
    entering = rows
    for state in walk(network, rows):
        weight, new = state.weight, _of_sums(state, entering)
        of_product = of_product + _of_product(state, product).square()
        spread = weight @ grown @ weight.mT
        # what rounding can have taken from it
        slack = 4 * wide * number.eps * torch.linalg.matrix_norm(grown)[:, None] * weight.square().sum(1)
        product, on_kink = weight @ product, torch.zeros_like(state.preactivation, dtype=torch.bool)
        if network.is_activated(state.position):
            along = spread.diagonal(dim1=1, dim2=2).clamp_min(0) + slack
            moves = (of_sums[:, None] * along).sqrt() + new
            certain &= _are_fixed(state, moves, product)
            # a neuron that is constant may lie on its kink: its value is known up to what moved it, whatever its slope
            on_kink = state.preactivation.abs() <= 1.01 * moves
            of_sums = of_sums + torch.where(on_kink, 1.01 * moves, 0.0).square().sum(1)
        of_sums, entering = of_sums + new.square().sum(1), state.activation
        grown = spread + torch.eye(len(weight), dtype=rows.dtype, device=rows.device)
        grown.diagonal(dim1=1, dim2=2).add_(slack)
        if network.is_activated(state.position):
            slopes = activation_derivative(state.preactivation, network.negative_slope)
            grown = slopes[:, :, None] * grown * slopes[:, None]
            grown.diagonal(dim1=1, dim2=2).add_(on_kink)
        product = activated(network, state.position, state.preactivation, product)
    return 1.01 * (of_product * torch.linalg.matrix_norm(grown)).sqrt(), certain


def _unit(state: LayerState) -> float:
    """A sum of n products errs by at most (n + 2) eps times the sum of their magnitudes."""
    return (state.weight.shape[1] + 2) * torch.finfo(state.weight.dtype).eps


def _of_product(state: LayerState, product: Tensor) -> Tensor:
    """What rounding adds in the product with the weights, in Frobenius norm."""
    size, number = torch.linalg.matrix_norm(state.weight), torch.finfo(product.dtype)
    return _unit(state) * size * torch.linalg.matrix_norm(product) + number.tiny * max(state.weight.shape)


def _of_sums(state: LayerState, entering: Tensor) -> Tensor:
    """What rounding adds to each preactivation, whatever was wrong before."""
    moved = _unit(state) * state.weight.norm(dim=1) * entering.norm(dim=1)[:, None] + torch.finfo(entering.dtype).tiny
    return moved if state.bias is None else moved + _unit(state) * state.bias.abs()


def _are_fixed(state: LayerState, moves: Tensor, product: Tensor) -> Tensor:
    """Whether rounding cannot have chosen the slope of any neuron; of one that is constant any slope will do."""
    return ((state.preactivation.abs() > 1.01 * moves) | (product == 0).all(2)).all(1)
