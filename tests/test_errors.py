"""Warnings point at the line of whoever called the library."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "isthmus"
# in a process of its own: while tests run, checkers of types stand between a function and its caller
CALLS = """
import sys, warnings
from pathlib import Path
import numpy as np
import discoveries
from isthmus import tasks

Path("a.csv").write_text("a;b\\n" + "".join(f"{i},5;{i * i}\\n" for i in range(30)))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    tasks.read_table("a.csv", target=["b"])
    discoveries.discovery().transform(discoveries.inputs()[..., None])
print([(warning.category.__name__, warning.filename) for warning in said])
"""


@pytest.mark.slow
def test_a_warning_points_at_the_line_that_called(tmp_path: Path) -> None:
    paths = f"import sys; sys.path[:0] = {[str(SRC.parent), str(Path(__file__).parent)]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", paths + CALLS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ast.literal_eval(done.stdout) == [("DataWarning", "<string>")] * 2, done.stderr


def test_no_level_is_written_down() -> None:
    """It is wrong as soon as a function calls another one."""
    written = [
        f"{path.relative_to(SRC)}:{call.lineno}"
        for path in sorted(SRC.rglob("*.py"))
        if "warnings.warn" in path.read_text()  # the others need no reading
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "warnings.warn"
        if [ast.unparse(word.value) for word in call.keywords if word.arg == "stacklevel"] != ["outside()"]
    ]
    assert written == []
