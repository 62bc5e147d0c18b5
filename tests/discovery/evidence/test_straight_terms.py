"""A direction as text: order, signs, what is left out, and values of one column of text in one term."""

import numpy as np
import pytest

from isthmus.discovery.evidence.straight_terms import Term, in_words


@pytest.mark.parametrize(
    ("loadings", "most", "text"),
    [
        ((0.5, -0.9, 0.0), 6, '-0.90 "b c" + 0.50 a'),
        ((-0.5, -0.9, 0.3), 2, '-0.90 "b c" - 0.50 a + 1 more'),
        ((0.04, 1.0, 0.05), 6, '1.00 "b c" + 0.05 d'),
        ((0.0, 0.0, 0.0), 6, "0"),
    ],
)
def test_the_largest_terms_come_first_with_their_signs(loadings: tuple[float, ...], most: int, text: str) -> None:
    row = np.array(loadings)
    assert in_words([Term("a", (0,)), Term('"b c"', (1,)), Term("d", (2,))], row, most=most) == text


@pytest.mark.parametrize(
    ("loadings", "most", "text"),
    [
        ((0.5, -0.4, 0.7, 0.01), 6, "hue (0.70 blue - 0.40 red) + 0.50 a"),
        ((0.9, -0.4, 0.1, 0.01), 1, "0.90 a + 1 more"),
        (
            (0.9, 0.04, 0.04, -0.03),
            6,
            "0.90 a + hue (0.04 red + 0.04 blue)",
        ),  # together they count, each alone does not
        ((0.9, 0.01, 0.01, 0.0), 6, "0.90 a"),
    ],
)
def test_values_of_one_column_are_one_term(loadings: tuple[float, ...], most: int, text: str) -> None:
    terms = [Term("a", (0,)), Term("hue", (1, 2, 3), ("red", "blue", "green"))]
    assert in_words(terms, np.array(loadings), most=most) == text


def test_numbers_of_another_unit_stand_before_names_in_the_order_of_loadings() -> None:
    row = np.array([0.6, 0.8])
    assert in_words([Term("a", (0,)), Term("b", (1,))], row, row * [100, 1], digits=".3g") == "0.8 b + 60 a"
