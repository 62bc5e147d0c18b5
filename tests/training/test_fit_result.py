"""How a fit says that it ended, and how a checkpoint holds it."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from isthmus import FullyConnected, Limits, fit
from isthmus.training.checkpoint import load_state
from isthmus.training.fit_result import Outcome, StopReason
from isthmus.training.solvers.precision import InPrecision
from isthmus.training.solvers.schedule import Schedule
from isthmus.training.solvers.solver import LBFGS, Adam, State, end
from isthmus.training.solvers.trials import RankTrials


def kinds_of_reasons(value: Any) -> set[type]:
    """The types of all reasons in a state, however deep."""
    if not isinstance(value, dict):
        return set()
    return {type(v) for k, v in value.items() if k == "reason"}.union(*(kinds_of_reasons(v) for v in value.values()))


def test_every_ending_has_an_outcome_and_only_two_of_them_come_before_the_end() -> None:
    assert {ending.outcome for ending in StopReason} == set(Outcome) - {Outcome.COLLAPSED}
    assert {ending for ending in StopReason if ending.is_stop} == {StopReason.INTERRUPTED, StopReason.TIME}
    assert StopReason("") is StopReason.STEPS_MADE


def test_a_checkpoint_holds_the_reasons_as_plain_text(tmp_path: Path) -> None:
    state: State = {}
    end(state, StopReason.PLATEAU)
    assert state == {"done": True, "reason": "plateau"}
    assert kinds_of_reasons({"inner": state}) == {str}
    assert kinds_of_reasons({"inner": {"reason": StopReason.PLATEAU}}) == {StopReason}
    x = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]
    network = FullyConnected(1, 1, width=4, depth=3, seed=0, dtype=torch.float64)
    path, seen = tmp_path / "fit.pt", []

    def stop(event: object) -> bool:
        seen.append(event)
        return len(seen) == 8

    fit(network, x, x.abs(), ridge=1e-3, solver=(Adam(2), InPrecision(LBFGS(3)), LBFGS(50)), checkpoint=path,
        callback=stop)  # fmt: skip
    saved = load_state(path)
    assert saved is not None
    assert kinds_of_reasons(saved) == {str}


@pytest.mark.parametrize(
    ("depth", "linear", "has_middle"), [(1, (), False), (2, (), False), (3, (), True), (2, (1,), True)]
)
def test_a_network_without_a_middle_has_no_rank_of_it(depth: int, linear: tuple[int, ...], has_middle: bool) -> None:
    """It was 0 beside certified ranks of 4, and pictures jumped from there."""
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    network = FullyConnected(3, 3, width=4, depth=depth, linear=linear, seed=0, dtype=torch.float64)
    found = fit(network, x, x, ridge=1e-3, solver=LBFGS(30))
    assert (found.rank is not None) is has_middle
    assert found.rank != 0


@pytest.mark.parametrize("depth", [3, 5])
def test_a_training_that_collapsed_has_no_rank(depth: int) -> None:
    """Middle matrices of 1e-9 had been of rank 1 or 2: what is left of them is rounding."""
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    network = FullyConnected(3, 3, width=4, depth=depth, seed=0, dtype=torch.float64)
    found = fit(network, x, x, ridge=10.0)
    assert (found.outcome, found.rank) == (Outcome.COLLAPSED, None)


def test_a_training_that_diverged_has_no_rank_and_says_nothing_untrue_of_its_objective() -> None:
    """In float32 squares of 1e30 are infinite; in float64, in which the objective is told, they are not."""
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    found = fit(FullyConnected(3, 3, width=4, depth=3, seed=0), x, 1e30 * x, ridge=1e-3)
    assert (found.outcome, found.rank) == (Outcome.DIVERGED, None)
    assert math.isfinite(found.objective)
    assert "in the precision of the training" in found.outcome.value


def test_outcomes_that_leave_no_map() -> None:
    assert {outcome for outcome in Outcome if outcome.is_lost} == {Outcome.COLLAPSED, Outcome.DIVERGED}


def _none(_step: object) -> bool:
    return False


def _same(_step: object) -> bool:
    """A change of nothing: polishing alone lowers the objective, from where nothing was trained to an end."""
    return True


HELD = LBFGS(60, tolerance=1e9)  # everything is stationary enough for it
FLAT = LBFGS(60, tolerance=1e-30, plateau=1e9, window=1)  # and nothing falls enough
SHORT = LBFGS(3, tolerance=1e-30)
TRIED = RankTrials(SHORT, most=2, attempt=_none)


@pytest.mark.parametrize(
    ("schedule", "outcome"),
    [
        ((Adam(5),), Outcome.STEP_LIMIT),
        ((SHORT,), Outcome.STEP_LIMIT),
        ((FLAT,), Outcome.PLATEAU),
        ((HELD,), Outcome.CONVERGED),
        ((Adam(5), TRIED), Outcome.STEP_LIMIT),
        ((SHORT, TRIED), Outcome.STEP_LIMIT),
        ((FLAT, TRIED), Outcome.PLATEAU),
        ((HELD, TRIED), Outcome.CONVERGED),
        ((FLAT, Adam(5), TRIED), Outcome.STEP_LIMIT),
        ((Adam(1), RankTrials(FLAT, most=1, attempt=_same)), Outcome.PLATEAU),
        ((FLAT, RankTrials(SHORT, most=1, attempt=_same)), Outcome.STEP_LIMIT),
    ],
    ids=range(11),
)
def test_trials_without_avail_leave_the_reason_for_which_the_network_stands(
    schedule: Schedule, outcome: Outcome, tmp_path: Path
) -> None:
    """A plateau behind which no rank was better had been told as evaluations that were used up."""
    x = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]

    def network() -> FullyConnected:
        return FullyConnected(1, 1, width=4, depth=3, seed=0, dtype=torch.float64)

    found = fit(network(), x, x.abs(), ridge=1e-3, solver=schedule)
    assert found.outcome is outcome
    # and so it does in a fit that is gone on with from its last iteration
    path, seen = tmp_path / "fit.pt", []

    def stop(_event: object) -> bool:
        seen.append(1)
        return len(seen) == found.steps

    assert fit(network(), x, x.abs(), ridge=1e-3, solver=schedule, checkpoint=path, callback=stop).steps == found.steps
    again = fit(network(), x, x.abs(), ridge=1e-3, solver=schedule, checkpoint=path)
    assert (again.outcome, again.objective) == (outcome, found.objective)


def test_a_schedule_of_shares_says_that_shares_were_used_up() -> None:
    """Of 300 evaluations that were allowed, the share of rank trials may be left where no trial is made."""
    x = torch.linspace(-1, 1, 40, dtype=torch.float64)[:, None]
    network = FullyConnected(1, 1, width=4, depth=3, seed=0, dtype=torch.float64)
    found = fit(network, x, x.abs(), ridge=1e-3, solver=(SHORT, TRIED), limits=Limits(evaluations=300))
    assert found.gradient_evaluations < 300
    assert "used up, or each solver's share of them" in found.outcome.value
