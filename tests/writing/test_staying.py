"""Folders that are moved, removed or replaced while somebody writes in them."""

import ast
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import isthmus
from isthmus.writing.atomic import atomic_folder, write_bytes
from isthmus.writing.folder_lock import only_writer
from isthmus.writing.staying import FolderMoved, check_stays, made_folder, staying

SRC = Path(isthmus.__file__).parent


def _moved(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def _replaced(folder: Path) -> None:
    _moved(folder)
    folder.mkdir()


def _removed_and_made_again(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def _parent_moved(folder: Path) -> None:
    folder.parent.rename(folder.parent.with_name("elsewhere"))


def _folder_in(folder: Path) -> None:
    with atomic_folder(folder / "part"):
        pass


CHANGES = (_moved, shutil.rmtree, _replaced, _removed_and_made_again, _parent_moved)
WRITES = (
    lambda folder: write_bytes(folder / "file", b""),
    _folder_in,
    lambda folder: made_folder(folder / "deep" / "folder"),
)


def _written_in_a_changed_folder(folder: Path, change: Callable[[Path], None], write: Callable[[Path], object]) -> None:
    with staying(folder):
        write(folder)
        change(folder)
        write(folder)


@pytest.mark.parametrize("write", WRITES, ids=("file", "folder", "deep"))
@pytest.mark.parametrize("change", CHANGES, ids=("moved", "removed", "replaced", "made_again", "parent"))
def test_nothing_is_written_in_the_place_of_a_folder_that_is_gone(
    change: Callable[[Path], None], write: Callable[[Path], object], tmp_path: Path
) -> None:
    folder = made_folder(tmp_path / "above" / "run")
    with pytest.raises(FolderMoved, match=f"{re.escape(str(folder))}: was moved, removed or replaced"):
        _written_in_a_changed_folder(folder, change, write)
    assert not folder.exists() or list(folder.iterdir()) == []
    write(made_folder(folder))  # the block is over: it is a folder like any other


def test_a_folder_that_stays_or_comes_back_is_written(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "run")
    with staying(folder), staying(folder):
        _moved(folder)
        folder.with_name("elsewhere").rename(folder)
        write_bytes(folder / "file", b"")
        shutil.rmtree(made_folder(tmp_path / "other"))
        made_folder(tmp_path / "other")
    assert (folder / "file").exists()


def test_a_change_after_the_last_write_is_said_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(FolderMoved), only_writer(tmp_path / "run"):  # noqa: PT012
        _moved(tmp_path / "run")


def test_a_link_is_followed_to_the_folder_that_stays(tmp_path: Path) -> None:
    folder, link = made_folder(tmp_path / "run"), tmp_path / "link"
    link.symlink_to(folder)
    with staying(link):
        check_stays(folder / "file")
        folder.rename(tmp_path / "elsewhere")
        for way in (folder, link):
            with pytest.raises(FolderMoved):
                check_stays(way / "file")
        (tmp_path / "elsewhere").rename(folder)


def test_the_lock_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(FolderMoved), only_writer(folder):  # noqa: PT012
        _replaced(folder)
        for name in (".isthmus.lock", ".isthmus.owner"):
            (folder / name).write_text("another's")
    assert [path.read_text() for path in folder.iterdir()] == ["another's"] * 2


def test_a_search_whose_folder_is_moved_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def move(_progress: object) -> None:
        if folder.exists():
            _moved(folder)

    x = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(FolderMoved):
        isthmus.discover(
            x, x[:, :2], out=folder, effort="quick", ridge=1e-2, starts=1, limits=isthmus.Limits(evaluations=20),
            progress=move,
        )  # fmt: skip
    assert not folder.exists()


def test_folders_are_made_where_one_asks_whether_they_stay() -> None:
    """`mkdir(parents=True)` makes a folder anew that was moved away; `made_folder` looks first."""
    found = [
        f"{path.relative_to(SRC)}:{node.lineno}"
        for path in sorted(SRC.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"mkdir", "makedirs"}
        and (node.func.attr == "makedirs" or any(word.arg == "parents" for word in node.keywords))
    ]
    # the one who looks; those who make the very folder that is then to stay
    allowed = {"writing/staying.py", "writing/folder_lock.py", "sweeps/store.py"}
    assert {place.partition(":")[0] for place in found} == allowed, found


def test_a_block_that_begins_once_the_folder_is_gone_says_so_where_another_is_in_it(tmp_path: Path) -> None:
    """A worker that took its next run between the moving and the driver's next look had ended in FileNotFoundError."""
    folder = tmp_path / "runs"
    folder.mkdir()
    elsewhere, first = tmp_path / "elsewhere", staying(folder)
    first.__enter__()
    folder.rename(elsewhere)
    with pytest.raises(FolderMoved, match="put it back"):
        staying(folder).__enter__()
    elsewhere.rename(folder)
    first.__exit__(None, None, None)
    with pytest.raises(FileNotFoundError):
        staying(tmp_path / "none").__enter__()
