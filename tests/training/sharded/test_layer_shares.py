"""Steps, moves and fits whose parameters are split, against the same with whole parameters; here in one process.

Several processes: `tests/cli/test_fit.py`.
"""

from functools import partial
from pathlib import Path

import pytest
import torch

from isthmus.errors import DataError
from isthmus.training import FitResult, Limits, Outcome, fit_shards
from isthmus.training.fitting import FitEvent, Fitting
from isthmus.training.losses import LOSSES, DataLoss, Loss
from isthmus.training.moves import least_norm, middle_rank, rebalancing
from isthmus.training.sharded.checkpoint_parts import packed, put_together, remove_checkpoint
from isthmus.training.sharded.coordinates import PIECES, Split
from isthmus.training.sharded.layer_moves import (
    layerwise_least_norm,
    layerwise_lower_rank,
    layerwise_rebalancing,
    layerwise_schedule,
)
from isthmus.training.sharded.layer_shares import brought_together
from isthmus.training.sharded.layer_step import LayerwiseStep
from isthmus.training.sharded.row_moves import sharded_least_norm
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.sharded.team import Team
from isthmus.training.sharded.vector import SplitCoordinates, SplitVector, plain
from isthmus.training.solvers.rank_raising import raise_rank
from isthmus.training.solvers.schedule import Schedule
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import ExactMoves, RankTrials, lower_rank
from isthmus.training.steps.step import Step
from row_shares import data_of, network
from tolerances import rounding

SHAPES: list[dict[str, object]] = [
    {}, {"negative_slope": -0.3}, {"negative_slope": 0.2}, {"linear": (1,), "bias": False}, {"depth": 1, "width": ()}
]  # fmt: skip


def both(
    x: torch.Tensor, data: DataLoss, shape: dict[str, object] | None = None, *, ridge: float = 0.01
) -> tuple[ShardedStep, LayerwiseStep]:
    shape, outputs = shape or {}, 4 * data.loss.per_target
    with torch.no_grad():
        whole = ShardedStep(network(outputs, **shape), x, data, ridge, total=len(x), team=Team())
        return whole, LayerwiseStep(network(outputs, **shape), x, data, ridge, total=len(x), team=Team())


def assert_same(whole: Step, split: Step) -> None:
    assert_close = partial(torch.testing.assert_close, rtol=rounding(size=400), atol=rounding(size=400))
    with torch.no_grad():
        assert_close(plain(split.theta), whole.theta)
        assert split() == pytest.approx(whole(), rel=rounding(size=100))
        assert split.data_value == pytest.approx(whole.data_value, rel=rounding(size=100))
        assert_close(plain(split.gradient), whole.gradient)
        assert split.in_float64() == pytest.approx(whole.in_float64(), rel=rounding(size=100))
        assert split.computes_constant() == whole.computes_constant()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_the_step_with_whole_parameters(loss: Loss, shape: dict[str, object]) -> None:
    x, data = data_of(loss)
    assert_same(*both(x, data, shape))
    with pytest.raises(AssertionError):
        assert_same(both(x, data, shape)[0], both(x, data, shape, ridge=0.02)[1])


def test_the_moves_are_those_of_whole_parameters() -> None:
    x, data = data_of()
    x = torch.cat([x[:, :3], x[:, :2]], 1)  # rank 3, so that there is something to project
    whole, split = both(x, data)
    before = whole.theta.clone()
    with torch.no_grad():
        for one, other in ((sharded_least_norm, layerwise_least_norm), (rebalancing, layerwise_rebalancing)):
            one(whole)
            other(split)
            assert_same(whole, split)
            assert not torch.equal(before, whole.theta), "there was nothing to move"
            before = whole.theta.clone()
        while lower_rank(whole):
            assert layerwise_lower_rank(split)
            assert_same(whole, split)
        assert not layerwise_lower_rank(split)
    assert middle_rank(split.network) == 1


def test_a_network_that_is_split_still_answers_and_comes_back_whole() -> None:
    x, data = data_of()
    _, split = both(x, data)
    expected = network()
    assert list(split.network.parameters()) == []
    with torch.no_grad():
        torch.testing.assert_close(split.network(x), expected(x))
    whole = brought_together(split.network, Team())
    assert whole is not None
    for mine, theirs in zip(whole.parameters(), expected.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert brought_together(split.network, Team(1, 1)) is None


def test_a_schedule_moves_layer_by_layer() -> None:
    adam, exact, descent = layerwise_schedule((Adam(3, moves=(rebalancing,)), ExactMoves(), LBFGS(10)))
    assert isinstance(adam, Adam)
    assert isinstance(exact, ExactMoves)
    assert adam.moves == (layerwise_rebalancing,)
    assert exact.moves == (layerwise_least_norm, layerwise_rebalancing)
    assert least_norm not in exact.moves
    assert descent == LBFGS(10)


def vector(size: int) -> SplitVector:
    values = torch.randn(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return SplitVector.of(values, Split(size, Team()))


@pytest.mark.parametrize("size", [3, 1024, 5000])
def test_sums_go_over_all_coordinates_and_what_is_not_known_is_refused(size: int) -> None:
    a, b = vector(size), vector(size) * 3 - 1
    x, y = plain(a), plain(b)
    assert isinstance(b, SplitVector)
    assert float(torch.dot(a, b)) == pytest.approx(float(x @ y), rel=rounding(size=size))
    assert float(a.norm()) == pytest.approx(float(x.norm()), rel=rounding(size=size))
    assert float(a.abs().sum()) == pytest.approx(float(x.abs().sum()), rel=rounding(size=size))
    assert torch.isfinite(a).all()
    plain(a)[size - 1] = float("nan")
    assert not torch.isfinite(a).all()
    for refused in (torch.max, torch.mean, torch.argsort):
        with pytest.raises(TypeError, match="lies in several processes"):
            refused(a)


def test_parts_of_any_number_of_processes_follow_one_another() -> None:
    for size in (10, 1001, 70_000):
        for count in (1, 2, 3, 64):
            splits = [Split(size, Team(rank, count)) for rank in range(count)]
            assert [i for split in splits for i in split.own] == list(range(size))
            assert [i for split in splits for i in split.pieces] == list(range(PIECES))


def test_a_state_of_three_processes_goes_on_in_two() -> None:
    size = 5000
    values = torch.arange(size, dtype=torch.float64)
    memory = torch.arange(PIECES * 4.0).view(PIECES, 4, 1).expand(PIECES, 4, 80).contiguous()

    def state(split: Split) -> dict[str, object]:
        own = SplitVector.of(values[split.own.start : split.own.stop], split)
        pairs = memory[split.pieces.start : split.pieces.stop]
        return {"rejected": (own, 2.5), "state": {"inner": {"pairs": pairs, "count": 3}}, "history": [(1, 2.0)]}

    three = [Split(size, Team(rank, 3)) for rank in range(3)]
    for wanted in (Split(size, Team(rank, 2)) for rank in range(2)):
        needed = [split for split in three if set(split.pieces) & set(wanted.pieces)]
        found = put_together([packed(state(split)) for split in needed], needed, wanted)
        expected = packed(state(wanted))
        assert isinstance(found["rejected"][0], SplitVector)
        assert torch.equal(packed(found)["rejected"][0]["split vector"], expected["rejected"][0]["split vector"])
        assert torch.equal(found["state"]["inner"]["pairs"], expected["state"]["inner"]["pairs"]["split pieces"])
        assert (found["history"], found["state"]["inner"]["count"], found["rejected"][1]) == ([(1, 2.0)], 3, 2.5)


def test_the_memory_of_a_split_vector_does_what_a_matrix_does() -> None:
    size, first = 5000, vector(5000)
    coordinates, rows = SplitCoordinates(first.split_by), [first * i for i in range(1, 7)]
    memory = coordinates.memory(6, rows[0])
    for i, row in enumerate(rows):
        coordinates.store(memory, i, row, less=first.abs() if i == 4 else None)
    coordinates.exchange(memory, 3, first.abs(), 1)
    matrix, weights = torch.stack([plain(row) for row in rows]), torch.arange(6.0, dtype=torch.float64)
    other = plain(first).abs()
    matrix[4] -= other
    matrix[1], matrix[3] = other - matrix[3], other
    torch.testing.assert_close(coordinates.products(memory, 2), matrix @ matrix[2])
    found = coordinates.combination(memory, weights)
    assert isinstance(found, SplitVector)
    torch.testing.assert_close(plain(found), weights @ matrix)
    assert len(found) == size


def trained(
    *, split: bool = True, evaluations: int = 30, checkpoint: Path | None = None, stop_after: int | None = None,
    ridge: float = 3e-2, schedule: Schedule | None = None, **shape: object,
) -> FitResult:  # fmt: skip
    x, data = data_of(rows=200)

    def hear(event: FitEvent) -> bool:
        return stop_after is not None and event.evaluations >= stop_after

    return fit_shards(
        network(4, **shape), x, torch.tanh(x @ data.y[:5]), total=200, team=Team(), ridge=ridge, checkpoint=checkpoint,
        limits=Limits(evaluations=evaluations), callback=hear, split_parameters=split,
        schedule=schedule,
    )  # fmt: skip


@pytest.mark.slow
def test_a_fit_reaches_the_minimum_of_whole_parameters() -> None:
    # linear layers: one minimum, which every path reaches; over the kinks of ReLU paths part at the first rounding
    descent = (LBFGS(150),)
    whole, split = (trained(split=s, evaluations=150, schedule=descent, depth=3, linear=(1, 2)) for s in (False, True))
    assert whole.outcome is split.outcome is Outcome.CONVERGED
    assert split.objective == pytest.approx(whole.objective, rel=1e-10)


def test_every_phase_of_a_fit_does_what_it_does_with_whole_parameters() -> None:
    whole, split, other = (trained(split=s, ridge=r, depth=3, linear=(1, 2)) for s, r in (
        (False, 3e-2), (True, 3e-2), (True, 0.031)
    ))  # fmt: skip
    assert split.objective == pytest.approx(whole.objective, rel=1e-10)
    assert (split.rank, split.gradient_evaluations) == (whole.rank, whole.gradient_evaluations)
    assert other.objective != pytest.approx(whole.objective, rel=1e-10)


@pytest.mark.slow
def test_an_interrupted_fit_goes_on_bit_for_bit_and_keeps_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, undisturbed = tmp_path / "fit.parts.pt", trained()
    for stop in (4, 15, 25):  # in Adam, in L-BFGS, in the rank trials
        assert trained(checkpoint=path, stop_after=stop).outcome is Outcome.INTERRUPTED
        assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(DataError, match="belongs to another fit"):
        trained(checkpoint=path, ridge=4e-3)
    found = trained(checkpoint=path)
    assert (found.objective, found.gradient_evaluations) == (undisturbed.objective, undisturbed.gradient_evaluations)
    assert len(list(tmp_path.iterdir())) == 2
    with monkeypatch.context() as patched:
        patched.setattr(Fitting, "_phases", _never)
        again = trained(checkpoint=path)
    assert (again.objective, again.seconds, again.outcome) == (found.objective, found.seconds, found.outcome)
    for one, other in zip(again.network.parameters(), found.network.parameters(), strict=True):
        assert torch.equal(one, other)
    assert again.history.identical(found.history)
    assert trained(checkpoint=path, ridge=4e-3).objective != found.objective, "another call begins anew"
    remove_checkpoint(path)
    assert list(tmp_path.iterdir()) == []


def _never(_fitting: Fitting) -> str:
    raise AssertionError("it was trained again")


def test_a_missing_part_and_what_cannot_be_split_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.parts.pt"
    trained(checkpoint=path, stop_after=2)
    (tmp_path / "fit.parts.1.0.pt").unlink()
    with pytest.raises(DataError, match="the part of process 0 of 1 is missing"):
        trained(checkpoint=path)
    x, data = data_of(rows=200)
    with pytest.raises(ValueError, match=r"split_parameters=True\): needs a FullyConnected, got Linear"):
        fit_shards(torch.nn.Linear(5, 4).double(), x, data.y, total=200, team=Team(), ridge=0.1, split_parameters=True)
    x, y = torch.zeros(1093, 5).double(), torch.zeros(1093, 4).double()
    with pytest.raises(ValueError, match="needs at most 64 processes, came 65"):
        fit_shards(network(), x, y, total=140_000, team=Team(0, 65), ridge=0.1, split_parameters=True)
    with pytest.raises(ValueError, match="the move raise_rank needs the whole network"):
        layerwise_schedule((RankTrials(attempt=raise_rank),))
