"""The command of index ranks: its cases, its table, and what it says, with stand-ins for the search."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import index_rank
from index_rank import SUITES, cases_of, main
from isthmus.errors import DataError
from isthmus.tasks import Inputs, Link, Predictors, ReductionModel
from measured.index_cases import CHANGES, MetamorphicCase, ModeCase, MultiIndexCase, OrderCase
from measured.index_rows import COLUMNS, Table, counts, of_reduction, read_lines
from measured.inverse_regression import directional
from measured.known_cases import (
    EngineeringCase,
    FormulaCase,
    ReductionCase,
    SpreadCase,
    UnitsCase,
    leading_directions,
)
from measured.spans import Array

DRAWN = "89df44a"  # the commit whose cases the notes are about
COUNTS = {
    "multi-index": 200, "sdr": 540, "variance": 10, "groups": 48, "units": 16, "engineering": 12, "mode": 60,
    "order": 20, "metamorphic": 40,
}  # fmt: skip


def stand_in(
    rank: int = 1,
    *,
    verdict: str = "CONFIDENT",
    calls: list[dict[str, Any]] | None = None,
    groups: Sequence[Mapping[str, float]] = (),
) -> Any:
    """A search that always answers this rank, with directions of directional regression and a linear prediction."""

    def search(x: Array, y: Array, **settings: Any) -> SimpleNamespace:
        if calls is not None:
            calls.append(settings)
        x, y = np.asarray(x), np.asarray(y)
        directions = directional(x, y, rank)
        design = np.column_stack([np.ones(len(x)), x])
        solved = np.linalg.lstsq(design, y, rcond=None)[0]
        return SimpleNamespace(
            rank=rank,
            verdict=SimpleNamespace(name=verdict),
            directions=directions,
            reasons=("one", "two"),
            groups=groups,
            powers=None,
            predict=lambda z: np.column_stack([np.ones(len(z)), z]) @ solved,
            transform=lambda z: z @ directions.T,
        )

    return search


@pytest.mark.parametrize("suite", list(SUITES))
def test_a_suite_has_its_cases_and_follows_the_commit(suite: str) -> None:
    names = [case.name for case in cases_of(suite, "abc")]
    assert len(set(names)) == len(names) == COUNTS[suite]
    assert names == [case.name for case in cases_of(suite, "abc")] != [case.name for case in cases_of(suite, "abd")]
    assert f"\n{suite} " in str(index_rank.__doc__)
    assert set(index_rank.GOALS) == set(SUITES) == set(COUNTS)


def test_a_part_of_a_run_is_a_sample_of_every_suite(capsys: pytest.CaptureFixture[str]) -> None:
    first = [case for case in cases_of("sdr", "abc")[:60] if isinstance(case, ReductionCase)]
    kinds = {(case.model, case.predictors, case.num_samples) for case in first}
    assert len(kinds) > 20  # of 27; as they are made, the first 60 are three of them
    main(["mode", "order", "--cases", "2", "--turns", "--commit", "abc"], search=stand_in())
    said = capsys.readouterr().out.split("worst first:")[0].splitlines()[1:]
    assert [line.split()[0] for line in said if line] == ["mode", "order", "mode", "order"]


def test_what_was_measured_stands_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = (
        ("a noise=0.2", 0.1, 0.2, 0.4),
        ("b noise=0.2", 0.3, 0.5, 0.4),
        ("c noise=0", 0.2, 0.1, 0.8),
        ("d", "", "", ""),
    )
    for number, (case, ours, sir, mave) in enumerate(found):
        path = tmp_path / f"{number}.csv"
        row: dict[str, object] = {"truth": 1, "found": 1, "right": 1, "verdict": "CONFIDENT", "seconds": 1.0}
        Table(f"commit {number}", path).add("groups", case, row | {"distance": ours, "sir": sir, "mave": mave})
    assert main(["--tables", *(str(tmp_path / f"{number}.csv") for number in range(4))]) == 0
    said = capsys.readouterr().out
    assert "groups: 4 of 4 right" in said
    assert "| groups | 0.2 | 2 | 0.2000 | 0.3500 | - | - | - | - | 0.4000 | 0.3000 | 0.62 |" in said
    assert "| groups | 0 | 1 | 0.2000 | 0.1000 | - | - | - | - | 0.8000 | 0.1000 | 2.00 |" in said


def test_the_notes_have_the_tables_of_the_lines_that_were_measured() -> None:
    measured, notes = Path(index_rank.__file__).parent / "measured", Path(index_rank.__file__).parents[1] / "docs/notes"
    page = (notes / "index_rank.md").read_text()
    whole, quick = (
        index_rank.tables(read_lines(measured / name, commit=DRAWN))
        for name in ("index_rank.csv", "index_rank_quick.csv")
    )
    assert len(whole) == 3
    assert len(quick) == 4
    for table in [*whole[:2], *quick[2:]]:
        assert table in page


def test_of_a_case_that_was_measured_twice_the_last_line_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    row: dict[str, object] = {"truth": 2, "verdict": "CONFIDENT", "seconds": 3.0}
    for commit, found in (("abc", 1), ("abc", 2), ("abd", 1)):
        table = Table(commit, path)
        table.add("mode", "a", row | {"found": found, "right": int(found == 2)})
    lines = read_lines(path, commit="abc")
    assert [line["found"] for line in lines] == ["2"]
    assert counts(lines, {"mode": 60, "order": 20}).splitlines()[2:] == ["| mode | 1 | 60 | 1 | 1 | 0 | 3.0 |"]
    assert counts(read_lines(path), {"mode": 60}).splitlines()[2:] == ["| mode | 2 | 60 | 1 | 2 | 1 | 3.0 |"]


def test_models_are_listed_by_predictors_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    row: dict[str, object] = {"truth": 2, "seconds": 3.0, "right": 0}
    for seed, dcor, verdict in ((1, 0.9, "CONFIDENT"), (2, 0.7, "DOUBTFUL"), (3, 0.8, "DOUBTFUL")):
        case = f"C normal n=1000 seed={seed}"
        Table("abc", path).add("sdr", case, row | {"found": min(seed, 2), "dcor": dcor, "verdict": verdict})
    Table("abc", path).add("sdr", "A t4 n=5000 seed=3", row | {"found": 2, "dcor": 0.5, "verdict": "CONFIDENT"})
    assert of_reduction(read_lines(path)).splitlines()[2:] == [
        "| A | t4 | 5000 | 1 | 0.500 | 0.500 | 2 |", "| C | normal | 1000 | 3 | 0.800 | 0.700 | 2 x 2?, 1 |",
    ]  # fmt: skip


def test_the_first_directions_of_slope_are_compared_up_to_each_clear_gap() -> None:
    values, vectors = np.array([8.0, 1.0, 0.9, 0.1, 0.0]), np.eye(5)
    turned = np.array([np.cos(0.1), 0, 0, np.sin(0.1), 0])
    table = xr.Dataset(
        {"gradient_direction": (("leading", "input"), [turned, vectors[2], vectors[1]]),
         "gradient_angle": ("leading", [0.2, 0.5, 0.3])}
    )  # fmt: skip
    found = SimpleNamespace(combinations=table)
    # gaps of 8, 1.1 and 9: the clearest is after three, whose span is that of the first three but for the turn
    near, said = leading_directions(found, values, vectors, np.ones(5))
    assert near == pytest.approx(np.sin(0.1))
    assert said == "first directions of slope 1: 0.100 (0.200), 3: 0.100 (0.300); "
    assert leading_directions(SimpleNamespace(), values, vectors, np.ones(5)) == ("", "")
    stretched, _ = leading_directions(found, values, vectors, np.array([1.0, 1, 1, 0, 1]))
    assert stretched == pytest.approx(0.0, abs=1e-12)


def test_random_tasks_cover_what_they_promise() -> None:
    cases = [case for case in cases_of("multi-index", "abc") if isinstance(case, MultiIndexCase)]
    assert len(cases) == 200
    for name, values in (("index_rank", 5), ("link", 5), ("inputs", 4), ("noise", 3), ("d_out", 3)):
        assert len({getattr(case, name) for case in cases}) == values
    assert all(500 <= case.num_samples <= 3000 and 8 <= case.d_in <= 40 for case in cases)
    assert all(case.num_samples >= 10 * case.index_rank * case.d_in for case in cases)
    modes = [case for case in cases_of("mode", "abc") if isinstance(case, ModeCase)]
    assert {case.mode_rank for case in modes} == set(range(1, 7))
    assert all(8 <= case.d_out <= 40 for case in modes)


BASE = MultiIndexCase(1, 8, 1, 400, Inputs.NORMAL, Link.TANH, 0.05, 3)
SMALL: dict[str, Any] = {
    "multi-index": BASE,
    "sdr": ReductionCase(ReductionModel.A, Predictors.NORMAL, 300, 1),
    "variance": SpreadCase(1),
    "groups": FormulaCase("blasius", 200, 0.01, 1),
    "engineering": EngineeringCase("friedman", 0.0, 1),
    "mode": ModeCase(1, 2, 5, 8, 200, 0.05, 1),
    "order": OrderCase(ModeCase(1, 2, 5, 8, 200, 0.05, 1)),
}
SETTINGS: dict[str, list[dict[str, str]]] = {
    "variance": [{"encoder": "linear", "loss": "gaussian"}],
    "mode": [{"decoder": "linear"}],
    "order": [
        {"encoder": "curved", "decoder": "curved"},
        {"encoder": "linear", "decoder": "curved"},
        {"encoder": "curved", "decoder": "linear"},
    ],
}


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    """What the classical methods take grows with the square of the rows."""
    monkeypatch.setattr("measured.known_cases.SPREAD_ROWS", 400)


@pytest.mark.dear(1)
@pytest.mark.parametrize("suite", list(SMALL))
def test_a_case_asks_the_search_for_its_kind_and_says_what_came(suite: str) -> None:
    calls: list[dict[str, Any]] = []
    row = SMALL[suite].measure(stand_in(calls=calls))
    assert calls == SETTINGS.get(suite, [{"encoder": "linear"}])
    assert set(row) <= set(COLUMNS)
    truth = {"sdr": 2, "variance": 2, "engineering": 4}.get(suite, 1)
    assert (row["truth"], row["found"]) == (truth, 1)
    if suite != "engineering":
        assert row["right"] == int(truth == 1)
    if suite not in {"mode", "order"}:
        assert 0 <= row["sir"] <= 1
    if truth == 1 and suite not in {"order", "mode"}:
        assert row["distance"] == pytest.approx(row["directional"], abs=1e-6)


@pytest.mark.parametrize("suite", [suite for suite in SMALL if suite != "order"])
def test_a_search_that_finds_nothing_is_far_from_the_truth(suite: str) -> None:
    row = SMALL[suite].measure(stand_in(0))
    assert (row["found"], row["right"]) == (0, 0)
    assert suite == "engineering" or row["distance"] == 1.0


def test_exponents_and_coordinates_are_compared_with_the_truth() -> None:
    off = re.search(r"exponents off by ([\d.]+)", FormulaCase("blasius", 600, 0.01, 1).measure(stand_in())["detail"])
    assert off is not None
    assert float(off[1]) < 0.05
    row = ReductionCase(ReductionModel.A, Predictors.NORMAL, 1000, 1).measure(stand_in(2))
    assert 0.5 < row["dcor"] < 1


def test_groups_must_be_those_of_the_textbook_up_to_powers_and_products() -> None:
    case = UnitsCase("colebrook", 200, 0.01, 1)
    reynolds, rough = {"density": 1, "speed": 1, "diameter": 1, "viscosity": -1}, {"roughness": 2, "diameter": -2}
    mixed = {"density": 1, "speed": 1, "roughness": 1, "viscosity": -1}
    for groups, right in (([reynolds, rough], 1), ([mixed, rough], 1), ([reynolds, {"roughness": 1}], 0), ([rough], 0)):
        calls: list[dict[str, Any]] = []
        row = case.measure(stand_in(2, groups=groups, calls=calls))
        assert (row["truth"], row["right"]) == (2, right)
        assert calls[0]["units"]["viscosity"] == {"kg": 1, "m": -1, "s": -1}
    assert case.measure(stand_in(1, groups=[reynolds, rough]))["right"] == 0
    assert case.measure(stand_in(2))["detail"] == "no exact groups; one; two"
    # of the large pendulum with its period in seconds the amplitude alone is left
    taken = SimpleNamespace(powers=SimpleNamespace(target_exponents=[[0.5, -0.5, 0, 0]]))
    assert np.allclose(np.abs(UnitsCase("pendulum", 200, 0.01, 1).truth(taken)), [[0, 0, 1, 0]], atol=1e-12)


@pytest.mark.parametrize("change", CHANGES)
def test_directions_of_a_changed_task_are_led_back(change: str) -> None:
    row = MetamorphicCase(BASE, change).measure(stand_in())
    # ten columns of noise move the directions of 400 rows by some hundredths; nothing else does
    assert row["distance"] < (0.2 if change == "useless" else 1e-3)
    assert (row["truth"], row["found"], row["right"]) == (1, 1, 1)


def test_a_rank_that_changes_with_the_units_is_wrong() -> None:
    def fickle(x: Array, y: Array, **settings: Any) -> SimpleNamespace:
        return stand_in(2 if np.ptp(x) > 100 else 1)(x, y, **settings)

    row = MetamorphicCase(BASE, "units").measure(fickle)
    assert (row["truth"], row["found"], row["right"], row["distance"]) == (1, 2, 0, 1.0)


def test_targets_change_their_units_too() -> None:
    spreads = list[float]()

    def listening(x: Array, y: Array, **settings: Any) -> SimpleNamespace:
        spreads.append(float(y.std()))
        return stand_in()(x, y, **settings)

    MetamorphicCase(replace(BASE, seed=4), "units").measure(listening)
    assert spreads[1] / spreads[0] == pytest.approx(1000)


def test_a_run_that_was_stopped_goes_on_and_a_cut_off_line_is_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, calls = tmp_path / "rows.csv", list[dict[str, Any]]()
    arguments = ["mode", "--cases", "3", "--out", str(path), "--commit", "abd"]
    assert main(arguments, search=stand_in(verdict="DOUBTFUL", calls=calls)) == 0
    assert len(calls) == 3
    whole = path.read_text()
    path.write_text(whole[:-20])
    main(["mode", "--cases", "3", "--out", str(path)], search=stand_in(verdict="DOUBTFUL", calls=calls))
    assert len(calls) == 4
    again = path.read_text().splitlines()
    assert again[:3] == whole.splitlines()[:3]
    assert [line.split(",")[:6] for line in again] == [line.split(",")[:6] for line in whole.splitlines()]
    said = capsys.readouterr().out
    assert "worst first:" in said
    assert "mode: 1 of 3 right, 0 confident, 0 silent" in said
    with pytest.raises(DataError, match="holds the cases of commit abd"):
        Table.of(path, commit="other")
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="is no table of index_rank"):
        Table.of(path)


def test_wrong_and_confident_ends_with_an_error_and_stands_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mode", "--cases", "2", "--commit", "abd"], search=stand_in()) == 1
    lines = capsys.readouterr().out.split("worst first:")[1].splitlines()
    assert lines[1].endswith("WRONG")
    assert any("1 silent" in line for line in lines)


def test_cases_are_chosen_by_name_and_unknown_suites_refused(capsys: pytest.CaptureFixture[str]) -> None:
    main(["groups", "--only", "blasius n=200 ", "--commit", "abc"], search=stand_in())
    assert "groups: 2 of 2 right" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["nothing"], search=stand_in())
    assert "no suite nothing; known are multi-index" in capsys.readouterr().err
