"""Sweeps in this process: the dataset, nothing twice, failures, damage, locks."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import isthmus
from isthmus.discovery.halves import INDEX, MODE
from isthmus.errors import PlanError, SweepError
from isthmus.sweeps import SweepProgress, sweep, worker
from isthmus.sweeps.execution import compute
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.index import Index, Status
from isthmus.sweeps.run_files import arrays_of, read_network, read_result
from isthmus.sweeps.setup import prepared
from isthmus.sweeps.store import Store, run_folder
from isthmus.sweeps.worker import Ending, Job, execute, versions
from isthmus.training import FitEvent
from isthmus.writing.checksums import opened_json, sealed_json
from sweep_plans import TRAINING, attempts, computed_after_their_end, contents, tiny, write_plan


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep over two ridges and two seeds."""
    folder = tmp_path_factory.mktemp("whole")
    sweep(tiny(ridge=[1e-2, 1e-3], seed=[0, 1]), out=folder, workers=0)
    return folder


def test_the_dataset_has_the_numbers_of_fit_itself(whole: Path) -> None:
    plan = tiny(ridge=[1e-2, 1e-3], seed=[0, 1])
    found = sweep(plan, out=whole, workers=0)
    assert dict(found.sizes) == {"ridge": 2, "seed": 2}
    run = plan.runs()[2]
    start = prepared(run.settings, None)
    result = isthmus.fit(start.network, start.x, start.y, ridge=1e-3, limits=isthmus.Limits(evaluations=20))
    here = found.sel(ridge=1e-3, seed=0)
    for name in ("objective", "data_loss", "penalty", "stationarity", "gradient_evaluations", "rank"):
        assert float(here[name]) == getattr(result, name), name
    assert str(here["outcome"].values) == result.outcome.name
    assert str(here["id"].values) == run.id
    diagnosed = isthmus.diagnose(result.network, start.x)
    assert int(here["rank_estimate"]) == diagnosed.rank.estimate
    folder = run_folder(whole, run.id)
    assert arrays_of(folder).identical(diagnosed.layers.merge(result.history))
    saved = read_network(folder).state_dict()
    assert all(torch.equal(tensor, saved[name]) for name, tensor in result.network.state_dict().items())


@pytest.mark.slow
def test_nothing_is_computed_twice_and_new_values_only(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    sweep(tiny(seed=[0, 1]), out=folder, workers=0)
    sweep(tiny(seed=[0, 1]), out=folder, workers=0)
    assert len(attempts(folder)) == 4
    found = sweep(tiny(ridge=[1e-2, 1e-3], seed=[0, 1]), out=folder, workers=0)
    assert len(attempts(folder)) == 8
    assert computed_after_their_end(folder) == []
    assert contents(folder) == contents(whole)
    assert set(found["status"].values.ravel()) == {"done"}


@pytest.mark.slow
def test_the_comparison_sees_another_number(whole: Path, tmp_path: Path) -> None:
    sweep(tiny(ridge=[1e-2, 1e-3], seed=[0, 2]), out=tmp_path, workers=0)
    one, other = contents(whole), contents(tmp_path)
    assert len(one.keys() & other.keys()) == 2
    a, b = next(one[key] for key in one.keys() - other.keys()), next(other[key] for key in other.keys() - one.keys())
    assert all(x != y for x, y in zip((a[0], a[2], a[3]), (b[0], b[2], b[3]), strict=True))


def test_a_failing_run_is_recorded_with_its_traceback_and_stops_no_other(tmp_path: Path) -> None:
    base = tiny(seed=[0, 1])
    # one row cannot be diagnosed, which no check of the plan sees
    plan = replace(base, training={**TRAINING, "scaling": "none"}, grid={"task.num_samples": [1, 40], "seed": [0, 1]})
    found = sweep(plan, out=tmp_path, workers=0, retries=1)
    assert found["status"].values.tolist() == [["failed"] * 2, ["done"] * 2]
    assert np.isnan(found["objective"].values[0]).all()
    assert [what for _, what in attempts(tmp_path)].count("begin") == 2 * 2 + 2
    with closing(Index(tmp_path / "index.sqlite")) as index:
        errors = [row.error for row in index.rows() if row.status is Status.FAILED]
    assert all("Traceback" in error and "at least 2 rows" in error for error in errors)
    assert len(errors) == 2
    (tmp_path / "index.sqlite").unlink()
    again = sweep(replace(plan, grid={"task.num_samples": [40], "seed": [0, 1]}), out=tmp_path, workers=0)
    assert again["status"].values.tolist() == [["done"] * 2]
    with closing(Index(tmp_path / "index.sqlite")) as index:
        assert [row.error for row in index.rows() if row.status is Status.FAILED] == errors


def test_leaky_and_residual_networks_are_swept_too(tmp_path: Path) -> None:
    base = tiny(seed=[0])
    leaky = {"kind": "leaky", "width": 6, "depth": 4, "effective_depth": 3.0}
    residual = {"kind": "resnet", "width": 6, "depth": 2, "block_depth": 2}
    for number, network in enumerate((leaky, residual)):
        plan = replace(base, network=network)
        found = sweep(plan, out=tmp_path / str(number), workers=0)
        assert found["status"].values.tolist() == ["done"], found
        assert 1 <= int(found["rank_jacobian"].values[0]) <= 2
        assert ("far from critical" in str(found["warnings"].values[0])) is (number == 0)
        folder = run_folder(tmp_path / str(number), plan.runs()[0].id)
        network_found = read_network(folder)
        start = prepared(plan.runs()[0].settings, None)
        loss = float((network_found(start.x) - start.y).detach().square().sum(1).mean())
        assert loss == pytest.approx(float(found["data_loss"].values[0]), rel=1e-12)


def test_a_linear_half_is_a_value_of_the_plan_and_its_rank_a_column(tmp_path: Path) -> None:
    task = {"name": "teacher", "rank": 2, "d_in": 5, "d_out": 2, "latent_dim": 2, "num_samples": 60}
    plan = replace(tiny(), task=task, grid={"network.linear": [[1, 2], [2], [2, 3]]})
    plan = replace(plan, network={**plan.network, "depth": 4})
    found = sweep(plan, out=tmp_path, workers=0)
    index, mode = (found[name].values for name in ("rank_index", "rank_mode"))
    assert np.isnan(index).tolist() == [False, True, True]
    assert np.isnan(mode).tolist() == [True, True, False]
    for run, name, kind in ((0, "rank_index", INDEX), (2, "rank_mode", MODE)):
        network = read_network(run_folder(tmp_path, plan.runs()[run].id)).double()
        slopes = isthmus.networks.jacobians(network, prepared(plan.runs()[run].settings, None).x[:60].double())
        assert found[name].values[run] == int(isthmus.theory.spectral_gap_rank(kind.spectrum(slopes)))


def test_a_list_of_settings_gives_one_dimension(tmp_path: Path) -> None:
    plan = replace(tiny(), grid={}, settings=[{"depth": 3}, {"depth": 4, "ridge": 0.1}])
    found = sweep(plan, out=tmp_path, workers=0)
    assert dict(found.sizes) == {"run": 2}
    assert found["depth"].values.tolist() == [3, 4]
    assert bool(np.isfinite(found["objective"].values).all())


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[SweepProgress] = []
    sweep(tiny(seed=[0, 1]), out=tmp_path, workers=0, progress=told.append)
    assert told[-1].done == told[-1].total == 2
    assert {run.label for event in told for run in event.running} <= {"seed=0", "seed=1"}
    assert [event.done for event in told] == sorted(event.done for event in told)


def test_a_second_driver_is_told_so_and_stops(whole: Path) -> None:
    store = SweepFolder(whole)
    assert not store.is_driven()
    with store.locked():
        assert SweepFolder(whole).is_driven()
        with pytest.raises(SweepError, match=r"another process works here \(pid \d+ on "):
            sweep(tiny(seed=[0]), out=whole, workers=0)
    assert not store.is_driven()


def damage(path: Path) -> None:
    """Another byte in the middle, the size and the time as they were."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["arrays.nc", "weights.safetensors", "result.json"])
def test_a_damaged_file_of_a_run_is_seen_and_the_run_computed_again(name: str, whole: Path, tmp_path: Path) -> None:
    plan = tiny(ridge=[1e-2], seed=[0, 1])
    sweep(plan, out=tmp_path, workers=0)
    before, folder = contents(tmp_path), run_folder(tmp_path, plan.runs()[1].id)
    damage(folder / name)
    with pytest.raises(SweepError, match="damaged"):
        read_result(folder)
    sweep(plan, out=tmp_path, workers=0)
    assert contents(tmp_path) == before
    assert len(attempts(tmp_path)) == 6
    assert len(list((tmp_path / "damaged").iterdir())) == 1


@pytest.mark.parametrize("kind", ["damaged", "missing", "no database"])
def test_the_index_is_made_again_from_the_folders(kind: str, tmp_path: Path) -> None:
    plan = tiny(seed=[0, 1])
    sweep(plan, out=tmp_path, workers=0)
    with closing(Index(tmp_path / "index.sqlite")) as index:
        before = index.rows()
    path = tmp_path / "index.sqlite"
    if kind == "missing":
        path.unlink()
    elif kind == "damaged":
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        path.write_bytes(content)
    else:
        path.write_bytes(b"no database at all" * 100)
    sweep(plan, out=tmp_path, workers=0)
    with closing(Index(tmp_path / "index.sqlite")) as index:
        assert index.rows() == before
    assert len(attempts(tmp_path)) == 4


@pytest.mark.slow
def test_a_damaged_or_foreign_checkpoint_is_dropped(whole: Path, tmp_path: Path) -> None:
    plan = tiny(ridge=[1e-2, 1e-3], seed=[0, 1])
    first, second, *_ = plan.runs()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / f"{first.id}.pt").write_bytes(b"PK\x03\x04 no checkpoint")
    start = prepared(plan.runs()[3].settings, None)
    foreign = tmp_path / "work" / f"{second.id}.pt"
    isthmus.fit(start.network, start.x, start.y, ridge=1e-3, checkpoint=foreign, callback=lambda _event: True)
    assert foreign.exists()
    sweep(plan, out=tmp_path, workers=0)
    assert contents(tmp_path) == contents(whole)
    assert list((tmp_path / "work").glob("*.pt")) == []


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    plan = tiny(ridge=[1e-2, 1e-3], seed=[0, 1])
    run = plan.runs()[0]
    (tmp_path / "work").mkdir()
    start = prepared(run.settings, None)
    path = tmp_path / "work" / f"{run.id}.pt"
    isthmus.fit(
        start.network, start.x, start.y, ridge=1e-2, limits=isthmus.Limits(evaluations=20), checkpoint=path,
        callback=lambda event: event.evaluations >= 10,
    )  # fmt: skip
    assert path.exists()
    events: list[int] = []

    def hear(event: FitEvent) -> bool:
        events.append(event.evaluations)
        return False

    copy = tmp_path / "copy.pt"
    copy.write_bytes(path.read_bytes())
    compute(run.settings, None, copy, hear)
    assert events[0] > 10
    copy.unlink()
    sweep(plan, out=tmp_path, workers=0)
    assert contents(tmp_path) == contents(whole)


def test_an_older_isthmus_refuses_a_newer_folder(tmp_path: Path) -> None:
    sweep(tiny(seed=[0]), out=tmp_path, workers=0)
    head = tmp_path / "sweep.json"
    head.write_bytes(sealed_json({**opened_json(head.read_bytes()), "format_version": 2}))
    with pytest.raises(SweepError, match="format version 2"):
        sweep(tiny(seed=[0]), out=tmp_path, workers=0)


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(SweepError, match=r"holds other files \(thesis.tex\)"):
        sweep(tiny(seed=[0]), out=tmp_path, workers=0)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_running_is_not_left_behind(whole: Path) -> None:
    with closing(Index(whole / "index.sqlite", read_only=True)) as index:
        assert set(index.statuses().values()) == {Status.DONE}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0, "scheduler": "tcp://127.0.0.1:1"}, "exclude each other"),
        ({"workers": -1}, "--workers -1"),
        ({"workers": 10**9}, "--workers 1000000000: needs a number from 0 to 4096"),
        ({"retries": -1, "workers": 0}, "retries"),
    ],
    ids=["two engines", "workers", "too many workers", "retries"],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, int], words: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=words):
        sweep(write_plan(tmp_path), out=tmp_path / "sweep", **options)  # pyright: ignore[reportArgumentType]
    assert not (tmp_path / "sweep").exists()


def test_a_worker_that_gets_a_finished_run_reports_it_and_computes_nothing(whole: Path) -> None:
    run, store = tiny(ridge=[1e-2], seed=[0]).runs()[0], Store(whole)
    before = len(attempts(whole))
    job = Job(run.id, run.settings, None, str(whole), store.token, versions())
    report = execute(job, scratch=whole, tell=lambda _telling: None, stop=lambda: False)
    assert (report.ending, report.fresh) == (Ending.DONE, False)
    assert len(attempts(whole)) == before
    other = replace(job, versions={**versions(), "torch": "2.x"})
    with pytest.raises(SweepError, match=r"torch 2\.x \(driver\), "):
        execute(other, scratch=whole, tell=lambda _telling: None, stop=lambda: False)


@pytest.mark.parametrize("remade", [False, True], ids=["moved", "replaced"])
def test_a_folder_that_is_moved_stops_the_sweep_which_goes_on_once_it_is_back(
    remade: bool, whole: Path, tmp_path: Path
) -> None:
    folder, elsewhere = tmp_path / "sweep", tmp_path / "elsewhere"
    plan = tiny(ridge=[1e-2, 1e-3], seed=[0, 1])

    def move(progress: SweepProgress) -> None:
        if progress.done and not elsewhere.exists():
            folder.rename(elsewhere)
            if remade:
                folder.mkdir()

    with pytest.raises(SweepError, match=r"sweep: was moved, removed or replaced .* put it back"):
        sweep(plan, out=folder, workers=0, progress=move)
    assert not folder.exists() or list(folder.iterdir()) == []
    assert 0 < len(contents(elsewhere)) < 4
    if remade:
        folder.rmdir()
    elsewhere.rename(folder)
    sweep(plan, out=folder, workers=0)
    assert contents(folder) == contents(whole)
    assert computed_after_their_end(folder) == []


def test_a_worker_makes_no_folder_anew_that_was_moved_while_it_worked(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    store, run = Store.make(folder), tiny(seed=[0]).runs()[0]
    job = Job(run.id, run.settings, None, str(folder), store.token, versions())

    def moved() -> bool:
        if folder.exists():
            folder.rename(tmp_path / "elsewhere")
        return False

    report = execute(job, scratch=tmp_path / "scratch", tell=lambda _telling: None, stop=moved)
    assert report.ending is Ending.UNWRITABLE
    assert "was moved, removed or replaced" in report.error
    assert not folder.exists()


def test_a_worker_whose_folder_goes_before_it_begins_reports_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    store, run = Store.make(folder), tiny(seed=[0]).runs()[0]
    job = Job(run.id, run.settings, None, str(folder), store.token, versions())
    seen = worker.check_stays

    def looked(place: str) -> None:
        seen(place)
        monkeypatch.setattr(worker, "_place", lambda *_: (folder, True))
        folder.rename(tmp_path / "elsewhere")

    monkeypatch.setattr(worker, "check_stays", looked)
    report = execute(job, scratch=tmp_path / "scratch", tell=lambda _telling: None, stop=lambda: False)
    assert report.ending is Ending.UNWRITABLE
    assert "was moved, removed or replaced" in report.error
