"""Hamiltonian mechanics of a leaky residual network, layer by layer: representations and momenta in, energies out.

Rows are samples; lists are stacked along the first axis, A_0 .. A_L and B_0 .. B_L, weights W_1 .. W_L. One layer's
Hamiltonian and the cost of identity: `representation_costs`. The same for a network and data: `diagnostics`.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_positive, check_tensor
from isthmus.theory.representation_costs import check_pair, features, hamiltonian, lifted_slope
from isthmus.theory.scales import exponent, resized, unit


@dataclass(frozen=True, slots=True)
class HamiltonianProfile:
    """Hamiltonians of a discrete leaky network, four ways.

    Attributes:
        pontryagin: H_P of each layer 1..L: also right to first order away from critical weights.
        mixed: H(A_{l-1}, B_l) of each layer 1..L: off by O(rho).
        same_level: H(A_l, B_l) for l = 0..L: off by O(rho), the other way.
        averaged: (same_{l-1} + 2 mixed_l + same_l) / 4: off by O(rho^2) for equal steps. Report this one.
    """

    pontryagin: Float[Tensor, " L"]
    mixed: Float[Tensor, " L"]
    same_level: Float[Tensor, " levels"]
    averaged: Float[Tensor, " L"]


def critical_weights(
    activation: Float[Tensor, "*batch n width"],
    momentum: Float[Tensor, "*batch n width"],
    *,
    effective_depth: Real,
    bias: bool = True,
    smoothing: Real = 0.0,
) -> Float[Tensor, "*batch width p"]:
    """The weights that a critical point must have (*exact*): W_l = Lt B_l^T sigma(A_{l-1}), staggered.

    Args:
        activation: A_{l-1}.
        momentum: B_l.
        effective_depth: Lt > 0.
        bias: whether layers have biases, the last column.
        smoothing: of the relu, as in `features`.

    Returns:
        One matrix per layer. At any weights, d objective / dW_l = rho_l (ridge / Lt) (W_l - this).

    Raises:
        ValueError: `effective_depth` <= 0, NaN or infinity. ShapeError: shapes that differ.

    Source: Jacot and Kaiser 2024, section 1.5. Test: LEAKY-11.

    >>> theory.critical_weights([[2.0]], [[0.5]], effective_depth=3).tolist()
    [[3.0, 1.5]]
    """
    check_pair("critical_weights", activation, momentum, effective_depth)
    return effective_depth * momentum.mT @ features(activation, bias=bias, smoothing=smoothing)


def pontryagin_hamiltonian(
    activation: Float[Tensor, "*batch n width"],
    momentum: Float[Tensor, "*batch n width"],
    weight: Float[Tensor, "*batch width p"],
    *,
    effective_depth: Real,
    bias: bool = True,
    smoothing: Real = 0.0,
) -> Float[Tensor, "*batch"]:
    """Hamiltonian before the weights are maximised out (*exact*): of use at any weights.

        H_P(A, B, W) = <B, sigma(A) W^T - Lt A> - |W|_F^2 / (2 Lt) = H(A, B) - |W - Lt B^T sigma(A)|_F^2 / (2 Lt)

    At A_{l-1}, B_l, W_l it is -(1/ridge) d objective / d rho_l at any weights.

    Args:
        activation: A.
        momentum: B.
        weight: W, bias in the last column.
        effective_depth: Lt > 0.
        bias: whether layers have biases.
        smoothing: of the relu, as in `features`.

    Returns:
        One number per layer.

    Raises:
        ValueError: `effective_depth` <= 0, NaN or infinity. ShapeError: shapes that differ.

    Source: Jacot and Kaiser 2024, section 1.5. Test: LEAKY-12.

    >>> float(theory.pontryagin_hamiltonian([[2.0]], [[0.5]], [[3.0]], effective_depth=3, bias=False))
    -1.5
    """
    check_pair("pontryagin_hamiltonian", activation, momentum, effective_depth)
    check_tensor("pontryagin_hamiltonian", "weight", weight, least_ndim=2)
    wanted = (*activation.shape[:-2], activation.shape[-1], activation.shape[-1] + bias)
    if weight.shape != wanted:
        raise ShapeError(
            f"pontryagin_hamiltonian: needs a weight of shape {wanted} beside an activation of shape "
            f"{tuple(activation.shape)}{', the bias in the last column' if bias else ''}; got {tuple(weight.shape)}."
        )
    added = features(activation, bias=bias, smoothing=smoothing) @ weight.mT - effective_depth * activation
    return (momentum * added).sum((-2, -1)) - weight.square().sum((-2, -1)) / (2 * effective_depth)


def hamiltonian_profile(
    activations: Float[Tensor, "levels n width"],
    momenta: Float[Tensor, "levels n width"],
    weights: Float[Tensor, "L width p"],
    *,
    effective_depth: Real,
    bias: bool = True,
    smoothing: Real = 0.0,
) -> HamiltonianProfile:
    """The Hamiltonian of every layer of a discrete network, four ways (*exact*).

    A critical network is a symplectic Euler path, so none of them drifts; the first-order oscillation of the mixed and
    the same-level form cancels in their average where the steps are equal.

    Args:
        activations: A_0 .. A_L.
        momenta: B_0 .. B_L.
        weights: W_1 .. W_L.
        effective_depth: Lt > 0.
        bias: whether layers have biases.
        smoothing: of the relu, as in `features`.

    Returns:
        The profile.

    Raises:
        ValueError: `effective_depth` <= 0, NaN or infinity. ShapeError: shapes that differ.

    Source: Jacot and Kaiser 2024, section 1.5; the average is ours. Test: LEAKY-13.

    >>> path = [[[2.0]], [[1.0]]], [[[0.5]], [[0.5]]], [[[3.0]]]
    >>> theory.hamiltonian_profile(*path, effective_depth=3, bias=False).mixed.tolist()
    [-1.5]
    """
    check_pair("hamiltonian_profile", activations, momenta, effective_depth)
    if len(weights) != len(activations) - 1:
        raise ShapeError(
            f"hamiltonian_profile: needs A_0 .. A_L for W_1 .. W_L; got {len(activations)} and {len(weights)}."
        )
    A, B = activations, momenta
    mixed = hamiltonian(A[:-1], B[1:], effective_depth=effective_depth, bias=bias, smoothing=smoothing)
    same = hamiltonian(A, B, effective_depth=effective_depth, bias=bias, smoothing=smoothing)
    pontryagin = pontryagin_hamiltonian(
        A[:-1], B[1:], weights, effective_depth=effective_depth, bias=bias, smoothing=smoothing
    )
    return HamiltonianProfile(pontryagin, mixed, same, (same[:-1] + 2 * mixed + same[1:]) / 4)


def rank_from_hamiltonian(hamiltonians: Float[Tensor, "*batch"], *, effective_depth: Real) -> Float[Tensor, "*batch"]:
    """The rank that a Hamiltonian stands for (*estimate*, from below as Lt grows): -2 H / Lt.

    Args:
        hamiltonians: H, per layer or not.
        effective_depth: Lt > 0.

    Returns:
        Real numbers; negative where Lt is too small to tell.

    Raises:
        ValueError: `effective_depth` <= 0.

    Source: Jacot and Kaiser 2024, section 1.5. Test: LEAKY-13.

    >>> theory.rank_from_hamiltonian([-6.0, -7.5], effective_depth=3).tolist()
    [4.0, 5.0]
    """
    check_positive("rank_from_hamiltonian", "effective_depth", effective_depth)
    return -2 * hamiltonians / effective_depth


def velocity(
    activation: Float[Tensor, "*batch n width"],
    momentum: Float[Tensor, "*batch n width"],
    *,
    bias: bool = True,
    smoothing: Real = 0.0,
) -> Float[Tensor, "*batch n width"]:
    """Speed of a representation along an optimal path, per unit of leak (*exact*): dA/dp / Lt = K B - A.

    Args:
        activation: A, or A_{l-1} of the discrete network.
        momentum: B, or B_l.
        bias: whether layers have biases.
        smoothing: of the relu, as in `features`.

    Returns:
        A tensor of the shape of A.

    Raises:
        ValueError: NaN or infinity. ShapeError: shapes that differ.

    Source: Jacot and Kaiser 2024, section 2.1. Test: LEAKY-15.

    >>> theory.velocity([[2.0]], [[0.5]], bias=False).tolist()
    [[0.0]]
    """
    check_pair("velocity", activation, momentum, 1.0)
    S = features(activation, bias=bias, smoothing=smoothing)
    return S @ (S.mT @ momentum) - activation


def alignment_changes(
    activations: Float[Tensor, "levels n width"],
    momenta: Float[Tensor, "levels n width"],
    weights: Float[Tensor, "L width p"],
    steps: Float[Tensor, " L"],
    *,
    bias: bool = True,
    smoothing: Real = 0.0,
) -> Float[Tensor, " L"]:
    """What <B_l, A_l> - <B_{l-1}, A_{l-1}> must be, layer by layer, at any weights (*exact*).

        rho_l <B_l 1, b_l>,   which is rho_l |b_l|^2 / Lt at critical weights;
        a smoothed relu adds rho_l <B_l, (relu(A) - relu'(A) A) V_l^T> at A = A_{l-1}

    Args:
        activations: A_0 .. A_L.
        momenta: B_0 .. B_L.
        weights: W_1 .. W_L.
        steps: rho_l.
        bias: whether layers have biases.
        smoothing: of the relu, as in `features`.

    Returns:
        One number per layer.

    Raises:
        ValueError: NaN or infinity. ShapeError: shapes that differ.

    Source: ours, behind Jacot and Kaiser 2024, Proposition 10. Test: LEAKY-17.

    >>> theory.alignment_changes([[[1.0]], [[2.0]]], [[[0.5]], [[0.5]]], [[[1, 3]]], [1.0]).tolist()
    [1.5]
    """
    check_pair("alignment_changes", activations, momenta, 1.0)
    before, B, width = activations[:-1], momenta[1:], activations.shape[-1]
    if not width + bias <= (columns := weights.shape[-1]) <= width + 1:
        raise ShapeError(f"alignment_changes: needs weights of {width + bias} columns; got {columns}.")
    relu = features(before, bias=False, smoothing=smoothing)
    rest = relu - lifted_slope(before, smoothing=float(smoothing)) * before
    pushed = rest @ weights[..., :width].mT + (weights[..., None, :, -1] if bias else 0.0)
    return steps * (B * pushed).sum((-2, -1))


def balancedness_slope(
    weights: Float[Tensor, "L width p"],
    steps: Float[Tensor, " L"],
    *,
    effective_depth: Real,
    alignment: Float[Tensor, " L"] | None = None,
) -> float:
    """The c of |W_l|^2 - |W_1|^2 = c Lt int_0^p |b|^2, fitted over the layers (*estimate*): 2 at a minimum as L grows.

    A smoothed relu is not homogeneous, which adds to the biases: |b|^2 is then Lt d<B, A>/dp, from `alignment`.

    Args:
        weights: W_1 .. W_L with the bias as last column.
        steps: rho_l.
        effective_depth: Lt > 0.
        alignment: what `alignment_changes` says of the layers, of a smoothed relu; None: of the biases alone.

    Returns:
        The least-squares slope, off by O(rho); NaN where all biases vanish: then |W_l| is constant.

    Raises:
        ValueError: `effective_depth` <= 0, NaN or infinity. ShapeError: an alignment for other layers.

    Source: Jacot and Kaiser 2024, Proposition 10, whose factor 1 is 2. Test: LEAKY-17.

    >>> weights = [[[3.0, 1.0]], [[3.3, 1.0]], [[3.6, 1.0]]]
    >>> round(theory.balancedness_slope(weights, [1 / 3] * 3, effective_depth=3), 2)
    1.96
    """
    check_tensor("balancedness_slope", "weights", weights, ndim=3)
    check_positive("balancedness_slope", "effective_depth", effective_depth)
    if not len(weights):
        raise ShapeError("balancedness_slope: needs at least one layer; got none.")
    squares = weights.square().sum((1, 2))
    if alignment is not None and alignment.shape != steps.shape:
        raise ShapeError(
            f"balancedness_slope: needs one alignment for each of the {len(steps)} layers; got "
            f"{tuple(alignment.shape)}."
        )
    parts = steps * weights[..., -1].square().sum(-1) if alignment is None else effective_depth * alignment
    integral = effective_depth * (parts.cumsum(0) - parts / 2)  # at the mid-points of the layers
    x, y = (values.detach() - values.detach()[0] for values in (integral, squares))
    across, up = unit(x), unit(y)
    size = float(across @ across)
    slope = float(across @ up) / size if size > 0 else float("nan")
    return resized(slope, exponent(y) - exponent(x))
