"""Numbers of a training that its precision does not hold are refused in words, before anything is trained."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import isthmus
from isthmus.errors import DataError
from isthmus.sweeps import Plan
from isthmus.training import Limits, fit, fit_batch, fit_several, fit_shards, losses
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.minibatches import MiniBatches
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.solver import Adam, GradientDescent

ROWS = np.random.default_rng(0).normal(size=(24, 3))
X, Y = torch.from_numpy(ROWS), torch.from_numpy(ROWS[:, :2])
FEW = Limits(evaluations=3)
TOO = {"float32": (1e39, 1e200, 1e-39, 1e-300), "float64": (1e308, 5e-324)}
GRADIENTS = ("float32", 1e20)  # that is held, its square is not


def connected(dtype: torch.dtype) -> isthmus.FullyConnected:
    return isthmus.FullyConnected(3, 2, width=4, depth=2, seed=0, dtype=dtype)


def leaky(dtype: torch.dtype, **given: Any) -> isthmus.LeakyResNet:
    arguments: dict[str, Any] = {"effective_depth": 2.0, **given}
    return isthmus.LeakyResNet(3, 2, width=4, depth=2, seed=0, scheme="exponential", dtype=dtype, **arguments)


def residual(dtype: torch.dtype, **given: Any) -> isthmus.ResNet:
    return isthmus.ResNet(3, 2, width=4, depth=2, block_depth=2, seed=0, dtype=dtype, **given)


def planned(dtype: torch.dtype, training: dict[str, object]) -> object:
    task = {"name": "teacher", "rank": 1, "d_in": 3, "d_out": 2, "num_samples": 20}
    training = {"dtype": str(dtype).removeprefix("torch."), **training}
    return Plan(task, {"width": 4, "depth": 2}, training, grid={"seed": [0]}).runs()


def sharded(dtype: torch.dtype, ridge: float) -> object:
    return fit_shards(connected(dtype), X.to(dtype), Y.to(dtype), ridge=ridge, total=len(X), team=Team(), limits=FEW)


Taker = Callable[[torch.dtype, float], object]
RIDGES: dict[str, Taker] = {
    "connected": lambda dtype, v: fit(connected(dtype), X, Y, ridge=v, limits=FEW),
    "leaky": lambda dtype, v: fit(leaky(dtype), X, Y, ridge=v, limits=FEW),
    "residual": lambda dtype, v: fit(residual(dtype), X, Y, ridge=v, limits=FEW),
    "module": lambda dtype, v: fit(torch.nn.Linear(3, 2, dtype=dtype), X, Y, ridge=v, limits=FEW),
    "several": lambda dtype, v: fit_several([connected(dtype)], X, Y, ridge=v, limits=FEW, workers=1),
    "batch": lambda dtype, v: fit_batch([connected(dtype)], X, Y, ridges=[v], solver=(Adam(3),)),
    "shards": sharded,
    "plan": lambda dtype, v: planned(dtype, {"ridge": v}),
}
OTHERS: dict[str, Taker] = {
    "effective_depth": lambda dtype, v: leaky(dtype, effective_depth=v),
    "residual_weight": lambda dtype, v: residual(dtype, residual_weight=v),
}
RATES: dict[str, Taker] = {
    "adam": lambda dtype, v: fit(connected(dtype), X, Y, ridge=0.1, solver=Adam(3, rate=v)),
    "descent": lambda dtype, v: fit(connected(dtype), X, Y, ridge=0.1, solver=GradientDescent(3, rate=v)),
    "second": lambda dtype, v: fit(connected(dtype), X, Y, ridge=0.1, solver=(Adam(3), Adam(3, rate=v))),
    "within": lambda dtype, v: fit(connected(dtype), X, Y, ridge=0.1, solver=MiniBatches(Adam(3, rate=v))),
    "batch": lambda dtype, v: fit_batch([connected(dtype)], X, Y, ridges=[0.1], solver=(Adam(3, rate=v),)),
    "huber": lambda dtype, v: fit(connected(dtype), X, Y, ridge=0.1, loss=losses.Huber(v), limits=FEW),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", RIDGES)
def test_a_ridge_that_is_infinite_or_nothing_in_the_precision_is_refused(name: str, dtype: str) -> None:
    take, kind = RIDGES[name], getattr(torch, dtype)
    for value in (*TOO[dtype], *([GRADIENTS[1]] if dtype == GRADIENTS[0] else [])):
        with pytest.raises((DataError, isthmus.errors.PlanError), match=rf"{dtype} takes 0, or numbers from .* Give"):
            take(kind, value)
    for value in (0.0, 0.1, 1e-30):
        take(kind, value)


@pytest.mark.parametrize("name", [*OTHERS, *RATES])
def test_other_numbers_of_a_training_are_refused_alike(name: str) -> None:
    take = (OTHERS | RATES)[name]
    for value in TOO["float32"]:
        with pytest.raises(DataError, match=r"float32 takes 0, or numbers from .* Give one of them, or compute with"):
            take(torch.float32, value)
    take(torch.float32, 0.1)


def test_a_discovery_which_has_one_precision_offers_no_other() -> None:
    with pytest.raises(DataError, match=r"discover\(ridge=1e\+39\): float32 takes .* Give one of them\.$"):
        isthmus.discover(ROWS, ridge=1e39, starts=1, effort="quick")


@pytest.mark.parametrize("ridge", [1e-40, 1e-300])
def test_a_preconditioner_takes_a_ridge_that_rounding_hides(ridge: float) -> None:
    network = leaky(torch.float64)
    before = isthmus.fit(leaky(torch.float64), X, Y, ridge=ridge, solver=Adam(0)).objective
    after = isthmus.fit(network, X, Y, ridge=ridge, solver=PreconditionedLBFGS(30)).objective
    assert after < before
