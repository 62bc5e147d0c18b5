"""What a discovery loads before its answer: nothing that takes long and is not needed, in a process of its own."""

import subprocess
import sys

import pytest

HEAVY = (
    "sympy",
    "networkx",
    "sklearn",
    "matplotlib",
    "matplotlib.pyplot",
    "scipy.stats",
    "scipy.optimize",
    "scipy.integrate",
    "torch._dynamo",
)
IMPORTED = "import isthmus"
SEARCHED = """
import isthmus
from isthmus.tasks import teacher
task = teacher(1, d_in=3, d_out=2, num_samples=60)
limits = isthmus.Limits(evaluations=20)
isthmus.discover(task.x, task.y, ridge=1e-2, starts=1, limits=limits, workers=1, effort="quick")
"""
COMMAND = "import isthmus.cli.discover_run"
NEEDED = ("torch", "numpy", "pandas", "xarray", "scipy")


PLOTS = "import isthmus.plots"
OTHERS = "import scipy.optimize, matplotlib.pyplot"


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """What a process has loaded after each of these programs in turn: to start one for each would take seconds more."""
    programs = (IMPORTED, SEARCHED, COMMAND, PLOTS, OTHERS)
    shown = f"print(*(name for name in {(*HEAVY, *NEEDED)} if name in sys.modules))"
    told = "\n".join(["import sys", *(f"{program}\n{shown}" for program in programs)])
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return dict(zip(programs, map(set[str], map(str.split, done.stdout.split("\n"))), strict=False))


def test_the_package_alone_loads_nothing_heavy(loaded: dict[str, set[str]]) -> None:
    assert loaded[IMPORTED] == set()


def test_a_search_and_its_command_load_nothing_that_only_others_need(loaded: dict[str, set[str]]) -> None:
    assert loaded[SEARCHED] & set(HEAVY) == loaded[COMMAND] & set(HEAVY) == set()


def test_pyplot_is_never_imported(loaded: dict[str, set[str]]) -> None:
    assert "matplotlib" in loaded[PLOTS]
    assert "matplotlib.pyplot" not in loaded[PLOTS]


def test_what_is_loaded_is_seen(loaded: dict[str, set[str]]) -> None:
    assert loaded[SEARCHED] == set(NEEDED)
    assert {"scipy.optimize", "matplotlib.pyplot"} < loaded[OTHERS]
