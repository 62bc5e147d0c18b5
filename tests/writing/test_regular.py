"""What isthmus wrote is opened only where a regular file lies: by every reader, as this test reads them."""

import ast
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from isthmus.figures.gallery import VERDICTS, preset_of
from isthmus.writing.checksums import check_archive, check_tensors
from isthmus.writing.regular import NotAFile, contents, regular

SRC = Path(__file__).parents[2] / "src" / "isthmus"
READERS = {"read_bytes", "read_text", "load_file", "safe_open"}
# calls that read a file whose path they were given without a look at what lies there, and who has looked
DOOR = "is called by `tasks.door.through_door`, or after `checked_file`"
OWN = "reads what the system or this package provides"
LOOKED = {
    "tasks/array_files.py": DOOR,
    "tasks/arrays.py": "reads a file that numpy has open",
    "tasks/door.py": DOOR,
    "tasks/images.py": DOOR,
    "tasks/large_tables.py": DOOR,
    "tasks/matrices.py": DOOR,
    "tasks/picture_files.py": DOOR,
    "tasks/spreadsheets.py": DOOR,
    "tasks/text_lines.py": DOOR,
    "tasks/text_tables.py": "opens lines, in which `text_lines` looks",
    "tasks/memory.py": OWN,
    "discovery/evidence/probability.py": OWN,
    "discovery/files/hdf5_tables.py": OWN,
    "discovery/files/module_description.py": "after `check_tensors`",
    "discovery/files/networks.py": "after `check_tensors`",
    "discovery/files/state_dicts.py": "after `check_tensors`",
    "discovery/groups/unit_files.py": DOOR,
    "figures/provenance.py": OWN,
    "recheck.py": "looks itself, for it imports nothing of ours",
    "reports/page.py": "an example",
    "sweeps/folder.py": "looks itself",
    "training/sharded/process_group.py": OWN,
    "training/steps/products.py": OWN,
    "writing/atomic.py": "reads what it has just written, and the system",
    "writing/regular.py": "the door",
}


def readings(source: str) -> Iterator[int]:
    """Lines of calls that open a file to read it, unless its path has just been through the door."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "open" and isinstance(node.func, ast.Attribute):
            modes = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            reads = ast.unparse(node.func.value) != "os" and not any("w" in str(mode) for mode in modes)
            path: ast.expr = node.func.value
        else:
            reads = name in READERS
            path = node.func.value if isinstance(node.func, ast.Attribute) else next(iter(node.args), node.func)
        if reads and not (isinstance(path, ast.Call) and ast.unparse(path.func) == "regular"):
            yield node.lineno


def test_every_file_is_opened_behind_the_door() -> None:
    found = {path.relative_to(SRC).as_posix(): list(readings(path.read_text())) for path in SRC.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines and path not in LOOKED} == {}


def test_the_law_sees_an_opening() -> None:
    for line in ('path.open("rb")', "path.read_bytes()", "load_file(path)", "(a / b).open()", "p.read_text()"):
        assert list(readings(line)) == [1], line
    for line in ('regular(path).open("rb")', "load_file(regular(path))", 'path.open("wb")', "contents(path)"):
        assert list(readings(line)) == [], line


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "endless"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    path, words = tmp_path / "p", {"pipe": "is a pipe", "socket": "is a socket"}.get(kind, "is a device")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as place:
            place.bind(str(path))
    else:
        path.symlink_to("/dev/zero" if kind == "endless" else "/dev/null")
    for read in (regular, contents, check_archive, check_tensors):
        with pytest.raises(NotAFile, match=words):
            read(path)
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    assert contents(tmp_path / "link") == b"x"
    with pytest.raises(IsADirectoryError):
        contents(tmp_path)


def test_a_pipe_where_a_page_keeps_its_verdicts_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / VERDICTS)
    assert preset_of(tmp_path) is None
