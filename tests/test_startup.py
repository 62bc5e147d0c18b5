"""What a discovery loads before its answer: nothing that takes long and is not needed, in a process of its own."""

import subprocess
import sys

HEAVY = (
    "sympy",
    "networkx",
    "sklearn",
    "matplotlib",
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
isthmus.discover(task.x, task.y, ridge=1e-2, starts=1, limits=limits, workers=1)
"""
COMMAND = "import isthmus.cli.discover_run"
NEEDED = ("torch", "numpy", "pandas", "xarray", "scipy")


def loaded(program: str, names: tuple[str, ...]) -> list[str]:
    """Which of the modules a process has loaded after a program."""
    asked = f"{program}\nimport sys\nprint(*(name for name in {names} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_package_alone_loads_nothing_heavy() -> None:
    assert loaded(IMPORTED, (*HEAVY, *NEEDED)) == []


def test_a_search_and_its_command_load_nothing_that_only_others_need() -> None:
    assert loaded(SEARCHED + COMMAND, HEAVY) == []


def test_what_is_loaded_is_seen() -> None:
    assert set(loaded(SEARCHED, NEEDED)) == set(NEEDED)
    assert loaded("import scipy.optimize", HEAVY) == ["scipy.optimize"]
