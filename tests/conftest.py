"""No test may leave torch otherwise than it found it: what one leaves behind, the next one stumbles over."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _torch_stays_as_it_was() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    before = (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads())
    yield
    after = (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads())
    torch.set_grad_enabled(before[0])
    assert after == before, f"(gradients enabled, default type, threads) were {before} and are {after}"
