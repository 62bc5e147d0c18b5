"""Leaky networks with random weights, and a small one that is trained to a critical point once per session."""

import functools

import torch
from torch import Tensor

from isthmus.diagnostics import LeakyPath, leaky_path
from isthmus.networks import LeakyResNet
from isthmus.training import FitResult, fit
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from theorem_checks import normal

RIDGE = 0.05


def random_leaky(
    seed: int, *, bias: bool = True, steps: str = "irregular", smoothing: float = 0.0, scheme: str = "euler"
) -> LeakyResNet:
    """Width 5, 6 layers, Lt = 2.5, from 3 to 2 dimensions, with random biases."""
    network = LeakyResNet(
        3, 2, width=5, depth=6, effective_depth=2.5, steps=steps, bias=bias, scheme=scheme, seed=seed,
        dtype=torch.float64,
    )  # fmt: skip
    network.smoothing.fill_(smoothing)
    if bias:
        with torch.no_grad():
            network.weights[:, :, -1] = normal(seed + 1, 6, 5)
    return network


def random_path(network: LeakyResNet, seed: int) -> LeakyPath:
    return leaky_path(network, normal(seed + 2, 8, 3), normal(seed + 3, 8, 2), ridge=0.3)


def small_data() -> tuple[Tensor, Tensor]:
    """12 samples of a map of rank 1 between 3 dimensions."""
    x = normal(5, 12, 3)
    z = (x @ normal(6, 3, 1)).tanh()
    return x, torch.cat([z, z.square(), z - z.square()], 1)


@functools.cache
def trained(depth: int = 8, bias: bool = True) -> tuple[LeakyResNet, FitResult]:
    """Width 5, Lt = 3, at stationarity 1e-8 with smoothing 0.1."""
    x, y = small_data()
    network = LeakyResNet(
        3, 3, width=5, depth=depth, effective_depth=3.0, bias=bias, seed=0, dtype=torch.float64
    )  # fmt: skip
    solver = PreconditionedLBFGS(smoothing=(0.1,), tolerance=1e-8, evaluations=3000)
    return network, fit(network, x, y, ridge=RIDGE, solver=solver)
