"""Nothing of the user's is overwritten unasked, an input never, and only regular files are ever replaced."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import discoveries
import isthmus
from command_lines import line_of
from isthmus.cli.main import run
from isthmus.cli.output_file import checked_output
from isthmus.discovery.files.networks import write_network
from isthmus.errors import DataError

pytestmark = pytest.mark.usefixtures("blank_pictures")
Command = Callable[[Path, Path], list[str]]  # (folder of inputs, --out) -> arguments
INPUTS: dict[str, Command] = {
    "apply": lambda at, out: ["apply", str(at / "run"), str(at / "inputs.csv"), "--out", str(out)],
    "diagnose": lambda at, out: [
        "diagnose", str(at / "net.safetensors"), "--data", str(at / "inputs.csv"), "--out", str(out)
    ],
    "region": lambda at, out: [
        "region", str(at / "net.safetensors"), "--data", str(at / "inputs.csv"), "--slice", "1,2,3", "--out", str(out)
    ],
    "sweep table": lambda at, out: ["sweep", "table", str(at / "sweep"), "--out", str(out)],
    "sweep plot": lambda at, out: ["sweep", "plot", str(at / "sweep"), "--out", str(out)],
    "sweep report": lambda at, out: ["sweep", "report", str(at / "sweep"), "--out", str(out)],
}  # fmt: skip
SUFFIX = {
    "apply": ".csv",
    "diagnose": ".html",
    "region": ".png",
    "sweep table": ".csv",
    "sweep plot": ".png",
    "sweep report": ".html",
}
PLAN = """
[task]
name = "teacher"
rank = 1
d_in = 3
d_out = 1
latent_dim = 1
num_samples = 20
[network]
width = 4
depth = 2
[training]
evaluations = 10
[grid]
"training.ridge" = [1e-2, 1e-3]
"""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("inputs")
    discoveries.discovery().save(at / "run")
    x = discoveries.inputs()
    np.savetxt(at / "inputs.csv", x, delimiter=",", header=",".join(discoveries.INPUTS), comments="")
    network = isthmus.FullyConnected(x.shape[1], 2, width=4, depth=2, seed=0, dtype=torch.float64)
    write_network(at / "net.safetensors", network)
    (at / "plan.toml").write_text(PLAN)
    assert run(["sweep", str(at / "plan.toml"), "--out", str(at / "sweep"), "--workers", "0"]) == 0
    return at


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return line_of(err)


@pytest.mark.parametrize("suffix", ["", ".pdf", ".csv.bak"])
@pytest.mark.parametrize("name", INPUTS)
def test_a_name_that_opens_as_something_else_is_refused(
    name: str, suffix: str, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(INPUTS[name](given, tmp_path / f"made{suffix}"), capsys)
    assert "unknown extension" in said
    assert f"Use {SUFFIX[name]}" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", INPUTS)
def test_a_file_is_replaced_only_where_that_is_asked_for(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    mine = tmp_path / f"mine{SUFFIX[name]}"
    mine.write_text("mine")
    mine.chmod(0o640)
    assert "exists. Add --replace" in refused(INPUTS[name](given, mine), capsys)
    assert mine.read_text() == "mine"
    assert run([*INPUTS[name](given, mine), "--replace"]) == 0
    assert mine.read_bytes() != b"mine"
    assert mine.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == [mine.name]


@pytest.mark.parametrize("way", ["path", "other spelling", "link", "hard link"])
@pytest.mark.parametrize("name", ["apply", "diagnose"])
def test_an_input_is_never_the_output(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str,
    way: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(given)
    before = contents(given)
    for read in [given / "inputs.csv", given / ("run/result.json" if name == "apply" else "net.safetensors")]:
        out = {
            "path": read,
            "other spelling": Path("sweep") / ".." / read.relative_to(given),
            "link": tmp_path / "link",
            "hard link": tmp_path / "hard",
        }[way]
        if way == "link":
            out.symlink_to(read)
        if way == "hard link":
            out.hardlink_to(read)
        line = refused([*INPUTS[name](given, out), "--replace"], capsys)
        assert "is an input of this command" in line
        if way.endswith("link"):
            out.unlink()
    assert contents(given) == before


@pytest.mark.parametrize("kind", [".png", ".svg", ".csv"])
@pytest.mark.parametrize("way", ["path", "in a folder", "hard link"])
def test_a_picture_of_the_users_is_no_drawing_of_ours(tmp_path: Path, kind: str, way: str) -> None:
    """A folder of pictures is an input, whose files had passed for what nothing reads back."""
    picture = (
        tmp_path / "pictures" / "cats" / f"one{kind}" if way == "in a folder" else tmp_path / "pictures" / f"p{kind}"
    )
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"theirs")
    out = picture
    if way == "hard link":
        out = tmp_path / f"link{kind}"
        out.hardlink_to(picture)
    with pytest.raises(DataError, match="is an input of this command"):
        checked_output(out, kinds=[kind], inputs=[tmp_path / "pictures"], replace=True)
    (tmp_path / "pictures" / "result.json").write_text("{}")
    assert checked_output(out, kinds=[kind], inputs=[tmp_path / "pictures"], replace=True) == out, "a run's own drawing"


def test_a_run_is_not_replaced_by_a_picture_of_its_sweep(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(given)
    link = given / "sweep" / "index.csv"
    link.symlink_to(given / "sweep" / "index.sqlite")
    try:
        line = refused(["sweep", "table", str(given / "sweep"), "--out", str(link), "--replace"], capsys)
        assert "is an input of this command" in line
    finally:
        link.unlink()
    assert contents(given) == before


@pytest.mark.parametrize("name", INPUTS)
def test_a_folder_a_socket_and_a_missing_folder_are_refused(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / f"folder{SUFFIX[name]}"
    folder.mkdir()
    assert "is a folder" in refused([*INPUTS[name](given, folder), "--replace"], capsys)
    assert "folder does not exist" in refused(INPUTS[name](given, folder / "no" / f"a{SUFFIX[name]}"), capsys)
    with socket.socket(socket.AF_UNIX) as ear:
        ear.bind(f"ear{SUFFIX[name]}")
        line = refused([*INPUTS[name](given, Path(f"ear{SUFFIX[name]}")), "--replace"], capsys)
    assert "never replaced" in line


def test_the_folder_here_is_refused(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("apply", "diagnose"):
        assert "is a folder" in refused(INPUTS[name](given, Path()), capsys)


def test_a_link_stays_and_its_target_is_replaced(given: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "old.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to("there/old.csv")
    assert run([*INPUTS["apply"](given, link), "--replace"]) == 0
    assert link.is_symlink()
    assert target.read_text().startswith("coordinate 1")
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["old.csv"]


def test_streams_are_written_into_and_stay_what_they_are(given: Path, tmp_path: Path) -> None:
    assert run(INPUTS["apply"](given, Path(os.devnull))) == 0
    assert Path(os.devnull).is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    while run(INPUTS["apply"](given, pipe)) != 0:  # nobody reads yet
        assert reader.is_alive()
    reader.join()
    assert heard[0].startswith("coordinate 1")
    assert pipe.is_fifo()


def test_a_pipe_that_nobody_reads_is_refused(given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "nobody reads" in refused(INPUTS["apply"](given, tmp_path / "pipe"), capsys)


def test_a_descriptor_is_written_into_not_exchanged(given: Path, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        log.write("before\n")
        log.flush()
        assert run(INPUTS["apply"](given, Path(f"/dev/fd/{log.fileno()}"))) == 0
        assert (tmp_path / "log").stat().st_ino == os.fstat(log.fileno()).st_ino
    assert (tmp_path / "log").read_text().startswith("before\ncoordinate 1")


@pytest.mark.parametrize("command", ["factor", "compress"])
def test_an_export_does_not_replace_the_model_it_reads(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "export.json").write_text("{}")
    model = tmp_path / "network.safetensors"
    model.write_bytes((given / "net.safetensors").read_bytes())
    before = contents(tmp_path)
    extra = ["--tolerance", "0.1"] if command == "compress" else []
    arguments = [command, str(model), "--data", str(given / "inputs.csv"), "--out", str(tmp_path), "--replace", *extra]
    assert "is an input of this command" in refused(arguments, capsys)
    assert contents(tmp_path) == before


def test_figures_take_no_folder_of_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gallery.html").write_text("mine")
    (tmp_path / "runs").mkdir()
    assert "holds other files" in refused(["figure", "1", "--preset", "tiny", "--out", str(tmp_path)], capsys)
    assert (tmp_path / "gallery.html").read_text() == "mine"


def test_what_a_killed_writer_left_beside_the_output_is_removed_and_nothing_else(given: Path, tmp_path: Path) -> None:
    from isthmus.writing.atomic import _here  # pyright: ignore[reportPrivateUsage]

    ended = subprocess.Popen([sys.executable, "-c", ""])
    assert ended.wait() == 0
    gone = ended.pid
    left = tmp_path / f".new.{gone}-{_here()}-0123456789ab.isthmus-tmp.csv"
    kept = [
        tmp_path / f".new.{os.getpid()}-{_here()}-0123456789ab.isthmus-tmp.csv",  # at work
        tmp_path / f".new.{gone}-00000000-0123456789ab.isthmus-tmp.csv",  # of another machine
        tmp_path / f".other.{gone}-{_here()}-0123456789ab.isthmus-tmp.csv",  # of another file
        tmp_path / ".new.csv",
    ]
    for path in (left, *kept):
        path.write_text("half")
    assert run(INPUTS["apply"](given, tmp_path / "new.csv")) == 0
    assert sorted(tmp_path.iterdir()) == sorted([*kept, tmp_path / "new.csv"])


def test_the_default_page_is_protected_too(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = INPUTS["diagnose"](given, tmp_path / "x")[:-2]
    assert run(arguments) == 0
    page = (tmp_path / "runs" / "net-diagnosis.html").read_bytes()
    assert "exists. Add --replace" in refused(arguments, capsys)
    assert (tmp_path / "runs" / "net-diagnosis.html").read_bytes() == page
    assert json.loads((given / "run" / "result.json").read_text())["rank"] == 3
