"""Dimensions taken away one by one: through the least number that will do, as low as training ends that began there."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from isthmus import tasks
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.kinds.family import DESCENDED
from isthmus.discovery.remedies.training import descended
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import Tracker, UnitRunner
from isthmus.discovery.work.unit import Session, silent
from isthmus.training.losses import SQUARED
from isthmus.training.solvers.solver import LBFGS

DIMENSION, RIDGE = 3, 1e-3


@pytest.fixture(scope="module")
def search() -> Search:
    """A short search over a curved plane, which leaves its first curve too high at the rank that would do."""
    settings = replace(Settings().scaled_to(224), ridges=(RIDGE, RIDGE / 3), starts=("linear",))
    search = Search(plane()[0], settings, UnitRunner(None, Tracker(silent, 1)))
    search.run()
    return search


def plane() -> tuple[Problem, torch.Tensor]:
    """The standardised data, and its first directions: those that the coordinates are read off by."""
    task = tasks.curved_plane(dimension=DIMENSION, num_columns=8, num_samples=200, seed=1)
    inputs, targets = Standardiser.of(task.x), Standardiser.of(task.x, total=True)
    problem = pose(task.x, task.x, np.arange(200) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)
    assert task.latent is not None
    x = problem.x.double().numpy()
    rows = np.linalg.lstsq(x, task.latent[np.arange(200) % 5 != 2] - task.latent.mean(0), rcond=None)[0]
    return problem, torch.from_numpy(np.linalg.qr(rows)[0].T).to(problem.x.dtype)


def objective_from_the_truth(search: Search) -> float:
    """Where training ends that began at the true coordinates."""
    family, directions = search.size.family, plane()[1]
    assert isinstance(family, Connected)
    encoder = family.settings.encoder
    network = family.narrow(DIMENSION, middle=family.settings.linear_layers)
    with torch.no_grad():
        first = [weight.mul_(0.03) for weight in network.weights[: encoder.layers + 1]]
        encoder.add_linear_map(first, directions, torch.eye(DIMENSION))
    solver = (family.adam(500, 1e-3), LBFGS(1000))
    return family.trained(network, search.trained.ridge, solver, Session()).objective


@pytest.mark.slow
def test_it_ends_as_low_as_a_start_at_the_true_coordinates_and_one_below_what_is_read(search: Search) -> None:
    before, ridge = search.trained.curves, search.trained.ridge
    after = descended(search.size, search.trained, DIMENSION + 2, DIMENSION + 1, name="descent-0")
    found = after[ridge][DIMENSION]
    assert found.kind == DESCENDED, "it goes on below the lowest that was asked for, while that is read"
    assert found.objective <= 1.05 * objective_from_the_truth(search)
    for at, curve in before.items():
        for rank, minimum in curve.items():
            assert after[at][rank].objective <= minimum.objective
    fewer = after[ridge][DIMENSION - 1]
    assert fewer.objective > 1.2 * found.objective, "one dimension fewer cannot do"
    assert after[ridge][1].kind != DESCENDED, "so that two fewer are not tried"
