import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import balanced_linear_network


@pytest.mark.theorem("FC-09")
@pytest.mark.parametrize("depth", [1, 2, 5, 30])
def test_the_network_is_the_matrix_at_its_cost(depth: int) -> None:
    matrix, x = random(4, 3), random(20, 3, seed=1)
    network = balanced_linear_network(matrix, depth=depth)
    assert_same_values(network(x), x @ matrix.T)
    s = torch.linalg.svdvals(matrix)
    assert_equals(network.penalty(), depth * s.pow(2 / depth).sum())
    with pytest.raises(AssertionError):
        assert_equals(network.penalty(), depth * s.pow(1 / depth).sum())


def test_a_smaller_rank_gives_the_nearest_matrix_of_that_rank() -> None:
    matrix = random(4, 3)
    network = balanced_linear_network(matrix, depth=3, rank=2)
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    assert network.dimensions == (3, 2, 2, 4)
    assert_same_values(network(torch.eye(3).double()).T, u[:, :2] * s[:2] @ vh[:2])


def test_bad_ranks_are_refused() -> None:
    with pytest.raises(ValueError, match="a rank in 1..2"):
        balanced_linear_network(torch.ones(2, 3), depth=2, rank=3)
