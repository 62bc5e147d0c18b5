"""Switching the type checker off, to reach the library's own words about what does not fit.

Around a whole test, `@pytest.mark.other_types` does so.
"""

from collections.abc import Generator
from contextlib import contextmanager

from jaxtyping import config


@contextmanager
def own_shape_checks() -> Generator[None]:
    """Within: annotations are not checked, as for a user of the library."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", before)
