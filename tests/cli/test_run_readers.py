"""Every command that reads a run says in one line what is no file of it, and waits for no pipe and no device."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import discoveries
import isthmus
from command_lines import line_of, write_table
from isthmus.cli.main import run
from isthmus.discovery.files.storage import INTERPRETATION, write_beside

COMMANDS = ("apply", "interpret", "compare", "verify")
FILES = ("result.json", "weights.safetensors", "scree.nc", INTERPRETATION)
READS_TABLES = {"scree.nc": {"apply", "interpret", "compare"}, INTERPRETATION: {"interpret"}}


def linked_out(path: Path) -> None:
    elsewhere = path.parent.with_name("elsewhere")
    elsewhere.write_bytes(path.read_bytes())
    put(path, lambda: path.symlink_to(elsewhere))


def put(path: Path, make: Callable[[], object]) -> None:
    path.unlink()
    make()


NO_FILES: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: put(path, lambda: os.mkfifo(path)),
    "an endless device": lambda path: put(path, lambda: path.symlink_to("/dev/zero")),
    "a link out": linked_out,
    "a folder": lambda path: put(path, path.mkdir),
    "JSON without end": lambda path: put(path, lambda: path.write_text("[" * 200_000)),
}


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", FILES)
def test_every_reader_refuses_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, what: str
) -> None:
    found, folder = discoveries.discovery(), tmp_path / "run"
    for place in (folder, tmp_path / "sound"):
        found.save(place)
        write_beside(place, INTERPRETATION, isthmus.interpret(found, discoveries.inputs()))
    data = str(write_table(tmp_path / "rows.csv", list(discoveries.INPUTS), discoveries.inputs()))
    NO_FILES[what](folder / name)
    further = {"apply": [data], "compare": [str(tmp_path / "sound")]}
    for command in COMMANDS:
        if command in READS_TABLES.get(name, COMMANDS):
            assert run([command, str(folder), *further.get(command, [])]) == 2, command
            assert "bug" not in line_of(capsys.readouterr().err)
