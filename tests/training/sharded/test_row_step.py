"""The step on shared rows against the step in memory, for one process; several processes: test_distributed."""

import hashlib

import pytest
import torch

from isthmus import FullyConnected, LeakyResNet
from isthmus.networks import min_norm_projection
from isthmus.networks.min_norm import layer_inputs
from isthmus.training.losses import CROSS_ENTROPY, LOSSES, SQUARED, DataLoss, Loss
from isthmus.training.sharded.row_moves import input_factors, sharded_least_norm
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.sharded.team import Team
from isthmus.training.steps.step import Step, step_of
from row_shares import ROWS, data_of, network
from tolerances import rounding


def assert_same_step(first: Step, second: Step) -> None:
    with torch.no_grad():
        assert second() == pytest.approx(first(), rel=rounding(size=100))
        assert second.data_value == pytest.approx(first.data_value, rel=rounding(size=100))
        torch.testing.assert_close(second.gradient, first.gradient, rtol=rounding(size=400), atol=rounding(size=400))
        assert second.in_float64() == pytest.approx(first.in_float64(), rel=rounding(size=100))
        assert second.computes_constant() == first.computes_constant()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("shape", [{}, {"negative_slope": -0.3}, {"linear": (1,), "bias": False}], ids=str)
def test_it_is_the_step_in_memory_up_to_rounding(loss: Loss, shape: dict[str, object]) -> None:
    (x, data), outputs = data_of(loss), 4 * loss.per_target
    step = ShardedStep(network(outputs, **shape), x, data, 0.01, total=ROWS, team=Team())
    assert_same_step(step_of(network(outputs, **shape), x, data, 0.01), step)
    with pytest.raises(AssertionError):
        assert_same_step(step_of(network(outputs, **shape), x, data, 0.02), step)


def test_leaves_longer_than_what_is_computed_at_once_add_up() -> None:
    x, data = data_of(SQUARED)
    step = ShardedStep(network(), x, data, 0.01, total=ROWS, team=Team(), at_once=300)
    assert len(step.rows.runs(0)) == 5
    assert_same_step(step_of(network(), x, data, 0.01), step)
    assert isinstance(step.network, FullyConnected)
    for r, a in zip(input_factors(step, step.network), layer_inputs(step.network, x), strict=True):
        torch.testing.assert_close(r.T @ r, a.T @ a, rtol=rounding(size=ROWS), atol=rounding(size=ROWS, condition=10.0))


def test_other_networks_are_stepped_by_autograd_with_their_own_penalty() -> None:
    x, data = data_of(SQUARED)
    x = x[:, :4]
    made = [LeakyResNet(4, 4, width=6, depth=3, effective_depth=2.0, seed=0, dtype=torch.float64) for _ in range(2)]
    assert_same_step(step_of(made[0], x, data, 0.3), ShardedStep(made[1], x, data, 0.3, total=ROWS, team=Team()))


@pytest.mark.parametrize("bias", [True, False])
def test_factors_of_the_inputs_give_the_projection_of_the_whole(bias: bool) -> None:
    x, data = data_of(SQUARED)
    x = torch.cat([x[:, :3], x[:, :2]], 1)  # rank 3, so that there is something to project
    step = ShardedStep(network(bias=bias), x, data, 0.01, total=ROWS, team=Team())
    assert isinstance(step.network, FullyConnected)
    for r, a in zip(input_factors(step, step.network), layer_inputs(step.network, x), strict=True):
        torch.testing.assert_close(r.T @ r, a.T @ a, rtol=rounding(size=ROWS), atol=rounding(size=ROWS, condition=10.0))
    expected = min_norm_projection(step.network, x)
    before = step()
    sharded_least_norm(step)
    for mine, theirs in zip(step.network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=rounding(size=400), atol=rounding(size=400))
    assert step() < before


def test_fewer_rows_than_inputs_are_factored_too() -> None:
    x, data = data_of(SQUARED, 20)
    wide = FullyConnected(5, 4, width=30, depth=3, seed=0, dtype=torch.float64)
    step = ShardedStep(wide, x, data, 0.01, total=20, team=Team())
    expected = min_norm_projection(wide, x)
    sharded_least_norm(step)
    for mine, theirs in zip(wide.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


def test_a_constant_network_is_seen_and_constant_targets_are_no_collapse() -> None:
    x, data = data_of(SQUARED)
    zero = network()
    with torch.no_grad():
        zero.weights[-1].zero_()
    assert ShardedStep(zero, x, data, 0.01, total=ROWS, team=Team()).computes_constant()
    flat = DataLoss(SQUARED, torch.ones_like(data.y))
    assert not ShardedStep(zero, x, flat, 0.01, total=ROWS, team=Team()).computes_constant()
    one_class = DataLoss(CROSS_ENTROPY, torch.ones(ROWS, dtype=torch.int64))
    assert not ShardedStep(zero, x, one_class, 0.01, total=ROWS, team=Team()).computes_constant()


def test_the_identity_of_the_data_sees_every_row_and_the_shape_of_the_network() -> None:
    x, data = data_of(SQUARED)

    def identity(x: torch.Tensor, width: int) -> str:
        digest = hashlib.sha256()
        ShardedStep(network(width=width), x, data, 0.01, total=ROWS, team=Team()).identify(digest)
        return digest.hexdigest()

    changed = x.clone()
    changed[-1, -1] += 1e-12
    assert identity(x, 7) == identity(x.clone(), 7)
    assert len({identity(x, 7), identity(changed, 7), identity(x, 8)}) == 3
