"""The stationarity that `fit` reports is the theory's: in the coordinates in which the penalty is Euclidean."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

import isthmus
from isthmus.networks import LeakyResNet
from isthmus.networks.kinds import KindOfNetwork, kinds
from isthmus.networks.network import penalty_of
from isthmus.training import FitResult, fit_batch, fit_shards
from isthmus.training.ending import stationarity
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.solver import Adam
from isthmus.training.steps.step import step_of
from theorem_checks import assert_close, normal


def test_it_is_the_relative_residual_of_the_critical_weights() -> None:
    Lt, ridge, x, y = 2.0, 0.3, normal(0, 8, 3), normal(1, 8, 2)
    network = LeakyResNet(3, 2, width=4, depth=5, effective_depth=Lt, steps="irregular", seed=0, dtype=torch.float64)
    step = step_of(network, x, DataLoss(SQUARED, y), ridge)
    step()
    states = isthmus.walk(network, x.clone().requires_grad_())  # so that A_0 carries a gradient
    stream = [s.activation for s in states[:-1]]
    gradients = torch.autograd.grad((states[-1].activation - y).square().sum(1).mean(), stream)
    rho, W = network.steps, network.weights.detach()
    one = torch.ones(8, 1, dtype=torch.float64)
    critical = torch.stack([
        -Lt / ridge * g.mT @ torch.cat([A.detach().relu(), one], 1)
        for g, A in zip(gradients[1:], stream[:-1], strict=True)
    ])  # fmt: skip
    defect = (rho * (W - critical).square().sum((1, 2))).sum() / (rho * W.square().sum((1, 2))).sum()
    assert_close(stationarity(step), float(defect.sqrt()), relative=1e-10)
    step.curvature = 2.0  # the penalty taken for the squared norm of all weights
    with pytest.raises(AssertionError):
        assert_close(stationarity(step), float(defect.sqrt()), relative=1e-10)


X, Y, RIDGE, SHORT = normal(2, 30, 3), normal(3, 30, 2), 0.1, Adam(15)


def _of_kind(kind: KindOfNetwork, number: int) -> nn.Module:
    return kind.made(3, 2, dtype=torch.float64, **{"seed": 0, **kind.examples[number]})


def _frozen(network: nn.Module, first: int) -> nn.Module:
    list(network.parameters())[first].requires_grad_(False)
    return network


def _connected() -> isthmus.FullyConnected:
    return isthmus.FullyConnected(3, 2, width=5, depth=3, seed=0, dtype=torch.float64)


KINDS = {f"{kind.name} {number}": (kind, number) for kind in kinds() for number in range(len(kind.examples))}
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    **{name: partial(_of_kind, *which) for name, which in KINDS.items()},
    **{
        f"{name}, frozen in part": (lambda which=which: _frozen(_of_kind(*which), -1))
        for name, which in KINDS.items()
        if which[0].name != "leaky"  # whose last parameter is a fixed map
    },
    "module": lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 2)).double(),
    "from layers": lambda: isthmus.FullyConnected.from_layers([normal(4, 4, 3), normal(5, 2, 4)]),
}
TRAININGS: dict[str, Callable[[], FitResult]] = {
    **{
        name: (lambda make=make: isthmus.fit(make(), X, Y, ridge=RIDGE, solver=SHORT))
        for name, make in NETWORKS.items()
    },
    "in float32": lambda: isthmus.fit(_connected().float(), X, Y, ridge=RIDGE, solver=SHORT),
    "rows in runs": lambda: isthmus.fit(
        _of_kind(*KINDS["resnet 0"]), X, Y, ridge=RIDGE, solver=SHORT, limits=isthmus.Limits(memory=4000)
    ),
    "huber": lambda: isthmus.fit(_of_kind(*KINDS["resnet 0"]), X, Y, ridge=RIDGE, solver=SHORT, loss="huber"),
    "batch": lambda: fit_batch([_connected(), _connected()], X, Y, ridges=[RIDGE] * 2, solver=(SHORT,))[1],
    "shards": lambda: fit_shards(_connected(), X, Y, ridge=RIDGE, total=len(X), team=Team(), schedule=(SHORT,)),
}


def recomputed(network: nn.Module, loss: str = "squared", *, euclidean: bool = False) -> float:
    """The formula of `FitResult`, by autograd alone: c is the diagonal of the second derivative of the penalty."""
    dtype = next(network.parameters()).dtype
    parameters = [p for p in network.parameters() if p.requires_grad]
    residual = network(X.to(dtype)) - Y.to(dtype)
    is_far = (residual.abs() > 1) & (loss == "huber")
    rows = torch.where(is_far, 2 * residual.abs() - 1, residual.square())
    objective = rows.sum(1).mean() + RIDGE * penalty_of(network)
    g = torch.cat([v.reshape(-1) for v in torch.autograd.grad(objective, parameters)])
    first = torch.autograd.grad(penalty_of(network), parameters, create_graph=True, materialize_grads=True)
    total = torch.stack([v.sum() for v in first]).sum()
    second = torch.autograd.grad(total, parameters, materialize_grads=True)
    c = torch.cat([v.reshape(-1) for v in second])
    theta = torch.cat([p.detach().reshape(-1) for p in parameters])
    if euclidean:
        return float(g.norm() / (RIDGE * (c * theta).norm()))
    free = torch.where(c > 0, c, c.max())
    return float((g.square() / free).sum().sqrt() / (RIDGE * (c * theta.square()).sum().sqrt()))


@pytest.mark.parametrize("name", TRAININGS)
def test_it_is_what_its_words_say_of_every_network_and_training(name: str) -> None:
    found = TRAININGS[name]()
    loss = "huber" if name == "huber" else "squared"
    relative = 1e-3 if next(found.network.parameters()).dtype == torch.float32 else 1e-8
    assert_close(found.stationarity, recomputed(found.network, loss), relative=relative)


@pytest.mark.parametrize("name", ["resnet 0", "leaky 1"])
def test_norms_in_the_parameters_themselves_are_others(name: str) -> None:
    found = TRAININGS[name]()
    with pytest.raises(AssertionError):
        assert_close(found.stationarity, recomputed(found.network, euclidean=True), relative=0.01)
