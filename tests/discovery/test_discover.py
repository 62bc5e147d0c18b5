"""`discover` end to end on small tasks of known rank; the statistics over many tasks: benchmarks/rank_recovery.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

import isthmus
from isthmus import Limits, Verdict, discover, tasks
from isthmus.discovery.asked import Asked
from isthmus.discovery.data.splitting import heldout_rows
from isthmus.discovery.work.unit import Progress
from isthmus.errors import DataError, DataWarning

Array = NDArray[np.float64]

QUICK, BRIEF = Limits(evaluations=240), Limits(evaluations=40)
ONE_RIDGE = {"ridge": 3e-3, "starts": 1, "limits": Limits(evaluations=120)}


def small_teacher(rank: int) -> tasks.Task:
    return tasks.teacher(rank, d_in=12, d_out=6, latent_dim=4, num_samples=240, noise=0.02, seed=1)


@pytest.fixture(scope="module")
def found() -> isthmus.Discovery:
    task = small_teacher(2)
    return discover(task.x, task.y, ridge=(3e-3, 1e-3), starts=1, limits=QUICK, effort="quick")


@pytest.fixture(scope="module")
def told() -> list[Progress]:
    """What was told while `quick` was found."""
    return []


@pytest.fixture(scope="module")
def quick(told: list[Progress]) -> isthmus.Discovery:
    task = small_teacher(1)
    return discover(task.x, task.y, progress=told.append, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]


def check_rank(result: isthmus.Discovery, rank: int) -> None:
    assert result.rank == rank
    assert result.interval.lower <= rank <= result.interval.upper
    assert result.transform(np.zeros((3, 12))).shape == (3, rank)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_linear_table_is_answered_at_once(noise: float) -> None:
    rng = np.random.default_rng(0)
    x, out = rng.standard_normal((150, 4)), np.linalg.qr(rng.standard_normal((6, 2)))[0].T
    y = x[:, :2] @ out + noise * rng.standard_normal((150, 6)) + 3.0
    linear = discover(x, y, limits=BRIEF)
    assert (linear.rank, linear.verdict, linear.remedies) == (2, Verdict.CONFIDENT, ())
    assert linear.reasons[-1].endswith("the task is linear, and that map is returned.")
    assert linear.is_linear
    held, scale = heldout_rows(len(x), seed=0), y.std(0)
    new = rng.standard_normal((1000, 4))
    regressed = reduced_rank_regression(x[~held], y[~held], 2, scale)
    np.testing.assert_allclose(linear.predict(new), regressed(new), rtol=0, atol=1e-6)  # data are float32 in a search
    lost = np.square((y - linear.predict(x))[held] / scale).mean()  # of columns of variance 1
    np.testing.assert_allclose(linear.heldout_error, lost, rtol=1e-6, atol=1e-13)
    known = np.square((y - linear.predict(x))[~held] / scale).mean()
    assert linear.readings["train_error"] == pytest.approx(known, rel=1e-6, abs=1e-13)  # of the same map


@pytest.mark.slow
@pytest.mark.parametrize("made", ["product", "square", ""])
def test_a_column_that_others_make_is_no_dimension_of_a_linear_table(made: str) -> None:
    """Six columns and a product of two of them lie in a linear space of seven, which they nearly fill."""
    rng = np.random.default_rng(46)
    columns = rng.normal(size=(2000, 6))
    others = {"product": columns[:, :1] * columns[:, 1:2], "square": columns[:, :1] ** 2, "": columns[:, :0]}[made]
    table = np.concatenate([columns, others], axis=1)
    found = discover(np.concatenate([table, table @ rng.normal(size=(table.shape[1], 2))], axis=1), effort="quick")
    assert found.rank == 6 or found.verdict is not Verdict.CONFIDENT
    if not made:
        assert (found.rank, found.verdict, found.is_linear) == (6, Verdict.CONFIDENT, True)


@pytest.mark.slow
def test_one_target_of_a_linear_combination_has_the_regression_of_all_rows() -> None:
    rng = np.random.default_rng(1)
    x, slopes = rng.standard_normal((150, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    y = x @ slopes + 0.1 * rng.standard_normal(150)
    linear = discover(x, y, limits=QUICK)  # cut shorter, networks through two combinations may by chance predict better
    assert (linear.rank, linear.kind, linear.is_linear) == (1, "index", True)
    assert linear.verdict is Verdict.CONFIDENT
    new = rng.standard_normal((1000, 4))
    regressed = reduced_rank_regression(x, y[:, None], 1, np.ones(1))
    np.testing.assert_allclose(np.reshape(linear.predict(new), (-1, 1)), regressed(new), rtol=0, atol=1e-6)


def reduced_rank_regression(x: Array, y: Array, rank: int, scale: Array) -> Callable[[Array], Array]:
    """Least squares, projected to the leading directions of what it fits, in columns of unit spread."""
    mean, offset = x.mean(0), y.mean(0)
    slopes = np.linalg.lstsq(x - mean, (y - offset) / scale, rcond=None)[0]
    leading = np.linalg.svd((x - mean) @ slopes, full_matrices=False)[2][:rank]
    return lambda new: (new - mean) @ slopes @ leading.T @ leading * scale + offset


def test_the_rank_of_a_teacher_is_found(found: isthmus.Discovery) -> None:
    check_rank(found, 2)
    assert found.verdict is Verdict.CONFIDENT
    assert not found.is_linear
    assert found.interval.lower == found.interval.upper == 2


def test_the_rank_comes_back_on_resampled_rows(found: isthmus.Discovery) -> None:
    # steep and flat around 2: no resample of the rows bends elsewhere
    assert found.readings["resample_share"] == found.interval.evidence["resample_share"] == 1.0
    # where starts end is their own affair: it is counted, and said
    share = found.readings["start_share"]
    assert share is not None
    assert share == found.interval.evidence["start_share"]
    assert 0.5 <= share <= 1.0


def test_the_witness_of_the_lower_bound_is_a_row_of_the_data(found: isthmus.Discovery) -> None:
    task, evidence = small_teacher(2), found.interval.evidence
    row = task.x[int(str(evidence["witness_row"]))]
    np.testing.assert_allclose(np.array(evidence["witness"]), row, rtol=1e-5, atol=1e-5 * np.abs(task.x).max())
    assert "a 2 x 2 minor of the Jacobian" in found.interval.lower_reason
    assert found.interval.upper_reason.endswith("through 2 coordinates")


def test_the_check_fails_for_another_rank(found: isthmus.Discovery) -> None:
    with pytest.raises(AssertionError):
        check_rank(found, 3)


@pytest.mark.slow
def test_another_teacher_gives_another_rank() -> None:
    task = small_teacher(3)
    check_rank(discover(task.x, task.y, **ONE_RIDGE, effort="quick"), 3)  # pyright: ignore[reportArgumentType]


def test_predictions_go_through_the_coordinates_in_the_users_units(found: isthmus.Discovery) -> None:
    task = small_teacher(2)
    assert task.y is not None
    coordinates = found.transform(task.x)
    with torch.no_grad():
        through = found.decoder(torch.from_numpy(coordinates)).numpy()
    np.testing.assert_allclose(found.predict(task.x), through, rtol=1e-12)
    error = np.square(found.predict(task.x) - task.y).sum() / np.square(task.y - task.y.mean(0)).sum()
    assert error < 0.2
    # the reported error is that of standardised columns, so it agrees only roughly
    assert error < 3 * found.scree["heldout_error"].sel(rank=2).item()


def test_coordinates_are_decorrelated_and_the_first_saves_most_error(found: isthmus.Discovery) -> None:
    x = small_teacher(2).x
    covariance = np.cov(found.transform(x).T)
    assert abs(covariance[0, 1]) < 0.2 * covariance.diagonal().min()
    # they stand in the order of the training rows; on all rows two that save about the same may change places, as they
    # once did on another processor
    first, second = isthmus.interpret(found, x)["error_saved"].values
    assert second < 1.25 * first


def test_one_dimension_fewer_costs_and_one_more_does_not(found: isthmus.Discovery) -> None:
    error = found.scree["heldout_error"]
    assert error.sel(rank=1).item() > 2 * error.sel(rank=2).item()
    assert error.sel(rank=3).item() > 0.5 * error.sel(rank=2).item()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_and_another_does_not(quick: isthmus.Discovery) -> None:
    task = small_teacher(1)
    x = task.x.copy()
    x.setflags(write=False)
    again = discover(x, task.y, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
    for a, b in zip(quick.network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(a, b)
    np.testing.assert_array_equal(x, task.x)
    other = discover(task.x, task.y, seed=1, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
    assert not np.array_equal(other.scree["heldout_error"].values, quick.scree["heldout_error"].values)


@pytest.mark.slow
def test_a_change_of_units_leaves_the_rank_and_the_predictions(found: isthmus.Discovery) -> None:
    task = small_teacher(2)
    assert task.y is not None
    # units that are powers of two change no rounding, so the training is the same and only the folding differs
    moved = discover(1024 * task.x - 0.0, task.y / 4096, ridge=(3e-3, 1e-3), starts=1, limits=QUICK, effort="quick")
    assert moved.rank == found.rank
    np.testing.assert_allclose(4096 * moved.predict(1024 * task.x), found.predict(task.x), rtol=1e-9, atol=1e-12)
    assert not np.allclose(moved.predict(1024 * task.x), found.predict(task.x), rtol=1e-3)


def test_a_constant_target_has_rank_zero() -> None:
    result = discover(small_teacher(2).x, np.full((240, 2), 3.5), effort="quick")
    assert result.rank == 0
    assert result.verdict is Verdict.CONFIDENT
    np.testing.assert_array_equal(result.predict(np.zeros((4, 12))), np.full((4, 2), 3.5))
    assert result.transform(np.zeros((4, 12))).shape == (4, 0)


@pytest.mark.slow
def test_constant_columns_are_left_out_said_and_put_back() -> None:
    task = small_teacher(1)
    x = np.hstack([task.x, np.full((240, 1), 9.0)])
    with pytest.warns(DataWarning, match="constant input column.*x12"):
        result = discover(x, task.y, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
    assert any("x12" in w for w in result.warnings)
    assert result.predict(x).shape == (240, 6)


@pytest.mark.slow
def test_autoencoding_needs_no_target() -> None:
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    plane = np.stack([np.cos(angle), np.sin(angle), np.cos(angle) + np.sin(angle), 2 * np.sin(angle)], axis=1)
    result = discover(plane, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
    assert result.rank == 2
    assert result.task == "autoencoding"
    assert result.readings["linear_rank"] == 2


@pytest.mark.slow
def test_classes_are_learnt_by_cross_entropy() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 6))
    labels = np.where(x[:, 0] > 0.5, "high", np.where(x[:, 0] < -0.5, "low", "middle"))
    result = discover(x, labels, loss="cross_entropy", ridge=3e-3, starts=1, limits=QUICK, effort="quick")
    assert result.task == "classification"
    assert result.target_names == ("high", "low", "middle")
    predicted = np.array(result.target_names)[result.predict(x).argmax(1)]
    assert (predicted == labels).mean() > 0.9
    assert result.scree.sizes["rank"] <= 2  # three classes differ in two directions at most
    accuracy = float(result.scree["heldout_accuracy"].sel(rank=result.rank))
    assert accuracy > 0.8
    assert accuracy * 60 == pytest.approx(round(accuracy * 60))  # of 60 rows held out


def test_progress_is_told_and_never_falls_back_past_the_end(quick: isthmus.Discovery, told: list[Progress]) -> None:
    assert quick.rank == 1
    assert len(told) >= 2
    assert {e.stage for e in told[:-1]} <= {"training", "higher ranks", "objective curve", "scree curve"}
    assert all(0 <= e.fraction <= 1 for e in told)
    assert (told[-1].stage, told[-1].fraction, told[-1].seconds_left) == ("finished", 1.0, 0.0)


@pytest.mark.slow
def test_the_control_runs_on_data_of_the_same_covariance() -> None:
    task = small_teacher(1)
    few = ONE_RIDGE | {"limits": BRIEF}
    result = discover(task.x[:, :5], control=True, **few, effort="quick")  # pyright: ignore[reportArgumentType]
    assert result.control is not None
    assert result.control.control is None
    assert result.control.scree.sizes["rank"] > 0


@pytest.mark.slow
def test_a_time_limit_gives_a_doubtful_answer_in_time() -> None:
    task = small_teacher(2)
    result = discover(task.x, task.y, limits=Limits(seconds=0.5), effort="quick")
    assert result.verdict is not Verdict.CONFIDENT
    assert any("time limit" in w for w in result.warnings)


def test_a_finished_folder_is_not_overwritten(tmp_path: Path, found: isthmus.Discovery) -> None:
    found.save(tmp_path)
    with pytest.raises(DataError, match="holds a finished run"):
        discover(small_teacher(2).x, out=tmp_path, effort="quick")


def test_an_unfinished_folder_of_other_data_is_refused(tmp_path: Path) -> None:
    task = small_teacher(1)

    def stop(_event: Progress) -> None:
        raise RuntimeError("stopped by the test")

    with pytest.raises(RuntimeError, match="stopped by the test"):
        discover(task.x, task.y, out=tmp_path, progress=stop, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="has other data"):
        discover(task.x + 1e-3 * task.x**2, task.y, out=tmp_path, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="has other settings"):
        discover(task.x, task.y, out=tmp_path, seed=0, ridge=1e-3, starts=1, limits=QUICK, effort="quick")


def as_frame(x: np.ndarray) -> object:
    return pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])])


@pytest.mark.dear(1)
@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(as_frame, id="frame"),
        pytest.param(lambda x: np.asfortranarray(np.repeat(x, 2, axis=1))[:, ::2], id="strided"),
        pytest.param(lambda x: x.astype(np.float16), id="float16", marks=pytest.mark.slow),
        pytest.param(lambda x: (x * 100).astype(np.int64), id="integers", marks=pytest.mark.slow),
        pytest.param(lambda x: torch.from_numpy(x).float(), id="tensor", marks=pytest.mark.slow),
        pytest.param(lambda x: x.tolist(), id="list", marks=pytest.mark.slow),
    ],
)
def test_any_array_gives_the_right_answer(convert) -> None:  # noqa: ANN001  # pyright: ignore
    task = small_teacher(1)
    result = discover(convert(task.x), task.y, **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
    assert result.rank == 1


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"loss": "hinge"}, ValueError, "'squared', 'cross_entropy'"),
        ({"network": "transformer"}, ValueError, "'connected'"),
        ({"network": "leaky", "depth_path": True}, ValueError, "leave out one of the two"),
        ({"ridge": -1.0}, ValueError, "positive ridges"),
        ({"ridge": True}, ValueError, "positive ridges"),
        ({"starts": 0}, ValueError, "at least one start"),
        ({"starts": -1}, ValueError, r"starts=-1\): needs at least one start"),
        ({"y": np.array([1, "a"] * 120, dtype=object), "loss": "cross_entropy"}, DataError, "several types, int, str"),
        ({"y": np.arange(240) * 1j, "loss": "cross_entropy"}, DataError, "labels are complex"),
        ({"x": small_teacher(1).x[:1], "y": small_teacher(1).y[:1]}, DataError, "needs at least 3"),  # pyright: ignore[reportOptionalSubscript]
        ({"log": 3}, ValueError, r"log=3\): needs 'all', or names"),
        ({"columns": ["a"]}, ValueError, "needs an isthmus.tasks.InputColumn for each"),
        ({"sample_weight": ["a"] * 240}, DataError, r"sample_weight=\.\.\.\): holds"),
        ({"sample_weight": torch.ones(240) * 1j}, DataError, r"sample_weight=\.\.\.\): holds complex"),
        ({"depth": 3}, ValueError, r"depth=3\): needs at least 8, so that there is at least one linear middle layer"),
        ({"workers": 2.0}, ValueError, r"workers=2\.0\): needs a whole number"),
        ({"scaling": "x"}, ValueError, "scaling='x'.*'column', 'global', 'auto'"),
        ({"progress": "x"}, TypeError, "progress='x'"),
        ({"control": "no"}, ValueError, "control='no'.*True or False"),
        ({"ordered": "no"}, ValueError, "ordered='no'.*True or False"),
        ({"out": ""}, ValueError, "out=''.*needs the name of a folder"),
        ({"out": "/dev/null"}, DataError, "out.*/dev/null"),
        ({"out": "/proc/isthmus/run"}, DataError, "out.*no folder can be made at /proc/isthmus/run"),
        ({"out": str(Path(__file__))}, DataError, "no folder can be made at .*it is a file"),
        ({"x": small_teacher(1).x[:2], "y": small_teacher(1).y[:2]}, DataError, "has 2 rows; needs at least 3"),  # pyright: ignore[reportOptionalSubscript]
        ({"groups": [0] * 240, "ordered": True}, ValueError, "give one of the two"),
        ({"groups": [0] * 240}, ValueError, "two different labels"),
        ({"y": np.zeros((239, 2))}, DataError, "240"),
        ({"x": np.full((240, 3), np.nan)}, DataError, "row"),
        ({"x": np.ones((240, 3))}, DataError, "identical"),
        ({"x": 1e-310 * small_teacher(1).x}, DataError, "x: columns 'x0', .* vary by less than 1e-300"),
        ({"y": small_teacher(1).y * [1e-310, 1, 1, 1, 1, 1]}, DataError, "y: column 'y0' varies by less than 1e-300"),  # pyright: ignore[reportOptionalOperand]
    ],
    ids=[
        "loss",
        "network",
        "path",
        "ridge",
        "true-ridge",
        "starts",
        "fewer-starts",
        "mixed-labels",
        "complex-labels",
        "one-row",
        "log",
        "columns",
        "weights-of-text",
        "complex-weights",
        "depth",
        "workers",
        "scaling",
        "progress",
        "control",
        "ordered",
        "no-name",
        "device",
        "proc",
        "file",
        "two-rows",
        "both-splits",
        "one-group",
        "length",
        "nan",
        "identical",
        "faint-inputs",
        "faint-target",
    ],
)
def test_bad_input_is_refused_before_any_work(change: dict[str, object], error: type[Exception], message: str) -> None:
    task = small_teacher(1)
    arguments = {"x": task.x, "y": task.y} | change
    with pytest.raises(error, match=message):
        discover(**arguments, effort="quick")  # pyright: ignore[reportArgumentType]


ROWS = np.random.default_rng(0).normal(size=(60, 4))
FEW_ROWS: dict[str, Callable[[int], dict[str, Any]]] = {
    "one target": lambda n: {"x": ROWS[:n], "y": ROWS[:n, 0] ** 2},
    "modes": lambda n: {"x": ROWS[:n], "y": ROWS[:n, :2], "decoder": "linear"},
    "classes": lambda n: {"x": ROWS[:n], "y": np.arange(n) % 2, "loss": "cross_entropy"},
    "targets": lambda n: {"x": ROWS[:n], "y": ROWS[:n, :2]},
    "columns": lambda n: {"x": ROWS[:n]},
    "a group of most rows": lambda n: {"x": ROWS, "y": ROWS[:, 0] ** 2, "groups": np.arange(60) < 3 * n},
    "a group of one row": lambda n: {"x": ROWS, "y": ROWS[:, 0] ** 2, "groups": np.arange(60) == n},
    "few that weigh": lambda n: {"x": ROWS, "y": ROWS[:, 0] ** 2, "sample_weight": 1.0 * (np.arange(60) < n)},
}  # fmt: skip


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 5, 7))])
@pytest.mark.parametrize("given", FEW_ROWS.values(), ids=FEW_ROWS)
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_few_rows_are_answered_though_never_surely(
    given: Callable[[int], dict[str, Any]], n: int, tmp_path: Path
) -> None:
    """Also where a single row is held out, of which no error of a mean is known."""
    asked: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "limits": Limits(evaluations=20), "effort": "quick"}
    for seed in range(2):
        found = discover(**given(n), **asked, seed=seed, out=tmp_path / str(seed))
        assert found.verdict is not Verdict.CONFIDENT
        assert isthmus.load(tmp_path / str(seed)).summary() == found.summary()


@pytest.mark.other_types
def test_numbers_of_numpy_and_torch_are_ridges_and_labels_need_no_order() -> None:
    task = small_teacher(1)
    asked = Asked(ridge=np.float32(0.25), groups=np.array([1, "a"] * 120, dtype=object), effort="quick")  # pyright: ignore[reportArgumentType]
    request = asked.request(task.x, task.y)
    assert request.settings.ridges == (0.25,)
    assert {bool(held) for held in request.sample.held[::2]} == {bool(request.sample.held[0])}
    for ridge in (torch.tensor(0.25), np.array(0.25), {0.25}, np.array([0.25]), (r for r in (0.25,))):
        assert Asked(ridge=ridge).request(task.x, task.y).settings.ridges == (0.25,)  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_few_rows_are_warned_of() -> None:
    task = small_teacher(1)
    assert task.y is not None
    with pytest.warns(DataWarning, match="15 rows"):
        discover(task.x[:15], task.y[:15], **ONE_RIDGE, effort="quick")  # pyright: ignore[reportArgumentType]
