"""What a search computed, as records: of networks of one size, and at its end. The search itself: `search`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from isthmus.discovery.choices import SLACK
from isthmus.discovery.decision import Decision, Readings, decide
from isthmus.discovery.evidence.confidence import Shares
from isthmus.discovery.halves import RANK, RankKind
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.objective_curves import Curve, Curves, Ladder

Starts = dict[float, list[Minimum]]


@dataclass(frozen=True, slots=True, eq=False)
class SizeFindings:
    """What networks of one size were trained to, before their scree curve.

    Attributes:
        ridge: that of least held-out error.
        starts: the trained starts by ridge.
        ladder: the ranks of the best start at the chosen ridge.
        curves: the truncated networks by ridge, then rank.
    """

    ridge: float
    starts: Starts
    ladder: Ladder
    curves: Curves

    @property
    def curve(self) -> Curve:
        """The objective curve at the chosen ridge."""
        return self.curves[self.ridge]

    def least_objective(self, ridge: float) -> float:
        """Of all its networks at this ridge; infinite where there are none."""
        minima = [*self.starts.get(ridge, []), *self.curves.get(ridge, {}).values()]
        return min((minimum.objective for minimum in minima), default=math.inf)

    @property
    def seconds(self) -> float:
        """Time that its units took one after the other, in this sitting or an earlier one."""
        minima = [m for at in self.starts.values() for m in at] + [m for c in self.curves.values() for m in c.values()]
        return sum({id(minimum): minimum.seconds for minimum in minima}.values())

    def with_ranks(self, found: Curve) -> "SizeFindings":
        """The same with these ranks on the curve of the chosen ridge too."""
        curve = dict(sorted({**self.curve, **found}.items()))
        return replace(self, curves={**self.curves, self.ridge: curve})

    def fell_short_of(self, narrow: "SizeFindings", kind: RankKind = RANK) -> str | None:
        """What to say where narrower networks have a lower objective, at the ridge that these chose.

        Every narrow network is a wide one, so the wide ones are then not at their least minimum. On digits 24
        dimensions of a narrow network had 0.121 where 50 of a wide one had 0.147.
        """
        before, now = narrow.least_objective(self.ridge), self.least_objective(self.ridge)
        if now <= self.ladder.compared.raised(before, 1 + SLACK):
            return None
        return (
            f"At ridge {self.ridge:g} narrower networks ended at a lower objective ({before:.3g} through at most "
            f"{kind.counted(narrow.ladder.most)}) than wider ones ({now:.3g}): the rank may be smaller. More "
            "evaluations, or more starts, would tell."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Everything that a search computed.

    Attributes:
        family: the networks, in the widths that they had at last.
        ridge: the chosen ridge.
        readings: what the curves say.
        decision: what follows.
        shares: how often the decided rank was read, over starts and over resampled held-out rows.
        starts: the trained starts by ridge.
        curves: the truncated networks by ridge, then rank.
        scree: the refined halves by rank.
        warnings: what cut the search short.
        deep: the network of the deepest that the rank is believed of, where depth decided.
        halved: halves of the decided rank, trained on from there on each of some halves of the rows.
        whole: those of a linear encoder trained on with all rows, the held-out ones too.
    """

    family: Family
    ridge: float
    readings: Readings
    decision: Decision
    shares: Shares
    starts: Starts
    curves: Curves
    scree: Curve
    warnings: list[str] = field(default_factory=list[str])
    halved: Sequence[Minimum] = ()
    whole: Minimum | None = None
    deep: Minimum | None = None

    @property
    def curve(self) -> Curve:
        """The objective curve at the chosen ridge."""
        return self.curves[self.ridge]

    def with_deep_rank(self, deep: int, *, sure: bool, local: float) -> "Findings":
        """The same, decided with the rank that the deepest networks have and the dimension that the rows fill."""
        readings = replace(self.readings, deep=deep, deep_sure=sure, local=local)
        return replace(self, readings=readings, decision=decide(readings))
