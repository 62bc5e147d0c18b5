"""Classical dimension reduction finds what it is known to find, misses what it is known to miss, and sums correctly."""

import numpy as np
import pytest

from isthmus import tasks
from measured.index_search import MOMENTS
from measured.inverse_regression import sliced
from measured.local_regression import RIDGE, local_linear, local_sums
from measured.spans import Array, Whitened, distance, distance_correlation
from tolerances import rounding

ROWS = 3000
B = np.array([[1.0, 2.0, 0.0, -1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 2.0, 0.0, 0.0]])


def inputs(seed: int = 0, *, mixed: bool = True) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((ROWS, 6))
    return x @ (np.eye(6) + 0.3 * rng.standard_normal((6, 6))) * 10.0 ** np.arange(-3, 3) if mixed else x


def target(x: Array, kind: str) -> Array:
    # the rows of B act on columns of variance near 1: the scales of `inputs` are in x alone
    u, v = (x @ B.T).T
    u, v = u / u.std(), v / v.std()
    clean = {"linear": u, "even": u**2, "both": u + v**2, "spread": np.zeros(ROWS)}[kind]
    noise = np.random.default_rng(1).standard_normal(ROWS)
    return (clean + (np.exp(u) if kind == "spread" else 0.05) * noise)[:, None]


def truth(kind: str) -> Array:
    return B if kind == "both" else B[:1]


EVERY = {"linear", "even", "both", "spread"}
FINDS = {  # a spread that rises with u shows in the mean of u given y too; Hessians see no slope
    "sir": {"linear", "spread"}, "save": EVERY, "directional": EVERY, "phd": {"even"},
    "opg": EVERY - {"spread"}, "mave": EVERY - {"spread"},
}  # fmt: skip


@pytest.mark.parametrize("kind", ["linear", "even", "both", "spread"])
@pytest.mark.parametrize("method", list(MOMENTS))
def test_moments_find_and_miss_what_the_books_say(method: str, kind: str) -> None:
    x = inputs(mixed=False)
    gap = distance(MOMENTS[method](x, target(x, kind), len(truth(kind))), truth(kind))
    assert gap < 0.2 if kind in FINDS[method] else gap > 0.4


@pytest.mark.dear(1)
@pytest.mark.parametrize("kind", ["linear", "even", "both", "spread"])
def test_local_fits_find_every_mean_and_no_spread(kind: str) -> None:
    x = inputs(mixed=False)[:800]
    for method, found in local_linear(x, target(inputs(mixed=False), kind)[:800], len(truth(kind))).items():
        gap = distance(found, truth(kind))
        assert gap < 0.05 if kind in FINDS[method] else gap > 0.3


@pytest.mark.dear(1)
@pytest.mark.parametrize("method", [*MOMENTS, "opg", "mave"])
def test_spans_follow_an_invertible_map_of_the_inputs(method: str) -> None:
    x = inputs(mixed=False)[:600]
    y = np.tanh(x @ B.T) + 0.05 * np.random.default_rng(2).standard_normal((600, 2))
    rng = np.random.default_rng(3)
    matrix = (np.eye(6) + 0.3 * rng.standard_normal((6, 6))) * 10.0 ** np.arange(-3, 3)

    def found(x: Array) -> Array:
        return MOMENTS[method](x, y, 2) if method in MOMENTS else local_linear(x, y, 2)[method]

    assert distance(found(x @ matrix) @ matrix.T, found(x)) < 1e-3
    assert distance(found(x @ matrix), found(x)) > 0.1


def test_several_targets_together_show_what_each_hides() -> None:
    x = inputs(mixed=False)
    y = np.hstack([target(x, "linear"), (x @ B[1:].T) + 0.05 * np.random.default_rng(4).standard_normal((ROWS, 1))])
    assert distance(MOMENTS["sir"](x, y, 2), B) < 0.1
    assert distance(MOMENTS["sir"](x, y[:, :1], 2), B) > 0.3


def test_directional_regression_is_that_of_pairs_of_slices() -> None:
    x = inputs(mixed=False)[:600]
    y = target(inputs(mixed=False), "both")[:600]
    white, label = Whitened.of(x), sliced(y)
    parts, total = [white.z[label == h] for h in range(10)], np.zeros((6, 6))
    for one in parts:
        for two in parts:  # E (2 I - E[(z - z')(z - z')^T | y, y'])^2, whose range holds the directions
            cross = np.outer(one.mean(0), two.mean(0))
            gap = 2 * np.eye(6) - one.T @ one / len(one) - two.T @ two / len(two) + cross + cross.T
            total += len(one) * len(two) / 600**2 * gap @ gap
    assert distance(MOMENTS["directional"](x, y, 2), white.leading(total, 2)) < 1e-6


def test_local_sums_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(5)
    z, y, basis = (
        rng.standard_normal((40, 3)),
        rng.standard_normal((40, 2)),
        np.linalg.qr(rng.standard_normal((3, 2)))[0],
    )
    for others in (False, True):
        sums = next(iter(local_sums(z, y, basis, 0.8, others=others)))
        intercepts, slopes = sums.fits(basis)
        for i in (0, 17):
            w = np.exp(-(((z - z[i]) @ basis) ** 2).sum(1) / (2 * 0.8**2))
            if others:
                w[i] = 0
            w /= w.sum()
            gaps = z - z[i]
            np.testing.assert_allclose(sums.squares[i], (gaps.T * w) @ gaps, atol=rounding(size=40))
            np.testing.assert_allclose(sums.products[i], (gaps.T * w) @ y, atol=rounding(size=40))
            design = np.column_stack([np.ones(40), gaps @ basis]) * np.sqrt(w)[:, None]
            fit = np.linalg.lstsq(design, y * np.sqrt(w)[:, None], rcond=None)[0]
            np.testing.assert_allclose(np.vstack([intercepts[i], slopes[i]]), fit, atol=100 * RIDGE)


def test_whitening_leaves_a_column_that_repeats_another_out() -> None:
    x = inputs()
    white = Whitened.of(np.hstack([x, 2 * x[:, :1]]))
    values = np.linalg.eigvalsh(np.cov(white.z.T, bias=True))
    assert values[0] < 1e-6
    np.testing.assert_allclose(values[1:], 1, rtol=1e-6)


def test_distances_of_spans_are_sines() -> None:
    first, angle = np.eye(4)[:2], 0.3
    turned = np.array([[np.cos(angle), 0, np.sin(angle), 0], [0, 1, 0, 0]])
    assert distance(turned * 7, first) == pytest.approx(np.sin(angle), abs=rounding())
    assert distance(first, np.array([[1.0, 1, 0, 0], [1, -1, 0, 0]])) == pytest.approx(0, abs=rounding())
    assert distance(first[:1], first) == 1


def test_distance_correlation_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((30, 2)), rng.standard_normal((30, 1))
    b[:, 0] += a[:, 0] ** 2
    n = len(a)

    def centred(p: Array) -> list[list[float]]:
        gaps = [[float(np.sqrt(((s - t) ** 2).sum())) for t in p] for s in p]
        rows = [sum(row) / n for row in gaps]
        every = sum(rows) / n
        return [[gaps[i][j] - rows[i] - rows[j] + every for j in range(n)] for i in range(n)]

    def product(p: list[list[float]], q: list[list[float]]) -> float:
        return sum(p[i][j] * q[i][j] for i in range(n) for j in range(n))

    p, q = centred(a), centred(b)
    naive = np.sqrt(product(p, q) / np.sqrt(product(p, p) * product(q, q)))
    assert distance_correlation(a, b) == pytest.approx(naive, rel=1e-7)
    assert distance_correlation(a, 3 - 2 * a @ np.linalg.qr(rng.standard_normal((2, 2)))[0]) == pytest.approx(
        1, abs=1e-7
    )
    assert distance_correlation(a, np.ones((30, 1))) == 0
    assert distance_correlation(rng.standard_normal((1000, 1)), rng.standard_normal((1000, 1))) < 0.15


def test_they_reach_the_directions_of_a_random_task() -> None:
    task = tasks.multi_index(2, d_in=8, num_samples=600, noise=0.05, seed=1)
    assert task.directions is not None
    found = local_linear(task.x, task.target, 2)
    assert max(distance(rows, task.directions) for rows in found.values()) < 0.05
