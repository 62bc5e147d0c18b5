"""Text that is quantities is read as numbers or refused, never one 0/1 column per value without a word."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isthmus.errors import DataError, DataWarning
from isthmus.tasks import read_table
from isthmus.tasks.quantities import quantities_in
from isthmus.tasks.table_options import TableOptions

RNG = np.random.default_rng(0)
NUMBERS = RNG.integers(1, 10, 60).tolist()

REFUSED: dict[str, tuple[Callable[[int], str], str]] = {
    "percent": (lambda n: f"{n}%", "numbers with a percent sign in rows 1, 2, .*Write plain numbers, 0.05 or 5 for 5%"),
    "percent apart": (lambda n: f"{n}.5 %", "numbers with a percent sign"),
    "permille": (lambda n: f"-{n}‰", "numbers with a percent sign"),
    "dollars": (lambda n: f"${n}", r"amounts of money in .*\('\$\d'\). Write plain numbers"),
    "euros": (lambda n: f"{n}.50 €", "amounts of money"),
    "francs": (lambda n: f"CHF {n}", "amounts of money"),
    "some of them without": (lambda n: f"{n}%" if n % 2 else str(n), "percent"),
    "degrees": (lambda n: f"{n} °C", "temperatures"),
    "inches": (lambda n: f'{n}"', "lengths"),
    "days": (
        lambda n: f"2024-01-0{n}",
        r"dates in .*\('2024-01-0\d'\). Turn them into numbers, or leave the column out",
    ),
    "months": (lambda n: f"2024-0{n}", "dates"),
    "moments": (lambda n: f"2024-01-0{n}T12:00:00Z", "dates"),
    "days by points": (lambda n: f"0{n}.03.2024", "dates"),
    "days by strokes": (lambda n: f"{n}/31/24", "dates"),
    "times": (lambda n: f"1{n}:30", "times"),
    "times of day": (lambda n: f"{n}:30:15.5 pm", "times"),
}
NAMES: dict[str, Callable[[int], str]] = {
    "ids": lambda n: f"id{n}",
    "kinds": lambda n: f"{n}D",
    "ranges": lambda n: f"{n}-{n + 5}",
    "bounds": lambda n: f"<{n}",
    "versions": lambda n: f"v1.{n}",
    "one number among words": lambda n: "12%" if n == 1 else "uvwxyz"[n % 6],
}


def table(path: Path, form: Callable[[int], str]) -> Path:
    pd.DataFrame({"a": RNG.random(60).round(3), "b": [form(n) for n in NUMBERS]}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("form", "says"), REFUSED.values(), ids=list(REFUSED))
def test_quantities_are_no_categories(tmp_path: Path, form: Callable[[int], str], says: str) -> None:
    path = table(tmp_path / "d.csv", form)
    for target in ((), ("b",)):
        with pytest.raises(DataError, match=f"column 'b' holds .*{says}.*is line"):
            read_table(path, target=target)
    assert read_table(path, options=TableOptions(leave_out=("b",))).x_names == ("a",)
    assert len(read_table(path, classes="b").y_names) == len(set(NUMBERS))  # as was asked for


@pytest.mark.parametrize("form", NAMES.values(), ids=list(NAMES))
def test_names_with_numbers_in_them_stay_categories(tmp_path: Path, form: Callable[[int], str]) -> None:
    with pytest.warns(DataWarning, match="became one 0/1 column per value"):
        read_table(table(tmp_path / "d.csv", form))
    assert quantities_in(pd.Series([form(n) for n in NUMBERS], name="b", dtype=object)) is None


@pytest.mark.parametrize("share", [0.1, 0.45, 0.7], ids="{:.0%}".format)
@pytest.mark.parametrize("bound", ["<10", "< 0.2", ">= 3.5", "\u2264 1e3", "<0,2", "&lt;5"])
@pytest.mark.parametrize("role", ["input", "target"])
def test_bounds_among_numbers_are_not_told_to_be_removed(tmp_path: Path, bound: str, share: float, role: str) -> None:
    """That leaves out the least or the largest values; and where they are most cells, they had become categories."""
    cells = [bound if n < 60 * share else f"{n / 8}" for n in RNG.permutation(60).tolist()]
    pd.DataFrame({"a": RNG.random(60), "b": cells}).to_csv(tmp_path / "d.csv", index=False)
    target = ("b",) if role == "target" else ()
    with pytest.raises(DataError, match=r"column 'b' .*the limit itself or half of it: .*bias") as error:
        read_table(tmp_path / "d.csv", target=target, options=TableOptions(decimal="."))
    assert repr(bound) in str(error.value)
    assert "Correct or remove" not in str(error.value)


@pytest.mark.parametrize("word", ["BDL", "n.d.", "<LOD", "nd", "< LOQ"])
def test_words_for_what_was_not_detected_are_bounds(tmp_path: Path, word: str) -> None:
    cells = [word if n < 9 else "oops" if n == 9 else f"{n / 8}" for n in range(60)]
    pd.DataFrame({"a": RNG.random(60), "b": cells}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError, match=r"half of it: .*bias what is found\. Correct the others \('oops'\)\.") as error:
        read_table(tmp_path / "d.csv")
    assert f"({word!r})" in str(error.value)


def test_ranges_with_open_ends_stay_categories() -> None:
    for ranges in (["0", "1-4", ">4"], ["<18", "18-65", ">65"], ["<10", "10", ">10"]):
        assert quantities_in(pd.Series(ranges * 20, name="b", dtype=object)) is None


@pytest.mark.parametrize("form", ["{} 000", "{}'000", "{}\u202f000", "\u2212{}"])
@pytest.mark.parametrize("others", ["0.5", "7"])
def test_other_ways_of_writing_numbers_are_read(tmp_path: Path, form: str, others: str) -> None:
    """Where a sign of decimals is proven, and where none is; a blank stands between thousands in no other way."""
    meant = [-n if "{}" in form[-2:] else 1000.0 * n for n in NUMBERS]
    path = tmp_path / "d.csv"
    path.write_text("a,b\n" + "".join(f"{others},{form.format(n)}\n" for n in NUMBERS))
    options = TableOptions(leave_out=("a",))
    if others == "0.5":
        task = read_table(path, options=options)
    else:
        with pytest.warns(DataWarning, match="numbers in column 'b' are written with blanks"):
            task = read_table(path, options=options)
    assert task.x[:, 0].tolist() == meant


def test_text_is_kept_as_it_stands_where_a_column_is_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n" + "".join(f"{n}.5,{'1 000' if n == 1 else 'uvw'[n % 3]}\n" for n in NUMBERS))
    with pytest.warns(DataWarning, match="became one 0/1 column"):
        assert "b=1 000" in read_table(path).x_names


def test_a_decimal_sign_that_the_table_has_not_is_told_as_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,b\n" + "0.5,1\n1.5,2\n" * 10)
    with pytest.raises(DataError, match=r"'a' holds '0.5' in rows 1, .*, and a comma was said to be .*Say a point"):
        read_table(tmp_path / "d.csv", options=TableOptions(decimal=","))


def test_texts_of_a_large_table_are_held_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"a": RNG.random(60), "b": [f"{n},5" for n in NUMBERS]}).to_parquet(tmp_path / "d.parquet")
    for fits in (100, 2**27):
        monkeypatch.setattr("isthmus.tasks.large_tables.FITS", fits)
        with pytest.raises(DataError, match="'b' holds decimal commas"):
            read_table(tmp_path / "d.parquet")
        task = read_table(tmp_path / "d.parquet", options=TableOptions(decimal=","))
        assert task.x[:, 1].tolist() == [n + 0.5 for n in NUMBERS]
