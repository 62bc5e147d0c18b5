"""What `isthmus sweep table` and `plot` say of runs that are lost, warn, lack numbers or are of unlike kinds."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from command_lines import line_of
from isthmus.cli.main import run
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.store import Store
from sweep_plans import finished_row

HAMILTONIAN = "leaky_diagnosis: the network is far from critical."


def folder_of(place: Path, rows: Sequence[Row]) -> str:
    """A folder of a sweep with these runs in its index."""
    store = Store.make(place / "out")
    with closing(store.opened_index(lambda _text: None)) as index:
        index.put(rows)
    return str(place / "out")


def of_kind(kind: str, number: int, **numbers: object) -> Row:
    """A run of a network of this kind."""
    network: dict[str, object] = {"kind": kind, "depth": number}
    if kind == "leaky":
        network["effective_depth"] = 0.5 * number
    settings: dict[str, dict[str, object]] = {"network": network, "training": {"ridge": 0.1}}
    told = {"outcome": "PLATEAU", "objective": 0.1 * number, **numbers}
    return Row(f"{kind}{number}", Status.DONE, settings, told)


LEAKY = [of_kind("leaky", n, rank_jacobian=2, warnings=HAMILTONIAN) for n in (1, 2, 3)]
RESNETS = [of_kind("resnet", n, rank_jacobian=3) for n in (4, 5)]


@pytest.mark.parametrize(
    ("rows", "column"), [(LEAKY, "rank_jacobian"), (RESNETS, "rank_jacobian")], ids=["leaky", "resnet"]
)
def test_networks_without_a_middle_have_a_column_and_a_picture_of_their_rank(
    rows: list[Row], column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(tmp_path, rows)
    assert run(["sweep", "table", folder]) == 0
    assert column in capsys.readouterr().out.splitlines()[0].split()
    assert run(["sweep", "plot", folder]) == 0
    assert f"objective, {column} against network.depth" in capsys.readouterr().out


def test_what_was_said_of_runs_is_told_once_beside_the_table_and_in_every_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = finished_row(3, 0.1, 0, outcome="COLLAPSED")
    folder = folder_of(tmp_path, [*LEAKY, lost])
    assert run(["sweep", "table", folder]) == 0
    shown = capsys.readouterr()
    told = " ".join(shown.err.split())
    assert len(shown.out.splitlines()) == 5, "the table alone, for programs"
    assert told.count(HAMILTONIAN) == 1
    assert f"warning of leaky1, leaky2, leaky3: {HAMILTONIAN}" in told
    assert f"no rank_estimate of {lost.id}: the training collapsed" in told
    for suffix, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        assert run(["sweep", "table", folder, "--out", str(tmp_path / f"a{suffix}")]) == 0
        table = read(tmp_path / f"a{suffix}").set_index("id")
        assert table.loc["leaky2", "warnings"] == HAMILTONIAN
        assert "collapsed" in table.loc[lost.id, "rank_missing"]
        assert pd.isna(table.loc[lost.id, "rank"])


def test_the_axis_is_a_setting_that_every_run_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With leaky networks beside others it was their effective depth, and the others were gone without a word."""
    folder = folder_of(tmp_path, [*LEAKY, *RESNETS])
    assert run(["sweep", "plot", folder]) == 0
    assert "against network.depth, by network.kind" in capsys.readouterr().out
    assert run(["sweep", "plot", folder, "--replace", "--axis", "effective_depth"]) == 0
    assert "objective: left out: 2 without effective_depth" in capsys.readouterr().out


def test_settings_that_are_words_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [finished_row(3, 0.1, 0)]
    rows.append(
        Row("b", Status.DONE, {**rows[0].settings, "training": {"ridge": 0.1, "scaling": "none"}}, rows[0].numbers)
    )
    assert run(["sweep", "plot", folder_of(tmp_path, rows)]) == 0
    assert "objective, rank against training.scaling" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        ("", "--quantity '': names no number. Known are objective"),
        (",", "--quantity '': names no number. Known are objective"),
        ("objective,rank", "has rank and network.depth yet. There are objective, rank_jacobian"),
    ],
)
def test_numbers_that_nobody_has_make_no_empty_picture(
    quantity: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", "plot", folder_of(tmp_path, LEAKY), "--quantity", quantity]) == 2
    assert said in line_of(capsys.readouterr().err)


def test_runs_that_differ_in_too_many_words_are_said_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = finished_row(3, 0.1, 0)
    rows = [Row(f"{n}", Status.DONE, {**base.settings, "network": {"act": f"w{n}"}}, base.numbers) for n in range(12)]
    assert run(["sweep", "plot", folder_of(tmp_path, rows)]) == 2
    assert "its runs differ in network.act alone" in line_of(capsys.readouterr().err)
    assert run(["sweep", "plot", folder_of(tmp_path / "b", rows[:1])]) == 2
    assert "no setting differs between its runs" in line_of(capsys.readouterr().err)
