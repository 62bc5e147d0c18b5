import pytest
import torch

from closeness import assert_equals, random
from isthmus.constructions import rank_one_interpolator
from isthmus.constructions.piecewise_linear import candidate_directions, end_cost
from isthmus.errors import DataError, ShapeError
from isthmus.networks import jacobians
from shape_checks import own_shape_checks
from tolerances import rounding

pytestmark = pytest.mark.theorem("FC-19")


@pytest.mark.slow
def test_it_interpolates_with_a_penalty_of_exactly_depth_plus_a_constant() -> None:
    x, y = random(12, 4), random(12, 3, seed=1)
    shallow = rank_one_interpolator(x, y, depth=3)
    for depth in (3, 10, 50):
        fit = rank_one_interpolator(x, y, depth=depth)
        steepest = float(jacobians(fit.network, x).abs().max())
        assert fit.network.depth == depth
        assert fit.error <= rounding(size=12, condition=steepest * 10)
        assert_equals(fit.network.penalty(), depth + shallow.constant)
        if depth > 3:
            with pytest.raises(AssertionError):  # a slope of 2 would be a rank of 2
                assert_equals(fit.network.penalty(), 2 * depth + shallow.constant - 3)


def test_it_is_a_function_of_one_coordinate() -> None:
    fit = rank_one_interpolator(random(12, 4), random(12, 3, seed=1), depth=4)
    x = random(30, 4, seed=9)
    moved = x + (torch.eye(4).double() - torch.outer(fit.direction, fit.direction)) @ random(4, seed=3)
    assert float((fit.network(moved) - fit.network(x)).detach().abs().max()) <= rounding(condition=1e5)
    found = jacobians(fit.network, x)
    # against the largest of all: where slopes cancel, all that is left of a Jacobian is rounding
    assert int(torch.linalg.matrix_rank(found, atol=rounding(condition=1e5) * float(found.abs().max())).max()) == 1


def test_more_directions_never_give_a_larger_constant() -> None:
    x, y = random(12, 4), random(12, 3, seed=1)
    constants = [rank_one_interpolator(x, y, depth=3, num_directions=n).constant for n in (1, 20, 200)]
    assert constants[0] >= constants[1] >= constants[2]


@pytest.mark.parametrize("depth", [2, 3, 7])
def test_directions_are_compared_by_the_norms_of_their_networks(depth: int) -> None:
    x, y = random(9, 3) + 30, random(9, 2, seed=1)
    for u in candidate_directions(x, 3, 0):
        made = rank_one_interpolator(x, y, depth=depth, direction=u)
        assert end_cost(x @ made.direction, y, depth) == pytest.approx(made.constant + min(depth, 3), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3, 20])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_moving_the_inputs_costs_no_more_than_its_bias(depth: int, seed: int) -> None:
    """The direction that was best has the same curve after the move; only its bias is another."""
    x, y, move = random(9, 3, seed=seed), random(9, 2, seed=seed + 10), 300 * torch.ones(3, dtype=torch.float64)
    here, there = rank_one_interpolator(x, y, depth=depth), rank_one_interpolator(x + move, y, depth=depth)
    same = rank_one_interpolator(x + move, y, depth=depth, direction=here.direction)
    least = float((x @ here.direction).min())
    moved = least + float(move @ here.direction)
    if depth > 2:
        assert same.constant == pytest.approx(here.constant + moved**2 - least**2, rel=1e-9)
    assert there.constant <= same.constant * (1 + 1e-9)
    assert there.constant <= 20 * here.constant  # 90,000 without a direction across the move
    counts = [rank_one_interpolator(x + move, y, depth=depth, num_directions=n).constant for n in (1, 20, 33, 200)]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("count", [1, 16, 17, 200])
def test_as_many_directions_as_asked_for_are_tried_twice(count: int) -> None:
    """Each as drawn and across the mean; the first ones are the same for every count."""
    x = random(7, 3) + 2
    found, more = candidate_directions(x, count, 5), candidate_directions(x, 300, 5)
    assert found.shape == (2 * count, 3)
    assert torch.equal(found[:count], more[:count])
    assert float((found[count:] @ x.mean(0)).abs().max()) <= rounding(condition=10)
    assert candidate_directions(x - x.mean(0), count, 5).shape[1] == 3
    assert candidate_directions(x[:, :1], count, 5).shape == (count, 1)


def test_depth_two_and_repeated_samples_work() -> None:
    x, y = random(5, 2), random(5, 1, seed=1)
    twice = rank_one_interpolator(torch.cat([x, x]), torch.cat([y, y]), depth=2)
    assert twice.network.depth == 2
    assert twice.error <= rounding(size=12, condition=1e3)
    constant = rank_one_interpolator(x, torch.ones(5, 1), depth=3)
    assert constant.error <= rounding()


def test_bad_input_is_refused_in_words() -> None:
    x = random(3, 2)
    with pytest.raises(DataError, match="equal projections with different targets"):
        rank_one_interpolator(x[[0, 0]], torch.tensor([[0.0], [1.0]]), depth=3)
    with own_shape_checks(), pytest.raises(ShapeError, match="needs x"):
        rank_one_interpolator(x, torch.ones(2, 1), depth=3)
    with pytest.raises(ValueError, match="needs depth >= 2"):
        rank_one_interpolator(x, torch.ones(3, 1), depth=1)
