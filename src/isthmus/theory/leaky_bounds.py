"""Theorem 4 of the leaky network, layer by layer: what its Hamiltonian says about cost of identity and speed.

The paper has gamma c where sqrt(gamma) c is right; as printed the inequalities fail. Energies: `theory.leaky`.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_positive, check_tensor
from isthmus.theory.leaky import velocity
from isthmus.theory.representation_costs import features, hamiltonian, relaxed_norm


@dataclass(frozen=True, slots=True)
class RelaxedEnergies:
    """The two sides of Theorem 4 at one layer, all relaxed by gamma; the rank is -2 H / Lt.

        identity:   rank = cost - |dA/Lt + gamma B|^2 + gamma |B|^2
        inequality: -epsilon <= |dA/Lt| - sqrt((cost - rank)_+) <= 2 epsilon,   epsilon = sqrt(gamma) |B|

    Attributes:
        cost_of_identity: |A|^2 in K + gamma.
        speed: |dA/dp| / Lt in K + gamma.
        kinetic_energy: |dA/dp|^2 / (2 Lt) in K + gamma.
        rank: -2 H / Lt from the Hamiltonian itself.
        rank_from_identity: the right-hand side of the identity.
        epsilon: sqrt(gamma) |B|.
    """

    cost_of_identity: float
    speed: float
    kinetic_energy: float
    rank: float
    rank_from_identity: float
    epsilon: float

    @property
    def excess(self) -> float:
        """|dA/Lt| - sqrt((cost - rank)_+), which lies between -epsilon and 2 epsilon."""
        return self.speed - max(self.cost_of_identity - self.rank, 0.0) ** 0.5


def relaxed_energies(
    activation: Float[Tensor, "n width"],
    momentum: Float[Tensor, "n width"],
    *,
    effective_depth: Real,
    gamma: Real,
    bias: bool = True,
    smoothing: Real = 0.0,
) -> RelaxedEnergies:
    """Cost of identity, kinetic energy and rank of one layer, joined by Theorem 4 (*exact*).

    Args:
        activation: A, or A_{l-1} of the discrete network.
        momentum: B, or B_l.
        effective_depth: Lt > 0.
        gamma: absolute relaxation > 0, in units of the features' square; per layer gamma0 * (largest eigenvalue of K).
        bias: whether layers have biases.
        smoothing: of the relu, as in `features`.

    Returns:
        The energies; identity and inequality hold for any A and B.

    Raises:
        ValueError: `effective_depth` or `gamma` <= 0, NaN or infinity. ShapeError: shapes that differ.

    Accuracy: that of `relaxed_norm`. Source: Jacot and Kaiser 2024, Theorem 4, as corrected. Test: LEAKY-15.

    >>> round(theory.relaxed_energies([[2.0]], [[0.5]], effective_depth=3, gamma=4, bias=False).cost_of_identity, 6)
    0.5
    """
    check_positive("relaxed_energies", "gamma", gamma)
    activation, momentum = activation.detach(), momentum.detach()
    H = hamiltonian(activation, momentum, effective_depth=effective_depth, bias=bias, smoothing=smoothing)
    S = features(activation, bias=bias, smoothing=smoothing)
    if gamma >= 1e6 * torch.finfo(S.dtype).eps * float(S.detach().square().sum()):
        return energies_of_features(
            S, S.mT @ S, activation, momentum, S.mT @ momentum, effective_depth=effective_depth, gamma=gamma
        )
    v = velocity(activation, momentum, bias=bias, smoothing=smoothing)
    pushed = gamma * float(momentum.square().sum())
    cost, fast = float(relaxed_norm(activation, S, gamma=gamma)), float(relaxed_norm(v, S, gamma=gamma))
    shifted = float(relaxed_norm(v + gamma * momentum, S, gamma=gamma))
    return RelaxedEnergies(
        cost_of_identity=cost,
        speed=fast**0.5,
        kinetic_energy=fast * float(effective_depth) / 2,
        rank=float(-2 * H / effective_depth),
        rank_from_identity=cost - shifted + pushed,
        epsilon=pushed**0.5,
    )


def energies_of_features(
    S: Float[Tensor, "n p"],
    gram: Float[Tensor, "p p"],
    A: Float[Tensor, "n width"],
    B: Float[Tensor, "n width"],
    D: Float[Tensor, "p width"],
    *,
    effective_depth: Real,
    gamma: Real,
) -> RelaxedEnergies:
    """`relaxed_energies` from S, S^T S and D = S^T B with three products more instead of twelve (*exact*).

        W = (S^T S + gamma)^-1 S^T A,  Z = (S^T S + gamma)^-1 D,  R = A - S W:
        |A|^2 = |R|^2 / gamma + |W|^2,   |v|^2 = |gamma S Z - R|^2 / gamma + |D - gamma Z - W|^2,
        |v + gamma B|^2 = |gamma B - R|^2 / gamma + |D - W|^2      in K + gamma, v = S D - A

    Sums of squares only, as in `relaxed_norm`: nothing cancels. Accurate for gamma above 1e6 eps |S|^2.
    """
    factor = torch.linalg.cholesky(gram + gamma * torch.eye(len(gram), dtype=gram.dtype, device=gram.device))
    W, Z = torch.cholesky_solve(torch.cat([S.mT @ A, D], 1), factor).split(A.shape[1], 1)
    R = A - S @ W

    def norm(residual: Tensor, weights: Tensor) -> float:
        return float(residual.square().sum()) / float(gamma) + float(weights.square().sum())

    cost, fast = norm(R, W), norm(gamma * (S @ Z) - R, D - gamma * Z - W)
    pushed = float(gamma) * float(B.square().sum())
    return RelaxedEnergies(
        cost_of_identity=cost,
        speed=fast**0.5,
        kinetic_energy=fast * float(effective_depth) / 2,
        rank=2 * float((B * A).sum()) - float(D.square().sum()),
        rank_from_identity=cost - norm(gamma * B - R, D - W) + pushed,
        epsilon=pushed**0.5,
    )


def energies_of_grams(
    gram: Float[Tensor, "p p"],
    by_activation: Float[Tensor, "p width"],
    by_momentum: Float[Tensor, "p width"],
    *,
    activation: Real,
    gamma: Real,
) -> tuple[float, float]:
    """Cost of identity and square of the speed, relaxed by gamma, from sums over the samples alone (*exact*).

        G = S^T S, F = S^T A, D = S^T B;   W = (G + gamma)^-1 F,  Z = (G + gamma)^-1 D:
        cost = (|A|^2 - <F, W>) / gamma,   speed^2 = |D|^2 - gamma <D, Z> - 2 <D, W> + cost

    Args:
        gram: G.
        by_activation: F.
        by_momentum: D.
        activation: |A|^2.
        gamma: absolute relaxation > 0.

    Returns:
        The cost and speed^2 >= 0 of `RelaxedEnergies`.

    Accuracy: eps |A|^2 / gamma, absolute: 1e-10 where gamma is 1e-6 of |A|^2. Below, use `relaxed_energies`.
    Source: Jacot and Kaiser 2024, Theorem 4. Test: LEAKY-15.
    """
    check_positive("energies_of_grams", "gamma", gamma)
    factor = torch.linalg.cholesky(gram + gamma * torch.eye(len(gram), dtype=gram.dtype, device=gram.device))
    width = by_activation.shape[1]
    W, Z = torch.cholesky_solve(torch.cat([by_activation, by_momentum], 1), factor).split(width, 1)
    cost = (float(activation) - float((by_activation * W).sum())) / float(gamma)
    coupled = float((by_momentum * (by_momentum - gamma * Z - 2 * W)).sum())
    return cost, max(coupled + cost, 0.0)


@dataclass(frozen=True, slots=True)
class PathLengthBounds:
    """What Theorem 4 says of the rank -2 H / Lt of a whole path.

    Attributes:
        lower: min cost - (length / Lt + max epsilon)^2.
        upper: min cost + max epsilon^2.
        length: int |dA/dp| dp, each layer in its own K + gamma.
    """

    lower: float
    upper: float
    length: float


def path_length_bounds(
    energies: Sequence[RelaxedEnergies], steps: Float[Tensor, " L"], *, effective_depth: Real
) -> PathLengthBounds:
    """How far the rank that a Hamiltonian stands for is from the least cost of identity (*lower*, *upper bound*).

        -(length / Lt + max epsilon)^2  <=  -2 H / Lt - min |A|^2  <=  max epsilon^2,   norms in K + gamma

    H is one number on an optimal path. Of a discrete network the greatest rank of its layers is at least `lower` and
    the least at most `upper`, whatever its weights.

    Args:
        energies: of the layers 1..L, as `relaxed_energies` returns them.
        steps: rho_1 .. rho_L, with sum 1.
        effective_depth: Lt > 0.

    Raises:
        ValueError: `effective_depth` <= 0, NaN or infinity. ShapeError: not one step per layer, or no layer.

    Accuracy: that of the energies, not rounded outward.
    Source: Jacot and Kaiser 2024, Theorem 4, with sqrt(gamma) c for its gamma c. Test: LEAKY-15.

    >>> energies = theory.relaxed_energies([[2.0]], [[0.5]], effective_depth=3, gamma=4)
    >>> round(theory.path_length_bounds([energies], [1.0], effective_depth=3).length, 6)
    0.5
    """
    call = "path_length_bounds"
    check_positive(call, "effective_depth", effective_depth)
    check_tensor(call, "steps", steps, ndim=1)
    if len(energies) != len(steps) or not energies:
        raise ShapeError(f"{call}: needs one step per layer; got {len(steps)} for {len(energies)} layers.")
    least, loosest = min(e.cost_of_identity for e in energies), max(e.epsilon for e in energies)
    mean = math.fsum(step * e.speed for step, e in zip(steps.tolist(), energies, strict=True))
    return PathLengthBounds(least - (mean + loosest) ** 2, least + loosest**2, mean * float(effective_depth))


def layer_gamma(features_of_layer: Float[Tensor, "n p"], *, relative: Real = 1e-4) -> float:
    """The relaxation of one layer (*exact*): gamma0 times the largest eigenvalue of K = S S^T, first power of K.

    Args:
        features_of_layer: S = sigma(A).
        relative: gamma0 > 0.

    Returns:
        gamma > 0; gamma0 itself where all features vanish.

    Raises:
        ValueError: `relative` <= 0, or a gamma beyond float64.

    Accuracy: rounding; 2e-308 where it would be less.
    Source: Jacot and Kaiser 2024, section 2.1, whose square of K is a misprint. Test: LEAKY-15.

    >>> theory.layer_gamma([[3, 0], [0, 1]], relative=0.01)
    0.09
    """
    check_positive("layer_gamma", "relative", relative)
    largest = float(torch.linalg.matrix_norm(features_of_layer.detach(), 2))
    gamma = relative * largest * largest  # in this order: the square of a small layer vanishes
    if math.isinf(gamma):
        raise ValueError(
            f"layer_gamma: needs features whose square float64 holds; got a norm of {largest:.3g}. Rescale them."
        )
    return max(gamma, sys.float_info.min) if largest > 0 else float(relative)
