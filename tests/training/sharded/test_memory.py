"""A fit within a memory budget: the same numbers as with all rows at once, whatever the rows at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from isthmus import FullyConnected, LeakyResNet, Limits, fit
from isthmus.networks.kinds import kind_named
from isthmus.training.fit_result import FitResult
from isthmus.training.losses import LOSSES, SQUARED, DataLoss, Loss
from isthmus.training.moves import rebalancing
from isthmus.training.sharded.row_step import FEWEST, MEMORY, ShardedStep, rows_at_once, step_within
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import ExactMoves
from isthmus.training.steps.connected_step import FullyConnectedStep
from isthmus.training.steps.memory_step import ROWS_AT_ONCE, in_float64
from isthmus.training.steps.step import AutogradStep, maker_of
from loss_targets import targets_of
from tolerances import rounding

ROWS = 2100  # four leaves of 525
SHORT = (Adam(10, moves=(rebalancing,), move_every=5), ExactMoves(), LBFGS(10))


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 5, generator=generator, dtype=torch.float64)
    return x, torch.relu(x @ torch.randn(5, 3, generator=generator, dtype=torch.float64))


def network(loss: Loss = SQUARED) -> FullyConnected:
    return FullyConnected(5, 3 * loss.per_target, width=12, depth=4, seed=2, dtype=torch.float64)


def budget(rows: int, loss: Loss = SQUARED) -> int:
    """Bytes that let so many rows of the network be gone over at once."""
    low, high = 1, MEMORY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rows_at_once(network(loss), data()[0], middle) <= rows else (low, middle)
    return low


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
def test_gradients_do_not_depend_on_the_rows_at_once(loss: Loss, weighted: bool) -> None:
    x, y = data()
    weight = torch.arange(1.0, ROWS + 1, dtype=torch.float64) if weighted else None
    targets = targets_of(loss, y)
    loss_of = DataLoss(loss, targets, None if weight is None else weight / weight.sum())
    whole = step_within(network(loss), x, loss_of, 0.01, memory=None)
    assert isinstance(whole, FullyConnectedStep)
    with torch.no_grad():
        value, rest = whole(), whole.in_float64()
        for rows in (FEWEST, 517):
            step = step_within(network(loss), x, loss_of, 0.01, memory=budget(rows, loss))
            assert isinstance(step, ShardedStep)
            assert step.rows.at_once == rows
            assert max(high - low for i in range(4) for low, high in step.rows.runs(i)) == rows
            assert step() == pytest.approx(value, rel=rounding(size=ROWS))
            torch.testing.assert_close(step.gradient, whole.gradient, rtol=rounding(size=ROWS), atol=rounding(size=40))
            assert step.in_float64() == pytest.approx(rest, rel=rounding(size=ROWS))
            assert step.computes_constant() == whole.computes_constant()


@pytest.mark.slow
def test_a_fit_within_little_memory_ends_where_one_with_much_does() -> None:
    weight = torch.arange(ROWS) % 3
    ends = [
        fit(network(), *data(), ridge=0.01, solver=SHORT, sample_weight=weight, limits=Limits(memory=memory))
        for memory in (None, budget(600), 1)
    ]
    for end in ends[1:]:
        assert end.objective == pytest.approx(ends[0].objective, rel=1e-9)
        assert end.history.objective.values == pytest.approx(ends[0].history.objective.values, rel=1e-9)
        assert end.outcome is ends[0].outcome
    unweighted = fit(network(), *data(), ridge=0.01, solver=SHORT)
    assert unweighted.history.objective[0] != pytest.approx(float(ends[0].history.objective[0]), rel=1e-3)


def test_a_row_of_any_module_is_counted_without_a_trace_in_it() -> None:
    x = data()[0]
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7), torch.nn.Linear(7, 2)).double()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    # what the three take in and give out, and gradients at three layers
    assert maker_of(module).bytes_of_row(module, x) == 8 * ((5 + 7 + 7 + 2) + 3 * 7)
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    y = DataLoss(SQUARED, torch.zeros(ROWS, 2, dtype=torch.float64))
    assert isinstance(step_within(module, x, y, 0.1, memory=None), AutogradStep)
    assert isinstance(step_within(module, x, y, 0.1, memory=1), ShardedStep)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
def test_the_reported_loss_is_that_of_all_rows_however_many(loss: Loss, weighted: bool) -> None:
    rows = ROWS_AT_ONCE + 100
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    y = targets_of(loss, x[:, :3] ** 2)
    weight = torch.arange(1.0, rows + 1, dtype=torch.float64) if weighted else None
    data = DataLoss(loss, y, None if weight is None else weight / weight.sum())
    whole = data.value(network(loss)(x).detach())
    assert in_float64(network(loss), x, data)[0] == pytest.approx(whole, rel=rounding(size=rows))
    assert in_float64(network(loss), x[:-100], DataLoss(loss, y[:-100]))[0] != pytest.approx(whole, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "rows"), [("equidistant", 2 * FEWEST), pytest.param("adaptive", ROWS, marks=pytest.mark.slow)]
)
def test_a_leaky_network_is_trained_within_little_memory_too(steps: str, rows: int) -> None:
    def end(memory: int | None) -> FitResult:
        leaky = LeakyResNet(
            5, 5, width=6, depth=3, effective_depth=2.0, steps=steps, scheme="exponential", seed=0, dtype=torch.float64
        )
        x = data()[0][:rows]
        return fit(leaky, x, x / 2, ridge=0.01, limits=Limits(memory=memory, evaluations=1500))

    whole, within = end(None), end(1)
    assert within.objective == pytest.approx(whole.objective, rel=1e-3)  # another model of the curvature
    assert within.objective != whole.objective


GROWTH = """
import sys, torch
from isthmus import Limits, fit
from isthmus.networks.kinds import kind_named
from isthmus.training.sharded.process_group import peak_memory
from isthmus.training.solvers.solver import LBFGS, Adam
torch.set_num_threads(1)
def act(rows, memory):
    made = kind_named(sys.argv[1]).made(5, 3, seed=0, dtype=torch.float64, **eval(sys.argv[2]))
    solver = None if sys.argv[1] == "leaky" else (Adam(1), LBFGS(2))
    fit(made, x[:rows], y[:rows], ridge=0.1, solver=solver, limits=Limits(memory=memory, evaluations=6))
x = torch.randn(60_000, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
y = x[:, :3].clone()
act(300, None)
before = peak_memory(torch.device("cpu"))
act(60_000, int(sys.argv[3]))
print(peak_memory(torch.device("cpu")) - before)
"""
# arguments, and bytes that a row needs in any case: its activations
WIDE = {
    "fully_connected": ({"width": 50, "depth": 8}, 8 * 7 * 50),
    "resnet": ({"width": 50, "depth": 8, "block_depth": 1}, 8 * 2 * 8 * 50),
    "leaky": ({"width": 40, "depth": 8, "effective_depth": 2.0}, 8 * 2 * 8 * 40),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", WIDE)
def test_a_fit_takes_the_memory_that_it_may(kind: str) -> None:
    arguments, of_row = WIDE[kind]

    def growth(memory: int) -> int:
        done = subprocess.run(
            [sys.executable, "-c", GROWTH, kind, repr(arguments), str(memory)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"},
        )
        return int(done.stdout)

    assert growth(60_000_000) < 1.3 * 60_000_000
    made = kind_named(kind).made(5, 3, dtype=torch.float64, **arguments)
    announced = maker_of(made).bytes_of_row(made, torch.ones(2, 5, dtype=torch.float64)) * 60_000
    assert of_row * 60_000 < growth(2_000_000_000) < 1.3 * announced
