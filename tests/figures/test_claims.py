import math
from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from isthmus.figures import Claim, Judgement
from isthmus.figures.claims import StartRule, tally


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


def over(*starts: float, least: float = 1.0, most: float = 2.0) -> Claim:
    return Claim.over_starts("it is between 1 and 2", "nowhere", "it", starts, least=least, most=most)


def test_over_starts_the_interval_decides() -> None:
    """Two starts: t(.975, 1) = 12.7062; three: 4.30265. Of 1.4 and 1.6 the half is 12.7062 * .1."""
    low, high = over(1.4, 1.6).interval
    assert low == pytest.approx(1.5 - 1.27062, abs=1e-5)
    assert high == pytest.approx(1.5 + 1.27062, abs=1e-5)
    assert over(1.4, 1.6).judgement is Judgement.OPEN
    assert over(1.4, 1.5, 1.6).interval[1] == pytest.approx(1.5 + 4.302653 * 0.1 / 3**0.5, abs=1e-6)
    assert over(1.4, 1.5, 1.6).judgement is Judgement.HOLDS
    assert over(1.1, 1.0, 1.2).judgement is Judgement.OPEN
    assert over(2.4, 2.5, 2.6).judgement is Judgement.FAILS
    assert over(1.5, math.inf, 1.5).judgement is Judgement.OPEN
    assert over(1.4, 1.5, 1.6).value == "1.5 (1.25 to 1.75)"
    assert claim(1.5).value == "1.5"


def test_the_spread_says_how_many_starts_are_needed() -> None:
    """Of a spread s = .1 at a distance of .5: 2 starts have .898, 3 have .248."""
    assert over(1.4, 1.5, 1.6).needed_starts == 3
    assert over(1.4, 1.5, 1.6, least=1.45).needed_starts == 18  # t(17) = 2.1098: .0497, t(16) = 2.1199: .0514
    assert over(1.5, 1.5).needed_starts == 2
    assert claim(1.5).needed_starts == 1
    with pytest.raises(ValueError, match="needs two starts for a spread, got 1"):
        over(1.5)


def judged(data: xr.Dataset, doubt: str = "") -> list[Claim]:
    starts, looks = data["number"].values.tolist(), int(data["looks"])
    return [Claim.over_starts("it is below 1", "nowhere", "it", starts, most=1.0, doubt=doubt, looks=looks)]


def started(*numbers: float) -> tuple[list[int], Callable[[int], xr.Dataset]]:
    """The first so many of these numbers, and how many were asked for."""
    asked = list[int]()

    def computed(count: int) -> xr.Dataset:
        asked.append(count)
        return xr.Dataset({"number": ("start", np.array(numbers[:count]))})

    return asked, computed


def test_starts_are_added_until_the_claims_are_decided() -> None:
    asked, computed = started(0.4, 0.6, 0.5, 0.5)
    assert judged(StartRule((3, 4)).decided(computed, judged))[0].judgement is Judgement.HOLDS
    assert asked == [3]
    asked, computed = started(0.2, 0.9, 0.7, 0.5, 0.4, 0.5, 0.6, 0.5)  # of three .35 to .85 and more, of eight decided
    assert judged(StartRule((3, 8)).decided(computed, judged))[0].judgement is Judgement.HOLDS
    assert asked == [3, 8]
    asked, computed = started(0.2, 1.9, 0.7, 1.5)
    claim = judged(StartRule((2, 4)).decided(computed, judged))[0]
    assert (claim.judgement, claim.wants_starts, asked) == (Judgement.OPEN, True, [2, 4])


def test_no_start_removes_a_doubt() -> None:
    asked, computed = started(0.2, 1.9, 0.7, 1.5)
    StartRule((2, 4)).decided(computed, lambda data: judged(data, doubt="the training did not end"))
    assert asked == [2]


def test_every_look_has_its_share_of_the_error() -> None:
    """t(.9875, 2) = 6.205347, half of 5 % at each of two looks."""
    starts = (0.4, 0.5, 0.6)
    data = xr.Dataset({"number": ("start", np.array(starts)), "looks": ((), 2)})
    assert judged(data)[0].interval[1] == pytest.approx(0.5 + 6.205347 * 0.1 / 3**0.5, abs=1e-6)


def test_what_could_not_be_measured_is_not_written_as_a_number() -> None:
    assert claim(math.nan).value == "not measured"
    assert claim(1.5).value.startswith("1.5")
