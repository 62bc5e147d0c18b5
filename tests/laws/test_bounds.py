"""One law for every bound: no explicit network costs less than a lower bound, nor more than an upper bound.

Also in floating point, without any slack. The cases: `bound_cases`.
"""

import pytest

from bound_cases import BUILDERS, Case, drawn_case

NUMBERS = range(144, 234)  # one network of 2000 layers is among them; ten thousand of up to 10,000 are slow
NUM_SLOW, CHUNK = 10_000, 500


def broken(cases: list[Case]) -> list[str]:
    return [
        f"{case.what}: {name}: {smaller!r} > {larger!r}" for case in cases for name, smaller, larger in case.broken()
    ]


@pytest.mark.parametrize("builder", range(len(BUILDERS)))
def test_no_explicit_network_breaks_a_bound(builder: int) -> None:
    cases = [drawn_case(number) for number in NUMBERS[builder :: len(BUILDERS)]]
    assert all(case.inequalities for case in cases)
    assert not broken(cases)


def test_cases_that_broke_a_bound_once_break_it_no_more() -> None:
    """`nonplanarity_bound` took dual points for feasible rounding had moved; Jacobians all of rounding."""
    assert not broken([drawn_case(number) for number in (363, 561, 599, 1202, 1514, 2009)])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, NUM_SLOW, CHUNK))
def test_no_explicit_network_breaks_a_bound_in_ten_thousand(first: int) -> None:
    assert not broken([drawn_case(number, deep=number % 2 == 0) for number in range(first, first + CHUNK)])


def test_formulas_that_count_rounding_break_the_law() -> None:
    """The control: singular values as computed, those of the SVD's rounding and of a product's among them."""
    rows = [row for number in range(20) for row in drawn_case(number).broken_of_old()]
    assert {name for name, _, _ in rows} == {"schatten", "resnet"}
