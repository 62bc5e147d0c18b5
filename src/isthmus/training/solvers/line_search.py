"""A line search for strong Wolfe conditions that still ends well when the objective is flat to rounding."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9


@dataclass(frozen=True, slots=True)
class Point:
    """A trial step with objective and slope along the line."""

    step: float
    value: float
    slope: float


def wolfe_search(
    evaluate: Callable[[float], tuple[float, float]],
    *,
    value: float,
    slope: float,
    step: float,
    noise: float,
    most: int = 20,
) -> Point | None:
    """`wolfe_steps` with a function that gives value and slope at a step."""
    search = wolfe_steps(value=value, slope=slope, step=step, noise=noise, most=most)
    trial = next(search)
    while True:
        try:
            trial = search.send(evaluate(trial))
        except StopIteration as end:
            return end.value


def wolfe_steps(
    *, value: float, slope: float, step: float, noise: float, most: int = 20
) -> Generator[float, tuple[float, float], Point | None]:
    """A step along a descent direction that satisfies the strong Wolfe conditions, or None when none was found.

        value(step) <= value + 1e-4 step slope    and    |slope(step)| <= 0.9 |slope|

    Near a minimum the first condition drowns in rounding; it is then replaced by its derivative form (Hager and Zhang
    2005): value(step) <= value + noise and slope(step) <= (2e-4 - 1) slope.

    Args:
        value: the objective at step 0.
        slope: its derivative at step 0, negative.
        step: first trial.
        noise: rounding level of the objective.
        most: evaluations allowed, at least 1.

    Yields:
        Steps at which it is to be sent (value, slope), so that many searches can share their evaluations.

    Returns:
        The step that was found.
    """
    start = Point(0.0, value, slope)
    low, high = start, None
    trial = step
    for _ in range(most):
        found = yield trial
        point = Point(trial, *found)
        if not math.isfinite(point.value) or not _falls(start, point, noise) or (point.value >= low.value + noise):
            high = point
        elif abs(point.slope) <= -CURVATURE * slope:
            return point
        elif point.slope * ((high.step if high else math.inf) - low.step) >= 0:
            low, high = point, low
        else:
            low = point
        trial = _next_trial(low, high)
        if high is not None and abs(high.step - low.step) <= 1e-9 * max(low.step, high.step):
            break
    return low if low.step > 0 and low.value < value else None


def _falls(start: Point, point: Point, noise: float) -> bool:
    if point.value <= start.value + SUFFICIENT_DECREASE * point.step * start.slope:
        return True
    return point.value <= start.value + noise and point.slope <= (2 * SUFFICIENT_DECREASE - 1) * start.slope


def _next_trial(low: Point, high: Point | None) -> float:
    if high is None:
        return low.step * 2.5
    width = high.step - low.step
    trial = _cubic_minimum(low, high) if math.isfinite(high.value) else low.step + 0.1 * width
    inside = (trial - low.step) / width if width else 0.5
    return low.step + min(max(inside, 0.1), 0.9) * width if math.isfinite(inside) else low.step + 0.5 * width


def _cubic_minimum(a: Point, b: Point) -> float:
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (a.step + b.step) / 2
    d2 = math.copysign(math.sqrt(square), b.step - a.step)
    denominator = b.slope - a.slope + 2 * d2
    if denominator == 0:
        return (a.step + b.step) / 2
    return b.step - (b.step - a.step) * (b.slope + d2 - d1) / denominator
