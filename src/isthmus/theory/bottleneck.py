"""Certificates that most layers of a network of small norm are near-identities on k dimensions, and what follows.

Given weights and activation derivatives as tensors; who reads them off a network: `networks.walk` and `diagnostics`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.theory.enclosures import SVD_ROUNDING, rounded, rounded_up
from isthmus.theory.inputs import (
    Real,
    check_depth,
    check_finite,
    check_fraction,
    check_positive,
    check_rank,
    check_tensor,
)
from isthmus.theory.linearisation import check_layers


@dataclass(frozen=True, slots=True)
class BottleneckCertificate:
    """How far each layer is from an isometry of k dimensions, and the bound on the sum.

    Attributes:
        residuals: |W_l - U_l V_{l-1}^T|_F^2 + |b_l|^2 for l = 1..L.
        bound: c1 - 2 log |Jf(x) V_0|_+, rounded up, an *upper bound* on the sum of the residuals.
        excess: c1 = |W|^2 - k L.
        incoming: V_0, ..., V_{L-1}, orthonormal columns: the k directions that enter layer l + 1.
        outgoing: U_1, ..., U_L, orthonormal columns: the k directions that leave layer l; V_l itself in the
            one-sequence form.
    """

    residuals: Tensor
    bound: float
    excess: float
    incoming: tuple[Tensor, ...]
    outgoing: tuple[Tensor, ...]

    def residual_bound(self, *, fraction: Real) -> float:
        """What at least (1 - p) L layers do not exceed: bound / (p L).

        In these layers k singular values of W_l lie within its square root of 1, all others below its square root.

        Args:
            fraction: p in (0, 1).

        Raises:
            ValueError: `fraction` outside (0, 1).
        """
        check_fraction("BottleneckCertificate.residual_bound", "fraction", fraction)
        return rounded(self.bound / (fraction * len(self.residuals)), 2, up=True)


def bottleneck_certificate(
    weights: Sequence[Tensor], biases: Sequence[Tensor | None], derivatives: Sequence[Tensor], *, rank: int
) -> BottleneckCertificate:
    """Frames V_l along which a network of small norm carries k directions: *upper bound* on its residuals.

        sum_l |W_l - V_l V_{l-1}^T|_F^2 + |b_l|^2  <=  |W|^2 - k L - 2 log |Jf(x)|_+
        V_0 = first k right singular vectors of Jf(x);   V_l = polar factor of D_l W_l V_{l-1}

    Holds for any parameters and any k up to rank Jf(x) (|Jf|_+ taken over the first k singular values), with
    derivatives in [0, 1]; a negative slope needs `two_sequence_certificate`.

    Args:
        weights: W_1, ..., W_L, shapes (n_l, n_{l-1}).
        biases: b_1, ..., b_L, or None for a layer without.
        derivatives: L - 1 patterns sigma'(z_l(x)), shape (n_l,), entries in [0, 1]: 0 or 1 for ReLU, 1 where linear.
        rank: k, at least 1.

    Returns:
        Frames, residuals and bound. The bound is never below the sum, so never below 0.

    Raises:
        ValueError: derivatives outside [0, 1], k larger than a width or than the rank of Jf(x), NaN or infinity.
        ShapeError: layers that do not fit. TypeError: complex or integer tensors.

    Accuracy: rounding only raises the bound, by eps times the condition of the first k directions in each layer. For a
    trained network use a k whose singular values are not rounding: each tiny one raises the bound by -2 log s.
    Source: Jacot 2023b, Theorem 6; for k below the rank see docs/notes/certificates.md. Test: FC-37.

    >>> layers = [[[2.0]], [[1.0]]], [None, None], [[1.0]]
    >>> round(theory.bottleneck_certificate(*layers, rank=1).bound, 3)
    1.614
    """
    call = "bottleneck_certificate"
    _check_network(call, weights, biases, derivatives, rank)
    weights, derivatives = [w.double() for w in weights], [d.double() for d in derivatives]
    for l, pattern in enumerate(derivatives, 1):
        if pattern.numel() and float(pattern.detach().min()) < 0:
            raise ValueError(
                f"{call}: needs derivatives in [0, 1]; got {float(pattern.detach().min()):.3g} at layer {l}: "
                "with a negative slope these frames can break the bound. Use two_sequence_certificate."
            )
    frames = [_first_directions(call, weights, derivatives, rank)]
    log_product = unsure = 0.0
    for l, weight in enumerate(weights, 1):
        polar = _polar_factor(_masked(weight @ frames[-1], derivatives, l))
        frames.append(polar.frame)
        log_product, unsure = log_product + polar.log_volume, unsure + polar.unsure
    return _certificate(weights, biases, frames[:-1], frames[1:], (log_product, unsure))


def two_sequence_certificate(
    weights: Sequence[Tensor], biases: Sequence[Tensor | None], derivatives: Sequence[Tensor], *, rank: int
) -> BottleneckCertificate:
    """The certificate with separate frames before and after the activation, for any slope |a| < 1 (*upper bound*).

        sum_l |W_l - U_l V_{l-1}^T|_F^2 + |b_l|^2  <=  |W|^2 - k L - 2 log |Jf(x)|_+
        U_l = polar factor of W_l V_{l-1};   V_l = orthonormal basis of D_l U_l

    Args:
        weights: W_1, ..., W_L, shapes (n_l, n_{l-1}).
        biases: b_1, ..., b_L, or None for a layer without.
        derivatives: L - 1 patterns sigma'(z_l(x)), shape (n_l,), entries in [-1, 1].
        rank: k, at least 1.

    Returns:
        Frames, residuals and bound.

    Raises:
        ValueError: derivatives outside [-1, 1], k larger than a width or than the rank of Jf(x), NaN or infinity.
        ShapeError: layers that do not fit. TypeError: complex or integer tensors.

    Accuracy: as `bottleneck_certificate`. Source: corrects the proof of Jacot 2023b, Theorem 6. Test: FC-37.

    >>> layers = [[[2.0]], [[1.0]]], [None, None], [[-0.5]]
    >>> round(theory.two_sequence_certificate(*layers, rank=1).bound, 3)
    3.0
    """
    call = "two_sequence_certificate"
    _check_network(call, weights, biases, derivatives, rank)
    weights, derivatives = [w.double() for w in weights], [d.double() for d in derivatives]
    incoming, outgoing = [_first_directions(call, weights, derivatives, rank)], list[Tensor]()
    log_product = unsure = 0.0
    for l, weight in enumerate(weights, 1):
        stretched = _polar_factor(weight @ incoming[-1])
        outgoing.append(stretched.frame)
        shrunk = _polar_factor(_masked(stretched.frame, derivatives, l))
        incoming.append(shrunk.frame)
        log_product += stretched.log_volume + shrunk.log_volume
        unsure += stretched.unsure + shrunk.unsure
    return _certificate(weights, biases, incoming[:-1], outgoing, (log_product, unsure))


def _check_network(
    call: str, weights: Sequence[Tensor], biases: Sequence[Tensor | None], derivatives: Sequence[Tensor], rank: int
) -> None:
    check_layers(call, weights, derivatives, ndim=1)
    check_rank(call, rank, largest=min(min(weight.shape) for weight in weights), least=1)
    if len(biases) != len(weights):
        raise ValueError(
            f"{call}: needs one bias per layer, None where there is none; got {len(biases)} for {len(weights)}. "
            "Pass [None] * depth for a network without biases."
        )
    for l, bias in enumerate(biases, 1):
        if bias is not None:
            check_tensor(call, f"biases[{l - 1}]", bias, ndim=1)


def _masked(image: Tensor, derivatives: Sequence[Tensor], l: int) -> Tensor:
    return image if l > len(derivatives) else derivatives[l - 1][:, None] * image


def _first_directions(call: str, weights: Sequence[Tensor], derivatives: Sequence[Tensor], rank: int) -> Tensor:
    jacobian = weights[0]
    for weight, pattern in zip(weights[1:], derivatives, strict=True):
        jacobian = weight @ (pattern[:, None] * jacobian)
    _, values, right = torch.linalg.svd(jacobian, full_matrices=False)
    last, first = float(values.detach()[rank - 1]), float(values.detach()[0])
    if last <= max(jacobian.shape) * torch.finfo(values.dtype).eps * first:
        raise ValueError(
            f"{call}(rank={rank}): needs rank <= rank Jf(x); singular values of Jf(x) start {values[:rank].tolist()}. "
            "Pass a smaller rank, or another point."
        )
    return right[:rank].mT


class _Polar(NamedTuple):
    """Nearest matrix with orthonormal columns, the log of the volume that the columns span, and its rounding."""

    frame: Tensor
    log_volume: float
    unsure: float


def _polar_factor(matrix: Tensor) -> _Polar:
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    condition = float(values.detach()[0] / values.detach()[-1])
    relative = 2 * SVD_ROUNDING * max(matrix.shape) * torch.finfo(values.dtype).eps * condition
    return _Polar(left @ right, float(values.detach().log().sum()), len(values) * relative)


def _certificate(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor | None],
    incoming: Sequence[Tensor],
    outgoing: Sequence[Tensor],
    log_product: tuple[float, float],
) -> BottleneckCertificate:
    bias_norms = [0.0 if bias is None else float(bias.detach().double().square().sum()) for bias in biases]
    residuals = [
        (weight - u @ v.mT).square().sum() + norm
        for weight, u, v, norm in zip(weights, outgoing, incoming, bias_norms, strict=True)
    ]
    penalty = math.fsum([*(float(weight.detach().square().sum()) for weight in weights), *bias_norms])
    kept = incoming[0].shape[1] * len(weights)
    excess = penalty - kept
    size = max(max(weight.shape) for weight in weights)
    outward = 2 * log_product[1] + SVD_ROUNDING * size * torch.finfo(weights[0].dtype).eps * (penalty + kept)
    bound = excess - 2 * log_product[0] + outward
    return BottleneckCertificate(torch.stack(residuals), bound, excess, tuple(incoming), tuple(outgoing))


def activation_norm_bound(
    log_pseudo_determinants: Float[Tensor, " n"], *, rank: int, excess: Real, tangent_scale: Real
) -> Float[Tensor, " n"]:
    """Mean squared activation that a balanced network can have at each point: *upper bound* B(x).

        sum_{l=1}^L |a_{l-1}(x)|^2 + 1  <=  B(x) L,   B(x) = c max{1, e^(c1/k)} / (k |Jf(x)|_+^(2/k))

    so at least (1 - p) L layers have |a_{l-1}(x)|^2 <= B(x) / p.

    Args:
        log_pseudo_determinants: log |Jf(x)|_+ over the k = rank Jf(x) non-zero singular values, one per point.
        rank: k = rank Jf(x), at least 1.
        excess: c1, with |W|^2 <= k L + c1; the network is balanced neuron by neuron.
        tangent_scale: c, with Tr Theta(x, x) <= c L.

    Raises:
        ValueError: `rank` < 1, `tangent_scale` <= 0, NaN or infinity, also in `excess`.
        TypeError: complex or integer tensor.

    Accuracy: rounding, upward, for the numbers given. Source: Jacot 2023b, Theorem 7. Test: FC-39.

    >>> round(float(theory.activation_norm_bound([0.0], rank=1, excess=0, tangent_scale=2)), 6)
    2.0
    """
    call = "activation_norm_bound"
    check_tensor(call, "log_pseudo_determinants", log_pseudo_determinants, ndim=1)
    check_rank(call, rank, largest=2**62, least=1)
    check_finite(call, "excess", excess)
    check_positive(call, "tangent_scale", tangent_scale)
    growth = max(0.0, excess / rank)
    log_pseudo_determinants = log_pseudo_determinants.detach().double()
    exponents = growth - 2 / rank * log_pseudo_determinants
    size = growth + float((2 / rank * log_pseudo_determinants).abs().max()) if len(exponents) else growth
    return rounded_up(tangent_scale / rank * torch.exp(exponents), size)


def representation_tail_bound(
    activation_bounds: Float[Tensor, " n"], *, certificate_bound: Real, depth: int, fraction: Real
) -> Float[Tensor, ""]:
    """Size of the (k+1)-th singular value of the preactivations in most layers: *upper bound*.

        s_{k+1}(Z_l) / sqrt N  <=  (1/p) sqrt( (c1 - 2 log |Jf(x_1)|_+) mean_i B(x_i) / L )   in >= (1 - p) L layers

    Valid and very loose: hundreds of times the measured values on random balanced networks.

    Args:
        activation_bounds: B(x_i) of `activation_norm_bound`, one per data point.
        certificate_bound: c1 - 2 log |Jf(x_1)|_+, `BottleneckCertificate.bound` at one of the points.
        depth: number of weight matrices L, at least 1.
        fraction: p in (0, 1).

    Raises:
        ValueError: `fraction` outside (0, 1), `certificate_bound` <= 0, `depth` < 1, a negative bound, NaN or
            infinity, no points.
        TypeError: complex or integer tensor.

    Accuracy: rounding, upward, for the numbers given.
    Source: Jacot 2023b, Corollary 8, constant derived anew. Test: FC-40.

    >>> round(float(theory.representation_tail_bound([2.0, 2.0], certificate_bound=2, depth=4, fraction=0.5)), 6)
    2.0
    """
    call = "representation_tail_bound"
    check_tensor(call, "activation_bounds", activation_bounds, ndim=1)
    check_positive(call, "certificate_bound", certificate_bound)
    check_depth(call, depth)
    check_fraction(call, "fraction", fraction)
    if not len(activation_bounds):
        raise ValueError(f"{call}: needs at least one point; got an empty tensor. Pass B(x_i) for every x_i.")
    activation_bounds = activation_bounds.detach()
    if float(activation_bounds.detach().min()) < 0:
        raise ValueError(
            f"{call}: needs activation_bounds >= 0; got {float(activation_bounds.detach().min()):.3g}. "
            "Pass what activation_norm_bound returns."
        )
    bound = (certificate_bound * activation_bounds.double().mean() / depth).sqrt() / fraction
    return rounded_up(bound, len(activation_bounds))
