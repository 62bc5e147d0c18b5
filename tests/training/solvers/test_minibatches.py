"""A warm-up on batches: an unbiased gradient, an order that a stop does not change, and a better start."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from isthmus import FullyConnected, Outcome, fit
from isthmus.training import FitEvent
from isthmus.training.losses import LOSSES, SQUARED, DataLoss, Loss
from isthmus.training.moves import rebalancing
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.minibatches import MiniBatches, batch_of
from isthmus.training.solvers.schedule import MANY_ROWS, cheaper, default_schedule
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.steps.step import step_of
from loss_targets import targets_of

ROWS = 700


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 5, generator=generator, dtype=torch.float64)
    return x, torch.relu(x @ torch.randn(5, 3, generator=generator, dtype=torch.float64))


def network(loss: Loss = SQUARED) -> FullyConnected:
    return FullyConnected(5, 3 * loss.per_target, width=8, depth=3, seed=0, dtype=torch.float64)


@pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
def test_the_gradients_of_an_epoch_have_that_of_all_rows_as_their_mean(weighted: bool, loss: Loss) -> None:
    x, y = data()
    weight = torch.arange(1.0, ROWS + 1, dtype=torch.float64) if weighted else None
    targets = targets_of(loss, y)
    step = step_of(network(loss), x, DataLoss(loss, targets, None if weight is None else weight / weight.sum()), 0.01)
    other = step_of(network(loss), x, step.data, 0.01)
    batches = list(itertools.islice(MiniBatches(Adam(7), batch=100).batches(0, ROWS), 7))
    assert torch.equal(torch.cat(batches).sort().values, torch.arange(ROWS))
    with torch.no_grad():
        value = step()
        values, gradients = [], []
        for rows in batches:
            other.use(*batch_of(step, rows))
            values.append(other())
            gradients.append(other.gradient.clone())
    assert sum(values) / 7 == pytest.approx(value, rel=1e-12)
    torch.testing.assert_close(torch.stack(gradients).mean(0), step.gradient, rtol=1e-11, atol=1e-12)
    assert max(values) > 1.01 * value, "a batch is not all rows"


def test_each_epoch_has_its_own_order_from_whatever_batch_on_it_is_asked_for() -> None:
    solver = MiniBatches(Adam(1), batch=300)
    whole = list(itertools.islice(solver.batches(0, ROWS), 6))
    for t in range(6):
        assert torch.equal(next(solver.batches(t, ROWS)), whole[t])
    assert len({tuple(rows.tolist()) for rows in whole}) == 6
    assert not torch.equal(next(MiniBatches(Adam(1), batch=300, seed=1).batches(0, ROWS)), whole[0])


@pytest.mark.slow
def test_a_warm_up_that_was_stopped_goes_on_bit_for_bit(tmp_path: Path) -> None:
    schedule = (MiniBatches(Adam(400, moves=(rebalancing,), move_every=10), batch=64), LBFGS(20))
    whole, stopped = network(), network()
    fit(whole, *data(), ridge=0.01, solver=schedule)
    path, stops = tmp_path / "fit.pt", 0
    while True:
        part = fit(stopped, *data(), ridge=0.01, solver=schedule, checkpoint=path, callback=stop_at_the_next())
        if part.outcome is not Outcome.INTERRUPTED:
            break
        stops += 1
        stopped = FullyConnected(5, 3, width=8, depth=3, seed=9, dtype=torch.float64)
    assert stops >= 5
    for a, b in zip(whole.parameters(), stopped.parameters(), strict=True):
        assert torch.equal(a, b)


def stop_at_the_next() -> Callable[[FitEvent], bool]:
    seen = itertools.count()
    return lambda _: next(seen) >= 1


def test_batches_come_further_than_as_many_gradients_of_all_rows() -> None:
    ends = {}
    for name, solver in {"batches": MiniBatches(Adam(140), batch=50), "all rows": Adam(10)}.items():
        found = fit(network(), *data(), ridge=1e-3, solver=solver)
        assert found.gradient_evaluations == 10
        ends[name] = found.objective
    assert ends["batches"] < 0.8 * ends["all rows"]


def test_many_rows_are_warmed_up_in_batches_at_least_an_epoch_long() -> None:
    few, many = (default_schedule(network(), rows=rows) for rows in (MANY_ROWS, 5_000_000))
    assert isinstance(few[0], Adam)
    assert isinstance(many[0], MiniBatches)
    assert many[0].adam.steps * many[0].batch >= 5_000_000
    assert many[1:] == few[1:]
    gentler = cheaper(many, rate=0.5)[0]
    assert isinstance(gentler, MiniBatches)
    assert gentler.adam.rate == many[0].adam.rate / 2


def test_rows_in_several_processes_are_refused() -> None:
    x, y = data()
    step = ShardedStep(network(), x, DataLoss(SQUARED, y), 0.1, total=ROWS, team=Team())
    step.rows.team = Team(size=2)
    with pytest.raises(ValueError, match="one process, got 2 processes. Use Adam"):
        MiniBatches(Adam(5)).start(step)
    with pytest.raises(ValueError, match="needs at least one row"):
        MiniBatches(Adam(5), batch=0)
