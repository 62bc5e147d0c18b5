"""A second implementation of statements on connected networks that `test_audit` leaves out, in numpy and mpmath.

Networks are run by loops of numpy over their weights; residual ones: `test_residual_audit`. What the statements mean,
and their controls: the file of each id.
"""

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from isthmus import constructions, theory
from isthmus.networks import FullyConnected, rebalance
from theorem_checks import Array, agree, random_network, rng, run_connected, tensor

SEEDS = [0, 1, 2]


def norm_of(network: FullyConnected) -> float:
    return math.fsum(float((p.detach().numpy() ** 2).sum()) for p in network.parameters())


def slopes_of(network: FullyConnected, x: Array, h: float = 1e-6) -> Array:
    columns = [
        (run_connected(network, x + h * e) - run_connected(network, x - h * e)) / (2 * h) for e in np.eye(x.shape[1])
    ]
    return np.stack(columns, 2)


def digits(matrix: Array) -> list[Any]:
    with mpmath.workdps(50):
        return list(mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False))


@pytest.mark.theorem("FC-09")
@pytest.mark.theorem("FC-13")
@pytest.mark.theorem("FC-14")
@pytest.mark.theorem("FC-27")
@pytest.mark.theorem("FC-28")
@pytest.mark.theorem("FC-32")
@pytest.mark.parametrize("depth", [1, 2, 7, 10_000])
def test_costs_of_a_matrix_in_fifty_digits(depth: int) -> None:
    A = rng(3, 4, 3) * np.array([1e3, 1.0, 1e-3])
    with mpmath.workdps(50):
        s = digits(A)
        cost = depth * sum(v ** (mpmath.mpf(2) / depth) for v in s)
        logs = [mpmath.log(v) for v in s]
        regular = 3 * depth + 2 * sum(logs)
        terms = [3, 2 * sum(logs), 2 * sum(t**2 for t in logs)]
    agree(theory.linear_cost(tensor(A), depth=depth), float(cost), 1e-12)
    agree(torch.stack([*theory.linear_cost_expansion(tensor(A))]), np.array(terms, dtype=float), 1e-12)
    for found, exact in (
        (theory.schatten_lower_bound(tensor(A[None]), depth=depth, error=0.0), cost),
        (theory.regularity_lower_bound(tensor(A[None]), rank=3, depth=depth, error=0.0), max(regular, 0)),
    ):
        assert 0 <= float(exact) - float(found) <= 1e-8 * float(exact)
    assert depth < 10_000 or abs(float(cost) / depth - 3) < 0.01


@pytest.mark.theorem("FC-02")
@pytest.mark.theorem("FC-03")
@pytest.mark.theorem("FC-16")
@pytest.mark.parametrize("seed", SEEDS)
def test_sums_and_compositions_by_their_weights(seed: int) -> None:
    f, g = random_network(seed, [3, 5, 2]), random_network(seed + 9, [3, 4, 4, 2])
    x = rng(seed, 40, 3)
    both = constructions.parallel_sum(f, g)
    agree(run_connected(both.network, x), run_connected(f, x) + run_connected(g, x), 1e-12)
    h = random_network(seed + 5, [2, 4, 3])
    merged = constructions.merged_composition(f, h)
    agree(run_connected(merged, x), run_connected(h, run_connected(f, x)), 1e-12)
    assert theory.bottleneck_rank_upper_bound([w.detach() for w in merged.weights]) == min(
        np.linalg.matrix_rank(w.detach().numpy(), tol=1e-12) for w in merged.weights
    )
    inner, outer = slopes_of(f, x), slopes_of(h, run_connected(f, x))
    agree(slopes_of(merged, x), outer @ inner, 1e-6)
    ranks = [int((np.linalg.svd(j, compute_uv=False) > 1e-7).sum()) for j in slopes_of(merged, x)]
    assert max(ranks) <= 2


@pytest.mark.theorem("FC-04")
@pytest.mark.theorem("FC-05")
def test_maps_whose_ranks_are_known_have_the_values_they_should() -> None:
    made = constructions.between_bijections(tensor(rng(1, 4, 2) @ rng(2, 2, 5)), seed=3)
    s = np.linalg.svd(slopes_of(made.network, rng(4, 60, 5)), compute_uv=False)
    assert made.rank == 2
    assert (s[:, 1] > 1e-3 * s[:, 0]).all()
    assert (s[:, 2] < 1e-8 * s[:, 0]).all()
    x = rng(5, 500, 2)
    m = np.abs(x).min(1, keepdims=True)
    agree(run_connected(constructions.x_cross_example().network, x), np.sign(x) * m, 1e-13)


@pytest.mark.theorem("FC-06")
@pytest.mark.theorem("FC-07")
@pytest.mark.parametrize("seed", SEEDS)
def test_distances_to_paths_by_walking_them(seed: int) -> None:
    v, middle = rng(seed, 3, 2), rng(seed + 1, 3, 2)
    pairs = [(1, 2), (0, 2), (0, 1)]
    paths = [np.stack([v[a], middle[i], v[b]]) for i, (a, b) in enumerate(pairs)]
    t = np.linspace(0, 1, 20_001)[:, None]

    def nearest(point: Array, corners: Array) -> float:
        legs = [np.linalg.norm(a + t * (b - a) - point, axis=1).min() for a, b in itertools.pairwise(corners)]
        return float(min(legs))

    found = theory.betweenness_certificate(tensor(v), [tensor(path) for path in paths])
    agree(found.distances, np.array([nearest(p, path) for p, path in zip(v, paths, strict=True)]), 1e-6)
    loop = rng(seed + 2, 6, 2)
    apart = loop[:3] - loop[3:]
    agree(
        theory.antipodal_loop_certificate(tensor(loop)).measured,
        nearest(np.zeros(2), np.vstack([apart, -apart[:1]])),
        1e-6,
    )


@pytest.mark.theorem("FC-15")
@pytest.mark.theorem("FC-25")
@pytest.mark.parametrize("between", [0, 1, 30])
def test_identities_between_two_networks_cost_their_dimension(between: int) -> None:
    g, h = random_network(1, [3, 4, 2]), random_network(2, [2, 4, 3])
    x = rng(7, 50, 3)
    made = constructions.compose_with_identity(g, h, between, x=tensor(x))
    agree(run_connected(made.network, x), run_connected(h, run_connected(g, x)), 1e-12)
    agree(norm_of(made.network), 2 * (between + 4) + made.constant, 1e-12)
    split = theory.bottleneck_cost_upper_bound(5.5, 4.25, rank=3, depth=20, encoder_depth=4, decoder_depth=6)
    agree(split, 3 * 10 + 5.5 + 4.25, 1e-12)


@pytest.mark.dear(1)
@pytest.mark.theorem("FC-17")
@pytest.mark.theorem("FC-19")
@pytest.mark.parametrize("m", [1, 2, 5, 8, 9])
def test_pieces_and_interpolators_are_those_of_numpy(m: int) -> None:
    a, c, x = rng(m, m, 3), rng(m + 1, m), rng(m + 2, 200, 3)
    made = constructions.max_affine_network(tensor(a), tensor(c))
    agree(run_connected(made, x), (x @ a.T + c).max(1, keepdims=True), 1e-12)
    assert made.depth == math.ceil(math.log2(m)) + 1
    knots, values = np.sort(rng(m + 3, m + 1)), rng(m + 4, m + 1, 2)
    line = constructions.piecewise_linear_network(tensor(knots), tensor(values))
    at = np.linspace(knots[0], knots[-1], 77)
    agree(run_connected(line, at[:, None]), np.stack([np.interp(at, knots, v) for v in values.T], 1), 1e-9)
    data, targets = rng(m + 5, m + 2, 3), rng(m + 6, m + 2, 2)
    for depth in (3, 40):
        one = constructions.rank_one_interpolator(tensor(data), tensor(targets), depth=depth)
        agree(run_connected(one.network, data), targets, 1e-8)
        agree(norm_of(one.network), depth + one.constant, 1e-9)


@pytest.mark.theorem("FC-21")
@pytest.mark.theorem("FC-33")
@pytest.mark.theorem("LEAKY-07")
@pytest.mark.theorem("LEAKY-16")
@pytest.mark.parametrize("seed", SEEDS)
def test_measures_of_a_layer_by_its_kernel(seed: int) -> None:
    A, B = rng(seed, 7, 4), rng(seed + 1, 7, 3)
    H = np.eye(7) - 1 / 7
    left, right = H @ A @ A.T @ H, H @ B @ B.T @ H
    aligned = np.trace(left @ right) / math.sqrt(np.trace(left @ left) * np.trace(right @ right))
    agree(theory.kernel_alignment(tensor(A), tensor(B)), aligned)
    s = np.sqrt(np.linalg.eigvalsh(A.T @ A))[::-1]
    agree(theory.spectral_gap_profile([tensor(A)], rank=2).over_last, s[2:3] / s[1], 1e-9)
    agree(theory.stable_rank_nuclear(tensor(A)), s.sum() ** 2 / (A**2).sum(), 1e-9)
    agree(theory.negative_energy_fraction(tensor(A)), (A[A < 0] ** 2).sum() / (A**2).sum())


@pytest.mark.theorem("FC-23")
@pytest.mark.theorem("LEAKY-18")
@pytest.mark.parametrize("seed", SEEDS)
def test_rescaling_neuron_after_neuron_reaches_the_balanced_norm(seed: int) -> None:
    network = random_network(seed, [3, 4, 5, 2])
    W, b = ([p.detach().numpy().copy() for p in part] for part in (network.weights, network.biases))
    for _ in range(400):
        for l in range(len(W) - 1):
            r = ((W[l + 1] ** 2).sum(0) / ((W[l] ** 2).sum(1) + b[l] ** 2)) ** 0.25
            W[l], b[l], W[l + 1] = W[l] * r[:, None], b[l] * r, W[l + 1] / r
    agree(norm_of(rebalance(network)), sum((p**2).sum() for p in (*W, *b)), 1e-9)


@pytest.mark.theorem("FC-30")
@pytest.mark.parametrize("depth", [1, 3, 50])
def test_the_straight_path_of_kernels_by_traces(depth: int) -> None:
    A = rng(11, 3, 5)
    first, last = np.linalg.pinv(A) @ A, A.T @ A
    kernels = [first + l / depth * (last - first) for l in range(depth + 1)]
    total = sum(np.trace(k @ np.linalg.pinv(before)) for before, k in itertools.pairwise(kernels))
    s = np.linalg.svd(A, compute_uv=False).astype(np.float64)
    agree(theory.linear_path_cost(tensor(s), depth=depth), total, 1e-9)


@pytest.mark.theorem("FC-34")
@pytest.mark.parametrize("angle", [0.2, 1.0, math.pi / 2])
def test_two_lines_cost_the_logarithm_of_their_angle(angle: float) -> None:
    lines = np.array([[[1.0], [0.0]], [[math.cos(angle)], [math.sin(angle)]]])
    found = theory.nonplanarity_bound(tensor(lines), rank=1)
    agree(found.value, math.log(1 + math.sin(angle)), 1e-6)
    W, J = rng(1, 4, 6), rng(2, 1, 4, 3)
    s = np.linalg.svd(np.linalg.pinv(W) @ J[0], compute_uv=False)
    bound = theory.last_matrix_lower_bound(tensor(J), tensor(W), depth=9)
    agree(bound, (W**2).sum() + 8 * (s ** (2 / 8)).sum(), 1e-9)


@pytest.mark.theorem("FC-12")
@pytest.mark.theorem("FC-29")
@pytest.mark.parametrize("ridge", [1e-300, 1e-3, 1.0])
def test_the_regularised_scalar_problem_over_weights_is_that_over_functions(ridge: float) -> None:
    """The least (s - 2)^2 + ridge L s^(2/L) on a grid, against L equal factors; and R1 of a product."""
    t = np.linspace(1e-6, 1.3, 200_001)
    over_weights = ((t**3 - 2) ** 2 + ridge * 3 * t**2).min()
    costs = theory.linear_cost(tensor((t**3)[:, None, None]), depth=3).numpy()
    agree(over_weights, ((t**3 - 2) ** 2 + ridge * costs).min(), 1e-9)
    A, B = rng(1, 3, 3), rng(2, 3, 3)
    terms = [float(theory.linear_cost_expansion(tensor(m))[1]) for m in (A @ B, A, B)]
    agree(terms[0], terms[1] + terms[2], 1e-9)
