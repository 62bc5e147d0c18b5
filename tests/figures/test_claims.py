import math

import pytest

from isthmus.figures import Claim, Judgement
from isthmus.figures.claims import tally


def claim(measured: float, **more: float | str) -> Claim:
    limits = {"least": 1.0, "most": 2.0} | more
    return Claim("it is between 1 and 2", "nowhere", "it", measured, **limits)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (0.999, Judgement.FAILS),
        (1.0, Judgement.HOLDS),
        (2.0, Judgement.HOLDS),
        (2.001, Judgement.FAILS),
        (math.inf, Judgement.FAILS),
        (math.nan, Judgement.OPEN),
    ],
)
def test_the_number_decides(measured: float, expected: Judgement) -> None:
    assert claim(measured).judgement is expected


def test_a_doubt_leaves_the_claim_open_whatever_the_number() -> None:
    assert claim(1.5, doubt="the training did not end").judgement is Judgement.OPEN
    assert claim(5.0, doubt="the training did not end").judgement is Judgement.OPEN


def test_a_claim_that_nothing_could_refute_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a threshold that would refute it"):
        claim(1.0, least=-math.inf, most=math.inf)
    with pytest.raises(ValueError, match="needs a threshold that would refute it"):
        claim(1.0, least=3.0, most=2.0)


def test_thresholds_and_counts_in_words() -> None:
    assert claim(1.0).refutation == "below 1 or above 2"
    assert claim(1.0, least=-math.inf).refutation == "above 2"
    assert claim(1.0, most=math.inf).refutation == "below 1"
    assert tally([claim(1.0), claim(1.5), claim(3.0), claim(math.nan)]) == (
        "4 claims: 2 hold, 1 does not hold, 1 inconclusive"
    )
    assert tally([claim(1.0)]) == "1 claim: 1 holds"
