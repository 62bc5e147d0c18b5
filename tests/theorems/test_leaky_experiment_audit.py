"""A second implementation of what the experiments on leaky networks read, and of how they are trained, by loops.

What the statements mean, and what was measured: docs/figures.md. Connected networks: `test_experiment_audit`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from isthmus import LeakyResNet
from isthmus.figures import Preset, discretisation, leaky_depth
from isthmus.figures.leaky_training import Leaky, data, leaky_part
from isthmus.figures.parts import unheard
from isthmus.tasks import composed_teacher
from isthmus.tasks.teachers import composed_maps
from isthmus.training import fit
from isthmus.training.solvers.adaptive_steps import even_steps, relative_moves
from isthmus.training.solvers.schedule import default_schedule
from leaky_networks import RIDGE, small_data, trained
from theorem_checks import agree, normal, rng, tensor

Array = NDArray[Any]
SMALL = Leaky((3, 1, 3), False, 12, 5, 6, 2.0, "equidistant", 0.05, 60)


def stream_of(network: LeakyResNet, x: Array) -> list[Array]:
    """A_0 .. A_L of Euler's method; rows are samples."""
    Lt, eps = network.effective_depth, float(network.smoothing)
    A = [x @ network.embedding.detach().numpy().T]
    for W, rho in zip(network.weights.detach().numpy(), network.steps.numpy(), strict=True):
        seen = np.hstack([rectified(A[-1], eps), np.ones((len(x), 1))])
        A.append((1 - rho * Lt) * A[-1] + rho * seen @ W.T)
    return A


def rectified(values: Array, eps: float) -> Array:
    """(x + sqrt(x^2 + eps^2)) / 2, the relu at eps = 0."""
    return (values + np.sqrt(values**2 + eps**2)) / 2


def momenta_of(network: LeakyResNet, A: list[Array], y: Array, ridge: float) -> list[Array]:
    """B_L = 2 / (ridge n) (Y - A U^T) U and, backwards, B_{l-1} = (1 - rho Lt) B_l + rho sigma'(A) * (B_l V)."""
    Lt, eps = network.effective_depth, float(network.smoothing)
    U = network.unembedding.detach().numpy()
    B = [2 / (ridge * len(y)) * (y - A[-1] @ U.T) @ U]
    for l in range(network.depth - 1, -1, -1):
        rho, V = float(network.steps[l]), network.weights.detach().numpy()[l][:, : network.width]
        slope = (1 + A[l] / np.sqrt(A[l] ** 2 + eps**2)) / 2 if eps else (A[l] >= 0).astype(float)
        B.insert(0, (1 - rho * Lt) * B[0] + rho * slope * (B[0] @ V))
    return B


@pytest.mark.theorem("LEAKY-20")
@pytest.mark.theorem("LEAKY-22")
@pytest.mark.parametrize(("dimensions", "residual"), [((20, 5, 20), False), ((30, 6, 3, 30), True)])
def test_the_tasks_of_the_paper_are_standardised_and_of_their_rank(dimensions: tuple[int, ...], residual: bool) -> None:
    setting = replace(SMALL, dimensions=dimensions, residual=residual, num_samples=100)
    x, y, other_x, other_y = (part.numpy() for part in data(setting))
    for train, test in ((x, other_x), (y, other_y)):
        both = np.concatenate([train, test])
        assert len(train) == len(test) == 100
        agree(both.mean(0) + 1, np.ones(both.shape[1]), 1e-12)
        agree(both.std(0), np.ones(both.shape[1]), 1e-12)
    assert np.linalg.matrix_rank(x, tol=1e-6 * np.linalg.norm(x)) == dimensions[0]  # the inputs fill their space
    # the maps again, each followed by its own mean and scale: y, and the rank of its slopes by differences
    maps = composed_maps(dimensions, residual=residual, seed=setting.seed)
    inner = torch.cat([tensor(x), tensor(other_x)])
    scales: list[tuple[torch.Tensor, torch.Tensor]] = []
    for g in maps:
        inner = g(inner)
        scales.append((inner.mean(0), inner.std(0, correction=0)))
        inner = (inner - scales[-1][0]) / scales[-1][1]
    agree(inner[:100], y, 1e-10)
    rows = torch.from_numpy(x[:1]) + 1e-6 * torch.cat([torch.eye(dimensions[0]), -torch.eye(dimensions[0])]).double()
    for g, (mean, scale) in zip(maps, scales, strict=True):
        rows = (g(rows) - mean) / scale
    slopes = ((rows[: dimensions[0]] - rows[dimensions[0] :]) / 2e-6).numpy()
    s = np.linalg.svd(slopes, compute_uv=False)
    rank = min(dimensions)
    assert s[rank] < 1e-6 * s[0] < s[rank - 1]
    assert composed_teacher(dimensions, num_samples=20, residual=residual).true_rank == rank


@pytest.mark.theorem("LEAKY-20")
@pytest.mark.theorem("LEAKY-22")
def test_the_sizes_of_the_paper_stand_in_its_presets() -> None:
    """Appendix B: width 200, a thousand rows, 0.002, 50 layers, Lt from 4 to 22, 20,000 and 10,000 epochs."""
    sizes = leaky_depth.plan(Preset.PAPER).sizes
    assert (min(sizes.effective_depths), max(sizes.effective_depths)) == (4, 22)
    for network in (sizes.network, discretisation.plan(Preset.PAPER).sizes.network):
        assert (network.num_samples, network.width, network.ridge, network.evaluations) == (1000, 200, 0.002, 30_000)
    assert (sizes.network.depth, sizes.network.dimensions) == (50, (20, 5, 20))
    other = discretisation.plan(Preset.PAPER).sizes
    assert (other.network.effective_depth, other.network.dimensions, other.shown) == (3, (30, 6, 3, 30), 18)


@pytest.mark.theorem("LEAKY-21")
@pytest.mark.theorem("LEAKY-23")
def test_what_the_figures_read_off_a_leaky_network(tmp_path: Path) -> None:
    setting = replace(SMALL, steps="irregular")
    table = leaky_part(setting).make(tmp_path / "checkpoint", unheard)
    x, y, other_x, other_y = (part.numpy() for part in data(setting))
    network = LeakyResNet(
        3, 3, width=5, depth=6, effective_depth=2.0, steps="irregular", seed=0, dtype=torch.float64
    )  # fmt: skip
    solver = default_schedule(network, evaluations=60, ridge=0.05)
    fit(network, tensor(x), tensor(y), ridge=0.05, solver=solver)
    Lt, L, n = 2.0, 6, len(x)
    A = stream_of(network, x)
    B = momenta_of(network, A, y, 0.05)
    W, U, eps = network.weights.detach().numpy(), network.unembedding.detach().numpy(), float(network.smoothing)
    S = [np.hstack([rectified(a, eps), np.ones((n, 1))]) for a in A]

    def energy(s: Array, a: Array, b: Array) -> float:
        return Lt / 2 * ((b.T @ s) ** 2).sum() - Lt * (a * b).sum()

    mixed = np.array([energy(S[l], A[l], B[l + 1]) for l in range(L)])
    same = np.array([energy(*t) for t in zip(S, A, B, strict=True)])
    agree(table["hamiltonian_mixed"].values, mixed, 1e-7)
    agree(table["hamiltonian"].values, (same[:-1] + 2 * mixed + same[1:]) / 4, 1e-7)
    identity, kinetic, product = (np.zeros(L) for _ in range(3))
    for l in range(L):
        K = S[l] @ S[l].T
        relaxed = np.linalg.inv(K + 1e-4 * np.linalg.eigvalsh(K)[-1] * np.eye(n))
        speed = Lt * (K @ B[l + 1] - A[l])
        identity[l] = np.trace(A[l].T @ relaxed @ A[l])
        kinetic[l] = np.trace(speed.T @ relaxed @ speed) / (2 * Lt)
        product[l] = np.linalg.norm(B[l + 1].T @ S[l])
    agree(table["cost_of_identity"].values, identity, 1e-6)
    agree(table["kinetic_energy"].values, kinetic, 1e-6)
    sizes: Array = np.array([np.linalg.norm(b) for b in B])
    agree(table["momentum_norm"].values, sizes[1:], 1e-7)
    agree(table["product_norm"].values, product, 1e-7)
    agree(leaky_depth.stable(table.assign(effective_depth=Lt)).values, identity - 2 / Lt * kinetic, 1e-6)
    moved = sum(np.linalg.norm(b - a) for a, b in zip(A[:-1], A[1:], strict=True)) / n**0.5
    agree(float(table["path_length"]), float(moved), 1e-9)
    wrong = ((stream_of(network, other_x)[-1] @ U.T - other_y) ** 2).mean()
    agree(float(table["test_error"]), float(wrong), 1e-9)
    spectra: Array = np.stack([np.linalg.svd(w, compute_uv=False) for w in W])
    agree(table["weight_singular_values"].values, spectra, 1e-9)
    agree(table["position"].values, np.cumsum(network.steps.numpy()), 1e-12)
    with pytest.raises(AssertionError):  # momenta of the layer before are others
        agree(table["momentum_norm"].values, sizes[:-1], 1e-3)


@pytest.mark.theorem("LEAKY-19")
@pytest.mark.theorem("LEAKY-22")
def test_steps_that_move_alike_by_the_formula_of_the_paper() -> None:
    for L in (5, 8):
        made = LeakyResNet(2, 2, width=4, depth=L, effective_depth=2.0, steps="irregular", dtype=torch.float64)
        places = (np.arange(L) + 0.5) / L
        steps: Array = 1 / L + 1 / L * (0.25 - np.abs(places - 0.5))
        agree(made.steps, steps / steps.sum(), 1e-12)
    network = LeakyResNet(2, 2, width=4, depth=8, effective_depth=2.0, seed=3, dtype=torch.float64)
    x = rng(0, 9, 2)
    A = stream_of(network, x)
    moves: Array = np.array([np.linalg.norm(b - a) / np.linalg.norm(b) for a, b in zip(A[:-1], A[1:], strict=True)])
    agree(relative_moves(network, tensor(x)), moves, 1e-12)
    rho = network.steps.numpy()
    wanted: Array = rho / moves  # 1 / c_l with c_l = |A_l - A_{l-1}| / (rho_l |A_l|)
    agree(even_steps(tensor(rho), tensor(moves), damping=1.0, largest=1.0), wanted / wanted.sum(), 1e-12)
    with pytest.raises(AssertionError):  # half of the way is not all of it
        agree(even_steps(tensor(rho), tensor(moves), damping=0.5, largest=1.0), wanted / wanted.sum(), 1e-3)


@pytest.mark.theorem("LEAKY-25")
def test_a_critical_point_by_the_method_of_newton() -> None:
    """Gradients by momenta, backwards in loops; the Hessian by their imaginary parts, no difference taken."""
    network, result = trained()
    x, y = (part.numpy() for part in small_data())
    Lt, n, eps = network.effective_depth, len(x), float(network.smoothing)
    rho, kept = network.steps.numpy(), network.weights.detach().numpy()
    E, U = network.embedding.detach().numpy(), network.unembedding.detach().numpy()

    def objective_and_gradient(W: Array) -> tuple[Array, Array]:
        """Of many weights at once, (m, 8, 5, 6), complex ones too."""
        A, S = [np.broadcast_to(x @ E.T, (len(W), n, 5))], []
        for l in range(8):
            S.append(np.concatenate([rectified(A[-1], eps), np.ones((len(W), n, 1))], 2))
            A.append((1 - rho[l] * Lt) * A[-1] + rho[l] * S[-1] @ W[:, l].swapaxes(1, 2))
        missed = y - A[-1] @ U.T
        value = (missed**2).sum((1, 2)) / n + RIDGE / (2 * Lt) * (rho * (W**2).sum((2, 3))).sum(1)
        momenta, found = 2 / (RIDGE * n) * missed @ U, np.empty_like(W)
        for l in range(7, -1, -1):
            found[:, l] = rho[l] * RIDGE / Lt * (W[:, l] - Lt * momenta.swapaxes(1, 2) @ S[l])
            slope = (1 + A[l] / np.sqrt(A[l] ** 2 + eps**2)) / 2
            momenta = (1 - rho[l] * Lt) * momenta + rho[l] * slope * (momenta @ W[:, l, :, :5])
        return value, found.reshape(len(W), -1)

    def newton(W: Array) -> Array:
        _, gradient = objective_and_gradient(W[None])
        turned = W.reshape(1, -1) + 1e-30j * np.eye(W.size)
        hessian = np.imag(objective_and_gradient(turned.reshape(-1, *W.shape))[1]) / 1e-30
        agree(hessian, hessian.T, 1e-9)
        assert np.linalg.eigvalsh(hessian)[0] > 0
        return W - np.linalg.solve(hessian, gradient[0]).reshape(W.shape)

    value, _ = objective_and_gradient(kept[None])
    agree(result.objective, value[0], 1e-12)
    moved = newton(kept)
    agree(kept, moved, 1e-6)
    least = objective_and_gradient(moved[None])[0][0]
    agree(value[0], least, 1e-12)  # lower by less than the rounding of a sum over 36 outputs and 240 weights
    start = kept + 1e-4 * normal(7, *kept.shape).numpy()
    with pytest.raises(AssertionError):
        agree(start, newton(start), 1e-5)
    with pytest.raises(AssertionError):
        agree(objective_and_gradient(start[None])[0][0], least, 1e-9)
    for _ in range(3):
        start = newton(start)
    agree(start, moved, 1e-7)
