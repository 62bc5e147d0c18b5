"""Losses along gradient descent depend on two numbers of the starting point."""

import numpy as np
import pytest

from isthmus import tasks
from isthmus.tasks.symmetry import descent_losses
from tolerances import rounding

ETA, STEPS = 0.02, 30


def recursion_losses(latent: np.ndarray, factor: float = 4.0) -> np.ndarray:
    """Losses by the closed recursion of (a^2, b^2)."""
    a2, b2 = latent.T
    losses: list[np.ndarray] = []
    for _ in range(STEPS):
        r = a2 + b2
        a2, b2 = a2 * (1 - factor * ETA * (r - 1)) ** 2, b2 * (1 - factor * ETA * r) ** 2
        losses.append((a2 + b2) ** 2 - 2 * a2 + 1)
    return np.stack(losses, axis=1)


@pytest.mark.theorem("FC-51")
def test_the_recursion_of_two_numbers_gives_every_loss() -> None:
    task = tasks.gradient_descent_symmetry(num_samples=200)
    assert task.latent is not None
    tolerance = rounding(size=STEPS, condition=float(np.abs(task.target).max()))
    assert np.abs(recursion_losses(task.latent) - task.target).max() < tolerance
    assert np.abs(recursion_losses(task.latent, factor=2.0) - task.target).max() > 1e-2
    assert task.true_rank == task.jacobian_rank == 2


@pytest.mark.theorem("FC-51")
def test_noise_in_the_matrix_breaks_the_recursion_by_its_size() -> None:
    task = tasks.gradient_descent_symmetry(num_samples=200, noise=1e-3)
    assert task.latent is not None
    assert 1e-4 < np.abs(recursion_losses(task.latent) - task.target).max() < 1
    assert task.jacobian_rank is None


@pytest.mark.theorem("FC-51")
def test_the_jacobian_has_rank_two() -> None:
    rng = np.random.default_rng(0)
    w = np.eye(6)[0]
    point, step = 0.5 * rng.standard_normal(6), 1e-6
    around = np.concatenate([point + step * np.eye(6), point - step * np.eye(6)])

    def singular_values(target: np.ndarray) -> np.ndarray:
        losses = descent_losses(around, target, step_size=ETA, num_steps=STEPS)
        return np.linalg.svd((losses[:6] - losses[6:]) / (2 * step), compute_uv=False)

    symmetric, generic = singular_values(np.outer(w, w)), singular_values(np.diag([1.0, 0.8, 0.6, 0.4, 0.2, 0.0]))
    # central differences are right to eps / step
    assert symmetric[1] > 0.1
    assert symmetric[2] < 1e-8
    assert generic[2] > 1e-3


def test_a_step_that_diverges_is_refused() -> None:
    with pytest.raises(ValueError, match="diverges"):
        tasks.gradient_descent_symmetry(num_samples=10, step_size=10.0)


def test_one_step_has_no_two_coordinates() -> None:
    with pytest.raises(ValueError, match="both at least 2"):
        tasks.gradient_descent_symmetry(num_steps=1)
