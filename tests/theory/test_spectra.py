"""Integers read off spectra with a known gap."""

import pytest
import torch

from isthmus.theory import participation_ratio, spectral_gap_rank
from isthmus.theory.spectra import energy_rank, entropy_rank, spectral_gap
from tolerances import rounding


def gap_rank(values: torch.Tensor, *, floor: float = 0.01) -> int:
    return int(spectral_gap_rank(values, floor=floor))


def spectrum(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("values", "rank"),
    [
        ((5.0, 4.0, 3.0, 0.01, 0.009), 3),
        ((1.0, 1.0, 1.0), 3),
        ((1.0, 0.9, 1e-5, 1e-30), 2),
        ((1.0,), 1),
        ((0.0, 0.0), 0),
        ((), 0),
    ],
    ids=["gap", "full", "roundings-below-the-floor", "single", "zero", "empty"],
)
def test_the_gap_is_found(values: tuple[float, ...], rank: int) -> None:
    assert gap_rank(spectrum(*values)) == rank


def test_without_a_floor_roundings_would_win() -> None:
    values = spectrum(1.0, 0.9, 1e-5, 1e-30)
    assert gap_rank(values, floor=1e-29) == 3
    assert gap_rank(values, floor=1e-2) == 2


def test_the_gap_does_not_depend_on_units() -> None:
    values = spectrum(5.0, 4.0, 0.3, 0.01)
    assert gap_rank(values) == gap_rank(1e200 * values) == gap_rank(1e-200 * values)


@pytest.mark.parametrize("floor", [0.0, 1.0, -1.0])
def test_a_floor_outside_its_range_is_refused(floor: float) -> None:
    with pytest.raises(ValueError, match="floor"):
        gap_rank(spectrum(1.0), floor=floor)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
def test_equal_values_participate_equally(scale: float) -> None:
    assert float(participation_ratio(scale * spectrum(1, 1, 1, 1))) == pytest.approx(4, rel=1e-12)
    assert float(participation_ratio(scale * spectrum(1, 0, 0))) == pytest.approx(1, rel=1e-12)
    assert float(participation_ratio(spectrum(0, 0))) == 0
    assert float(participation_ratio(spectrum(2, 1))) == pytest.approx(25 / 17, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "gap"),
    [((5.0, 4.0, 0.5, 0.4), 8.0), ((1.0, 1.0), 100.0), ((4.0, 2.0, 1e-9), 50.0), ((0.0, 0.0), float("inf"))],
)
def test_the_size_of_the_gap(values: tuple[float, ...], gap: float) -> None:
    assert float(spectral_gap(spectrum(*values))) == pytest.approx(gap)


@pytest.mark.parametrize(
    ("values", "share", "rank"),
    [
        ((2.0, 1.0, 1.0), 0.66, 1),
        ((2.0, 1.0, 1.0), 0.67, 2),
        ((2.0, 1.0, 1.0), 0.9, 3),
        ((1e-200, 1e-200), 0.9, 2),
        ((0.0, 0.0), 0.9, 0),
        ((), 0.9, 0),
    ],
)
def test_directions_that_hold_a_share_of_the_energy(values: tuple[float, ...], share: float, rank: int) -> None:
    assert int(energy_rank(spectrum(*values), share=share)) == rank


def test_equal_values_count_each_and_the_entropy_counts_small_ones_for_more() -> None:
    assert float(entropy_rank(spectrum(3.0, 3.0, 3.0, 3.0))) == pytest.approx(4.0, rel=rounding(size=8))
    assert float(entropy_rank(spectrum(0.0, 0.0))) == float(entropy_rank(spectrum())) == 0.0
    falling = spectrum(1.0, 0.5, 0.2, 0.1)
    assert 1.0 < float(participation_ratio(falling)) < float(entropy_rank(falling)) < 4.0
    few = torch.randn(20, 400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(participation_ratio(torch.linalg.svdvals(few - few.mean(0)))) < 20.0  # of 400, by 20 rows
