import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import cost_of_identity, features, numerical_rank, stable_rank_nuclear
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = [pytest.mark.theorem("LEAKY-06"), pytest.mark.theorem("LEAKY-07"), pytest.mark.theorem("LEAKY-08")]


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, k=st.integers(1, 4))
def test_positive_representations_cost_their_rank_without_bias(seed: int, k: int) -> None:
    A = normal(seed, 20, k).abs() @ normal(seed + 1, k, 6).abs()
    rank = int(numerical_rank(A))
    assert_close(cost_of_identity(A, bias=False), float(rank), relative=1e-8)
    assert_at_most(cost_of_identity(A), cost_of_identity(A, bias=False), slack=1e-8)


@pytest.mark.parametrize("scale", [10.0, 1.0, 0.01])
def test_with_bias_the_cost_falls_to_the_affine_dimension(scale: float) -> None:
    A = scale * torch.eye(4, dtype=torch.float64).repeat(3, 1)  # one-hot: 1 lies in its span
    kernel = A @ A.mT
    q = torch.ones(12).double() @ torch.linalg.pinv(kernel) @ torch.ones(12).double()
    assert_close(cost_of_identity(A), 4 - q / (1 + q))
    with pytest.raises(AssertionError):
        assert_close(cost_of_identity(A), 4.0)


def test_a_representation_with_negative_parts_costs_more_than_its_rank_without_bias() -> None:
    """relu(A) = [1 0; 2 1] has one W with relu(A) W = A: [1 -1; 0 3]. With bias the best of a line of them is less."""
    A = torch.tensor([[1.0, -1], [2, 1]], dtype=torch.float64)
    assert_close(cost_of_identity(A, bias=False), 11.0)
    kernel = torch.tensor([[1.0, 2], [2, 5]], dtype=torch.float64)
    for gamma in (1e-3, 1.0):
        with mpmath.workdps(50):
            inverse = (mpmath.matrix(kernel.tolist()) + gamma * mpmath.eye(2)) ** -1
            product = mpmath.matrix(A.tolist()).T * inverse * mpmath.matrix(A.tolist())
            exact = float(product[0, 0] + product[1, 1])
        assert_close(cost_of_identity(A, bias=False, gamma=gamma), exact, relative=1e-11)
        with pytest.raises(AssertionError):
            assert_close(cost_of_identity(A, bias=True, gamma=gamma), exact, relative=1e-11)
    # with the constant 1: K + 1 = [2 3; 3 6], of inverse [6 -3; -3 2] / 3, so (6 - 12 + 8 + 6 + 6 + 2) / 3
    assert_close(cost_of_identity(A), 16 / 3)


def test_the_weights_are_the_least_that_keep_the_representation() -> None:
    A = normal(0, 5, 9)  # more neurons than samples: anything can be kept
    W = torch.linalg.pinv(features(A)) @ A
    assert_close(features(A) @ W, A)
    assert_close(cost_of_identity(A), W.square().sum(), relative=1e-10)


def test_outside_the_span_the_cost_is_infinite_and_the_relaxed_one_large() -> None:
    A = normal(0, 30, 4)
    assert float(cost_of_identity(A)) == torch.inf
    costs = [float(cost_of_identity(A, gamma=g)) for g in (1.0, 1e-2, 1e-4)]
    assert costs == sorted(costs)
    # the literal pseudo-inverse gives 0 for a negative representation: the statement would be false
    assert float(cost_of_identity(-A.abs(), bias=False)) == torch.inf


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, n=st.integers(2, 6))
def test_it_is_at_least_the_nuclear_stable_rank(seed: int, n: int) -> None:
    A = normal(seed, n, 12)
    assert_at_most(stable_rank_nuclear(A), cost_of_identity(A, bias=False), slack=1e-8)
    with pytest.raises(AssertionError):
        assert_at_most(cost_of_identity(A, bias=False) + 1, stable_rank_nuclear(A))


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, scale=st.sampled_from([1e-200, 1.0, 1e200]))
def test_the_stable_rank_is_scale_free_and_lies_between_its_bounds(seed: int, scale: float) -> None:
    A = normal(seed, 5, 4)
    found = stable_rank_nuclear(scale * A)
    assert_close(found, torch.linalg.matrix_norm(A, "nuc") ** 2 / A.square().sum())
    assert_at_most(found, 4.0)
    assert_at_most(A.square().sum() / torch.linalg.matrix_norm(A, 2) ** 2, found)


def test_zero_representations_cost_nothing() -> None:
    zero = torch.zeros(3, 2, dtype=torch.float64)
    assert float(cost_of_identity(zero)) == 0
    assert float(cost_of_identity(zero, bias=False)) == 0
    assert float(stable_rank_nuclear(zero)) == 0
    assert float(cost_of_identity(zero[:0])) == 0


def test_a_neuron_below_rounding_costs_nothing_as_documented() -> None:
    for small, rank in ((1e-20, 1.0), (1e-15, 2.0), (1e-3, 2.0)):
        assert_close(cost_of_identity(torch.diag(torch.tensor([1.0, small]).double()), bias=False), rank)
