"""The memory of L-BFGS around an operator: its direction is that of the two loops, and rows are taken in turn."""

import pytest
import torch
from torch import Tensor

from isthmus.training.solvers.pairs_around import direction, keep, no_pairs
from theorem_checks import assert_close, normal

SIZE, MOST = 30, 5
HESSIAN = normal(0, SIZE, SIZE) @ normal(0, SIZE, SIZE).mT + torch.eye(SIZE, dtype=torch.float64)


def guess(v: Tensor) -> Tensor:
    """Not the inverse curvature, but positive."""
    return v / HESSIAN.diagonal()


def two_loops(pairs: list[tuple[Tensor, Tensor]], gradient: Tensor) -> Tensor:
    """The recursion as it is written in every book."""
    q, alphas = gradient.clone(), list[Tensor]()
    for s, y in reversed(pairs):
        alphas.append(torch.dot(s, q) / torch.dot(s, y))
        q = q - alphas[-1] * y
    z = guess(q)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        z = z + (alpha - torch.dot(y, z) / torch.dot(s, y)) * s
    return -z


@pytest.mark.parametrize("count", [0, 1, 3, 5, 6, 12])
def test_the_direction_is_that_of_the_two_loops_over_the_newest_pairs(count: int) -> None:
    state, pairs, gradient = no_pairs(), list[tuple[Tensor, Tensor]](), normal(99, SIZE)
    for seed in range(count):
        moved = normal(seed + 1, SIZE)
        # curvature that changes from pair to pair, so that their order and all their products matter
        change = HESSIAN @ moved * (1 + 0.1 * seed) + 0.1 * normal(seed + 50, SIZE)
        pairs.append((moved, change))
        keep(state, moved, change, most=MOST)
    before = gradient.clone()
    found = direction(state, gradient, guess)
    assert_close(found, two_loops(pairs[-MOST:], gradient), relative=1e-10)
    assert torch.equal(gradient, before)
    if count > 1:
        with pytest.raises(AssertionError):
            assert_close(found, two_loops(pairs[-MOST:][::-1], gradient), relative=1e-10)
