"""How many dimensions rows and their coordinates fill with their neighbours, which a rank is held against.

They may lie on a closed surface, or on one that a shallow network cannot follow; depth tells which: `over_depth`. How
dimensions are counted: `depth.between_rows`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from isthmus.discovery.choices import AROUND, CAPPED_FROM, CLOSELY, FAR_FEWER, LOW_RANK, NARROW
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.depth.between_rows import filled_by, near_dimension
from isthmus.discovery.evidence.baseline import linear_network
from isthmus.discovery.evidence.foretold import AlongOneDirection, Foretold
from isthmus.discovery.factorisation import Factorisation, cut_network
from isthmus.discovery.findings import Decision
from isthmus.discovery.halves import INDEX, RANK
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.objective_curves import Curve
from isthmus.networks import FullyConnected
from isthmus.theory import Verdict
from isthmus.training.losses import weighted_mean

COORDINATES = "the coordinates of the rows"  # of regressions, which fill dimensions as rows do that are autoencoded


def fill_fewer(rank: int, around: float, *, capped: bool = False) -> bool:
    """Whether rows, or their coordinates, fill clearly fewer dimensions than so many.

    By `CLOSELY`; where there are no more targets, and at least `CAPPED_FROM`, by `AROUND`: their own values are as many
    coordinates, whatever they depend on. Of 6 hidden numbers 7 targets fill 6.0, all of whose readings are 7.
    """
    return rank > (AROUND if capped and rank >= CAPPED_FROM else CLOSELY) * around


def held_against_rows(
    decision: Decision, around: float, *, who: str = "rows", asked: bool = False, capped: bool = False
) -> Decision:
    """A rank that is sure, in doubt again where rows, or their coordinates, fill fewer dimensions.

    Of data that are autoencoded: a pendulum in two frames of pixels, which fills two, read 4 without a doubt after long
    training, and a bob in a disk 3. Of regressions: 4 targets of 3 hidden numbers read 4, whose coordinates fill 3.0.
    """
    if decision.verdict is not Verdict.CONFIDENT or not fill_fewer(decision.rank, around, capped=capped):
        return decision
    doubt = (
        f"With their neighbours, {who} fill {around:.1f} dimensions: {decision.rank} flat ones may be fewer, curved."
    )
    advice = "" if asked else " Deeper networks tell (depth_path=True, --depth-path)."
    return decision.in_doubt(doubt + advice)


@dataclass(frozen=True, slots=True, eq=False)
class CurvedCoordinates:
    """Those that halves of each rank give the rows.

    Attributes:
        family: the networks.
        halves: those refined through each rank: a scree curve.
    """

    family: Family[Any]
    halves: Curve

    @property
    def problem(self) -> Problem:
        """The data."""
        return self.family.problem

    def cut(self, rank: int) -> Factorisation[FullyConnected] | None:
        """The network of so many curved coordinates that are no classes' scores, in two; None where there is none."""
        curved = self.family.settings.rank_kind is RANK and not self.problem.classes
        return self._halves(rank) if curved else None

    def _linear_halves(self, rank: int) -> Factorisation[FullyConnected]:
        return cut_network(linear_network(self.problem, rank), self.problem.x, rank)

    def _halves(self, rank: int) -> Factorisation[FullyConnected] | None:
        known, family = self.halves.get(rank), self.family
        if known is None or known.dimensions != rank or rank < 1:
            return None
        return cut_network(family.written(family.network_of(known)), self.problem.x, rank, layer=family.middle)

    def filled(self, rank: int) -> float:
        """Dimensions that rows fill of so many coordinates, which leave out most noise.

        NaN where that is not known, or coordinates do not curve.
        """
        halves = self.cut(rank) if rank > 1 else None
        return math.nan if halves is None else filled_by(halves.encoder, self.problem)

    def around(self, rank: int) -> float:
        """Dimensions that rows fill with their neighbours: of data that are autoencoded those of their columns."""
        return near_dimension(self.problem) if self.problem.autoencoding else self.filled(rank)

    def least_around(self, rank: int) -> float:
        """The less of rows and their coordinates: pixels of a circle fill 1.7 to 2.6 by their noise, those 1.1."""
        around = self.around(rank)
        return float(np.fmin(around, self.filled(rank))) if self.problem.autoencoding else around

    def fill_fewer(self, rank: int) -> bool:
        """Whether rows, or so many coordinates of theirs, fill clearly fewer dimensions than so many."""
        return fill_fewer(rank, self.least_around(rank), capped=self._is_capped(rank))

    def _is_capped(self, rank: int) -> bool:
        """Whether as many dimensions as there are targets were read, though inputs have more directions."""
        problem = self.problem
        return not problem.autoencoding and rank == problem.most_out < problem.most_in

    def holds(self, decision: Decision, *, asked: bool, closely: bool, linear: bool = False) -> Decision:
        """What is left of a decision of regressions, or of data that are autoencoded, by what is filled.

        Args:
            decision: of which a sure one may fall into doubt.
            asked: whether depth was varied.
            closely: of data that are autoencoded, as work was done on doubts; else of up to `NARROW` columns, or
                `LOW_RANK` dimensions.
            linear: whether the coordinates of regressions are those of the linear map.
        """
        rank = decision.rank
        if not self.problem.autoencoding:
            around = filled_by(self._linear_halves(rank).encoder, self.problem) if linear else self.around(rank)
            capped = self._is_capped(rank)
            return held_against_rows(decision, around, who=COORDINATES, asked=asked, capped=capped)
        if decision.verdict is not Verdict.CONFIDENT:
            return decision
        least = self.least_around(rank)
        if not (closely or self.problem.d_in <= NARROW or rank <= LOW_RANK or rank > FAR_FEWER * least):
            return decision
        who = "rows" if least == self.around(rank) else COORDINATES
        return held_against_rows(decision, least, who=who, asked=asked)

    def left_over(self, rank: int, *, linear: bool = False) -> Foretold | None:
        """How far what is lost of held-out rows is a further dimension; None where that is not known.

        Nor is it asked where inputs, or targets of two curved halves, have no further one.

        Args:
            rank: of the halves.
            linear: whether they are those of the linear map.
        """
        problem = self.problem
        most = problem.most_in if self.family.settings.rank_kind is INDEX else min(problem.most_in, problem.most_out)
        if not problem.loss.is_quadratic or not 0 < rank < most:
            return None
        kind = AlongOneDirection if problem.autoencoding else Foretold
        if linear:
            return kind.of(self._linear_halves(rank), problem, exact=True)
        halves = self._halves(rank)
        return None if halves is None else kind.of(halves, problem)

    def lost_by_column(self, rank: int) -> NDArray[np.float64] | None:
        """Share of each column of held-out targets that is lost through so many coordinates, where that is known."""
        halves, problem = self.cut(rank), self.problem
        if halves is None:
            return None
        y, x = problem.y_held.double(), problem.x_held.double()
        with torch.no_grad():
            lost = (halves.decoder(halves.encoder(x)) - y).square()
        return (weighted_mean(lost, problem.weight_held) * y.shape[1] / problem.unit).numpy()
