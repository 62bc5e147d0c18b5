import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import random
from isthmus.constructions import between_bijections
from isthmus.networks import jacobians

pytestmark = pytest.mark.theorem("FC-04")


def assert_every_jacobian_has_rank(rank: int, found: torch.Tensor) -> None:
    singular_values = torch.linalg.svdvals(found)
    assert bool((singular_values[:, :rank] > 1e-9).all())
    assert bool((singular_values[:, rank:] <= 1e-12 * singular_values.max()).all())


@settings(deadline=None, max_examples=20)
@given(rank=st.integers(0, 4), seed=st.integers(0, 999), before=st.integers(0, 3), after=st.integers(0, 3))
def test_every_jacobian_has_the_rank_of_the_matrix(rank: int, seed: int, before: int, after: int) -> None:
    matrix = random(4, rank, seed=seed) @ torch.diag(torch.ones(rank).double()) @ random(rank, 5, seed=seed + 1)
    ranked = between_bijections(matrix, depth_before=before, depth_after=after, seed=seed)
    found = jacobians(ranked.network, random(30, 5, seed=seed + 2))
    assert ranked.rank == rank
    assert_every_jacobian_has_rank(rank, found)
    with pytest.raises(AssertionError):
        assert_every_jacobian_has_rank(rank - 1 if rank else 1, found)


def test_jacobians_are_stretched_by_no_more_than_the_distortion() -> None:
    matrix = random(4, 3, seed=5)
    ranked = between_bijections(matrix, depth_before=1, depth_after=2, negative_slope=0.1, stretch=1.1, seed=3)
    ratios = torch.linalg.svdvals(jacobians(ranked.network, random(200, 3))) / torch.linalg.svdvals(matrix)

    def assert_within(distortion: float) -> None:
        assert float(ratios.max()) <= distortion
        assert float(ratios.min()) >= 1 / distortion

    assert ranked.distortion == pytest.approx(11**3)
    assert_within(ranked.distortion)
    with pytest.raises(AssertionError):  # the stretch alone, without the slope
        assert_within(1.1**3)


def test_slopes_that_are_not_invertible_are_refused() -> None:
    with pytest.raises(ValueError, match="so that sigma_a is invertible"):
        between_bijections(torch.eye(2), negative_slope=0.0)
    with pytest.raises(ValueError, match="needs depths >= 0"):
        between_bijections(torch.eye(2), depth_before=-1)
