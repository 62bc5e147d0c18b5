"""Which ranks are trained, with objectives that are known beforehand in place of training."""

from collections.abc import Sequence

import pytest

from isthmus.discovery.choices import LONG_BESIDE, LONG_CURVE, SLACK
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.objective_curves import Ladder, likely_next, objective_curves, objectives_of, reading_of
from isthmus.theory.curve_readings import CurveReading
from isthmus.theory.curve_readings import objective_reading as theory_reading
from minima import minimum


def objective_reading(objectives: Sequence[float]) -> CurveReading:
    return theory_reading(objectives, slack=1 + SLACK)


OBJECTIVES = {1: 0.8, 2: 0.5, 3: 0.2, 4: 0.2 * (1 - SLACK / 2), 5: 0.2 * (1 - 0.75 * SLACK)}


class Known:
    """Objectives by ridge and rank; remembers what was asked for."""

    def __init__(self, **objectives: Sequence[float]) -> None:
        self.objectives = dict(zip((1e-2, 1e-3, 1e-4), objectives.values(), strict=False))
        self.asked: list[tuple[float, int]] = []

    def ladder(self, ridge: float, *, spare: int, most: int, brief: bool = False) -> Ladder:
        return Ladder(minimum(ridge=ridge), spare=spare, most=most, brief=brief)

    def train(self, wanted: Sequence[tuple[Ladder, int]]) -> list[Minimum]:
        self.asked += [(ladder.ridge, rank) for ladder, rank in wanted]
        return [minimum(self.objectives[l.ridge][r - 1], ridge=l.ridge, rank=r) for l, r in wanted]

    def ranks(self, ridge: float) -> list[int]:
        return sorted(rank for at, rank in self.asked if at == ridge)


def test_the_ranks_above_the_spare_one_are_its_network() -> None:
    known = Known(chosen=[0.8, 0.5, 0.2, 0.2, 0.2, 0.2])
    curves = objective_curves([known.ladder(1e-2, spare=3, most=6)], known.train, constant=1.0)
    assert known.ranks(1e-2) == [1, 2, 3, 6]
    assert [curves[1e-2][r].rank for r in range(1, 7)] == [1, 2, 3, 3, 3, 3]
    assert reading_of(curves[1e-2], 1.0).rank == 3


def test_what_is_likely_next_is_all_that_is_asked_for_beside_where_neighbours_read_the_same() -> None:
    known = Known(chosen=[0.8, 0.5, 0.2, 0.2, 0.2], low=[0.9, 0.6, 0.3, 0.3, 0.3], high=[0.7, 0.4, 0.1, 0.1, 0.1, 0.1])
    ladders = [known.ladder(r, spare=3, most=m) for r, m in ((1e-2, 5), (1e-3, 5), (1e-4, 6))]
    objective_curves(ladders, known.train, constant=1.0)
    likely = [(ladder.ridge, rank) for ladder, rank in likely_next(ladders)]
    beside = [place for place in known.asked if place[0] != 1e-2]
    assert set(beside) <= set(likely[: len(beside)])
    assert likely[:2] == [(1e-3, 5), (1e-4, 6)], "the largest ranks, which are asked for whatever the first reads"


@pytest.mark.parametrize(("spare", "ranks"), [(5, [4, 5]), (6, [4, 5, 6]), (7, [4, 5, 6, 9])])
def test_a_brief_neighbour_leaves_out_its_largest_rank_where_its_spare_one_is_trained(
    spare: int, ranks: list[int]
) -> None:
    known = Known(chosen=[0.9, 0.8, 0.7, 0.6, 0.2, 0.2], beside=[0.9, 0.8, 0.7, 0.6, 0.3, 0.3, 0.3, 0.3, 0.3])
    ladders = [known.ladder(1e-2, spare=5, most=6), known.ladder(1e-3, spare=spare, most=9, brief=True)]
    curves = objective_curves(ladders, known.train, constant=1.0)
    assert known.ranks(1e-3) == ranks
    assert reading_of(curves[1e-3], 1.0).rank == 5
    # the chosen one is asked whether its largest rank gains, whatever it is
    brief = Known(chosen=[0.8, 0.5, 0.2, 0.15, 0.12, 0.1])
    objective_curves([brief.ladder(1e-2, spare=3, most=6, brief=True)], brief.train, constant=1.0)
    assert brief.ranks(1e-2) == [1, 2, 3, 4, 5, 6]


def test_all_are_trained_where_the_largest_gains() -> None:
    known = Known(chosen=[0.8, 0.5, 0.2, 0.15, 0.12, 0.1])
    curves = objective_curves([known.ladder(1e-2, spare=3, most=6)], known.train, constant=1.0)
    assert known.ranks(1e-2) == [1, 2, 3, 4, 5, 6]
    assert reading_of(curves[1e-2], 1.0).rank == 6
    assert list(curves[1e-2]) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("beside", "ranks", "read"),
    [
        ([0.9, 0.8, 0.7, 0.6, 0.3, 0.3, 0.3], [4, 5, 7], 5),
        ([0.9, 0.8, 0.3, 0.3, 0.3, 0.3, 0.3], [1, 2, 3, 4, 5, 7], 3),
        ([0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], [1, 2, 3, 4, 5, 7], 1),
    ],
    ids=["the same", "below", "at the bottom"],
)
def test_a_neighbour_goes_down_until_its_reading_is_known(beside: list[float], ranks: list[int], read: int) -> None:
    known = Known(chosen=[0.9, 0.8, 0.7, 0.6, 0.2, 0.2, 0.2], beside=beside)
    ladders = [known.ladder(ridge, spare=5, most=7) for ridge in (1e-2, 1e-3)]
    curves = objective_curves(ladders, known.train, constant=1.0)
    assert known.ranks(1e-3) == ranks
    assert reading_of(curves[1e-3], 1.0) == objective_reading([1.0, *beside])
    assert reading_of(curves[1e-3], 1.0).rank == read


@pytest.mark.parametrize(
    ("beside", "ranks", "read"),
    [
        ([0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], [1, 2, 3, 7], 2),
        ([0.9, 0.8, 0.3, 0.3, 0.3, 0.3, 0.3], [1, 2, 3, 4, 5, 6, 7], 3),
        ([0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.2], [1, 2, 3, 4, 5, 6, 7], 7),
    ],
    ids=["the same", "above", "at the top"],
)
def test_a_neighbour_is_known_from_next_to_the_reading_and_its_largest_rank(
    beside: list[float], ranks: list[int], read: int
) -> None:
    known = Known(chosen=[0.9, 0.2, 0.2], beside=beside)
    ladders = [known.ladder(1e-2, spare=3, most=3), known.ladder(1e-3, spare=7, most=7)]
    curves = objective_curves(ladders, known.train, constant=1.0)
    assert sorted(known.asked) == sorted(set(known.asked))  # nothing is trained twice
    assert known.ranks(1e-3) == ranks
    assert list(curves[1e-3]) == ranks
    assert reading_of(curves[1e-3], 1.0).rank == read


def test_a_neighbour_that_seems_to_read_the_same_between_two_ranks_is_followed() -> None:
    """Of spare rank 8 and largest 13, gaining 3 %, it would read 12 on the line between the two: it reads 9."""
    chosen = [0.7**rank for rank in range(1, 13)] + [0.7**12] * 2
    beside = [0.5] * 7 + [0.5, 0.485, 0.485, 0.485, 0.485, 0.485]
    known = Known(chosen=chosen, beside=beside)
    ladders = [known.ladder(1e-2, spare=14, most=14), known.ladder(1e-3, spare=8, most=13)]
    curves = objective_curves(ladders, known.train, constant=1.0)
    assert reading_of(curves[1e-2], 1.0).rank == 12
    read = reading_of(curves[1e-3], 1.0).rank
    assert read == 9
    assert read in curves[1e-3]


def test_a_curve_that_gains_beyond_its_spare_rank_has_gaps_there_too() -> None:
    gaining = [0.9 ** min(rank, 20) * 0.999 ** max(rank - 20, 0) for rank in range(1, 97)]
    known = Known(chosen=gaining)
    curves = objective_curves([known.ladder(1e-2, spare=20, most=96)], known.train, constant=1.0)
    assert len(known.ranks(1e-2)) == len(set(known.ranks(1e-2))) <= 26
    assert reading_of(curves[1e-2], 1.0) == objective_reading([1.0, *gaining])


def test_a_ridge_at_which_nothing_ended_reads_no_rank() -> None:
    assert reading_of({}, 1.0).rank == 0
    known = Known(chosen=[0.5, 0.2], beside=[])
    ladders = [known.ladder(ridge, spare=2, most=2) for ridge in (1e-2, 1e-3)]

    def train(wanted: Sequence[tuple[Ladder, int]]) -> list[Minimum]:
        return known.train([(ladder, rank) for ladder, rank in wanted if ladder.ridge == 1e-2])

    curves = objective_curves(ladders, train, constant=1.0)
    assert list(curves[1e-2]) == [1, 2]
    assert curves[1e-3] == {}


def test_without_a_rank_a_neighbour_needs_one_dimension_and_its_largest() -> None:
    known = Known(chosen=[1.0, 1.0], beside=[1.0, 1.0, 1.0])
    ladders = [known.ladder(1e-2, spare=2, most=2), known.ladder(1e-3, spare=3, most=3)]
    objective_curves(ladders, known.train, constant=1.0)
    assert known.ranks(1e-3) == [1, 3]


def test_ranks_that_could_not_be_used_leave_the_others_where_they_are() -> None:
    known = Known(chosen=[0.8, 0.5, 0.2])

    def train(wanted: Sequence[tuple[Ladder, int]]) -> list[Minimum]:
        return [result for result in known.train(wanted) if result.rank != 2]

    curves = objective_curves([known.ladder(1e-2, spare=3, most=3)], train, constant=1.0)
    assert list(curves[1e-2]) == [1, 3]
    assert reading_of(curves[1e-2], 1.0).rank == 3


LONG = [0.9**rank for rank in range(1, 42)] + [0.9**41] * 19  # falls up to rank 41


@pytest.mark.parametrize("spare", [44, 60])
def test_a_long_curve_is_dense_around_its_reading_alone(spare: int) -> None:
    known = Known(chosen=LONG)
    curves = objective_curves([known.ladder(1e-2, spare=spare, most=60)], known.train, constant=1.0)
    assert reading_of(curves[1e-2], 1.0) == objective_reading([1.0, *LONG])
    assert reading_of(curves[1e-2], 1.0).rank == 41
    trained = known.ranks(1e-2)
    assert len(trained) == len(set(trained)) <= 26
    assert {39, 40, 41, 42, 43, spare, 60} <= set(trained)
    assert trained[:8] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_long_neighbour_is_followed_down_into_its_gaps() -> None:
    low = [0.5**rank for rank in range(1, 6)] + [0.5**5] * 55
    known = Known(chosen=LONG, beside=low)
    ladders = [known.ladder(ridge, spare=60, most=60) for ridge in (1e-2, 1e-3)]
    curves = objective_curves(ladders, known.train, constant=1.0)
    assert reading_of(curves[1e-3], 1.0) == objective_reading([1.0, *low])
    assert len(known.asked) == len(set(known.asked))
    assert len(known.ranks(1e-3)) <= 18  # two by two it was all 58 from rank 3 on


@pytest.mark.parametrize("most", [30, 48, 96])
def test_about_as_many_ranks_of_long_curves_are_trained_as_their_progress_foresees(most: int) -> None:
    def falling(read: int) -> list[float]:
        return [0.9 ** min(rank, read) for rank in range(1, most + 1)]

    counts: list[int] = []
    for read in range(2, most, 5):
        for larger in (read, read - read // 4):  # a larger ridge reads the same or fewer
            known = Known(chosen=falling(read), larger=falling(larger), smaller=falling(read))
            ladders = [known.ladder(ridge, spare=most, most=most) for ridge in (1e-2, 1e-3, 1e-4)]
            objective_curves(ladders, known.train, constant=1.0)
            counts.append(len(known.asked))
    assert 0.75 < sum(counts) / len(counts) / (LONG_CURVE + 2 * LONG_BESIDE) < 1.25


def test_24_ranks_are_all_trained() -> None:
    known = Known(chosen=LONG[:24])
    objective_curves([known.ladder(1e-2, spare=24, most=24)], known.train, constant=1.0)
    assert known.ranks(1e-2) == list(range(1, 25))


def test_a_rank_in_a_gap_lies_between_its_neighbours_in_logarithms() -> None:
    rows = {2: minimum(0.8), 5: minimum(0.1)}
    assert objectives_of(rows, 1.0) == pytest.approx([1.0, 1.0, 0.8, 0.4, 0.2, 0.1])


def curve(*missing: int) -> dict[int, Minimum]:
    return {rank: minimum(value) for rank, value in OBJECTIVES.items() if rank not in missing}


def test_a_curve_starts_at_the_constant_and_is_indexed_by_rank() -> None:
    assert objectives_of(curve(), 1.0) == [1.0, *OBJECTIVES.values()]
    assert objectives_of({}, 1.0) == [1.0]


def test_a_rank_that_diverged_does_not_move_the_reading_of_the_others() -> None:
    """Left out, it would shift every larger rank down by one."""
    for missing in ((1,), (2,), (1, 2), (4,), (5,)):
        assert objective_reading(objectives_of(curve(*missing), 1.0)).rank == 3
    shifted = [1.0, *(row.objective for _, row in sorted(curve(2).items()))]
    assert objective_reading(shifted).rank == 2


def test_the_network_of_the_spare_rank_stands_at_all_larger_ranks() -> None:
    low, spare = minimum(0.4, rank=1), minimum(0.2, rank=2)
    ladder = Ladder(minimum(), spare=2, most=4)
    assert ladder.filled({2: spare, 1: low}) == {1: low, 2: spare, 3: spare, 4: spare}
    assert list(ladder.filled({2: spare, 1: low})) == [1, 2, 3, 4]
    assert ladder.filled({1: low}) == {1: low}


def test_ranks_above_the_spare_one_count_only_where_the_largest_gains() -> None:
    ladder = Ladder(minimum(), spare=2, most=4)
    assert ladder.gains({2: minimum(0.2), 4: minimum(0.19)})
    assert not ladder.gains({2: minimum(0.2), 4: minimum(0.1995)})
    assert not ladder.gains({2: minimum(0.2), 4: minimum(0.21)})
    assert not ladder.gains({4: minimum(0.1)})
    assert not Ladder(minimum(), spare=4, most=4).gains({4: minimum(0.1)})
