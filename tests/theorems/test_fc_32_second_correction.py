import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import linear_cost_expansion
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("FC-32")


def root_R2(matrix: Tensor) -> Tensor:
    return linear_cost_expansion(matrix).R2.sqrt()


def power(values: Tensor, basis: Tensor, q: float) -> Tensor:
    return (basis * values**q) @ basis.mT


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, q=st.floats(0.1, 0.9))
def test_roots_add_along_the_powers_of_one_matrix(seed: int, q: float) -> None:
    basis, values = torch.linalg.qr(normal(seed, 3, 3)).Q, 1 + normal(seed + 1, 3).abs()
    whole = root_R2(power(values, basis, 1.0))
    assert_close(root_R2(power(values, basis, q)) + root_R2(power(values, basis, 1 - q)), whole, relative=1e-9)
    with pytest.raises(AssertionError):  # R2 itself does not add
        assert_close(root_R2(power(values, basis, q)) ** 2 + root_R2(power(values, basis, 1 - q)) ** 2, whole**2)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS)
def test_roots_are_subadditive_for_commuting_maps(seed: int) -> None:
    basis = torch.linalg.qr(normal(seed, 3, 3)).Q
    first, second = normal(seed + 1, 3).exp(), normal(seed + 2, 3).exp()
    whole = root_R2(power(first * second, basis, 1.0))
    assert_at_most(whole, root_R2(power(first, basis, 1.0)) + root_R2(power(second, basis, 1.0)), slack=1e-9)


def test_it_is_half_the_squared_logarithm_of_the_gram_matrix() -> None:
    matrix = normal(0, 4, 3)
    values, vectors = torch.linalg.eigh(matrix.mT @ matrix)
    logarithm = (vectors * values.log()) @ vectors.mT
    assert_close(linear_cost_expansion(matrix).R2, logarithm.square().sum() / 2)
