"""Parts are computed once, in whatever process, to the same bits; what fails in a worker is said."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import xarray as xr

from figure_parts import dying, raising, trainings
from isthmus.errors import ProcessLost, SweepError
from isthmus.figures import Workshop
from isthmus.figures.parts import Part, opened
from isthmus.figures.provenance import code_of
from isthmus.sweeps import SweepProgress
from isthmus.sweeps.engine_choice import EngineChoice
from isthmus.writing.atomic import atomic_folder


def workshop(folder: Path, workers: int, heard: list[SweepProgress] | None = None) -> Workshop:
    events = [] if heard is None else heard
    return Workshop(folder, EngineChoice(workers=workers), listener=events.append)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[xr.Dataset]]:
    """The folder in which this process made two parts, and what they are."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, workshop(folder, 0).parts(trainings(2))


@pytest.mark.slow
def test_another_process_gives_the_same_bits_and_names_what_raises(
    alone: tuple[Path, list[xr.Dataset]], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--seed-shift"):
        pytest.skip("the other process starts its networks where it always does")
    parts, heard = trainings(2), list[SweepProgress]()
    with pytest.raises(SweepError, match="raising(.|\n)*ArithmeticError: no square root(.|\n)*same command tries"):
        workshop(tmp_path, 1, heard).parts([*parts, raising()])
    assert [(event.done, event.total) for event in heard] == [(0, 3), (1, 3), (2, 3)]
    assert all(part.is_there(tmp_path / "parts") for part in parts)
    for one, other in zip(alone[1], workshop(tmp_path, 0).parts(parts), strict=True):
        xr.testing.assert_identical(one.drop_attrs(), other.drop_attrs())
    assert alone[1][0]["trained_penalty"] != alone[1][1]["trained_penalty"]


@pytest.mark.slow
def test_two_processes_share_the_parts(alone: tuple[Path, list[xr.Dataset]], tmp_path: Path) -> None:
    parts, heard = trainings(3), list[SweepProgress]()
    [*together] = workshop(tmp_path, 2, heard).parts([*parts, parts[0]])
    for one, other in zip(alone[1], together, strict=False):
        xr.testing.assert_identical(one.drop_attrs(), other.drop_attrs())
    xr.testing.assert_identical(together[0], together[3])
    assert [(event.done, event.total) for event in heard] == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_what_is_there_is_not_computed_again(alone: tuple[Path, list[xr.Dataset]]) -> None:
    folder, [first, _] = alone
    *done, fresh = trainings(3)
    again, _, other = workshop(folder, 0).parts([*done, fresh])
    xr.testing.assert_identical(first, again)  # with the seconds that it took
    assert other.attrs["provenance"]["seconds"] > 0


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_trainings_in_parts_say_how_far_they_are(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.sweeps.telling.TELL_SECONDS", 0.0)  # in this process; another one tells each second
    heard = list[SweepProgress]()
    size = {} if workers == 0 else {"depth": 120, "evaluations": 600}
    workshop(tmp_path, workers, heard).parts(trainings(3, **size))
    told = [running for event in heard for running in event.running if running.telling is not None]
    assert {running.label for running in told} == {f"linear resnet weight={0.5 + i}" for i in range(3)}
    steps = [running.telling.evaluations for running in told if running.telling and running.label.endswith("0.5")]
    assert steps == sorted(steps)
    assert len(set(steps)) > 2
    assert heard[0].done == 0
    assert heard[-1] == SweepProgress(3, 3, 0, (), 0.0)
    assert all(len(event.running) <= max(workers, 1) for event in heard)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_heard_of(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="dying.*ended with code -9"):
        workshop(tmp_path, 2).parts([dying(), *trainings(2)])
    assert len(workshop(tmp_path, 0).parts(trainings(2))) == 2


def test_an_executor_that_is_ended_under_the_parts_is_said(tmp_path: Path) -> None:
    """Its futures are cancelled, which `concurrent.futures.as_completed` waits for without end."""
    ended = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(ended.wait)
        threading.Timer(0.3, threads.shutdown, kwargs={"wait": False, "cancel_futures": True}).start()
        with pytest.raises(SweepError, match="its executor was ended\nThe same command tries it again"):
            Workshop(tmp_path, EngineChoice(), executor=threads).parts(trainings(2))
        ended.set()
    with pytest.raises(ProcessLost, match="figure: the executor was ended.*Give one that can"):
        Workshop(tmp_path, EngineChoice(), executor=threads).parts(trainings(2))


def test_the_id_of_a_part_follows_its_settings() -> None:
    def never(_checkpoint: Path, _hear: object) -> xr.Dataset:
        raise AssertionError

    one = Part("a", {"depth": 1, "values": (1.0, 2.0)}, never)
    assert one.id == Part("a", {"values": [1.0, 2.0], "depth": 1}, never).id
    assert len({one.id, Part("a", {"depth": 2}, never).id, Part("b", {"depth": 2}, never).id}) == 3


def test_what_a_kill_left_half_written_goes(tmp_path: Path) -> None:
    root = opened(tmp_path)
    finished = root / "runs" / "ab" / "ab12"
    finished.mkdir(parents=True)
    with atomic_folder(finished.with_name("ab34")) as half:
        left = half.with_name(half.name.replace("ab34", "ab56"))
    left.mkdir()  # as it would have been, had the process been killed
    opened(tmp_path)
    assert finished.exists()
    assert not left.exists()


def test_the_code_of_a_figure_is_that_of_every_file_it_uses(tmp_path: Path) -> None:
    import isthmus.figures.boundedness as module

    room = Path(module.__file__).parent
    for file in room.glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "boundedness.py"
    before = code_of(path)
    assert before == code_of(path)
    (tmp_path / "narrowness.py").write_text("")  # another figure
    assert code_of(path) == before
    through = tmp_path / "leaky_training.py"  # which it uses through `leaky_depth`
    through.write_text(through.read_text() + "\n")
    assert code_of(path) != before
