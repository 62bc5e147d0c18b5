import csv
import io
import shutil
from pathlib import Path

import numpy as np
import pytest

import discoveries
from command_lines import line_of
from isthmus.cli.main import run


def applied(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apply") / "run"
    discoveries.discovery().save(folder)
    return folder


def test_apply_gives_the_coordinates_of_new_rows(table: Path, saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["apply", str(saved), str(table)]) == 0
    head, *rows = applied(capsys.readouterr().out)
    assert head == ["coordinate 1", "coordinate 2", "coordinate 3"]
    expected = discoveries.discovery().transform(discoveries.inputs())
    np.testing.assert_array_equal(np.array(rows, dtype=float), expected)


def test_apply_writes_predictions_to_a_file(
    table: Path, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["apply", str(saved), str(table), "--what", "prediction", "--out", str(tmp_path / "p.csv")]) == 0
    assert capsys.readouterr() == ("", "")
    head, *rows = applied((tmp_path / "p.csv").read_text())
    assert head == list(discoveries.TARGETS)
    np.testing.assert_array_equal(np.array(rows, dtype=float), discoveries.discovery().predict(discoveries.inputs()))


def test_apply_names_the_likeliest_class(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = discoveries.discovery(task="classification")
    found.save(tmp_path / "run")
    assert run(["apply", str(tmp_path / "run"), str(table), "--what", "prediction"]) == 0
    head, *rows = applied(capsys.readouterr().out)
    assert head == ["class", *(f"logit of {name}" for name in discoveries.TARGETS)]
    best = found.predict(discoveries.inputs()).argmax(axis=1)
    assert [row[0] for row in rows] == [discoveries.TARGETS[i] for i in best]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "table.csv"], "no finished run"),
        (["run", "missing.csv"], "no such file"),
        (["run", "builtin:iris"], "lacks 5 of the 5 input columns"),
        (["run", "table.csv", "--out", "none/a.csv"], "its folder does not exist"),
        (["run", "table.csv", "--what", "colour"], "Invalid value for '--what'"),
    ],
)
def test_apply_refuses_in_one_line(
    table: Path, saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(table.parent)
    shutil.copytree(saved, "run")
    assert run(["apply", *arguments]) == 2
    assert message in line_of(capsys.readouterr().err)
