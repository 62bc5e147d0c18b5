"""Targets depend on the stated combinations and on nothing else, on each of them measurably."""

from typing import Any

import numpy as np
import pytest
import torch

from isthmus.tasks import Inputs, Link, gradients, multi_index
from isthmus.tasks.gradients import Strength
from isthmus.tasks.links import LinkMap
from isthmus.tasks.multi_index import LEAST_SHARE, LEAST_SLOPE, multi_index_map
from tolerances import rounding

SETTINGS: dict[str, Any] = {"d_in": 12, "num_samples": 400, "d_out": 2}


def outside(jacobians: torch.Tensor, directions: torch.Tensor) -> float:
    """Largest part of a gradient off the span of the directions, relative to the largest gradient."""
    q = torch.linalg.qr(directions.T)[0]
    return float((jacobians - jacobians @ q @ q.T).abs().max() / jacobians.abs().max())


@pytest.mark.parametrize("inputs", list(Inputs))
@pytest.mark.parametrize("link", list(Link))
def test_gradients_lie_in_the_directions_and_span_them(inputs: Inputs, link: Link) -> None:
    arguments: dict[str, Any] = SETTINGS | {"inputs": inputs, "link": link, "seed": 2}
    task, f = multi_index(3, **arguments), multi_index_map(3, **arguments)
    assert task.directions is not None
    directions = torch.from_numpy(task.directions)
    jacobians = gradients(f, torch.from_numpy(task.x))
    assert outside(jacobians, directions) <= rounding(size=100)
    assert outside(jacobians, directions[:2]) > 0.01  # the control: one direction too few
    assert (task.index_rank, task.true_rank, task.mode_rank) == (3, 2, None)
    np.testing.assert_allclose(task.directions @ task.directions.T, np.eye(3), atol=rounding(size=100))
    values = f(torch.from_numpy(task.x))
    np.testing.assert_array_equal(task.target, (values - values.mean(0)).numpy())


@pytest.mark.parametrize("link", list(Link))
@pytest.mark.parametrize("index_rank", [1, 5])
def test_the_link_that_is_kept_is_strong_in_its_weakest_direction(link: Link, index_rank: int) -> None:
    f = multi_index_map(index_rank, d_in=12, num_samples=600, link=link, seed=index_rank)
    task = multi_index(index_rank, d_in=12, num_samples=600, link=link, seed=index_rank)
    assert task.latent is not None
    z = torch.from_numpy(task.latent)
    read = Strength.of(f.link, z)
    assert read.slope >= LEAST_SLOPE
    assert read.share >= LEAST_SHARE


def test_a_first_draw_may_be_too_weak() -> None:
    z = torch.randn(600, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first = [LinkMap.random(Link.POLYNOMIAL, 5, 1, generator=torch.Generator().manual_seed(seed)) for seed in range(10)]
    assert min(Strength.of(h, z).slope for h in first) < LEAST_SLOPE


@pytest.mark.parametrize("inputs", list(Inputs))
def test_coordinates_are_white(inputs: Inputs) -> None:
    z = multi_index(3, d_in=10, num_samples=20_000, inputs=inputs, seed=1).latent
    assert z is not None
    assert np.abs(np.cov(z.T) - np.eye(3)).max() < 6 * np.sqrt(8 / 20_000)


def test_noise_is_relative_to_each_column_and_the_seed_decides() -> None:
    clean, noisy, again = (multi_index(2, **SETTINGS, noise=n, seed=4) for n in (0.0, 0.2, 0.2))
    np.testing.assert_array_equal(noisy.target, again.target)
    ratio = (noisy.target - clean.target).std(0) / clean.target.std(0)
    assert np.abs(ratio / 0.2 - 1).max() < 5 / np.sqrt(2 * 400)
    assert not np.array_equal(multi_index(2, **SETTINGS, seed=5).x, clean.x)


@pytest.mark.parametrize(
    "arguments", [{"index_rank": 0}, {"index_rank": 13}, {"noise": -1.0}, {"noise": float("inf")}, {"num_samples": 1}]
)
def test_impossible_tasks_are_refused(arguments: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"index_rank": 2} | SETTINGS | arguments
    with pytest.raises(ValueError, match="needs 1 <= index_rank <= d_in"):
        multi_index(**asked)
