"""Integers read off spectra with a known gap."""

import pytest
import torch

from isthmus.theory import participation_ratio, spectral_gap_rank


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
