"""Which ridge is trained next: from the middle of the path towards a smaller held-out error, until that is bracketed.

What is trained at a ridge: `curves.trained_start`. Who asks: `search`.
"""

import math
from collections.abc import Mapping


def next_ridge(errors: Mapping[int, float], count: int, *, patience: int) -> int | None:
    """Number of the next ridge, or None where `patience` ridges, or all there are, lie on both sides of the best.

        least error at i, lo..hi were tried:   hi + 1 while hi - i < patience,   then lo - 1 while i - lo < patience

    Args:
        errors: held-out error by the number of each ridge that was tried; they are next to each other. Infinite where
            nothing could be trained; as long as all are, every ridge is tried.
        count: ridges of the path, at least 1; number 0 is the largest.
        patience: at least 1, so that a best ridge inside the path has both its neighbours.

    Test: discovery/test_ridge_path.
    """
    if not errors:
        return count // 2
    best = min(errors, key=lambda i: (errors[i], i))
    enough = patience if math.isfinite(errors[best]) else count
    lowest, highest = min(errors), max(errors)
    if highest - best < enough and highest + 1 < count:
        return highest + 1
    if best - lowest < enough and lowest > 0:
        return lowest - 1
    return None
