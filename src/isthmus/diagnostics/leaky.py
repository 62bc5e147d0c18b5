"""What a leaky network does layer by layer: momenta from one backward pass, energies, the rank they stand for.

Formulas: `theory.leaky` and `theory.leaky_bounds`. Fully connected networks: `diagnostics.diagnose`.
"""

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import xarray as xr
from numpy.typing import ArrayLike
from torch import Tensor

from isthmus.diagnostics.leaky_sums import LeakySums, leaky_sums, stream_and_gradients
from isthmus.errors import DataError, NumericalWarning, ShapeError, outside
from isthmus.networks import LeakyResNet
from isthmus.networks.arguments import tensor_argument
from isthmus.networks.departures import check_as_written
from isthmus.tasks.foreign import check_row_labels
from isthmus.theory import (
    critical_weights,
    rank_from_hamiltonian,
    relaxed_energies,
)
from isthmus.theory.home import at_home
from isthmus.theory.inputs import Real, check_positive
from isthmus.theory.leaky_bounds import energies_of_grams
from isthmus.training.losses import SQUARED, Loss, loss_argument

LEAST_GAMMA = 1e-7  # of |A|^2: below it sums of squares over the samples lose digits
FAR = 1e-3  # a relative stationarity above which Hamiltonians are doubtful: 1/ridge amplifies every residual


@dataclass(frozen=True, slots=True)
class LeakyPath:
    """A leaky network on its data as a path in phase space, float64.

    Attributes:
        activations: A_0 .. A_L, (L + 1, n, width).
        momenta: B_l = -(1/ridge) d(data loss)/dA_l, (L + 1, n, width).
        arriving: B_1 .. B_L, (L, n, width), where a waist stands behind a layer that in front of it: W_l adds to the
            stream there.
        weights: W_1 .. W_L, the bias as last column.
        critical: Lt B_l^T sigma(A_{l-1}) of the arriving B_l, which W_l is at a critical point.
        steps: rho_l of explicit Euler.
        data_loss: averaged over samples.
        stationarity: |W_l - Lt B_l^T sigma(A_{l-1})| / |W_l| of each layer.
        total_stationarity: the same over all layers, weighted by rho_l.
    """

    activations: Tensor
    momenta: Tensor
    arriving: Tensor
    weights: Tensor
    critical: Tensor
    steps: Tensor
    data_loss: float
    stationarity: Tensor
    total_stationarity: float


@at_home
def leaky_path(
    network: LeakyResNet, x: ArrayLike | Tensor, y: ArrayLike | Tensor, *, ridge: Real, loss: str | Loss = SQUARED
) -> LeakyPath:
    """Representations and momenta of a leaky network, by one backward pass of the data loss alone.

    Args:
        network: not changed.
        x: samples as rows, (n, d_in).
        y: targets, (n, d_out), or numbers of classes (n,) of the cross-entropy.
        ridge: that of the training, > 0.
        loss: that of the training.

    Returns:
        The path.

    Raises:
        ShapeError: y is not of the shape of the outputs. DataError: NaN or infinity.
        ValueError: `ridge` <= 0, a network without a leak.

    Source: Jacot and Kaiser 2024, section 1.5; the staggered indices are ours. Test: LEAKY-11.
    """
    of_data = loss_argument(loss, "leaky_path")
    exact, inputs, targets = checked_copy(network, x, y, ridge, of_data)
    stream, gradients, value = stream_and_gradients(exact, inputs, targets, num_samples=len(inputs), loss=of_data)
    A, B = torch.stack(stream), -torch.stack(gradients) / ridge
    W, rho, smoothing = exact.weights.detach(), exact.layer_steps(), float(exact.smoothing)
    arriving = _arriving(exact, B)
    best = torch.stack(  # one layer at a time: the features of all would take as much again as the stream
        [
            critical_weights(a, b, effective_depth=exact.effective_depth, bias=exact.has_bias, smoothing=smoothing)
            for a, b in zip(A[:-1], arriving, strict=True)
        ]
    )
    stationarity, total = _stationarity(exact, best)
    return LeakyPath(A, B, arriving, W, best, rho, float(value), stationarity, total)


@at_home
def leaky_diagnosis(
    network: LeakyResNet,
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    ridge: Real,
    loss: str | Loss = SQUARED,
    relative_gamma: Real = 1e-4,
) -> xr.Dataset:
    """The energies of a leaky network layer by layer.

    Args:
        network: not changed.
        x: samples as rows, (n, d_in).
        y: targets, (n, d_out), or numbers of classes (n,) of the cross-entropy.
        ridge: that of the training, > 0.
        loss: that of the training, such as "cross_entropy".
        relative_gamma: gamma0; each layer is relaxed by gamma0 times the largest eigenvalue of its kernel.

    Returns:
        A table over the layers 1..L: position p_l, hamiltonian (4-point average), hamiltonian_pontryagin, _mixed and
        _same_level (at A_l), rank_from_hamiltonian of the first, cost_of_identity and kinetic_energy (of A_{l-1}, B_l,
        relaxed), momentum_norm |B_l|, stationarity. Attributes: data_loss, stationarity, relative_gamma.

    Raises:
        As `leaky_path`. NumericalWarning: the network is far from critical, so the Hamiltonians say little.

    Source: Jacot and Kaiser 2024, figure 1. Test: LEAKY-13, LEAKY-15.

    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # this one was not trained, which is said
    ...     table = isthmus.leaky_diagnosis(leaky, x, y, ridge=1e-2)
    ...
    >>> table.sizes["layer"]
    4
    """
    of_data = loss_argument(loss, "leaky_diagnosis")
    check_row_labels(x, {"y": y}, in_order=False)
    exact, inputs, targets = checked_copy(network, x, y, ridge, of_data)
    sums = leaky_sums(exact, inputs, targets, ridge=float(ridge), loss=of_data)
    critical = network.effective_depth * sums.by_momentum.mT
    stationarity, total = _stationarity(exact, critical)
    if not total <= FAR:
        warnings.warn(
            f"leaky_diagnosis: the network is far from critical, relative stationarity {total:.2g} "
            f"> {FAR:g}: only hamiltonian_pontryagin can be trusted. Train with PreconditionedLBFGS.",
            NumericalWarning,
            stacklevel=outside(),
        )
    path = partial(leaky_path, exact, inputs, targets, ridge=ridge, loss=of_data)
    costs, speeds = _energies(exact, sums, path, relative_gamma=float(relative_gamma))
    columns = {
        "position": network.steps.double().cumsum(0),
        **_hamiltonians(exact, sums, critical, effective_depth=network.effective_depth),
        "cost_of_identity": np.array(costs),
        "kinetic_energy": np.array(speeds) * (network.effective_depth / 2),
        "momentum_norm": sums.momentum[1:].sqrt(),
        "stationarity": stationarity,
    }
    variables = {name: (("layer",), np.asarray(values)) for name, values in columns.items()}
    attributes = {
        "data_loss": float(sums.data_loss), "stationarity": total, "relative_gamma": relative_gamma
    }  # fmt: skip
    return xr.Dataset(variables, coords={"layer": np.arange(1, network.depth + 1)}, attrs=attributes)


def _hamiltonians(
    network: LeakyResNet, sums: LeakySums, critical: Tensor, *, effective_depth: float
) -> dict[str, Tensor]:
    """The Hamiltonian of every layer, four ways, and the rank that it stands for."""
    Lt = effective_depth
    mixed = Lt * (sums.by_momentum.square().sum((1, 2)) / 2 - sums.mixed)
    same = Lt * (sums.by_level.square().sum((1, 2)) / 2 - sums.same)
    averaged = (same[:-1] + 2 * mixed + same[1:]) / 4
    return {
        "hamiltonian": averaged,
        "hamiltonian_pontryagin": mixed - (network.weights - critical).square().sum((1, 2)) / (2 * Lt),
        "hamiltonian_mixed": mixed,
        "hamiltonian_same_level": same[1:],
        "rank_from_hamiltonian": rank_from_hamiltonian(averaged, effective_depth=Lt),
    }


def _energies(
    network: LeakyResNet, sums: LeakySums, full_path: Callable[[], LeakyPath], *, relative_gamma: float
) -> tuple[list[float], list[float]]:
    """Relaxed cost of identity and square of the speed of every layer.

    From the sums alone, but for layers whose largest eigenvalue is so far below the size of their stream that digits
    would be lost: for those the path is computed.
    """
    costs, speeds = list[float](), list[float]()
    path: LeakyPath | None = None
    for l, gram in enumerate(sums.gram):
        largest = float(torch.linalg.eigvalsh(gram)[-1]) if gram.numel() else 0.0
        gamma = relative_gamma * (largest if largest > 0 else 1.0)
        if gamma >= LEAST_GAMMA * max(float(sums.activation[l]), largest):
            cost, speed = energies_of_grams(
                gram, sums.by_activation[l], sums.by_momentum[l], activation=float(sums.activation[l]), gamma=gamma
            )
        else:
            path = path or full_path()
            energies = relaxed_energies(
                path.activations[l], path.arriving[l], effective_depth=network.effective_depth, gamma=gamma,
                bias=network.has_bias, smoothing=float(network.smoothing),
            )  # fmt: skip
            cost, speed = energies.cost_of_identity, energies.speed**2
        costs.append(cost)
        speeds.append(speed)
    return costs, speeds


def checked_copy(
    network: LeakyResNet, x: ArrayLike | Tensor, y: ArrayLike | Tensor, ridge: Real, loss: Loss = SQUARED
) -> tuple[LeakyResNet, Tensor, Tensor]:
    """A frozen float64 copy of the network, and the data in float64, numbers of classes as they are."""
    check_positive("leaky_path", "ridge", ridge)
    check_as_written("leaky_path", network, LeakyResNet)
    if not network.effective_depth:
        raise ValueError(
            "leaky_path: needs a network that leaks; its energies are those of the leak, and this is a plain ResNet "
            "(effective_depth=0). Use diagnose, which leaves them out."
        )
    exact = copy.deepcopy(network).double().requires_grad_(False)
    x, y = (tensor_argument(data, f"leaky_path(network, x, y): {name}").double() for name, data in (("x", x), ("y", y)))
    if not bool(torch.isfinite(x).all() and torch.isfinite(y).all()):
        raise DataError("leaky_path(network, x, y): needs finite numbers. Remove rows with NaN or infinity first.")
    wanted = (len(x),) if loss.classes else (len(x), network.d_out // loss.per_target)
    if y.shape != wanted:
        raise ShapeError(f"leaky_path: needs y of shape {wanted}; got {tuple(y.shape)}.")
    if loss.classes and not bool(((y == y.round()) & (y >= 0) & (y < network.d_out)).all()):
        raise DataError(f"leaky_path: needs y of class numbers 0 to {network.d_out - 1}, one for each output.")
    return exact, x, loss.targets(y, torch.float64)


def _arriving(network: LeakyResNet, momenta: Tensor) -> Tensor:
    """B_1 .. B_L, that of the layer before a waist taken in front of it."""
    waist, arriving = network.waist, momenta[1:]
    if waist is None or waist.layer == 0:
        return arriving
    arriving = arriving.clone()
    arriving[waist.layer - 1] = arriving[waist.layer - 1] @ waist.projection
    return arriving


def _stationarity(network: LeakyResNet, critical: Tensor) -> tuple[Tensor, float]:
    """|W - critical| / |W| of each layer, and over all layers weighted by rho."""
    W, rho = network.weights, network.layer_steps()
    off, size = (W - critical).square().sum((1, 2)), W.square().sum((1, 2))
    total = float((rho * off).sum() / (rho * size).sum()) ** 0.5 if float(size.sum()) else math.nan
    return (off / size).sqrt(), total
