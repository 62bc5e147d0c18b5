"""Every command speaks JSON, quietly or at length; helps end with a line to type; terminals see something move soon."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import discoveries
import isthmus
from command_lines import write_table
from isthmus.cli.commands import EXAMPLES, app
from isthmus.cli.discover_run import print_verdict
from isthmus.cli.main import run
from isthmus.cli.terminal import terminal
from isthmus.cli.voice import tell, voice

SRC = Path(__file__).parents[2] / "src"
QUICK = ["--ridge", "3e-3", "--starts", "1", "--evaluations", "40", "--effort", "quick", "--no-pictures"]
COMMANDS = [*(command.__name__ for command in EXAMPLES), "sweep"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(60, 3))
    return write_table(tmp_path / "t.csv", ["a", "b", "y"], x)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    discoveries.discovery().save(str(tmp_path / "run"))
    return tmp_path / "run"


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run([*map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_a_discovery_is_one_object(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["discover", table, "--target", "y", "--out", tmp_path / "run", *QUICK]
    code, out, err = said(capsys, *asked, "--json", "-q")
    found = json.loads(out)
    stored = isthmus.load(tmp_path / "run")
    assert err == ""
    assert (found["command"], found["exit_code"], found["rank"]) == ("discover", code, stored.rank)
    assert found["verdict"] == stored.verdict.name
    assert found["scree"]["heldout_error"] == stored.scree["heldout_error"].values.tolist()
    code, out, err = said(capsys, "discover", table, "--autoencode", "--out", tmp_path / "other", *QUICK, "-v")
    assert "Result: " in out
    assert "note: 60 rows of 3 input columns" in err
    assert "INFO isthmus" in err
    code, out, err = said(capsys, "compare", tmp_path / "run", tmp_path / "other", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["found"]["task"] == ["regression", "autoencoding"]
    assert found["found"]["same data"] == [None, False]
    assert "encoder_side" in found["settings"]
    assert run(["compare", str(tmp_path / "run"), str(tmp_path / "other")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"task +regression +autoencoding", out)
    assert re.search(r"same data +no", out)
    assert re.search(r"input columns +2 numeric +3 numeric", out)
    assert not re.search(r"[{}()\[\]]", out.replace(str(tmp_path), "")), "values in words, not as Python writes them"


def test_what_reads_a_run_is_one_object(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = isthmus.load(saved)
    rows = np.random.default_rng(0).normal(size=(25, len(stored.input_names)))
    data = write_table(tmp_path / "rows.csv", list(stored.input_names), rows)
    code, out, _ = said(capsys, "apply", saved, data, "--json")
    np.testing.assert_allclose(np.array(json.loads(out)["rows"], dtype=float), stored.transform(rows))
    code, out, _ = said(capsys, "interpret", saved, data, "--json")
    found = json.loads(out)
    assert (code, found["rank"], len(found["coordinates"])) == (0, stored.rank, stored.rank)
    assert np.shape(found["attribution"]) == (stored.rank, len(stored.input_names))
    code, out, _ = said(capsys, "interpret", saved, data)
    assert out.count("follows most") == stored.rank
    code, _, err = said(capsys, "interpret", saved)
    assert (code, "stored no interpretation. Give DATA" in err) == (2, True)
    np.savetxt(tmp_path / "m.csv", np.diag([3.0, 2.0]), delimiter=",")
    code, out, _ = said(capsys, "cost", tmp_path / "m.csv", "--depth", 3, "--kind", "connected", "--json")
    assert (json.loads(out)["rank"], json.loads(out)["kind"]) == (2, "connected")


@pytest.mark.slow
def test_the_doctor_knows_the_machine_and_a_right_answer(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "doctor", "--json")
    found = json.loads(out)
    assert (code, found["rank_found"], found["is_well"]) == (0, 2, True)
    assert found["isthmus"] == isthmus.__version__
    assert "torch " in found["packages"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_ends_with_an_example_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, short, _ = said(capsys, name, "-h")
    assert code == 0
    assert said(capsys, name, "--help")[1] == short
    assert f"Example: isthmus {name}" in " ".join(short.split())
    if name != "sweep":
        assert "--json" in short


@pytest.mark.parametrize("line", EXAMPLES.values(), ids=COMMANDS[:-1])
def test_examples_can_be_typed(line: str) -> None:
    command = typer.main.get_command(app)
    _, name, *arguments = line.split()
    with command.make_context("isthmus", [name, *arguments]) as context:
        found = command.commands[name]  # pyright: ignore[reportAttributeAccessIssue]
        assert found.make_context(name, list(arguments), parent=context).params


def test_a_verdict_in_a_pipe_is_not_folded(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_verdict(terminal(), isthmus.load(saved))
    lines = capfd.readouterr().out.splitlines()
    whole = next(text for text in _sentences(saved) if len(text) > 90)
    assert any(whole in line for line in lines)
    assert not any(line.endswith(" ") for line in lines)


def _sentences(saved: Path) -> list[str]:
    from isthmus.reports import verdict_of

    return [line.text for line in verdict_of(isthmus.load(saved)).lines]


def test_a_terminal_sees_something_before_what_takes_long_is_imported(table: Path, tmp_path: Path) -> None:
    """Within a second of its own, however busy the machine is: it takes .2, to import torch 1.7 more."""
    leader, follower = pty.openpty()
    limited = ["sh", "-c", 'ulimit -t 1 && exec "$@"', "sh", sys.executable]  # ended by the system after that
    command = [*limited, "-m", "isthmus", "discover", str(table), "--autoencode", "--out", str(tmp_path / "r")]
    with subprocess.Popen([*command, *QUICK], stderr=follower, stdout=subprocess.DEVNULL, cwd=tmp_path,
                          env=os.environ | {"PYTHONPATH": str(SRC)}) as child:  # fmt: skip
        os.close(follower)
        first = os.read(leader, 100)
        child.terminate()
    os.close(leader)
    assert first.startswith(b"reading ")


def test_what_is_told_without_json_goes_nowhere() -> None:
    tell(rank=3)
    assert voice().facts == {}


def test_a_run_that_is_not_there_is_no_run_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "apply", tmp_path, "builtin:iris")
    assert (code, "check the path" in err, "--resume" in err) == (2, True, False)
    (tmp_path / "work").mkdir()
    assert "isthmus discover DATA --resume" in said(capsys, "apply", tmp_path, "builtin:iris")[2]


def test_help_calls_arguments_as_the_reference_does() -> None:
    known: Any = typer.main.get_command(app)
    commands = [*known.commands.values(), *known.commands["sweep"].commands.values()]
    arguments = [p for one in commands for p in getattr(one, "params", []) if p.param_type_name == "argument"]
    assert len(arguments) >= 15
    assert [argument.metavar for argument in arguments] == [argument.name.upper() for argument in arguments]


def commands_of(group: Any, words: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every command under a group that is no group itself, with the words that call it."""
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, command in group.commands.items():
        inner = (*words, name)
        found += commands_of(command, inner) if hasattr(command, "commands") else [(inner, command)]
    return found


OPTIONS = [
    (words, option)
    for words, command in commands_of(typer.main.get_command(app))
    for option in command.params
    if option.param_type_name == "option" and not option.is_eager and not (option.is_flag and not option.secondary_opts)
]


@pytest.mark.parametrize(("words", "option"), OPTIONS, ids=[" ".join((*w, o.opts[0])) for w, o in OPTIONS])
def test_no_option_loses_the_first_of_two_values(
    words: tuple[str, ...], option: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [option.opts[0]] if option.is_flag else [option.opts[0], "1"]
    code, out, err = said(capsys, *words, *given, *given)
    assert (code, out) == (2, "")
    assert option.opts[0] in err
    assert "given 2 times. Give it once" in err
    assert (f"{option.opts[0]} COL,COL." in err) is ("COL,COL" in option.help)


def test_options_stand_under_what_they_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    _code, out, _err = said(capsys, "discover", "--help")
    places = [
        out.index(f" {name} ") for name in ("Task", "--target", "Search", "--ridge", "Results", "--out", "Machine")
    ]
    assert places == sorted(places)
    loose = out[out.index(" Options ") : out.index(" Task ")]
    assert set(re.findall(r"--\w+", loose)) == {"--json", "--quiet", "--verbose", "--help"}, "every other has a place"
    assert not re.search(r"\d{12}", out), "the end of a range takes the width of the words"


@pytest.mark.parametrize("words", [("discover", "a.npy", "--seed"), ("fit", "a.npy", "--ridge", "1", "--evaluations")])
def test_a_number_that_no_generator_takes_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _out, err = said(capsys, *words, 2**63)
    assert (code, f"{words[-1]} {2**63}: needs a number below 2^63" in err) == (2, True)
    assert "2^63" not in said(capsys, *words, 2**63 - 1)[2]


def test_a_switch_may_be_thrown_twice(capsys: pytest.CaptureFixture[str]) -> None:
    code, _out, err = said(capsys, "verify", "nowhere", "-q", "-q")
    assert code == 2
    assert "given 2 times" not in err


@pytest.mark.parametrize("is_json", [True, False])
def test_what_was_interrupted_prints_no_object(
    is_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A discovery, and a sweep, whose sentence then goes to stderr."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    table = write_table(tmp_path / "t.csv", ["a", "b", "y"], np.random.default_rng(0).normal(size=(60, 3)))
    monkeypatch.setattr("isthmus.cli.discover_run._search", interrupted)
    monkeypatch.setattr("isthmus.sweeps.sweeping.run_plan", interrupted)
    plan = tmp_path / "plan.toml"
    plan.write_text((Path(__file__).parents[2] / "examples" / "depth_sweep.toml").read_text())
    asked = [
        ["discover", table, "--target", "y", "--out", tmp_path / "run", *QUICK],
        ["sweep", "run", plan, "--out", tmp_path / "sweep"],
    ]
    for words in asked:
        code, out, err = said(capsys, *words, *(["--json"] if is_json else []))
        assert code == 130
        assert "interrupted" in (err if is_json else out + err)
        assert out == "" or not is_json
