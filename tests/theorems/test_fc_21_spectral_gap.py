import pytest
import torch

from isthmus.theory import spectral_gap_profile, spectral_gap_ratios
from theorem_checks import assert_at_most, assert_close, with_spectrum

pytestmark = pytest.mark.theorem("FC-21")


def test_ratios_of_a_known_spectrum() -> None:
    ratios = spectral_gap_ratios(with_spectrum(0, [8.0, 2.0, 0.5], 20, 6), rank=2)
    assert_close(ratios[0], 0.0625, relative=1e-11)
    assert_close(ratios[1], 0.25, relative=1e-11)
    with pytest.raises(AssertionError):  # the paper's last display turns the ratio round
        assert_close(ratios[0], 16.0, relative=1e-11)


def test_the_profile_finds_the_narrowest_layer() -> None:
    spectra = ([8.0, 2.0, 0.5], [8.0, 6.0, 0.25], [4.0, 2.0, 1.0])
    layers = [with_spectrum(i, list(values), 20, 6) for i, values in enumerate(spectra)]
    profile = spectral_gap_profile(layers, rank=2)
    assert_close(profile.over_first, torch.tensor([0.0625, 0.03125, 0.25], dtype=torch.float64), relative=1e-10)
    assert_close(profile.over_last, torch.tensor([0.25, 0.25 / 6, 0.5], dtype=torch.float64), relative=1e-10)
    assert profile.narrowest == 2
    with pytest.raises(AssertionError):
        assert_close(profile.over_first.flip(0), profile.over_first)
    with pytest.raises(ValueError, match="at least one representation"):
        spectral_gap_profile([], rank=1)


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


def test_a_bias_adds_a_cross_term_that_the_proof_drops() -> None:
    """|W Z + b|^2 <= |W|^2 |Z|^2 + N |b|^2 is false at Z = W = b = 1; with W and b as one matrix it holds."""
    Z, w, b = torch.ones(5, 1).double(), 1.0, 1.0
    layer = (w * Z + b).square().sum()
    augmented = torch.cat([Z, torch.ones(5, 1).double()], 1)
    assert_at_most(layer, (w**2 + b**2) * torch.linalg.matrix_norm(augmented, 2) ** 2)
    with pytest.raises(AssertionError):
        assert_at_most(layer, w**2 * Z.square().sum() + 5 * b**2)


def test_relu_can_raise_the_largest_spread_but_never_the_total() -> None:
    Z = torch.tensor([[-2.0, 6.0], [4.0, 5.0], [0.0, 0.0]], dtype=torch.float64)
    before, after = Z - Z.mean(0), Z.relu() - Z.relu().mean(0)
    assert_at_most(after.square().sum(), before.square().sum())
    with pytest.raises(AssertionError):  # 1.049 times as large
        assert_at_most(torch.linalg.matrix_norm(after, 2), torch.linalg.matrix_norm(before, 2))
