import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from torch import Tensor

from isthmus.constructions import compose_with_identity, parallel_sum
from isthmus.networks import FullyConnected, jacobians
from isthmus.theory import linear_cost, linear_cost_expansion, regularity_lower_bound, shallow_path_norm
from theorem_checks import ACTIVE, SEEDS, assert_at_most, assert_close, folded, normal

pytestmark = pytest.mark.theorem("FC-29")
PRECISE = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000}


def assert_composition_adds(outer: Tensor, inner: Tensor, rank: int) -> None:
    parts = [linear_cost_expansion(m, rank=rank).R1 for m in (outer @ inner, outer, inner)]
    assert_at_most(parts[0], parts[1] + parts[2])


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, k=st.integers(1, 3))
def test_first_corrections_are_subadditive_under_composition(seed: int, k: int) -> None:
    inner, outer = normal(seed, k, 4), normal(seed + 1, 5, k)
    assert_composition_adds(outer, inner, k)


def test_the_ranks_must_agree() -> None:
    outer, inner = torch.diag(torch.tensor([1.0, 1e-3])), torch.diag(torch.tensor([1.0, 0.0]))
    product, first, second = (linear_cost_expansion(m).R1 for m in (outer @ inner, outer, inner))
    with pytest.raises(AssertionError):
        assert_at_most(product, first + second)


def test_the_inequality_behind_it_holds_at_every_depth() -> None:
    inner, outer = normal(0, 3, 4), normal(1, 5, 3)
    for first, second in ((1, 1), (2, 5), (7, 3)):
        whole = linear_cost(outer @ inner, depth=first + second)
        assert_at_most(whole, linear_cost(inner, depth=first) + linear_cost(outer, depth=second))


def test_constants_break_additivity_of_sums_when_the_last_bias_is_penalised() -> None:
    def constant_cost(c: float) -> float:
        """R1 of a constant: the last bias alone, or t of it through hidden layers at 2 t (AM-GM)."""
        t = max(0.0, c - 1)
        return (c - t) ** 2 + 2 * t

    def trained(c: float) -> float:
        """Least norm of a scalar ReLU network of depth 3 with value c everywhere; the last bias is what is missing."""

        def norm(p: NDArray[np.float64]) -> float:
            hidden = p[3] * max(p[1] * max(p[0], 0.0) + p[2], 0.0)
            return float(p @ p + (c - hidden) ** 2)

        starts = np.random.default_rng(0).normal(size=(8, 4))
        return min(float(minimize(norm, start, method="Nelder-Mead", options=PRECISE).fun) for start in starts)

    for c in (0.25, 0.5, 2.0):
        assert_close(trained(c), constant_cost(c), absolute=1e-6)
    quarter = FullyConnected.from_layers(
        [torch.zeros(1, 1)] * 3, [torch.zeros(1), torch.zeros(1), torch.tensor([0.25])]
    )
    total = parallel_sum(quarter, quarter)
    assert_close(quarter.penalty().detach(), constant_cost(0.25))
    assert_close(total.network.penalty().detach(), constant_cost(0.5))  # so the sum of two best networks is the best
    with pytest.raises(AssertionError):  # R1(f + g) <= R1(f) + R1(g), as printed
        assert_at_most(constant_cost(0.5), 2 * constant_cost(0.25))
    assert_close(2 * constant_cost(0.25) + total.cross_term, constant_cost(0.5))


def least_identity_cost(low: float) -> float:
    """R(id; [low, 1], 2) without the square of the last bias: a linear program over neurons of 720 directions."""
    angle = torch.arange(720, dtype=torch.float64) * (2 * math.pi / 720)
    x = torch.linspace(low, 1, 41, dtype=torch.float64)
    neurons = (angle.cos() * x[:, None] + angle.sin()).relu()
    columns = torch.cat([neurons, -neurons, torch.ones(41, 2) * torch.tensor([1.0, -1.0])], 1)
    cost = torch.cat([2 * torch.ones(1440), torch.zeros(2)])
    return float(linprog(cost.numpy(), A_eq=columns.numpy(), b_eq=x.numpy()).fun)


def test_the_inner_map_must_be_non_negative() -> None:
    """R(h o g; L_h + L_g) <= R(h; L_h) + R(g; L_g) needs g >= 0: the identity costs 1 as one matrix."""
    one_matrix = float(linear_cost(torch.ones(1, 1).double(), depth=1))
    ends = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)  # x = relu(x + 1)/2 - relu(1 - x)/2 on [-1, 1]
    written = shallow_path_norm(ends, ends.mT / 2, bias=torch.ones(2, dtype=torch.float64))
    assert_close(least_identity_cost(-1.0), float(written), relative=1e-7)
    assert_close(float(written), 2 * 2**0.5)
    assert_at_most(least_identity_cost(0.0), 2 * one_matrix)
    with pytest.raises(AssertionError):
        assert_at_most(least_identity_cost(-1.0), 2 * one_matrix)


@pytest.mark.parametrize("seed", [0, 1])
def test_folded_maps_add_their_first_corrections_under_composition(seed: int) -> None:
    """Beyond linear maps: R1(D relu(Q x)) = 2 log |D|, and R1 of h o g lies between 2 log |J(h o g)|_+ and the sum."""
    inside, outside = [2.0, 0.7, 1.3], [0.6, 3.0, 1.1]
    first = 2 * math.log(math.prod(inside) * math.prod(outside))
    over = list[float]()
    for depth in (20, 40, 80):
        g, h = folded(seed, inside, depth // 2), folded(seed + 5, outside, depth // 2)
        whole = compose_with_identity(g, h, 0, shift=torch.zeros(3, dtype=torch.float64)).network
        x = ACTIVE * torch.ones(1, 3, dtype=torch.float64)
        lower = regularity_lower_bound(jacobians(whole, x).detach(), depth=depth, rank=3)
        assert_close(lower, 3 * depth + first, relative=1e-9)
        assert_close(whole.penalty().detach(), (g.penalty() + h.penalty()).detach())
        over.append(float(whole.penalty().detach()) - float(lower))
    assert_close(
        torch.tensor(over[:2]) / torch.tensor(over[1:]), torch.tensor([2.0, 2.0]), relative=0.03
    )  # to 0 as 1/L
    bent = torch.cat([torch.ones(1, 3), -torch.ones(1, 3)]).double()
    with pytest.raises(AssertionError):  # it is no linear map
        assert_close(whole(bent)[0].detach(), -whole(bent)[1].detach())
    with pytest.raises(AssertionError):  # R1 without its factor 2
        assert_close(lower, 3 * depth + first / 2, relative=1e-9)
