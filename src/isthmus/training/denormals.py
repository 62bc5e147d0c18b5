"""Numbers too small for the processor's fast path, which long training leaves behind in weights and moments."""

from collections.abc import Generator
from contextlib import contextmanager

import torch


@contextmanager
def without_denormals() -> Generator[None]:
    """Numbers below 1.2e-38 (float64: 2.2e-308) are 0 in what this thread computes inside the block.

    The penalty takes weights that the data do not need towards 0 without end. Once they, or the moments of their
    gradients, are denormal, the processor computes with them in microcode.
    """
    flushed_before = not bool(torch.tensor(1e-39, dtype=torch.float32, device="cpu") * 1.0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed_before)
