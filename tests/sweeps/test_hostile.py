"""Plans and folders that somebody else wrote: each is refused in one line, soon, and nothing runs or grows."""

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_lines import line_of
from isthmus.cli.main import run
from isthmus.errors import PlanError, SweepError
from isthmus.sweeps import Plan
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.plan_check import checked_runs
from isthmus.tasks.door import MOST_BYTES
from sweep_plans import NETWORK, TASK, TOML, TRAINING, write_plan
from sweep_processes import ENVIRONMENT

NINES, DEEP = "9" * 5000, 5000
TASK_LINE = 'name = "teacher"'
WHOLE_TASK = TOML[TOML.index("name") : TOML.index("\n\n[network]")]
NINE_MILLION = "\n".join(f"{key} = {list(range(3, 3003))}" for key in ("depth", "seed"))
PLANS: dict[str, tuple[str, str, str]] = {
    # what of the plan is replaced, by what, and words of the one line
    "nine million runs": ("seed = [0, 1]", NINE_MILLION, "has 9,000,000 runs, more than 100,000"),
    "tables within tables": ("seed = [0, 1]", f"seed = {'[' * DEEP}{']' * DEEP}", "cannot be read as TOML"),
    "dotted keys within keys": ("seed = [0, 1]", f"{'a.' * DEEP}a = 1", "tables within tables"),
    "tables in the task": (TASK_LINE, f"{TASK_LINE}\n{'a.' * 10}a = 1", "unknown key 'a'"),
    "an integer of 5000 digits": ("depth = 4", f"depth = {NINES}", "cannot be read as TOML"),
    "a hexadecimal integer": ("depth = 4", f"depth = 0x{'f' * 5000}", "network.depth is a int that is too long"),
    "a hexadecimal ridge": ("ridge = 1e-2", f"ridge = 0x{'f' * 5000}", "training.ridge is a int that is too long"),
    "a hexadecimal axis": ("seed = [0, 1]", f"ridge = [0x{'f' * 5000}]", "training.ridge is a int that is too long"),
    "a ridge that is no number": ("ridge = 1e-2", "ridge = nan", "training.ridge is nan"),
    "a hundred million layers": ("depth = 4", "depth = 100000000", "needs a whole number from 1 to 100000"),
    "a billion neurons": ("width = 6", "width = 1000000000", "more than memory holds"),
    "more columns than memory": ("d_in = 5", "d_in = 1000000000000", "run 1 "),
    "a long key": ("depth = 4", f"{'d' * 100_000} = 4", "unknown key 'ddd"),
    "a task of another place": (TASK_LINE, f"{TASK_LINE}\nfactory = 'os:system'", "unknown key 'factory'"),
    "a task that is no task": ('"teacher"', '"__builtins__"', "unknown key '__builtins__'"),
    "a task that is a device": (WHOLE_TASK, 'file = "/dev/zero"', "needs a file that is there"),
    "a task with a NUL": (WHOLE_TASK, 'file = "a\\u0000b.csv"', "needs a file that is there"),
    "a task with a long name": (WHOLE_TASK, f'file = "{"a" * 5000}.csv"', "needs a file that is there"),
    "a task that is a folder": (WHOLE_TASK, 'file = "../.."', "needs a file that is there"),
    "bytes": ("[task]", "\x00[task]", "cannot be read as TOML"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_a_hostile_plan_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after, said = PLANS[name]
    path = write_plan(tmp_path)
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    assert run(["sweep", str(path), "--out", str(tmp_path / "out"), "--workers", "0"]) == 2
    line = line_of(capsys.readouterr().err)
    assert said in line
    assert str(path) in line
    assert len(line) < 1500
    assert not (tmp_path / "out").exists()


def test_a_plan_is_counted_before_it_is_expanded_and_the_limit_can_be_lifted() -> None:
    with pytest.raises(PlanError, match=r"^plan: has 8 runs, more than 7\. .* --most-runs"):
        Plan(TASK, NETWORK, TRAINING, grid={"seed": list(range(8))}, most_runs=7).runs()
    assert len(Plan(TASK, NETWORK, TRAINING, grid={"seed": list(range(8))}, most_runs=8).runs()) == 8
    with pytest.raises(PlanError, match=r"^plan: has 2 runs, more than 1\."):
        Plan(TASK, NETWORK, TRAINING, settings=[{"seed": 1}, {"seed": 2}], most_runs=1).runs()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "no\0thing.toml", "n" * 5000])
def test_what_is_no_file_is_no_plan(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", path, "--workers", "0"]) == 2
    line_of(capsys.readouterr().err)


def test_a_plan_without_end_is_not_read_to_it(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(PlanError, match="is longer than 16 MiB"):
        Plan.read(tmp_path / "p.toml")


_HEAD = '{"format": "isthmus sweep", "format_version": %s}'
HEADS = ("", "[]", "null", _HEAD % 1, _HEAD % 'Infinity, "token": "a"', _HEAD % '1, "token": ["a"]', "[" * 100_000,
         '"' + "a" * 10_000_000 + '"', "\x00")  # fmt: skip


@pytest.mark.parametrize("head", HEADS, ids=[str(i) for i in range(len(HEADS))])
def test_a_hostile_head_is_one_line(head: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(head)
    with pytest.raises(SweepError, match=r"sweep\.json: is damaged\. Remove this one file"):
        SweepFolder(tmp_path)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev", "/proc/self/mem"])
def test_a_head_that_is_no_file_is_not_read(target: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").symlink_to(target)
    with pytest.raises((SweepError, OSError)):
        SweepFolder(tmp_path)


def _row(folder: Path, **changes: object) -> None:
    row: dict[str, object] = {
        "id": "a" * 20,
        "status": "done",
        "settings": "{}",
        "numbers": "{}",
        "error": "",
    } | changes
    with sqlite3.connect(folder / "index.sqlite") as index:
        columns = "id, status, settings, numbers, error"  # without a checksum, as an earlier version wrote them
        index.execute(
            f"INSERT OR REPLACE INTO runs ({columns}) VALUES (:id, :status, :settings, :numbers, :error)", row
        )
    index.close()


def _bytes(folder: Path) -> None:
    path = folder / "index.sqlite"
    content = bytearray(path.read_bytes())
    content[200:6000] = b"\xff" * 5800
    path.write_bytes(content)


def _written(content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "index.sqlite").write_bytes(content)

    return change


def _script(text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with sqlite3.connect(folder / "index.sqlite") as index:
            index.executescript(text)
        index.close()

    return change


ENDLESS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    "SELECT x AS id, 'done' AS status, '{}' AS settings, '{}' AS numbers, '' AS error FROM n"
)
INDEXES: dict[str, Callable[[Path], None]] = {
    "no bytes": _written(b""),
    "other bytes": _written(bytes(range(256)) * 32),
    "damaged pages": _bytes,
    "settings that are no JSON": lambda folder: _row(folder, settings="{"),
    "settings that are a list": lambda folder: _row(folder, settings="[]"),
    "sections that are numbers": lambda folder: _row(folder, settings='{"a": 1}'),
    "deep settings": lambda folder: _row(folder, settings='{"a":' * 100_000),
    "two values in one": lambda folder: _row(folder, settings="{},{}"),
    "numbers that are lists": lambda folder: _row(folder, numbers='{"rank": [1]}'),
    "a number of another kind": lambda folder: _row(folder, numbers='{"rank": {"$float": "x"}}'),
    "a status that is none": lambda folder: _row(folder, status="owned"),
    "bytes for text": lambda folder: _row(folder, error=b"\xff\xfe"),
    "a view without end": _script(f"DROP TABLE runs; CREATE VIEW runs AS {ENDLESS};"),
    "a trigger": _script("CREATE TRIGGER t AFTER INSERT ON runs BEGIN UPDATE runs SET status = 'done'; END;"),
    "no table": _script("DROP TABLE runs;"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep of two runs beside its plan."""
    place = tmp_path_factory.mktemp("hostile")
    assert run(["sweep", str(write_plan(place)), "--out", str(place / "out"), "--workers", "0"]) == 0
    return place


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy" / "out"


@pytest.mark.parametrize("name", INDEXES)
def test_a_hostile_index_is_one_line_and_made_again(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    INDEXES[name](folder)
    capsys.readouterr()
    for command in (["status"], ["table"], ["table", "--out", str(folder.parent / "t.csv")]):
        assert run(["sweep", command[0], str(folder), *command[1:]]) == 2
        assert "isthmus sweep reindex" in line_of(capsys.readouterr().err)
    if name not in {"a trigger", "no table"}:
        assert run(["sweep", "reindex", str(folder)]) == 0
    assert run(["sweep", str(folder.parent / "plan.toml"), "--out", str(folder), "--workers", "0"]) == 0
    assert "2 found, 0 failed. done" in capsys.readouterr().out
    assert run(["sweep", "status", str(folder)]) == 0


def test_what_a_folder_says_does_not_reach_the_terminal_as_a_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _row(folder, status="failed", error="x\n\x1b]0;owned\x07", id="b" * 20, settings='{"task": {"name": "\\u001b[2J"}}')
    for command in ("status", "table"):
        assert run(["sweep", command, str(folder)]) == 0
        assert "\x1b" not in capsys.readouterr().out


def test_a_second_driver_is_told_who_the_first_one_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "import sys; from pathlib import Path; from isthmus.sweeps.folder import SweepFolder\n"
        "with SweepFolder(Path(sys.argv[1])).locked(): print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT,
        text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        capsys.readouterr()
        for _ in range(2):  # asking does not make the owner's words vanish
            assert run(["sweep", str(folder.parent / "plan.toml"), "--out", str(folder), "--workers", "0"]) == 2
            line = line_of(capsys.readouterr().err)
            assert re.search(rf"another process works here \(pid {other.pid} on \S+, since \d{{4}}-", line)
        assert run(["sweep", "status", str(folder)]) == 0
        assert "a sweep is at work" in capsys.readouterr().out
        other.kill()
    assert not SweepFolder(folder).is_driven()
    with SweepFolder(folder).locked():
        assert SweepFolder(folder).is_driven()


def test_memory_that_is_not_there_is_said_by_name() -> None:
    with pytest.raises(PlanError, match=r"^plan, run 1 \(seed=0\): "):
        checked_runs(Plan({**TASK, "num_samples": 10**14}, NETWORK, TRAINING, grid={"seed": [0]}))
