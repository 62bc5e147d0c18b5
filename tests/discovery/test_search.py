"""What a search makes of its results before they are read."""

from isthmus.discovery.search import by_rank
from isthmus.theory.curve_readings import objective_reading

OBJECTIVES = {1: 0.8, 2: 0.5, 3: 0.2, 4: 0.199, 5: 0.1985}


def curve(*missing: int) -> dict[int, dict[str, float]]:
    return {rank: {"objective": value} for rank, value in OBJECTIVES.items() if rank not in missing}


def test_a_curve_starts_at_the_constant_and_is_indexed_by_rank() -> None:
    assert by_rank(curve(), "objective", constant=1.0) == [1.0, 0.8, 0.5, 0.2, 0.199, 0.1985]
    assert by_rank({}, "objective", constant=1.0) == [1.0]


def test_a_rank_that_diverged_does_not_move_the_reading_of_the_others() -> None:
    """Left out, it would shift every larger rank down by one."""
    for missing in ((1,), (2,), (1, 2), (4,), (5,)):
        assert objective_reading(by_rank(curve(*missing), "objective", constant=1.0)).rank == 3
    shifted = [1.0, *(row["objective"] for _, row in sorted(curve(2).items()))]
    assert objective_reading(shifted).rank == 2
