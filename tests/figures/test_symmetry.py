import numpy as np

from isthmus import tasks
from isthmus.figures.symmetry import STEP, crossings, descents, explained, signal


def test_the_signal_and_the_descent_are_those_of_the_task() -> None:
    made = tasks.gradient_descent_symmetry(dimension=4, num_steps=5, num_samples=40, step_size=STEP)
    assert made.latent is not None
    w = signal(made.x, made.latent[:, 0])
    np.testing.assert_allclose((made.x @ w) ** 2, made.latent[:, 0], atol=1e-9)
    last = descents(made.x, w, 5)[-1]
    loss = (last**2).sum(1) ** 2 - 2 * (last @ w) ** 2 + 1
    np.testing.assert_allclose(loss, made.target[:, -1], atol=1e-9)


def test_crossings_count_pairs_of_paths_that_cross() -> None:
    across = np.array([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[2.0, 0.0], [2.0, 1.0]]])
    assert crossings(across) == 1 / 3
    assert crossings(across[1:]) == 0.0


def test_neighbours_explain_a_bijection_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    known = rng.uniform(size=(500, 2))
    assert explained(known, known**3 + known[:, ::-1]) > 0.98
    assert explained(known, rng.uniform(size=(500, 2))) < 0.1
