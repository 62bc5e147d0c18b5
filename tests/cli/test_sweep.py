"""`isthmus sweep` and its subcommands: what they say, what they write, the exit codes, and every refusal."""

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import matplotlib.image
import pandas as pd
import pytest
from rich.console import Console

from command_lines import line_of
from isthmus.cli.main import run
from isthmus.cli.progress_bar import line_of_sweep, table_of
from isthmus.cli.sweep_folder import as_text
from isthmus.cli.terminal import terminal
from isthmus.sweeps import Plan, sweep
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.sweep_progress import Running, SweepProgress
from isthmus.sweeps.telling import Telling
from sweep_plans import NETWORK, TASK, TRAINING, attempts, write_plan
from sweep_processes import finish, start

GRID = "depth = [3, 4]\nridge = [1e-1, 1e-2]"
EVENT = SweepProgress(
    9, 3, 1, (Running("depth=3", Telling("a", 40, 200, 0.03125, 2)), Running("depth=4", None)), 80.0
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four finished runs."""
    place = tmp_path_factory.mktemp("plans")
    assert run(["sweep", str(write_plan(place, GRID)), "--out", str(place / "out"), "--workers", "0"]) == 0
    return place / "out"


def test_the_second_time_finds_everything(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", str(finished.parent / "plan.toml"), "--out", str(finished)]) == 0
    assert capsys.readouterr().out == f"{finished}: 0 computed, 4 found, 0 failed. done: every run is finished\n"
    assert len(attempts(finished)) == 8


def test_status(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "status", str(finished)]) == 0
    assert capsys.readouterr().out == f"{finished}: 4 done; no sweep is at work\n"
    with SweepFolder(finished).locked():
        assert run(["sweep", "status", str(finished)]) == 0
        assert capsys.readouterr().out == f"{finished}: 4 done; a sweep is at work\n"
    assert run(["sweep", "status", str(finished), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    counts = {"done": 4, "running": 0, "waiting": 0, "failed": 0}
    assert told == {"command": "sweep status", "exit_code": 0, "at_work": False, "failures": [], **counts}


def test_nothing_is_left_beside_the_index(finished: Path) -> None:
    for command in ("status", "table"):
        assert run(["sweep", command, str(finished)]) == 0
    assert [path.name for path in finished.glob("index.sqlite*")] == ["index.sqlite"]


@pytest.mark.slow
def test_the_page_is_written_beside_the_runs(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "report", str(finished)]) == 0
    assert capsys.readouterr().out == f"{finished / 'report.html'}: 4 runs\n"
    assert "4 runs over depth and ridge: 4 done" in (finished / "report.html").read_text()
    assert run(["sweep", "report", str(finished)]) == 2
    assert "exists. Add --replace" in line_of(capsys.readouterr().err)
    assert run(["sweep", "report", str(finished), "--replace"]) == 0


def test_a_folder_of_a_sweep_is_no_run_to_go_on_with(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["interpret", str(finished)]) == 2
    line = line_of(capsys.readouterr().err)
    assert f"is the folder of a sweep; isthmus sweep table {finished} shows its runs" in line
    assert "--resume" not in line


def test_the_table_has_the_settings_that_differ(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "table", str(finished)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["id", "status", "network.depth", "training.ridge", "outcome"]
    assert [row.split()[2:4] for row in rows[:4]] == [["3", "0.01"], ["3", "0.1"], ["4", "0.01"], ["4", "0.1"]]
    assert all(line.startswith(("no rank_estimate of ", "warning of ")) for line in rows[4:])


def test_a_cell_of_the_table_is_empty_exact_or_rounded() -> None:
    columns: dict[str, list[object]] = {"rank": [2, None], "objective": [1 / 3, float("inf")], "bias": [True, "a b"]}
    assert as_text(columns).splitlines() == ["rank objective bias", "   2  0.333333 True", "           inf  a b"]


@pytest.mark.slow
def test_what_only_looks_imports_nothing_heavy(finished: Path) -> None:
    for command in ("status", "table"):
        script = (
            f"import sys\nfrom isthmus.cli.main import run\ncode = run(['sweep', {command!r}, {str(finished)!r}])\n"
            "print(code, *{'torch', 'numpy', 'pandas', 'xarray', 'scipy'} & set(sys.modules), file=sys.stderr)"
        )
        assert finish(start([sys.executable, "-c", script])).splitlines()[-1] == "0"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_table_as_a_file(suffix: str, finished: Path, tmp_path: Path) -> None:
    path = tmp_path / f"table{suffix}"
    assert run(["sweep", "table", str(finished), "--out", str(path)]) == 0
    table = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert table["network.depth"].tolist() == [3, 3, 4, 4]
    assert bool((table["objective"] > 0).all())


def test_the_picture(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.png"
    options = ["--axis", "ridge", "--by", "depth", "--quantity", "objective,rank", "--out", str(path)]
    assert run(["sweep", "plot", str(finished), *options]) == 0
    assert capsys.readouterr().out == f"{path}: objective, rank against training.ridge, by network.depth\n"
    assert matplotlib.image.imread(path).shape[:2] == (620, 1760)


def test_a_picture_goes_into_a_stream_and_names_may_have_blanks_after_commas(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--axis", "ridge", "--quantity", "objective, rank", "--out", "/dev/null"]
    assert run(["sweep", "plot", str(finished), *options]) == 0
    assert "objective, rank against training.ridge" in capsys.readouterr().out


def test_a_folder_whose_driver_was_killed_has_no_run_that_runs(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only `status` knew that; and a picture of runs of which none has ended was empty, with exit code 0."""
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    with closing(sqlite3.connect(folder / "index.sqlite")) as index, index:
        columns = [row[1] for row in index.execute("pragma table_info(runs)")]
        assert "status" in columns
        index.execute("update runs set status = 'running'")
    assert run(["sweep", "table", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "waiting" in told
    assert "running" not in told


def test_a_sweep_goes_on_where_the_folder_of_its_runs_was_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write_plan(tmp_path, "depth = [3, 4]")
    arguments = ["sweep", str(plan), "--out", str(tmp_path / "out"), "--workers", "0"]
    assert run(arguments) == 0
    shutil.rmtree(tmp_path / "out" / "runs")
    assert run(arguments) == 0
    assert "No such file" not in capsys.readouterr().err
    assert (tmp_path / "out" / "runs").is_dir()


def test_a_heading_of_somebody_elses_folder_moves_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    told = as_text({"network.\x1b]0;pwn\x07d": [1]})
    assert "\x1b" not in told
    assert "\x07" not in told
    terminal(always=True).print("a \x1b[31mb\u202e c\x9bd\ttab", soft_wrap=True)
    said = capsys.readouterr().out
    assert said.split() == ["a", "?[31mb?", "c?d", "tab"]


def test_the_lines_are_never_the_axis(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.svg"
    for by, axis in (("depth", "training.ridge"), ("ridge", "network.depth")):
        options = ["--by", by, "--quantity", "rank", "--out", str(path), "--replace"]
        assert run(["sweep", "plot", str(finished), *options]) == 0
        assert f"rank against {axis}, by " in capsys.readouterr().out


def test_a_new_index(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    (folder / "index.sqlite").unlink()
    assert run(["sweep", "status", str(folder)]) == 2
    assert f"isthmus sweep reindex {folder}" in line_of(capsys.readouterr().err)
    assert run(["sweep", "reindex", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: 4 finished and 0 failed runs in the index\n"


def test_failed_runs_are_exit_code_3_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path, "task.num_samples = [1, 40]")
    plan.write_text(plan.read_text().replace("ridge = 1e-2", 'ridge = 1e-2\nscaling = "none"'))
    assert run(["sweep", str(plan), "--out", str(tmp_path / "out"), "--workers", "0", "--retries", "0"]) == 3
    assert "1 computed, 0 found, 1 failed. some runs failed" in capsys.readouterr().out
    assert run(["sweep", "status", str(tmp_path / "out")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("1 done, 1 failed; no sweep is at work")
    assert "at least 2 rows" in second


def test_progress_as_a_line_and_as_a_table() -> None:
    line = line_of_sweep(EVENT)
    assert line == (
        "3/9 done, 2 running, 1 failed, 3 waiting, 1:20 left; "
        "depth=3: step 40/200, objective 0.03125, rank 2; depth=4: starting"
    )
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table_of(EVENT))
    text = captured.get()
    assert [word for word in ("3/9 done", "40/200", "0.03125", "starting", "1:20 left") if word not in text] == []


@dataclass(frozen=True)
class Refusal:
    """Words of the command line, what of the plan is replaced, and words of the one line that comes back."""

    options: tuple[str, ...]
    said: tuple[str, ...]
    before: str = ""
    after: str = ""


TEACHER = 'name = "teacher"\nrank = 1\nd_in = 5\nd_out = 2\nlatent_dim = 2\nnum_samples = 40'
RUN = ("sweep", "PLAN", "--out", "OUT", "--workers", "0")
REFUSED = {
    "unknown key": Refusal(RUN, ("plan.toml", "'widht'", "Did you mean 'width'?"), "width", "widht"),
    "empty grid": Refusal(RUN, ("plan.toml", "grid.seed is empty"), "[0, 1]", "[]"),
    "value out of range": Refusal(
        RUN, ("run 2 (depth=0)", "network.depth is 0", "from 1"), "seed = [0, 1]", "depth = [1, 0]"
    ),
    "task file missing": Refusal(RUN, ("task.file", "no.csv"), TEACHER, 'file = "no.csv"'),
    "no plan": Refusal(("sweep", "NO.toml", "--workers", "0"), ("NO.toml", "no such file")),
    "two engines": Refusal((*RUN, "--scheduler", "tcp://127.0.0.1:9"), ("--workers", "--scheduler", "exclude")),
    "a thousand million workers": Refusal((*RUN[:-1], "1000000000"), ("--workers 1000000000", "from 0 to 4096")),
    "patience that is no number": Refusal((*RUN, "--patience", "nan"), ("--patience",)),
    "a seed beyond 2^63": Refusal(RUN, ("network.seed is 1000", "< 2^63"), "[0, 1]", f"[{10**20}]"),
    "unreachable scheduler": Refusal(
        ("sweep", "PLAN", "--out", "OUT", "--scheduler", "tcp://127.0.0.1:9"),
        ("tcp://127.0.0.1:9", "cannot be reached"),
    ),
    "no scheduler's address": Refusal(
        ("sweep", "PLAN", "--out", "OUT", "--scheduler", "nonsense://x"), ("nonsense://x", "cannot be reached")
    ),
    "no Slurm": Refusal(("sweep", "PLAN", "--out", "OUT", "--slurm", "NO.toml"), ("--slurm NO.toml", "no such file")),
    "folder without a sweep": Refusal(("sweep", "status", "OUT"), ("OUT", "holds no sweep")),
    "unknown subcommand": Refusal(("sweep", "statsu", "OUT"), ("OUT",)),
    "unknown option": Refusal(("sweep", "PLAN", "--wrokers", "0"), ("--wrokers",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_one_line_and_exit_code_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("isthmus.sweeps.schedulers.CONNECT_SECONDS", 0.5)
    refusal = REFUSED[name]
    path = write_plan(tmp_path)
    path.write_text(path.read_text().replace(refusal.before, refusal.after))
    assert run([path.name if word == "PLAN" else word for word in refusal.options]) == 2
    line = line_of(capsys.readouterr().err)
    assert [word for word in refusal.said if word not in line] == [], line
    assert list(tmp_path.glob("OUT/runs/*/*")) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["table", "--out", "t.xlsx"], "unknown extension '.xlsx'"),
        (["plot", "--out", "t.pdf"], "unknown extension '.pdf'"),
        (["report", "--out", "t.pdf"], "unknown extension '.pdf'"),
        (["plot", "--axis", "dept"], "Did you mean 'depth'?"),
        (["plot", "--quantity", "objectiv"], "Did you mean 'objective'?"),
        (["plot", "--by", "width"], "--by width: unknown, or the same in every run"),
        (["plot", "--by", "depth", "--axis", "depth"], "that is the axis already"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_table_or_picture_that_cannot_be_made(
    options: list[str], said: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", options[0], str(finished), *options[1:]]) == 2
    assert said in line_of(capsys.readouterr().err)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of every kind, whose settings are lists, switches, numbers and words under one name."""
    folder = tmp_path_factory.mktemp("mixed")
    settings: list[dict[str, object]] = [
        {"linear": [1, 2]},
        {"width": [6, 4, 5]},
        {"kind": "resnet", "block_depth": 2, "linear": True},
        {"kind": "leaky", "effective_depth": 2.0},
        {"loss": "huber:0.5", "task.noise": 0.1, "scaling": "none"},
    ]
    sweep(Plan(TASK, NETWORK, TRAINING, settings=settings), out=folder, workers=0)
    return folder


@pytest.mark.parametrize(
    "words",
    ["status", "table", "table --json", "table --out t.csv", "table --out t.parquet", "plot", "report", "reindex"],
)
def test_runs_of_every_kind_go_through_every_command(
    words: str, mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """.parquet had been refused as a bug of ours: one column held true and false beside numbers of layers."""
    shutil.copytree(mixed, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    command, *options = words.split()
    assert run(["sweep", command, "runs", *options]) == 0
    if words.endswith("parquet"):
        table = pd.read_parquet("t.parquet")
        assert sorted(table["network.linear"].dropna()) == ["1 2", "True", "[]", "[]"]
        assert sorted(table["network.width"].dropna()) == ["6", "6", "6", "6", "6 4 5"]
        assert table["network.effective_depth"].dropna().tolist() == [2.0]
