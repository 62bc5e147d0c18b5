"""Which ranks of a start are trained, and which are the network of a smaller rank."""

import dataclasses

import pytest
import torch

from isthmus import tasks
from isthmus.discovery.arguments import checked_data
from isthmus.discovery.curves import Result, flat_parameters, network_of, truncated
from isthmus.discovery.ladder import Ladder, spare_rank
from isthmus.discovery.problem import Problem
from isthmus.discovery.request import posed
from isthmus.discovery.settings import Settings
from isthmus.discovery.splitting import heldout_rows
from isthmus.discovery.starts import new_network
from isthmus.training.moves import truncate_middle

SETTINGS = Settings(width=10, linear_width=6)


@pytest.fixture(scope="module")
def problem() -> Problem:
    task = tasks.teacher(2, d_in=12, d_out=8, num_samples=60, latent_dim=5, seed=0)
    data = checked_data(task.x, task.y, "squared", None)
    found = posed(data, heldout_rows(60, seed=0, fraction=0.2, groups=None, ordered=False), SETTINGS)
    assert found is not None
    return found


def taught(problem: Problem, rank: int) -> tuple[Problem, Result]:
    """Random weights whose middle has this rank, and the problem that they solve."""
    network = new_network(problem.d_in, problem.d_out, SETTINGS, seed=3)
    truncate_middle(network, rank)
    with torch.no_grad():
        solved = dataclasses.replace(problem, y=network(problem.x))
    ridge = 1e-9
    return solved, {"theta": flat_parameters(network), "ridge": ridge, "objective": solved.objective(network, ridge)}


@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_every_rank_above_that_of_the_middle_is_spare(problem: Problem, rank: int) -> None:
    solved, base = taught(problem, rank)
    assert spare_rank(solved, SETTINGS, base, 6) == rank


def test_no_rank_is_spare_where_the_objective_rises_at_once(problem: Problem) -> None:
    solved, base = taught(problem, 3)
    assert spare_rank(solved, SETTINGS, base | {"objective": 0.0}, 6) == 6


def test_the_network_of_the_spare_rank_stands_at_all_larger_ranks() -> None:
    base = {"ridge": 1e-3}
    low, spare = {"rank": 1, "objective": 0.4}, {"rank": 2, "objective": 0.2}
    assert Ladder(base, spare=2, most=4).filled({2: spare, 1: low}) == {1: low, 2: spare, 3: spare, 4: spare}
    assert list(Ladder(base, spare=2, most=4).filled({2: spare, 1: low})) == [1, 2, 3, 4]
    assert Ladder(base, spare=2, most=4).filled({1: low}) == {1: low}


def test_ranks_above_the_spare_one_count_only_where_the_largest_gains() -> None:
    ladder = Ladder({"ridge": 1e-3}, spare=2, most=4)
    assert ladder.gains({2: {"objective": 0.2}, 4: {"objective": 0.19}})
    assert not ladder.gains({2: {"objective": 0.2}, 4: {"objective": 0.1995}})
    assert not ladder.gains({2: {"objective": 0.2}, 4: {"objective": 0.21}})
    assert not ladder.gains({4: {"objective": 0.1}})
    assert not Ladder({"ridge": 1e-3}, spare=4, most=4).gains({4: {"objective": 0.1}})


def test_the_objective_of_a_problem_is_the_one_that_training_minimises(problem: Problem) -> None:
    network = new_network(problem.d_in, problem.d_out, SETTINGS, seed=3)
    exact = network.double()
    error = (exact(problem.x.double()) - problem.y.double()).square().sum(1).mean()
    penalty = sum(float(p.detach().square().sum()) for p in exact.parameters())
    assert problem.objective(network, 0.1) == pytest.approx(float(error.detach()) + 0.1 * penalty, rel=1e-9)


def test_a_truncation_gives_back_the_network_that_was_polished(problem: Problem) -> None:
    """It is polished with as many middle neurons as its rank, and kept in the layout of the start."""
    solved, base = taught(problem, 3)
    settings = dataclasses.replace(SETTINGS, polish_evaluations=20)
    found = truncated(
        solved, settings, base, rank=2, seconds=None, checkpoint=None, callback=lambda _: False
    )  # fmt: skip
    assert len(found["theta"]) == len(base["theta"])
    network = network_of(solved, settings, found["theta"])
    assert solved.objective(network, base["ridge"]) == pytest.approx(found["objective"], rel=1e-9)
    before = network_of(solved, settings, base["theta"])
    truncate_middle(before, 2)
    assert found["objective"] < 0.999 * solved.objective(before, base["ridge"])
