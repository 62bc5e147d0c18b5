"""Solvers on objectives whose minimum is known: a convex quadratic, and a line search on hostile functions."""

import math

import pytest
import torch

from isthmus import FullyConnected
from isthmus.training.ending import stationarity
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.moves import best_of_rank, middle_layers, middle_rank, rebalancing, truncate_middle
from isthmus.training.solvers.line_search import wolfe_search
from isthmus.training.solvers.solver import LBFGS, Adam, Decay, GradientDescent, Solver
from isthmus.training.steps.connected_step import FullyConnectedStep


def affine_problem() -> tuple[FullyConnectedStep, float]:
    """Ridge regression as a network of depth 1, with the objective of its closed-form solution."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 6, generator=generator, dtype=torch.float64) @ torch.diag(torch.logspace(0, 2, 6).double())
    y = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    step = FullyConnectedStep(
        FullyConnected(6, 3, width=1, depth=1, seed=0, dtype=torch.float64), x, DataLoss(SQUARED, y), 0.1
    )
    design = torch.cat([x, torch.ones(50, 1, dtype=torch.float64)], 1)
    best = torch.linalg.solve(design.T @ design / 50 + 0.1 * torch.eye(7, dtype=torch.float64), design.T @ y / 50)
    return step, float((design @ best - y).square().sum() / 50 + 0.1 * best.square().sum())


def run(step: FullyConnectedStep, solver: Solver) -> tuple[float, str]:
    state = solver.start(step)
    while not state["done"]:
        solver.advance(step, state)
    return step(), state["reason"]


def test_lbfgs_reaches_the_closed_form_of_ridge_regression() -> None:
    step, least = affine_problem()
    # at some 1e-10 its gradients, of columns up to a hundred, are rounding
    value, reason = run(step, LBFGS(400, tolerance=1e-8, plateau=0.0))
    assert reason == "converged"
    assert value == pytest.approx(least, rel=1e-12)
    assert stationarity(step) <= 1e-8


def textbook_direction(pairs: list[tuple[torch.Tensor, torch.Tensor]], gradient: torch.Tensor) -> torch.Tensor:
    """The two-loop recursion on the vectors themselves (Nocedal and Wright, algorithm 7.4)."""
    q, alphas = gradient.clone(), []
    for s, y in reversed(pairs):
        alphas.append(torch.dot(s, q) / torch.dot(s, y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    q *= torch.dot(s, y) / torch.dot(y, y)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        q += (alpha - torch.dot(y, q) / torch.dot(s, y)) * s
    return -q


def relu_problem() -> FullyConnectedStep:
    """A small nonlinear fit: its curvature changes from step to step, and some pairs are refused at kinks."""
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(40, d, generator=generator, dtype=torch.float64) for d in (5, 4))
    network = FullyConnected(5, 4, width=9, depth=3, seed=0, dtype=torch.float64)
    return FullyConnectedStep(network, x, DataLoss(SQUARED, y), 1e-3)


@pytest.mark.parametrize("history", [1, 3, 12])
def test_lbfgs_goes_where_the_two_loop_recursion_points(history: int) -> None:
    step, solver, pairs = relu_problem(), LBFGS(200, history=history, plateau=0.0), []
    state = solver.start(step)
    compared = 0
    for _ in range(60):
        before, gradient, count = step.theta.clone(), state["pairs"][-1].clone(), state["count"]
        solver.advance(step, state)
        moved, change = step.theta - before, step.gradient - gradient
        if pairs:
            wanted = textbook_direction(pairs, gradient)
            cosine = torch.dot(moved, wanted) / (moved.norm() * wanted.norm())
            assert float(1 - cosine) <= 1e-12
            compared += 1
        if state["count"] == count + 1:
            pairs = [*pairs, (moved, change)][-history:]
    assert compared >= 50


@pytest.mark.parametrize("decay", list(Decay), ids=lambda d: d.value)
def test_step_sizes_fall_to_a_tenth_and_are_the_sizes_of_the_steps(decay: Decay) -> None:
    solver = Adam(10, rate=1e-3, decay_from=0.5, decay=decay)
    rates = [solver.rate_at(t) for t in range(1, 11)]
    assert rates[:5] == [1e-3] * 5
    half = 0.2 if decay is Decay.LINEAR else (1 - math.cos(math.pi / 5)) / 2
    assert rates[5] == pytest.approx(1e-3 * (1 - 0.9 * half), rel=1e-12)
    assert rates[9] == pytest.approx(1e-4, rel=1e-12)
    step = affine_problem()[0]
    state, sizes = solver.start(step), []
    while not state["done"]:
        before = step.theta.clone()
        solver.advance(step, state)
        sizes.append(float((step.theta - before).abs().max()))
    assert sizes[0] == pytest.approx(rates[0], rel=1e-3), "the first step of Adam is the rate itself"
    assert sizes[9] < 0.3 * sizes[4]


def test_gradient_descent_tightens_below_its_limit_and_diverges_above() -> None:
    step, least = affine_problem()
    run(step, LBFGS(400, tolerance=1e-8, plateau=0.0))
    step.theta += 0.1  # from the minimum, so that wherever the network began the steepest direction is the largest
    start, at_start = step.theta.clone(), step()
    before = stationarity(step)
    hessian = 2 * torch.cat([step.x, torch.ones(50, 1, dtype=torch.float64)], 1)
    limit = 2 / (float(torch.linalg.matrix_norm(hessian, 2)) ** 2 / 2 / 50 + 0.2)
    value, _ = run(step, GradientDescent(400, rate=0.9 * limit, tolerance=1e-12))
    assert stationarity(step) < 0.5 * before
    assert least * (1 - 1e-12) <= value
    step.theta.copy_(start)
    grown, _ = run(step, GradientDescent(300, rate=1.1 * limit, tolerance=1e-12))
    assert grown > 2 * at_start
    assert run(step, GradientDescent(20_000, rate=3 * limit, tolerance=1e-12))[1] == "diverged"
    converged = GradientDescent(10, rate=0.9 * limit, tolerance=1e9)
    step.theta.copy_(start)
    assert run(step, converged)[1] == "converged"
    with pytest.raises(ValueError, match="needs steps >= 0 and rate > 0"):
        GradientDescent(10, rate=0.0)


def test_adam_alone_does_not_reach_it() -> None:
    step, least = affine_problem()
    value, _ = run(step, Adam(100))
    assert value > least * (1 + 1e-6)


def test_lbfgs_stops_at_its_evaluations_and_says_so() -> None:
    step, _ = affine_problem()
    _, reason = run(step, LBFGS(5, tolerance=1e-12, plateau=0.0))
    assert reason == "limit"


def test_lbfgs_calls_a_flat_objective_a_plateau() -> None:
    step, _ = affine_problem()
    _, reason = run(step, LBFGS(5000, tolerance=1e-30, plateau=1e-3, window=5))
    assert reason == "plateau"


def test_no_bound_beats_the_minimum() -> None:
    step, least = affine_problem()
    for evaluations in (3, 10, 30):
        assert run(step, LBFGS(evaluations))[0] >= least * (1 - 1e-12)


@pytest.mark.parametrize(
    ("value", "slope"),
    [
        (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
        (lambda t: -t * math.exp(-t / 20), lambda t: (t / 20 - 1) * math.exp(-t / 20)),
        (lambda t: math.inf if t > 0.5 else (t - 0.3) ** 2, lambda t: 2 * (t - 0.3)),
        (lambda t: abs(t - 0.7) + 0.1 * t, lambda t: math.copysign(1, t - 0.7) + 0.1),
    ],
    ids=["parabola", "long", "wall", "kink"],
)
def test_line_search_lowers_the_objective(value, slope) -> None:  # noqa: ANN001  # pyright: ignore
    found = wolfe_search(
        lambda t: (value(t), slope(t)), value=float(value(0.0)), slope=float(slope(0.0)), step=1.0, noise=0.0
    )
    assert found is not None
    assert found.step > 0
    assert found.value < value(0.0)


def test_line_search_gives_up_on_an_ascent() -> None:
    assert wolfe_search(lambda t: (t, 1.0), value=0.0, slope=-1.0, step=1.0, noise=0.0) is None


def test_truncation_is_the_best_approximation_of_its_rank() -> None:
    network = FullyConnected(6, 6, width=8, depth=5, seed=0)
    before = network.weights[2].detach().clone()
    truncate_middle(network, 3)
    s = torch.linalg.svdvals(before.double())
    error = float((network.weights[2].detach().double() - before.double()).norm())
    assert error == pytest.approx(float(s[3:].norm()), rel=1e-5)
    assert middle_rank(network, tolerance=1e-5) == 3
    assert torch.linalg.matrix_rank(network.weights[0], rtol=1e-5) == 6, "the first matrix is not in the middle"
    assert float((best_of_rank(before, 2) - before).norm()) > error


def test_a_network_that_diverged_has_no_rank() -> None:
    network = FullyConnected(4, 4, width=5, depth=4, seed=0)
    assert middle_rank(network) > 0
    with torch.no_grad():
        network.weights[1][0, 0] = torch.nan
    assert middle_rank(network) == 0


def test_middle_layers_surround_the_linear_run() -> None:
    network = FullyConnected(4, 4, width=(5, 5, 3, 3, 5, 5), depth=7, linear=(3, 4), seed=0)
    assert middle_layers(network) == [3, 4, 5]
    assert middle_layers(FullyConnected(4, 4, width=5, depth=4, seed=0)) == [2, 3]


def test_rebalancing_keeps_the_function_and_lowers_the_norm() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    y = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    network = FullyConnected(4, 3, width=9, depth=4, seed=0, dtype=torch.float64)
    step = FullyConnectedStep(network, x, DataLoss(SQUARED, y), 0.1)
    outputs, penalty = step.outputs(), float(network.penalty().detach())
    rebalancing(step)
    torch.testing.assert_close(step.outputs(), outputs, rtol=1e-12, atol=1e-12)
    assert float(network.penalty().detach()) < penalty * 0.999
