import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isthmus.writing.atomic import atomic_folder, atomic_path, remove_leftovers, write_bytes, write_text

SRC = Path(__file__).parents[2] / "src"


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_written_file_is_whole_and_alone(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "grüße\n")
    write_bytes(tmp_path / "b", b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == "grüße\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["a.txt", "b"]


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old and longer")
    write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"


def interrupted_write(path: Path, error: BaseException) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("error", [ValueError("stop"), KeyboardInterrupt("stop")])
def test_an_error_or_interrupt_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(type(error), match="stop"):
        interrupted_write(tmp_path / "a.txt", error)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_the_temporary_file_lies_in_the_same_folder_with_the_same_suffix(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "curves.nc") as temporary:
        temporary.write_text("x")
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".nc"
        assert names(tmp_path) == [temporary.name]


def test_a_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        write_text(tmp_path / "missing" / "a.txt", "x")


def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "x")
    (tmp_path / "plain.txt").write_text("x")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


KILLED = """
import sys, itertools
sys.path.insert(0, {src!r})
from isthmus.writing.atomic import write_text
for turn in itertools.count():
    write_text({path!r}, chr(97 + turn % 26) * 300_000)
"""


def test_readers_and_a_kill_find_whole_files_only(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    writer = subprocess.Popen([sys.executable, "-c", KILLED.format(src=str(SRC), path=str(path))])
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    texts = [path.read_text() for _ in range(100)]
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait(timeout=60)
    for text in [*texts, path.read_text()]:
        assert len(text) == 300_000
        assert set(text) == {text[0]}


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "x")
    (tmp_path / ".hidden").write_text("mine")
    (tmp_path / ".a.0123456789ab.isthmus-tmp.txt").write_text("half")
    assert remove_leftovers(tmp_path) == 1
    assert names(tmp_path) == [".hidden", "a.txt"]


def interrupted_folder(path: Path) -> None:
    with atomic_folder(path) as temporary:
        (temporary / "a.txt").write_text("half")
        raise KeyboardInterrupt("stop")


def test_a_folder_is_whole_or_absent(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt, match="stop"):
        interrupted_folder(tmp_path / "run")
    assert names(tmp_path) == []
    with atomic_folder(tmp_path / "run") as temporary:
        (temporary / "a.txt").write_text("first")
        assert names(tmp_path) == [temporary.name]
    assert names(tmp_path) == ["run"]


def test_of_two_folders_the_first_stays(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with atomic_folder(tmp_path / "run") as temporary:
            (temporary / "a.txt").write_text(text)
    assert (tmp_path / "run" / "a.txt").read_text() == "first"
    assert names(tmp_path) == ["run"]


def test_leftover_folders_are_removed_too(tmp_path: Path) -> None:
    (tmp_path / ".run.0123456789ab.isthmus-tmp").mkdir()
    (tmp_path / ".run.0123456789ab.isthmus-tmp" / "a.txt").write_text("half")
    (tmp_path / "run").mkdir()
    assert remove_leftovers(tmp_path) == 1
    assert names(tmp_path) == ["run"]
