"""The captured model of the curvature: whatever linearisation it holds, its products are those of that one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from isthmus import LeakyResNet, fit
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps
from isthmus.training.solvers.captured_model import CapturedLinearisation, captured
from isthmus.training.solvers.curvature_model import Linearisation, linearised, random_mix
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.steps.step import step_of

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]),
]
GENERATOR = torch.Generator().manual_seed(0)
X, Y = (torch.randn(12, d, generator=GENERATOR, dtype=torch.float64) for d in (5, 3))


def network(**changes: Any) -> LeakyResNet:
    shape: dict[str, Any] = {"width": 7, "depth": 4, "effective_depth": 3.0, "maps": "learned", "seed": 1}
    made = LeakyResNet(5, 3, dtype=torch.float64, **shape | changes)
    made.smoothing.fill_(0.1)
    return made


def at(other: LeakyResNet, device: str, *, seed: int, combined: int = 0) -> Linearisation:
    """A linearisation at random weights."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in other.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator, dtype=torch.float64) / 3)
    mix = random_mix(len(X), combined, 3, generator) if combined else None
    return linearised(other.to(device), X.to(device), DataLoss(SQUARED, Y.to(device)), mix)


def close(found: Tensor, expected: Tensor) -> bool:
    return torch.allclose(found, expected, rtol=0, atol=1e-12 * float(expected.abs().max()))


def agrees(held: CapturedLinearisation, model: Linearisation) -> bool:
    """Both products of both, on vectors that change."""
    u = torch.linspace(-1, 1, model.weights(), dtype=torch.float64).to(model.S)
    r = torch.linspace(-1, 2, model.count(), dtype=torch.float64).to(model.S).view(len(X), -1)
    return all(
        close(held.push(times * u), model.push(times * u)) and close(held.pull(times * r), model.pull(times * r))
        for times in (1.0, -2.0)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("combined", [0, 2])
@pytest.mark.parametrize("maps", ["learned", "fixed"])
def test_its_products_are_those_of_whatever_it_took_last(device: str, combined: int, maps: str) -> None:
    models = [at(network(maps=maps), device, seed=seed, combined=combined) for seed in (1, 2)]
    held = CapturedLinearisation.of(models[0])
    assert agrees(held, models[0])
    assert not agrees(held, models[1])  # the control
    assert held.take(models[1])
    assert agrees(held, models[1])
    kept = [t.clone() for t in (models[1].S, models[1].V)]
    assert held.take(models[0])
    assert agrees(held, models[0])
    assert all(torch.equal(t, k) for t, k in zip((models[1].S, models[1].V), kept, strict=True))  # not written into


@pytest.mark.parametrize(
    "differs",
    [
        lambda: at(network(effective_depth=2.0), "cpu", seed=3),
        lambda: at(network(steps="irregular"), "cpu", seed=3),
        lambda: at(network(depth=5), "cpu", seed=3),
        lambda: at(network(maps="fixed"), "cpu", seed=3),
        lambda: at(network(), "cpu", seed=3, combined=1),
    ],
    ids=["leak", "steps", "depth", "maps", "combined"],
)
def test_it_takes_no_model_that_differs_in_more_than_numbers(differs: Callable[[], Linearisation]) -> None:
    first, other = at(network(), "cpu", seed=1), differs()
    held = CapturedLinearisation.of(first)
    assert not held.take(other)
    assert agrees(held, first)  # as it was


def test_on_a_cpu_nothing_is_copied() -> None:
    made = network()
    step, model = step_of(made, X, DataLoss(SQUARED, Y), 0.1), at(made, "cpu", seed=1)
    assert captured(step, model) is model


@pytest.mark.parametrize("adaptive", [False, True], ids=["equidistant", "adaptive"])
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares a GPU with the CPU, and there is no GPU")
def test_a_fit_on_a_gpu_takes_the_way_of_one_on_the_cpu(adaptive: bool) -> None:
    ends: list[float] = []
    for device in ("cpu", "cuda"):
        made = network(steps="adaptive" if adaptive else "equidistant").to(device)
        inner = PreconditionedLBFGS(evaluations=60, smoothing=(0.1,))  # eight linearisations; later rounding has grown
        solver = AdaptiveSteps(inner, rounds=2, round_evaluations=20) if adaptive else inner
        ends.append(fit(made, X.numpy(), Y.numpy(), ridge=0.05, solver=solver).objective)
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)
