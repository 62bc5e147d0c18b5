"""Estimators from nearest neighbours on uniform cubes, whose dimension they know, and under changes of units."""

import math
from collections.abc import Callable

import pytest
import torch

from isthmus.theory import neighbour_dimensions as nearest
from tolerances import rounding

N = 1200
ESTIMATORS: dict[str, Callable[[torch.Tensor], float]] = {
    "two neighbours": nearest.two_neighbour_dimension,
    "likelihood": nearest.likeliest_dimension,
    "mean distance": nearest.mean_distance_dimension,
    "correlation": nearest.correlation_dimension,
}


def cube(d: int, *, columns: int = 6, n: int = N) -> torch.Tensor:
    """A uniform cube of d dimensions, turned into more columns."""
    generator = torch.Generator().manual_seed(d)
    frame = torch.linalg.qr(torch.randn(columns, d, generator=generator, dtype=torch.float64)).Q
    return torch.rand(n, d, generator=generator, dtype=torch.float64) @ frame.T


def test_distances_are_those_of_a_look_at_every_pair() -> None:
    x = cube(3, n=300)
    every = (x[:, None] - x).norm(dim=2).sort(dim=1).values[:, 1:8]  # 0 to itself first
    found = nearest.neighbour_distances(x, neighbours=7)
    assert float((found - every).abs().max()) <= rounding(size=10)
    assert not torch.allclose(found, every.roll(1, 1))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_dimension_of_a_cube_is_found_in_any_units(name: str, d: int) -> None:
    x = cube(d)
    found = ESTIMATORS[name](x)
    # the slope of n independent ratios scatters by d / sqrt(n); borders take up to a tenth beside
    assert abs(found - d) <= 5 * d / math.sqrt(N) + 0.1 * d
    assert ESTIMATORS[name](1e-3 * x + 7) == pytest.approx(found, rel=1e-9)


def test_the_likelihood_is_that_of_its_formula() -> None:
    x = cube(2, n=60)
    total = 0.0
    for row in x:
        r = (row - x).norm(dim=1).sort().values[1:6]
        total += sum(math.log(r[4] / r[j]) for j in range(4))
    assert nearest.likeliest_dimension(x, neighbours=5) == pytest.approx(60 * 4 / total, rel=1e-12)


def test_principal_variances_are_counted_above_their_share() -> None:
    x = torch.diag(torch.tensor([10.0, 3.0, 2.0, 0.1], dtype=torch.float64))
    x = torch.cat([x, -x])  # variances 100, 9, 4, 0.01 over the largest
    assert nearest.principal_dimension(x) == 2
    assert nearest.principal_dimension(x, share=0.01) == 3
    assert nearest.principal_dimension(x + 1000, share=0.01) == 3


def test_what_cannot_be_measured_is_refused() -> None:
    twice = torch.cat([cube(2, n=20), cube(2, n=1)])
    twice[-1] = twice[4]
    with pytest.raises(ValueError, match="row 4 is there twice"):
        nearest.two_neighbour_dimension(twice)
    with pytest.raises(ValueError, match="needs 1 to 9"):
        nearest.likeliest_dimension(cube(2, n=10))
    with pytest.raises(ValueError, match="at least 2"):
        nearest.mean_distance_dimension(cube(2), neighbours=1)
    with pytest.raises(ValueError, match="1 <= near < far"):
        nearest.correlation_dimension(cube(2), near=5, far=5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nearest.principal_dimension(cube(2), share=1.5)
