"""The ways of saving at a site of a chain, from the smallest size on. The moves: `compression_moves`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isthmus.networks.stage_kinds import Stage


@dataclass(frozen=True, slots=True, eq=False)
class MovePlan:
    """The ways of saving at a site.

    Attributes:
        sizes: numbers of neurons or coordinates that would save something, rising; empty where nothing would.
        build: a size -> the steps that replace those of the site.
    """

    sizes: Sequence[int]
    build: Callable[[int], list[Stage]]


def no_move() -> MovePlan:
    """Nothing that would save something."""
    return MovePlan((), lambda _: [])
