import html
import io
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import discoveries
from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.discover_run import Deadline, exit_code, print_verdict, run_in, write_outputs
from isthmus.cli.main import run
from isthmus.cli.terminal import print_place
from isthmus.discovery import Discovery
from isthmus.discovery.files.netcdf import read_table
from isthmus.theory import Verdict


def printed(found: Discovery, width: int = 80) -> str:
    stream = io.StringIO()
    print_verdict(Console(file=stream, width=width), found)
    return stream.getvalue()


def test_no_sharp_rank_is_an_answer_and_doubt_is_not() -> None:
    assert {verdict: exit_code(verdict) for verdict in Verdict} == {
        Verdict.CONFIDENT: 0,
        Verdict.NO_SHARP_RANK: 0,
        Verdict.DOUBTFUL: 3,
        Verdict.TOO_FEW_DATA: 3,
    }


def test_terminal_and_page_say_the_same_of_combinations(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without rows they are told in the units of the data: other numbers, and two modes that seemed to be others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3)) * [1.0, 20.0, 0.1]
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=np.tanh(x[:, 0] + x[:, 1] / 20), run=range(80), same=1.5)
    table.loc[[3, 7], "c"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ["--ridge", "1e-2", "--starts", "1", "--evaluations", "60", "--effort", "quick", "--impute"]
    assert run(["discover", str(tmp_path / "t.csv"), "--target", "y", *options, "--out", str(tmp_path / "run")]) in {
        0,
        3,
    }
    out, err = capsys.readouterr()
    said = " ".join(out.split())
    page = (tmp_path / "run" / "report.html").read_text()
    notes = [line.removeprefix("note: ") for line in err.splitlines() if line.startswith("note: ")]
    assert [note in html.unescape(page) for note in notes] == ["80 rows of" not in note for note in notes], notes
    assert {"'c'", "'run'", "'same'"} <= set(re.findall(r"'\w+'", " ".join(notes))), "filled, numbered and left out"
    line = re.search(r"In standardised columns: [^.]*\.\d\d [abc]", said, flags=re.IGNORECASE)
    assert line is not None
    assert line[0] in " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_the_verdict_on_the_terminal() -> None:
    text = printed(discoveries.discovery(control=True), width=200)
    assert text.splitlines()[1] == "This task needs 3 dimensions."
    for part in ("Confident", "With 2 dimensions the error is 101 times", "reduced-rank regression", "no sharp rank"):
        assert part in text


def test_lines_fit_the_terminal_but_a_path_is_never_broken() -> None:
    lines = printed(discoveries.discovery(control=True), width=60).splitlines()
    assert max(map(len, lines)) <= 60
    stream = io.StringIO()
    print_place(Console(file=stream, width=60), "Report", Path("a/very/long/path") / ("x" * 80) / "report.html")
    assert stream.getvalue() == f"Report: a/very/long/path/{'x' * 80}/report.html\n"


def test_hostile_reasons_are_text() -> None:
    assert "[red]x[/] [link=http://a]" in printed(discoveries.discovery(reasons=("[red]x[/] [link=http://a]",)))


@pytest.mark.slow
@pytest.mark.parametrize("control", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pictures_and_page_are_written_beside_the_result(tmp_path: Path, control: bool) -> None:
    found = discoveries.discovery(control=control)
    found.save(tmp_path)
    x = discoveries.inputs()
    page = write_outputs(found, tmp_path, x, "isthmus discover a.csv", {"size": x[:, 0] ** 2})
    assert page == tmp_path / "report.html"
    assert "isthmus discover a.csv" in page.read_text()
    assert len(list((tmp_path / "plots").glob("*.png"))) == len(list((tmp_path / "plots").glob("*.svg"))) == 11
    assert (tmp_path / "plots" / "candidates.png").exists()
    assert "size 0." in page.read_text()
    saved = read_table(tmp_path / "interpretation.nc")
    assert set(saved.data_vars) == {"error_saved", "order", "attribution", "distance_correlation"}


def test_a_search_ends_before_the_limit_so_that_there_is_time_to_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    deadline = Deadline(60.0, began=97.0)  # three seconds to load the libraries
    assert deadline.left() == 57.0
    assert deadline.for_search(pictures=False) == 57.0
    assert deadline.for_search(pictures=True) == 51.0
    assert Deadline(8.0, began=97.0).for_search(pictures=True) == 3.0  # at most a quarter for the pictures
    now = 200.0
    assert deadline.left() == -43.0
    assert deadline.for_search(pictures=True) == 0.1
    assert Deadline(None, began=97.0).left() is Deadline(None, began=97.0).for_search(pictures=True) is None


@pytest.mark.slow
@pytest.mark.usefixtures("blank_pictures")
def test_pictures_are_left_out_when_time_is_over_and_made_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 3)))
    request = DiscoverRequest(str(tmp_path / "x.npy"), autoencode=True, evaluations=20, max_seconds=0.5, effort="quick")
    run_in(tmp_path / "run", request, Deadline(0.5, began=time.monotonic() - 9))
    assert (tmp_path / "run" / "result.json").exists()
    assert not (tmp_path / "run" / "report.html").exists()
    # as typed: with the limit that was over, the page would be left out again
    [typed] = re.findall(r"isthmus (discover .*) makes them", " ".join(capsys.readouterr().err.split()))
    assert "--max-seconds" not in typed
    run(shlex.split(typed))
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.slow
def test_the_answer_comes_before_pictures_which_nobody_has_to_hear_out(tmp_path: Path) -> None:
    """`isthmus discover ... | head -2`: the pipe is closed while the verdict is printed, and the page is made."""
    table = tmp_path / "t.csv"
    np.savetxt(table, np.random.default_rng(0).normal(size=(60, 3)), delimiter=",", header="a,b,y", comments="")
    words = [sys.executable, "-m", "isthmus", "discover", str(table), "--target", "y", "--ridge", "1e-2",
             "--starts", "1", "--evaluations", "30", "--effort", "quick", "--out", str(tmp_path / "run")]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as command:
        assert command.stdout is not None
        while not command.stdout.readline().strip():
            pass
        assert not (tmp_path / "run" / "report.html").exists()
        command.stdout.close()
    assert (tmp_path / "run" / "report.html").exists()
