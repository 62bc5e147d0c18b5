"""Rows cut into leaves, and folds over them, as each process of a team sees them."""

import pytest
import torch

from isthmus.errors import DataError
from isthmus.training.sharded.coordinates import AllCoordinates, SharedCoordinates, Split, with_memory
from isthmus.training.sharded.team import Leaves, Team


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


@pytest.mark.parametrize("size", [10, 1001, 5000])
def test_memory_by_pieces_does_what_a_matrix_does(size: int) -> None:
    generator = torch.Generator().manual_seed(0)
    rows, vector = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in ((6, size), (size,)))
    shared, whole = SharedCoordinates(Split(size, Team())), AllCoordinates()
    memories = [coordinates.memory(6, rows[0]) for coordinates in (shared, whole)]
    for coordinates, memory in zip((shared, whole), memories, strict=True):
        for i, row in enumerate(rows):
            coordinates.store(memory, i, row, less=vector if i == 4 else None)
        coordinates.exchange(memory, 3, vector, 1)
    expected = rows.clone()
    expected[4] -= vector
    expected[1], expected[3] = vector - rows[3], vector
    assert torch.equal(memories[1], expected)
    torch.testing.assert_close(shared.products(memories[0], 2), whole.products(memories[1], 2))
    torch.testing.assert_close(whole.products(memories[1], 2), expected @ expected[2])
    weights = torch.arange(6.0, dtype=torch.float64)
    torch.testing.assert_close(shared.combination(memories[0], weights), weights @ expected)
    torch.testing.assert_close(whole.combination(memories[1], weights), weights @ expected)


def test_pieces_of_a_team_follow_one_another_and_a_state_keeps_its_own() -> None:
    members = [SharedCoordinates(Split(5000, Team(rank, 3))) for rank in range(3)]
    assert [i for member in members for i in member.split.pieces] == list(range(64))
    alone = SharedCoordinates(Split(5000, Team()))
    memory = alone.memory(2, torch.ones(1))
    alone.store(memory, 1, torch.arange(5000.0))
    state = {"inner": {"pairs": memory, "count": 3}, "pairs": memory, "reason": ""}
    parts = [with_memory(state, member.own) for member in members]
    assert parts[1]["inner"]["count"] == 3
    assert torch.equal(torch.cat([part["inner"]["pairs"] for part in parts]), memory)
    assert torch.equal(with_memory(with_memory(state, alone.own), alone.whole)["pairs"], memory)
