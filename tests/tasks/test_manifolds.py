"""Manifolds: their local, bottleneck and flat ranks, each by its own witness."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from isthmus import tasks
from isthmus.tasks import manifolds
from isthmus.tasks.manifolds import crosses_itself
from tolerances import rounding

MANIFOLDS: dict[str, tuple[Callable[..., tasks.Task], Callable[[Tensor], Tensor]]] = {
    "helix": (tasks.helix, manifolds.helix_map),
    "swiss_roll": (tasks.swiss_roll, manifolds.swiss_roll_map),
    "circle": (tasks.circle, manifolds.circle_map),
    "torus": (tasks.torus, manifolds.torus_map),
    "sphere": (tasks.sphere, manifolds.sphere_map),
}
RANKS = {"helix": (1, 1, 3), "swiss_roll": (2, 2, 3), "circle": (1, 2, 2), "torus": (2, 3, 3), "sphere": (2, 3, 3)}


@pytest.mark.parametrize("name", MANIFOLDS)
def test_local_and_flat_ranks_are_those_of_the_points(name: str) -> None:
    make, parametrisation = MANIFOLDS[name]
    task = make(num_samples=200)
    local, deep, flat = RANKS[name]
    assert (task.jacobian_rank, task.true_rank, task.flat_rank) == (local, deep, flat)
    assert task.latent is not None
    some = torch.from_numpy(task.latent[:20])
    jacobians = torch.stack([torch.autograd.functional.jacobian(parametrisation, s) for s in some])  # type: ignore[no-untyped-call]
    assert set(torch.linalg.matrix_rank(jacobians, rtol=rounding(size=10)).tolist()) == {local}
    assert np.linalg.matrix_rank(task.x - task.x.mean(0), rtol=rounding(size=200)) == flat
    np.testing.assert_array_equal(task.x, parametrisation(torch.from_numpy(task.latent)).numpy())


def winds(code: np.ndarray) -> float:
    """Largest jump of a code between neighbours on a closed loop, against its range: about 1 when the loop is cut."""
    return float(np.abs(np.diff(code, append=code[:1])).max() / np.ptp(code))


def test_the_helix_and_the_roll_pass_through_their_rank() -> None:
    helix, roll = tasks.helix(), tasks.swiss_roll()
    np.testing.assert_allclose(manifolds.helix_map(torch.from_numpy(4 * helix.x[:, 2:])), helix.x, atol=1e-12)
    code = np.stack([np.hypot(roll.x[:, 0], roll.x[:, 1]), roll.x[:, 2]], axis=1)
    np.testing.assert_allclose(manifolds.swiss_roll_map(torch.from_numpy(code)), roll.x, atol=1e-11)
    wrong = manifolds.helix_map(torch.from_numpy(4.2 * helix.x[:, 2:])).numpy()
    assert np.abs(wrong - helix.x).max() > 0.1


def test_a_circle_in_one_number_is_cut_or_folded() -> None:
    t = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    points = manifolds.circle_map(torch.from_numpy(t[:, None])).numpy()
    assert winds(np.arctan2(points[:, 1], points[:, 0])) > 0.99  # one-to-one, but cut
    assert winds(points[:, 0]) < 0.01  # continuous, but the halves fall together
    np.testing.assert_allclose(points[1:500, 0], points[:500:-1, 0], atol=1e-12)


@pytest.mark.theorem("FC-49")
@pytest.mark.parametrize("seed", range(4))
def test_the_random_curve_bends_and_does_not_cross_itself(seed: int) -> None:
    task = tasks.curve_autoencoder(num_samples=300, seed=seed)
    assert task.latent is not None
    in_order = task.x[np.argsort(task.latent[:, 0])]
    assert not crosses_itself(in_order)
    assert np.linalg.matrix_rank(task.x - task.x.mean(0), rtol=rounding(size=300)) == task.flat_rank == 2
    assert (task.jacobian_rank, task.true_rank) == (1, 1)


def test_crossings_are_seen() -> None:
    t = np.linspace(0.5, 2 * np.pi + 0.4, 40)
    assert crosses_itself(np.stack([np.sin(t), np.sin(2 * t)], axis=1))
    assert not crosses_itself(np.stack([np.cos(t), np.sin(t)], axis=1))
    assert not crosses_itself(np.array([[0.0, 0.0], [1.0, 0.0]]))


def test_the_cube_is_turned_and_keeps_its_distances() -> None:
    task = tasks.cube(dimension=3, num_columns=7, num_samples=40, seed=2)
    assert task.latent is not None
    assert task.x.shape == (40, 7)
    assert (task.jacobian_rank, task.true_rank, task.flat_rank) == (3, 3, 3)
    assert np.linalg.matrix_rank(task.x - task.x.mean(0), rtol=rounding(size=40)) == 3
    apart = [np.linalg.norm(v[:, None] - v, axis=2) for v in (task.x, task.latent)]
    np.testing.assert_allclose(apart[0], apart[1], atol=1e-14)
    assert (np.abs(task.x).min(0) > 0).all(), "no column is idle"
    with pytest.raises(ValueError, match="1 <= dimension <= num_columns"):
        tasks.cube(dimension=8, num_columns=7)


def test_a_curved_plane_is_read_off_linearly_and_fills_all_columns() -> None:
    task = tasks.curved_plane(dimension=3, num_columns=10, num_samples=300, seed=2)
    assert task.latent is not None
    off = task.latent - task.x @ np.linalg.lstsq(task.x, task.latent, rcond=None)[0]
    assert float(np.abs(off).max()) < 1e-9
    assert np.linalg.matrix_rank(task.x - task.x.mean(0), tol=rounding(size=300)) == task.flat_rank == 10
    assert task.true_rank == task.jacobian_rank == 3
    with pytest.raises(ValueError, match="1 <= dimension < num_columns"):
        tasks.curved_plane(dimension=10, num_columns=10)
