"""An option that was given the next one for a word says so; --log alone is all columns that are wide."""

import pytest
from typer.main import get_command

from isthmus.cli.commands import app
from isthmus.cli.discover import discover
from isthmus.cli.main import run
from isthmus.cli.typed import ALONE


def commands() -> dict[tuple[str, ...], object]:
    whole = get_command(app)
    subcommands = dict(whole.commands)  # pyright: ignore[reportAttributeAccessIssue]
    found: dict[tuple[str, ...], object] = {(name,): command for name, command in subcommands.items()}
    sweep = found.pop(("sweep",))
    return found | {("sweep", name): command for name, command in sweep.commands.items()}  # pyright: ignore[reportAttributeAccessIssue]


def hungry() -> list[tuple[tuple[str, ...], str]]:
    return [
        (words, option.opts[0])
        for words, command in commands().items()
        for option in command.params  # pyright: ignore[reportAttributeAccessIssue]
        if option.param_type_name == "option" and not option.is_flag and option.opts[0] not in ALONE
    ]


@pytest.mark.slow
def test_no_option_takes_another_for_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(hungry()) > 80
    for words, option in hungry():
        assert run([*words, option, "--json"]) == 2
        assert f"{option} needs a word after it, and --json is an option" in capsys.readouterr().err


@pytest.mark.parametrize("after", [["--target", "F"], ["--ranks", "--target", "F"], []])
def test_log_alone_is_all_wide_columns(after: list[str]) -> None:
    assert logs(["discover", "table.csv", "--log", *after]) == "all"


@pytest.mark.parametrize(
    ("typed", "log"),
    [(["--log", "a,b"], "a,b"), (["--log=--json"], "--json"), (["--target", "F"], None), (["--log", "all"], "all")],
)
def test_what_has_its_word_is_left_as_it_is(typed: list[str], log: str | None) -> None:
    assert logs(["discover", "table.csv", *typed]) == log


def logs(words: list[str]) -> str | None:
    command = commands()[(discover.__name__,)]
    return command.make_context("discover", words[1:]).params["log"]  # pyright: ignore[reportAttributeAccessIssue]
