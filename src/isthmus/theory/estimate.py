"""An integer rank with its certified interval, and the words for how sure a reading is.

Plain data only. Who fills it: `diagnostics` (a network), `discovery` (a task).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """How sure a discovered rank is; the value is the sentence that the user reads.

    >>> [verdict.name for verdict in isthmus.Verdict]
    ['CONFIDENT', 'DOUBTFUL', 'TOO_FEW_DATA', 'NO_SHARP_RANK']
    """

    CONFIDENT = "confident: the readings agree and the curves are sharp"
    DOUBTFUL = "doubtful: the readings disagree or the curves are not sharp"
    TOO_FEW_DATA = "too few data: what was trained misses as much of held-out rows as rows vary"
    NO_SHARP_RANK = "no sharp rank: the readings move, and no rank stands out"


@dataclass(frozen=True, slots=True)
class RankEstimate:
    """An estimated rank inside an interval, each end with its reason.

    Attributes:
        estimate: the best reading (*estimate*: nothing is proved about it beyond lying in the interval); None where no
            number of directions stands out, for which `missing` gives the reason: no end of the interval stands in.
        lower: *lower bound* on the bottleneck rank of the returned network as a function on the affine span of its
            inputs; no bound on the data alone, which as a finite set factor through one dimension at most.
        upper: *upper bound* on the same.
        lower_reason: what gives the lower bound, with its witness in words.
        upper_reason: what gives the upper bound.
        tolerance: relative singular-value tolerance below which a direction does not count.
        evidence: the readings behind the estimate, by name.
        missing: why there is no estimate; empty where there is one.

    >>> isthmus.diagnose(module, x).rank.upper
    2
    """

    estimate: int | None
    lower: int
    upper: int
    lower_reason: str
    upper_reason: str
    tolerance: float
    evidence: Mapping[str, object] = field(default_factory=dict[str, object])
    missing: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper:
            raise ValueError(f"RankEstimate: needs 0 <= lower <= upper, got lower={self.lower}, upper={self.upper}.")
        if (self.estimate is None) is not bool(self.missing):
            raise ValueError(
                f"RankEstimate: needs either an estimate or why it is missing, got {self.estimate} and "
                f"{self.missing!r}."
            )
        if self.estimate is not None and not self.lower <= self.estimate <= self.upper:
            raise ValueError(
                f"RankEstimate: needs lower <= estimate <= upper, got {self.lower} <= {self.estimate} <= {self.upper}."
            )

    @property
    def is_at_least(self) -> bool:
        """Whether `lower` is all that a sketch of the Jacobian or few rows can show: the rank may be larger."""
        return self.estimate is None and self.evidence.get("jacobian_most") == self.lower

    def __str__(self) -> str:
        """The estimate; "64 or more" where a sketch can show no more, "none" where nothing stands out."""
        if self.estimate is not None:
            return str(self.estimate)
        return f"{self.lower} or more" if self.is_at_least else "none"
