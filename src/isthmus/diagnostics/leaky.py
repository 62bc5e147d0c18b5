"""What a leaky network does layer by layer: momenta from one backward pass, energies, the rank they stand for.

Formulas: `theory.leaky` and `theory.leaky_bounds`. Fully connected networks: `diagnostics.diagnose`.
"""

import copy
import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import DataError, NumericalWarning, ShapeError
from isthmus.networks import LeakyResNet, walk
from isthmus.theory import (
    critical_weights,
    features,
    hamiltonian,
    rank_from_hamiltonian,
    relaxed_energies,
)
from isthmus.theory.inputs import Real, check_positive
from isthmus.theory.leaky_bounds import RelaxedEnergies, energies_of_features

LEAST_GAMMA = 1e-9  # of |S|^2: below it the normal equations of float64 lose digits
FAR = 1e-3  # a relative stationarity above which Hamiltonians are doubtful: 1/ridge amplifies every residual


@dataclass(frozen=True, slots=True)
class LeakyPath:
    """A leaky network on its data as a path in phase space, float64.

    Attributes:
        activations: A_0 .. A_L, (L + 1, n, width).
        momenta: B_l = -(1/ridge) d(data loss)/dA_l, (L + 1, n, width).
        weights: W_1 .. W_L, the bias as last column.
        critical: Lt B_l^T sigma(A_{l-1}), which W_l is at a critical point.
        steps: rho_l of explicit Euler.
        data_loss: squared error summed over outputs, averaged over samples.
        stationarity: |W_l - Lt B_l^T sigma(A_{l-1})| / |W_l| of each layer.
        total_stationarity: the same over all layers, weighted by rho_l.
    """

    activations: Tensor
    momenta: Tensor
    weights: Tensor
    critical: Tensor
    steps: Tensor
    data_loss: float
    stationarity: Tensor
    total_stationarity: float


def leaky_path(
    network: LeakyResNet, x: Float[Tensor, "n d_in"], y: Float[Tensor, "n d_out"], *, ridge: Real
) -> LeakyPath:
    """Representations and momenta of a leaky network, by one backward pass of the data loss alone.

    Args:
        network: not changed.
        x: samples as rows.
        y: targets.
        ridge: that of the training, > 0.

    Returns:
        The path.

    Raises:
        ShapeError: y is not of the shape of the outputs. DataError: NaN or infinity. ValueError: `ridge` <= 0.

    Source: 002, section 2; the staggered indices are ours. Test: LEAKY-11.
    """
    check_positive("leaky_path", "ridge", ridge)
    exact = copy.deepcopy(network).double().requires_grad_(False)
    x, y = x.double(), y.double()
    if not bool(torch.isfinite(x).all() and torch.isfinite(y).all()):
        raise DataError("leaky_path(network, x, y): needs finite numbers. Remove rows with NaN or infinity first.")
    if y.shape != (len(x), network.d_out):
        raise ShapeError(f"leaky_path: needs y of shape {(len(x), network.d_out)}; got {tuple(y.shape)}.")
    with torch.enable_grad():
        states = walk(exact, x.clone().requires_grad_())  # so that A_0 has a gradient
        stream = [state.activation for state in states[:-1]]
        loss = (states[-1].activation - y).square().sum(1).mean()
        gradients = torch.autograd.grad(loss, stream)
    A, B = torch.stack([a.detach() for a in stream]), -torch.stack(gradients) / ridge
    W, rho, smoothing = exact.weights.detach(), exact.layer_steps(), float(exact.smoothing)
    best = torch.stack(  # one layer at a time: the features of all would take as much again as the stream
        [
            critical_weights(a, b, effective_depth=exact.effective_depth, bias=exact.has_bias, smoothing=smoothing)
            for a, b in zip(A[:-1], B[1:], strict=True)
        ]
    )
    off, size = (W - best).square().sum((1, 2)), W.square().sum((1, 2))
    total = float((rho * off).sum() / (rho * size).sum()) ** 0.5 if float(size.sum()) else math.nan
    return LeakyPath(A, B, W, best, rho, float(loss.detach()), (off / size).sqrt(), total)


def leaky_diagnosis(
    network: LeakyResNet,
    x: Float[Tensor, "n d_in"],
    y: Float[Tensor, "n d_out"],
    *,
    ridge: Real,
    relative_gamma: Real = 1e-4,
) -> xr.Dataset:
    """The energies of a leaky network layer by layer.

    Args:
        network: not changed.
        x: samples as rows.
        y: targets.
        ridge: that of the training, > 0.
        relative_gamma: gamma0; each layer is relaxed by gamma0 times the largest eigenvalue of its kernel.

    Returns:
        A table over the layers 1..L: position p_l, hamiltonian (4-point average), hamiltonian_pontryagin, _mixed and
        _same_level (at A_l), rank_from_hamiltonian of the first, cost_of_identity and kinetic_energy (of A_{l-1}, B_l,
        relaxed), momentum_norm |B_l|, stationarity. Attributes: data_loss, stationarity, relative_gamma.

    Raises:
        As `leaky_path`. NumericalWarning: the network is far from critical, so the Hamiltonians say little.

    Source: 002, figure 1. Test: LEAKY-13, LEAKY-15.
    """
    path = leaky_path(network, x, y, ridge=ridge)
    if not path.total_stationarity <= FAR:
        warnings.warn(
            f"leaky_diagnosis: the network is far from critical, relative stationarity {path.total_stationarity:.2g} "
            f"> {FAR:g}: only hamiltonian_pontryagin can be trusted. Train with PreconditionedLBFGS.",
            NumericalWarning,
            stacklevel=2,
        )
    Lt = network.effective_depth
    energies = _energies(network, path, relative_gamma)
    mixed = torch.tensor([-Lt / 2 * e.rank for e in energies], dtype=torch.float64)
    same = torch.stack(
        [
            hamiltonian(A, B, effective_depth=Lt, bias=network.has_bias, smoothing=float(network.smoothing))
            for A, B in zip(path.activations, path.momenta, strict=True)
        ]
    )
    averaged = (same[:-1] + 2 * mixed + same[1:]) / 4
    pontryagin = mixed - (path.weights - path.critical).square().sum((1, 2)) / (2 * Lt)
    columns = {
        "position": network.steps.double().cumsum(0),
        "hamiltonian": averaged,
        "hamiltonian_pontryagin": pontryagin,
        "hamiltonian_mixed": mixed,
        "hamiltonian_same_level": same[1:],
        "rank_from_hamiltonian": rank_from_hamiltonian(averaged, effective_depth=Lt),
        "cost_of_identity": torch.tensor([e.cost_of_identity for e in energies], dtype=torch.float64),
        "kinetic_energy": torch.tensor([e.kinetic_energy for e in energies], dtype=torch.float64),
        "momentum_norm": torch.linalg.matrix_norm(path.momenta[1:]),
        "stationarity": path.stationarity,
    }
    variables = {name: (("layer",), np.asarray(values)) for name, values in columns.items()}
    attributes = {
        "data_loss": path.data_loss, "stationarity": path.total_stationarity, "relative_gamma": relative_gamma
    }  # fmt: skip
    return xr.Dataset(variables, coords={"layer": np.arange(1, network.depth + 1)}, attrs=attributes)


def _energies(network: LeakyResNet, path: LeakyPath, relative_gamma: Real) -> list[RelaxedEnergies]:
    """Relaxed energies of every layer, with one Gram matrix of its features and what the path has already."""
    found: list[RelaxedEnergies] = []
    Lt = network.effective_depth
    for A, B, best in zip(path.activations[:-1], path.momenta[1:], path.critical, strict=True):
        S = features(A, bias=network.has_bias, smoothing=float(network.smoothing))
        gram = S.mT @ S
        largest = float(torch.linalg.eigvalsh(gram)[-1]) if gram.numel() else 0.0
        gamma = float(relative_gamma) * (largest if largest > 0 else 1.0)
        if gamma < LEAST_GAMMA * float(gram.diagonal().sum()):
            found.append(
                relaxed_energies(
                    A, B, effective_depth=Lt, gamma=gamma, bias=network.has_bias, smoothing=float(network.smoothing)
                )
            )
            continue
        found.append(energies_of_features(S, gram, A, B, best.mT / Lt, effective_depth=Lt, gamma=gamma))
    return found
