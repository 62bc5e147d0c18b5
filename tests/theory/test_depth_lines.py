"""Lines over depth with known crossings: read back exactly, and not from depths where they bend."""

import math

import pytest

from isthmus.theory.depth_lines import depth_reading

DEPTHS, RIDGE = (1, 2, 4, 8, 16, 32), 1e-3
CONSTANTS = (0.030, 0.024, 0.012)  # of ranks 1, 2, 3: rank 3 leads to depth 9, then rank 1


def objectives() -> list[list[float]]:
    return [[c + RIDGE * rank * m for m in DEPTHS] for rank, c in enumerate(CONSTANTS, 1)]


HOLDS = [[True] * len(DEPTHS) for _ in CONSTANTS]


def test_lines_winners_and_the_switch_are_read_back() -> None:
    found = depth_reading(DEPTHS, objectives(), HOLDS, ridge=RIDGE)
    assert found.winners == (3, 3, 3, 3, 1, 1)
    assert (found.flat_rank, found.deep_rank) == (3, 1)
    assert found.switch == pytest.approx((0.030 - 0.012) / (2 * RIDGE))
    for line, constant in zip(found.lines, CONSTANTS, strict=True):
        assert line.slope == pytest.approx(RIDGE * line.rank)
        assert line.constant == pytest.approx(constant)


def test_shallow_networks_bend_the_line_and_are_not_fitted() -> None:
    bent = objectives()
    bent[0][0] += 0.5
    assert depth_reading(DEPTHS, bent, HOLDS, ridge=RIDGE).lines[0].slope == pytest.approx(RIDGE)
    bent[0][3] += 0.5
    assert depth_reading(DEPTHS, bent, HOLDS, ridge=RIDGE).lines[0].slope != pytest.approx(RIDGE, rel=0.1)


def test_a_rank_that_does_not_hold_wins_nowhere() -> None:
    torn = [[False] * len(DEPTHS), *HOLDS[1:]]
    found = depth_reading(DEPTHS, objectives(), torn, ridge=RIDGE)
    assert found.winners == (3, 3, 3, 3, 2, 2)
    assert found.switch == pytest.approx((0.024 - 0.012) / RIDGE)


@pytest.mark.parametrize(("lower", "winner"), [(1.06, 1), (1.04, 2)])
def test_a_rank_that_may_not_hold_wins_by_five_per_cent_only(lower: float, winner: int) -> None:
    table = [[1.0], [lower]]
    assert depth_reading([4], table, [[True]] * 2, [[True], [False]], ridge=RIDGE).deep_rank == winner
    assert depth_reading([4], table, [[True]] * 2, [[True], [True]], ridge=RIDGE).deep_rank == 1
    assert depth_reading([4], table, [[True]] * 2, ridge=RIDGE).deep_rank == 1


def test_collapsed_networks_have_no_part_in_the_line() -> None:
    table = objectives()
    table[2][4:] = [math.nan, math.nan]
    found = depth_reading(DEPTHS, table, HOLDS, ridge=RIDGE)
    assert found.lines[2].slope == pytest.approx(3 * RIDGE)
    table[2][3] = math.nan
    found = depth_reading(DEPTHS, table, HOLDS, ridge=RIDGE)
    assert math.isnan(found.lines[2].slope)
    assert math.isnan(found.switch)


def test_nothing_that_holds_is_rank_zero_and_one_rank_has_no_switch() -> None:
    nowhere = depth_reading(DEPTHS, objectives(), [[False] * len(DEPTHS)] * 3, ridge=RIDGE)
    assert (nowhere.flat_rank, nowhere.deep_rank) == (0, 0)
    assert math.isnan(depth_reading(DEPTHS, objectives()[:1], HOLDS[:1], ridge=RIDGE).switch)


def test_a_table_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="one objective for each rank at each of the depths"):
        depth_reading(DEPTHS, [[1.0, 2.0]], HOLDS[:1], ridge=RIDGE)
    with pytest.raises(ValueError, match="one objective for each rank at each of the depths"):
        depth_reading(DEPTHS, objectives(), HOLDS, [[True]], ridge=RIDGE)
