"""Trees of sources are kept for the tests of one file, and nobody looks for garbage among them."""

import gc
from collections.abc import Iterator

import pytest

from syntax_trees import parsed


@pytest.fixture(autouse=True, scope="module")
def _trees_of_one_file() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    gc.disable()  # two thirds of the time of parsing all sources otherwise
    yield
    parsed.cache_clear()
    gc.enable()
