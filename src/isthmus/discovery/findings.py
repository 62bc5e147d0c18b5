"""What a search found, as records: trained networks, what was read off them, what was decided. The search: `search`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from isthmus.discovery.choices import CLEAR_MARGIN, ENDED, FAINT_FOR_EACH, SHARED_BY, SHARP, SLACK
from isthmus.discovery.evidence.confidence import Shares
from isthmus.discovery.halves import RANK, RankKind
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.objective_curves import Curve, Curves, Ladder
from isthmus.networks import FullyConnected
from isthmus.theory import Verdict
from isthmus.theory.comparison import Comparison, by_ratio
from isthmus.theory.curve_readings import CurveReading, Gain

Starts = dict[float, list[Minimum]]
CUT_SHORT = "The time limit cut the search short; give more seconds for a sharper answer."


@dataclass(frozen=True, slots=True)
class LinearReading:
    """Through how many dimensions linear maps predict each row, which was held out of them (*estimate*).

    Attributes:
        rank: the least that no other betters by more than one standard error, or by `AS_LINEAR`.
        least: the same by two.
        most: that of least error.
        errors: of all rows, over that of the best constant, by the number of dimensions.
    """

    rank: int
    least: int
    most: int
    errors: tuple[float, ...]

    @property
    def error(self) -> float:
        """Of all rows through `rank` dimensions."""
        return self.errors[self.rank]

    @property
    def is_clear(self) -> bool:
        """Whether no other rank is as good within the noise of the rows."""
        return self.least == self.rank == self.most


@dataclass(frozen=True, slots=True)
class OfAllRows:
    """What networks lose of rows that were held out of them, each row once (*estimate*).

    Attributes:
        scree: the reading of their errors.
        errors: over that of the best constant, by the number of dimensions.
        gains: of a linear half, what more dimensions save, by rank.
    """

    scree: CurveReading
    errors: tuple[float, ...]
    gains: Mapping[int, Gain]


@dataclass(frozen=True, slots=True)
class Readings:
    """What was measured.

    Attributes:
        ridge: the chosen ridge.
        objective: reading of the objective curve at the chosen ridge.
        neighbours: (ridge, reading of the objective curve there) for the neighbouring ridges.
        scree: reading of the held-out scree curve.
        jacobian_rank: gap of the median Jacobian spectrum at the chosen ridge.
        widest: largest rank that the curves cover.
        heldout_error: through `rank` coordinates, by rank (index 0 is the best constant).
        linear_error: of the reduced-rank linear baseline, by rank.
        train_error: of the same networks as `heldout_error` on the rows they were trained on, by rank; those there are.
        most: rank that no map of these inputs to these targets exceeds, None: that of the linear baseline.
        columns: how many there are to autoencode, None for other targets.
        deep: the rank of the deepest networks, None where depth was not varied.
        deep_sure: whether it holds the data together; else rows lie too far apart to tell.
        local: dimension that the rows fill around each of them, NaN where it is not known.
        complaints: sentences about runs that did not end well.
        objectives: least objective at the chosen ridge through at most so many dimensions, by rank from 0.
        spread: log of the least objective of a trained start over the least of all: how exactly minima are found.
        classes: whether the targets are classes.
        straight: whether one half is linear: the index or the mode rank.
        useless: neighbouring ridges where what was trained predicts clearly worse than at the chosen one.
        rows: that were trained on, None: enough.
        inputs: how many columns they have, None: few.
        kind: which rank is read, for the words of the reasons.
        compared, errors_compared: how objectives and errors are compared.
        gains: of a linear half, by rank what the best network of more dimensions saves of its held-out error.
        start_ranks: rank of the Jacobian of each start at the chosen ridge and its neighbours.
        medians: of what is autoencoded, by rank the median loss of held-out rows over their mean.
        beyond_chance: by rank how many standard errors less than the constant loses of held-out rows.
        fills: dimension that the rows fill with their neighbours, where a linear map predicts best; else NaN.
        mapped: what linear maps read of all rows, None where that was not asked.
        errors_of_all: through `rank` coordinates of all rows, each held out once, by rank; empty: not known.
    """

    ridge: float
    objective: CurveReading
    neighbours: tuple[tuple[float, CurveReading], ...]
    scree: CurveReading
    jacobian_rank: int
    widest: int
    heldout_error: tuple[float, ...]
    linear_error: tuple[float, ...]
    most: int | None = None
    columns: int | None = None
    deep: int | None = None
    deep_sure: bool = True
    local: float = math.nan
    complaints: tuple[str, ...] = ()
    objectives: tuple[float, ...] = ()
    spread: float = 0.0
    classes: bool = False
    straight: bool = False
    useless: tuple[float, ...] = ()
    rows: int | None = None
    inputs: int | None = None
    kind: RankKind = RANK
    compared: Comparison = by_ratio
    errors_compared: Comparison = by_ratio
    gains: Mapping[int, Gain] = field(default_factory=dict[int, Gain])
    train_error: Mapping[int, float] = field(default_factory=dict[int, float])
    start_ranks: tuple[int, ...] = ()
    medians: Mapping[int, float] = field(default_factory=dict[int, float])
    beyond_chance: Mapping[int, float] = field(default_factory=dict[int, float])
    fills: float = math.nan
    mapped: LinearReading | None = None
    errors_of_all: tuple[float, ...] = ()

    @property
    def noun(self) -> str:
        """What the rank counts, in one word: of a linear half whose kind is not told, directions."""
        return "direction" if self.straight and self.kind is RANK else self.kind.noun

    @property
    def counted_neighbours(self) -> tuple[tuple[float, CurveReading], ...]:
        """The neighbouring ridges whose reading counts: not those that predict worse and may hide a weak direction.

        A linear half is seen through at once. With curved ones only a larger ridge is left out that reads fewer, and
        that where a smaller one reads the same: the larger the ridge, the fewer dimensions are worth their penalty.
        """
        pairs, read = self.neighbours, self.objective.rank
        steady = any(ridge < self.ridge and one.rank == read for ridge, one in pairs)
        hidden = {ridge for ridge, one in pairs if self.straight or (steady and ridge > self.ridge and one.rank < read)}
        return tuple(pair for pair in pairs if pair[0] not in hidden & {*self.useless})

    @property
    def has_few_for_each(self) -> bool:
        """Whether there are fewer than `FAINT_FOR_EACH` rows for each column of the inputs."""
        return self.rows is not None and self.rows < FAINT_FOR_EACH * (self.inputs or 0)

    @property
    def bends_clearly(self) -> bool:
        """Whether the held-out error leaves no other rank: by the margin of its bend, or because its fall ends there.

        The more dimensions, the less each saves: of 11 that share a fall to .12 none can bend by `CLEAR_MARGIN`, though
        the last saves 19 % and more save nothing.
        """
        if self.scree.sharpness >= CLEAR_MARGIN:
            return True
        errors, rank, rise = self.heldout_error, self.scree.rank, self.errors_compared.rise
        if self.straight or not SHARED_BY <= rank < len(errors) - 1:
            return False
        saved, more = rise(errors[rank - 1], errors[rank]), rise(errors[rank], min(errors[rank + 1 :]))
        return saved >= SHARP and more <= ENDED * saved

    @property
    def is_sharp(self) -> bool:
        """Whether the objective rises sharply one rank below; of a linear half, or the held-out error clearly."""
        clear = self.straight and self.scree.rank == self.objective.rank and self.scree.sharpness >= CLEAR_MARGIN
        return clear or self.objective.sharpness >= SHARP


@dataclass(frozen=True, slots=True)
class Decision:
    """A rank with its verdict and reasons."""

    rank: int
    verdict: Verdict
    reasons: tuple[str, ...]

    def in_doubt(self, text: str) -> "Decision":
        """The same rank, which was sure, with what speaks against it; of what spoke for it nothing is left."""
        return Decision(self.rank, Verdict.DOUBTFUL, (text,))


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
        linear: whether the task is linear, and a linear map the network that is returned.
        halved: of a linear encoder, networks of the decided rank fitted to each of some halves of the rows.
        whole: the network that is returned where it is not the refined one: linear, or with a linear encoder, which is
            fitted to all rows, the held-out ones too.
        foretold: how much more of what is lost the inputs tell than the coordinates do, where that was asked.
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
    linear: bool = False
    halved: Sequence[FullyConnected] = ()
    whole: FullyConnected | None = None
    deep: Minimum | None = None
    foretold: float | None = None

    @property
    def errors(self) -> tuple[float, ...]:
        """Held-out errors of such maps as the one that is returned, by rank from 0."""
        return self.readings.linear_error if self.linear else self.readings.heldout_error

    @property
    def curve(self) -> Curve:
        """The objective curve at the chosen ridge."""
        return self.curves[self.ridge]
