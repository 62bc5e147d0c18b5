"""Nothing that lies in the folder where a command runs is read unasked: not as a module, not as settings.

Each payload leaves a mark, and each test shows first that it would.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

import isthmus

SRC = Path(isthmus.__file__).parents[1]
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"} | {
    "PYTHONPATH": str(SRC),
    "OMP_NUM_THREADS": "1",
}
PAYLOAD = "open('RAN-' + __name__, 'w').close()\nraise SystemExit(7)\n"
# what a worker imports before it hears what its path is, and what it imports after
WORKER_MODULES = ("signal", "socket", "struct", "pickle", "runpy", "torch", "numpy", "distributed")


def hostile(folder: Path, names: Iterable[str]) -> Path:
    """A folder with a module of each name, which leaves RAN-<name> and ends the process."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(PAYLOAD)
    return folder


def marks(folder: Path) -> list[str]:
    """Which payloads ran; takes their marks away."""
    found = sorted(folder.glob("RAN-*"))
    for mark in found:
        mark.unlink()
    return [mark.name.removeprefix("RAN-") for mark in found]


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def script(folder: Path, text: str) -> str:
    """A program in a folder of its own, as a console script is."""
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(text)
    return str(folder / "program.py")


SWEEP = """
import os
from isthmus.sweeps.schedulers import local_cluster
if __name__ == "__main__":
    before = dict(os.environ)
    cluster = local_cluster(1)
    cluster.close()
    assert os.environ.get("PYTHONSAFEPATH") == before.get("PYTHONSAFEPATH")
    print("made")
"""
FIGURE = """
import os
from pathlib import Path
from isthmus.figures.processes import _Worker
if __name__ == "__main__":
    before = dict(os.environ)
    worker = _Worker(Path(), None)
    worker.pipe.close()
    worker.process.join()
    assert worker.process.exitcode == 0
    assert dict(os.environ) == before
    print("made")
"""


BARE = """
import contextlib, multiprocessing, sys
from isthmus.processes.children import safe_path
if __name__ == "__main__":
    with safe_path() if sys.argv[1] == "safe" else contextlib.nullcontext():
        process = multiprocessing.get_context("spawn").Process(target=print)
        process.start()
    process.join()
    print("made", process.exitcode)
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [SWEEP, FIGURE], ids=["sweep", "figure"])
def test_workers_take_no_module_from_the_working_folder(tmp_path: Path, program: str) -> None:
    folder = hostile(tmp_path / "data", WORKER_MODULES)
    assert python(folder, "-c", "import socket").returncode == 7
    assert marks(folder) == ["socket"], "the payload is dead"
    done = python(folder, script(tmp_path / "bin", program))
    assert marks(folder) == []
    assert done.stdout == "made\n", done.stderr


def test_a_started_python_takes_no_module_from_the_working_folder(tmp_path: Path) -> None:
    folder = hostile(tmp_path / "data", WORKER_MODULES)
    program = script(tmp_path / "bin", BARE)
    assert "made 0" not in python(folder, program, "bare").stdout
    assert marks(folder) != [], "the payload is dead"
    assert "made 0" in python(folder, program, "safe").stdout
    assert marks(folder) == []


def test_every_place_that_starts_python_leaves_the_working_folder_out() -> None:
    starting = {"multiprocessing", "LocalCluster", "SLURMCluster", "ProcessPoolExecutor", "executable", "joblib"}
    found: dict[str, set[str]] = {}
    for path in sorted((SRC / "isthmus").rglob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {str(node.module).partition(".")[0], *(alias.name for alias in node.names)}
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.Name) and node.id == "safe_path":
                names.add(node.id)
        if names & starting and not names & {"safe_path", "SAFE_LINE"}:
            found[path.relative_to(SRC).as_posix()] = names & starting
    # joblib counts threads, and multiprocessing says whether there is a parent: they start nothing
    assert found == {
        "isthmus/estimators/shell.py": {"joblib"},
        "isthmus/discovery/work/search_memory.py": {"multiprocessing"},
    }


@pytest.mark.slow
def test_python_m_takes_no_more_modules_from_the_working_folder_than_python_does(tmp_path: Path) -> None:
    """Python itself imports some of its own library before any package is asked, and searches that folder first."""
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "__init__.py").touch()
    (empty / "__main__.py").write_text("import sys\nprint(*sys.modules)")
    loaded = set(python(tmp_path, "-m", "empty").stdout.split())
    names = {*sys.stdlib_module_names, "torch", "numpy", "typer", "click", "rich", "h5py", "pandas", "scipy", "xarray"}
    folder = hostile(tmp_path / "data", names - loaded - set(sys.builtin_module_names) - {"antigravity", "this"})
    assert python(folder, "-c", "import torch").returncode == 7
    assert marks(folder) in (["torch"], ["linecache"]), "the payload is dead"  # the latter from Python 3.13 on
    done = python(folder, "-m", "isthmus", "cost", "nowhere.npy", "--kind", "connected", "--depth", "2")
    assert marks(folder) == []
    assert done.returncode == 2, done.stderr
    assert "nowhere.npy" in done.stderr


@pytest.mark.slow
def test_a_factory_is_still_looked_for_in_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "my_models.py").write_text("import torch\ndef make():\n    return torch.nn.Linear(2, 1)\n")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,5\n4,4\n")
    torch.save(torch.nn.Linear(2, 1).state_dict(), tmp_path / "w.pt")
    done = python(tmp_path, "-m", "isthmus", "diagnose", "w.pt", "--factory", "my_models:make", "--data", "x.csv")
    assert "ran your code" in done.stdout + done.stderr, done.stderr


# a line that is refused is told on stderr by whoever reads it; LaTeX would be started where a picture is drawn
SETTINGS = "text.usetex: True\nlines.linewidth: 9\naxes.prop_cycle: cycler('color', [1])\n"


def with_settings(folder: Path) -> dict[str, str]:
    """A matplotlibrc in the folder, and an environment where `latex` leaves a mark."""
    (folder / "matplotlibrc").write_text(SETTINGS)
    programs = folder / "programs"
    programs.mkdir()
    for name in ("latex", "dvipng", "kpsewhich"):
        (programs / name).write_text(f"#!/bin/sh\ntouch '{folder}/RAN-latex'\nexit 1\n")
        (programs / name).chmod(0o755)
    return ENVIRONMENT | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


READS = "import matplotlib"
DRAWS = "from matplotlib.figure import Figure; f = Figure(); f.text(.5, .5, 'a'); f.savefig('f.svg')"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the payload is a script of the shell")
def test_settings_of_the_working_folder_are_not_read_by_commands(tmp_path: Path) -> None:
    environment = with_settings(tmp_path)
    for program, prelude, read in (
        (DRAWS, "", True),
        (READS, "import isthmus.cli.main; ", False),
        (READS, "import isthmus; ", True),  # as a library the folder is the user's affair
    ):
        done = subprocess.run(
            [sys.executable, "-c", prelude + program], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert ("Bad value" in done.stderr) == read, done.stderr
        assert marks(tmp_path) == (["latex"] if program == DRAWS else []), "the payload is dead"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the payload is a script of the shell")
@pytest.mark.parametrize("command", [["figure", "1", "--preset", "tiny", "--workers", "2", "--out", "out"]])
def test_commands_that_draw_start_no_latex(tmp_path: Path, command: list[str]) -> None:
    environment = with_settings(tmp_path)
    text = "from isthmus.cli.main import main\nif __name__ == '__main__':\n    main()\n"
    program = script(tmp_path / "bin", text)
    done = subprocess.run(
        [sys.executable, program, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert "Bad value" not in done.stderr
    assert marks(tmp_path) == []
    assert done.returncode == 0, done.stderr


def test_a_folder_that_was_removed_is_told_in_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"import os, sys; os.rmdir({str(gone)!r}); from isthmus.cli.main import run; sys.exit(run(['doctor']))"
    done = python(gone, "-P", "-c", program)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "the working directory was removed. Change into one that is there." in done.stderr
