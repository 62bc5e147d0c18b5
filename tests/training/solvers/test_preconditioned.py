import statistics
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.training import FitResult, Limits, Outcome, fit
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.solvers import preconditioned
from isthmus.training.solvers import solver as solver_module
from isthmus.training.solvers.curvature_model import linearised, random_mix
from isthmus.training.solvers.line_search import wolfe_search
from isthmus.training.solvers.preconditioned import (
    MOST_DAMPING,
    TO_RELU,
    PreconditionedLBFGS,
    conjugate_gradients,
    damped,
)
from isthmus.training.steps.step import step_of
from leaky_networks import RIDGE, small_data
from theorem_checks import assert_close, normal


def network_of(maps: str, bias: bool = True) -> LeakyResNet:
    network = LeakyResNet(
        3, 3, width=5, depth=4, effective_depth=2.0, steps="irregular", maps=maps, bias=bias, seed=0,
        dtype=torch.float64,
    )  # fmt: skip
    network.smoothing.fill_(0.2)
    return network


@pytest.mark.parametrize(("maps", "bias"), [("fixed", True), ("learned", True), ("fixed", False)])
@pytest.mark.parametrize("combined", [0, 2])
def test_the_linearisation_is_that_of_autograd(maps: str, bias: bool, combined: int) -> None:
    x, y = small_data()
    network, weight = network_of(maps, bias), torch.rand(12, generator=torch.Generator().manual_seed(0)).double()
    data = DataLoss(SQUARED, y, weight / weight.sum())
    step = step_of(network, x, data, RIDGE)
    mix = random_mix(12, combined, 3, torch.Generator().manual_seed(1)) if combined else None
    model, c = linearised(network, x, data, mix), step.curvature
    assert isinstance(c, Tensor)

    def outputs(*parameters: Tensor) -> Tensor:
        names = [name for name, p in network.named_parameters() if p.requires_grad]
        changed = torch.func.functional_call(network, dict(zip(names, parameters, strict=True)), (x,))
        all_outputs = (2 * weight / weight.sum()).sqrt()[:, None] * changed
        return all_outputs if mix is None else torch.einsum("nqd,nd->nq", mix, all_outputs)

    parameters = tuple(p.detach() for p in network.parameters() if p.requires_grad)
    jacobians = torch.func.jacrev(outputs, argnums=tuple(range(len(parameters))))(*parameters)
    rows = 12 * (combined or 3)
    J = torch.cat([j.reshape(rows, -1) for j in jacobians], 1) / c.sqrt()
    u, r = normal(0, len(c)), normal(1, 12, rows // 12)
    assert_close(model.push(u).reshape(-1), J @ u, relative=1e-11)
    assert_close(model.pull(r), J.mT @ r.reshape(-1), relative=1e-11)
    assert_close(model.gram(), J @ J.mT, relative=1e-11)
    assert_close(model.jacobian(), J, relative=1e-11)
    assert (model.count(), model.weights()) == J.shape
    with pytest.raises(AssertionError):
        assert_close(model.gram(), J @ J.mT + torch.eye(rows).double() * 1e-9 * float(J.square().sum()), relative=1e-11)


@pytest.mark.parametrize("combined", [0, 2])
@pytest.mark.parametrize(("maps", "bias"), [("fixed", True), ("learned", True), ("fixed", False)])
@pytest.mark.parametrize("rows", [12, 90])
def test_the_smaller_side_of_the_curvature_is_factored(rows: int, maps: str, bias: bool, combined: int) -> None:
    x, network, damped = normal(2, rows, 3), network_of(maps, bias), 0.3
    mix = random_mix(rows, combined, 3, torch.Generator().manual_seed(1)) if combined else None
    model = linearised(network, x, DataLoss(SQUARED, x.abs()), mix)
    J, v = model.jacobian(), normal(0, model.weights())
    factor = model.factor(damped)
    assert len(factor) == min(J.shape)
    assert (len(factor) == model.count()) == (rows == 12), "both sides are seen"
    ridge = torch.eye(len(v), dtype=torch.float64)
    expected = torch.linalg.solve(damped * ridge + J.mT @ J, v)
    assert_close(model.solved(v, factor, ridge=damped), expected, relative=1e-10)
    with pytest.raises(AssertionError):
        assert_close(model.solved(v, factor, ridge=damped), torch.linalg.solve(ridge + J.mT @ J, v), relative=1e-10)


@pytest.mark.dear(1)
@pytest.mark.parametrize(
    ("widths", "memory"), [((0.2, 0.1), 10**9), ((0.5, 0.1, 0.05), 0)],
    ids=["first stage, all rows", "later stage, sample of rows"],
)  # fmt: skip
def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path: Path, widths: tuple[float, ...], memory: int) -> None:
    x, y = small_data()
    solver = PreconditionedLBFGS(smoothing=widths, evaluations=120, memory=memory, sampled=12, refresh=2)
    whole = network_of("learned")
    expected = fit(whole, x, y, ridge=RIDGE, solver=solver)
    half = network_of("learned")
    stopped = fit(
        half, x, y, ridge=RIDGE, solver=solver, checkpoint=tmp_path / "state",
        callback=lambda event: event.evaluations > 50,
    )  # fmt: skip
    assert stopped.outcome is Outcome.INTERRUPTED
    rest = network_of("learned")
    end = fit(rest, x, y, ridge=RIDGE, solver=solver, checkpoint=tmp_path / "state")
    assert end.objective == expected.objective
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), rest.parameters(), strict=True))
    assert end.objective != stopped.objective
    assert torch.equal(rest.smoothing, whole.smoothing)


def test_what_it_cannot_do_is_refused_in_words() -> None:
    x, y = small_data()
    with pytest.raises(TypeError, match="needs a LeakyResNet, got FullyConnected"):
        fit(FullyConnected(3, 3, width=4, depth=3), x, y, ridge=0.1, solver=PreconditionedLBFGS())
    with pytest.raises(ValueError, match="needs a ridge > 0"):
        fit(network_of("fixed"), x, y, ridge=0.0, solver=PreconditionedLBFGS())
    assert fit(network_of("fixed"), x, y, ridge=0.1, limits=Limits(evaluations=20)).gradient_evaluations >= 20


def test_conjugate_gradients_solve_with_the_tangent_kernel_that_they_never_form() -> None:
    x, y = small_data()
    network = network_of("learned")
    model = linearised(network, x, DataLoss(SQUARED, y))
    right = normal(3, 12, 3)
    kernel = model.gram() + RIDGE * torch.eye(36, dtype=torch.float64)
    expected = torch.linalg.solve(kernel, right.reshape(-1, 1)).view(12, 3)
    found, count = conjugate_gradients(model, right, ridge=RIDGE, iterations=500, residual=1e-12)
    assert_close(found, expected, relative=1e-9)
    assert 3 < count < 500
    with pytest.raises(AssertionError):
        assert_close(conjugate_gradients(model, right, ridge=RIDGE, iterations=3, residual=1e-12)[0], expected)


@pytest.mark.slow
def test_without_room_for_the_kernel_it_reaches_the_same_critical_point() -> None:
    x, y = small_data()
    critical = network_of("fixed")
    fit(critical, x, y, ridge=RIDGE, solver=PreconditionedLBFGS(smoothing=(0.1,), evaluations=20_000, tolerance=1e-6))

    def beside() -> LeakyResNet:  # from afar, each may fall to a critical point of its own
        network = deepcopy(critical)
        with torch.no_grad():
            network.weights.add_(0.01 * normal(4, *network.weights.shape))
        return network

    whole, conjugate, sample = (
        fit(beside(), x, y, ridge=RIDGE,
            solver=PreconditionedLBFGS(
                smoothing=(0.1,), evaluations=20_000, memory=memory, sampled=sampled, tolerance=1e-6))
        for memory, sampled in ((10**9, 12), (0, 0), (0, 12))
    )  # fmt: skip
    for end in (whole, conjugate, sample):
        assert end.outcome is Outcome.CONVERGED
        assert end.stationarity <= 1e-6
        assert end.objective == pytest.approx(whole.objective, rel=1e-9)
    assert conjugate.gradient_evaluations > whole.gradient_evaluations
    assert sample.gradient_evaluations > whole.gradient_evaluations


def test_random_combinations_of_outputs_stand_for_all_of_them_on_the_mean() -> None:
    mix = random_mix(20_000, 2, 5, torch.Generator().manual_seed(0))
    assert_close(mix @ mix.mT, (2.5 * torch.eye(2, dtype=torch.float64)).expand(20_000, -1, -1), relative=1e-12)
    mean = (mix.mT @ mix).mean(0)
    assert_close(mean, torch.eye(5, dtype=torch.float64), relative=0.03)
    assert not torch.allclose(mix[0].mT @ mix[0], mean, atol=0.5)  # one sample alone is not


def test_a_sampled_model_combines_the_outputs_of_all_rows_anew_each_time() -> None:
    x, y = small_data()
    network = network_of("learned")
    step = step_of(network, x, DataLoss(SQUARED, y), RIDGE)
    solver = PreconditionedLBFGS(memory=0, sampled=24, refresh=1)
    state = solver.start(step)
    seen: list[Tensor] = []
    for _ in range(5):  # a model lasts two iterations at refresh = 1
        solver.advance(step, state)
        assert torch.equal(state["anchor"]["ends"][0], x)
        assert state["factor"].shape == (24, 24)
        seen.append(state["anchor"]["mix"])
    assert seen[0].shape == (12, 2, 3)
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    every = PreconditionedLBFGS(memory=0, sampled=100)
    chosen = every.start(step)
    every.advance(step, chosen)
    assert chosen["anchor"]["mix"] is None  # there is room for all outputs
    assert (PreconditionedLBFGS().start(step)["damping"], solver.start(step)["damping"]) == (1.0, 1e3)
    assert not PreconditionedLBFGS().start(step)["matrix_free"]


@pytest.mark.parametrize("weighted", [False, True])
def test_where_rows_outnumber_the_sample_each_gives_one_combination(weighted: bool) -> None:
    x, y = small_data()
    weight = torch.rand(12, generator=torch.Generator().manual_seed(0)).double() if weighted else None
    network = network_of("learned")
    step = step_of(network, x, DataLoss(SQUARED, y, None if weight is None else weight / weight.sum()), RIDGE)
    solver = PreconditionedLBFGS(memory=0, sampled=4, refresh=1)
    state = solver.start(step)
    seen: list[Tensor] = []
    for _ in range(5):
        solver.advance(step, state)
        seen.append(state["anchor"]["ends"][0])
    assert all(len(rows) == 4 and len(torch.unique(rows, dim=0)) == 4 for rows in seen)
    assert state["anchor"]["mix"].shape == (4, 1, 3)
    places = [int((x == row).all(1).nonzero()) for row in seen[-1]]
    shares = torch.full((12,), 1 / 12, dtype=torch.float64) if weight is None else weight / weight.sum()
    # scaled up from 4 rows to 12, so that the model of a sample is that of all on the mean
    assert_close(state["anchor"]["scale"].square()[:, 0], 2 * shares[places] * 12 / 4, relative=1e-12)
    assert not torch.equal(seen[0], seen[2])
    assert torch.equal(seen[0], seen[1])


def test_damping_follows_the_lengths_of_the_steps() -> None:
    assert damped(3.0, []) == 3.0
    assert damped(1.0, [1.0, 0.2, 0.25]) == 4.0
    assert damped(1.0, [1e-3, 1e-3, 1.0]) == 10.0  # at most tenfold at a time
    assert damped(8.0, [0.6]) == 8.0
    assert damped(8.0, [1.0, 1.0, 0.01]) == 4.0
    assert damped(1.5, [1.0]) == 1.0  # the ridge itself, whose model is exact where the data loss is linear
    assert damped(MOST_DAMPING, [0.01]) == MOST_DAMPING


@pytest.mark.slow
@pytest.mark.parametrize("depth", [24, pytest.param(40, marks=pytest.mark.slow)])
def test_damping_leads_through_where_the_model_of_the_curvature_is_bad(
    monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    """Lt = 10: without damping the steps are a tenth of what the model says, and the network falls behind."""
    x, y = small_data()
    solver = PreconditionedLBFGS(smoothing=(0.05,), tolerance=1e-4, evaluations=100)
    lengths: list[float] = []

    def searched(*args: Any, **kwargs: Any) -> Any:
        found = wolfe_search(*args, **kwargs)
        lengths.append(found.step if found else 0.0)
        return found

    def ended(seed: int) -> tuple[FitResult, float]:
        lengths.clear()
        leaky = LeakyResNet(3, 3, width=5, depth=depth, effective_depth=10.0, seed=seed, dtype=torch.float64)
        return fit(leaky, x, y, ridge=RIDGE, solver=solver), statistics.median(lengths)

    monkeypatch.setattr(solver_module, "wolfe_search", searched)
    damped = [ended(seed) for seed in range(2)]
    monkeypatch.setattr(preconditioned, "MOST_DAMPING", 1.0)
    pairs = [(found, ended(seed)) for seed, found in enumerate(damped)]
    # about a fifth of the starts fall to a constant, where no step is hard
    constant = float((y - y.mean(0)).square().sum(1).mean())
    alive = [(found, left) for found, left in pairs if found[0].objective < constant / 2]
    assert alive
    for (found, usual), (left, short) in alive:
        assert usual == 1.0  # as long as the model says
        assert short < 0.5
        assert left.objective > found.objective
        assert left.steps < found.steps


@pytest.mark.slow
def test_the_smoothing_ends_at_the_relu_itself() -> None:
    x, y = small_data()
    network, smooth = network_of("fixed"), network_of("fixed")
    end = fit(network, x, y, ridge=RIDGE, solver=PreconditionedLBFGS(smoothing=TO_RELU, evaluations=1000))
    assert float(network.smoothing) == 0.0
    assert end.stationarity > 1e-6  # a kink: no derivative vanishes there
    before = fit(smooth, x, y, ridge=RIDGE, solver=PreconditionedLBFGS(smoothing=TO_RELU[:2], evaluations=1000))
    assert before.stationarity < end.stationarity
    smooth.smoothing.zero_()
    with torch.no_grad():
        kinked = float((smooth(x) - y).square().sum(1).mean() + RIDGE * smooth.penalty())
    assert end.objective < kinked  # following the relu down pays against exchanging it at the end


def test_the_relu_takes_its_place_without_a_step() -> None:
    x, y = small_data()
    ends = [network_of("fixed"), network_of("fixed")]
    for network, widths in zip(ends, ((0.2, 0.1), (0.2, 0.1, 0.0)), strict=True):
        fit(network, x, y, ridge=RIDGE, solver=PreconditionedLBFGS(smoothing=widths, tolerance=1e-3))
    assert torch.equal(ends[0].weights, ends[1].weights)
    assert [float(network.smoothing) for network in ends] == [0.1, 0.0]
