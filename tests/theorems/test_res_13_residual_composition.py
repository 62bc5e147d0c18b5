from math import inf, log, nan

import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import ResidualComposition, best_embedding_scale, merged_composition, residual_composition
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, jacobians
from isthmus.theory import resnet_jacobian_lower_bound
from theorem_checks import assert_at_most

pytestmark = pytest.mark.theorem("RES-13")


def relu_network(d_in: int, d_out: int, *, depth: int, seed: int, linear: tuple[int, ...] = ()) -> FullyConnected:
    network = FullyConnected(d_in, d_out, width=5, depth=depth, seed=seed, linear=linear, dtype=torch.float64)
    with torch.no_grad():
        for bias in network.biases:
            bias.copy_(random(len(bias), seed=seed + 50))
    return network


INNER, OUTER, X = relu_network(4, 2, depth=2, seed=0), relu_network(2, 3, depth=2, seed=1), random(50, 4)


def build(residual_weight: float, *, depth: int = 60) -> ResidualComposition:
    return residual_composition(INNER, OUTER, depth=depth, residual_weight=residual_weight, x=X)


@pytest.mark.parametrize("residual_weight", [0.5, 1e-1, 1e-4, 1e-8, 1e-16])
def test_it_is_exact_at_the_stated_cost(residual_weight: float) -> None:
    built = build(residual_weight)
    assert built.network.depth == 60
    assert_same_values(built.network(X), OUTER(INNER(X)))
    assert_equals(built.network.penalty(), built.cost)


@pytest.mark.parametrize("depths", [(1, 1), (1, 2), (3, 4)])
def test_deep_and_affine_networks_fit_too(depths: tuple[int, int]) -> None:
    inner, outer = relu_network(4, 2, depth=depths[0], seed=3), relu_network(2, 3, depth=depths[1], seed=4)
    built = residual_composition(inner, outer, depth=20, residual_weight=1e-2, x=X)
    assert_same_values(built.network(X), outer(inner(X)))
    assert_equals(built.network.penalty(), built.cost)


def test_linear_layers_inside_are_multiplied_out() -> None:
    inner = relu_network(4, 2, depth=4, seed=3, linear=(1, 3))
    built = residual_composition(inner, OUTER, depth=20, residual_weight=1e-2, x=X)
    assert_same_values(built.network(X), OUTER(inner(X)))


def test_the_printed_scaling_and_the_printed_bias_both_miss() -> None:
    built, lam = build(1e-4), 1e-4
    scaling = 1 / lam
    num_scaling = 60 - 2
    misprint = build(lam).network
    with torch.no_grad():
        for l in range(1, 59):
            for weight in (misprint.block_weights[2 * l], misprint.block_weights[2 * l + 1]):
                weight.copy_(weight.sign() * (scaling ** (1 / num_scaling)) ** 0.5 - weight.sign())
    with pytest.raises(AssertionError):  # sqrt(tau^{1/L}) - 1 instead of sqrt(tau^{1/L} - 1)
        assert_same_values(misprint(X), OUTER(INNER(X)))
    misprint = build(lam).network
    with torch.no_grad():  # beta = 1/sqrt(lambda) instead of sqrt(lambda) in the last block
        misprint.biases[1 + 2 * 59].mul_(lam)
    with pytest.raises(AssertionError):
        assert_same_values(misprint(X), OUTER(INNER(X)))
    assert_same_values(built.network(X), OUTER(INNER(X)))


@pytest.mark.slow
def test_the_cost_per_lambda_log_approaches_the_inner_dimension() -> None:
    weights = [1e-2, 1e-8, 1e-16]
    built = [build(weight, depth=2000) for weight in weights]
    ratios = [b.cost / (w * log(1 / w)) for b, w in zip(built, weights, strict=True)]
    scaling = [b.scaling_cost / (w * log(1 / w)) for b, w in zip(built, weights, strict=True)]
    assert ratios[0] > ratios[1] > ratios[2] > 2
    assert all(2 <= ratio < 2.03 for ratio in scaling)


def test_the_best_embedding_scale_costs_less_than_the_paper_s() -> None:
    lam = 1e-3
    scale = best_embedding_scale(lam, rank=2, d_in=4, d_out=3)
    better = residual_composition(INNER, OUTER, depth=60, residual_weight=lam, embedding_scale=scale, x=X)
    assert_same_values(better.network(X), OUTER(INNER(X)))
    assert_equals(better.network.penalty(), better.cost)
    assert better.cost < build(lam).cost


def test_no_other_embedding_scale_costs_less() -> None:
    """Of s^2/2 (d_in + d_out) + lambda k log(1/s^2), the part that hangs on s as the scaling blocks grow in number."""
    lam, rank, sides = 1e-3, 2, 7

    def cost(s: float) -> float:
        return s * s / 2 * sides - 2 * lam * rank * log(s)

    def assert_least(s: float) -> None:
        assert all(cost(s) < cost(factor * s) for factor in (0.99, 1.01))

    best = best_embedding_scale(lam, rank=rank, d_in=4, d_out=3)
    assert_least(best)
    with pytest.raises(AssertionError):  # the paper's sqrt(lambda)
        assert_least(lam**0.5)


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="needs 0 < lambda < 1"):
        build(1.0)
    for lam, rank, d_in in ((-1.0, 1, 2), (0.0, 1, 2), (nan, 1, 2), (inf, 1, 2), (0.1, 0, 2), (0.1, 1, -2)):
        with pytest.raises(ValueError, match="best_embedding_scale.*needs lambda > 0, rank >= 1 and a side"):
            best_embedding_scale(lam, rank=rank, d_in=d_in, d_out=2)
    with pytest.raises(ValueError, match="needs more than 2 blocks"):
        build(0.1, depth=2)
    leaky, leaky_outer = (FullyConnected(*d, width=3, depth=2, negative_slope=0.1) for d in ((4, 2), (2, 3)))
    with pytest.raises(ValueError, match="needs ReLU networks"):
        residual_composition(leaky, leaky_outer, depth=9, residual_weight=0.1, x=X)
    with pytest.raises(ValueError, match="needs exactly one of"):
        residual_composition(INNER, OUTER, depth=9, residual_weight=0.1)
    with pytest.raises(ValueError, match="needs 0 < s < 1"):
        residual_composition(INNER, OUTER, depth=9, residual_weight=0.1, embedding_scale=1.0, x=X)
    with pytest.raises(ShapeError, match="The inner network comes first"):
        residual_composition(OUTER, INNER, depth=9, residual_weight=0.1, x=X)


def test_the_bound_by_jacobians_lies_below_and_closes_in() -> None:
    found = jacobians(merged_composition(INNER, OUTER), X)
    gaps: list[float] = []
    for lam in (1e-2, 1e-8, 1e-16):
        built = build(lam, depth=300)
        bound = resnet_jacobian_lower_bound(found, residual_weight=lam, depth=300, block_depth=2)
        assert_at_most(bound, built.cost, slack=0)
        gaps.append(built.cost / float(bound))
    assert gaps[0] > gaps[1] > gaps[2] > 1
    heavier = resnet_jacobian_lower_bound(found, residual_weight=10 * lam, depth=300, block_depth=2)
    with pytest.raises(AssertionError):  # a bound for blocks that weigh ten times as much
        assert_at_most(heavier, built.cost, slack=0)
