"""A second implementation of thirty statements, in numpy and mpmath, written from the papers and not from the library.

Each is compared on random cases. What the statements mean, and their controls: the file of each id.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.sparse.csgraph import minimum_spanning_tree

from isthmus import theory
from isthmus.constructions import divergent_representation_example, leaky_from_relu
from isthmus.networks import jacobians, slice_cells
from isthmus.networks.leaky_steps import step_sizes
from theorem_checks import Array, agree, linearised, random_network, rng, tensor

SEEDS = [0, 1, 2]


def least_of(f: Callable[[float], float], low: float, high: float) -> float:
    found: Any = minimize_scalar(f, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    return float(found.fun)


def patterns(seed: int, dimensions: list[int], n: int, slope: float = 0.0):  # noqa: ANN201 - five arrays
    """A network and its layers at n points: weights, biases, activations before each layer, derivatives."""
    network = random_network(seed, dimensions, slope=slope)
    x = rng(seed, n, dimensions[0])
    weights = [w.detach().numpy() for w in network.weights]
    biases = [b.detach().numpy() for b in network.biases]
    before, derivatives = [x], list[Array]()
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        z = before[-1] @ W.T + b
        derivatives.append(np.where(z >= 0, 1.0, slope))
        before.append(derivatives[-1] * z)
    return network, weights, biases, before, derivatives


def slopes_between(weights: list[Array], derivatives: list[Array], first: int, last: int, i: int) -> Array:
    """W_last D .. W_first at sample i, layers from 1."""
    product = weights[first - 1]
    for l in range(first + 1, last + 1):
        product = weights[l - 1] @ (derivatives[l - 2][i][:, None] * product)
    return product


def kernel_at(weights: list[Array], before: list[Array], derivatives: list[Array], i: int, j: int) -> Array:
    """The tangent kernel by the definition: derivatives by every entry of every weight and bias."""
    L = len(weights)
    found = np.zeros((len(weights[-1]), len(weights[-1])))
    for l in range(1, L + 1):
        sides = list[Array]()
        for at in (i, j):
            after = np.eye(len(weights[-1])) if l == L else slopes_between(weights, derivatives, l + 1, L, at)
            after = after if l == L else after * derivatives[l - 1][at]
            a = np.append(before[l - 1][at], 1.0)
            sides.append(np.einsum("op,q->opq", after, a).reshape(len(after), -1))
        found += sides[0] @ sides[1].T
    return found


@pytest.mark.theorem("FC-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_rank_on_a_slice_is_that_of_its_densest_points(seed: int) -> None:
    network = random_network(seed, [2, 5, 2, 3])
    ticks = np.linspace(-1, 1, 201)
    grid = np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2)
    s = np.linalg.svd(jacobians(network, tensor(grid)).detach().numpy(), compute_uv=False)
    found, _ = slice_cells(network, torch.zeros(2).double(), torch.eye(2).double()).jacobian_rank()
    assert found == int((s > 1e-9 * s.max()).sum(1).max())


@pytest.mark.theorem("FC-08")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_jacobian_on_a_tangent_space_has_the_singular_values_of_its_projection(seed: int) -> None:
    J, T = rng(seed, 1, 4, 5), rng(seed + 1, 1, 5, 2)
    found = theory.tangent_restriction(tensor(J), tensor(T))[0]
    projection = T[0] @ np.linalg.solve(T[0].T @ T[0], T[0].T)
    agree(torch.linalg.svdvals(found), np.linalg.svd(J[0] @ projection, compute_uv=False)[:2].astype(np.float64))


@pytest.mark.theorem("FC-10")
@pytest.mark.parametrize("depth", [1, 3, 50, 1000])
def test_diagonal_costs_in_fifty_digits(depth: int) -> None:
    w = np.array([1e-200, -0.3, 2.0, 1e150])
    with mpmath.workdps(50):
        expected = depth * sum(mpmath.mpf(abs(v)) ** (mpmath.mpf(2) / depth) for v in w)
    agree(theory.diagonal_linear_cost(tensor(w), depth=depth), float(expected), 1e-12)


@pytest.mark.theorem("FC-11")
@pytest.mark.parametrize("seed", SEEDS)
def test_rescaling_neuron_by_neuron_ends_at_the_path_norm(seed: int) -> None:
    W, b, C, out = rng(seed, 4, 3), rng(seed + 1, 4), rng(seed + 2, 2, 4), rng(seed + 3, 2)
    least = float(out @ out)
    for i in range(4):
        into, onward = W[i] @ W[i] + b[i] ** 2, C[:, i] @ C[:, i]
        least += least_of(lambda t: into * math.exp(2 * t) + onward * math.exp(-2 * t), -5, 5)  # noqa: B023
    agree(theory.shallow_path_norm(tensor(W), tensor(C), bias=tensor(b), output_bias=tensor(out)), least, 1e-9)


@pytest.mark.theorem("FC-18")
@pytest.mark.parametrize("slope", [0.3, -0.4])
def test_a_rewritten_network_keeps_its_values(slope: float) -> None:
    network, weights, biases, before, _ = patterns(1, [3, 4, 4, 2], 50)
    found = leaky_from_relu(network, slope)
    a = before[0]
    for l, (W, b) in enumerate(zip(found.weights, found.biases, strict=True)):
        z = a @ W.detach().numpy().T + b.detach().numpy()
        a = np.where(z >= 0, z, slope * z) if l < 2 else z
    agree(a, before[-1] @ weights[-1].T + biases[-1])


@pytest.mark.theorem("FC-20")
def test_the_next_singular_value_in_forty_digits() -> None:
    for penalty, depth, s in ((12.0, 4, [2.0, 0.5]), (31.0, 10, [3.0]), (5.0, 5, [1.2])):
        with mpmath.workdps(40):
            left = mpmath.mpf(penalty) / depth - sum(mpmath.mpf(v) ** (mpmath.mpf(2) / depth) for v in s)
            expected = max(left, 0) ** (mpmath.mpf(depth) / 2)
        found = theory.trailing_singular_value_bound(tensor(np.array(s)), penalty=penalty, depth=depth)
        agree(found, float(expected), 1e-9)
        assert float(found) >= float(expected)


@pytest.mark.theorem("FC-22")
@pytest.mark.parametrize("seed", SEEDS)
def test_paths_by_all_orders_and_trees_by_another_program(seed: int) -> None:
    points = rng(seed, 7, 3)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    shortest = min(sum(apart[i, j] for i, j in itertools.pairwise(p)) for p in itertools.permutations(range(7)))
    agree(np.array(theory.travelling_salesman_bounds(tensor(points))), np.array([shortest] * 2))
    many = rng(seed, 60, 2)
    apart = np.linalg.norm(many[:, None] - many[None], axis=2)
    agree(theory.spanning_tree_length(tensor(many)), float(minimum_spanning_tree(apart).sum()))
    x = rng(seed + 9, 7, 2)
    widest = np.linalg.norm(x[:, None] - x[None], axis=2).max()
    bound = theory.rank1_cost_lower_bound(tensor(x), tensor(points), depth=6)
    agree(bound, 6 * (shortest / widest) ** (1 / 3), 1e-9)


@pytest.mark.theorem("FC-24")
def test_the_window_ends_at_the_root_in_thirty_digits() -> None:
    for k, C, rho in ((2, 3.0, 50.0), (4, 0.5, 1e4), (3, 40.0, 1e6)):
        with mpmath.workdps(30):
            low, high = mpmath.mpf(1) / 100, mpmath.mpf(10_000)
            for _ in range(120):
                L = (low + high) / 2
                low, high = (L, high) if L * mpmath.mpf(rho) ** (2 / L) > k * L + C else (low, L)
        window = theory.depth_window(rank=k, constant=C, rank1_constant=100.0, rank1_stretch=rho)
        agree(window.certified, float(low), 1e-9)
        agree(window.undercut, (100.0 - C) / (k - 1))


@pytest.mark.theorem("FC-26")
@pytest.mark.parametrize("seed", SEEDS)
def test_kernel_ridge_regression_by_its_linear_system_and_differences(seed: int) -> None:
    x, y, h, ridge = rng(seed, 12, 3), rng(seed + 1, 12, 2), 1.3, 0.2
    gauss = lambda p, q: np.exp(-((p[:, None] - q[None]) ** 2).sum(2) / (2 * h * h))  # noqa: E731
    c = np.linalg.solve(gauss(x, x) + ridge * np.eye(12), y)
    found, at = theory.kernel_ridge(tensor(x), tensor(y), ridge=ridge, bandwidth=h), rng(seed + 2, 4, 3)
    agree(found(tensor(at)), gauss(at, x) @ c)
    step = 1e-5
    slopes = np.stack([(gauss(at + step * e, x) - gauss(at - step * e, x)) @ c for e in np.eye(3)], 2) / (2 * step)
    agree(found.jacobian(tensor(at)), slopes, 1e-8)


@pytest.mark.theorem("FC-31")
def test_two_families_cost_the_same_at_their_switch() -> None:
    C, c, k, mu = (0.3, 0.01), (5.0, 9.0), (1, 3), 0.004
    L = theory.switch_depth(loss=C, constant=c, rank=k, ridge=mu)
    agree(C[0] + mu * (k[0] * L + c[0]), C[1] + mu * (k[1] * L + c[1]))
    depths, noise = np.array([4.0, 6.0, 9.0]), np.array([0.1, -0.2, 0.0])
    found = theory.plateau_slope(tensor(depths), tensor(3 * depths + 2 + noise))
    agree(found.slope, np.diff(3 * depths + noise) / np.diff(depths))
    assert found.rank.tolist() == [3, 3]


@pytest.mark.theorem("FC-35")
@pytest.mark.parametrize("seed", SEEDS)
def test_two_points_cost_their_nuclear_distance_beside_both_schatten_sums(seed: int) -> None:
    A, B = rng(seed, 3, 4), rng(seed + 1, 3, 4)
    s = [np.linalg.svd(M, compute_uv=False) for M in (A, B, A - B)]
    expected = 2.5 * sum((v ** (2 / 5)).sum() for v in s[:2]) + s[2].sum() / (1.7 * 2.2)
    agree(theory.two_point_bound(tensor(A), tensor(B), depth=5, prefix_norm=1.7, suffix_norm=2.2), expected, 1e-9)


@pytest.mark.theorem("FC-36")
def test_the_example_that_must_diverge_has_its_values_and_its_norm() -> None:
    depth, alpha, eps = 12, 0.8, 0.07
    made = divergent_representation_example(depth, alpha=alpha, epsilon=eps)
    a = x = np.abs(rng(0, 60, 3)) % 1
    for l, w in enumerate(made.network.weights):
        z = a @ w.detach().numpy().T
        a = np.maximum(z, 0) if l < depth - 1 else z
    agree(a, np.stack([x[:, 0], x[:, 1], x[:, 2] + alpha * np.maximum(x[:, 0] - x[:, 1], 0)], 1), 1e-12)
    c2 = alpha * math.exp(-1.5 * (depth - 2) * eps)
    agree(made.network.penalty(), depth * (2 * math.cosh(2 * eps) + math.cosh(4 * eps)) + 3 * c2)


@pytest.mark.theorem("FC-37")
@pytest.mark.parametrize("seed", SEEDS)
def test_residuals_of_frames_that_follow_the_directions(seed: int) -> None:
    network, weights, biases, before, derivatives = patterns(seed, [4, 6, 6, 3], 20)
    slopes = [slopes_between(weights, derivatives, 1, 3, i) for i in range(20)]
    i = int(np.argmax([np.linalg.matrix_rank(J, tol=1e-9) for J in slopes]))  # where the network is alive
    _, s, right_all = np.linalg.svd(slopes[i])
    k = int((s > 1e-9 * s[0]).sum())
    frame, total = right_all[:k].T, 0.0
    for l, (W, b) in enumerate(zip(weights, biases, strict=True)):
        moved = W @ frame if l == 2 else derivatives[l][i][:, None] * (W @ frame)
        left, _, right = np.linalg.svd(moved, full_matrices=False)
        total += ((W - left @ right @ frame.T) ** 2).sum() + b @ b
        frame = left @ right
    net = linearised(network, tensor(before[0][i : i + 1]))
    found = theory.bottleneck_certificate(net.weights, net.biases, net.point(0), rank=k)
    agree(found.residuals.sum(), total, 1e-9)
    norm = sum((W**2).sum() for W in weights) + sum(b @ b for b in biases)
    agree(found.bound, norm - 3 * k - 2 * np.log(s[:k]).sum(), 1e-8)


@pytest.mark.theorem("FC-38")
@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_the_tangent_kernel_is_the_product_of_all_derivatives(slope: float) -> None:
    network, weights, _, before, derivatives = patterns(3, [3, 5, 4, 2], 3, slope)
    net = linearised(network, tensor(before[0]))
    suffix = theory.suffix_jacobians(net.weights, net.derivatives)
    found = theory.tangent_kernel((net.activations, suffix))
    for i, j in itertools.product(range(3), repeat=2):
        agree(found[i, j], kernel_at(weights, before, derivatives, i, j))


@pytest.mark.theorem("FC-39")
def test_the_bound_on_activations_in_thirty_digits() -> None:
    logs = np.array([-3.0, 0.0, 5.0])
    for k, c1, c in ((2, 3.0, 40.0), (3, -1.0, 7.0)):
        with mpmath.workdps(30):
            expected = [
                c * max(1, mpmath.exp(mpmath.mpf(c1) / k)) / (k * mpmath.exp(2 * mpmath.mpf(v) / k)) for v in logs
            ]
        found = theory.activation_norm_bound(tensor(logs), rank=k, excess=c1, tangent_scale=c)
        agree(found, np.array([float(e) for e in expected]), 1e-9)
        tail = theory.representation_tail_bound(found, certificate_bound=4.0, depth=30, fraction=0.25)
        agree(tail, 4 * math.sqrt(4.0 * float(np.mean([float(e) for e in expected])) / 30), 1e-9)


@pytest.mark.theorem("FC-40")
def test_the_tail_falls_with_the_root_of_the_depth() -> None:
    bounds = tensor(np.array([2.0, 6.0]))
    tail = [
        float(theory.representation_tail_bound(bounds, certificate_bound=9.0, depth=L, fraction=0.5)) for L in (4, 16)
    ]
    agree(np.array(tail), np.array([2 * math.sqrt(9 * 4 / 4), 2 * math.sqrt(9 * 4 / 16)]), 1e-9)


@pytest.mark.theorem("FC-41")
def test_the_curvature_of_a_fit_by_differences_of_its_gradient() -> None:
    """A linear network of one hidden neuron at w_2 w_1 = 1.2: the Hessian of (1/N) sum (w_2 w_1 x - 1.2 x)^2."""
    x, w = rng(0, 6), np.array([0.8, 1.5])
    gradient = lambda v: 2 * np.mean(x**2) * (v[0] * v[1] - 1.2) * v[::-1]  # noqa: E731
    H = np.stack([(gradient(w + 1e-6 * e) - gradient(w - 1e-6 * e)) / 2e-6 for e in np.eye(2)])
    layers = [torch.full((1, 1), 0.8).double(), torch.full((1, 1), 1.5).double()]
    ones = torch.ones(6, 1, dtype=torch.float64)
    suffix = theory.suffix_jacobians(layers, [ones])
    kernel = theory.tangent_kernel(([tensor(x[:, None]), tensor(0.8 * x[:, None])], suffix), bias=False)
    agree(theory.sharpness(kernel), float(np.linalg.eigvalsh(H)[-1]), 1e-7)
    agree(theory.largest_stable_step(kernel), 2 / float(np.linalg.eigvalsh(H)[-1]), 1e-7)


@pytest.mark.theorem("FC-42")
def test_the_mixed_derivative_of_the_kernel_by_differences() -> None:
    network, weights, _, before, derivatives = patterns(5, [2, 6, 5, 2], 1)
    x, step, fixed = before[0][0], 1e-5, derivatives

    def kernel(p: Array, q: Array) -> Array:
        found, a = np.zeros((2, 2)), [p, q]
        for l in range(1, 4):
            after = np.eye(2) if l == 3 else slopes_between(weights, fixed, l + 1, 3, 0) * fixed[l - 1][0]
            found += (a[0] @ a[1]) * after @ after.T
            a = [fixed[l - 1][0] * (weights[l - 1] @ v) for v in a] if l < 3 else a
        return found

    expected = np.zeros((4, 4))
    for i, j in itertools.product(range(2), repeat=2):
        e, f = step * np.eye(2)[i], step * np.eye(2)[j]
        both = kernel(x + e, x + f) - kernel(x + e, x - f) - kernel(x - e, x + f) + kernel(x - e, x - f)
        expected[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = both / (4 * step * step)
    net = linearised(network, tensor(before[0]))
    prefix = theory.prefix_jacobians(net.weights, net.derivatives)
    suffix = theory.suffix_jacobians(net.weights, net.derivatives)
    agree(theory.tangent_kernel_curvature(prefix, suffix)[0], expected, 1e-4)
    J = slopes_between(weights, derivatives, 1, 3, 0)
    bound = theory.curvature_lower_bound(tensor(J[None]), depth=3)
    agree(bound, np.array([3 * float(np.linalg.norm(J, 2)) ** (4 / 3)]), 1e-9)
    assert float(bound) <= np.linalg.eigvalsh(expected)[-1] * (1 + 1e-4)


@pytest.mark.theorem("FC-46")
def test_oblique_projections_have_no_defect() -> None:
    P, Q = rng(0, 4, 2), rng(1, 4, 2)
    oblique = P @ np.linalg.solve(Q.T @ P, Q.T)
    J = np.stack([oblique + 1e-3 * rng(2, 4, 4), 2 * oblique])
    expected = [float(np.linalg.norm(j @ j - j)) for j in J]
    agree(theory.idempotency_defect(tensor(J)), np.array(expected))
    assert float(theory.idempotency_defect(tensor(oblique[None]))) < 1e-12


@pytest.mark.theorem("FC-47")
def test_the_impact_is_the_share_that_the_activation_takes() -> None:
    Z = rng(0, 30, 5)
    agree(theory.nonlinearity_impact(tensor(Z), tensor(np.maximum(Z, 0.2 * Z))), np.sqrt(
        ((0.8 * np.minimum(Z, 0)) ** 2).sum() / (Z**2).sum()))  # fmt: skip


@pytest.mark.theorem("FC-51")
@pytest.mark.parametrize("seed", SEEDS)
def test_descent_on_the_matrix_itself_has_these_statistics(seed: int) -> None:
    w = rng(seed, 6)
    w /= np.linalg.norm(w)
    v, rows = 0.5 * rng(seed + 1, 6), list[tuple[float, float]]()
    start = (float(w @ v) ** 2, float(v @ v - (w @ v) ** 2))
    for _ in range(5):
        v = v - 0.03 * 4 * (np.outer(v, v) - np.outer(w, w)) @ v
        rows.append((float(w @ v) ** 2, float(((v - (w @ v) * w) ** 2).sum())))
    agree(theory.rank_one_descent(*start, step=0.03, num_steps=5), np.array(rows))


@pytest.mark.theorem("RES-04")
@pytest.mark.theorem("RES-05")
@pytest.mark.parametrize(("block", "depth"), [(1, 1), (1, 7), (1, None), (2, 1), (2, 7), (2, None)])
def test_growth_cost_and_gradient_in_forty_digits(block: int, depth: int | None) -> None:
    values, lam = np.array([1e-3, 0.2, 3.0, 1e6]), 0.07
    rows = list[tuple[float, float, float]]()
    with mpmath.workdps(40):
        for s in map(mpmath.mpf, values):
            one = lambda t: mpmath.exp(-t) if depth is None else (1 + t / depth) ** -depth  # noqa: E731
            pays = lambda t: lam * (t * t if block == 1 else t)  # noqa: E731
            slope = lambda t: mpmath.diff(lambda u: s * one(u) + pays(u), t)  # noqa: B023, E731
            if block == 2 and s <= lam:
                alpha = mpmath.mpf(0)
            else:
                low, high = mpmath.mpf(0), mpmath.mpf(1)
                while slope(high) < 0:
                    high *= 2
                for _ in range(120):
                    middle = (low + high) / 2
                    low, high = (middle, high) if slope(middle) < 0 else (low, middle)
                alpha = (low + high) / 2
            rows.append((float(alpha), float(s * one(alpha) + pays(alpha)), float(one(alpha))))
    alpha, cost, slopes = (np.array(column) for column in zip(*rows, strict=True))
    agree(theory.resnet_growth(tensor(values), residual_weight=lam, depth=depth, block_depth=block), alpha, 1e-9)
    agree(
        theory.resnet_cost(tensor(values), residual_weight=lam, depth=depth, block_depth=block),
        float(cost.sum()),
        1e-12,
    )
    agree(
        theory.resnet_cost_gradient(tensor(values), residual_weight=lam, depth=depth, block_depth=block), slopes, 1e-9
    )


@pytest.mark.theorem("RES-03")
@pytest.mark.parametrize("block", [1, 2])
def test_the_proximal_point_is_the_best_of_a_fine_grid(block: int) -> None:
    lam, step = 0.3, 0.8
    for v in (0.2, 0.7, 1.5, 4.0):
        grid = np.linspace(0, v, 40_001)
        cost = theory.resnet_cost(tensor(grid[:, None]), residual_weight=lam, depth=3, block_depth=block).numpy()
        best = grid[np.argmin((grid - v) ** 2 / 2 + step * cost)]
        found = theory.spectral_penalty_prox(
            tensor(np.array([[v]])), step=step, residual_weight=lam, depth=3, block_depth=block
        )
        assert abs(float(found) - best) <= v / 20_000


@pytest.mark.theorem("RES-09")
def test_any_convex_block_cost_by_a_search_in_one_dimension() -> None:
    values = np.array([0.4, 2.0, 30.0])
    for power in (1.0, 1.5, 3.0):
        least = sum(least_of(lambda a: s * (1 + a) ** -4 + 0.4 * a**power, 0, 60) for s in values)  # noqa: B023
        found = theory.block_cost(tensor(values), lambda t: 0.1 * t**power, depth=4)  # noqa: B023
        agree(found, least, 1e-7)


def sigma(A: Array) -> Array:
    return np.hstack([np.maximum(A, 0), np.ones((len(A), 1))])


@pytest.mark.theorem("LEAKY-05")
@pytest.mark.theorem("LEAKY-14")
@pytest.mark.parametrize("seed", SEEDS)
def test_energies_by_the_pseudo_inverse(seed: int) -> None:
    A, dA, Lt = rng(seed, 4, 9), rng(seed + 1, 4, 9), 2.5
    inverse = np.linalg.pinv(sigma(A) @ sigma(A).T)
    norm = lambda p, q: float(np.trace(p.T @ inverse @ q))  # noqa: E731
    found = theory.energy_split(tensor(A), tensor(dA), effective_depth=Lt)
    agree(found.cost_of_identity, norm(A, A))
    agree(found.coupling, norm(dA, A))
    agree(found.kinetic, norm(dA, dA) / (2 * Lt))
    W = (Lt * A + dA).T @ np.linalg.pinv(sigma(A)).T
    agree(found.lagrangian, float((W**2).sum()) / (2 * Lt))


@pytest.mark.theorem("LEAKY-10")
@pytest.mark.parametrize("seed", SEEDS)
def test_few_neurons_keep_both_covariances(seed: int) -> None:
    A = rng(seed, 3, 40)
    a = theory.covariance_coefficients(tensor(A)).numpy()
    assert (a >= 0).all()
    assert (a > 0).sum() <= 12
    for F in (A, np.maximum(A, 0)):
        agree((F * a) @ F.T, F @ F.T, 1e-9)


@pytest.mark.theorem("LEAKY-12")
@pytest.mark.parametrize("seed", SEEDS)
def test_hamiltonians_and_their_equations_of_motion(seed: int) -> None:
    A, B, W, Lt = rng(seed, 6, 3), rng(seed + 1, 6, 3), rng(seed + 2, 3, 4), 3.0
    S = sigma(A)
    H = Lt / 2 * ((B.T @ S) ** 2).sum() - Lt * (A * B).sum()
    agree(theory.hamiltonian(tensor(A), tensor(B), effective_depth=Lt), H)
    P = (B * (S @ W.T - Lt * A)).sum() - (W**2).sum() / (2 * Lt)
    agree(theory.pontryagin_hamiltonian(tensor(A), tensor(B), tensor(W), effective_depth=Lt), P)
    agree(theory.critical_weights(tensor(A), tensor(B), effective_depth=Lt), Lt * B.T @ S)
    step, moved = 1e-6, np.zeros_like(B)
    for i, j in itertools.product(range(6), range(3)):
        e = np.zeros_like(B)
        e[i, j] = step
        more, less = (Lt / 2 * (((B + s * e).T @ S) ** 2).sum() - Lt * (A * (B + s * e)).sum() for s in (1, -1))
        moved[i, j] = (more - less) / (2 * step)
    agree(theory.velocity(tensor(A), tensor(B)), moved / Lt, 1e-7)


@pytest.mark.theorem("LEAKY-15")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxed_theorem_term_by_term(seed: int) -> None:
    A, B, Lt, gamma = rng(seed, 7, 3), rng(seed + 1, 7, 3), 3.0, 0.4
    K = sigma(A) @ sigma(A).T
    inverse = np.linalg.inv(K + gamma * np.eye(7))
    speed = K @ B - A
    cost = float(np.trace(A.T @ inverse @ A))
    rank = 2 * (A * B).sum() - ((B.T @ sigma(A)) ** 2).sum()
    found = theory.relaxed_energies(tensor(A), tensor(B), effective_depth=Lt, gamma=gamma)
    agree(found.cost_of_identity, cost, 1e-9)
    agree(found.speed, float(np.trace(speed.T @ inverse @ speed)) ** 0.5, 1e-9)
    agree(found.rank, rank, 1e-9)
    moved = speed + gamma * B
    expected = cost - float(np.trace(moved.T @ inverse @ moved)) + gamma * (B**2).sum()
    agree(found.rank_from_identity, expected, 1e-9)
    agree(rank, expected, 1e-9)


@pytest.mark.theorem("LEAKY-17")
def test_alignment_changes_by_moving_one_layer() -> None:
    """<B_l, A_l> - <B_{l-1}, A_{l-1}> with B_{l-1} from the chain rule, at random weights."""
    rho, Lt = np.array([0.2, 0.3]), 2.0
    W, A, B = rng(0, 2, 3, 4), [rng(1, 5, 3)], [rng(2, 5, 3)]
    for l in range(2):
        A.append((1 - rho[l] * Lt) * A[l] + rho[l] * sigma(A[l]) @ W[l].T)
    for l in (1, 0):
        back = (1 - rho[l] * Lt) * B[0] + rho[l] * (B[0] @ W[l][:, :3]) * (A[l] >= 0)
        B.insert(0, back)
    expected = np.array([(B[l + 1] * A[l + 1]).sum() - (B[l] * A[l]).sum() for l in range(2)])
    found = theory.alignment_changes(tensor(np.stack(A)), tensor(np.stack(B)), tensor(W), tensor(rho))
    agree(found, expected)


@pytest.mark.theorem("LEAKY-19")
@pytest.mark.parametrize("depth", [1, 4, 7])
def test_irregular_steps_are_a_mirror_image_of_themselves(depth: int) -> None:
    raw = np.array([1 + 0.7 * (0.25 - abs((l + 0.5) / depth - 0.5)) for l in range(depth)])
    found = step_sizes("irregular", depth, irregularity=0.7)
    agree(found, raw / raw.sum())
    agree(found.flip(0), found.numpy())
