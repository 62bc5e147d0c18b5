"""Fully connected networks in a discovery: their layout, the linear start, truncations, and what stands for a rank."""

import dataclasses

import pytest
import torch

from isthmus import tasks
from isthmus.discovery.choices import GAIN
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.kinds import connected as kind
from isthmus.discovery.kinds.connected import reduced_rank_map
from isthmus.discovery.minimum import Minimum, flat_parameters
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected
from isthmus.training.moves import truncate_middle
from isthmus.training.solvers.prospect import NONE_NEEDED
from minima import connected, minimum, noise_problem
from tolerances import rounding

SETTINGS = Settings(width=10, linear_width=6)
NUM_SAMPLES, D_IN, D_OUT = 80, 7, 5
CURVE = {r: minimum(1.0 / r, rank=r) for r in (2, 3, 5)}


@pytest.mark.parametrize(("rank", "stands"), [(3, 3), (4, 3), (9, 5), (1, 2)], ids=["itself", "gap", "above", "below"])
def test_the_next_lower_rank_stands_for_one_that_diverged(rank: int, stands: int) -> None:
    assert connected(SETTINGS).shown([minimum(0.3)], CURVE, rank).rank == stands


def test_the_network_has_linear_layers_in_the_middle() -> None:
    settings = Settings(relu_layers=2, linear_layers=3, width=10, linear_width=6)
    family = connected(settings, d_in=D_IN, d_out=D_OUT)
    network = family.new(seed=0)
    assert network.dimensions == (D_IN, 10, 10, 6, 6, 6, 10, 10, D_OUT)
    assert network.linear == {3, 4, 5}
    assert network.depth == settings.depth
    again, other = (family.new(seed=seed) for seed in (0, 1))
    assert torch.equal(network.weights[0], again.weights[0])
    assert not torch.equal(network.weights[0], other.weights[0])


def test_a_narrow_middle_hands_its_coordinates_on() -> None:
    network = connected(Settings(relu_layers=2, width=10)).narrow(2, middle=3)
    assert network.dimensions == (5, 10, 10, 2, 2, 2, 10, 10, 3)
    assert all(torch.equal(network.weights[l], torch.eye(2)) for l in (3, 4))
    assert not torch.equal(network.weights[5][:2], torch.eye(2))


def regression() -> Problem:
    """Rows in float64, so that what is exact can be told from what is not."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NUM_SAMPLES, D_IN, generator=generator, dtype=torch.float64)
    y = x @ torch.randn(D_IN, D_OUT, generator=generator, dtype=torch.float64)
    y = y + torch.randn(NUM_SAMPLES, D_OUT, generator=generator, dtype=torch.float64)
    return dataclasses.replace(noise_problem(D_IN, D_OUT), x=x - x.mean(0), y=y - y.mean(0))


def started(settings: Settings) -> FullyConnected:
    family = connected(settings, regression())
    network = family.new(seed=3).double()
    family.start_linear(network)
    return network.requires_grad_(False)


@pytest.mark.parametrize(("relu_layers", "linear_layers"), [(3, 4), (1, 1), (2, 1), (1, 3), (0, 2)], ids=str)
def test_without_noise_the_network_is_the_linear_map(
    relu_layers: int, linear_layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(relu_layers=relu_layers, linear_layers=linear_layers, width=20, linear_width=9)
    x, y = regression().x, regression().y
    least_squares = torch.linalg.solve(x.T @ x, x.T @ y)
    allowed = rounding(size=NUM_SAMPLES, condition=float((x @ least_squares).abs().max()))
    elsewhere = -2 * x
    noisy = started(settings)
    assert float((noisy(elsewhere) - elsewhere @ least_squares).abs().max()) > 1e6 * allowed
    monkeypatch.setattr(kind, "LINEAR_START_NOISE", 0.0)
    network = started(settings)
    assert float((network(x) - x @ least_squares).abs().max()) <= allowed
    assert float((network(elsewhere) - elsewhere @ least_squares).abs().max()) <= 2 * allowed


@pytest.mark.parametrize(("width", "linear_width"), [(20, 2), (5, 9)], ids=["linear", "relu"])
def test_a_narrow_network_keeps_the_leading_directions(
    width: int, linear_width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "LINEAR_START_NOISE", 0.0)
    network = started(Settings(width=width, linear_width=linear_width))
    x, y = regression().x, regression().y
    coordinates, back = reduced_rank_map(x, y)
    expected = x @ coordinates[:, :2] @ back[:, :2].T
    assert float((network(x) - expected).abs().max()) <= rounding(size=NUM_SAMPLES, condition=10.0)
    assert float((network(x) - x @ coordinates @ back.T).abs().max()) > 1e-3


@pytest.fixture(scope="module")
def problem() -> Problem:
    task = tasks.teacher(2, d_in=12, d_out=8, num_samples=60, latent_dim=5, seed=0)
    data = checked_data(task.x, task.y, "squared", None)
    found = Sample.of(data, SETTINGS).posed(SETTINGS)
    assert found is not None
    return found


def taught(problem: Problem, rank: int) -> tuple[Problem, Minimum]:
    """Random weights whose middle has this rank, and the problem that they solve."""
    network = connected(SETTINGS, problem).new(seed=3)
    truncate_middle(network, rank)
    with torch.no_grad():
        solved = dataclasses.replace(problem, y=network(problem.x))
    ridge = 1e-9
    return solved, minimum(solved.objective(network, ridge), ridge=ridge, theta=flat_parameters(network))


@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_every_rank_above_that_of_the_middle_is_spare(problem: Problem, rank: int) -> None:
    solved, base = taught(problem, rank)
    assert connected(SETTINGS, solved).spare_rank(base, 6) == rank


def test_no_rank_is_spare_where_the_objective_rises_at_once(problem: Problem) -> None:
    solved, base = taught(problem, 3)
    assert connected(SETTINGS, solved).spare_rank(dataclasses.replace(base, objective=0.0), 6) == 6


def test_the_objective_of_a_problem_is_the_one_that_training_minimises(problem: Problem) -> None:
    network = connected(SETTINGS, problem).new(seed=3)
    exact = network.double()
    error = (exact(problem.x.double()) - problem.y.double()).square().sum(1).mean()
    penalty = sum(float(p.detach().square().sum()) for p in exact.parameters())
    assert problem.objective(network, 0.1) == pytest.approx(float(error.detach()) + 0.1 * penalty, rel=1e-9)


def test_a_truncation_gives_back_the_network_that_was_polished(problem: Problem) -> None:
    """It is polished with as many middle neurons as its rank, and kept in the layout of the start."""
    solved, base = taught(problem, 3)
    family = connected(dataclasses.replace(SETTINGS, polish_evaluations=20), solved)
    found = family.truncated(Session(), base=base, rank=2)
    assert len(found.theta) == len(base.theta)
    assert solved.objective(family.network_of(found), base.ridge) == pytest.approx(found.objective, rel=1e-9)
    before = family.network_of(base)
    truncate_middle(before, 2)
    assert found.objective < 0.999 * solved.objective(before, base.ridge)


@pytest.mark.parametrize(
    ("sides", "autoencoding", "ends"),
    [({}, False, True), ({}, True, False), ({"encoder_side": "linear"}, False, False)],
)
def test_trainings_end_early_only_where_descents_were_measured(
    sides: dict[str, str],
    autoencoding: bool,
    ends: bool,  # noqa: FBT001
) -> None:
    """Not of data that are autoencoded: an arc was in doubt that is unrolled after its objective has stood still."""
    problem = dataclasses.replace(noise_problem(D_IN, D_OUT), autoencoding=autoencoding)
    settings = dataclasses.replace(SETTINGS, encoder_side=sides.get("encoder_side", SETTINGS.encoder_side))
    prospect = connected(settings, problem).prospect(2.0, goal=2.2)
    assert (prospect != NONE_NEEDED) == ends
    if ends:
        assert prospect.goal == pytest.approx(2.2)
        assert prospect.worth == pytest.approx(2.0 * GAIN)
