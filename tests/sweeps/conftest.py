"""What clusters of one module leave behind is not said among the words of the next."""

import gc
import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _collected() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] - pytest calls it
    """Connections that a killed process never answered are told of by asyncio when they are collected."""
    yield
    logger = logging.getLogger("asyncio")
    logger.disabled = True
    gc.collect()
    logger.disabled = False
