import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import depth_window, rank1_stretch
from theorem_checks import assert_close

pytestmark = pytest.mark.theorem("FC-24")


def assert_edge(depth: float, *, rank: int, constant: float, stretch: float) -> None:
    assert_close(depth * stretch ** (2 / depth), rank * depth + constant, relative=1e-10)


@settings(deadline=None, max_examples=50)
@given(rank=st.integers(2, 6), constant=st.floats(0, 100), stretch=st.floats(2, 1e6))
def test_at_the_edge_rank_one_and_rank_k_cost_the_same(rank: int, constant: float, stretch: float) -> None:
    window = depth_window(rank=rank, constant=constant, rank1_constant=1e4, rank1_stretch=stretch)
    assert_edge(window.certified, rank=rank, constant=constant, stretch=stretch)
    with pytest.raises(AssertionError):
        assert_edge(1.01 * window.certified, rank=rank, constant=constant, stretch=stretch)
    undercut = window.undercut
    assert_close(undercut + 1e4, rank * undercut + constant)


def test_more_data_widen_the_window() -> None:
    widths = [depth_window(rank=2, constant=5, rank1_constant=100, rank1_stretch=r).certified for r in (2, 20, 200)]
    assert widths == sorted(widths)
    assert depth_window(rank=2, constant=5, rank1_constant=100, rank1_stretch=0.5).certified < 1


@pytest.mark.parametrize(("k", "sides"), [(2, (6, 24)), (3, (4, 9))])
def test_the_window_grows_with_the_logarithm_of_the_number_of_samples(k: int, sides: tuple[int, int]) -> None:
    """L = 2 log(stretch) / log(k) where C = 0; a grid of N = m^k points has the tree (N - 1) / (m - 1): N^(1 - 1/k)."""
    edges = list[float]()
    for m in sides:
        points = torch.cartesian_prod(*[torch.linspace(0, 1, m, dtype=torch.float64)] * k)
        stretch = rank1_stretch(points, 10 * points)
        assert_close(stretch, 10 * (m**k - 1) / (m - 1) / k**0.5, relative=1e-9)
        window = depth_window(rank=k, constant=0.0, rank1_constant=1e4, rank1_stretch=stretch)
        assert_close(window.certified, 2 * math.log(stretch) / math.log(k), relative=1e-9)
        edges.append(window.certified)
    rate = (edges[1] - edges[0]) / (k * math.log(sides[1] / sides[0]))  # by log N
    assert abs(rate / (2 * (1 - 1 / k) / math.log(k)) - 1) < 0.1
    with pytest.raises(AssertionError):  # the law of as many samples of other dimensions
        assert abs(rate / (2 * (1 - 1 / (k + 1)) / math.log(k)) - 1) < 0.1
