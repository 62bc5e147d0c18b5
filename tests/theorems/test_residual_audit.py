"""A second implementation of statements on residual networks that `test_audit` leaves out, in numpy and mpmath.

Networks are run by loops of numpy over their weights. What the statements mean, and their controls: each id's file.
"""

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from isthmus import LeakyResNet, ResNet, constructions, theory
from isthmus.networks import releaked
from theorem_checks import Array, agree, random_network, rng, run_connected, tensor

SEEDS = [0, 1, 2]


def run_resnet(network: ResNet, x: Array) -> Array:
    first, *inner, last = [w.detach().numpy() for w in network.weight_layers()]
    b = [p.detach().numpy() for p in network.biases] or [0.0] * (len(inner) + 2)
    x = x @ first.T + b[0]
    act = (lambda t: t) if network.linear else (lambda t: np.maximum(t, 0))
    for i in range(0, len(inner), network.block_depth):
        z = act(x @ inner[i].T + b[i + 1])
        x = x + (z if network.block_depth == 1 else z @ inner[i + 1].T + b[i + 2])
    return x @ last.T + b[-1]


@pytest.mark.theorem("RES-01")
@pytest.mark.theorem("RES-02")
@pytest.mark.theorem("RES-10")
@pytest.mark.parametrize(("blocks", "linear"), itertools.product([1, 2], [True, False]))
def test_residual_networks_by_loops(blocks: int, linear: bool) -> None:
    network = ResNet(3, 2, width=4, depth=3, block_depth=blocks, residual_weight=0.3, linear=linear, seed=1).double()
    x = rng(3, 20, 3)
    agree(network(tensor(x)), run_resnet(network, x), 1e-12)
    W = [w.detach().numpy() for w in network.weight_layers()]
    ends, inner = sum((w**2).sum() for w in (W[0], W[-1])) / 2, sum((w**2).sum() for w in W[1:-1])
    agree(network.penalty(), ends + 0.3 * inner * (3 if blocks == 1 else 0.5), 1e-12)


@pytest.mark.theorem("RES-06")
@pytest.mark.theorem("RES-12")
@pytest.mark.theorem("RES-15")
@pytest.mark.parametrize(("lam", "depth"), itertools.product([1e-300, 0.02, 1.0, 1e6], [1, 10_000]))
def test_costs_of_residual_networks_in_fifty_digits(lam: float, depth: int) -> None:
    s = np.array([40.0, 1.5, 0.5, 1e-150])
    with mpmath.workdps(50):
        big, r = [mpmath.mpf(v) for v in s], mpmath.mpf(1) / (depth + 1)
        two = sum(v if v <= lam else lam * ((depth + 1) * (v / lam) ** r - depth) for v in big)
        limit = sum(v if v <= lam else lam * (1 + mpmath.log(v / lam)) for v in big)
    agree(theory.resnet_cost(tensor(s), residual_weight=lam, depth=depth, block_depth=2), float(two), 1e-12)
    agree(theory.resnet_cost(tensor(s), residual_weight=lam, block_depth=2), float(limit), 1e-12)
    bound = theory.resnet_jacobian_lower_bound(
        torch.diag(tensor(s))[None], residual_weight=lam, depth=depth, block_depth=2, error=0.0
    )
    assert 0 <= float(two) - float(bound) <= 1e-4 * float(two) + lam * 800 * (lam < 1e-17)


@pytest.mark.theorem("RES-07")
@pytest.mark.theorem("RES-08")
@pytest.mark.parametrize("seed", range(20))
def test_ratios_of_singular_values_are_bounded_by_the_outer_factors(seed: int) -> None:
    A, B, C = rng(seed, 3, 4), rng(seed + 50, 4, 4), rng(seed + 90, 4, 3)
    outer, mid, inner, all_of = (np.linalg.svd(m, compute_uv=False) for m in (A, B, C, A @ B @ C))
    for k in (1, 2, 3):
        found = [float(theory.log_pseudo_determinant(tensor(m), rank=k)) for m in (A @ B @ C, A, B, C)]
        agree(found[0], np.log(all_of[:k]).sum(), 1e-9)
        assert found[0] - found[2] <= found[1] + found[3] + 1e-9
        assert np.log(all_of[:k] / mid[:k]).sum() <= np.log(outer[:k] * inner[:k]).sum() + 1e-9
    ratios = np.linalg.svd(A @ B, compute_uv=False) / mid[:3]
    assert (ratios**2).sum() <= (outer**2).sum() * (1 + 1e-12)


@pytest.mark.theorem("RES-13")
@pytest.mark.theorem("RES-14")
@pytest.mark.parametrize("make", [constructions.residual_composition, constructions.shallow_residual_composition])
def test_compositions_as_residual_networks_compute_and_cost_what_they_say(make: Any) -> None:
    g, h = random_network(1, [3, 4, 2]), random_network(2, [2, 4, 3])
    x = rng(8, 30, 3)
    for lam in (1e-2, 1e-12):
        made = make(g, h, depth=400, residual_weight=lam, x=tensor(x))
        agree(run_resnet(made.network, x), run_connected(h, run_connected(g, x)), 1e-7)
        W = [w.detach().numpy() for w in made.network.weight_layers()]
        factor = lam * (400 if made.network.block_depth == 1 else 0.5)
        ends = sum((w**2).sum() for w in (W[0], W[-1])) / 2
        agree(made.cost, ends + factor * sum((w**2).sum() for w in W[1:-1]), 1e-9)


@pytest.mark.theorem("LEAKY-01")
@pytest.mark.theorem("LEAKY-02")
@pytest.mark.theorem("LEAKY-03")
@pytest.mark.theorem("LEAKY-11")
@pytest.mark.theorem("LEAKY-13")
@pytest.mark.parametrize("scheme", ["euler", "exponential"])
def test_a_leaky_network_its_momenta_and_its_energies_by_loops(scheme: Any) -> None:
    Lt, L = 3.0, 6
    network = LeakyResNet(2, 2, width=4, depth=L, effective_depth=Lt, seed=2, scheme=scheme, dtype=torch.float64)
    x, y = rng(1, 9, 2), rng(2, 9, 2)
    W = network.weights.detach().numpy()
    E, U = network.embedding.detach().numpy(), network.unembedding.detach().numpy()
    steps = np.full(L, 1 / L)
    rho = steps if scheme == "euler" else (1 - np.exp(-steps * Lt)) / Lt
    A = [x @ E.T]
    for w, step in zip(W, rho, strict=True):
        seen = np.hstack([np.maximum(A[-1], 0), np.ones((9, 1))])
        A.append((1 - step * Lt) * A[-1] + step * seen @ w.T)
    agree(network(tensor(x)), A[-1] @ U.T, 1e-12)
    agree(network.penalty(), (rho * (W**2).sum((1, 2))).sum() / (2 * Lt), 1e-12)
    B = [2 / (0.1 * 9) * (y - A[-1] @ U.T) @ U]  # -(1 / ridge) of the mean squared error's gradient, backwards
    for l in range(L - 1, -1, -1):
        B.insert(0, (1 - rho[l] * Lt) * B[0] + rho[l] * (A[l] >= 0) * (B[0] @ W[l][:, :4]))
    loss = (tensor(y) - network(tensor(x))).square().sum() / 9 + 0.1 * network.penalty()
    [gradient] = torch.autograd.grad(loss, network.weights)
    for l in range(L):
        wanted = theory.critical_weights(tensor(A[l]), tensor(B[l + 1]), effective_depth=Lt).numpy()
        agree(gradient[l], rho[l] * 0.1 / Lt * (W[l] - wanted), 1e-10)

    def H(a: Array, b: Array) -> float:
        seen = np.hstack([np.maximum(a, 0), np.ones((9, 1))])
        return Lt / 2 * ((b.T @ seen) ** 2).sum() - Lt * (a * b).sum()

    found = theory.hamiltonian_profile(tensor(np.stack(A)), tensor(np.stack(B)), tensor(W), effective_depth=Lt)
    mixed = np.array([H(A[l], B[l + 1]) for l in range(L)])
    same = np.array([H(a, b) for a, b in zip(A, B, strict=True)])
    agree(found.averaged, (same[:-1] + 2 * mixed + same[1:]) / 4, 1e-10)
    if scheme == "euler":
        other, factor = releaked(network, 2.0)
        agree(other(tensor(x)), factor * A[-1] @ U.T, 1e-10)


@pytest.mark.theorem("LEAKY-04")
@pytest.mark.theorem("LEAKY-06")
@pytest.mark.theorem("LEAKY-08")
@pytest.mark.theorem("LEAKY-09")
@pytest.mark.theorem("LEAKY-24")
@pytest.mark.parametrize("seed", SEEDS)
def test_norms_in_a_kernel_by_its_inverse(seed: int) -> None:
    A, V = rng(seed, 4, 6), rng(seed + 1, 4, 6)
    S = np.hstack([np.maximum(A, 0), np.ones((4, 1))])
    K = S @ S.T
    agree(theory.cost_of_identity(tensor(A)), np.trace(A.T @ np.linalg.solve(K, A)), 1e-8)
    agree(theory.least_norm_weights(tensor(A), tensor(V), effective_depth=2), (2 * A + V).T @ np.linalg.pinv(S).T, 1e-8)
    agree(theory.scale_criticality(tensor(A)), A.T @ np.linalg.solve(K, np.ones(4)), 1e-8)
    z = K[:, :1]
    change = float(theory.neuron_addition_margin(tensor(A), tensor(z))[0])
    e = 1e-3
    wider = np.hstack([A, e * z])
    more = float(theory.cost_of_identity(tensor(wider))) - float(theory.cost_of_identity(tensor(A)))
    agree(more / e**2, change, 1e-3)
    nsr = np.linalg.norm(A, "nuc") ** 2 / (A**2).sum()
    assert float(theory.cost_of_identity(tensor(A), bias=False)) >= nsr
    with mpmath.workdps(50):
        for gamma in (1e-2, 1e-12):
            Kg, a = mpmath.matrix((K).tolist()) + gamma * mpmath.eye(4), mpmath.matrix(A.tolist())
            expected = sum((a.T * mpmath.lu_solve(Kg, a[:, i]))[i] for i in range(6))
            agree(theory.relaxed_norm(tensor(A), tensor(S), gamma=gamma), float(expected), 1e-8)
