"""Rows cut into leaves, and folds over them, as each process of a team sees them."""

import pytest
import torch

from isthmus.errors import DataError
from isthmus.training.coordinates import AllCoordinates, SharedCoordinates, own_state, whole_state
from isthmus.training.team import Leaves, Team


@pytest.mark.parametrize("total", [4, 7, 300, 5000, 2_000_000, 10**9])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_rows_of_all_processes_follow_one_another(total: int, size: int) -> None:
    rows = [Team(rank, size).rows(total) for rank in range(size)]
    assert [r.start for r in rows] == [0, *(r.stop for r in rows[:-1])]
    assert rows[-1].stop == total
    counts = [r.stop - r.start for r in rows]
    assert max(counts) - min(counts) <= total // Leaves(total).count + 2


def test_leaves_depend_on_the_rows_alone_and_are_a_power_of_two() -> None:
    assert [Leaves(n).count for n in (3, 20, 4095, 8192, 20_000, 2**20, 10**9)] == [3, 4, 4, 8, 16, 1024, 1024]


def test_more_processes_than_parts_are_refused() -> None:
    with pytest.raises(DataError, match="100 rows make 4 parts, too few for 5 processes"):
        Team(0, 5).rows(100)


def test_a_fold_is_a_binary_tree() -> None:
    leaves = Leaves(8192)
    values = torch.randn(leaves.count, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 1e8
    found = Team().fold(leaves, lambda i: values[i].clone(), lambda a, b: a + b, values[0])
    a, b, c, d, e, f, g, h = values
    assert torch.equal(found, ((a + b) + (c + d)) + ((e + f) + (g + h)))
    assert not torch.equal(found, ((((((a + b) + c) + d) + e) + f) + g) + h), "the order is not seen in these values"


def test_inner_products_by_pieces_are_those_of_whole_vectors() -> None:
    generator = torch.Generator().manual_seed(0)
    rows, vectors = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in ((6, 1001), (1001, 2)))
    shared = SharedCoordinates(Team(), 1001)
    assert shared.part == slice(0, 1001)
    for right in (vectors, vectors[:, 0]):
        torch.testing.assert_close(shared.products(rows, right), AllCoordinates().products(rows, right))


def test_coordinates_of_a_team_cover_the_vector_and_a_state_keeps_its_own() -> None:
    parts = [SharedCoordinates(Team(rank, 3), 100).part for rank in range(3)]
    assert [p.start for p in parts] == [0, *(p.stop for p in parts[:-1])]
    assert parts[-1].stop == 100
    pairs = torch.arange(200.0).view(2, 100)
    state = {"inner": {"pairs": pairs, "count": 3}, "pairs": pairs, "reason": ""}
    own = own_state(state, SharedCoordinates(Team(1, 3), 100))
    assert own["inner"]["count"] == 3
    assert torch.equal(own["inner"]["pairs"], pairs[:, parts[1]])
    alone = SharedCoordinates(Team(), 100)
    assert torch.equal(whole_state(own_state(state, alone), alone)["pairs"], pairs)
