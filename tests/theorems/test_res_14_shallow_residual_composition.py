from math import log

import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import ResidualComposition, merged_composition, shallow_residual_composition
from isthmus.networks import FullyConnected, jacobians
from isthmus.theory import resnet_jacobian_lower_bound
from theorem_checks import assert_at_most

pytestmark = pytest.mark.theorem("RES-14")


def relu_network(d_in: int, d_out: int, *, depth: int, seed: int) -> FullyConnected:
    network = FullyConnected(d_in, d_out, width=5, depth=depth, seed=seed, dtype=torch.float64)
    with torch.no_grad():
        for bias in network.biases:
            bias.copy_(random(len(bias), seed=seed + 50))
    return network


INNER, OUTER, X = relu_network(4, 2, depth=2, seed=0), relu_network(2, 3, depth=2, seed=1), random(50, 4)


def build(residual_weight: float, *, depth: int = 100, repeats: int | None = None) -> ResidualComposition:
    return shallow_residual_composition(
        INNER, OUTER, depth=depth, residual_weight=residual_weight, repeats=repeats, x=X
    )


@pytest.mark.parametrize("residual_weight", [0.5, 1e-2, 1e-8, 1e-16])
def test_it_is_exact_at_the_stated_cost(residual_weight: float) -> None:
    built = build(residual_weight)
    assert built.network.depth == 100
    assert_same_values(built.network(X), OUTER(INNER(X)))
    assert_equals(built.network.penalty(), built.cost)


@pytest.mark.parametrize("depths", [(1, 1), (1, 3), (3, 1)])
def test_deep_and_affine_networks_fit_too(depths: tuple[int, int]) -> None:
    inner, outer = relu_network(4, 2, depth=depths[0], seed=3), relu_network(2, 3, depth=depths[1], seed=4)
    built = shallow_residual_composition(inner, outer, depth=40, residual_weight=1e-2, x=X)
    assert_same_values(built.network(X), outer(inner(X)))
    assert_equals(built.network.penalty(), built.cost)


def test_the_printed_bias_without_its_share_misses() -> None:
    built = build(1e-2, repeats=5)
    assert_same_values(built.network(X), OUTER(INNER(X)))
    with torch.no_grad():
        for bias in built.network.biases[1:6]:
            bias.mul_(5)  # a_i instead of a_i / m
    with pytest.raises(AssertionError):
        assert_same_values(built.network(X), OUTER(INNER(X)))


def test_the_default_number_of_repeats_is_the_cheapest() -> None:
    best = build(1e-2)
    assert 1 < best.repeats < 32
    assert all(best.cost <= build(1e-2, repeats=m).cost for m in (1, best.repeats - 1, best.repeats + 1, 30))


def test_the_cost_ratio_falls_towards_the_inner_dimension() -> None:
    weights = [1e-2, 1e-4, 1e-8]
    ratios = [build(w, depth=300).cost / (w * log(1 / w) ** 2) for w in weights]
    assert ratios[0] > ratios[1] > ratios[2] > 2


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="needs more than"):
        build(0.1, depth=3)
    with pytest.raises(ValueError, match="needs repeats >= 1"):
        build(0.1, repeats=0)
    with pytest.raises(ValueError, match="needs 0 < lambda < 1"):
        build(-1.0)


def test_the_bound_by_jacobians_lies_below_and_closes_in() -> None:
    found = jacobians(merged_composition(INNER, OUTER), X)
    gaps: list[float] = []
    for lam in (1e-2, 1e-4, 1e-8):
        built = build(lam, depth=300)
        bound = resnet_jacobian_lower_bound(found, residual_weight=lam, depth=300, block_depth=1)
        assert_at_most(bound, built.cost, slack=0)
        gaps.append(built.cost / float(bound))
    assert gaps[0] > gaps[1] > gaps[2] > 1
    heavier = resnet_jacobian_lower_bound(found, residual_weight=10 * lam, depth=300, block_depth=1)
    with pytest.raises(AssertionError):  # a bound for blocks that weigh ten times as much
        assert_at_most(heavier, built.cost, slack=0)
