"""Compositions h o g: through identity layers on a non-negative representation, or merged at the junction (FC-15, 16).

Sums: `constructions.sums`. Inserting identity layers into one network: `networks.depth_moves`.
"""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, output_range
from isthmus.networks.layers import check_numbers, check_samples

Box = tuple[Tensor, Tensor]
Layers = tuple[list[Tensor], list[Tensor]]


@dataclass(frozen=True, slots=True)
class IdentityComposition:
    """h o g as one network with identity layers in the middle, and what it costs.

    Attributes:
        network: the composed network, of depth L_g + num_identities + L_h.
        inner_dimension: k, the width of the identity layers: an *upper bound* on the bottleneck rank.
        shift: s >= 0, added to g and taken from the argument of h.
        constant: |W_g|^2 + |W_h|^2 - k (L_g + L_h) with the shifted biases, so that penalty = k L + constant.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> constructions.compose_with_identity(double, double, 3, shift=torch.zeros(2)).inner_dimension
    2
    """

    network: FullyConnected
    inner_dimension: int
    shift: Tensor
    constant: float


def compose_with_identity(
    inner: FullyConnected,
    outer: FullyConnected,
    num_identities: int,
    *,
    x: Float[Tensor, "n d_in"] | None = None,
    box: Box | None = None,
    shift: Float[Tensor, " inner"] | None = None,
) -> IdentityComposition:
    """The composition outer o inner through identity layers (*exact* where inner + shift >= 0).

        [g, last bias += s],   I_k, .., I_k,   [h, first bias -= W_{h,1} s],     penalty = k L + constant

    since sigma_a(t) = t for t >= 0, whatever a. The least shift is taken: s = max(0, -min g), over the samples `x`
    (exact on them), or over a box by interval arithmetic (sound on the box, loose), or as given.

    Args:
        inner: g, its outputs are the inputs of `outer`.
        outer: h, with the same negative slope.
        num_identities: number of identity layers, at least 0.
        x: samples as rows over which inner + shift must be non-negative.
        box: (lower, upper) bounds of the inputs instead of samples.
        shift: the shift itself instead of samples or a box.

    Returns:
        The network (with biases, float64) and its facts.

    Raises:
        ShapeError: the output of `inner` does not fit the input of `outer`, or no sample in `x`.
        ValueError: not exactly one of `x`, `box` and `shift`; different slopes; num_identities < 0; NaN or infinity.
        TypeError: complex or integer samples or shift.

    Source: Jacot 2023a, proof of Theorem 1. Test: FC-15.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> made = constructions.compose_with_identity(double, double, 3, shift=torch.zeros(2))
    >>> made.network(torch.tensor([[1.0, 2.0]], dtype=torch.float64)).tolist()
    [[4.0, 8.0]]
    """
    check_junction("compose_with_identity", inner, outer)
    if num_identities < 0:
        raise ValueError(f"compose_with_identity(num_identities={num_identities}): needs num_identities >= 0.")
    shift = non_negative_shift("compose_with_identity", inner, x=x, box=box, shift=shift)
    (g_weights, g_biases), (h_weights, h_biases) = shifted_pair(inner, outer, shift)
    k = inner.dimensions[-1]
    eye, zero = torch.eye(k, dtype=torch.float64), torch.zeros(k, dtype=torch.float64)
    offset = inner.depth + num_identities
    network = FullyConnected.from_layers(
        [*g_weights, *[eye] * num_identities, *h_weights],
        [*g_biases, *[zero] * num_identities, *h_biases],
        negative_slope=inner.negative_slope,
        linear={*inner.linear, *(l + offset for l in outer.linear)},
    )
    ends = [*g_weights, *g_biases, *h_weights, *h_biases]
    constant = float(sum(p.square().sum() for p in ends)) - k * (inner.depth + outer.depth)
    return IdentityComposition(network, k, shift, constant)


def merged_composition(inner: FullyConnected, outer: FullyConnected) -> FullyConnected:
    """The composition outer o inner with the two matrices at the junction multiplied (*exact* everywhere).

        W = W_{h,1} W_{g,L},    b = W_{h,1} b_{g,L} + b_{h,1},    depth L_g + L_h - 1

    Raises:
        ShapeError: the output of `inner` does not fit the input of `outer`.
        ValueError: different slopes.

    Source: Jacot 2023a, proof of Theorem 4. Test: FC-16.

    >>> double = isthmus.FullyConnected.from_layers([torch.eye(2), 2 * torch.eye(2)])
    >>> constructions.merged_composition(double, double).depth
    3
    """
    check_junction("merged_composition", inner, outer)
    (g_weights, g_biases), (h_weights, h_biases) = biased_layers(inner), biased_layers(outer)
    junction = h_weights[0] @ g_weights[-1]
    bias = h_weights[0] @ g_biases[-1] + h_biases[0]
    return FullyConnected.from_layers(
        [*g_weights[:-1], junction, *h_weights[1:]],
        [*g_biases[:-1], bias, *h_biases[1:]],
        negative_slope=inner.negative_slope if inner.depth > 1 else outer.negative_slope,
        linear={*inner.linear, *(l + inner.depth - 1 for l in outer.linear)},
    )


def biased_layers(network: FullyConnected) -> Layers:
    """Copies of the weights and biases in float64, zeros where the network has no biases."""
    weights, biases = network.written_layers()
    if biases is None:
        biases = [torch.zeros_like(w[:, 0]) for w in weights]
    return [w.double() for w in weights], [b.double() for b in biases]


def non_negative_shift(
    call: str,
    network: FullyConnected,
    *,
    x: Tensor | None = None,
    box: Box | None = None,
    shift: Tensor | None = None,
) -> Tensor:
    """The least s >= 0 with network + s >= 0 on the samples or (sound, loose) on the box, or the shift as given."""
    if sum(given is not None for given in (x, box, shift)) != 1:
        raise ValueError(
            f"{call}: needs exactly one of x=, box= and shift=, to make the inner representation non-negative. "
            "Pass the samples on which the composition must be exact."
        )
    if shift is not None:
        if tuple(shift.shape) != (network.dimensions[-1],):
            raise ShapeError(f"{call}(shift=): needs shape ({network.dimensions[-1]},); got {tuple(shift.shape)}.")
        check_numbers(call, shift=shift)
        return shift.double()
    if box is not None:
        return (-output_range(network, *box)[0]).clamp(min=0).double()
    assert x is not None
    check_samples(f"{call}(x=)", x, network.dimensions[0])
    check_numbers(call, x=x)
    with torch.no_grad():
        return (-copy.deepcopy(network).double()(x.double()).amin(0)).clamp(min=0)


def shifted_pair(inner: FullyConnected, outer: FullyConnected, shift: Tensor) -> tuple[Layers, Layers]:
    """Weights and biases of inner + shift and of z -> outer(z - shift), in float64."""
    (g_weights, g_biases), (h_weights, h_biases) = biased_layers(inner), biased_layers(outer)
    g_biases[-1] = g_biases[-1] + shift
    h_biases[0] = h_biases[0] - h_weights[0] @ shift
    return (g_weights, g_biases), (h_weights, h_biases)


def check_junction(call: str, inner: FullyConnected, outer: FullyConnected) -> None:
    """Raise unless the outputs of `inner` fit the inputs of `outer`, with the same activation."""
    if inner.dimensions[-1] != outer.dimensions[0]:
        raise ShapeError(
            f"{call}: needs an outer network with as many inputs as the inner one has outputs; "
            f"got {inner.dimensions[-1]} outputs and {outer.dimensions[0]} inputs. The inner network comes first."
        )
    if min(inner.depth, outer.depth) > 1 and inner.negative_slope != outer.negative_slope:
        raise ValueError(
            f"{call}: needs equal negative slopes; got {inner.negative_slope} and {outer.negative_slope}. "
            "Convert a ReLU network with constructions.leaky_from_relu."
        )
