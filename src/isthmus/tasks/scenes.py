"""Pictures of moving things, from their physics: rows of pixels whose states are known. Their frames: `draw`.

A state is drawn as Gaussian bobs on a square grid of pixels. One frame shows where things are, two frames a moment
apart also how fast they move. The rank of autoencoding is the least dimension that a deep network can bring the
states into without gluing two of them together: closed motions need one dimension more than they have locally.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float64

from isthmus.tasks.task import Kind, Task

Array = Float64[np.ndarray, "..."]
Force = Callable[[float, Array], Array]
RADIUS = 0.24  # of a bob, as the standard deviation of its brightness
STEP = 0.3  # time between two frames
EVERY, BEGIN = 0.7, 3.0  # time between two states of one motion, and before the first
MOTION = 10  # states that are taken from one motion


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of thing that moves.

    Attributes:
        words: what is seen.
        rank: bottleneck rank of its states; `local` their dimension.
        frames: that show a state.
        states: draws states, rows, by a generator.
        bobs: where the bobs of states are, (n, bobs, 2) in [-1, 1]^2.
        later: the states a time later; None where nothing moves.
    """

    words: str
    rank: int
    local: int
    frames: int
    states: Callable[[np.random.Generator, int], Array]
    bobs: Callable[[Array], Array]
    later: Callable[[Array, float], Array] | None = None


def pictures(
    scene: str = "circle", *, side: int = 8, num_samples: int = 600, noise: float = 0.01, seed: int = 0
) -> Task:
    """Autoencoding of pictures of a moving thing; the ranks are those without noise.

    Args:
        scene: a name of `SCENES`.
        side: pixels on each side, at least 4; a row has side^2 pixels for each frame.
        num_samples: rows.
        noise: standard deviation of noise on each pixel, whose brightness is at most 1 a bob.
        seed: of states and noise.

    Raises:
        ValueError: no such scene, or fewer pixels.

    >>> task = tasks.pictures("pendulum", side=6, num_samples=20)
    >>> task.x.shape, task.true_rank
    ((20, 72), 2)
    """
    if scene not in SCENES:
        raise ValueError(f"pictures(scene={scene!r}): needs one of {', '.join(SCENES)}.")
    if side < 4:
        raise ValueError(f"pictures(side={side}): needs at least 4 pixels on each side.")
    kind, rng = SCENES[scene], np.random.default_rng(seed)
    states = kind.states(rng, num_samples)
    moments = [
        states if number == 0 or kind.later is None else kind.later(states, STEP) for number in range(kind.frames)
    ]
    x = np.concatenate([draw(kind.bobs(moment), side) for moment in moments], axis=1)
    x = x + noise * rng.standard_normal(x.shape)
    names = [
        f"pixel {i}" if kind.frames == 1 else f"frame {f} pixel {i}" for f in range(kind.frames) for i in range(side**2)
    ]
    source = f"pictures({scene!r}, side={side}, num_samples={num_samples}, noise={noise:g}, seed={seed})"
    return Task(
        x, None, kind.rank, source, Kind.AUTOENCODING, x_names=tuple(names), latent=states, jacobian_rank=kind.local
    )


def draw(bobs: Array, side: int) -> Array:
    """Gaussian bobs (n, bobs, 2) on a grid of side x side pixels of [-1.2, 1.2]^2, as rows."""
    axis = np.linspace(-1.2, 1.2, side)
    across, along = (np.exp(-((axis - bobs[..., i, None]) ** 2) / (2 * RADIUS**2)) for i in (0, 1))
    return np.einsum("nbi,nbj->nij", along, across).reshape(len(bobs), -1)


def moved(force: Force, states: Array, time: float) -> Array:
    """States a time later, by Dormand and Prince's method of order 8 to 1e-9."""
    from scipy.integrate import solve_ivp  # no other task needs it

    found = solve_ivp(
        lambda t, y: force(t, y.reshape(states.shape[::-1])).ravel(), (0.0, time), states.T.ravel(),
        method="DOP853", rtol=1e-9, atol=1e-9, t_eval=[time],
    )  # fmt: skip
    return found.y[:, -1].reshape(states.shape[::-1]).T


def along_motions(force: Force, begin: Callable[[np.random.Generator, int], Array]) -> Callable[..., Array]:
    """Draws states that motions pass, some from each."""

    def drawn(rng: np.random.Generator, count: int) -> Array:
        states = moved(force, begin(rng, -(-count // MOTION)), BEGIN)
        found = [states]
        for _ in range(MOTION - 1):
            found.append(moved(force, found[-1], EVERY))
        return np.concatenate(found)[:count]

    return drawn


def pendulum_force(_t: float, y: Array) -> Array:
    """Angle from below and its velocity: a'' = -sin a."""
    return np.stack([y[1], -np.sin(y[0])])


def double_force(_t: float, y: Array) -> Array:
    """Two angles and their velocities: bobs of mass 1 on rods of length 1 under gravity 1."""
    a, b, u, v = y
    c, s = np.cos(a - b), np.sin(a - b)
    below = 2 - c**2
    first = (-c * s * u**2 - s * v**2 - 2 * np.sin(a) + c * np.sin(b)) / below
    second = (c * s * v**2 + 2 * s * u**2 + 2 * c * np.sin(a) - 2 * np.sin(b)) / below
    return np.stack([u, v, first, second])


STIFF, REST = 6.0, 0.8  # of the spring between the bobs of the elastic pendulum


def elastic_force(_t: float, y: Array) -> Array:
    """Angle of a rod of length 1, place of a bob that hangs on its end by a spring, and their velocities."""
    a, px, py, u, vx, vy = y
    dx, dy = px - np.sin(a), py + np.cos(a)
    length = np.hypot(dx, dy)
    pull = STIFF * (length - REST) / length
    turn = pull * (dx * np.cos(a) + dy * np.sin(a)) - np.sin(a)
    return np.stack([u, vx, vy, turn, -pull * dx, -pull * dy - 1.0])


def _angle(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(0, 2 * math.pi, (n, 1))


def _disk(rng: np.random.Generator, n: int) -> Array:
    return np.sqrt(rng.uniform(size=(n, 1))) * 0.8 * _ring(_angle(rng, n))


def _ring(angle: Array) -> Array:
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def _hanging(angle: Array) -> Array:
    return np.stack([np.sin(angle), -np.cos(angle)], axis=-1)


def _double_bobs(y: Array) -> Array:
    first = 0.5 * _hanging(y[:, 0])
    return np.stack([first, first + 0.5 * _hanging(y[:, 1])], axis=1)


def _elastic_bobs(y: Array) -> Array:
    return 0.45 * np.stack([_hanging(y[:, 0]), y[:, 1:3]], axis=1)


def _swinging(rng: np.random.Generator, n: int) -> Array:
    return np.stack([rng.uniform(-math.pi, math.pi, n), rng.uniform(-2, 2, n)], axis=1)


def _two_angles(rng: np.random.Generator, n: int) -> Array:
    return np.concatenate([rng.uniform(-1.2, 1.2, (n, 2)), rng.uniform(-0.5, 0.5, (n, 2))], axis=1)


def _stretched(rng: np.random.Generator, n: int) -> Array:
    a, b = rng.uniform(-0.8, 0.8, (2, n))
    place = _hanging(a) + rng.uniform(0.8, 1.2, (n, 1)) * _hanging(b)
    return np.column_stack([a, place, 0.3 * rng.standard_normal((n, 3))])


SCENES: Mapping[str, Scene] = MappingProxyType(
    {
        "circle": Scene("a bob on a circle", 2, 1, 1, _angle, lambda s: 0.7 * _ring(s)[:, None]),
        "ellipse": Scene(
            "a bob on an ellipse", 2, 1, 1, _angle, lambda s: (np.array([0.8, 0.5]) * _ring(s))[:, None]
        ),
        "disk": Scene("a bob in a disk", 2, 2, 1, _disk, lambda s: s[:, None]),
        "two bobs": Scene(
            "a bob in each of two squares", 4, 4, 1, lambda rng, n: rng.uniform(-0.35, 0.35, (n, 4)),
            lambda s: s.reshape(-1, 2, 2) + np.array([[-0.5, -0.5], [0.5, 0.5]]),
        ),
        "pendulum": Scene(
            "a pendulum, two frames", 2, 2, 2, along_motions(pendulum_force, _swinging),
            lambda s: _hanging(s[:, 0])[:, None], lambda s, time: moved(pendulum_force, s, time),
        ),
        "double pendulum": Scene(
            "a double pendulum, two frames", 4, 4, 2, along_motions(double_force, _two_angles), _double_bobs,
            lambda s, time: moved(double_force, s, time),
        ),
        "elastic pendulum": Scene(
            "a double pendulum with a spring, two frames", 6, 6, 2, along_motions(elastic_force, _stretched),
            _elastic_bobs, lambda s, time: moved(elastic_force, s, time),
        ),
    }
)  # fmt: skip
