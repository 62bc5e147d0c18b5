import math
from fractions import Fraction

import pytest

from isthmus.discovery.groups.group_words import (
    before_rounding,
    group_in_words,
    groups_in_words,
    made_dimensionless,
    measured_in_words,
    named,
)

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({"rho": 1, "U": 1, "D": 1, "mu": -1}, "rho U D / mu"),
        ({"k": 1, "D": -1}, "k / D"),
        ({"y": 2, "U": 1, "nu": -1, "x": -1}, "y^2 U / (nu x)"),
        ({"T": 1, "g": HALF, "l": -HALF}, "T (g / l)^(1/2)"),
        ({"x": -1, "U": HALF, "nu": -HALF, "t": -HALF}, "(U / (nu t))^(1/2) / x"),
        ({"D": Fraction(3, 2)}, "D^(3/2)"),
        ({"D": Fraction(-1, 3), "a": 1}, "a D^(-1/3)"),
        ({"l": -1}, "1 / l"),
        ({"a": HALF, "b": 3 * HALF, "c": Fraction(-2, 3), "d": Fraction(1, 3)}, "(a b^3)^(1/2) (d / c^2)^(1/3)"),
        ({"a": 0}, "1"),
        ({}, "1"),
    ],
)  # fmt: skip
def test_groups_are_written_with_powers_roots_and_one_division(group: dict[str, Fraction], words: str) -> None:
    assert group_in_words(group) == words


def test_groups_are_numbered() -> None:
    assert groups_in_words([{"a": 1}, {"b": 2}]) == ["Pi_1 = a", "Pi_2 = b^2"]


def value(words: str, numbers: dict[str, float]) -> float:
    """Read as the text says, for plain names: a space is a product, and a division reaches to the end."""
    python = words.replace("^", "**")
    for space in (" / ", "/"):
        python = python.replace(space, "/")
    return float(eval(python.replace(" ", "*"), {}, dict(numbers)))  # noqa: S307


@pytest.mark.parametrize(
    "group",
    [
        {"a": 2, "b": -1, "c": -3},
        {"a": HALF, "b": -HALF, "c": 1},
        {"a": -1, "b": Fraction(-2, 3), "c": Fraction(1, 3)},
        {"a": Fraction(5, 6), "b": HALF, "c": -2},
    ],
)
def test_the_text_is_the_product(group: dict[str, Fraction]) -> None:
    numbers = {"a": 1.3, "b": 2.7, "c": 0.6}
    product = 1.0
    for name, exponent in group.items():
        product *= numbers[name] ** float(exponent)
    assert value(group_in_words(group), numbers) == pytest.approx(product, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("rho", "rho"),
        ("ρ_2", "ρ_2"),
        ("flow rate, m/s", '"flow rate, m/s"'),
        ("U^2", '"U^2"'),
        ("1", '"1"'),
        ("", "\"''\""),
        ('a"b', '"a\'b"'),
        ("a\nPi_2 = x", '"a\\nPi_2 = x"'),
        ("\u202eabc", '"\\u202eabc"'),
        ("<script>", '"<script>"'),
        ("x" * 100, '"' + "x" * 59 + '…"'),
    ],
)
def test_names_that_are_no_words_are_quoted_on_one_line(name: str, shown: str) -> None:
    assert named(name) == shown
    assert group_in_words({name: 1, "a": -1}) == f"{shown} / a"


def test_exponents_before_rounding_are_decimals() -> None:
    assert measured_in_words(["y", "U", "nu", "m"], [1.0, 0.4987, -0.5, 0.0002]) == "y U^0.499 nu^-0.5"
    assert measured_in_words(["a"], [0.0]) == "1"


@pytest.mark.parametrize(
    ("measured", "interval", "words"),
    [
        ((1.0, 0.4987), None, "before rounding y U^0.499"),
        ((1.0, 0.4987), ((1.0, 0.49), (1.0, 0.51)), "before rounding y U^0.499, +- 0.011"),
        # held, and nothing else takes part
        ((1.0, 0.0), None, ""),
        ((1.0, 0.0), ((1.0, 0.0), (1.0, 0.0)), ""),
        # what was measured rounds to what is written
        ((1.0, 2e-4), None, "the same before rounding"),
        ((1.0, 2e-4), ((1.0, -0.003), (1.0, 0.002)), "the same before rounding, +- 0.0032"),
        # a resample in which the pivots do not determine the exponent says nothing of how far it goes
        ((1.0, 0.4987), ((1.0, -math.inf), (1.0, math.inf)), "before rounding y U^0.499"),
    ],
)
def test_what_was_measured_of_a_group_is_not_written_twice(
    measured: tuple[float, ...], interval: tuple[tuple[float, ...], tuple[float, ...]] | None, words: str
) -> None:
    group = {"y": 1, "U": Fraction(1, 2)} if measured[1] > 0.1 else {"y": 1}
    assert before_rounding(group, ["y", "U"], measured, interval) == words


def test_the_target_stands_over_what_takes_its_unit() -> None:
    assert made_dimensionless("F", ["rho", "U", "D"], [Fraction(1), Fraction(2), Fraction(2)]) == "F / (rho U^2 D^2)"
    assert made_dimensionless("T", ["l", "g"], [HALF, -HALF]) == "T (g / l)^(1/2)"
    assert made_dimensionless("f", ["D"], [Fraction(0)]) == "f"
