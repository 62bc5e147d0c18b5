import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.diagnostics import leaky_path
from isthmus.theory import (
    features,
    hamiltonian,
    layer_gamma,
    rank_from_hamiltonian,
    relaxed_energies,
    relaxed_norm,
    velocity,
)
from leaky_networks import RIDGE, small_data, trained
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


def test_it_holds_layer_by_layer_on_a_trained_network() -> None:
    network, _ = trained()
    path = leaky_path(network, *small_data(), ridge=RIDGE)
    for A, B in zip(path.activations[:-1], path.momenta[1:], strict=True):
        e = relaxed_energies(A, B, effective_depth=3.0, gamma=1e-2, smoothing=0.1)
        assert_at_most(-e.epsilon, e.excess, slack=1e-9)
        assert_at_most(e.excess, 2 * e.epsilon, slack=1e-9)
        with pytest.raises(AssertionError):
            assert_at_most(e.cost_of_identity, e.rank, slack=1e-9)
