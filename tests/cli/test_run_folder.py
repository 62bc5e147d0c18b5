import os
from pathlib import Path
from typing import Any

import pytest

import discoveries
from isthmus.cli.discover_run import write_outputs
from isthmus.cli.run_folder import (
    FolderState,
    check_free,
    check_writable,
    chosen_folder,
    clear,
    default_folder,
    state_of,
)
from isthmus.discovery import interpret
from isthmus.discovery.files import storage
from isthmus.discovery.halves import RANK_KINDS
from isthmus.errors import DataError

DEFAULT = Path("runs/a")


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / "result.json").write_text("{}")
    return tmp_path / "finished"


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    (tmp_path / "unfinished" / "work").mkdir(parents=True)
    return tmp_path / "unfinished"


def test_what_stands_in_a_folder(tmp_path: Path, finished: Path, unfinished: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert state_of(finished) is FolderState.FINISHED
    assert state_of(unfinished) is FolderState.UNFINISHED
    assert state_of(tmp_path) is FolderState.FOREIGN
    assert state_of(tmp_path / "file") is FolderState.FOREIGN
    assert state_of(tmp_path / "empty") is state_of(tmp_path / "none") is FolderState.FREE


@pytest.mark.parametrize(
    ("data", "folder"),
    [
        ("builtin:digits", "runs/digits"),
        ("some/My table.csv", "runs/My_table"),
        ("../..", "runs/run"),
        ("größe.npz", "runs/größe"),
    ],
)
def test_a_folder_named_after_the_data(data: str, folder: str) -> None:
    assert chosen_folder(default_folder(data, [], {}), None, None, replace=False) == Path(folder)


def test_an_existing_run_is_refused_unless_resumed_or_replaced(finished: Path, unfinished: Path) -> None:
    with pytest.raises(DataError, match=rf"finished run\. Go on with --resume {finished}, or start over with --rep"):
        check_free(finished, resumed=False, replace=False)
    with pytest.raises(DataError, match="work of a run that was stopped"):
        check_free(unfinished, resumed=False, replace=False)
    for folder in (finished, unfinished):
        check_free(folder, resumed=False, replace=True)
        check_free(folder, resumed=True, replace=False)
        assert chosen_folder(DEFAULT, folder, None, replace=True) == folder
        assert chosen_folder(DEFAULT, None, folder, replace=False) == folder
        assert chosen_folder(DEFAULT, folder, folder, replace=False) == folder


def test_a_folder_with_other_files_is_never_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    for replace in (False, True):
        with pytest.raises(DataError, match="other files"):
            check_free(tmp_path, resumed=False, replace=replace)


def test_resume_needs_a_run_and_goes_alone(tmp_path: Path, finished: Path) -> None:
    with pytest.raises(DataError, match="no run to resume"):
        chosen_folder(DEFAULT, None, tmp_path / "none", replace=False)
    with pytest.raises(DataError, match="leave out --out and --replace"):
        chosen_folder(DEFAULT, tmp_path / "other", finished, replace=False)
    with pytest.raises(DataError, match="leave out --out and --replace"):
        chosen_folder(DEFAULT, None, finished, replace=True)


def test_the_check_for_writing_leaves_nothing(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept").mkdir()
    check_writable(tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file/run: cannot be written \(Not a directory\)"):
        check_writable(tmp_path / "file" / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="Permission denied"):
        check_writable(tmp_path / "run")


def test_clearing_knows_every_name_that_a_run_writes(tmp_path: Path) -> None:
    tables: dict[str, Any] = {name: discoveries.curves()[0] for name in storage.OPTIONAL if name != storage.DEPTH}
    others = {name: discoveries.discovery(depth_path=discoveries.depth_path(), **tables) for name in RANK_KINDS}
    found = discoveries.discovery(control=True, others=others, depth_path=discoveries.depth_path(), **tables)
    found.save(tmp_path)
    storage.write_beside(tmp_path, storage.INTERPRETATION, interpret(found, discoveries.inputs()))
    written = {path.name for path in tmp_path.iterdir()}
    assert written >= {*(f"{name}.nc" for name in (*storage.TABLES, *storage.OPTIONAL)), storage.CONTROL, *RANK_KINDS}
    clear(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("blank_pictures")
def test_clearing_removes_the_run_and_nothing_else(tmp_path: Path) -> None:
    found = discoveries.discovery(control=True)
    found.save(tmp_path)
    write_outputs(found, tmp_path, discoveries.inputs(), "isthmus discover a.csv")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "start.pt").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "control" / "notes.txt").write_text("mine")
    clear(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {
        "notes.txt",
        "control",
        "control/notes.txt",
    }
