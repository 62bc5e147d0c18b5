import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discover_options import OTHER_ANSWERS
from isthmus.cli.data import choice_of, read_rows
from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.discover_run import rows_of as rows_of_request
from isthmus.cli.finished_run import finished
from isthmus.cli.main import run as main
from isthmus.cli.shared_options import plain_fields, words_of
from isthmus.discovery import Discovery, discover
from isthmus.discovery.data.checking import checked_data
from isthmus.errors import DataError, DataWarning
from isthmus.training import Limits
from isthmus.writing.checksums import opened_json, sealed_json

LINEAR, RANDOM = "linear", "random"
OPTIONS: dict[str, Any] = {"encoder": "linear", "evaluations": 12, "effort": "quick", "ridge": "1e-2"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two starts with a linear encoder, its data beside it."""
    folder = tmp_path_factory.mktemp("run")
    x = np.random.default_rng(0).normal(size=(60, 3))
    np.savez(folder / "d.npz", x=x, y=np.sin(x[:, :2].sum(1, keepdims=True)))
    discover(
        *rows_of(folder), encoder="linear", starts=2, ridge=1e-2, effort="quick", limits=Limits(evaluations=12),
        out=folder / "run",
    )  # fmt: skip
    return folder


def rows_of(folder: Path) -> tuple[Any, Any]:
    rows = read_rows(str(folder / "d.npz"), choice_of(None, None, autoencode=False))
    return pd.DataFrame(rows.x, columns=list(rows.names)), rows.y


def resumed(folder: Path, starts: int | None, *, loss: str | None = None, shift: float = 0.0) -> Discovery:
    rows = read_rows(str(folder / "d.npz"), choice_of(None, None, autoencode=False))
    request = DiscoverRequest(str(folder / "d.npz"), starts=starts, **OPTIONS)
    data = checked_data(rows.x + shift, rows.y, loss or rows.loss, columns=rows.made)
    return finished(folder / "run", rows, request, data)


def rewritten(folder: Path, starts: list[str], *, older: bool) -> None:
    """As an older version would have written it, or this one after another request."""
    path = folder / "run" / "result.json"
    content = opened_json(path.read_bytes())
    content["settings"]["starts"] = starts
    content["remedies"] = []
    if older:
        del content["remedies"]
    path.write_bytes(sealed_json(content))


def test_a_run_is_taken_for_what_was_asked_for_and_nothing_else(run: Path) -> None:
    rewritten(run, [RANDOM, RANDOM], older=False)
    assert resumed(run, 2).settings["starts"] == (RANDOM, RANDOM)
    for other in (None, 1, 3):
        with pytest.raises(DataError, match=r"the finished run there has other starts\. Give another folder"):
            resumed(run, other)


def test_another_loss_is_called_so_and_other_data_too(run: Path) -> None:
    rewritten(run, [RANDOM, RANDOM], older=False)
    with pytest.raises(DataError, match=r"has other loss\. Give"):
        resumed(run, 2, loss="gaussian")
    with pytest.raises(DataError, match=r"has other data\. Give"):
        resumed(run, 2, shift=0.5)


@pytest.mark.parametrize(
    ("asked", "made"), [(1, [LINEAR]), (2, [RANDOM] * 3), (3, [LINEAR, RANDOM, RANDOM]), (None, [RANDOM] * 3)]
)
def test_a_run_of_an_older_version_is_known_by_the_starts_that_it_made(
    run: Path, asked: int | None, made: list[str]
) -> None:
    rewritten(run, made, older=True)
    assert json.loads((run / "run" / "result.json").read_text())["settings"]["starts"] == made
    resumed(run, asked)
    with pytest.raises(DataError, match="has other starts"):
        resumed(run, 4)
    rewritten(run, made, older=False)
    if asked is not None:
        with pytest.raises(DataError, match="has other starts"):
            resumed(run, asked)


def test_a_run_of_rows_that_repeat_others_knows_its_data_again(tmp_path: Path) -> None:
    x = np.tile(np.random.default_rng(0).normal(size=(40, 3)), (3, 1))
    np.savez(tmp_path / "d.npz", x=x, y=np.sin(x[:, :2].sum(1, keepdims=True)))
    rows = read_rows(str(tmp_path / "d.npz"), choice_of(None, None, autoencode=False))
    with pytest.warns(DataWarning, match="80 of 120 rows repeat others"):
        found = discover(
            *rows_of(tmp_path),
            encoder="linear",
            starts=1,
            ridge=1e-2,
            effort="quick",
            limits=Limits(evaluations=12),
            out=tmp_path / "run",
            rows=100,
        )
    assert (found.settings["rows"], found.settings["copies"]) == (40, 80)
    assert any("80 of 120 rows repeat others" in warning for warning in found.warnings)
    request = DiscoverRequest(str(tmp_path / "d.npz"), starts=1, rows=100, **OPTIONS)
    data = checked_data(rows.x, rows.y, rows.loss, columns=rows.made)
    assert finished(tmp_path / "run", rows, request, data).rank == found.rank
    once = data.rows(np.arange(40))
    with pytest.raises(DataError, match="has other data"):
        finished(tmp_path / "run", rows, request, once)


@pytest.mark.parametrize(
    ("asked", "told"),
    [({"effort": "thorough"}, "effort"), ({"control": True}, "control (none)"), ({"groups": "g"}, "groups"),
     ({}, "effort")],
)  # fmt: skip
def test_work_that_was_not_done_is_no_finished_run(asked: dict[str, Any], told: str, tmp_path: Path) -> None:
    """The quick answer had been shown with the command that asked for more."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    table = pd.DataFrame(x, columns=["a", "b"]).assign(y=x[:, 0], z=x[:, 1], g=[f"g{i % 6}" for i in range(60)])
    table.to_csv(tmp_path / "t.csv", index=False)
    common = ["--target", "y,z", "--leave-out", "g", "--ridge", "1e-2", "--starts", "1", "--evaluations", "12"]
    start = ["discover", str(tmp_path / "t.csv"), *common, "--no-pictures", "--effort", "quick"]
    assert main([*start, "--out", str(tmp_path / "run")]) in {0, 3}
    options: dict[str, Any] = {"target": "y,z", "ridge": "1e-2", "starts": 1, "evaluations": 12}
    options.update({"effort": "quick", **asked} if asked else {})
    options.update({} if "groups" in asked else {"leave_out": "g"})
    request = DiscoverRequest(str(tmp_path / "t.csv"), **options)
    rows = rows_of_request(request, print)
    with pytest.raises(DataError, match=f"has other {re.escape(told)}"):
        finished(tmp_path / "run", rows, request, checked_data(rows.x, rows.y, rows.loss, columns=rows.made))


def test_groups_are_known_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    table = pd.DataFrame(x, columns=["a", "b"]).assign(y=x[:, 0], z=x[:, 1], g=[f"g{i % 6}" for i in range(60)])
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ["--target", "y,z", "--groups", "g", "--ridge", "1e-2", "--starts", "1", "--evaluations", "12"]
    command = ["discover", str(tmp_path / "t.csv"), *options, "--no-pictures", "--effort", "quick"]
    assert main([*command, "--out", str(tmp_path / "run")]) in {0, 3}
    assert main([*command, "--resume", str(tmp_path / "run")]) in {0, 3}


# what is compared for these is the data that they give, and of candidates and time the answer does not depend
SAME_ANSWER = {"data", "max_seconds", "candidates", "drop_missing", "impute", "sep", "decimal", "encoding", "comment"}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """A folder with a table and the finished run of these options."""
    folder, rng = tmp_path_factory.mktemp("usual"), np.random.default_rng(0)
    a, b = np.exp(2 * rng.normal(size=60)), rng.normal(size=60)
    table = pd.DataFrame({"a": a, "b": b, "y": np.log(a) + b, "z": b, "g": [f"g{i % 6}" for i in range(60)]})
    table.assign(c=["p" if value > 0 else "q" for value in b]).to_csv(folder / "t.csv", index=False)
    given = {
        "target": "y,z",
        "leave_out": "c,g",
        "ridge": "1e-2",
        "starts": "1",
        "evaluations": "12",
        "effort": "quick",
    }
    options = {name: words_of({name: value}) for name, value in given.items()}
    assert main(typed(folder, options, "--out")) in {0, 3}
    return folder, options


def typed(folder: Path, options: dict[str, list[str]], place: str) -> list[str]:
    words = [word for option in options.values() for word in option]
    return ["discover", str(folder / "t.csv"), *words, "--no-pictures", place, str(folder / "run")]


@pytest.mark.parametrize("name", plain_fields(DiscoverRequest("a.csv")))
def test_every_option_makes_another_run_but_those_of_the_same_answer(
    name: str, usual: tuple[Path, dict[str, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, options = usual
    asked = options | ({} if name == "data" else {name: OTHER_ANSWERS[name]})
    if name in {"autoencode", "classes"}:
        del asked["target"]
    if name in {"classes", "groups", "candidates"}:
        asked["leave_out"] = ["--leave-out", "c" if name != "classes" else "g"]
    ended, told = main(typed(folder, asked, "--resume")), capsys.readouterr().err
    if name in SAME_ANSWER:
        assert ended in {0, 3}, told
    else:
        assert ended == 2
        assert "the finished run there has other" in told or name == "units", told
