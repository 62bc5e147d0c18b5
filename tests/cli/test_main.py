import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discoveries
import isthmus
from command_lines import line_of, write_table
from isthmus.cli.discover import LEAST_CONNECTED_DEPTH
from isthmus.cli.discover import DiscoverRequest as Request
from isthmus.cli.main import run
from isthmus.discovery import Discovery
from isthmus.discovery.settings import Settings
from isthmus.theory import Verdict
from isthmus.writing.checksums import opened_json
from isthmus.writing.folder_lock import only_writer

SRC = Path(__file__).parents[2] / "src"
HEAVY = ("torch", "numpy", "matplotlib", "xarray", "pandas", "scipy", "sklearn", "jinja2")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """`discover` answered by the discovery made by hand; gives the arguments of each call."""
    calls: list[dict[str, object]] = []

    def answer(x: object, y: object = None, **arguments: object) -> Discovery:
        calls.append({"x": x, "y": y, **arguments})
        found = discoveries.discovery(verdict=Verdict.DOUBTFUL if arguments["seed"] == 3 else Verdict.CONFIDENT)
        if arguments["seed"] == 130:
            (Path(str(arguments["out"])) / "work").mkdir(parents=True)
            raise KeyboardInterrupt
        found.save(str(arguments["out"]))
        return found

    monkeypatch.setattr("isthmus.cli.discover_run.discover", answer)
    return calls


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of one line instead of the pictures and the page, which have tests of their own."""

    def one_line(_found: object, folder: Path, *_rest: object, **_named: object) -> Path:
        (folder / "report.html").write_text("page")
        return folder / "report.html"

    monkeypatch.setattr("isthmus.cli.discover_run.write_outputs", one_line)


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom isthmus.cli.main import run\ncode = run(['discover', '--help'])\n"
        f"print(code, sorted(set({HEAVY}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True, check=True
    )
    assert "--autoencode" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 []"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"isthmus {isthmus.__version__} finds how many dimensions")
    assert (out.count("\n"), out[-3:], err) == (1, ").\n", "")


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) in {0, 2}  # older click calls that a success
    out, err = capsys.readouterr()
    assert "discover" in out + err


BAD = {
    "unknown option": (["--bogus"], "No such option: --bogus"),
    "not a number": (["--seed", "x"], "Invalid value for '--seed'"),
    "too shallow": (["--depth", "7"], "--depth 7: needs at least 8"),
    "no start": (["--starts", "0"], "Invalid value for '--starts'"),
    "no time": (["--max-seconds", "0"], "--max-seconds 0: needs a positive number"),
    "no ridge": (["--ridge", "big"], "--ridge big: needs positive numbers"),
    "two choices": (["--autoencode", "--target", "y"], "--target and --autoencode exclude each other"),
    "path of a leaky network": (["--depth-path", "--network", "leaky"], "needs a fully connected network"),
    "missing column": (["--target", "z"], "has no column 'z'"),
    "missing groups": (["--groups", "z"], "has no column 'z'"),
    "nothing to resume": (["--resume", "nowhere"], "nowhere: holds no run to resume"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    options, message = BAD[case]
    out = [] if "--resume" in options else ["--out", str(tmp_path / "run")]
    assert run(["discover", str(table), *out, *options]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note: ")]
    assert message in line_of("\n".join(errors) + "\n")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_the_least_depth_is_that_of_the_search() -> None:
    assert Settings(linear_layers=1).depth == LEAST_CONNECTED_DEPTH


def test_a_folder_that_cannot_be_written_is_refused_before_the_data_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(["discover", "no such file.csv", "--out", str(tmp_path / "file" / "run")]) == 2
    assert "cannot be written" in line_of(capsys.readouterr().err)


def test_a_disk_that_fills_up_is_one_line(
    inputs: Path, tmp_path: Path, answers: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def full(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr("isthmus.cli.discover_run.write_outputs", full)
    assert run(["discover", str(inputs), "--autoencode", "--out", str(tmp_path / "run")]) == 2
    assert "report.html: No space left on device" in line_of(capsys.readouterr().err)


@pytest.mark.usefixtures("blank_pictures")
def test_a_run_writes_its_folder_and_says_its_verdict(
    table: Path, tmp_path: Path, answers: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deep" / "run"
    assert run(["discover", str(table), "--target", "y", "--out", str(folder), "--ridge", "1e-3,1e-2"]) == 0
    out, err = capsys.readouterr()
    assert "This task needs 3 dimensions." in out
    assert f"Report: {folder / 'report.html'}" in out
    assert err == ""
    assert json.loads((folder / "result.json").read_text())["rank"] == 3
    assert {path.name for path in folder.iterdir()} == {
        "result.json", "scree.nc", "objective_curve.nc", "runs.nc", "layers.nc", "weights.safetensors", "plots",
        "report.html", "interpretation.nc",
    }  # fmt: skip
    (call,) = answers
    assert (call["ridge"], call["loss"], call["seed"], call["control"]) == ([1e-2, 1e-3], None, 0, False)
    assert np.shape(call["x"]) == (60, 5)  # pyright: ignore[reportArgumentType, reportCallIssue] - a table
    assert f"--out {folder}" in (folder / "report.html").read_text()


@pytest.mark.usefixtures("quick")
def test_a_table_without_a_choice_says_that_it_is_autoencoded(
    inputs: Path, tmp_path: Path, answers: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["discover", str(inputs), "--out", str(tmp_path / "run")]) == 0
    assert "so all 5 columns are autoencoded" in line_of(capsys.readouterr().err)
    assert answers[0]["y"] is None


@pytest.mark.usefixtures("quick")
def test_without_pictures_the_numbers_are_there_and_resume_draws_them(
    inputs: Path, tmp_path: Path, answers: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert run(["discover", str(inputs), "--autoencode", "--out", str(folder), "--no-pictures"]) == 0
    assert f"Result: {folder}\n" in capsys.readouterr().out
    assert (folder / "result.json").exists()
    assert not (folder / "plots").exists()
    assert not (folder / "report.html").exists()

    assert run(["discover", str(inputs), "--autoencode", "--resume", str(folder)]) == 0
    assert (folder / "report.html").exists()
    assert len(answers) == 1, "it was computed again"


@pytest.mark.usefixtures("quick")
def test_a_doubtful_verdict_has_its_own_exit_code(
    inputs: Path, tmp_path: Path, answers: list[dict[str, object]]
) -> None:
    assert run(["discover", str(inputs), "--autoencode", "--seed", "3", "--out", str(tmp_path / "run")]) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_an_existing_run_is_refused_shown_again_or_replaced(
    inputs: Path, tmp_path: Path, answers: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["discover", str(inputs), "--autoencode"]
    folder = str(tmp_path / "run")
    assert run([*command, "--out", folder]) == 0
    capsys.readouterr()
    assert run([*command, "--out", folder]) == 2
    assert "start over with --replace" in line_of(capsys.readouterr().err)

    (tmp_path / "run" / "report.html").unlink()
    assert run([*command, "--resume", folder]) == 0
    out, err = capsys.readouterr()
    assert "the run there is finished" in line_of(err)
    assert "This task needs 3 dimensions." in out
    assert (tmp_path / "run" / "report.html").exists()
    assert len(answers) == 1

    older = opened_json((tmp_path / "run" / "result.json").read_bytes())
    del older["settings"]["network"], older["settings"]["raise_evaluations"]
    (tmp_path / "run" / "result.json").write_text(json.dumps(older))
    assert run([*command, "--resume", folder]) == 0
    older["settings"] |= {"linear_width": 61, "width": 138}  # the search widened its networks
    (tmp_path / "run" / "result.json").write_text(json.dumps(older))
    assert run([*command, "--resume", folder]) == 0
    assert run([*command, "--resume", folder, "--network", "leaky"]) == 2
    assert "has other" in capsys.readouterr().err

    other = write_table(tmp_path / "other.csv", ["a", "b"], discoveries.inputs()[:, :2])
    assert run(["discover", str(other), "--autoencode", "--resume", folder]) == 2
    assert "has other columns" in line_of(capsys.readouterr().err)
    assert run([*command, "--resume", folder, "--seed", "5", "--starts", "1"]) == 2
    assert "has other seed, starts" in line_of(capsys.readouterr().err)

    result = (tmp_path / "run" / "result.json").read_bytes()
    same = write_table(tmp_path / "same.csv", ["a", "b"], np.ones((30, 2)))
    assert run(["discover", str(same), "--autoencode", "--out", folder, "--replace"]) == 2
    assert "identical" in line_of(capsys.readouterr().err)
    assert (tmp_path / "run" / "result.json").read_bytes() == result, "given up for data that are refused"

    assert run([*command, "--out", folder, "--replace"]) == 0
    assert len(answers) == 2


def test_an_interrupt_says_how_to_go_on(
    inputs: Path, tmp_path: Path, answers: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert run(["discover", str(inputs), "--autoencode", "--seed", "130", "--out", str(folder)]) == 130
    line = line_of(capsys.readouterr().err)
    assert f"go on with: isthmus discover {inputs} --autoencode --seed 130 --resume {folder}" in line


@pytest.mark.parametrize("column", ["--log", "-x", "a b"])
def test_what_an_interrupt_says_can_be_typed_and_asks_for_the_same(
    column: str, inputs: Path, tmp_path: Path, answers: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    """A column called --log was an option without a word; where and on what it ran had to be remembered."""
    folder = tmp_path / "run"
    place = ["--workers", "1", "--executor", "threads", "--device", "cpu", "--no-pictures"]
    options = [f"--leave-out={column}", "--autoencode", "--seed", "130", *place]
    table = pd.read_csv(inputs)
    table.assign(**{column: np.arange(len(table)) % 7}).to_csv(inputs, index=False)
    assert run(["discover", str(inputs), *options, "--out", str(folder)]) == 130
    line = line_of(capsys.readouterr().err)
    typed = shlex.split(line.partition("go on with: isthmus ")[2])
    assert set(place) < set(typed)
    first = answers[-1]
    assert run([*typed[: typed.index("--resume")], "--out", str(tmp_path / "again")]) == 130
    for name in ("columns", "workers", "executor", "device", "seed"):
        assert answers[-1][name] == first[name]


STARTED = """
import sys
sys.path[:0] = {paths!r}
from isthmus.cli.main import main
sys.argv = ["isthmus", *{arguments!r}]
main()
"""


def test_sigterm_saves_the_work_and_the_same_command_goes_on(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = ["discover", str(table), "--target", "y", "--out", str(folder)]
    program = STARTED.format(paths=[str(SRC)], arguments=arguments)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not list(folder.glob("work/belongs.pt")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    assert f"--resume {folder}" in err.splitlines()[-1]
    assert not (folder / "result.json").exists()
    assert (folder / "work").exists()


HUGE = "9" * 400


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", "9" * 20], ["--seed", HUGE], ["--depth", "100000000"], ["--depth", "9" * 20], ["--depth", HUGE],
        ["--starts", "9" * 20], ["--evaluations", "9" * 20], ["--max-seconds", "nan"], ["--max-seconds", "inf"],
        ["--ridge", "nan"], ["--ridge", "1e-3,inf"], ["--network", "leaky", "--depth", "1000000000"],
    ],
)  # fmt: skip
def test_sizes_that_cannot_be_are_one_line_before_anything_is_made(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert run(["discover", str(inputs), "--autoencode", "--out", str(tmp_path / "run"), *options]) == 2
    line = line_of(capsys.readouterr().err)
    assert options[0] in line or "discover(" in line
    assert "bug" not in line
    assert [path.name for path in tmp_path.iterdir()] == ["inputs.csv"]


def test_two_requests_on_the_same_data_have_two_folders() -> None:
    requests = [
        Request("a/data.csv", target="y,z"), Request("a/data.csv", target="y"), Request("a/data.csv", classes="y"),
        Request("a/data.csv", autoencode=True), Request("a/data.csv"), Request("a/data.csv", target="y", seed=1),
        Request("a/data.csv", target="y", network="leaky"), Request("a/data.csv", target="y", candidates="z"),
        Request("a/data.csv", target="y", ridge="1e-2"), Request("a/data.csv", target="y", depth_path=True),
        Request("a/data.csv", target="/".join(["y"] * 300)), Request("a/data.csv", target="/".join(["y"] * 301)),
    ]  # fmt: skip
    folders = [request.default_folder for request in requests]
    assert len(set(folders)) == len(folders)
    assert folders[0] == Path("runs/data-y-z")
    assert all(folder.parent == Path("runs") and len(folder.name) < 100 for folder in folders)


def test_what_is_wrong_with_the_request_is_said_before_what_stands_in_the_folder(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "result.json").write_text("{}")
    for options, message in ((["--ridge", "big"], "--ridge big"), (["--target", "nope"], "no column 'nope'")):
        assert run(["discover", str(table), "--out", str(tmp_path / "run"), *options]) == 2
        assert message in line_of(capsys.readouterr().err)
    assert run(["discover", str(table), "--target", "y", "--out", str(tmp_path / "run")]) == 2
    assert "holds a finished run" in line_of(capsys.readouterr().err)


def test_a_second_start_names_the_first(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, heard = tmp_path / "run", list[int]()
    with only_writer(folder):
        options = ["discover", str(table), "--target", "y", "--out", str(folder)]
        thread = threading.Thread(target=lambda: heard.append(run(options)))
        thread.start()
        thread.join()
    assert heard == [2]
    assert f"another process works here (pid {os.getpid()} on " in line_of(capsys.readouterr().err)


def test_a_bug_of_ours_is_one_line_with_a_code_of_its_own(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_arguments: object, **_named: object) -> None:
        raise KeyError("unforeseen")

    monkeypatch.setattr("isthmus.cli.discover_run.discover", broken)
    options = ["discover", str(table), "--target", "y", "--out", str(tmp_path / "run")]
    monkeypatch.delenv("ISTHMUS_DEBUG", raising=False)
    assert run(options) == 1
    assert "this is a bug of isthmus (KeyError: 'unforeseen')" in line_of(capsys.readouterr().err)
    monkeypatch.setenv("ISTHMUS_DEBUG", "1")
    assert run(options) == 1
    assert "in broken" in capsys.readouterr().err
