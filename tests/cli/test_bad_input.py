"""Every kind of bad input, one row each: a refusal (one line, exit code 2, nothing written) or the right answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import isthmus
from command_lines import line_of, write_table
from isthmus import tasks
from isthmus.cli.main import run

pytestmark = pytest.mark.usefixtures("blank_pictures")
NAMES = ["a", "b", "c", "d", "e", "y"]
TARGET = ["--target", "y"]


def rows(count: int = 80) -> np.ndarray:
    """Five inputs and a target that needs one combination of them."""
    x = np.random.default_rng(0).normal(size=(count, 5))
    return np.hstack([x, np.maximum(x @ [[1.0], [-2.0], [0.5], [0.0], [1.0]], -1)]).round(4)


def csv(change: Callable[[np.ndarray], np.ndarray] = lambda r: r, count: int = 80) -> Callable[[Path], Path]:
    return lambda folder: write_table(folder / "data.csv", NAMES, change(rows(count)))


def text(content: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "data.csv").write_text(content)
        return folder / "data.csv"

    return make


def with_cell(value: str, row: int = 7, column: int = 2) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = write_table(folder / "data.csv", NAMES, rows())
        lines = path.read_text().split("\n")
        cells = lines[row].split(",")
        cells[column] = value
        lines[row] = ",".join(cells)
        path.write_text("\n".join(lines))
        return path

    return make


def with_names(folder: Path) -> Path:
    """A column of text with another value in each row."""
    path = csv()(folder)
    head, *lines = path.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    rest = (",".join([*c[:2], f"S{i}", *c[3:]]) for i, c in enumerate(cells))
    path.write_text("\n".join([head, *rest]) + "\n")
    return path


def npy(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        np.save(folder / "data.npy", change(rows()[:, :2] @ np.random.default_rng(1).normal(size=(2, 7))))
        return folder / "data.npy"

    return make


def npz(arrays: dict[str, np.ndarray]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        np.savez(folder / "data.npz", allow_pickle=False, **arrays)
        return folder / "data.npz"

    return make


def column(values: object, number: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(table: np.ndarray) -> np.ndarray:
        table[:, number] = values
        return table

    return change


@dataclass(frozen=True)
class Case:
    """A file with options, and either words of the refusal or the rank that is the right answer."""

    name: str
    make: Callable[[Path], Path]
    options: list[str] = field(default_factory=lambda: list(TARGET))
    refusal: tuple[str, ...] = ()
    rank: int | None = None
    said: str = ""


REFUSED = [
    Case("empty file", text(""), refusal=("data.csv", "empty")),
    Case("header only", text("a,b,y\n"), refusal=("data.csv",)),
    Case("missing column", csv(), ["--target", "yy"], refusal=("yy", "'y'")),
    Case("text in a number column", with_cell("high"), refusal=("'c'", "row", "high")),
    Case("text that names the rows", with_names, refusal=("'c'", "80 different values", "--leave-out NAME")),
    Case("NaN", with_cell("nan"), refusal=("'c'", "row")),
    Case("missing value", with_cell(""), refusal=("'c'", "row")),
    Case("infinity", with_cell("inf"), refusal=("'c'", "row", "infinity")),
    Case("huge value", with_cell("1e300"), refusal=("'c'", "row", "1e+300")),
    Case("fewer than 20 rows", csv(count=19), refusal=("19 rows", "20")),
    Case("duplicate rows only", csv(lambda r: np.repeat(r[:1], 80, axis=0)), refusal=("identical",)),
    Case("x and y of different length", npz({"x": rows()[:, :5], "y": rows(70)[:, 5]}), [], refusal=("80", "70")),
    Case("npz without x", npz({"z": rows()}), [], refusal=("x", "z")),
    Case("complex numbers", npy(lambda x: x.astype(complex)), ["--autoencode"], refusal=("complex",)),
    Case("pickled objects", npy(lambda x: x.astype(object)), ["--autoencode"], refusal=("data.npy",)),
    Case("no such file", lambda folder: folder / "gone.csv", refusal=("gone.csv",)),
    Case("a folder", lambda folder: folder, refusal=("is a directory", "no pictures")),
    Case("unknown extension", lambda folder: _written(folder / "data.xls"), refusal=(".xls", ".csv")),
    Case("unknown builtin", lambda _: Path("builtin:digit"), [], refusal=("digit", "digits")),
    Case("two ways at once", csv(), [*TARGET, "--autoencode"], refusal=("--autoencode",)),
]
ANSWERED = [
    Case("a plain table", csv(), rank=1),
    # one that takes no part: without "b" most of the target is noise, of which 80 rows say little
    Case("constant columns", csv(column(3.0, 3)), rank=1, said="constant"),
    Case("constant target", csv(column(3.0, 5)), rank=0, said="needs 0 dimensions"),
    Case("integers", npy(lambda x: (100 * x).astype(np.int32)), ["--autoencode"], rank=2),
    Case("float16", npy(lambda x: x.astype(np.float16)), ["--autoencode"], rank=2),
    Case("Fortran order", npy(lambda x: np.asfortranarray(x)), ["--autoencode"], rank=2),
    Case("large values", npy(lambda x: 1e120 * x), ["--autoencode"], rank=2),
    Case("tiny values", npy(lambda x: 1e-120 * x), ["--autoencode"], rank=2),
    Case("no choice of target", npy(lambda x: x), [], rank=2, said="autoencod"),
]


def _written(path: Path) -> Path:
    path.write_text("a,b\n1,2\n")
    return path


def run_case(case: Case, folder: Path) -> tuple[int, Path]:
    out = folder / "run"
    data = case.make(folder)
    quick = ["--ridge", "3e-3", "--starts", "1", "--evaluations", "80", "--effort", "quick"]
    return run(["discover", str(data), *case.options, *quick, "--out", str(out)]), out


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c.name)
def test_refused_in_one_line_with_nothing_written(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run_case(case, tmp_path)
    line = line_of(capsys.readouterr().err)
    assert code == 2
    assert [word for word in case.refusal if word not in line] == [], line
    assert not out.exists()


QUICKLY = {"a plain table", "constant target"}
ROWS = [pytest.param(c, id=c.name, marks=[] if c.name in QUICKLY else pytest.mark.slow) for c in ANSWERED]


@pytest.mark.slow
@pytest.mark.parametrize("case", ROWS)
def test_answered_rightly(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run_case(case, tmp_path)
    captured = capsys.readouterr()
    assert code in {0, 3}, captured.err
    assert isthmus.load(out).rank == case.rank
    assert (out / "report.html").exists()
    assert case.said in captured.out + captured.err
    named = [line for line in captured.err.splitlines() if "'d'" in line]
    assert len(named) == (case.name == "constant columns"), "what stands out is said once"


def test_an_unwritable_folder_is_refused_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    code = run(["discover", str(csv()(tmp_path)), *TARGET, "--out", str(tmp_path / "file" / "run")])
    assert code == 2
    assert "--out" in line_of(capsys.readouterr().err)


def test_an_existing_run_is_refused_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(c for c in ANSWERED if c.name == "constant target")
    assert run_case(case, tmp_path)[0] == 0
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*")}
    capsys.readouterr()
    code, _ = run_case(case, tmp_path)
    assert code == 2
    assert "--resume" in line_of(capsys.readouterr().err)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*")} == before


def test_builtins_of_every_kind_can_be_named() -> None:
    assert tasks.builtin("digits").x.shape == (1797, 64)
