"""Sources of the project as syntax trees, each parsed once while the tests of one file look at it."""

import ast
from functools import cache


@cache
def parsed(source: str) -> ast.Module:
    """The tree; nobody changes it. `parsed.cache_clear()` forgets all, which garbage collection would go through."""
    return ast.parse(source)
