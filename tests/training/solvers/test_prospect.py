"""Descents that end where what is left of them can change nothing."""

import dataclasses

import pytest
import torch

from isthmus import FullyConnected
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.solvers.prospect import NONE_NEEDED, Prospect
from isthmus.training.solvers.solver import LBFGS
from isthmus.training.steps.connected_step import FullyConnectedStep


def polished(prospect: Prospect, *, stop_at: int | None = None) -> tuple[list[float], int, FullyConnectedStep]:
    """The objectives of L-BFGS on a ReLU network; its state goes through a file's form in the middle, if asked for."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(60, d, generator=generator, dtype=torch.float64) for d in (5, 3))
    step = FullyConnectedStep(
        FullyConnected(5, 3, width=12, depth=4, seed=0, dtype=torch.float64), x, DataLoss(SQUARED, y), 1e-3
    )
    solver = LBFGS(300, prospect=prospect)
    state, values = solver.start(step), list[float]()
    while not state["done"]:
        solver.advance(step, state)
        values.append(state["value"])
        if stop_at is not None and state["evaluations"] >= stop_at:
            state, stop_at = {**state}, None
    return values, state["evaluations"], step


# the rule is a heuristic, so what is asked of it has room: from 29 starts (seeds 0 to 23, 1000, 2000 ... 5000)
# the end that it foretold was never above 1.022 of the true one, and the fall that it foretold never below .0145 of it
WHOLE, ALL, _ = polished(NONE_NEEDED)


def test_a_descent_goes_on_without_a_prospect_and_where_its_goal_is_within_reach() -> None:
    assert ALL >= 300
    within = Prospect(goal=1.1 * WHOLE[-1])  # which it comes below
    assert polished(within)[1] >= 300


def test_it_ends_where_its_goal_is_out_of_reach_and_nowhere_else() -> None:
    out_of_reach = 0.5 * WHOLE[-1]  # 150 to 226 gradients from the 29 starts; at .8 some go on to 250
    values, evaluations, step = polished(Prospect(goal=out_of_reach))
    assert 50 <= evaluations < 250
    assert min(WHOLE) > out_of_reach  # it was right
    assert values == WHOLE[: len(values)]  # and changed nothing before
    assert step() == values[-1]


def test_it_ends_where_what_is_left_is_worth_nothing() -> None:
    worth = 0.5 * WHOLE[-1]
    values, evaluations, _ = polished(Prospect(worth=worth))
    assert 50 <= evaluations < 300  # 175 to 226 from the 29 starts
    assert (
        values[-1] - WHOLE[-1] < worth
    )  # .20 to .50 of it; of a worth of .2 up to 1.02, since falls are foretold roughly
    # a smaller fall is worth going on for to the end: the control
    assert polished(Prospect(worth=worth / 250))[1] >= 300


def test_the_mark_is_kept_with_the_state() -> None:
    prospect = Prospect(worth=0.5 * WHOLE[-1])
    assert polished(prospect, stop_at=40)[:2] == polished(prospect)[:2]


@pytest.mark.parametrize(
    ("value", "before", "left", "settled"),
    [(1.0, 1.1, 50, True), (1.0, 1.3, 50, False), (1.0, 1.0, 50, True), (0.5, 0.5, 50, False), (1.0, 1.1, 0, False)],
    ids=["too slow", "fast enough", "standing still", "there already", "nothing to be spared"],
)
def test_the_pace_since_the_last_mark_decides(value: float, before: float, left: int, *, settled: bool) -> None:
    assert Prospect(goal=0.6).is_settled(value, before, made=25, left=left) == settled


@pytest.mark.parametrize("wrong", [{"every": 0}, {"first": -1}, {"worth": -1.0}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="needs every > 0, first >= 0 and worth >= 0"):
        dataclasses.replace(NONE_NEEDED, **wrong)
