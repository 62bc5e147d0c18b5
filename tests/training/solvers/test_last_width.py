"""The width of the smoothed relu that a fit of a leaky network leaves: the last one, whatever ended it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from isthmus.networks import LeakyResNet
from isthmus.training import FitEvent, FitResult, Limits, Outcome, fit
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps
from isthmus.training.solvers.precision import InPrecision
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.solver import Solver
from isthmus.training.steps.leaky_step import leaky_network
from leaky_networks import RIDGE, small_data


def network_of() -> LeakyResNet:
    return LeakyResNet(3, 3, width=5, depth=4, effective_depth=2.0, steps="irregular", seed=0, dtype=torch.float64)


def with_steps(solver: PreconditionedLBFGS) -> Solver:
    return AdaptiveSteps(solver, round_evaluations=40)


@pytest.mark.parametrize("around", [lambda s: s, InPrecision, with_steps], ids=["alone", "in float32", "with steps"])
@pytest.mark.parametrize("cut", ["limits", "callback", "its own evaluations"])
@pytest.mark.parametrize("last", [0.03, 0.0])
def test_wherever_it_ends_the_network_has_the_last_width(
    around: Callable[[PreconditionedLBFGS], Solver], cut: str, last: float
) -> None:
    network, (x, y) = network_of(), small_data()
    own, limit = (12, None) if cut == "its own evaluations" else (400, 12 if cut == "limits" else None)
    widths: list[float] = []

    def hear(event: FitEvent) -> bool:
        widths.append(float(leaky_network(event.network, "test").smoothing))
        return cut == "callback" and event.evaluations >= 12

    solver = around(PreconditionedLBFGS(own, smoothing=(0.1, last)))
    result = fit(network, x, y, ridge=RIDGE, solver=solver, limits=Limits(evaluations=limit), callback=hear)
    assert float(network.smoothing) == pytest.approx(last, rel=1e-7)
    assert isinstance(solver, InPrecision) or widths[0] == 0.1  # whose first burst may be all
    with torch.no_grad():
        value = float((network(x) - y).square().sum(1).mean() + RIDGE * network.penalty())
    assert result.objective == pytest.approx(value, rel=1e-12)
    if cut == "its own evaluations":  # and its history ends with what is returned
        assert float(result.history["objective"][-1]) == pytest.approx(value, rel=1e-5)


def test_a_burst_in_another_precision_goes_on_at_the_width_of_its_stage() -> None:
    network, (x, y), widths = network_of(), small_data(), list[float]()
    solver = InPrecision(PreconditionedLBFGS(200, smoothing=(0.1, 0.03), plateau=0.0, tolerance=1e-12))

    def hear(event: FitEvent) -> None:
        widths.append(float(leaky_network(event.network, "test").smoothing))

    fit(network, x, y, ridge=RIDGE, solver=solver, callback=hear)
    assert len(widths) > 2
    assert 0.0 not in widths


def test_a_fit_that_ended_at_another_width_goes_on_bit_for_bit(tmp_path: Path) -> None:
    (x, y), ends = small_data(), list[FitResult]()
    solver = PreconditionedLBFGS(80, smoothing=(0.1, 0.0))
    for path, stop in (("whole", None), ("half", 20), ("half", None)):
        ends.append(fit(
            network_of(), x, y, ridge=RIDGE, solver=solver, checkpoint=tmp_path / path,
            callback=lambda event, stop=stop: stop is not None and event.evaluations >= stop,
        ))  # fmt: skip
    assert ends[1].outcome is Outcome.INTERRUPTED
    assert ends[2].history.equals(ends[0].history)
    assert ends[2].objective == ends[0].objective
