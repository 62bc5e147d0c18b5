import pytest
import torch

from isthmus.theory import spectral_gap_ratios
from theorem_checks import assert_close, with_spectrum

pytestmark = pytest.mark.theorem("FC-21")


def test_ratios_of_a_known_spectrum() -> None:
    ratios = spectral_gap_ratios(with_spectrum(0, [8.0, 2.0, 0.5], 20, 6), rank=2)
    assert_close(ratios[0], 0.0625, relative=1e-11)
    assert_close(ratios[1], 0.25, relative=1e-11)
    with pytest.raises(AssertionError):  # the paper's last display turns the ratio round
        assert_close(ratios[0], 16.0, relative=1e-11)


def test_a_zero_representation_has_no_gap() -> None:
    assert spectral_gap_ratios(0 * with_spectrum(0, [1.0], 5, 3), rank=1) == (0.0, 0.0)


def test_the_rank_leaves_one_singular_value_to_look_at() -> None:
    with pytest.raises(ValueError, match="needs 1 <= rank < 3"):
        spectral_gap_ratios(with_spectrum(0, [1.0], 5, 3), rank=3)


def test_small_representations_have_the_ratios_of_large_ones() -> None:
    matrix = torch.diag(torch.tensor([0.5, 0.25, 0.1], dtype=torch.float64))
    for scale in (1.0, 1e-9, 1e9):
        assert spectral_gap_ratios(scale * matrix, rank=2) == pytest.approx((0.2, 0.4), rel=1e-12)
        assert spectral_gap_ratios(scale * matrix, rank=1) == pytest.approx((0.5, 0.5), rel=1e-12)
