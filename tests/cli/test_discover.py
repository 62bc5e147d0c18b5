import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isthmus import load
from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.discover_run import rows_of, search_options
from isthmus.cli.main import run
from isthmus.discovery.data.checking import checked_data, with_powers
from isthmus.discovery.kinds import trainable
from isthmus.errors import DataError, DataWarning
from isthmus.tasks import FORMULAS, formula


def test_the_command_asks_for_the_same() -> None:
    request = DiscoverRequest(
        "my data.csv", target="a b,c", seed=3, max_seconds=90.0, ordered=True, ridge="1e-2,1e-3", starts=2
    )
    assert shlex.split(request.command) == [
        "isthmus", "discover", "my data.csv", "--target", "a b,c", "--seed", "3", "--max-seconds", "90", "--ordered",
        "--ridge", "1e-2,1e-3", "--starts", "2",
    ]  # fmt: skip
    assert DiscoverRequest("a.csv", depth_path=True).command == "isthmus discover a.csv --depth-path"
    assert DiscoverRequest("builtin:digits").command == "isthmus discover builtin:digits"


def test_candidates_are_names_of_columns() -> None:
    request = DiscoverRequest("a.csv", candidates="age, body size")
    assert request.candidate_names == ("age", "body size")
    assert shlex.split(request.command)[-2:] == ["--candidates", "age, body size"]
    assert DiscoverRequest("a.csv").candidate_names == ()
    with pytest.raises(DataError, match="--candidates: names no column"):
        DiscoverRequest("a.csv", candidates=" ,")


def test_ridges_are_numbers_largest_first() -> None:
    assert DiscoverRequest("a.csv", ridge="1e-3, 1e-2,1e-3").ridges == [1e-2, 1e-3]
    assert DiscoverRequest("a.csv").ridges is None


@pytest.mark.parametrize("ridge", ["", "a", "1e-2;1e-3", "0", "-1", "inf", "nan", "1e-2,"])
def test_what_is_no_ridge_is_refused(ridge: str) -> None:
    with pytest.raises(DataError, match="positive numbers separated by commas"):
        DiscoverRequest("a.csv", ridge=ridge)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_time_limit_is_positive(seconds: float) -> None:
    with pytest.raises(DataError, match="positive number of seconds"):
        DiscoverRequest("a.csv", max_seconds=seconds)


def test_halves_logarithms_and_units_are_part_of_the_command() -> None:
    request = DiscoverRequest("a.csv", target="y", encoder="linear", log="T, rho", units="u.toml", ranks=True)
    assert shlex.split(request.command)[5:] == [
        "--encoder",
        "linear",
        "--log",
        "T, rho",
        "--units",
        "u.toml",
        "--ranks",
    ]
    assert request.logs == ("T", "rho")
    assert (DiscoverRequest("a.csv", log="all").logs, DiscoverRequest("a.csv").logs) == ("all", None)
    assert request.default_folder != DiscoverRequest("a.csv", target="y").default_folder


def test_units_in_the_table_are_those_of_a_file(tmp_path: Path) -> None:
    known, task = FORMULAS["pendulum"], formula("pendulum", num_samples=60, seed=1)
    table = pd.DataFrame(task.x, columns=list(known.columns)).assign(period=task.y[:, 0]).astype(object)  # pyright: ignore[reportOptionalSubscript]
    units = {"length": "m", "gravity": "m/s^2", "amplitude": "-", "mass": "kg", "period": "s"}
    pd.concat([pd.DataFrame([units]), table]).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "u.csv").write_text("column,unit\n" + "".join(f"{n},{u.replace('-', '1')}\n" for n, u in units.items()))
    asked = [
        DiscoverRequest(str(tmp_path / "t.csv"), target="period", units=u) for u in ("table", str(tmp_path / "u.csv"))
    ]
    told = list[dict[str, object]]()
    for request in asked:
        with pytest.warns(DataWarning, match="line 2 holds"):
            rows = rows_of(request, lambda _: None)
        options = search_options(rows, request)
        powers = with_powers(
            checked_data(rows.x, rows.y, None, columns=rows.made), options["log"], options["units"]
        ).powers
        assert powers is not None
        told.append(powers.as_plain())
    assert told[0] == told[1]
    assert told[0]["target_exponents"] != [["0"] * 4]
    assert told[0]["logged"] == ["length", "gravity", "mass"]
    assert "--units table" in asked[0].command


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"encoder": "linear", "decoder": "linear"}, "the whole map is linear then"),
        ({"encoder": "linear", "network": "leaky"}, "--encoder linear --network leaky"),
        ({"decoder": "linear", "depth_path": True}, "--decoder linear --depth-path"),
        ({"ranks": True, "network": "resnet"}, "--ranks --network resnet"),
        ({"decoder": "bent"}, "--decoder bent: needs curved or linear"),
        ({"effort": "much"}, "--effort much: needs quick or default or thorough"),
        ({"scaling": "big"}, "--scaling big: needs auto or column or global"),
        ({"network": "leek"}, f"--network leek: needs one of {', '.join(trainable())}"),
    ],
    ids=["both", "residual", "depth path", "all ranks", "no half", "no effort", "no scaling", "no network"],
)
def test_words_and_halves_that_do_not_go_together_are_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        DiscoverRequest("a.csv", **asked)


@pytest.mark.slow
def test_units_of_a_table_with_a_constant_column_go_through_to_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a small pendulum on earth no group is left: its period over that of its length is one number."""
    known, task = FORMULAS["pendulum"], formula("pendulum", num_samples=60, seed=1)
    table = pd.DataFrame(task.x, columns=list(known.columns)).assign(gravity=9.81)
    table["period"] = 2 * np.pi * np.sqrt(table["length"] / 9.81) * (1 + 0.3 * np.sin(table["amplitude"]))
    table.to_csv(tmp_path / "swings.csv", index=False)
    units = 'length = "m"\ngravity = {m = 1, s = -2}\namplitude = {}\nmass = {kg = 1}\nperiod = {s = 1}\n'
    (tmp_path / "units.toml").write_text(f"[columns]\n{units}")
    words = ["discover", str(tmp_path / "swings.csv"), "--target", "period", "--units", str(tmp_path / "units.toml")]
    words += ["--log", "amplitude", "--ridge", "3e-3", "--starts", "1", "--evaluations", "200", "--no-pictures"]
    assert run([*words, "--out", str(tmp_path / "run")]) in {0, 3}
    said = capsys.readouterr()
    assert "period (gravity / length)^(1/2)" in " ".join(said.err.split())
    assert load(tmp_path / "run").groups == [{"amplitude": 1}]
    assert "amplitude" in said.out
    assert run([*words, "--resume", str(tmp_path / "run")]) in {0, 3}
    apply = ["apply", str(tmp_path / "run"), str(tmp_path / "swings.csv"), "--what", "prediction"]
    assert run([*apply, "--out", str(tmp_path / "periods.csv")]) == 0
    found = pd.read_csv(tmp_path / "periods.csv")["period"]
    assert np.median(np.abs(found / table["period"] - 1)) < 0.1, "seconds, not the pure number"
    (tmp_path / "units.toml").write_text(f"[columns]\n{units.replace('s = 1', 'A = 1')}")
    assert run([*words, "--out", str(tmp_path / "other")]) == 2
    assert "base unit A" in capsys.readouterr().err.splitlines()[-1]


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    table["y"] = np.sin(table["a"]) + 0.1 * table["b"]
    table.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    words = ["discover", "table.csv", "--target", "y", "--evaluations", "30", "--workers", "2", "--dry-run"]
    assert run(words) == 0
    said = capsys.readouterr().out
    assert "3 inputs and 1 output" in said
    assert "of memory" in said
    assert run([*words, "--effort", "quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["inputs"], told["workers"], told["evaluations_of_doubts"]) == (60, 3, 2, 0)
    assert told["seconds"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert run([*words, "--ridge", "-1"]) == 2


@pytest.mark.parametrize("seconds", [90.0, 0.00123456789, 1234567.0, 1e-7])
def test_numbers_of_a_command_are_those_that_were_given(seconds: float) -> None:
    """Six digits of a ridge ask for another one."""
    words = shlex.split(DiscoverRequest("a.csv", max_seconds=seconds).command)
    assert float(words[words.index("--max-seconds") + 1]) == seconds
