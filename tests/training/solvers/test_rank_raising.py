"""A minimum stuck one rank too low is left by adding the rank; a minimum of the right rank is kept bit for bit."""

import pytest
import torch

from isthmus import FullyConnected, fit, tasks
from isthmus.training.moves import middle_rank, rebalancing, truncate_middle
from isthmus.training.solvers.rank_raising import raise_rank
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import RankTrials

RIDGE, RANK = 1e-3, 3
RAISE = RankTrials(LBFGS(200), most=1, attempt=raise_rank)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    task = tasks.teacher(RANK, d_in=12, d_out=6, latent_dim=4, num_samples=120, seed=2)
    x, y = torch.from_numpy(task.x), torch.from_numpy(task.target)
    y = (y - y.mean(0)) / y.std(0) / 6**0.5
    return ((x - x.mean(0)) / x.std(0)).float(), y.float()


def minimise(network: FullyConnected, evaluations: int) -> float:
    return fit(network, *data(), ridge=RIDGE, solver=LBFGS(evaluations)).objective


@pytest.fixture(scope="module")
def right() -> FullyConnected:
    """A minimum of the true rank."""
    network = FullyConnected(12, 6, width=[24, 24, 8, 8, 8, 24, 24], depth=8, linear=(3, 4, 5), seed=0)
    fit(network, *data(), ridge=RIDGE, solver=(Adam(250, moves=(rebalancing,), move_every=20), LBFGS(250)))
    truncate_middle(network, RANK)
    minimise(network, 350)
    return network


def copy_of(network: FullyConnected) -> FullyConnected:
    return network.rewritten(*network.written_layers())


@pytest.mark.slow
def test_a_start_stuck_one_rank_too_low_is_rescued(right: FullyConnected) -> None:
    stuck = copy_of(right)
    truncate_middle(stuck, RANK - 1)
    minimise(stuck, 200)
    # the control: as many gradients again without the trial leave the rank where it is
    control = copy_of(stuck)
    without = minimise(control, 200)
    assert middle_rank(control) == RANK - 1
    result = fit(stuck, *data(), ridge=RIDGE, solver=RAISE)
    assert result.objective < 0.9 * without
    assert middle_rank(stuck) >= RANK


def test_a_minimum_of_the_right_rank_keeps_it(right: FullyConnected) -> None:
    tried, before = copy_of(right), minimise(copy_of(right), 1)
    result = fit(tried, *data(), ridge=RIDGE, solver=RAISE)
    assert 0.93 * before < result.objective <= before
    assert middle_rank(tried) == RANK


def test_a_network_without_a_linear_run_is_left_alone() -> None:
    network = FullyConnected(12, 6, width=8, depth=4, seed=0)
    before = copy_of(network)
    fit(network, *data(), ridge=RIDGE, solver=RAISE)
    for mine, theirs in zip(network.parameters(), before.parameters(), strict=True):
        assert torch.equal(mine, theirs)
