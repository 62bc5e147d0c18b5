"""Steps that follow the training: their formulas, the function kept between rounds, resuming, and what they gain."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.training import Outcome, fit
from isthmus.training.adaptive_steps import AdaptiveSteps, even_steps, relative_moves, resampled
from isthmus.training.preconditioned import PreconditionedLBFGS
from leaky_networks import RIDGE, small_data
from theorem_checks import SEEDS, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-19")


def adaptive(depth: int = 10) -> LeakyResNet:
    return LeakyResNet(
        3, 3, width=5, depth=depth, effective_depth=6.0, steps="adaptive", seed=0, dtype=torch.float64
    )  # fmt: skip


SOLVER = AdaptiveSteps(PreconditionedLBFGS(smoothing=(0.1,), evaluations=3000), rounds=4, round_evaluations=60)


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, depth=st.integers(2, 12), damping=st.floats(0.1, 1.0))
def test_new_steps_sum_to_one_under_their_bound(seed: int, depth: int, damping: float) -> None:
    old, moves = normal(seed, depth).exp(), normal(seed + 1, depth).mul(3).exp()
    largest = 1.5 / depth
    new = even_steps(old / old.sum(), moves, damping=damping, largest=largest)
    assert_close(new.sum(), 1.0)
    assert float(new.min()) > 0
    assert float(new.max()) <= largest * (1 + 1e-9)
    with pytest.raises(ValueError, match="needs more than 1 / depth"):
        even_steps(old, moves, damping=damping, largest=1 / depth)


def test_undamped_steps_make_all_layers_move_equally_far() -> None:
    old, rate = torch.full((6,), 1 / 6, dtype=torch.float64), normal(0, 6).exp()  # moves = rate * step
    new = even_steps(old, rate * old, damping=1.0, largest=1.0)
    assert_close(rate * new, (rate * new).mean().expand(6))
    half = even_steps(old, rate * old, damping=0.5, largest=1.0)
    with pytest.raises(AssertionError):
        assert_close(rate * half, (rate * half).mean().expand(6))


def test_resampling_keeps_weights_that_are_linear_in_time() -> None:
    old, new = (normal(s, 8).exp() for s in (0, 1))
    old, new = old / old.sum(), new / new.sum()
    slope, mid = normal(2, 3, 4), lambda rho: rho.cumsum(0) - rho / 2
    found = resampled(mid(old)[:, None, None] * slope, old, new)
    inside = (mid(new) > mid(old)[0]) & (mid(new) < mid(old)[-1])
    assert int(inside.sum()) >= 4
    assert_close(found[inside], (mid(new)[:, None, None] * slope)[inside])
    assert_close(resampled(found, new, new), found)
    assert_close(resampled(found[:1], new[:1], new[:1]), found[:1])


@pytest.mark.slow
def test_training_ends_critical_with_layers_that_move_alike() -> None:
    x, y = small_data()
    network, before = adaptive(), adaptive()
    result = fit(network, x, y, ridge=RIDGE, solver=SOLVER)
    assert result.outcome is Outcome.CONVERGED
    assert_close(network.steps.sum(), 1.0)
    assert float(network.steps.max()) * 6.0 <= 0.9 * (1 + 1e-9)
    fit(before, x, y, ridge=RIDGE, solver=SOLVER.solver)

    def unevenness(net: LeakyResNet) -> float:
        moves = relative_moves(net, x)
        return float(moves.max() / moves.min())

    assert unevenness(network) < unevenness(before) / 2
    with pytest.raises(AssertionError):
        assert_close(network.steps, before.steps)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_bit_for_bit_with_its_steps(tmp_path: Path) -> None:
    x, y = small_data()
    whole, half, rest = adaptive(), adaptive(), adaptive()
    expected = fit(whole, x, y, ridge=RIDGE, solver=SOLVER)
    fit(half, x, y, ridge=RIDGE, solver=SOLVER, checkpoint=tmp_path / "s", callback=lambda e: e.evaluations > 150)
    assert not torch.equal(half.steps, adaptive().steps), "stopped after the steps had moved"
    end = fit(rest, x, y, ridge=RIDGE, solver=SOLVER, checkpoint=tmp_path / "s")
    assert end.objective == expected.objective
    assert torch.equal(rest.steps, whole.steps)
    assert torch.equal(rest.weights, whole.weights)


def test_networks_without_steps_are_refused() -> None:
    x, y = small_data()
    with pytest.raises(TypeError, match="AdaptiveSteps: needs a LeakyResNet, got FullyConnected"):
        fit(FullyConnected(3, 3, width=4, depth=3), x, y, ridge=0.1, solver=AdaptiveSteps())
