"""Steps that follow the training: their formulas, the function kept between rounds, resuming, and what they gain."""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.training import FitEvent, FitResult, Limits, Outcome, fit
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps, even_steps, relative_moves, resampled
from isthmus.training.solvers.preconditioned import TO_RELU, PreconditionedLBFGS
from isthmus.training.solvers.solver import LBFGS, Adam, GradientDescent, Solver, State
from isthmus.training.steps.leaky_step import LeakyStep
from leaky_networks import RIDGE, small_data
from theorem_checks import SEEDS, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-19")


def started(seed: int, steps: str = "adaptive") -> LeakyResNet:
    return LeakyResNet(3, 3, width=5, depth=10, effective_depth=6.0, steps=steps, seed=seed, dtype=torch.float64)


@functools.cache
def alive() -> int:
    """The first start that holds on to the data: about a fifth fall to a constant, where no layer moves."""
    x, y = small_data()
    constant = float((y - y.mean(0)).square().sum(1).mean())
    begun = replace(SOLVER.solver, evaluations=100)
    for seed in range(10):
        if fit(started(seed, "equidistant"), x, y, ridge=RIDGE, solver=begun).objective < constant / 2:
            return seed
    raise AssertionError("all starts fall to a constant")


def adaptive() -> LeakyResNet:
    return started(alive())


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
    factor = float((new / network.steps).max() / (new / network.steps).min())
    assert_close(replace(SOLVER, largest=largest).unevenness(network, x), factor)
    return factor


@pytest.mark.slow
@pytest.mark.parametrize("largest", [pytest.param(0.9, marks=pytest.mark.slow), 0.7])
def test_training_ends_critical_with_layers_that_move_alike(largest: float) -> None:
    x, y = small_data()
    network, before, once = adaptive(), adaptive(), adaptive()
    result = fit(network, x, y, ridge=RIDGE, solver=replace(SOLVER, largest=largest))
    assert result.outcome is Outcome.CONVERGED
    assert_close(network.steps.sum(), 1.0)
    assert float(network.steps.max()) * 6.0 <= largest * (1 + 1e-9)
    assert unevenness(network, largest) <= 1.05
    before.adaptive = False  # by anybody else its steps stay where they are
    fit(before, x, y, ridge=RIDGE, solver=SOLVER.solver)
    assert unevenness(before, largest) > 2.1
    fit(once, x, y, ridge=RIDGE, solver=replace(SOLVER, largest=largest, rounds=1, final_rounds=0))
    assert unevenness(once, largest) > 1.05


@pytest.mark.slow
def test_steps_as_long_as_they_may_be_are_left_alone() -> None:
    """Half of the layers are at the bound and move far less than the others: rounds that could not help are spared."""
    x, y = small_data()
    few, many = adaptive(), adaptive()
    results = [
        fit(network, x, y, ridge=RIDGE, solver=replace(SOLVER, largest=0.7, final_rounds=rounds))
        for network, rounds in ((few, 3), (many, 9))
    ]
    moves = relative_moves(many, x)
    assert float(moves.max()) > 1.2 * float(moves.min())  # uneven, while rounds stop at 1.05
    assert results[0].gradient_evaluations == results[1].gradient_evaluations
    assert torch.equal(few.steps, many.steps)


def spoiled_from(network: LeakyResNet, evaluations: int, *, times: int) -> Callable[[FitEvent], bool]:
    """A callback that makes so many iterations from there on diverge."""
    left = times

    def spoil(event: FitEvent) -> bool:
        nonlocal left
        if event.evaluations > evaluations and left:
            left -= 1
            with torch.no_grad():
                network.weights.fill_(torch.nan)
        return False

    return spoil


@functools.cache
def first_minimum(smoothing: tuple[float, ...]) -> tuple[AdaptiveSteps, LeakyResNet, FitResult]:
    """A solver, and what it comes to before its rounds at a minimum begin."""
    x, y = small_data()
    solver = replace(SOLVER, rounds=0, solver=replace(SOLVER.solver, smoothing=smoothing))
    once = adaptive()
    return solver, once, fit(once, x, y, ridge=RIDGE, solver=replace(solver, final_rounds=0))


@pytest.mark.slow
@pytest.mark.parametrize("smoothing", [(0.1,), pytest.param((0.1, 0.0), marks=pytest.mark.slow)])
@pytest.mark.parametrize("cut", ["solver, at once", "solver, later", "limits", "diverged"])
def test_the_last_minimum_is_kept_whatever_ends_the_way_to_the_next(smoothing: tuple[float, ...], cut: str) -> None:
    x, y = small_data()
    solver, once, first = first_minimum(smoothing)
    assert first.outcome is Outcome.CONVERGED
    allowed = first.gradient_evaluations + (0 if cut == "solver, at once" else 5)
    network, limits, callback = adaptive(), None, None
    if cut.startswith("solver"):
        solver = replace(solver, solver=replace(solver.solver, evaluations=allowed))
    elif cut == "limits":
        limits = Limits(evaluations=allowed)
    else:
        callback = spoiled_from(network, allowed, times=1)
    result = fit(network, x, y, ridge=RIDGE, solver=solver, limits=limits, callback=callback)
    assert result.outcome is Outcome.CONVERGED or (cut == "limits" and smoothing[-1] == 0)
    assert result.objective == first.objective
    assert result.stationarity == first.stationarity
    assert torch.equal(network.weights, once.weights)
    assert torch.equal(network.steps, once.steps)
    assert float(network.smoothing) == smoothing[-1]
    assert (result.gradient_evaluations > first.gradient_evaluations) is (cut != "solver, at once")


def test_a_round_that_diverges_on_the_way_is_the_last() -> None:
    x, y = small_data()
    network, heard = adaptive(), list[int]()
    spoil = spoiled_from(network, 80, times=1000)
    result = fit(
        network, x, y, ridge=RIDGE, solver=SOLVER,
        callback=lambda event: heard.append(event.evaluations) or spoil(event),
    )  # fmt: skip
    assert result.outcome is Outcome.DIVERGED
    assert sum(count > 80 for count in heard) < 8  # of both attempts


def test_a_second_attempt_begins_at_the_steps_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ridge at which all weights collapse: both attempts are the same, and the end belongs to its own steps."""
    x, y = small_data()
    begun, start = list[torch.Tensor](), AdaptiveSteps.start

    def recorded(solver: AdaptiveSteps, step: LeakyStep) -> State:
        begun.append(step.network.steps.clone())
        return start(solver, step)

    monkeypatch.setattr(AdaptiveSteps, "start", recorded)
    network = adaptive()
    result = fit(network, x, y, ridge=50.0, solver=SOLVER)
    assert result.outcome is Outcome.COLLAPSED
    assert len(begun) == 2
    assert torch.equal(begun[0], begun[1])
    assert not torch.equal(network.steps, begun[0]), "the steps had moved"


@pytest.mark.slow
def test_steps_that_are_even_on_the_way_spare_the_other_rounds() -> None:
    x, y = small_data()
    results = [
        fit(adaptive(), x, y, ridge=RIDGE, solver=replace(SOLVER, even=100.0, rounds=rounds)).gradient_evaluations
        for rounds in (1, 4)
    ]
    assert results[0] == results[1]


def test_one_layer_has_no_steps_to_move_and_few_layers_no_room() -> None:
    x, y = small_data()
    one = LeakyResNet(3, 3, width=5, depth=1, effective_depth=0.95, steps="adaptive", seed=0, dtype=torch.float64)
    fit(one, x, y, ridge=RIDGE, solver=SOLVER)
    assert one.steps.tolist() == [1.0]
    tight = LeakyResNet(3, 3, width=5, depth=5, effective_depth=4.75, steps="adaptive", seed=0, dtype=torch.float64)
    with pytest.raises(
        ValueError, match=r"5 steps of rho Lt <= 0\.9 cannot add up to Lt = 4\.75. Take more than 5\.28"
    ):
        fit(tight, x, y, ridge=RIDGE, solver=SOLVER)


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


@pytest.mark.parametrize("solver", [Adam(10), (LBFGS(10), GradientDescent(10)), PreconditionedLBFGS()])
def test_solvers_that_leave_adaptive_steps_where_they_are_are_refused_at_once(
    solver: Solver | tuple[Solver, ...],
) -> None:
    network, (x, y) = adaptive(), small_data()
    weights = network.weights.detach().clone()
    with pytest.raises(ValueError, match="would stay equidistant.*AdaptiveSteps"):
        fit(network, x, y, ridge=RIDGE, solver=solver)
    with pytest.raises(ValueError, match="would stay equidistant"):
        fit(network, x, y, ridge=0.0)
    assert torch.equal(network.weights.detach(), weights)
    equal = LeakyResNet(3, 3, width=5, depth=6, effective_depth=2.0, seed=0, dtype=torch.float64)
    assert fit(equal, x, y, ridge=RIDGE, solver=solver, limits=Limits(evaluations=5)).gradient_evaluations > 0
