"""Tolerances of the test tier as formulas: C * eps * size * condition, never digits typed until green."""

import torch


def closed_form(value: float = 1.0) -> float:
    """Absolute tolerance for a closed form of magnitude `value` in float64: 1e-12 relative."""
    return 1e-12 * max(1.0, abs(value))


def rounding(
    *, size: int = 1, condition: float = 1.0, dtype: torch.dtype = torch.float64, factor: float = 10.0
) -> float:
    """factor * eps * size * condition: what `size` accumulated roundings of a problem may leave."""
    return factor * torch.finfo(dtype).eps * size * condition
