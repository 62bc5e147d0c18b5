from typing import Any

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.diagnostics import leaky_path
from isthmus.errors import ShapeError
from isthmus.theory import (
    RelaxedEnergies,
    features,
    hamiltonian,
    layer_gamma,
    path_length_bounds,
    rank_from_hamiltonian,
    relaxed_energies,
    relaxed_norm,
    velocity,
)
from leaky_networks import RIDGE, small_data, trained
from shape_checks import own_shape_checks
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-15")


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, relative=st.floats(1e-4, 1.0), bias=st.booleans(), smoothing=st.sampled_from([0.0, 0.3]))
def test_the_identity_holds_at_every_state(seed: int, relative: float, bias: bool, smoothing: float) -> None:
    A, B = normal(seed, 9, 4), normal(seed + 1, 9, 4)
    gamma = layer_gamma(features(A, bias=bias, smoothing=smoothing), relative=relative)
    e = relaxed_energies(A, B, effective_depth=3.0, gamma=gamma, bias=bias, smoothing=smoothing)
    size = e.cost_of_identity + e.speed**2 + e.epsilon**2
    assert_close(e.rank, e.rank_from_identity, relative=0, absolute=1e-8 * size)
    assert_close(e.kinetic_energy, 1.5 * e.speed**2)
    with pytest.raises(AssertionError):  # without the term gamma |B|^2
        assert_close(e.rank, e.rank_from_identity - e.epsilon**2, relative=0, absolute=1e-8 * size)


@pytest.mark.parametrize("relative", [1e-6, 1e-4, 1.0])
@pytest.mark.parametrize("width", [4, 30])
def test_the_energies_are_relaxed_norms(relative: float, width: int) -> None:
    A, B, Lt = normal(0, 9, width), normal(1, 9, width), 3.0
    S = features(A, smoothing=0.1)
    gamma = layer_gamma(S, relative=relative)
    e = relaxed_energies(A, B, effective_depth=Lt, gamma=gamma, smoothing=0.1)
    v = velocity(A, B, smoothing=0.1)
    assert_close(e.cost_of_identity, relaxed_norm(A, S, gamma=gamma), relative=1e-9)
    assert_close(e.speed**2, relaxed_norm(v, S, gamma=gamma), relative=1e-9)
    H = hamiltonian(A, B, effective_depth=Lt, smoothing=0.1)
    assert_close(e.rank, rank_from_hamiltonian(H, effective_depth=Lt), relative=1e-10)
    with pytest.raises(AssertionError):
        assert_close(e.speed**2, relaxed_norm(v + gamma * B, S, gamma=gamma), relative=1e-9)


def by_fifty_digits(A: Tensor, B: Tensor, gamma: float) -> dict[str, float]:
    """The energies at Lt = 3 straight from their definitions, with K + gamma inverted."""
    with mpmath.workdps(50):
        S = features(A)
        a, b, s = (mpmath.matrix(part.tolist()) for part in (A, B, S))
        kernel = s * s.T
        inverse = (kernel + mpmath.mpf(gamma) * mpmath.eye(len(A))) ** -1
        velocity = kernel * b - a

        def norm(m: Any) -> Any:
            product = m.T * inverse * m
            return sum(product[i, i] for i in range(product.rows))

        def dot(left: Any, right: Any) -> Any:
            return sum(x * y for x, y in zip(left, right, strict=True))

        pushed = s.T * b
        values = {
            "cost_of_identity": norm(a),
            "speed": mpmath.sqrt(norm(velocity)),
            "kinetic_energy": norm(velocity) * 3 / 2,
            "rank": 2 * dot(a, b) - dot(pushed, pushed),
            "rank_from_identity": norm(a) - norm(velocity + gamma * b) + gamma * dot(b, b),
            "epsilon": mpmath.sqrt(gamma * dot(b, b)),
        }
        return {name: float(value) for name, value in values.items()}


@pytest.mark.parametrize("gamma", [1e-15, 1e-12, 1e-4, 1.0])  # the first two are below 1e6 eps |S|^2
def test_the_energies_against_fifty_digits(gamma: float) -> None:
    A, B = normal(3, 4, 5), normal(4, 4, 5)
    found, exact = relaxed_energies(A, B, effective_depth=3.0, gamma=gamma), by_fifty_digits(A, B, gamma)
    for name, value in exact.items():
        # the identity subtracts two numbers of the size of the cost
        assert_close(getattr(found, name), value, relative=1e-9)
        with pytest.raises(AssertionError):
            assert_close(getattr(found, name), 1.001 * value, relative=1e-9)


def test_more_samples_than_features_against_fifty_digits() -> None:
    """K is singular and the norms of the order of 1 / gamma, so that the term gamma B of the identity counts."""
    A, B, gamma = normal(3, 6, 2), normal(4, 6, 2), 1e-10
    found, exact = relaxed_energies(A, B, effective_depth=3.0, gamma=gamma), by_fifty_digits(A, B, gamma)
    assert_close(found.cost_of_identity, exact["cost_of_identity"], relative=1e-9)
    assert_close(found.speed, exact["speed"], relative=1e-9)
    assert_close(found.rank_from_identity, exact["rank"], relative=0, absolute=1e-13 * exact["cost_of_identity"])


def excesses(power: float) -> tuple[float, float]:
    """How far random states leave the band [-c, 2 c] with c = gamma^power |B|."""
    low = high = 0.0
    for seed in range(100):
        A, B, gamma = normal(seed, 9, 4), normal(seed + 500, 9, 4), 10.0 ** (-(seed % 5) - 1)
        e = relaxed_energies(A, B, effective_depth=3.0, gamma=gamma)
        c = gamma ** (power - 0.5) * e.epsilon
        low, high = max(low, -c - e.excess), max(high, e.excess - 2 * c)
    return low, high


def test_speed_follows_from_cost_and_rank_up_to_the_corrected_error() -> None:
    assert_at_most(max(excesses(0.5)), 0.0, slack=1e-9)
    with pytest.raises(AssertionError):  # as printed: gamma |B|
        assert_at_most(max(excesses(1.0)), 0.0, slack=1e-9)


def test_path_length_bounds_by_hand() -> None:
    made = [RelaxedEnergies(c, s, 0.0, k, k, e) for c, s, k, e in ((5.0, 1.0, 2.0, 0.5), (3.0, 0.5, 2.5, 0.1))]
    steps = torch.tensor([0.25, 0.75], dtype=torch.float64)
    found = path_length_bounds(made, steps, effective_depth=4.0)
    mean = 0.25 * 1.0 + 0.75 * 0.5
    assert (found.lower, found.upper) == pytest.approx((3 - (mean + 0.5) ** 2, 3 + 0.25), rel=1e-14)
    assert found.length == pytest.approx(4 * mean, rel=1e-14)
    with own_shape_checks(), pytest.raises(ShapeError, match="one step per layer"):
        path_length_bounds(made, steps[:1], effective_depth=4.0)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, gamma=st.sampled_from([1e-6, 1e-3, 0.1]))
def test_the_least_cost_is_near_the_rank_up_to_length_and_error(seed: int, gamma: float) -> None:
    """Some layer's rank reaches the lower bound and some layer's obeys the upper one, at any states."""
    states = [(normal(seed + l, 9, 4), normal(seed + 50 + l, 9, 4)) for l in range(5)]
    energies = [relaxed_energies(A, B, effective_depth=3.0, gamma=gamma) for A, B in states]
    bounds = path_length_bounds(energies, torch.full((5,), 0.2, dtype=torch.float64), effective_depth=3.0)
    size = max(e.cost_of_identity for e in energies)
    assert_at_most(bounds.lower, max(e.rank for e in energies), slack=1e-9 * size)
    assert_at_most(min(e.rank for e in energies), bounds.upper, slack=1e-9 * size)


def test_the_first_inequality_on_a_trained_network() -> None:
    network, _ = trained()
    path = leaky_path(network, *small_data(), ridge=RIDGE)
    pairs = list(zip(path.activations[:-1], path.momenta[1:], strict=True))
    energies = [relaxed_energies(A, B, effective_depth=3.0, gamma=1e-2, smoothing=0.1) for A, B in pairs]
    bounds = path_length_bounds(energies, path.steps, effective_depth=3.0)
    for e in energies:  # at a critical point the rank is one number, up to the steps
        assert bounds.lower - 0.1 <= e.rank <= bounds.upper + 0.1
    assert bounds.length == pytest.approx(
        3 * sum(r * e.speed for r, e in zip(path.steps.tolist(), energies, strict=True))
    )
    printed = 0.01 * max(float(B.square().sum()) for _, B in pairs) ** 0.5  # gamma c for sqrt(gamma) c
    assert printed < max(e.epsilon for e in energies)


def test_it_holds_layer_by_layer_on_a_trained_network() -> None:
    network, _ = trained()
    path = leaky_path(network, *small_data(), ridge=RIDGE)
    for A, B in zip(path.activations[:-1], path.momenta[1:], strict=True):
        e = relaxed_energies(A, B, effective_depth=3.0, gamma=1e-2, smoothing=0.1)
        assert_at_most(-e.epsilon, e.excess, slack=1e-9)
        assert_at_most(e.excess, 2 * e.epsilon, slack=1e-9)
        with pytest.raises(AssertionError):
            assert_at_most(e.cost_of_identity, e.rank, slack=1e-9)


def test_the_relaxation_of_a_small_layer_is_that_of_its_size() -> None:
    assert layer_gamma(torch.eye(2).double() * 1e-170, relative=1e40) == pytest.approx(1e-300, rel=1e-12)
    with pytest.raises(ValueError, match="layer_gamma: needs features whose square float64 holds"):
        layer_gamma(torch.eye(2).double() * 1e200)
