"""Steps that follow the training: their formulas, the function kept between rounds, resuming, and what they gain."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.training import Outcome, fit
from isthmus.training.adaptive_steps import AdaptiveSteps, even_steps, relative_moves, resampled
from isthmus.training.preconditioned import TO_RELU, PreconditionedLBFGS
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


def unevenness(network: LeakyResNet, largest: float) -> float:
    """By what factor one step would change against another one if all layers were to move alike under the bound."""
    x, _ = small_data()
    new = even_steps(network.steps, relative_moves(network, x), damping=1.0, largest=largest / 6.0)
    return float((new / network.steps).max() / (new / network.steps).min())


@pytest.mark.parametrize("largest", [0.9, 0.7])
def test_training_ends_critical_with_layers_that_move_alike(largest: float) -> None:
    x, y = small_data()
    network, before, once = adaptive(), adaptive(), adaptive()
    result = fit(network, x, y, ridge=RIDGE, solver=replace(SOLVER, largest=largest))
    assert result.outcome is Outcome.CONVERGED
    assert_close(network.steps.sum(), 1.0)
    assert float(network.steps.max()) * 6.0 <= largest * (1 + 1e-9)
    assert unevenness(network, largest) <= 1.05
    fit(before, x, y, ridge=RIDGE, solver=SOLVER.solver)
    assert unevenness(before, largest) > 2.1
    fit(once, x, y, ridge=RIDGE, solver=replace(SOLVER, largest=largest, rounds=1, final_rounds=0))
    assert unevenness(once, largest) > 1.05


def test_steps_as_long_as_they_may_be_are_left_alone() -> None:
    """Half of the layers are at the bound and move far less than the others: rounds that could not help are spared."""
    x, y = small_data()
    few, many = adaptive(), adaptive()
    results = [
        fit(network, x, y, ridge=RIDGE, solver=replace(SOLVER, largest=0.7, final_rounds=rounds))
        for network, rounds in ((few, 3), (many, 9))
    ]
    moves = relative_moves(many, x)
    assert float(moves.max()) > 2 * float(moves.min())
    assert results[0].gradient_evaluations == results[1].gradient_evaluations
    assert torch.equal(few.steps, many.steps)


@pytest.mark.slow
def test_all_rounds_at_minima_share_the_evaluations_of_the_solver() -> None:
    x, y = small_data()
    solver = replace(SOLVER, rounds=0)
    whole, first = (
        fit(adaptive(), x, y, ridge=RIDGE, solver=replace(solver, final_rounds=rounds)).gradient_evaluations
        for rounds in (6, 0)
    )
    allowed = (first + whole) // 2
    cut = replace(solver, solver=replace(SOLVER.solver, evaluations=allowed))
    result = fit(adaptive(), x, y, ridge=RIDGE, solver=cut)
    assert result.outcome is Outcome.STEP_LIMIT
    assert first < result.gradient_evaluations <= allowed + 20  # of the last line search


def test_steps_stay_where_the_evaluations_end_before_a_minimum() -> None:
    x, y = small_data()
    network = adaptive()
    cut = replace(SOLVER, rounds=0, solver=replace(SOLVER.solver, evaluations=20))
    assert fit(network, x, y, ridge=RIDGE, solver=cut).outcome is Outcome.STEP_LIMIT
    assert torch.equal(network.steps, adaptive().steps)


def test_a_solver_goes_on_at_the_width_that_it_ended_with() -> None:
    whole = PreconditionedLBFGS(smoothing=(0.1, 0.03), evaluations=100)
    assert whole.continued(30) == PreconditionedLBFGS(smoothing=(0.03,), evaluations=70)
    assert whole.continued(200).evaluations == 1
    assert PreconditionedLBFGS(smoothing=TO_RELU).continued(0).smoothing == TO_RELU[-2:]
    assert PreconditionedLBFGS(smoothing=(0.0,)).continued(0).smoothing == (0.0,)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [150, 300])  # on the way; at a minimum
def test_an_interrupted_run_goes_on_bit_for_bit_with_its_steps(tmp_path: Path, stop: int) -> None:
    x, y = small_data()
    whole, half, rest = adaptive(), adaptive(), adaptive()
    expected = fit(whole, x, y, ridge=RIDGE, solver=SOLVER)
    first = fit(adaptive(), x, y, ridge=RIDGE, solver=replace(SOLVER, final_rounds=0))
    fit(half, x, y, ridge=RIDGE, solver=SOLVER, checkpoint=tmp_path / "s", callback=lambda e: e.evaluations > stop)
    assert not torch.equal(half.steps, adaptive().steps), "stopped after the steps had moved"
    assert (stop > first.gradient_evaluations) is (stop == 300)
    end = fit(rest, x, y, ridge=RIDGE, solver=SOLVER, checkpoint=tmp_path / "s")
    assert end.objective == expected.objective
    assert torch.equal(rest.steps, whole.steps)
    assert torch.equal(rest.weights, whole.weights)


def test_networks_without_steps_are_refused() -> None:
    x, y = small_data()
    with pytest.raises(TypeError, match="AdaptiveSteps: needs a LeakyResNet, got FullyConnected"):
        fit(FullyConnected(3, 3, width=4, depth=3), x, y, ridge=0.1, solver=AdaptiveSteps())
