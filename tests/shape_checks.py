"""Switching the type checker's shapes off, to reach the library's own words about a shape that does not fit."""

from collections.abc import Generator
from contextlib import contextmanager

from jaxtyping import config


@contextmanager
def own_shape_checks() -> Generator[None]:
    """Within: annotations are not checked, as for a user of the library."""
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", False)
