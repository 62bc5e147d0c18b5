import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.diagnostics import leaky_diagnosis, leaky_path
from isthmus.errors import NumericalWarning
from isthmus.networks import LeakyResNet
from isthmus.theory import hamiltonian_profile, rank_from_hamiltonian
from leaky_networks import RIDGE, random_leaky, random_path, small_data, trained
from theorem_checks import SEEDS, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-13")


@pytest.mark.theorem("LEAKY-12")
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, bias=st.booleans(), smoothing=st.sampled_from([0.0, 0.2]))
def test_the_two_hamiltonians_differ_by_the_distance_from_criticality(seed: int, bias: bool, smoothing: float) -> None:
    network, Lt = random_leaky(seed, bias=bias, smoothing=smoothing), 2.5
    path = random_path(network, seed)
    profile = hamiltonian_profile(
        path.activations, path.momenta, path.weights, effective_depth=Lt, bias=bias, smoothing=smoothing
    )
    off = path.stationarity.square() * path.weights.square().sum((1, 2))
    assert_close(profile.mixed, profile.pontryagin + off / (2 * Lt), relative=1e-10)
    with pytest.raises(AssertionError):  # the factor 1/2 forgotten
        assert_close(profile.mixed, profile.pontryagin + off / Lt, relative=1e-10)


def test_longer_layers_cost_minus_the_pontryagin_hamiltonian() -> None:
    network, ridge, seed = random_leaky(3), 0.3, 3
    path = random_path(network, seed)
    profile = hamiltonian_profile(path.activations, path.momenta, path.weights, effective_depth=2.5)
    slopes = step_gradient(network, seed, ridge)
    assert_close(slopes, -ridge * profile.pontryagin, relative=1e-10)
    with pytest.raises(AssertionError):  # at weights that are not critical the other form is wrong
        assert_close(slopes, -ridge * profile.mixed, relative=1e-10)


def step_gradient(network: LeakyResNet, seed: int, ridge: float) -> torch.Tensor:
    """The gradient through a forward pass written out here, for the network reads its steps as plain numbers."""
    x, y = normal(seed + 2, 8, 3), normal(seed + 3, 8, 2)
    rho, Lt = network.steps.clone().requires_grad_(), network.effective_depth
    a, W = x @ network.embedding.mT, network.weights.detach()
    one = torch.ones(8, 1, dtype=torch.float64)
    for l in range(network.depth):
        a = a + rho[l] * (torch.cat([a.relu(), one], 1) @ W[l].mT - Lt * a)
    value = (a @ network.unembedding.mT - y).square().sum(1).mean()
    value = value + ridge * (rho * W.square().sum((1, 2))).sum() / (2 * Lt)
    return torch.autograd.grad(value, rho)[0]


def test_at_a_critical_point_the_three_forms_agree_and_the_path_is_symplectic_euler() -> None:
    network, result = trained()
    assert result.stationarity <= 1e-8
    path = leaky_path(network, *small_data(), ridge=RIDGE)
    assert_close(path.total_stationarity, result.stationarity, relative=1e-4)
    profile = hamiltonian_profile(path.activations, path.momenta, path.weights, effective_depth=3.0, smoothing=0.1)
    size = float(path.weights.square().sum((1, 2)).max())
    assert_close(profile.mixed, profile.pontryagin, relative=0, absolute=1e-12 * size)
    with pytest.raises(AssertionError):  # levels are not interchangeable: O(rho) apart
        assert_close(profile.mixed, profile.same_level[1:], relative=0, absolute=1e-12 * size)


def test_the_average_oscillates_less_than_either_form() -> None:
    network, _ = trained()
    table = leaky_diagnosis(network, *small_data(), ridge=RIDGE)
    spread = {name: float(np.ptp(table[name].values)) for name in table.data_vars if "hamiltonian" in str(name)}
    assert spread["hamiltonian"] < spread["hamiltonian_mixed"] / 2
    assert spread["hamiltonian"] < spread["hamiltonian_same_level"] / 2
    with pytest.raises(AssertionError):
        assert spread["hamiltonian_mixed"] < spread["hamiltonian_same_level"] / 2
    ranks = rank_from_hamiltonian(torch.from_numpy(table["hamiltonian"].values), effective_depth=3.0)
    assert_close(torch.from_numpy(table["rank_from_hamiltonian"].values), ranks)


def test_far_from_critical_points_a_warning_names_the_stationarity() -> None:
    network = random_leaky(0)
    with pytest.warns(NumericalWarning, match=r"far from critical, relative stationarity \d"):
        table = leaky_diagnosis(network, normal(0, 8, 3), normal(1, 8, 2), ridge=0.3)
    assert table.attrs["stationarity"] > 1e-3
    assert table.sizes == {"layer": 6}


def leak_gradient(network: LeakyResNet, x: torch.Tensor, y: torch.Tensor, ridge: float) -> torch.Tensor:
    """d objective / d Lt at fixed weights, through a forward pass written out here."""
    Lt = torch.tensor(network.effective_depth, dtype=torch.float64, requires_grad=True)
    rho, W, eps = network.steps, network.weights.detach(), float(network.smoothing)
    a, one = x @ network.embedding.mT, torch.ones(len(x), 1, dtype=torch.float64)
    for l in range(network.depth):
        active = (a + (a.square() + eps**2).sqrt()) / 2
        a = a + rho[l] * (torch.cat([active, one], 1) @ W[l].mT - Lt * a)
    value = (a @ network.unembedding.mT - y).square().sum(1).mean()
    value = value + ridge * (rho * W.square().sum((1, 2))).sum() / (2 * Lt)
    return torch.autograd.grad(value, Lt)[0]


def test_a_unit_of_leak_costs_half_the_rank_that_the_hamiltonian_reads() -> None:
    """dV/dLt = (ridge / 2) sum_l rho_l k_l at a critical point, with the mixed Hamiltonian of each layer."""
    network, _ = trained()
    path = leaky_path(network, *small_data(), ridge=RIDGE)
    profile = hamiltonian_profile(path.activations, path.momenta, path.weights, effective_depth=3.0, smoothing=0.1)
    ranks = rank_from_hamiltonian(profile.mixed, effective_depth=3.0)
    slope = leak_gradient(network, *small_data(), RIDGE).detach()
    assert_close(slope, RIDGE / 2 * (network.steps * ranks).sum(), relative=1e-6)
    others = rank_from_hamiltonian(profile.same_level[1:], effective_depth=3.0)
    with pytest.raises(AssertionError):  # at other levels: off by O(rho)
        assert_close(slope, RIDGE / 2 * (network.steps * others).sum(), relative=1e-3)
