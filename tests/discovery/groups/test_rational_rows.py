from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.discovery.groups import rational_rows
from isthmus.discovery.groups.rational_rows import (
    Rows,
    as_row,
    description_length,
    null_space,
    primitive,
    rational_rank,
    reduced,
    same_space,
    simplest_basis,
)

HALF = Fraction(1, 2)
entries = st.fractions(min_value=-3, max_value=3, max_denominator=6)


@st.composite
def matrices(draw: st.DrawFn, *, most_rows: int = 4) -> Rows:
    width = draw(st.integers(1, 6))
    return tuple(draw(st.lists(st.tuples(*[entries] * width), min_size=1, max_size=most_rows)))


def product(some: Rows, others: Rows) -> list[list[Fraction]]:
    return [[sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for y in others] for x in some]


@pytest.mark.slow
@given(matrices())
def test_rank_and_null_space_are_those_of_linear_algebra(rows: Rows) -> None:
    width = len(rows[0])
    kernel = null_space(rows, width)
    assert len(kernel) == width - rational_rank(rows)
    assert rational_rank(kernel) == len(kernel)
    assert all(entry == 0 for line in product(rows, kernel) for entry in line)
    assert rational_rank(rows) == np.linalg.matrix_rank(np.array(rows, dtype=float), tol=1e-9)


def test_rank_is_exact_where_floating_point_is_not() -> None:
    third = Fraction(1, 3)
    rows = (as_row([1, third]), as_row([3, 1]), as_row([1, third + Fraction(1, 10**30)]))
    assert rational_rank(rows[:2]) == 1
    assert rational_rank(rows) == 2


@pytest.mark.slow
@given(matrices(), st.randoms(use_true_random=False))
def test_spans_are_the_same_after_any_invertible_mix_and_only_then(rows: Rows, random: Random) -> None:
    mixed = [tuple(3 * a - 2 * b for a, b in zip(row, rows[0], strict=True)) for row in rows[1:]] + [rows[0]]
    random.shuffle(mixed)
    assert same_space(rows, mixed)
    assert not same_space([as_row([1, 0, 2])], [as_row([1, 0, 1])])
    kernel = null_space(rows, len(rows[0]))
    if kernel:
        assert not same_space(rows, [*rows, kernel[0]])


def test_the_echelon_form_takes_pivots_in_the_order_asked() -> None:
    rows = (as_row([2, 1, 0]), as_row([0, 1, 4]))
    found, pivots = reduced(rows, order=[2, 1, 0])
    assert pivots == (2, 1)
    assert found == (as_row([-HALF, 0, 1]), as_row([2, 1, 0]))


def test_a_primitive_row_has_whole_numbers_a_positive_sum_and_no_common_divisor() -> None:
    assert primitive([Fraction(-1), -HALF, HALF, HALF]) == as_row([2, 1, -1, -1])
    assert primitive([Fraction(0), Fraction(-6), Fraction(6)]) == as_row([0, 1, -1])
    assert primitive([Fraction(0)]) == as_row([0])


def test_description_length_counts_columns_and_sizes() -> None:
    assert description_length(as_row([1, -1, 0])) == 4
    assert description_length(as_row([Fraction(1, 4), 1])) == 2 + (2 + 2 * 2)  # 1, 4
    assert description_length(as_row([1, 1, 1, 1])) == description_length(as_row([2, 1, 1])) == 8


@given(matrices(most_rows=3))
@settings(max_examples=40)
def test_the_simplest_basis_spans_the_same_and_is_no_longer_than_any_echelon_form(rows: Rows) -> None:
    basis = simplest_basis(rows)
    assert same_space(basis, rows) or not rational_rank(rows)
    assert len(basis) == rational_rank(rows)
    for first in range(len(rows[0])):
        order = [first, *(place for place in range(len(rows[0])) if place != first)]
        echelon, _ = reduced(rows, order=order)
        assert sum(map(description_length, basis)) <= sum(map(description_length, echelon)) + 1e-9


def test_the_simplest_basis_finds_rows_that_no_echelon_form_has_together() -> None:
    rows = (as_row([1, 1, 0, 0]), as_row([0, 0, 1, 1]), as_row([1, 0, 1, 0]))
    mixed = (rows[0], tuple(a + 2 * b for a, b in zip(rows[0], rows[1], strict=True)), rows[2])
    assert same_space(simplest_basis(mixed), rows)
    assert sum(map(description_length, simplest_basis(mixed))) == 12


def test_beyond_the_limit_the_echelon_form_stands_for_the_simplest(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (as_row([1, 2, 3, 4]), as_row([0, 1, 5, 1]))
    monkeypatch.setattr(rational_rows, "MOST_SUBSETS", 1)
    assert set(simplest_basis(rows)) == {primitive(row) for row in reduced(rows)[0]}


def test_no_rows_have_no_basis() -> None:
    assert simplest_basis(()) == ()
    assert null_space((), 2) == (as_row([1, 0]), as_row([0, 1]))
