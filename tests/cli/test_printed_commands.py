"""A command that is printed, typed again, asks for the same: whatever the files, columns and numbers are called."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import isthmus.cli.diagnose_run
import isthmus.cli.discover_run
from discover_options import OTHER_ANSWERS
from hostile_names import NAMES
from isthmus.cli.diagnose import DiagnosisRequest
from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.main import run
from isthmus.cli.shared_options import plain_fields, words_of

FILES = ["-x.csv", "--resume", "-", "a b.csv", "it's.csv", "$HOME.csv", "builtin:digits", "温度.csv", "a=b", '"q".csv']
NUMBERS = [1e-320, 0.1, 1 / 3, 12345.678, 1e22, 123456789.123456]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Any]:
    """The request that a command line makes, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    requests: list[Any] = []

    def keep(*given: Any, **_: Any) -> int:
        requests.append(next(one for one in given if isinstance(one, DiscoverRequest | DiagnosisRequest)))
        return 0

    monkeypatch.setattr(isthmus.cli.discover_run, "run_in", keep)
    monkeypatch.setattr(isthmus.cli.diagnose_run, "diagnose_to", keep)

    def typed(command: str) -> Any:
        words = shlex.split(command)
        assert words[0] == "isthmus"
        assert run([*words[1:], "--quiet"]) == 0
        return requests.pop()

    return typed


def here(file: str) -> str:
    return file.removeprefix("./")


@pytest.mark.parametrize("file", FILES)
def test_files(file: str, heard: Callable[[str], Any]) -> None:
    assert here(heard(DiscoverRequest(file).command).data) == file
    again = heard(DiagnosisRequest(Path(file), data=file).command)
    assert (here(str(again.model)), here(again.data)) == (file, file)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names(name: str, heard: Callable[[str], Any]) -> None:
    assert heard(DiscoverRequest("a.csv", target=name, groups=name).command) == DiscoverRequest(
        "a.csv", target=name, groups=name
    )
    request = DiagnosisRequest(Path("m.pt"), data="a.npz", target=name, factory=name, jacobians=True)
    assert heard(request.command) == request


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers(number: float, heard: Callable[[str], Any]) -> None:
    request = DiscoverRequest("a.csv", max_seconds=number)
    assert heard(request.command) == request
    asked = DiagnosisRequest(Path("m.pt"), data="a.npz", ridge=number, memory=number)
    assert heard(asked.command) == asked


@pytest.mark.parametrize("name", plain_fields(DiscoverRequest("a.csv")))
def test_every_option_is_in_the_command(name: str, heard: Callable[[str], Any]) -> None:
    if name == "data":
        return
    asked = heard(shlex.join(["isthmus", "discover", "a.csv", *OTHER_ANSWERS[name]]))
    assert plain_fields(asked)[name] != plain_fields(DiscoverRequest("a.csv"))[name]
    assert heard(asked.command) == asked


def test_a_folder_may_begin_with_a_dash() -> None:
    assert words_of({"resume": Path("-runs")}) == ["--resume=-runs"]
