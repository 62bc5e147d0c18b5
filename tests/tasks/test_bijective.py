"""A rank-k matrix between bijections has Jacobian rank k everywhere, and its halves can be undone."""

import numpy as np
import pytest
import torch

from isthmus import tasks
from isthmus.tasks.bijective import BijectiveMap, bijective_map
from tolerances import rounding

SHAPES = [(0, 5, 4), (1, 3, 3), (2, 6, 4), (4, 6, 4)]


def jacobian_ranks(f: BijectiveMap, x: torch.Tensor) -> set[int]:
    jacobians = torch.stack([torch.autograd.functional.jacobian(f, p) for p in x])  # type: ignore[no-untyped-call]
    return {int(r) for r in torch.linalg.matrix_rank(jacobians, atol=rounding(size=100))}


@pytest.mark.theorem("FC-04")
@pytest.mark.parametrize(("rank", "d_in", "d_out"), SHAPES)
def test_the_jacobian_has_the_claimed_rank_at_every_sample(rank: int, d_in: int, d_out: int) -> None:
    task = tasks.bijective_rank(rank, d_in=d_in, d_out=d_out, num_samples=20, seed=rank)
    f = bijective_map(rank, d_in=d_in, d_out=d_out, seed=rank)
    x = torch.from_numpy(task.x)
    assert jacobian_ranks(f, x) == {rank} == {task.true_rank} == {task.jacobian_rank}
    np.testing.assert_array_equal(task.target, f(x).numpy())
    # control: one more direction in the matrix is seen
    more = BijectiveMap(f.inner, f.matrix + torch.eye(d_out, d_in, dtype=torch.float64), f.outer)
    assert jacobian_ranks(more, x) == {min(d_in, d_out)}


@pytest.mark.theorem("FC-04")
def test_both_ends_are_bijections() -> None:
    f = bijective_map(2, d_in=6, d_out=4, depth=3, negative_slope=0.1)
    x = torch.randn(50, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for bijection, points in ((f.inner, x), (f.outer, x[:, :4])):
        tolerance = rounding(size=6, condition=0.1**-3)
        assert float((bijection.inverse(bijection(points)) - points).abs().max()) < tolerance
    wrong = type(f.inner)(f.inner.rotations, f.inner.biases, 0.2)
    assert float((wrong.inverse(f.inner(x)) - x).abs().max()) > 0.1


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"rank": 5}, "rank <= min"),
        ({"rank": 2, "depth": 0}, "depth >= 1"),
        ({"rank": 2, "negative_slope": 0.0}, "slope"),
    ],
)
def test_impossible_maps_are_refused(arguments: dict[str, float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        tasks.bijective_rank(d_in=6, d_out=4, num_samples=5, **arguments)  # type: ignore[arg-type]
