"""Many networks at once against one after the other: the same steps up to rounding, the same ends."""

from typing import Any

import pytest
import torch

from isthmus import FitResult, FullyConnected, Outcome, fit
from isthmus.errors import ShapeError
from isthmus.training.batched.batch_step import BatchedStep
from isthmus.training.batched.fit_batch import WIDEST, BatchSchedule, batching_pays, fit_batch, fit_many
from isthmus.training.losses import LOSSES, SQUARED, DataLoss, Loss
from isthmus.training.moves import least_norm, rebalancing
from isthmus.training.solvers.prospect import Prospect
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import ExactMoves
from isthmus.training.steps.connected_step import FullyConnectedStep
from loss_targets import targets_of
from tolerances import rounding

RIDGES = [0.003, 0.01, 0.03, 0.003]
SHORT: BatchSchedule = (Adam(30, moves=(rebalancing,), move_every=10), LBFGS(12))
SHAPES = [
    pytest.param({"width": 7, "depth": 4}, id="relu"),
    pytest.param({"width": 7, "depth": 3, "negative_slope": 0.3}, id="leaky"),
    pytest.param({"width": 7, "depth": 3, "negative_slope": -0.4}, id="negative-slope"),
    pytest.param({"width": (6, 3, 8), "depth": 4, "linear": (2,), "bias": False}, id="linear-middle-no-bias"),
    pytest.param({"width": 1, "depth": 1}, id="affine"),
]


def data_of(loss: Loss, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=generator, dtype=dtype)
    y = torch.relu(x @ torch.randn(5, 3, generator=generator, dtype=dtype))
    return x, targets_of(loss, y)


def networks(count: int = 4, loss: Loss = SQUARED, **shape: Any) -> list[FullyConnected]:
    shape = {"width": 6, "depth": 3, "dtype": torch.float64, **shape}
    return [FullyConnected(5, 3 * loss.per_target, seed=seed, **shape) for seed in range(count)]


def separately(ridges: list[float], solver: BatchSchedule, loss: Loss = SQUARED, **shape: Any) -> list[FitResult]:
    x, y = data_of(loss)
    pairs = zip(networks(len(ridges), loss, **shape), ridges, strict=True)
    return [fit(network, x, y, ridge=ridge, loss=loss, solver=solver) for network, ridge in pairs]


def parameters(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_row_is_the_step_of_its_network(shape: dict[str, Any], loss: Loss, dtype: torch.dtype) -> None:
    x, y = data_of(loss, dtype)
    data = DataLoss(loss, y)
    batch = BatchedStep.of(networks(loss=loss, **shape, dtype=dtype), x, data, RIDGES)
    values = batch().tolist()
    near = rounding(size=400, dtype=dtype)
    for b, (network, ridge) in enumerate(zip(networks(loss=loss, **shape, dtype=dtype), RIDGES, strict=True)):
        step = FullyConnectedStep(network, x, data, ridge)
        assert torch.equal(batch.theta[b], step.theta)
        assert values[b] == pytest.approx(step(), rel=rounding(size=100, dtype=dtype))
        torch.testing.assert_close(batch.gradient[b], step.gradient, rtol=near, atol=near)
    batch.rebalance()
    for b, network in enumerate(networks(loss=loss, **shape, dtype=dtype)):
        step = FullyConnectedStep(network, x, data, 0.0)
        rebalancing(step)
        torch.testing.assert_close(batch.theta[b], step.theta, rtol=near, atol=near)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.dear(9)
def test_the_first_steps_are_those_of_each_alone(shape: dict[str, Any], loss: Loss) -> None:
    x, y = data_of(loss)
    batch = fit_batch(networks(loss=loss, **shape), x, y, ridges=RIDGES, loss=loss, solver=SHORT)
    for together, alone in zip(batch, separately(RIDGES, SHORT, loss, **shape), strict=True):
        assert together.history.evaluation.values.tolist() == alone.history.evaluation.values.tolist()
        assert together.history.objective.values == pytest.approx(alone.history.objective.values, rel=1e-12)
        assert (together.outcome, together.steps) == (alone.outcome, alone.steps)
        assert together.gradient_evaluations == alone.gradient_evaluations
    assert len({float(result.history.objective[0]) for result in batch}) == 4


@pytest.mark.slow
def test_smooth_problems_end_in_the_same_minima_each_on_its_own() -> None:
    x, y = data_of(SQUARED)
    solver = (Adam(20), LBFGS(150, plateau=0.0))
    shape: dict[str, Any] = {"linear": (1, 2)}
    ridges = [0.03, 0.1, 0.2]
    batch = fit_batch(networks(3, **shape), x, y, ridges=ridges, solver=solver)
    for together, alone in zip(batch, separately(ridges, solver, **shape), strict=True):
        assert together.outcome is alone.outcome is Outcome.CONVERGED
        assert together.objective == pytest.approx(alone.objective, rel=1e-11)
        assert together.rank == alone.rank
    assert len({result.gradient_evaluations for result in batch}) == 3, "each stops on its own"


def test_a_network_that_collapses_gets_its_second_attempt() -> None:
    x, y = data_of(SQUARED)
    made = networks(3)
    batch = fit_batch(made, x, y, ridges=[0.01, 50.0, 0.01], solver=SHORT)
    alone = separately([0.01, 50.0, 0.01], SHORT)
    assert [result.outcome for result in batch] == [result.outcome for result in alone]
    assert batch[1].outcome is Outcome.COLLAPSED
    assert torch.equal(parameters(made[1]), parameters(alone[1].network))
    assert batch[1].network is made[1]


def test_a_network_that_diverges_leaves_the_others_alone() -> None:
    x, y = data_of(SQUARED)
    made = networks(3)
    with torch.no_grad():
        made[0].weights[0].mul_(1e160)
    batch = fit_batch(made, x, y, ridges=[0.01] * 3, solver=SHORT)
    assert [result.outcome is Outcome.DIVERGED for result in batch] == [True, False, False]
    for together, alone in zip(batch[1:], separately([0.01] * 3, SHORT)[1:], strict=True):
        assert together.objective == pytest.approx(alone.objective, rel=1e-12)


@pytest.mark.parametrize("prospect", [Prospect(goal=0.05, every=5, first=5), Prospect(worth=0.02, every=5, first=5)])
def test_descents_without_prospects_end_where_they_do_alone(prospect: Prospect) -> None:
    x, y = data_of(SQUARED)
    solver = (Adam(20), LBFGS(40, prospect=prospect))
    batch = fit_batch(networks(), x, y, ridges=RIDGES, solver=solver)
    alone = separately(RIDGES, solver)
    unbound = fit_batch(networks(), x, y, ridges=RIDGES, solver=(Adam(20), LBFGS(40)))
    assert [r.gradient_evaluations for r in batch] == [r.gradient_evaluations for r in alone]
    assert [r.outcome for r in batch] == [r.outcome for r in alone]
    shorter = [r.gradient_evaluations < s.gradient_evaluations for r, s in zip(batch, unbound, strict=True)]
    assert any(shorter)
    for together, other in zip(batch, alone, strict=True):
        assert together.objective == pytest.approx(other.objective, rel=1e-9)


def test_the_width_decides_how_many_are_trained() -> None:
    x, y = data_of(SQUARED)
    assert [batching_pays(networks(1, width=width)[0]) for width in (WIDEST, WIDEST + 1)] == [True, False]
    solver = (Adam(5), LBFGS(5))
    for width, at_once in ((6, True), (WIDEST + 1, False)):
        made, batch = networks(2, width=width), networks(2, width=width)
        alone = separately([0.01, 0.02], solver, width=width)
        fit_many(made, x, y, ridges=[0.01, 0.02], solver=solver)
        fit_batch(batch, x, y, ridges=[0.01, 0.02], solver=solver)
        expected = batch if at_once else [result.network for result in alone]
        for network, other in zip(made, expected, strict=True):
            assert torch.equal(parameters(network), parameters(other))


def test_what_does_not_fit_together_is_refused() -> None:
    x, y = data_of(SQUARED)
    two = networks(2)
    with pytest.raises(ShapeError, match="needs one shape and precision, got 2 kinds"):
        fit_batch([two[0], networks(1, width=7)[0]], x, y, ridges=[0.1, 0.1])
    for ridges in ([0.1], [0.1, -0.1], [0.1, float("nan")]):
        with pytest.raises(ValueError, match="one finite ridge >= 0 for each network"):
            fit_batch(two, x, y, ridges=ridges)
    with pytest.raises(ValueError, match="got 0 networks"):
        fit_batch([], x, y, ridges=[])
    with pytest.raises(ShapeError, match="3 outputs, y has 2 columns"):
        fit_batch(two, x, y[:, :2], ridges=[0.1, 0.1])
    with pytest.raises(ValueError, match="moves of Adam can only be rebalancing"):
        fit_batch(two, x, y, ridges=[0.1, 0.1], solver=(Adam(5, moves=(least_norm,)),))
    mixed: Any = (Adam(5), ExactMoves())
    with pytest.raises((ValueError, TypeError), match="ExactMoves"):
        fit_batch(two, x, y, ridges=[0.1, 0.1], solver=mixed)
