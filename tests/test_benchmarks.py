"""Every benchmark runs with --quick, exits without an error and states an answer in its header."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: p.stem)
def test_it_runs_quickly(path: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(path), "--quick"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 2


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: p.stem)
def test_its_header_asks_one_question_and_answers_it(path: Path) -> None:
    header = path.read_text().split('"""')[1]
    assert header.startswith("Question: ")
    assert header.count("?") >= 1
    assert "Answer" in header
    assert "ANSWER" not in header
