"""The ranks that one trained start is truncated to, and those that need no training of their own.

Which of them are trained, and when: `objective_curves`. What a truncation is: `curves`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.discovery.curves import network_of
from isthmus.discovery.problem import Problem
from isthmus.discovery.settings import Settings
from isthmus.training.moves import truncate_middle

Result = dict[str, Any]
FREE = 1e-3  # relative rise of the objective up to which a truncation costs nothing
GAIN = 5e-3  # relative fall of the objective from which more dimensions gain something: half the slack of a reading


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The ranks of one start.

    Attributes:
        base: the trained start.
        spare: rank above which every truncation is the same network, unless the largest gains by its training.
        most: largest rank of its curve.
    """

    base: Result
    spare: int
    most: int

    @property
    def ridge(self) -> float:
        """Of the start."""
        return self.base["ridge"]

    def gains(self, curve: Mapping[int, Result]) -> bool:
        """Whether training lowered the objective of the largest rank below that of the spare one.

        Directions that cost nothing to cut may still grow: on data without a rank they do.
        """
        if self.most not in curve or self.spare not in curve:
            return False
        return curve[self.most]["objective"] < (1 - GAIN) * curve[self.spare]["objective"]

    def filled(self, curve: Mapping[int, Result]) -> dict[int, Result]:
        """The curve, in the order of the ranks, with the network of the spare rank at all that are larger.

        It is a network of at most that rank, as those of all smaller ranks are: the classes are nested.
        """
        above = {rank: curve[self.spare] for rank in range(self.spare, self.most + 1) if self.spare in curve}
        return dict(sorted({**curve, **above}.items()))


def spare_rank(problem: Problem, settings: Settings, base: Result, most: int) -> int:
    """Least rank, going down from `most`, to which a start is truncated without a rise of its objective."""
    allowed, rank = (1 + FREE) * base["objective"], most
    while rank > 1:
        network = network_of(problem, settings, base["theta"])
        truncate_middle(network, rank - 1)
        if not problem.objective(network, base["ridge"]) <= allowed:
            return rank
        rank -= 1
    return rank
