"""What a layer's representation costs to keep and to move: relaxed norm, cost of identity, Hamiltonian.

Rows are samples throughout: the papers' A (neurons x points) is `activation` transposed. Profiles over the layers of a
network: `diagnostics`.
"""

from math import frexp

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_finite, check_positive, check_tensor
from isthmus.theory.least_weights import least_weights
from isthmus.theory.ridge_values import accurate_value
from isthmus.theory.scales import exponent, resized, shifted


def relaxed_norm(
    m: Float[Tensor, "*batch n q"], s: Float[Tensor, "*batch n p"], *, gamma: Real
) -> Float[Tensor, "*batch"]:
    """Squared norm of `m` in the kernel of the features `s`, relaxed by `gamma` (*exact*).

        Tr[m^T (s s^T + gamma I)^{-1} m]  =  min_W  |m - s W|_F^2 / gamma + |W|_F^2

    Worked as the ridge residual on the right: a sum of squares at a minimum, where errors in W count only squared.

    Args:
        m: what is represented, samples as rows.
        s: features, samples as rows; any number of them, also none.
        gamma: absolute relaxation > 0, in units of s^2.

    Returns:
        Number >= 0 per batch element, in units of m^2 / s^2. Differentiable in m and s.

    Raises:
        ValueError: `gamma` <= 0 or below 1e-290 times the largest square of s, NaN or infinity. ShapeError: numbers of
            rows that differ. TypeError: complex or integer tensor.

    Accuracy: 1e-11 relative at every size of m and s, measured down to gamma = 1e-20 |s|^2: below 1e6 eps |s|^2 a QR of
    the stacked problem takes over from the normal equations, and the residual, which cancels where m all but lies in
    the span of s, is worked out in twice the digits. Cost O(n p^2).
    Source: Jacot and Kaiser 2024, section 2.1 (norm of K + gamma). Test: LEAKY-15.

    >>> round(float(theory.relaxed_norm([[2.0]], [[1.0]], gamma=1)), 6)
    2.0
    """
    call = "relaxed_norm"
    check_tensor(call, "m", m, least_ndim=2)
    check_tensor(call, "s", s, least_ndim=2)
    check_positive(call, "gamma", gamma)
    if m.shape[:-1] != s.shape[:-1]:
        raise ShapeError(
            f"{call}: needs m and s with the same samples as rows; got shapes {tuple(m.shape)} and {tuple(s.shape)}. "
            "Transpose them if neurons are rows."
        )
    sizes = exponent(m), exponent(s)  # squares of a small layer vanish
    relative = resized(float(gamma), -2 * sizes[1])
    if relative < 1e-290:
        raise ValueError(
            f"{call}: needs gamma of at least 1e-290 times the largest square of s; got gamma={gamma:.3g}. Raise it."
        )
    if relative > 1e290:  # s is nothing beside it
        mantissa, by = frexp(gamma)
        return shifted(shifted(m, -sizes[0]).square().sum((-2, -1)) / mantissa, 2 * sizes[0] - by)
    return shifted(_relaxed_norm(shifted(m, -sizes[0]), shifted(s, -sizes[1]), relative), 2 * (sizes[0] - sizes[1]))


def _relaxed_norm(m: Tensor, s: Tensor, gamma: float) -> Tensor:
    """`relaxed_norm`, by the normal equations while they are safe, else by QR and a residual in twice the digits."""
    num_features = s.shape[-1]
    size = float(s.detach().square().sum((-2, -1)).max()) if s.numel() else 0.0
    identity = torch.eye(num_features, dtype=s.dtype, device=s.device)
    if gamma >= 1e6 * torch.finfo(s.dtype).eps * size:
        return _value(m, s, torch.cholesky_solve(s.mT @ m, torch.linalg.cholesky(s.mT @ s + gamma * identity)), gamma)
    stacked = torch.cat([s, (gamma**0.5 * identity).expand(*s.shape[:-2], num_features, num_features)], -2)
    q, r = torch.linalg.qr(stacked)
    weights = torch.linalg.solve_triangular(r, q[..., : s.shape[-2], :].mT @ m, upper=True)
    value = _value(m, s, weights, gamma)
    return value + (accurate_value(m, s, weights, r, gamma) - value.detach()).to(value.dtype)


def _value(m: Tensor, s: Tensor, weights: Tensor, gamma: float) -> Tensor:
    return (m - s @ weights).square().sum((-2, -1)) / gamma + weights.square().sum((-2, -1))


def features(
    activation: Float[Tensor, "*batch n width"], *, bias: bool = True, smoothing: Real = 0.0
) -> Float[Tensor, "*batch n p"]:
    """What the next layer sees of a representation: its positive part, and the constant 1 for the bias (*exact*).

    Args:
        activation: A, samples as rows.
        bias: whether to append the constant.
        smoothing: eps >= 0; the positive part of t is then (t + sqrt(t^2 + eps^2)) / 2.

    Raises:
        ValueError: NaN or infinity, a negative width. TypeError: complex or integer tensor. ShapeError: fewer than 2
            dimensions.

    Source: Jacot and Kaiser 2024, section 1.3. Test: LEAKY-06.

    >>> theory.features([[1, -2]]).tolist()
    [[1.0, 0.0, 1.0]]
    """
    check_tensor("features", "activation", activation, least_ndim=2)
    check_finite("features", "smoothing", smoothing, least=0.0)
    return lifted(activation, bias=bias, smoothing=float(smoothing))


def lifted(activation: Tensor, *, bias: bool, smoothing: float) -> Tensor:
    """`features` without its checks, for the inner loop of networks."""
    positive = (
        activation.relu() if not smoothing else (activation + (activation.square() + smoothing * smoothing).sqrt()) / 2
    )
    return torch.cat([positive, torch.ones_like(positive[..., :1])], -1) if bias else positive


def lifted_slope(activation: Tensor, *, smoothing: float) -> Tensor:
    """Derivative of the positive part that `lifted` takes: 1 at 0 for the relu, as everywhere in this library."""
    if not smoothing:
        return (activation >= 0).to(activation.dtype)
    return (1 + activation / (activation.square() + smoothing * smoothing).sqrt()) / 2


def cost_of_identity(
    activation: Float[Tensor, "n width"], *, bias: bool = True, gamma: Real | None = None
) -> Float[Tensor, ""]:
    """Least squared weights with which a layer maps a representation to itself (*exact*).

        min { |W|_F^2 : sigma(A) W = A } = |A|_K^2,   sigma(A) = [relu(A), 1],  K = sigma(A) sigma(A)^T
        with gamma:  Tr[A^T (K + gamma I)^{-1} A]

    rank A for A >= 0 without bias, of what stands above rounding; with bias less, down to the affine dimension as A is
    scaled down.

    Args:
        activation: the representation A itself, samples as rows: the relu and the constant are applied here.
        bias: whether the layer has a bias.
        gamma: absolute relaxation > 0; None for the exact cost, which is infinite where A is not in the span of
            sigma(A), as it is on most trained networks.

    Returns:
        Scalar >= 0, in squared-weight units; infinity as said.

    Raises:
        ValueError: `gamma` <= 0, NaN or infinity. TypeError: complex or integer tensor. ShapeError: not a matrix.

    Accuracy: with gamma that of `relaxed_norm`. Without, that of the pseudo-inverse of relu(A), at every size of A:
    singular values up to max(n, width) eps times the largest are rounding, so that a neuron of 1e-20 beside one of 1
    costs nothing; A counts as in the span when the residual is below 1e3 max(n, width) eps |A|.
    Source: Jacot and Kaiser 2024, section 1.4. Test: LEAKY-06.

    >>> round(float(theory.cost_of_identity([[1, 0], [0, 2]], bias=False)), 6)
    2.0
    """
    call = "cost_of_identity"
    check_tensor(call, "activation", activation, ndim=2)
    if gamma is not None:
        return relaxed_norm(activation, features(activation, bias=bias), gamma=gamma)
    found = least_weights(activation, activation, bias=bias)
    if not found.meets:
        return activation.new_full((), torch.inf)
    return found.positive.square().sum() + found.constant.square().sum()


def hamiltonian(
    activation: Float[Tensor, "*batch n width"],
    momentum: Float[Tensor, "*batch n width"],
    *,
    effective_depth: Real,
    bias: bool = True,
    smoothing: Real = 0.0,
) -> Float[Tensor, "*batch"]:
    """Hamiltonian of a leaky residual network at one layer, conserved along optimal paths (*exact*).

        H(A, B) = (Lt/2) |B^T sigma(A)|_F^2 - Lt <B, A>,   sigma(A) = [relu(A), 1]

    Args:
        activation: A, samples as rows: A_{l-1} or A_l of the discrete network.
        momentum: B_l = -(1/ridge) d(data loss)/dA_l, samples as rows.
        effective_depth: Lt > 0, the strength of the leak.
        bias: whether layers have biases.
        smoothing: of the relu, as in `features`.

    Returns:
        One number per layer. Meaningful near critical weights only: elsewhere 1/ridge amplifies every residual.

    Raises:
        ValueError: `effective_depth` <= 0, NaN or infinity. ShapeError: shapes that differ. TypeError: complex or
            integer tensor.

    Accuracy: rounding; two terms of similar size cancel near equilibrium.
    Source: Jacot and Kaiser 2024, section 1.5. Test: LEAKY-12.

    >>> float(theory.hamiltonian([[2.0]], [[0.5]], effective_depth=3, bias=False))
    -1.5
    """
    check_pair("hamiltonian", activation, momentum, effective_depth)
    pushed = (momentum.mT @ features(activation, bias=bias, smoothing=smoothing)).square().sum((-2, -1)) / 2
    return effective_depth * (pushed - (momentum * activation).sum((-2, -1)))


def check_pair(call: str, activation: Tensor, momentum: Tensor, effective_depth: Real) -> None:
    """Raise unless A and B are finite and of one shape, and Lt > 0."""
    check_tensor(call, "activation", activation, least_ndim=2)
    check_tensor(call, "momentum", momentum, least_ndim=2)
    check_positive(call, "effective_depth", effective_depth)
    if activation.shape != momentum.shape:
        raise ShapeError(
            f"{call}: needs activation and momentum of one shape; got {tuple(activation.shape)} and "
            f"{tuple(momentum.shape)}. B has the shape of A."
        )
