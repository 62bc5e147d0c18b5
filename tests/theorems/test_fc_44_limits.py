import pytest
import torch

from isthmus.constructions import piecewise_linear_network
from isthmus.networks import FullyConnected, jacobians
from isthmus.theory import linear_cost, schatten_lower_bound
from theorem_checks import ACTIVE, assert_at_most, assert_close, folded, normal

pytestmark = pytest.mark.theorem("FC-44")


def test_the_cost_is_lower_semicontinuous() -> None:
    limit = torch.diag(torch.tensor([2.0, 0.0, 0.0], dtype=torch.float64))
    direction = normal(0, 3, 3)
    for depth in (1, 2, 5, 20):
        tail = [linear_cost(limit + 10.0**-i * direction, depth=depth) for i in range(3, 8)]
        assert_at_most(linear_cost(limit, depth=depth), torch.stack(tail).min() + 1e-2)
    deep = linear_cost(limit + 1e-6 * direction, depth=20)
    with pytest.raises(AssertionError):  # not upper semicontinuous: the ranks of the sequence are paid
        assert_at_most(deep, linear_cost(limit, depth=20) + 1e-2)


def softplus_network(num_knots: int) -> FullyConnected:
    """The piecewise-linear interpolant of log(1 + e^(20 t)) / 20 on [-1, 1], flat before."""
    t = torch.linspace(-1, 1, num_knots, dtype=torch.float64)
    values = torch.nn.functional.softplus(t, beta=20.0)
    last = (values[-1] - values[-2]) / (t[-1] - t[-2])
    return piecewise_linear_network(t, values[:, None], right_slope=last[None])


def test_the_bounds_by_jacobians_hold_for_a_smooth_function_and_its_interpolants() -> None:
    """2 max |f'| = 2 bounds R(f; 2) <= 2 int f'' sqrt(1 + t^2) dt = 2.008 from below: interpolants cost about that."""
    steepest = torch.sigmoid(torch.tensor(20.0, dtype=torch.float64))[None, None, None]
    bound = schatten_lower_bound(steepest, depth=2)
    penalties = [softplus_network(n).penalty().detach() for n in (50, 200, 800)]
    for penalty in penalties:
        assert_at_most(bound, penalty)
        assert_at_most(penalty, 1.01 * bound)
    assert abs(float(penalties[2] - penalties[1])) < abs(float(penalties[1] - penalties[0]))
    with pytest.raises(AssertionError):  # a map twice as steep costs more than these
        assert_at_most(schatten_lower_bound(2 * steepest, depth=2), penalties[2])


def test_folded_maps_that_lose_a_rank_cost_at_least_their_limit() -> None:
    """D relu(Q x) with d_2 = 10^-i: at every depth the costs fall to that of the limit, no faster than d^(2/L)."""
    x = ACTIVE * torch.ones(1, 2, dtype=torch.float64)
    for depth in (2, 10):
        costs = [float(folded(0, [2.0, 10.0**-i], depth).penalty().detach()) for i in (2, 4, 8)]
        bounds = [
            schatten_lower_bound(jacobians(folded(0, [2.0, 10.0**-i], depth), x).detach(), depth=depth)
            for i in (2, 4, 8)
        ]
        limit = depth * 2 ** (2 / depth)
        assert costs == sorted(costs, reverse=True)
        for i, cost, bound in zip((2, 4, 8), costs, bounds, strict=True):
            assert_close(cost, limit + depth * 10 ** (-2 * i / depth))
            assert_at_most(bound, cost)
            assert_at_most(limit, cost)
            assert_close(bound, cost, relative=1e-4)


def test_teeth_that_vanish_cost_what_their_slopes_ask_for_and_their_limit_nothing() -> None:
    """n teeth of height 1/n and slope 1 converge to 0 without their Jacobians: lower semicontinuous, not continuous."""
    for n in (4, 16, 64):
        knots = torch.linspace(0, 2, 2 * n + 1, dtype=torch.float64)
        teeth = piecewise_linear_network(knots, (torch.arange(2 * n + 1) % 2).double()[:, None] / n)
        t = torch.linspace(0, 2, 40 * n + 1, dtype=torch.float64)[:, None]
        assert_close(float(teeth(t).detach().abs().max()), 1 / n, relative=1e-9)
        slopes = jacobians(teeth, (knots[:-1] + 1 / (2 * n))[:, None]).detach()
        assert_close(slopes.abs(), torch.ones_like(slopes), relative=1e-9)
        assert_at_most(2.0, schatten_lower_bound(slopes, depth=2), slack=1e-9)
        assert_at_most(schatten_lower_bound(slopes, depth=2), teeth.penalty().detach())
    flat = piecewise_linear_network(torch.zeros(1), torch.zeros(1, 1))
    assert_close(flat.penalty().detach(), 0.0)
    with pytest.raises(AssertionError):  # not continuous
        assert_at_most(2.0, flat.penalty().detach())
