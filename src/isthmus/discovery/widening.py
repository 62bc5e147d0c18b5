"""Whether networks are too small for the task: a network as wide as its rank may say its own width.

To what it is widened: `Settings.wider`. Who asks: `search`.
"""

from collections.abc import Mapping

from isthmus.discovery.curves import Result
from isthmus.discovery.objective_curves import reading_of
from isthmus.discovery.settings import Settings

WIDENED_COST = 2.0  # a whole search over its starts and curves, in time, at equal widths


def is_full(curve: Mapping[int, Result], constant: float, settings: Settings, *, most: int) -> bool:
    """Whether the objective asks for as many dimensions as the linear layers have, and the task may have more.

    Residual networks are never full: they are as wide as their data. What a start uses says less: noise fills all
    layers of a network whose objective reads 8.

    Args:
        curve: truncated networks by rank, at the chosen ridge.
        constant: objective of the best constant.
        settings: those that the networks had.
        most: rank that no map of these inputs to these targets exceeds.

    Test: discovery/test_widening.
    """
    room = settings.room
    return room < min(most, settings.widest) and reading_of(curve, constant).rank >= room


def leaves_room(seconds_left: float | None, spent: float, settings: Settings, *, most: int) -> bool:
    """Whether a time limit, if there is one, leaves room for wider starts, their curves and the scree curve.

        left > 2 * (width_wider / width)^2 * spent

    Args:
        seconds_left: until the limit, or None.
        spent: seconds on the starts and curves of networks of this size, in this sitting or an earlier one.
        settings: those that the networks had.
        most: rank that no map of these inputs to these targets exceeds.

    Test: discovery/test_widening.
    """
    growth = settings.wider(most).width / settings.width
    return seconds_left is None or seconds_left > WIDENED_COST * growth**2 * spent
