"""Tests have the names that they had: no clock, no address and no order of a set decides what they are called."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def collected(seed: str) -> list[str]:
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=ROOT, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": seed},
    ).stdout  # fmt: skip
    return told.splitlines()[:-1]  # the last one says how long it took


@pytest.mark.slow
def test_two_processes_collect_the_same_tests() -> None:
    first, second = collected("1"), collected("2")
    assert len(first) > 5000
    assert [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]] == []
