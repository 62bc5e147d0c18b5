"""Pictures of moving things: their physics, what a row shows, and that states can be told apart."""

import numpy as np
import pytest

from isthmus.tasks import pictures
from isthmus.tasks.scenes import (
    REST,
    SCENES,
    STIFF,
    double_force,
    draw,
    elastic_force,
    moved,
    pendulum_force,
)

RNG = np.random.default_rng(0)


def pendulum_energy(s: np.ndarray) -> np.ndarray:
    return s[:, 1] ** 2 / 2 - np.cos(s[:, 0])


def double_energy(s: np.ndarray) -> np.ndarray:
    a, b, u, v = s.T
    return u**2 + v**2 / 2 + u * v * np.cos(a - b) - 2 * np.cos(a) - np.cos(b)


def elastic_energy(s: np.ndarray) -> np.ndarray:
    a, px, py, u, vx, vy = s.T
    length = np.hypot(px - np.sin(a), py + np.cos(a))
    return (u**2 + vx**2 + vy**2) / 2 - np.cos(a) + py + STIFF / 2 * (length - REST) ** 2


@pytest.mark.parametrize(
    ("scene", "force", "energy"),
    [
        ("pendulum", pendulum_force, pendulum_energy),
        ("double pendulum", double_force, double_energy),
        ("elastic pendulum", elastic_force, elastic_energy),
    ],
)
def test_motions_keep_their_energy(scene: str, force: object, energy: object) -> None:
    begun = SCENES[scene].states(RNG, 40)
    before, after = energy(begun), energy(moved(force, begun, 5.0))  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert after == pytest.approx(before, abs=1e-6)
    assert float(np.abs(moved(force, begun, 5.0) - begun).max()) > 0.1  # pyright: ignore[reportArgumentType]
    pushed = begun.copy()
    pushed[:, -1] += 0.1
    assert np.abs(energy(pushed) - before).max() > 1e-3  # pyright: ignore[reportCallIssue]


def test_a_bob_is_brightest_where_it_is() -> None:
    image = draw(np.array([[[0.6, -0.6]]]), 5).reshape(5, 5)  # pixels at -1.2, -0.6, 0, 0.6, 1.2
    assert np.unravel_index(image.argmax(), image.shape) == (1, 3)
    assert image.max() == pytest.approx(1.0)


@pytest.mark.parametrize("scene", SCENES)
def test_pictures_show_their_states(scene: str) -> None:
    task = pictures(scene, side=8, num_samples=100, noise=0.0, seed=1)
    kind = SCENES[scene]
    assert task.x.shape == (100, 64 * kind.frames) == (100, len(task.x_names))
    assert (task.true_rank, task.jacobian_rank, task.y) == (kind.rank, kind.local, None)
    assert task.latent is not None
    seen = kind.bobs(task.latent)
    assert np.abs(seen).max() < 1.2
    # states that lie apart are told apart: no two rows are nearly the same where the bobs or their speeds are not
    rows = np.linalg.norm(task.x[:, None] - task.x[None], axis=2)
    places = np.linalg.norm((seen[:, None] - seen[None]).reshape(100, 100, -1), axis=2)
    assert rows[places > 0.3].min() > 0.1
    assert np.array_equal(pictures(scene, num_samples=100, noise=0.0, seed=1).x, task.x)
    assert float(np.abs(pictures(scene, num_samples=100, seed=1).x - task.x).std()) == pytest.approx(0.006, rel=0.3)


def test_two_frames_show_speeds_that_one_does_not() -> None:
    kind, still = SCENES["pendulum"], np.array([[0.3, 0.0], [0.3, 1.5]])
    assert kind.later is not None
    now, then = (draw(kind.bobs(s), 8) for s in (still, kind.later(still, 0.3)))
    assert np.abs(now[0] - now[1]).max() < 1e-12
    assert np.abs(then[0] - then[1]).max() > 0.1


@pytest.mark.parametrize(("scene", "side"), [("comet", 8), ("disk", 3)])
def test_what_cannot_be_drawn_is_refused(scene: str, side: int) -> None:
    with pytest.raises(ValueError, match="needs"):
        pictures(scene, side=side)
