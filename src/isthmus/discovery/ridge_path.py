"""Which ridge is trained next, from the middle towards a smaller held-out error, and which of them is chosen.

What is trained at a ridge: `curves.trained_start`. Who asks: `search`.
"""

import math
from collections.abc import Mapping

CLEARLY = 0.95  # error over that of the constant below which a network predicts more than the constant
CLOSE = 1.1  # error over the least one up to which a ridge may be chosen instead


def next_ridge(errors: Mapping[int, float], count: int, *, patience: int, useless: float = math.inf) -> int | None:
    """Number of the next ridge, or None where `patience` ridges, or all there are, lie on both sides of the best.

        least error at i, lo..hi were tried:   hi + 1 while hi - i < patience,   then lo - 1 while i - lo < patience

    Args:
        errors: held-out error by the number of each ridge that was tried; they are next to each other. Infinite where
            nothing could be trained; as long as all are, every ridge is tried.
        count: ridges of the path, at least 1; number 0 is the largest.
        patience: at least 1, so that a best ridge inside the path has both its neighbours.
        useless: error of the best constant. While no ridge does better, the rows are fitted too closely, and all the
            larger ridges are tried: errors of overconfident classes go up and down from ridge to ridge.

    Test: discovery/test_ridge_path.
    """
    if not errors:
        return count // 2
    best = min(errors, key=lambda i: (errors[i], i))
    enough = patience if math.isfinite(errors[best]) else count
    upwards = count if errors[best] >= useless else enough
    lowest, highest = min(errors), max(errors)
    if highest - best < enough and highest + 1 < count:
        return highest + 1
    if best - lowest < upwards and lowest > 0:
        return lowest - 1
    return None


def choose_ridge(
    errors: Mapping[float, float],
    objectives: Mapping[float, float],
    *,
    constant_error: float,
    constant_objective: float,
) -> float:
    """The ridge of least held-out error; beside it one nearly as good, where the constant is the least minimum.

    Where the constant has the lower objective, though the trained network predicts more than the constant, the ridge is
    too large to read a rank there, which would be 0: classes drop from all their dimensions to none within one ridge. A
    ridge may be chosen instead whose error is at most 10 % larger.

    Args:
        errors: held-out error by ridge, at least one.
        objectives: least objective by ridge.
        constant_error: held-out error of the best constant.
        constant_objective: its objective, at any ridge.

    Returns:
        The ridge; where none nearly as good predicts more than the constant at a lower objective, that of least error.

    Test: discovery/test_ridge_path.
    """
    enough = min(CLOSE * min(errors.values()), CLEARLY * constant_error)
    kept = [r for r in errors if objectives[r] < constant_objective and errors[r] <= enough]
    return min(kept or errors, key=lambda r: errors[r])
