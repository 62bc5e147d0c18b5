"""A second implementation of what the experiments on connected networks rest on, in numpy, scipy and mpmath.

Each number that a figure reads off networks is worked out again from their weights alone. What the statements mean, and
what was measured: docs/figures.md. Leaky networks: `test_leaky_experiment_audit`.
"""

import itertools
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import linprog, minimize_scalar
from scipy.stats import kstest

from isthmus import constructions, tasks, theory
from isthmus.constructions import piecewise_linear_network, rank_one_interpolator
from isthmus.figures import Preset, Workshop, narrowness
from isthmus.figures.denoising_measures import defect, measured
from isthmus.figures.depth_plateaus import count
from isthmus.figures.large_depth import square
from isthmus.networks import FullyConnected, class_regions, slice_cells
from isthmus.sweeps.engine_choice import EngineChoice
from isthmus.training import fit
from isthmus.training.solvers.solver import LBFGS
from theorem_checks import Array, agree, random_network, rng, run_connected, tensor

SEEDS = [0, 1, 2]


def layers_of(network: FullyConnected) -> list[tuple[Array, Array]]:
    """(W_l, b_l) of a ReLU network."""
    return [(W.detach().numpy(), b.detach().numpy()) for W, b in zip(network.weights, network.biases, strict=True)]


def kernel_trace(layers: list[tuple[Array, Array]], x: Array) -> float:
    """Tr Theta(x, x): every parameter gets an imaginary part once, so that no difference is taken."""

    def imaginary(l: int, where: tuple[int, ...], part: int) -> Array:
        a = x.astype(complex)
        for i, pair in enumerate(layers):
            W, b = (p.astype(complex) for p in pair)
            if i == l:
                (W, b)[part][where] += 1e-30j
            z = W @ a + b
            a = np.where(np.real(z) > 0, z, 0) if i + 1 < len(layers) else z
        return np.imag(a) / 1e-30

    places = [(l, part, i) for l, pair in enumerate(layers) for part in (0, 1) for i in np.ndindex(pair[part].shape)]
    return float(sum((imaginary(l, i, part) ** 2).sum() for l, part, i in places))


@pytest.mark.slow
@pytest.mark.theorem("FC-43")
def test_kernels_of_fits_of_rank_one_by_all_their_parameters(tmp_path: Path) -> None:
    plan = narrowness.plan(Preset.TINY)
    data = narrowness.compute(plan, Workshop(tmp_path, EngineChoice(workers=0)))
    for N, depth in ((8, 6), (8, 12), (16, 6)):
        points = square(N).numpy()
        fitted = rank_one_interpolator(square(N), square(N), depth=depth)
        order = np.argsort(points @ fitted.direction.numpy())
        between = (points[order][1:] + points[order][:-1]) / 2
        layers = layers_of(fitted.network)
        worst = max(kernel_trace(layers, x) for x in between)
        agree(float(data["rank_one"].sel(count=N, depth=depth)), worst / depth, 1e-9)
        same = [(np.eye(2), np.zeros(2))] * depth
        kept = max(kernel_trace(same, x) for x in between)
        agree(float(data["rank_two"].sel(count=N, depth=depth)), kept / depth, 1e-12)
        # the theorem's reason: on one piece the kernels at its ends are no less than its slope asks for
        t, y = (points @ fitted.direction.numpy())[order], points[order]
        steepest = int((np.linalg.norm(np.diff(y, axis=0), axis=1) / np.diff(t)).argmax())
        gap = float(t[steepest + 1] - t[steepest])
        slope = float(np.linalg.norm(y[steepest + 1] - y[steepest])) / gap
        ends = [between[steepest] + part * gap * fitted.direction.numpy() for part in (-0.49, 0.49)]
        asked = depth / 4 * (0.98 * gap) ** 2 * slope ** (2 - 2 / depth)
        assert max(kernel_trace(layers, x) for x in ends) >= asked
    grown = data["rank_one"].isel(depth=-1).values
    assert grown[-1] / grown[0] > 4 ** (4 - 4 / 2)  # N from 8 to 32, k = 2
    kept = data["rank_two"].isel(depth=-1).values
    with pytest.raises(AssertionError):  # the network of the true rank does not
        assert kept[-1] / kept[0] > 4 ** (4 - 4 / 2)


@pytest.mark.theorem("FC-44")
def test_interpolants_of_a_smooth_function_cost_an_integral_in_the_limit() -> None:
    """f = (t + 1)^3 / 3 on [-1, 1]: a kink of D at t costs 2 D sqrt(1 + t^2) in two layers, f'' = 2 (t + 1)."""
    limit = quad(lambda t: 4 * (t + 1) * np.sqrt(1 + t * t), -1, 1, epsabs=1e-13)[0]
    costs: list[float] = []
    for n in (10, 20, 40, 80):
        t = np.linspace(-1, 1, n + 1)
        f = (t + 1) ** 3 / 3
        slopes = np.diff(f) / np.diff(t)
        kinks = np.diff(slopes, prepend=0.0)
        costs.append(float((2 * kinks * np.sqrt(1 + t[:-1] ** 2)).sum()))
        made = piecewise_linear_network(tensor(t), tensor(f[:, None]), right_slope=tensor(slopes[-1:]))
        agree(float(made.penalty().detach()), costs[-1], 1e-10)
        agree(made(tensor(t[:, None])), f[:, None], 1e-12)
        steepest = float(theory.schatten_lower_bound(tensor(np.array([[[4.0 - 2 / n]]])), depth=2, error=0.0))
        assert 2 * (4 - 4 / n) - 1e-9 <= steepest <= costs[-1]
    errors = np.abs(np.array(costs) - limit)
    assert costs == sorted(costs)
    assert np.all(errors[1:] < 0.6 * errors[:-1])  # of order 1/n: the slope at the end is met half a step before it
    with pytest.raises(AssertionError):  # without the bias in the norm the integral is another
        agree(costs[-1], quad(lambda t: 4 * (t + 1), -1, 1)[0], 1e-2)


def with_slopes(network: FullyConnected, x: Array) -> tuple[Array, Array]:
    """f(x) and Jf(x) of many rows, the pieces by the signs of the preactivations."""
    slopes = np.broadcast_to(np.eye(x.shape[1]), (len(x), x.shape[1], x.shape[1]))
    layers = layers_of(network)
    for l, (W, b) in enumerate(layers, 1):
        x, slopes = x @ W.T + b, W @ slopes
        if l < len(layers):
            x, slopes = np.maximum(x, 0), slopes * (x > 0)[:, :, None]
    return x, slopes


def meeting_points(network: FullyConnected) -> Array:
    """Where three classes of the square meet, (m, 2): Newton's method for z_i = z_j = z_k from 600 places."""
    found: list[Array] = []
    turn = np.linspace(0, 2 * np.pi, 721)
    ring = 1e-7 * np.stack([np.cos(turn), np.sin(turn)], 1)
    for i, j, k in itertools.combinations(range(4), 3):
        p = np.random.default_rng(i + 4 * j + 16 * k).uniform(-1, 1, (600, 2))
        for _ in range(20):
            z, J = with_slopes(network, p)
            gap, M = z[:, [i, i]] - z[:, [j, k]], J[:, [i, i]] - J[:, [j, k]]
            p = np.clip(p - (np.linalg.pinv(M) @ gap[:, :, None])[:, :, 0], -2, 2)
        z, _ = with_slopes(network, p)
        met = (np.ptp(z[:, [i, j, k]], 1) < 1e-12) & (z[:, i] >= z.max(1) - 1e-12) & (np.abs(p) < 1).all(1)
        for point in p[met]:
            new = all(np.abs(point - other).max() > 1e-7 for other in found)
            if new and {i, j, k} <= set(run_connected(network, point + ring).argmax(1).tolist()):
                found.append(point)
    return np.array(sorted(map(tuple, found))).reshape(-1, 2)


def bent_regions() -> tuple[FullyConnected, Array]:
    """Classes are the cells of four places in (v + .8 relu(w), w), one place amid three: and where three cells meet."""
    places = np.array([[0.1, 0.05], [0.9, 0.1], [-0.4, 0.7], [-0.3, -0.8]])
    folds = np.array([[1.0, -1.0, 0.8, 0.0], [0.0, 0.0, 1.0, -1.0]])  # of relu(v), relu(-v), relu(w), relu(-w)
    inner = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    network = FullyConnected.from_layers(
        [tensor(inner), tensor(places @ folds)], [torch.zeros(4), tensor(-(places**2).sum(1) / 2)]
    )
    others = [[1, 2], [1, 3], [2, 3]]  # |u - p_0| = |u - p_i| = |u - p_j|: two linear equations each
    steps, heights = places[1:] - places[0], ((places**2).sum(1)[1:] - (places[0] ** 2).sum()) / 2
    u = np.array([np.linalg.solve(steps[[i - 1, j - 1]], heights[[i - 1, j - 1]]) for i, j in others])
    known = np.stack([u[:, 0] - 0.8 * np.maximum(u[:, 1], 0), u[:, 1]], 1)
    return network, np.array(sorted(map(tuple, known)))


@pytest.mark.slow
@pytest.mark.theorem("FC-45")
@pytest.mark.theorem("FC-48")
def test_tripoints_by_the_method_of_newton() -> None:
    bent, known = bent_regions()
    random = [random_network(seed, sizes) for seed, sizes in ((4, [2, 7, 6, 4]), (6, [2, 7, 6, 4]), (9, [2, 8, 4]))]
    for network in (bent, *random):  # of random ones there may be none: 0 to 5 in all three, by their weights
        regions = class_regions(slice_cells(network, torch.zeros(2), torch.eye(2)))
        found = np.array(sorted(map(tuple, regions.tripoints.tolist()))).reshape(-1, 2)
        agree(found, meeting_points(network), 1e-9)
        if network is bent:
            agree(found, known, 1e-9)
    thin = random_network(0, [2, 6, 1])
    head = FullyConnected.from_layers([torch.ones(1, 1), tensor(rng(0, 4, 1))], [torch.zeros(1), tensor(rng(1, 4))])
    narrow = constructions.merged_composition(thin, head)
    assert not len(meeting_points(narrow))  # logits through one dimension
    with pytest.raises(AssertionError):
        agree(meeting_points(bent), np.array([-1, 1]) * known, 1e-9)


@pytest.mark.theorem("FC-48")
def test_the_four_classes_are_one_inverted_s_shifted() -> None:
    made = tasks.inverted_s_classes(num_samples=1200, seed=3)
    label = made.target.argmax(1)
    assert np.array_equal(made.target, np.eye(4)[label])
    assert np.array_equal(np.bincount(label), [300] * 4)
    v = made.x[:, 1]
    across = made.x[:, 0] - label + 1.6 * np.sin(np.pi * v / 2)  # where the shift and the bend are taken off
    assert min(kstest(across[label == j], "uniform", (-0.25, 0.5)).pvalue for j in range(4)) > 1e-3
    assert min(kstest(v[label == j], "uniform", (-2, 4)).pvalue for j in range(4)) > 1e-3
    with pytest.raises(AssertionError):  # not upright: the bend is there
        assert kstest(made.x[label == 0, 0], "uniform", (-0.25, 0.5)).pvalue > 1e-3
    for j in range(3):  # neighbours overhang: no line separates them, though the bent coordinate does
        sides = np.where(label == j, 1.0, -1.0)[(label == j) | (label == j + 1)]
        rows = np.column_stack([made.x, np.ones(len(v))])[(label == j) | (label == j + 1)]
        assert linprog(np.zeros(3), -sides[:, None] * rows, -np.ones(len(rows)), bounds=(None, None)).status == 2


@pytest.mark.theorem("FC-46")
@pytest.mark.theorem("FC-49")
def test_what_denoising_measures_by_distances_and_differences() -> None:
    t = np.linspace(-1, 1, 300)
    x = np.stack([t, np.abs(t) - 0.5], 1)
    network = random_network(4, [2, 6, 5, 2])
    table = measured(network, tensor(x), noise=0.3, data_loss=0.1, objective=1.0)
    noisy, cleaned = table["noisy"].values, run_connected(network, table["noisy"].values)
    agree(table["cleaned"].values, cleaned, 1e-12)
    spread = ((x - x.mean(0)) ** 2).sum(1).mean() ** 0.5
    size = ((noisy - x) ** 2).sum(1).mean() ** 0.5 / (0.3 * spread)
    assert abs(size - 1) < 4 / np.sqrt(2 * 600)  # 4 standard errors of the root of a mean of 600 squares

    def away(rows: Array) -> float:
        return float(np.mean([np.hypot(*(x - row).T).min() for row in rows]))

    agree(float(table["gain"]), away(cleaned) / away(noisy), 1e-10)
    agree(float(table["lost"]), 0.1 / spread**2, 1e-12)
    h = 1e-7
    slopes = np.stack(
        [(run_connected(network, x + h * e) - run_connected(network, x - h * e)) / (2 * h) for e in np.eye(2)], 2
    )
    agree(defect(network, tensor(x)), float(np.median([np.linalg.norm(J @ J - J) for J in slopes])), 1e-5)
    line = np.stack([t, 0.5 * t], 1)
    onto = FullyConnected.from_layers([tensor(np.outer([1, 0.5], [1, 0.5]) / 1.25)])  # a projection onto the data
    kept = FullyConnected.from_layers([torch.eye(2, dtype=torch.float64)])
    gains = [float(measured(n, tensor(line), noise=0.3, data_loss=0.0, objective=0.0)["gain"]) for n in (onto, kept)]
    assert gains[0] < 0.3 < gains[1] == 1.0  # what the claims of the figure ask for, and what the identity leaves


@pytest.mark.theorem("FC-31")
@pytest.mark.theorem("FC-50")
def test_plateaus_and_collapse_of_a_linear_task_by_one_variable_at_a_time() -> None:
    """|A - diag(1.4, 1)|^2 + ridge L sum s^(2/L) falls apart: one scalar problem for each singular value."""
    targets, ridge = np.array([1.4, 1.0]), 0.03
    seen: list[int] = []
    norms: dict[int, float] = {}
    for depth in (3, 5, 7, 10, 20, 40, 80):

        def objective(s: float, y: float, depth: int = depth) -> float:
            return (s - y) ** 2 + ridge * depth * s ** (2 / depth)

        kept: list[Any] = [
            minimize_scalar(objective, bounds=(0.3 * y, y), args=(y,), method="bounded", options={"xatol": 1e-12})
            for y in targets
        ]
        wins = np.array([k.fun < y**2 for k, y in zip(kept, targets, strict=True)])
        s = np.where(wins, [k.x for k in kept], 0.0)
        norms[depth] = float(depth * (s[wins] ** (2 / depth)).sum())
        start = np.diag(np.where(wins, targets, 0.0) ** (1 / depth))
        network = FullyConnected.from_layers([tensor(start)] * depth, linear=range(1, depth))
        x, y = np.sqrt(2) * np.eye(2), np.sqrt(2) * np.diag(targets)
        result = fit(network, tensor(x), tensor(y), ridge=ridge, solver=LBFGS(2000))
        agree(result.objective, sum(k.fun if w else y**2 for k, w, y in zip(kept, wins, targets, strict=True)), 1e-8)
        agree(float(network.penalty().detach()), norms[depth], 1e-4)
        middle = np.linalg.svd(network.weights[depth // 2].detach().numpy(), compute_uv=False)
        assert count(middle) == wins.sum()
        seen.append(int(wins.sum()))
    assert seen == sorted(seen, reverse=True)
    assert {0, 1, 2} == set(seen)
    assert norms[80] == 0
    slope = (norms[7] - norms[5]) / 2
    assert abs(slope - seen[1]) < 0.1  # a whole number: that of the rank
    with pytest.raises(AssertionError):
        assert abs(slope - seen[-2]) < 0.1


@pytest.mark.theorem("RES-11")
@pytest.mark.theorem("FC-02")
@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_of_factored_maps_in_fifty_digits(seed: int) -> None:
    g, h = random_network(seed, [5, 7, 2]), random_network(seed + 3, [2, 8, 4])
    x = rng(seed, 12, 5)
    slopes: list[Array] = []
    ranks: list[int] = []
    for row in x:
        product: Any = mpmath.eye(5)
        for inner in (g, h):
            (W, b), (V, c) = layers_of(inner)
            z = W @ row + b
            with mpmath.workdps(50):
                gates = mpmath.diag((z > 0).astype(int).tolist())
                product = mpmath.matrix(V.tolist()) * gates * mpmath.matrix(W.tolist()) * product
            row = V @ np.maximum(z, 0) + c
        slopes.append(np.array(product.tolist(), dtype=float))
        with mpmath.workdps(50):
            ranks.append(sum(v > 1e-40 for v in mpmath.svd_r(product, compute_uv=False)))
    assert max(ranks) == 2
    found = theory.jacobian_rank_lower_bound(tensor(np.stack(slopes)), tolerance=1e-9)
    assert found.rank == max(ranks)
    assert found.witness is not None
    assert ranks[found.witness] == found.rank
    matrices = [tensor(W) for inner in (g, h) for W, _ in layers_of(inner)]
    assert theory.bottleneck_rank_upper_bound(matrices) == min(len(W) for W in matrices)
    with pytest.raises(AssertionError):  # the map of g alone has more to lose
        assert theory.bottleneck_rank_upper_bound(matrices[:1]) == 2
