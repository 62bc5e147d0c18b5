import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

import isthmus
from isthmus.errors import DataError
from isthmus.writing.folder_lock import FolderInUse, only_writer

SRC = Path(isthmus.__file__).parents[1]
HOLDER = """
import sys, time
sys.path.insert(0, {src!r})
from isthmus.writing.folder_lock import only_writer
with only_writer({folder!r}):
    print("held", flush=True)
    time.sleep(600)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    program = HOLDER.format(src=str(SRC), folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def enter(folder: Path) -> None:
    with only_writer(folder):
        pass


def test_another_process_is_named_and_does_not_block_once_it_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    other = holder(folder)
    try:
        with pytest.raises(FolderInUse, match=rf"another process works here \(pid {other.pid} on \S+, since 20\d\d-"):
            enter(folder)
        with pytest.raises(DataError, match="another process works here"):
            isthmus.discover(np.arange(60.0).reshape(30, 2) % 7, out=folder, effort="quick")
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    assert [path.name for path in folder.iterdir()] != []  # what the killed one left
    with only_writer(folder):
        (folder / "result").write_text("")
    assert [path.name for path in folder.iterdir()] == ["result"]


def test_a_damaged_note_says_less_and_nothing_else(tmp_path: Path) -> None:
    other = holder(tmp_path)
    try:
        for damaged in ("", "[]", '{"pid": "x"}', "[" * 100_000):
            (tmp_path / ".isthmus.owner").write_text(damaged)
            with pytest.raises(FolderInUse, match="another process works here. Wait"):
                enter(tmp_path)
    finally:
        other.kill()
        other.communicate()


def test_one_thread_may_enter_again_and_another_may_not(tmp_path: Path) -> None:
    heard: list[str] = []

    def other() -> None:
        try:
            enter(tmp_path)
        except FolderInUse as error:
            heard.append(str(error))

    with only_writer(tmp_path):
        enter(tmp_path)
        enter(tmp_path / ".." / tmp_path.name)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert json.loads((tmp_path / ".isthmus.owner").read_text())["pid"] == os.getpid()
    assert len(heard) == 1
    assert f"pid {os.getpid()}" in heard[0]
    assert list(tmp_path.iterdir()) == []


def test_who_asks_whether_somebody_is_here_keeps_nobody_out(tmp_path: Path) -> None:
    """`sweep status` takes the lock for a moment to ask: of 300 sweeps that began meanwhile 49 had been refused."""
    lock = FileLock(tmp_path / "driver.lock")
    asking, done = threading.Event(), threading.Event()

    def ask() -> None:
        with lock:
            asking.set()
            done.wait(0.2)

    thread = threading.Thread(target=ask)
    thread.start()
    assert asking.wait(30)
    with only_writer(tmp_path, name="driver.lock", keep=True):
        done.set()
    thread.join()
    with lock, pytest.raises(FolderInUse), only_writer(tmp_path, name="driver.lock", keep=True):
        pytest.fail("whoever stays is no asker")


def test_a_folder_that_was_made_in_vain_goes_away(tmp_path: Path) -> None:
    enter(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    enter(tmp_path / "mine" / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_of_many_processes_one_writes_at_a_time(tmp_path: Path) -> None:
    """Each adds one to a number without any other protection; those who are refused try again."""
    program = f"""
import sys, time
sys.path.insert(0, {str(SRC)!r})
from pathlib import Path
from isthmus.writing.folder_lock import FolderInUse, only_writer
count, done = Path({str(tmp_path / "count")!r}), 0
while done < 30:
    try:
        with only_writer({str(tmp_path / "run")!r}):
            number = int(count.read_text())
            time.sleep(.0005)
            count.write_text(str(number + 1))
            done += 1
    except (FolderInUse, FileNotFoundError):  # the folder itself goes away and comes back
        pass
"""
    (tmp_path / "count").write_text("0")
    began = time.monotonic()
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0], time.monotonic() - began
    assert (tmp_path / "count").read_text() == "90"
