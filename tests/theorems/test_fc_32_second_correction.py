import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.constructions import compose_with_identity
from isthmus.networks import jacobians
from isthmus.theory import linear_cost_expansion
from theorem_checks import ACTIVE, SEEDS, assert_at_most, assert_close, folded, normal

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


def test_roots_add_for_folded_maps_that_share_the_depth_by_their_roots() -> None:
    """Beyond linear maps: with q L layers for g the norm is k L + R1 + (R2(g) / q + R2(h) / (1 - q)) / L + ..."""
    inside, outside = [math.e**2, 1.0, math.e**-1], [math.e, math.e**-2, math.e**2]  # logs (2, 0, -1) and (1, -2, 2)
    roots = (2 * 5) ** 0.5, (2 * 9) ** 0.5
    assert_close(sum(roots), 7.404918347287666)

    def second(depth: int, layers: int) -> float:
        g, h = folded(0, inside, layers), folded(5, outside, depth - layers)
        whole = compose_with_identity(g, h, 0, shift=torch.zeros(3, dtype=torch.float64)).network
        return depth * (float(whole.penalty().detach()) - 3 * depth - 2 * (1 + 1))  # R1 = 2 (1) + 2 (1)

    share = roots[0] / sum(roots)
    found = [second(depth, round(share * depth)) for depth in (200, 400)]
    assert_close(2 * found[1] - found[0], sum(roots) ** 2, relative=2e-3)
    halved = [second(depth, depth // 2) for depth in (200, 400)]
    assert_close(2 * halved[1] - halved[0], 2 * 10 + 2 * 18, relative=2e-3)
    assert 2 * halved[1] - halved[0] > sum(roots) ** 2 + 1
    whole = compose_with_identity(folded(0, inside, 3), folded(5, outside, 3), 0, shift=torch.zeros(3).double()).network
    J = jacobians(whole, ACTIVE * torch.ones(1, 3, dtype=torch.float64))[0].detach()
    assert_at_most(root_R2(J), sum(roots))  # the map itself, as far as its Jacobian tells
