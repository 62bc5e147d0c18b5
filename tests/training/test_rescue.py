"""The second, gentler attempt after a collapse: stopped anywhere, it reports the true ridge and resumes bit for bit."""

from pathlib import Path

import pytest
import torch

from isthmus import FitResult, FullyConnected, Limits, Outcome, fit
from isthmus.training import FitEvent
from isthmus.training.solvers.solver import LBFGS, Adam

RIDGE, FIRST = 100.0, 60 + 1  # collapses: the first attempt takes this many evaluations at least


def problem() -> tuple[FullyConnected, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=generator)
    return FullyConnected(5, 3, width=12, depth=4, seed=2), x, torch.relu(x @ torch.randn(5, 3, generator=generator))


def run(network: FullyConnected, *, stop_at: int | None = None, path: Path | None = None) -> tuple[FitResult, int]:
    """A fit that collapses, stopped at that iteration of this sitting; also how many iterations there were."""
    _, x, y = problem()
    count = 0

    def hear(_event: FitEvent) -> bool:
        nonlocal count
        count += 1
        return count == stop_at

    schedule = (Adam(60), LBFGS(80))
    return fit(network, x, y, ridge=RIDGE, solver=schedule, checkpoint=path, callback=hear), count


def parameters(network: FullyConnected) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_the_objective_is_at_the_ridge_that_was_asked_for_wherever_the_fit_stops() -> None:
    network, x, y = problem()
    _, whole = run(network)
    for stop_at in range(1, whole, 13):
        result, _ = run(problem()[0], stop_at=stop_at)
        assert result.outcome is Outcome.INTERRUPTED
        assert result.objective == pytest.approx(result.data_loss + RIDGE * result.penalty, rel=1e-12)
    schedule = (Adam(60), LBFGS(80))
    for evaluations in (30, 100, 150):
        network = problem()[0]
        limited = fit(network, x, y, ridge=RIDGE, solver=schedule, limits=Limits(evaluations=evaluations))
        assert limited.objective == pytest.approx(limited.data_loss + RIDGE * limited.penalty, rel=1e-12)


def test_a_stop_in_the_second_attempt_resumes_bit_for_bit(tmp_path: Path) -> None:
    network = problem()[0]
    whole, iterations = run(network)
    first_attempt = next(i for i, e in enumerate(whole.history["evaluation"].values) if e > FIRST)
    stops = range(first_attempt, iterations, 11)
    assert len(stops) >= 3
    for stop_at in stops:
        path, other = tmp_path / f"{stop_at}.pt", problem()[0]
        stopped, _ = run(other, stop_at=stop_at, path=path)
        assert stopped.outcome is Outcome.INTERRUPTED
        resumed, rest = run(other, path=path)
        assert rest == iterations - stop_at
        assert resumed.history.equals(whole.history)
        assert torch.equal(parameters(other), parameters(network))
        assert resumed.outcome is whole.outcome
