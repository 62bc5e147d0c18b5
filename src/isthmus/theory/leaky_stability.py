"""Which representations of a leaky network can be minima: energies with exact norms, tests of stability, sign of A.

These need the exact norm in K, finite only where A lies in the span of its features; on trained networks with more
samples than neurons use the relaxed energies of `leaky_bounds`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_positive, check_tensor
from isthmus.theory.least_weights import least_weights
from isthmus.theory.scales import unit


@dataclass(frozen=True, slots=True)
class EnergySplit:
    """The cost per unit of time of moving a representation, split in three.

        lagrangian = (Lt / 2) |A|_K^2 + <dA, A>_K + |dA|_K^2 / (2 Lt) = |W|^2 / (2 Lt)

    Attributes:
        cost_of_identity: |A|_K^2.
        coupling: <dA, A>_K.
        kinetic: |dA|_K^2 / (2 Lt).
        lagrangian: the sum; the least |W|^2 / (2 Lt) with sigma(A) W^T = Lt A + dA.
        potential: -(Lt / 2) |A|_K^2.
    """

    cost_of_identity: float
    coupling: float
    kinetic: float
    lagrangian: float
    potential: float


def energy_split(
    activation: Float[Tensor, "n width"],
    velocity: Float[Tensor, "n width"],
    *,
    effective_depth: Real,
    bias: bool = True,
) -> EnergySplit:
    """Potential, coupling and kinetic energy of one layer (*exact*).

    Args:
        activation: A, samples as rows.
        velocity: dA/dp.
        effective_depth: Lt > 0.
        bias: whether layers have a bias.

    Returns:
        The energies; all infinite (the potential minus infinity) where A or dA is not in the span of sigma(A).

    Raises:
        ValueError: `effective_depth` <= 0, NaN or infinity. ShapeError: shapes that differ.

    Accuracy: that of the pseudo-inverse of sigma(A). Source: Jacot and Kaiser 2024, section 1.3. Test: LEAKY-05.

    >>> float(theory.energy_split([[2.0]], [[1.0]], effective_depth=3, bias=False).cost_of_identity)
    1.0
    """
    _check_motion("energy_split", activation, velocity, effective_depth)
    Lt = float(effective_depth)
    still, moving = (_least_weights(activation, target, bias) for target in (activation, velocity))
    if still is None or moving is None:
        return EnergySplit(*[torch.inf] * 4, potential=-torch.inf)
    still, moving = still.detach(), moving.detach()
    cost, coupling = float(still.square().sum()), float((still * moving).sum())
    kinetic = float(moving.square().sum()) / (2 * Lt)
    return EnergySplit(cost, coupling, kinetic, Lt / 2 * cost + coupling + kinetic, -Lt / 2 * cost)


def least_norm_weights(
    activation: Float[Tensor, "n width"],
    velocity: Float[Tensor, "n width"],
    *,
    effective_depth: Real,
    bias: bool = True,
) -> Float[Tensor, "width p"]:
    """The weights of least norm that move a representation at a given speed (*exact*).

        W = (Lt A + dA) sigma(A)^+ = argmin { |W|_F : sigma(A) W^T = Lt A + dA },   |W|^2 / (2 Lt) = the Lagrangian

    Of a discrete layer: `activation` A_{l-1} and `velocity` (A_l - A_{l-1}) / rho_l, whatever weights made A_l.

    Args:
        activation: A, samples as rows.
        velocity: dA/dp.
        effective_depth: Lt > 0.
        bias: whether layers have a bias, the last column.

    Returns:
        The weights, as those of `LeakyResNet`.

    Raises:
        ValueError: Lt A + dA is not in the span of sigma(A), so that no weights do it; `effective_depth` <= 0, NaN or
            infinity. ShapeError: shapes that differ.

    Accuracy: that of the pseudo-inverse of sigma(A). Source: Jacot and Kaiser 2024, section 1.3. Test: LEAKY-04.

    >>> theory.least_norm_weights([[2.0]], [[1.0]], effective_depth=3, bias=False).tolist()
    [[3.5]]
    """
    call = "least_norm_weights"
    _check_motion(call, activation, velocity, effective_depth)
    found = _least_weights(activation, float(effective_depth) * activation + velocity, bias)
    if found is None:
        raise ValueError(
            f"{call}: needs Lt A + dA in the span of sigma(A); it is not, with {len(activation)} samples and "
            f"{activation.shape[1]} neurons. Pass the speed of a layer that exists, (A_l - A_(l-1)) / rho_l."
        )
    return found.mT


def scale_criticality(activation: Float[Tensor, "n width"]) -> Float[Tensor, " width"]:
    """A^T K^+ 1, which vanishes at a local minimum of the cost of identity with bias (*exact*).

        d/ds |s A|_K^2 = 2 |A^T K^+ 1|^2 / s   at s = 1:   the cost never falls as the representation grows

    Args:
        activation: A, samples as rows; a layer with bias.

    Returns:
        One number per neuron.

    Raises:
        ValueError: NaN or infinity. ShapeError: not a matrix. TypeError: complex or integer tensor.

    Accuracy: that of the pseudo-inverse of sigma(A).
    Source: Jacot and Kaiser 2024, proof of Proposition 2. Test: LEAKY-09.

    >>> theory.scale_criticality([[1, 2]]).round(decimals=6).tolist()
    [0.166667, 0.333333]
    """
    check_tensor("scale_criticality", "activation", activation, ndim=2)
    if not activation.numel():
        return activation.new_zeros(activation.shape[1])
    own, one = (least_weights(activation, T, bias=True) for T in (activation, torch.ones_like(activation[:, :1])))
    return (own.positive.mT @ one.positive + own.constant.mT @ one.constant)[:, 0]


def neuron_addition_margin(
    activation: Float[Tensor, "n width"], added: Float[Tensor, "n m"], *, bias: bool = True
) -> Float[Tensor, " m"]:
    """Change of the cost of identity per eps^2 when a neuron with activations eps z is added (*exact* to that order).

        z^T K^+ z - |A^T K^+ relu(z)|^2;   negative: A is no stable minimum

    Args:
        activation: A, samples as rows.
        added: candidates z as columns; they and their positive parts in the span of sigma(A). Columns of
            relu(A) relu(A)^T are the natural ones.
        bias: whether layers have a bias.

    Returns:
        One number per candidate.

    Raises:
        ValueError: NaN or infinity, or a candidate outside the span, whose cost is infinite. ShapeError: other rows.

    Accuracy: that of the pseudo-inverse of sigma(A).
    Source: Jacot and Kaiser 2024, proof of Proposition 2. Test: LEAKY-09.

    >>> theory.neuron_addition_margin([[1, 0], [0, 2]], [[1], [1]], bias=False).round(decimals=6).tolist()
    [0.0]
    """
    call = "neuron_addition_margin"
    check_tensor(call, "activation", activation, ndim=2)
    check_tensor(call, "added", added, ndim=2)
    if len(added) != len(activation):
        raise ShapeError(f"{call}: needs one row of `added` per sample, {len(activation)}; got {len(added)}.")
    kept, seen, base = (_least_weights(activation, part, bias) for part in (added, added.relu(), activation))
    if kept is None or seen is None or base is None:
        raise ValueError(f"{call}: needs A, z and relu(z) in the span of sigma(A). Take columns of relu(A) relu(A)^T.")
    return kept.square().sum(0) - (base.mT @ seen).square().sum(0)


def covariance_coefficients(activation: Float[Tensor, "n width"]) -> Float[Tensor, " width"]:
    """Coefficients a >= 0 on the neurons, few of them positive, that keep both covariances (*exact*).

        sum_i a_i (A_i A_i^T, relu(A_i) relu(A_i)^T) = (A A^T, relu(A) relu(A)^T),   at most n (n + 1) of them positive

    Along A_i(t) = sqrt(1 - t + t a_i) A_i, 0 <= t <= 1, the cost of identity stays what it is, with bias or without, so
    a minimum of more than n (n + 1) neurons is connected to one that has neurons to spare.

    Args:
        activation: A, samples as rows.

    Returns:
        One coefficient per neuron.

    Raises:
        ValueError: NaN or infinity. ShapeError: not a matrix. TypeError: complex or integer tensor.

    Accuracy: that of non-negative least squares (SciPy), about 1e-12 of the covariances.
    Source: Jacot and Kaiser 2024, Proposition 3. Test: LEAKY-10.

    >>> theory.covariance_coefficients([[1.0, 2.0]]).tolist()
    [5.0, 0.0]
    """
    from scipy.optimize import nnls  # as long to import as all of our own modules, and rarely used

    check_tensor("covariance_coefficients", "activation", activation, ndim=2)
    A = unit(activation.detach().double())
    n, width = A.shape
    if not A.numel():  # SciPy's solver writes beyond an empty matrix
        return activation.new_ones(width)
    upper = torch.triu_indices(n, n)
    pairs = [(part[:, None, :] * part[None, :, :])[upper[0], upper[1]] for part in (A, A.relu())]
    atoms = torch.cat(pairs).reshape(n * (n + 1), width)
    size = atoms.abs().amax(0).clamp_min(torch.finfo(torch.float64).tiny)  # neurons of very different size
    found, _ = nnls((atoms / size).numpy(), atoms.sum(1).numpy())
    return torch.from_numpy(np.asarray(found)).to(activation) / size.to(activation)


def negative_energy_fraction(activation: Float[Tensor, "*batch n width"]) -> Float[Tensor, "*batch"]:
    """|A_-|^2 / |A|^2, which vanishes in the slow layers of a stable minimum as Lt grows (*exact*).

    Args:
        activation: A, samples as rows.

    Returns:
        Numbers in [0, 1]; 0 for A = 0.

    Raises:
        ValueError: NaN or infinity. ShapeError: fewer than 2 dimensions. TypeError: complex or integer tensor.

    Accuracy: rounding. Source: Jacot and Kaiser 2024, Proposition 5. Test: LEAKY-16.

    >>> float(theory.negative_energy_fraction([[3, -4]]))
    0.64
    """
    check_tensor("negative_energy_fraction", "activation", activation, least_ndim=2)
    if not activation.numel():
        return activation.new_zeros(activation.shape[:-2])
    largest = activation.abs().amax((-2, -1), keepdim=True)
    unit = activation / torch.where(largest > 0, largest, 1.0)  # squares of 1e-200 would vanish
    total = unit.square().sum((-2, -1))
    return (-unit).relu().square().sum((-2, -1)) / torch.where(total > 0, total, 1.0)


def _check_motion(call: str, activation: Tensor, velocity: Tensor, effective_depth: Real) -> None:
    check_positive(call, "effective_depth", effective_depth)
    check_tensor(call, "activation", activation, ndim=2)
    check_tensor(call, "velocity", velocity, ndim=2)
    if activation.shape != velocity.shape:
        raise ShapeError(
            f"{call}: needs A and dA of one shape; got {tuple(activation.shape)}, {tuple(velocity.shape)}."
        )


def _least_weights(activation: Tensor, target: Tensor, bias: bool) -> Tensor | None:
    """Least W with sigma(A) W = target, or None where there is none."""
    found = least_weights(activation, target, bias=bias)
    return torch.cat([found.positive, found.constant]) if found.meets else None
