"""The README's commands and its Python example run as they stand and say what the comments say; its files exist."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
import torch

import isthmus
import readme_files
from isthmus.cli.commands import commands as known_commands
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


def test_the_lines_about_a_training_loop_run_in_one() -> None:
    lines = re.findall(r"^(monitor\b.*)$", README, re.MULTILINE)
    assert len(lines) == 3
    module, x = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)), torch.randn(20, 4)
    scope: dict[str, object] = {"isthmus": isthmus, "module": module, "x": x}
    exec("\n".join((lines[0], *[lines[1]] * 50, f"found = {lines[2]}")), scope)
    assert getattr(scope["found"], "shape", None) == (2, 2)


def test_every_file_that_it_names_is_there() -> None:
    named = re.findall(r"\]\((docs/[^)]+)\)|`((?:docs|benchmarks)/[\w./]+\.(?:md|py))`", README)
    paths = [a or b for a, b in named]
    assert len(paths) >= 5
    assert [p for p in paths if not (ROOT / p).exists()] == []


def test_it_counts_the_claims_of_figures_as_their_page_does() -> None:
    count = r"(\d+) claims.*?(\d+) hold, (\d+) do not hold, (\d+) are inconclusive"
    told, measured = (re.findall(count, text) for text in (README, (ROOT / "docs" / "figures.md").read_text()))
    assert len(told) == 1
    assert told[0] in measured


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z_]{4,}$", README, re.MULTILINE)


def commands() -> list[str]:
    """Every command line of the README, in order, without its comment."""
    found = re.findall(r"^    ((?:make|\.venv/bin/)[^\n#]*?)\s*(?:#.*)?$", README, re.MULTILINE)
    assert len(found) >= 18
    return found


def arguments_of(command: str) -> list[str]:
    """What `isthmus` is given by a command, also behind torchrun; nothing where it is another program."""
    words = shlex.split(command)
    if words[0] == ".venv/bin/isthmus":
        return words[1:]
    return words[words.index("isthmus") + 1 :] if "isthmus" in words else []


def test_every_indented_line_is_a_command_that_is_run() -> None:
    """A line that the pattern misses would be run by nobody."""
    text = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    lines = re.findall(r"^    (?!-)(\S[^\n#]*?)\s*(?:#.*)?$", text, re.MULTILINE)
    assert lines == commands()


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one_that_there_is(command: str) -> None:
    """Names, options and the kinds of their values; nothing is run."""
    if command.startswith("make "):
        assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    words = arguments_of(command)
    assert words
    group: Any = known_commands
    chosen = group.commands[words[0]]
    if hasattr(chosen, "commands"):  # sweep PLAN is sweep run PLAN
        chosen = chosen.commands["run"]
    # a command keeps the help option of the first context that it is in: without a parent -h is none, for good
    parent = group.context_class(group, **group.context_settings)
    context = chosen.make_context(words[0], words[1:], parent=parent)
    options = {parameter.name for parameter in chosen.params}
    assert set(context.params) <= options


def test_no_run_writes_over_that_of_a_command_before_it() -> None:
    """Two commands with one folder: the second would be refused."""
    folders = [Path(words[words.index("--out") + 1]) for c in commands() if "--out" in (words := arguments_of(c))]
    assert len(folders) == len(set(folders))
    openers = {"apply", "interpret", "region", "verify"}
    used = [words[1] for c in commands() if (words := arguments_of(c)) and words[0] in openers]
    assert {Path(name) for name in used} <= set(folders), "what is opened was written by a command of the README"


def test_every_file_of_a_command_is_made_for_the_test_or_comes_along(tmp_path: Path) -> None:
    readme_files.write_all(tmp_path)
    named = {
        word for command in commands() for word in arguments_of(command) if re.search(r"\.(csv|npy|pt2|toml)$", word)
    }
    assert len(named) >= 7
    assert [name for name in named if not (tmp_path / name).exists() and not (ROOT / name).exists()] == []


@pytest.mark.slow
def test_every_command_runs_in_order_in_one_folder(tmp_path: Path) -> None:
    """As typed, but for where programs lie; the two that set up a machine and test it are left to those who do."""
    readme_files.write_all(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for command in commands():
        if command.startswith("make "):
            continue
        done = subprocess.run(
            shlex.split(command), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in {0, 3}, f"{command}\n{done.stderr}"  # 3: the answer is doubtful, which it may be
        assert "Traceback" not in done.stderr, f"{command}\n{done.stderr}"
        if "builtin:digits" in command:  # as the README says beside it
            assert done.stdout.strip().startswith("No sharp rank"), done.stdout
    pages = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("runs/**/*.html")}
    assert {"runs/measurements/report.html", "runs/yield/report.html", "runs/figures/gallery.html"} <= pages
    assert matplotlib.image.imread(tmp_path / "slice.png").std() > 0.05
