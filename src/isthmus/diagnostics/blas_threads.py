"""How many threads the library takes that computes the squares of `moments`: as many as torch, not its own number.

It has a pool of its own beside that of torch. The two wait for each other on busy cores.
"""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from threadpoolctl import ThreadpoolController


@contextmanager
def threads_of_torch() -> Generator[None]:
    """Hold the libraries of numpy and scipy to `torch.get_num_threads()`; what they had before comes back."""
    with ThreadpoolController().limit(limits=torch.get_num_threads(), user_api="blas"):
        yield
