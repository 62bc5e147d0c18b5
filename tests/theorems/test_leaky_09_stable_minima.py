import pytest
import torch
from hypothesis import given, settings

from isthmus.theory import (
    cost_of_identity,
    features,
    negative_energy_fraction,
    neuron_addition_margin,
    relaxed_norm,
    scale_criticality,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-09")
ONE = torch.ones(4, 1, dtype=torch.float64)


def kernel_inverse(A: torch.Tensor, *, bias: bool) -> torch.Tensor:
    S = features(A, bias=bias)
    return torch.linalg.pinv(S @ S.mT, hermitian=True)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_the_cost_grows_with_the_scale_by_this_vector(seed: int) -> None:
    A, step = normal(seed, 4, 12), 1e-4
    growth = (cost_of_identity((1 + step) * A) - cost_of_identity((1 - step) * A)) / (2 * step)
    vector = scale_criticality(A)
    assert_close(2 * vector.square().sum(), growth, relative=1e-5, absolute=1e-9)
    with pytest.raises(AssertionError):
        assert_close(vector.square().sum(), growth, relative=1e-5, absolute=1e-9)


def test_the_added_neuron_changes_the_cost_at_second_order() -> None:
    A = normal(1, 4, 12)
    K = A.relu() @ A.relu().mT
    candidates = torch.cat([K, normal(2, 4, 3)], 1)
    margins = neuron_addition_margin(A, candidates)
    step = 1e-4
    costs = [cost_of_identity(torch.cat([A, step * z[:, None]], 1)) for z in candidates.mT]
    slopes = (torch.stack(costs) - cost_of_identity(A)) / step**2
    assert_close(slopes, margins, relative=1e-3)
    assert bool((margins[:4] < 0).any()), "a random representation with negative entries is no stable minimum"


def test_non_negative_representations_are_stable_without_bias() -> None:
    A = normal(3, 4, 12).abs()
    z = torch.cat([A, normal(4, 4, 4).abs()], 1)
    margins = neuron_addition_margin(A, z, bias=False)
    assert_at_most(torch.zeros_like(margins), margins, slack=1e-9)
    mixed = normal(5, 4, 12)  # with negative entries: the natural candidates lower the cost
    margins = neuron_addition_margin(mixed, mixed.relu() @ mixed.relu().mT, bias=False)
    with pytest.raises(AssertionError):
        assert_at_most(torch.zeros_like(margins), margins, slack=1e-9)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_the_constant_costs_at_most_one(seed: int) -> None:
    A = normal(seed, 4, 3)
    S = features(A, bias=True)
    # 1^T (S S^T)^+ 1 as the square of the least solution of S c = 1, which is right to the condition number of S
    cost = torch.linalg.lstsq(S, ONE, driver="gelsd").solution.square().sum()
    rounding = 32 * torch.finfo(torch.float64).eps * float(torch.linalg.cond(S))
    assert_at_most(cost, 1.0, slack=rounding)
    # relu(A) spans 1, by an identity beside it (one draw in a thousand has a row without a positive entry among 12):
    # strictly less than one, c / (1 + c) with c = 1^T (relu(A) relu(A)^T + I)^-1 1 <= 4
    inside = torch.cat([normal(seed, 4, 12), torch.eye(4, dtype=torch.float64)], 1)
    assert_at_most(ONE.mT @ kernel_inverse(inside, bias=True) @ ONE, 0.8, slack=1e-12)
    outside = torch.cat([ONE - ONE[:1] + torch.eye(4, dtype=torch.float64)[:, :1]], 1)  # relu(A) spans e_1 alone
    assert_close((ONE.mT @ kernel_inverse(outside, bias=True) @ ONE).squeeze(), 1.0, relative=1e-10)


def test_candidates_outside_the_span_are_refused() -> None:
    with pytest.raises(ValueError, match="in the span"):
        neuron_addition_margin(normal(0, 9, 3), normal(1, 9, 1))


@pytest.mark.dear(1)
@pytest.mark.parametrize("seed", range(2))
def test_descent_on_the_cost_ends_without_negative_parts_at_a_whole_number(seed: int) -> None:
    """From a random representation with neurons to spare, bias out: the cost falls to the rank, and A to A >= 0."""
    A = normal(seed, 5, 40).requires_grad_()
    solver = torch.optim.LBFGS([A], max_iter=300, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def cost() -> torch.Tensor:
        solver.zero_grad()
        value = relaxed_norm(A, A.relu(), gamma=1e-9)
        value.backward()
        return value

    start = float(cost().detach())
    assert_close(start, cost_of_identity(A.detach(), bias=False), relative=1e-6)
    share = float(negative_energy_fraction(A.detach()))
    solver.step(cost)
    least = float(cost().detach())
    assert start > 10
    assert abs(least - round(least)) < 0.03
    assert int((torch.linalg.svdvals(A.detach()) > 0.1).sum()) == round(least)
    assert float(negative_energy_fraction(A.detach())) < 0.003 < 0.3 < share
