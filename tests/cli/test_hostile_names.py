"""Law: whatever a column, class, group, candidate or folder is called, nothing throws and no result changes it."""

import csv
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import discoveries
import isthmus
from command_lines import line_of
from hostile_names import NAMES, REFUSED
from isthmus import plots
from isthmus.cli.data import TargetChoice, read_rows
from isthmus.cli.main import run
from isthmus.discovery.files.netcdf import read_table
from isthmus.reports.picture import Picture, inline_svg

X = np.random.default_rng(0).normal(size=(48, 12))
QUICK = ["--starts", "1", "--evaluations", "10", "--ridge", "1e-2"]
ALL = list(NAMES.values())
_HARDEST = (
    "half a formula", "closing markup", "script", "two lines", "turned round", "underscore", "comma", "emoji", "long",
    "equals", "entity",
)  # fmt: skip
HARDEST = [NAMES[key] for key in _HARDEST]
MISSING = {"nan", "None"}  # what cells of a .csv without content may say


def write(path: Path, names: list[str], **columns: list[str]) -> Path:
    """Numbers under these names, and columns of text beside them."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow([*names, *columns])
        for i in range(len(X)):
            numbers = [repr(float(X[i, j % 12] + 0.1 * j * X[i, (j + 1) % 12])) for j in range(len(names))]
            rows.writerow([*numbers, *(values[i % len(values)] for values in columns.values())])
    return path


def quoted(names: list[str]) -> str:
    """The names as an option takes them."""
    return ",".join('"' + name.replace('"', '""') + '"' for name in names)


@pytest.mark.dear(24)
@pytest.mark.parametrize("name", ALL, ids=list(NAMES))
def test_every_name_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    label = f"{name}." if name in MISSING else name
    table = write(tmp_path / "t.csv", [name, "b", "c"], g=[label, "other"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", isthmus.errors.DataWarning)  # text becomes 0/1 columns
        as_input = read_rows(str(table), TargetChoice(target=("c",)), groups="g")
        as_target = read_rows(str(table), TargetChoice(target=(name,)))
        as_class = read_rows(str(table), TargetChoice(classes="g"))
        beside = read_rows(str(table), TargetChoice(target=("c",)), candidates=(name,))
    assert list(as_input.names) == [name, "b"]
    assert as_target.y is not None
    assert list(as_target.y.columns) == [name]
    assert f"g={label}" in as_target.names
    assert as_class.y is not None
    assert set(as_class.y.columns) == {label, "other"}
    assert list(beside.candidates) == [name]


@pytest.mark.parametrize("name", REFUSED.values(), ids=list(REFUSED))
def test_names_that_no_file_can_hold_are_refused_when_they_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    np.savez(tmp_path / "c.npz", x=X, y=np.array([name, "other"] * 24))
    assert run(["discover", str(tmp_path / "c.npz"), "--classes", "y", "--out", str(tmp_path / "out")]) == 2
    assert "which no text can hold" in line_of(capsys.readouterr().err)
    assert not (tmp_path / "out").exists()
    columns = pd.Index([name, *map(str, range(11))], dtype=object)
    with pytest.raises(isthmus.errors.DataError, match="which no text can hold"):
        isthmus.discover(pd.DataFrame(X, columns=columns), effort="quick")


def checked_run(folder: Path, names: list[str], *, classes: list[str] | None = None, kind: str = "target") -> None:
    """A discovery with pictures of columns of these names, and what is done with its folder."""
    extra = {"cand": ["u"]} if classes is None else {"kind": classes}
    table = write(folder / "t.csv", [*names, "last", "beside"], **extra)
    out = folder / f"run {names[0][:20].replace('/', '_')}"
    chosen = ["--classes", "kind"] if classes else [f"--{kind}"] + ([quoted(names[:3])] if kind == "target" else [])
    beside = ["--candidates", quoted([*names[-3:], "cand" if classes is None else "beside"])]
    assert run(["discover", str(table), *chosen, *beside, "--out", str(out), *QUICK]) in {0, 3}
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    inputs = names[:-3] if classes or kind == "autoencode" else names[3:-3]
    wanted = [*inputs, "last"] if classes else [*inputs, "last", "beside"]
    assert result["input_names"] == wanted
    if classes:
        assert sorted(result["target_names"]) == sorted(classes)
    elif kind == "target":
        assert result["target_names"] == names[:3]
    assert (out / "interpretation.nc").exists() == (result["rank"] > 0)  # so short a search may find nothing at all
    if result["rank"]:
        meaning = read_table(out / "interpretation.nc")
        assert [str(name) for name in meaning["input"].values] == wanted
    pictures = sorted(out.glob("plots/*.svg"))
    assert pictures
    for picture in pictures:
        ElementTree.parse(picture)  # noqa: S314 - written by ourselves
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1  # our own
    assert 'onmouseover="' not in page
    assert "\u202e" not in page
    for what in ("coordinates", "prediction"):
        written = folder / f"{what}.csv"
        assert run(["apply", str(out), str(table), "--what", what, "--out", str(written)]) == 0
        with written.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        assert len(rows) == len(X) + 1
        if what == "prediction" and kind == "target" and not classes:
            assert [name.strip() for name in rows[0]] == [name.strip() for name in names[:3]]
    code = run(["diagnose", str(out), "--data", str(table), "--out", str(folder / "d.html")])
    assert code == (0 if result["rank"] else 2)


@pytest.mark.slow
def test_a_discovery_of_the_hardest_names(tmp_path: Path) -> None:
    checked_run(tmp_path, HARDEST)


@pytest.mark.parametrize("first", range(0, len(ALL), 12))
def test_pictures_take_every_name_as_it_stands(first: int) -> None:
    names = ALL[first : first + 12]
    coordinates = {"coordinate": [1], "input": names}
    cells = xr.DataArray(np.ones((1, len(names))), dims=("coordinate", "input"), coords=coordinates)
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    pieces = [square + i for i in range(len(names))]
    for draw in (
        lambda: plots.attributions(xr.Dataset({"attribution": cells})),
        lambda: plots.regions(
            pieces, range(len(names)), names=dict(enumerate(names)), axis_names=(names[0], names[-1])
        ),
    ):
        svg = inline_svg(Picture("picture", "", "", draw))
        ElementTree.fromstring(svg)  # noqa: S314 - written by ourselves
        assert "alert" not in svg


@pytest.mark.slow
def test_a_run_with_the_hardest_names_is_kept_applied_and_reported(tmp_path: Path) -> None:
    inputs, targets = tuple(HARDEST[:5]), tuple(HARDEST[5:9])
    found = discoveries.discovery(input_names=inputs, target_names=targets)
    found.save(tmp_path / "run")
    again = isthmus.load(tmp_path / "run")
    assert (again.input_names, again.target_names) == (inputs, targets)
    table = write(tmp_path / "t.csv", [*reversed(inputs), "other"])
    assert (
        run(["apply", str(tmp_path / "run"), str(table), "--what", "prediction", "--out", str(tmp_path / "p.csv")]) == 0
    )
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as stream:
        assert next(csv.reader(stream)) == list(targets)
    isthmus.report(again, tmp_path / "page.html")
    assert run(["diagnose", str(tmp_path / "run"), "--data", str(table), "--out", str(tmp_path / "d.html")]) == 0
    for page in (tmp_path / "page.html", tmp_path / "d.html"):
        text = page.read_text(encoding="utf-8")
        assert text.count("<script") == 1  # our own
        assert "\u202e" not in text


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["target", "autoencode", "classes"])
@pytest.mark.parametrize("first", range(0, len(ALL), 8))
def test_a_discovery_of_all_names(tmp_path: Path, first: int, kind: str) -> None:
    names = [ALL[i % len(ALL)] for i in range(first, first + 12)]
    if kind == "classes":
        names = [name for name in names if name not in MISSING]
    checked_run(tmp_path, names, classes=names[:8] if kind == "classes" else None, kind=kind)


@pytest.mark.slow
def test_a_terminal_takes_what_its_encoding_lacks(tmp_path: Path) -> None:
    """A folder of letters that a terminal does not know."""
    folder = tmp_path / "caf\u00e9 \u6e29"
    discoveries.discovery().save(folder)
    table = write(tmp_path / "t.csv", [*discoveries.INPUTS])
    page = folder / "page.html"
    words = ["-m", "isthmus", "diagnose", str(folder), "--data", str(table), "--out", str(page)]
    done = subprocess.run(
        [sys.executable, *map(os.fsencode, words)], capture_output=True, timeout=300,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"caf\\xe9 \\u6e29" in done.stdout
    assert "caf\u00e9 \u6e29" in page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n in ALL if n not in {".", "~"}], ids=[k for k in NAMES if k not in {"dot", "home"}]
)
def test_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    table = write(tmp_path / "t.csv", ["a", "b", "c"])
    out = tmp_path / name[:100].replace("/", "_")
    # of its inputs: of `c`, which is noise, ten gradients find nothing, and a constant has nothing to be diagnosed
    assert run(["discover", str(table), "--autoencode", "--out", str(out), *QUICK]) in {0, 3}
    assert run(["apply", str(out), str(table)]) == 0
    assert run(["diagnose", str(out), "--data", str(table), "--out", str(tmp_path / "d.html")]) == 0
    assert (tmp_path / "d.html").read_text(encoding="utf-8").count("<script") == 1  # our own
