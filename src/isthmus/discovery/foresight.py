"""How much work a search will be, before it is begun: for the estimate of the time left, and for nothing else."""

from dataclasses import dataclass

from isthmus.discovery.choices import LONG_BESIDE, LONG_CURVE, WHOLE
from isthmus.discovery.kinds.family import Family


@dataclass(frozen=True, slots=True)
class Foresight:
    """About how much networks of one size will take.

    Attributes:
        most_ranks: the largest rank that they can show.
        ridges: that are trained where the best is the first or beside it: it and its neighbours.
        scree: gradient evaluations of the scree curve.
        all: those of starts, objective curves and scree curve.
    """

    most_ranks: int
    ridges: int
    scree: int
    all: int

    @classmethod
    def of(cls, family: Family) -> "Foresight":
        """Of the networks of a family."""
        settings, most = family.settings, min(family.room, family.most_rank)
        ridges = min(2 * settings.patience + 1, len(settings.ridges))
        ranks, beside = (LONG_CURVE, LONG_BESIDE) if most > WHOLE else (min(most, 6), min(most, 6))
        starts = ridges * (len(settings.starts) * settings.start_evaluations + settings.raise_evaluations)
        curves = (ranks + (ridges - 1) * beside) * settings.polish_evaluations
        scree = ranks * settings.refine_evaluations
        return cls(most, ridges, scree, starts + curves + scree)
