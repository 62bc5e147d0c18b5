"""The README's Python example runs and says what its comments say; its files exist."""

import re
from pathlib import Path

import pytest

from shape_checks import own_shape_checks

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_runs_and_says_what_it_claims(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 1
    scope: dict[str, object] = {}
    with own_shape_checks():
        exec(compile(blocks[0], "README.md", "exec"), scope)
    assert capsys.readouterr().out.startswith("2 CONFIDENT\n")
    assert getattr(scope["coordinates"], "shape", None) == (300, 2)
    assert getattr(scope["predictions"], "shape", None) == (300, 6)


def test_every_file_that_it_names_is_there() -> None:
    named = re.findall(r"\]\((docs/[^)]+)\)|`((?:docs|benchmarks)/[\w./]+\.(?:md|py))`", README)
    paths = [a or b for a, b in named]
    assert len(paths) >= 5
    assert [p for p in paths if not (ROOT / p).exists()] == []


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z_]{4,}$", README, re.MULTILINE)
