"""What the tests of networks share: same function, same number, how far apart."""

import torch

from tolerances import closed_form

FUNCTION_VALUE = 1e-11  # what a written-down network may miss its function by, relative to the size of the values


def assert_same_values(got: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal up to the accuracy promised for constructions."""
    assert got.shape == expected.shape
    gap = float((got.detach() - expected.detach()).abs().max())
    assert gap <= FUNCTION_VALUE * max(1.0, float(expected.detach().abs().max()))


def assert_equals(got: float | torch.Tensor, expected: float | torch.Tensor) -> None:
    """Equal scalars up to the accuracy promised for closed forms."""
    value = float(expected.detach()) if isinstance(expected, torch.Tensor) else expected
    assert abs((float(got.detach()) if isinstance(got, torch.Tensor) else got) - value) <= closed_form(value)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    """Standard normal float64 numbers of a fixed seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest difference over the largest value expected."""
    return float((found - expected).abs().max() / expected.abs().max())
