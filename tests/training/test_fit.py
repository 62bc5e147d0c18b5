"""`fit`: how it ends, that it reaches the lower branch, and that a stop changes nothing."""

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isthmus
from isthmus import FullyConnected, LeakyResNet, Limits, Outcome, ResNet, fit, tasks
from isthmus.errors import CheckpointError, DataError, ShapeError
from isthmus.training import FitEvent, FitResult, fit_checkpoint, fitting
from isthmus.training.moves import rebalancing
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import RankTrials

REFERENCE_OBJECTIVE, REFERENCE_RIDGE = 0.3474, 0.05 / 9  # the small reference problem: L = 9, width 64, true rank 5


def small() -> tuple[FullyConnected, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=generator)
    return FullyConnected(5, 3, width=12, depth=4, seed=2), x, torch.relu(x @ torch.randn(5, 3, generator=generator))


def short() -> tuple[Adam, LBFGS, RankTrials]:
    return Adam(60, moves=(rebalancing,), move_every=10), LBFGS(80), RankTrials(LBFGS(40))


def reference(seed: int) -> isthmus.FitResult:
    task = tasks.teacher_reference()
    assert task.y is not None
    return fit(FullyConnected(50, 50, width=64, depth=9, seed=seed), task.x, task.y, ridge=REFERENCE_RIDGE)


def check_lower_branch(result: isthmus.FitResult) -> None:
    assert result.rank == 5
    assert result.objective <= 1.01 * REFERENCE_OBJECTIVE
    assert result.gradient_evaluations <= 30_000 / 8


@pytest.mark.slow
def test_the_branch_check_fails_without_rank_trials() -> None:
    task = tasks.teacher_reference()
    assert task.y is not None
    network = FullyConnected(50, 50, width=64, depth=9, seed=0)
    result = fit(network, task.x, task.y, ridge=REFERENCE_RIDGE, solver=(Adam(300), LBFGS(300)))
    with pytest.raises(AssertionError):
        check_lower_branch(result)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_every_start_reaches_the_lower_branch(seed: int) -> None:
    check_lower_branch(reference(seed))


def test_the_objective_is_that_of_the_returned_network_in_float64() -> None:
    network, x, y = small()
    result = fit(network, x, y, ridge=0.01, solver=short())
    exact = network.double().requires_grad_(False)
    loss = float((exact(x.double()) - y.double()).square().sum(1).mean())
    assert result.data_loss == pytest.approx(loss, rel=1e-12)
    assert result.objective == pytest.approx(loss + 0.01 * float(exact.penalty()), rel=1e-12)
    assert result.objective <= float(result.history.objective.min()) * (1 + 1e-5)


def test_a_smooth_problem_converges_and_says_so() -> None:
    network, x, y = FullyConnected(5, 3, width=1, depth=1, seed=0, dtype=torch.float64), *small()[1:]
    result = fit(network, x, y, ridge=0.01, solver=LBFGS(200, plateau=0.0))
    assert result.outcome is Outcome.CONVERGED
    assert result.stationarity <= 1e-6


def test_a_large_ridge_collapses_and_says_so() -> None:
    network, x, y = small()
    result = fit(network, x, y, ridge=100.0, solver=short())
    assert result.outcome is Outcome.COLLAPSED


def test_a_constant_target_is_not_called_a_collapse() -> None:
    network, x, _ = small()
    result = fit(network, x, torch.ones(60, 3), ridge=0.01, solver=short())
    assert result.outcome in {Outcome.CONVERGED, Outcome.PLATEAU, Outcome.STEP_LIMIT}
    assert result.data_loss < 0.1


def test_a_start_that_diverges_is_tried_again_more_gently() -> None:
    network, x, y = small()
    result = fit(network, x, y, ridge=0.01, solver=(Adam(50, rate=1e30), LBFGS(50)))
    assert result.outcome is Outcome.DIVERGED
    network, x, y = small()
    with torch.no_grad():
        network.weights[0].mul_(1e25)
    recovered = fit(network, x, y, ridge=0.01, solver=(Adam(50), LBFGS(50)))
    assert recovered.outcome is Outcome.DIVERGED


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [(Limits(seconds=1e-6), Outcome.TIME_LIMIT), (Limits(evaluations=30), Outcome.STEP_LIMIT)],
    ids=["time", "evaluations"],
)
def test_limits_end_a_fit(limits: Limits, outcome: Outcome) -> None:
    network, x, y = small()
    result = fit(network, x, y, ridge=0.01, limits=limits)
    assert result.outcome is outcome
    assert result.gradient_evaluations <= 60


def test_a_stopped_fit_goes_on_bit_for_bit(tmp_path: Path) -> None:
    network, x, y = small()
    whole = fit(network, x, y, ridge=0.01, solver=short())
    draw = random.Random(0)
    other, x, y = small()
    path, stops = tmp_path / "fit.pt", 0
    while True:
        budget = draw.randrange(1, 40)

        def stop(_event: FitEvent) -> bool:
            nonlocal budget
            budget -= 1
            return budget <= 0

        part = fit(other, x, y, ridge=0.01, solver=short(), checkpoint=path, callback=stop)
        if part.outcome is not Outcome.INTERRUPTED:
            break
        stops += 1
        other = FullyConnected(5, 3, width=12, depth=4, seed=99)  # what it holds does not matter: the file does
    assert stops >= 5
    for a, b in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert part.gradient_evaluations == whole.gradient_evaluations
    assert part.history.objective.values.tolist() == whole.history.objective.values.tolist()


@pytest.mark.dear(1)
@pytest.mark.parametrize(("pause", "most"), [(20.0, 1), (0.0, 1000)], ids=["paced", "control"])
def test_a_checkpoint_that_takes_long_is_written_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float, most: int
) -> None:
    written: list[float] = []

    def slow(path: Path, state: dict[str, object]) -> None:  # noqa: ARG001 - as `save_state`
        time.sleep(0.4)
        written.append(time.monotonic())

    monkeypatch.setattr(fit_checkpoint, "save_state", slow)
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(fitting, "CHECKPOINT_PAUSE", pause)
    began = time.monotonic()
    network = FullyConnected(3, 2, width=4, depth=2, seed=0, dtype=torch.float64)
    x = torch.randn(9, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    fit(network, x, x[:, :2], ridge=0.1, solver=Adam(6), checkpoint=tmp_path / "state")
    if pause and time.monotonic() - began > 8:  # the pause is over: the machine is too busy to tell
        pytest.skip("this machine took 8 s for six steps")
    assert 1 <= len(written) - 1 <= most, "and once more at the end"
    assert pause or len(written) >= 6


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e39])
@pytest.mark.parametrize("which", ["x", "y"])
def test_numbers_that_are_not_finite_are_refused_by_name(which: str, bad: float) -> None:
    """The optimiser was blamed: diverged, use a smaller step."""
    network = FullyConnected(3, 2, width=4, depth=2, seed=0, dtype=torch.float32)  # which has no 1e39
    data = {"x": torch.randn(9, 3, dtype=torch.float64), "y": torch.randn(9, 2, dtype=torch.float64)}
    data[which][2, 1] = bad
    with pytest.raises(DataError, match=rf"1 entries of {which} are NaN or infinite"):
        fit(network, data["x"], data["y"], ridge=0.1, solver=Adam(6))


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    network, x, y = small()
    path = tmp_path / "fit.pt"
    fit(network, x, y, ridge=0.01, solver=short(), checkpoint=path, callback=lambda event: event.evaluations > 20)
    assert path.exists()
    with pytest.raises(DataError, match="belongs to another fit"):
        fit(network, x, 2 * y, ridge=0.01, solver=short(), checkpoint=path)
    fit(network, x, y, ridge=0.01, solver=short(), checkpoint=path)


@pytest.mark.slow
def test_the_same_call_returns_a_finished_fit_at_once_and_another_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    path, heard = tmp_path / "fit.pt", list[int]()

    def found(**changes: object) -> FitResult:
        network, x, y = small()
        heard.clear()
        arguments: dict[str, Any] = {"ridge": 0.01, "solver": short(), "seed": 0, "checkpoint": path, **changes}
        return fit(network, x, y, callback=lambda event: heard.append(event.evaluations), **arguments)

    first, again = found(), found()
    assert not heard
    for name in ("objective", "data_loss", "penalty", "outcome", "stationarity", "steps", "seconds", "rank"):
        assert getattr(first, name) == getattr(again, name), name
    assert first.gradient_evaluations == again.gradient_evaluations
    assert first.history.identical(again.history)
    for one, other in zip(first.network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(one, other)
    changes = ({"seed": 1}, {"limits": Limits(evaluations=25)}, {"solver": (*short(), Adam(3))}, {"ridge": 0.02})
    for change in changes:
        other = found(**change)
        assert heard, change
        assert other.objective != first.objective
    found(ridge=0.02)
    assert not heard


def test_a_checkpoint_under_the_name_of_another_is_refused_from_another_start(tmp_path: Path) -> None:
    for seed, name in ((0, "a.pt"), (1, "b.pt")):
        network, x, y = small()
        fit(network, x, y, ridge=0.01, solver=short(), seed=seed, checkpoint=tmp_path / name, callback=lambda _: True)
    (tmp_path / "b.pt").replace(tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"a.pt: belongs to another fit, from another start, .* as b.pt"):
        fit(network, x, y, ridge=0.01, solver=short(), seed=0, checkpoint=tmp_path / "a.pt")
    whole, moved = (
        fit(network, x, y, ridge=0.01, solver=short(), seed=1, checkpoint=path) for path in (None, tmp_path / "a.pt")
    )
    assert moved.objective == whole.objective, "a file may be renamed"


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    network, x, y = small()
    path = tmp_path / "fit.pt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(DataError, match="delete it to start over"):
        fit(network, x, y, ridge=0.01, checkpoint=path)


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"ridge": -1.0}, ValueError, "needs a finite number >= 0"),
        ({"loss": "hinge"}, ValueError, "'squared', 'cross_entropy'"),
        ({"sample_weight": [1.0] * 59}, ValueError, "one weight per row, 60, got 59"),
        ({"solver": "x"}, TypeError, r"solver='x'\): needs one or a tuple of"),
        ({"callback": 3}, TypeError, r"callback=3\): needs a function"),
        ({"checkpoint": ""}, ValueError, "needs the name of a file"),
        ({"checkpoint": str(Path(__file__).parent)}, DataError, r"cannot be read \(a folder\)\. Name a file"),
        ({"y": torch.zeros(59, 3)}, ShapeError, "as many rows in x as in y, got 60 and 59"),
        ({"y": torch.zeros(60, 2)}, ShapeError, "3 outputs, y has 2 columns"),
    ],
    ids=["ridge", "loss", "weights", "solver", "callback", "no-file", "folder", "rows", "columns"],
)
def test_bad_input_is_refused_before_any_work(change: dict[str, object], error: type[Exception], message: str) -> None:
    network, x, y = small()
    arguments = {"x": x, "y": y, "ridge": 0.01} | change
    with pytest.raises(error, match=message):
        fit(network, **arguments)  # pyright: ignore[reportArgumentType]


@pytest.mark.other_types
def test_numbers_of_torch_and_numpy_give_plain_ones() -> None:
    network, x, y = small()
    for ridge in (torch.tensor(0.01), np.float32(0.01)):
        assert type(fit(network, x, y, ridge=ridge, solver=Adam(2)).objective) is float  # pyright: ignore[reportArgumentType]


def test_weights_act_like_repeated_rows() -> None:
    _, x, y = small()
    counts = torch.arange(60) % 3
    schedule = LBFGS(300, plateau=0.0, tolerance=1e-9)
    network = [FullyConnected(5, 3, width=1, depth=1, seed=0, dtype=torch.float64) for _ in range(2)]
    a = fit(network[0], x, y, ridge=0.01, sample_weight=counts, solver=schedule)
    b = fit(network[1], x.repeat_interleave(counts, 0), y.repeat_interleave(counts, 0), ridge=0.01, solver=schedule)
    assert a.objective == pytest.approx(b.objective, rel=1e-12)
    assert a.objective != pytest.approx(fit(network[0], x, y, ridge=0.01, solver=schedule).objective, rel=1e-6)


def test_any_module_can_be_fitted() -> None:
    _, x, y = small()
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    before = float((module(x) - y).square().sum(1).mean().detach())
    result = fit(module, x, y, ridge=1e-3, solver=(Adam(50), LBFGS(100)))
    assert result.data_loss < before / 4
    assert result.rank is None


@pytest.mark.parametrize(
    "network",
    [
        ResNet(2, 2, width=3, depth=2, block_depth=1, seed=0),
        LeakyResNet(2, 2, width=3, depth=2, effective_depth=1.0, seed=0),
    ],
)
def test_one_column_is_not_spread_over_the_outputs_of_a_residual_network(network: ResNet | LeakyResNet) -> None:
    x, limits = torch.ones(4, 2), Limits(evaluations=5)
    with pytest.raises(ShapeError, match="the network has 2 outputs, y has 1 column\\."):
        fit(network, x, x[:, :1], ridge=0.1, limits=limits)
    assert fit(network, x, x, ridge=0.1, limits=limits).gradient_evaluations >= 5


class Killed(BaseException):
    """In place of a signal that nothing can catch."""


def test_a_kill_behind_the_last_evaluation_adds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of the iteration that reached the limit is on disk, the end of the fit is not."""
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(fitting, "CHECKPOINT_PAUSE", 0.0)
    network, x, y = small()
    start = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    def fitted(path: Path | None) -> FitResult:
        network.load_state_dict(start)
        return fit(network, x, y, ridge=1e-2, solver=LBFGS(60), limits=Limits(evaluations=17), checkpoint=path)

    expected = fitted(None)
    weights = [parameter.detach().clone() for parameter in expected.network.parameters()]

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(fitting.Fitting, "_save_end", killed)
        with pytest.raises(Killed):
            fitted(tmp_path / "fit.pt")
    assert (tmp_path / "fit.pt").exists()
    found = fitted(tmp_path / "fit.pt")
    assert found.gradient_evaluations == expected.gradient_evaluations
    assert found.objective == expected.objective
    assert all(torch.equal(a, b) for a, b in zip(found.network.parameters(), weights, strict=True))
