import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import depth_window
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
