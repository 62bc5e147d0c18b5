"""Whether networks are too small for the task: a network as wide as its rank may say its own width.

To what it is widened: `Settings.wider`. Who asks: `search`.
"""

from collections.abc import Mapping

from isthmus.discovery.curves import Result
from isthmus.discovery.objective_curves import reading_of
from isthmus.discovery.search_pass import Trained
from isthmus.discovery.settings import Settings
from isthmus.theory.curve_readings import OBJECTIVE_SLACK

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


def fell_short(narrow: Trained, wide: Trained) -> str | None:
    """What to say where the narrow networks have a lower objective, at the ridge that the wide ones chose.

    Every narrow network is a wide one, so the wide ones are then not at their least minimum. On digits 24 dimensions
    of a narrow network had 0.121 where 50 of a wide one had 0.147.

    Test: discovery/test_widening.
    """
    before, now = narrow.least_objective(wide.ridge), wide.least_objective(wide.ridge)
    if now <= OBJECTIVE_SLACK * before:
        return None
    return (
        f"At ridge {wide.ridge:g} narrower networks ended at a lower objective ({before:.3g} through at most "
        f"{narrow.ladder.most} dimensions) than wider ones ({now:.3g}): the rank may be smaller. More evaluations, or "
        "more starts, would tell."
    )
