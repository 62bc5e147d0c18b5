import numpy as np
import pytest

from isthmus.discovery.groups.column_units import units_of_mapping
from isthmus.discovery.groups.logarithms import log_columns
from isthmus.errors import DataError

NAMES = ["wide", "narrow", "signed", "g", "edge"]
X = np.array([[0.1, 1, -1, 9.81, 1], [1, 2, 0, 9.81, 10], [2, 9, 50, 9.81, 5.0]])


def test_all_takes_positive_columns_of_more_than_a_decade_and_says_so() -> None:
    choice = log_columns(X, NAMES, "all")
    assert choice.columns == ("wide",)
    assert choice.sentence == ("Logarithms were taken of column 'wide': they are positive and span more than a decade.")


def test_named_columns_keep_the_order_of_the_data() -> None:
    choice = log_columns(X, NAMES, ["edge", "wide"])
    assert choice == log_columns(X, NAMES, ("wide", "edge"))
    assert choice.columns == ("wide", "edge")
    assert choice.sentence == "Logarithms were taken of columns 'wide', 'edge'."
    assert log_columns(X, NAMES, "wide").columns == ("wide",)


def test_nothing_asked_is_nothing_done_or_said() -> None:
    assert log_columns(X, NAMES, None).columns == ()
    assert log_columns(X, NAMES, ()).sentence == ""


def test_columns_with_units_get_one_also_where_they_are_constant() -> None:
    units = units_of_mapping({"wide": "m", "narrow": 1, "signed": 1, "g": "m/s^2", "edge": 1}, "")
    choice = log_columns(X, NAMES, None, units=units)
    assert choice.columns == ("wide", "g")
    assert choice.sentence == "Logarithms were taken of columns 'wide', 'g': they have units."
    both = log_columns(X, NAMES, "narrow", units=units)
    assert both.columns == ("wide", "narrow", "g")
    assert both.sentence.endswith(": some have units.")
    every = log_columns(X[:, :1], ["wide"], "all", units=units)
    assert every.sentence == "Logarithms were taken of all input columns: they have units."


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (["wide", "signed"], "table.csv: column 'signed' holds -1 in rows 1, 2; a logarithm needs numbers above 0"),
        (["g"], "table.csv: column 'g' is 9.81 in every row"),
        (["wider"], "table.csv: has no column 'wider'. Did you mean 'wide'"),
        ([""], "has no column ''"),
    ],
)
def test_columns_that_have_no_logarithm_are_refused(log: list[str], line: str) -> None:
    with pytest.raises(DataError, match=line):
        log_columns(X, NAMES, log, where="table.csv")


def test_all_that_finds_none_asks_for_names() -> None:
    with pytest.raises(DataError, match="no column is positive and spans more than a factor of 10. Name"):
        log_columns(X[:, 1:], NAMES[1:], "all")


def test_a_column_that_needs_one_for_its_unit_says_why_it_cannot() -> None:
    units = units_of_mapping({"wide": "m", "signed": "m/s"}, "")
    with pytest.raises(DataError, match="column 'signed' \\(it is in m s\\^-1\\) holds -1 in rows 1, 2"):
        log_columns(X[:, [0, 2]], ["wide", "signed"], None, units=units)
