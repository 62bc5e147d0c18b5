import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import completely_positive_path
from isthmus.errors import ShapeError
from shape_checks import own_shape_checks

pytestmark = pytest.mark.theorem("FC-30")


def positive_domain(matrix: torch.Tensor) -> torch.Tensor:
    """Non-negative combinations of the rows of a non-negative matrix: A x and the projection of x are non-negative."""
    return random(40, len(matrix), seed=4).abs() @ matrix


MATRIX = random(2, 3).abs()


@pytest.mark.parametrize("depth", [2, 3, 10, 100])
def test_the_relu_network_is_the_linear_map_at_the_stated_norm(depth: int) -> None:
    x = positive_domain(MATRIX)
    path = completely_positive_path(MATRIX, depth=depth, x=x)
    assert path.network.linear == frozenset()
    assert_same_values(path.network(x), x @ MATRIX.T)
    assert_equals(path.network.penalty(), path.squared_norm)
    with pytest.raises(AssertionError):  # outside the cone the ReLU bites
        assert_same_values(path.network(-x), -x @ MATRIX.T)


def assert_excess_falls_like(power: int, excesses: list[float], depths: list[int]) -> None:
    products = [excess * depth**power for excess, depth in zip(excesses, depths, strict=True)]
    assert abs(products[-1] / products[-2] - 1) < 0.05


def test_the_norm_tends_to_its_limit_like_one_over_depth() -> None:
    x, depths = positive_domain(MATRIX), [100, 200, 400]
    paths = [completely_positive_path(MATRIX, depth=depth, x=x) for depth in depths]
    excesses = [path.squared_norm - path.limit for path in paths]
    assert_excess_falls_like(1, excesses, depths)
    for wrong in (0, 2):
        with pytest.raises(AssertionError):
            assert_excess_falls_like(wrong, excesses, depths)
    singular_values = torch.linalg.svdvals(MATRIX)
    assert_equals(paths[0].limit, 2 * 100 + 2 * float(singular_values.log().sum()))


def test_isometries_carry_a_domain_into_the_positive_orthant() -> None:
    rotation = torch.linalg.qr(random(3, 3, seed=8))[0]
    turned, x = MATRIX @ rotation.T, positive_domain(MATRIX) @ rotation.T
    with pytest.raises(ValueError, match="O_in P x >= 0"):
        completely_positive_path(turned, depth=5, x=x)
    path = completely_positive_path(turned, depth=5, x=x, isometry_in=rotation.T)
    assert_same_values(path.network(x), x @ turned.T)
    with pytest.raises(ValueError, match="needs an isometry"):
        completely_positive_path(turned, depth=5, x=x, isometry_in=2 * rotation.T)


def test_rank_deficient_maps_cost_their_rank() -> None:
    matrix = torch.outer(random(4, seed=1).abs(), random(3, seed=2).abs())
    x = positive_domain(matrix)
    path = completely_positive_path(matrix, depth=6, x=x)
    assert path.rank == 1
    assert_same_values(path.network(x), x @ matrix.T)
    assert_equals(path.network.penalty(), path.squared_norm)


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="needs depth >= 2"):
        completely_positive_path(torch.zeros(2, 2), depth=3, x=torch.ones(1, 2))
    with own_shape_checks(), pytest.raises(ShapeError, match="needs a matrix"):
        completely_positive_path(MATRIX, depth=3, x=torch.ones(1, 2))
