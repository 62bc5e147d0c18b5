"""The time that a fit will still take, foretold after its first seconds."""

import math

import pytest
import torch

from isthmus import FullyConnected, Limits
from isthmus.training.fitting import FitEvent, Fitting
from isthmus.training.limits import FIRST_SECONDS, Clock, seconds_left
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import RankTrials
from isthmus.training.steps.step import step_of


def test_the_time_left_is_that_of_the_gradients_left_at_the_pace_so_far() -> None:
    assert seconds_left(10.0, done=100, total=400) == pytest.approx(30.0)
    assert seconds_left(10.0, done=100, total=400, limit=25.0) == pytest.approx(15.0)
    assert seconds_left(10.0, done=100, total=400, limit=100.0) == pytest.approx(30.0)
    assert seconds_left(10.0, done=500, total=400) == 0.0
    assert seconds_left(30.0, done=100, total=400, limit=25.0) == 0.0


@pytest.mark.other_types
@pytest.mark.parametrize("bound", [0, -1.0, math.nan, True, "3"])
def test_what_bounds_nothing_is_refused_where_it_is_said(bound: object) -> None:
    with pytest.raises(ValueError, match=rf"Limits\(seconds={bound}\): needs a positive number, or None"):
        Limits(seconds=bound)  # pyright: ignore[reportArgumentType]


def test_infinity_is_no_bound() -> None:
    assert Limits(seconds=math.inf, evaluations=3) == Limits(evaluations=3)


def test_in_the_first_seconds_nothing_is_foretold() -> None:
    assert seconds_left(0.9 * FIRST_SECONDS, done=100, total=400) is None
    assert seconds_left(10.0, done=0, total=400) is None


def test_a_fit_tells_its_callback_how_long_it_will_still_take() -> None:
    events: list[FitEvent] = []
    x = torch.ones(4, 2)
    network = FullyConnected(2, 1, width=3, depth=2)
    with torch.no_grad():
        step = step_of(network, x, DataLoss(SQUARED, x[:, :1].clone()), 0.1)
        fitting = Fitting(step, (Adam(100),), Limits(evaluations=50), None, lambda event: events.append(event))
        fitting.clock = Clock(1000.0)  # as where a run goes on that took so long
        fitting.run()
    assert len(events) == 50
    for event in events:
        assert event.seconds_left == pytest.approx((50 - event.evaluations) * 1000.0 / event.evaluations, rel=0.05)


def test_more_rank_trials_than_usual_take_longer_than_foretold_first() -> None:
    events: list[FitEvent] = []
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=draw)
    network = FullyConnected(5, 5, width=8, depth=4, seed=0)
    solvers = (LBFGS(30), RankTrials(LBFGS(20), most=4))
    with torch.no_grad():
        step = step_of(network, x, DataLoss(SQUARED, x[:, :1] * torch.ones(5)), 0.01)
        Fitting(step, solvers, Limits(), None, lambda event: events.append(event)).run()
    assert all(event.evaluations <= event.total + 6 for event in events)  # a change and its way back take some too
    assert events[0].total == 30 + 2 * 20
    assert events[-1].total > events[0].total
    assert events[-1].evaluations > events[0].total
