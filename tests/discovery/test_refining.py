"""Refined halves are those of less held-out error: the refined ones, or the halves as they were cut."""

import pytest
import torch

from isthmus import tasks
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.minimum import flat_parameters
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected
from isthmus.training.solvers.solver import LBFGS
from minima import connected

SETTINGS = Settings(width=12, linear_width=4, refine_evaluations=60, refine_ridge=1e-3, heldout=0.5)
RIDGE = 3e-3


def posed_with_noise(noise: float, rows: int) -> Problem:
    task = tasks.teacher(1, d_in=10, d_out=4, num_samples=rows, latent_dim=4, noise=noise, seed=2)
    data = checked_data(task.x, task.y, "squared", None)
    found = Sample.of(data, SETTINGS).posed(SETTINGS)
    assert found is not None
    return found


def begun(problem: Problem, seed: int) -> FullyConnected:
    """A network of one coordinate, trained at the ridge."""
    family = connected(SETTINGS, problem)
    network = family.narrow(1, middle=1, seed=seed)
    family.trained(network, RIDGE, LBFGS(60), Session())
    return network


def refined_freely(problem: Problem, seed: int) -> tuple[FullyConnected, float]:
    """The same training as `refine` without the way back, and its objective."""
    network, solver = begun(problem, seed), LBFGS(SETTINGS.refine_evaluations)
    ended = connected(SETTINGS, problem).trained(network, RIDGE * SETTINGS.refine_ridge, solver, Session())
    return network, ended.objective


@pytest.mark.parametrize(("noise", "rows", "helps"), [(0.0, 300, True), (1.0, 40, False)])
def test_refining_never_raises_the_held_out_error(noise: float, rows: int, helps: bool) -> None:  # noqa: FBT001
    problem = posed_with_noise(noise, rows)
    for seed in range(8):  # the first start of the kind that is asked for
        network, (free, objective) = begun(problem, seed), refined_freely(problem, seed)
        before, parameters = problem.heldout_error(network), flat_parameters(network)
        if (problem.heldout_error(free) < before) == helps:
            break
    else:
        raise AssertionError("no start shows this case")
    ended = connected(SETTINGS, problem).refine(network, RIDGE, Session())
    # where it rises that shows after a third, and the rest is spared
    assert (ended.objective == objective) == helps
    assert (ended.gradient_evaluations < 0.5 * SETTINGS.refine_evaluations) == (not helps)
    wanted = flat_parameters(free) if helps else parameters
    assert torch.equal(flat_parameters(network), wanted)
