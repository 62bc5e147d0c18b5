import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import (
    cost_of_identity,
    energy_split,
    features,
    hamiltonian,
    log_pseudo_determinant,
    rank_from_hamiltonian,
    velocity,
)
from theorem_checks import SEEDS, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-05")


def is_in_the_span(A: Tensor, *, bias: bool) -> bool:
    """False where a sample has no active neuron: one of 4,096 has none of twelve, and without bias nothing fits it."""
    values = torch.linalg.svdvals(features(A, bias=bias))
    return bool(values[-1] > 1e-3 * values[0])


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, bias=st.booleans(), depth=st.sampled_from([0.5, 3.0, 20.0]))
def test_the_three_parts_sum_to_the_norm_of_the_least_weights(seed: int, bias: bool, depth: float) -> None:
    A, V = normal(seed, 4, 12), normal(seed + 1, 4, 12)  # more neurons than samples: everything is in the span
    assume(is_in_the_span(A, bias=bias))
    split = energy_split(A, V, effective_depth=depth, bias=bias)
    W = torch.linalg.pinv(features(A, bias=bias)) @ (depth * A + V)
    assert_close(split.lagrangian, W.square().sum() / (2 * depth), relative=1e-9)
    assert_close(split.potential, -depth / 2 * cost_of_identity(A, bias=bias), relative=1e-9)
    with pytest.raises(AssertionError):  # the coupling is no small term
        assert_close(split.lagrangian - split.coupling, W.square().sum() / (2 * depth), relative=1e-9)


def test_outside_the_span_every_energy_is_infinite() -> None:
    split = energy_split(normal(0, 30, 4), normal(1, 30, 4), effective_depth=2.0)
    assert (split.cost_of_identity, split.kinetic, split.potential) == (torch.inf, torch.inf, -torch.inf)


def test_in_linear_networks_the_coupling_is_the_growth_of_the_log_determinant() -> None:
    A, V = normal(2, 6, 4).abs(), normal(3, 4, 4)  # A >= 0: the relu does nothing; V moves inside the span
    step = 1e-5
    moved = [log_pseudo_determinant(A + sign * step * A @ V, rank=4) for sign in (1, -1)]
    growth = (moved[0] - moved[1]) / (2 * step)
    assert_close(energy_split(A, A @ V, effective_depth=1.0, bias=False).coupling, growth, relative=1e-7)


@pytest.mark.theorem("LEAKY-14")
@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, bias=st.booleans())
def test_the_speed_is_what_the_cost_of_identity_exceeds_the_rank_by(seed: int, bias: bool) -> None:
    A, B, Lt = normal(seed, 4, 12), normal(seed + 1, 4, 12), 6.0
    assume(is_in_the_span(A, bias=bias))
    V: Tensor = Lt * velocity(A, B, bias=bias)
    split = energy_split(A, V, effective_depth=Lt, bias=bias)
    rank = rank_from_hamiltonian(hamiltonian(A, B, effective_depth=Lt, bias=bias), effective_depth=Lt)
    size = split.cost_of_identity + abs(float(rank))
    assert_close(2 * split.kinetic / Lt, split.cost_of_identity - rank, relative=0, absolute=1e-8 * size)
    with pytest.raises(AssertionError):  # a factor Lt off
        assert_close(2 * split.kinetic, split.cost_of_identity - rank, relative=0, absolute=1e-8 * size)


def test_no_samples_cost_nothing() -> None:
    none = torch.zeros(0, 3, dtype=torch.float64)
    found = energy_split(none, none, effective_depth=2.0)
    assert (found.cost_of_identity, found.coupling, found.kinetic, found.lagrangian) == (0, 0, 0, 0)
