"""The 24 manifolds pass exactly through as many coordinates as are claimed, and span as many directions."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import beta

from isthmus.errors import DataError
from isthmus.tasks import BENCHMARK_MANIFOLDS, benchmark_manifold
from isthmus.tasks.manifolds import crosses_itself
from tolerances import rounding

TURN = 2 * np.pi
CLOSED = {"M1_Sphere", "M5a_Helix1d", "M10a_Cubic", "M10b_Cubic", "M10c_Cubic", "M10d_Cubic"}
Map = Callable[[np.ndarray], np.ndarray]


def columns(*values: np.ndarray) -> np.ndarray:
    return np.stack(values, 1)


def angle(x: np.ndarray) -> np.ndarray:
    return np.arctan2(x[:, 1], x[:, 0]) % TURN


def radii(x: np.ndarray, d: int) -> np.ndarray:
    pairs = x[:, : 2 * d].reshape(len(x), d, 2)
    return np.roll(np.linalg.norm(pairs, axis=2), 1, axis=1)


def from_radii(p: np.ndarray, copies: int) -> np.ndarray:
    radius = np.roll(p, -1, axis=1)
    pairs = np.stack([np.cos(TURN * p), np.sin(TURN * p)], 2) * radius[..., None]
    return np.tile(pairs.reshape(len(p), -1), (1, copies))


def unpaired(x: np.ndarray, d: int) -> np.ndarray:
    return np.hypot(np.arctan(x[:, :d]), np.tan(x[:, d : 2 * d])[:, ::-1])  # (a cos b, a sin b)


def paired(a: np.ndarray) -> np.ndarray:
    b = a[:, ::-1]
    return np.hstack([np.tan(a * np.cos(b)), np.arctan(b * np.sin(a))] * 2)


def raised(a: np.ndarray) -> np.ndarray:
    x = np.hstack([a, np.square(a).sum(1, keepdims=True)])
    return np.hstack([x, np.sin(x), x**2])


def band(s: np.ndarray) -> np.ndarray:
    phi, radius = angle(s), np.hypot(*s.T)
    a = radius - 2
    out = 1 + a * np.cos(5 * phi)
    return columns(out * np.cos(phi), out * np.sin(phi), a * np.sin(5 * phi))


def on_annulus(x: np.ndarray) -> np.ndarray:
    phi = angle(x)
    a = (np.hypot(x[:, 0], x[:, 1]) - 1) * np.cos(5 * phi) + x[:, 2] * np.sin(5 * phi)
    return columns((2 + a) * np.cos(phi), (2 + a) * np.sin(phi))


def along_s(x: np.ndarray) -> np.ndarray:
    t = np.arctan2(np.where(x[:, 2] < 0, x[:, 0], -x[:, 0]), 1 - np.abs(x[:, 2])) % TURN
    return columns(np.where(x[:, 2] < 0, t, -t), x[:, 1])


def s_of(s: np.ndarray) -> np.ndarray:
    t = s[:, 0]
    return columns(np.sin(t), s[:, 1], np.sign(t) * (np.cos(t) - 1))


def eight_times_around(c: np.ndarray) -> np.ndarray:
    t = angle(c)
    return columns((2 + np.cos(8 * t)) * np.cos(t), (2 + np.cos(8 * t)) * np.sin(t), np.sin(8 * t))


def spiral_of(t: np.ndarray) -> np.ndarray:
    return np.hstack([100 * np.cos(t), 100 * np.sin(t), t, np.zeros((len(t), 10))])


def flat_map(name: str) -> tuple[Map, Map]:
    """Through the principal components, as many as the embedding has dimensions."""
    x = benchmark_manifold(name, num_samples=400).x
    axes = np.linalg.svd(x - x.mean(0), full_matrices=False)[2][: BENCHMARK_MANIFOLDS[name].embedding]
    return (lambda v: (v - x.mean(0)) @ axes.T), (lambda c: c @ axes + x.mean(0))


def halves(name: str) -> tuple[Map, Map]:
    """Encoder to as many coordinates as are claimed, and decoder."""
    curved: dict[str, tuple[Map, Map]] = {
        "M4_Nonlinear": (lambda x: radii(x, 4), lambda p: from_radii(p, 1)),
        "M5a_Helix1d": (lambda x: x[:, :2] / np.hypot(*x[:, :2].T)[:, None], eight_times_around),
        "M5b_Helix2d": (
            lambda x: columns(np.hypot(x[:, 0], x[:, 1]), 2 * x[:, 2]),
            lambda c: columns(c[:, 0] * np.cos(c[:, 1]), c[:, 0] * np.sin(c[:, 1]), c[:, 1] / 2),
        ),
        "M6_Nonlinear": (lambda x: radii(x, 6), lambda p: from_radii(p, 3)),
        "M7_Roll": (
            lambda x: columns(np.hypot(x[:, 0], x[:, 2]), x[:, 1]),
            lambda c: columns(c[:, 0] * np.cos(c[:, 0]), c[:, 1], c[:, 0] * np.sin(c[:, 0])),
        ),
        "M8_Nonlinear": (lambda x: radii(x, 12), lambda p: from_radii(p, 3)),
        "M11_Moebius": (on_annulus, band),
        "M13a_Scurve": (along_s, s_of),
        "M13b_Spiral": (lambda x: x[:, 2:3], spiral_of),
        "Mn1_Nonlinear": (lambda x: unpaired(x, 18), paired),
        "Mn2_Nonlinear": (lambda x: unpaired(x, 24), paired),
        "Mp1_Paraboloid": (lambda x: x[:, :3], raised),
        "Mp2_Paraboloid": (lambda x: x[:, :6], raised),
        "Mp3_Paraboloid": (lambda x: x[:, :9], raised),
    }
    return curved[name] if name in curved else flat_map(name)


@pytest.mark.parametrize("name", sorted(set(BENCHMARK_MANIFOLDS) - {"M3_Nonlinear_4to6", "Mbeta"}))
def test_the_points_pass_through_the_claimed_coordinates(name: str) -> None:
    known, (encode, decode) = BENCHMARK_MANIFOLDS[name], halves(name)
    x = benchmark_manifold(name, num_samples=400).x
    code = encode(x)
    assert code.shape == (400, known.embedding)
    allowed = rounding(size=100 * x.shape[1], condition=float(np.abs(x).max()) * 10)
    assert float(np.abs(decode(code) - x).max()) <= allowed
    held = code.copy()
    held[:, 0] = code[::-1, 0]  # no coordinate is idle
    assert float(np.abs(decode(held) - x).max()) > 1e3 * allowed


@pytest.mark.parametrize("name", BENCHMARK_MANIFOLDS)
def test_the_affine_hull_and_the_closed_ones_have_the_claimed_dimensions(name: str) -> None:
    known, task = BENCHMARK_MANIFOLDS[name], benchmark_manifold(name, num_samples=600)
    assert np.linalg.matrix_rank(task.x - task.x.mean(0), rtol=rounding(size=600)) == known.flat == task.flat_rank
    assert known.embedding - known.intrinsic == (name in CLOSED)
    assert (task.jacobian_rank, task.true_rank) == (known.intrinsic, known.embedding)


def test_each_curve_of_the_beta_density_is_one_to_one_where_nearly_all_draws_lie() -> None:
    x = np.linspace(0, 1, 501)
    curve = columns(x * np.sin(np.cos(TURN * x)), x * np.cos(np.sin(TURN * x)))
    assert not crosses_itself(curve[x > 0.48])
    assert not crosses_itself(curve[x < 0.63])
    assert crosses_itself(curve)
    assert beta.cdf(0.63, 10, 0.5) < 0.003
    drawn = benchmark_manifold("Mbeta", num_samples=50).x
    assert np.abs(drawn[:, :20] - drawn[:, 20:]).max() == 0
    pairs = np.stack([drawn[:, :10], drawn[:, 10:20]], 2).reshape(-1, 2)
    away = np.linalg.norm(pairs[:, None] - curve, axis=2).min(1)
    assert away.max() < 8 / 500 / 2, "half a step of the curve, whose speed is below 8"


@pytest.mark.parametrize("d", [10, 17])
def test_every_point_of_a_hollow_cube_lies_on_one_face(d: int) -> None:
    x = benchmark_manifold("M10a_Cubic" if d == 10 else "M10b_Cubic", num_samples=2500).x
    on_face = np.isin(x, [0.0, 1.0])
    assert (on_face.sum(1) == 1).all()
    counts = on_face.sum(0)
    assert counts.min() > 0.8 * 2500 / (d + 1)


def test_same_seed_same_points_and_an_unknown_name_is_refused() -> None:
    first, again, other = (benchmark_manifold("M7_Roll", num_samples=20, seed=s).x for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(DataError, match=r"'M7'\): unknown. Known are M1_Sphere"):
        benchmark_manifold("M7")
    with pytest.raises(ValueError, match="at least 1 row"):
        benchmark_manifold("M7_Roll", num_samples=0)
