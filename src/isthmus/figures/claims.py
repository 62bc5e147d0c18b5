"""What a paper states about a figure, what was measured here, and what would have refuted it.

Which claims a figure makes: its own file. How they are shown: `gallery`.
"""

import math
from dataclasses import dataclass
from enum import Enum

from isthmus.theory.inputs import Real


class Judgement(Enum):
    """Whether a claim stands; the value is the word that the user reads."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "inconclusive"


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a paper with one number against it.

    Attributes:
        statement: what the paper states, in one sentence.
        source: paper and place.
        quantity: what was measured, in words.
        measured: the number; NaN where it could not be measured.
        least: below it the claim is refuted.
        most: above it the claim is refuted.
        doubt: why the number decides nothing here; empty if it does.

    Raises:
        ValueError: no number could refute the claim, or `least` > `most`.
    """

    statement: str
    source: str
    quantity: str
    measured: Real
    least: Real = -math.inf
    most: Real = math.inf
    doubt: str = ""

    def __post_init__(self) -> None:
        if not (self.least <= self.most and (math.isfinite(self.least) or math.isfinite(self.most))):
            raise ValueError(
                f"Claim({self.statement!r}): needs a threshold that would refute it, got {self.least} to {self.most}."
            )

    @property
    def judgement(self) -> Judgement:
        """Inconclusive with a doubt or without a number; else whether the number lies between the thresholds."""
        if self.doubt or math.isnan(self.measured):
            return Judgement.OPEN
        return Judgement.HOLDS if self.least <= self.measured <= self.most else Judgement.FAILS

    @property
    def refutation(self) -> str:
        """The thresholds in words."""
        low = f"below {self.least:.4g}" if math.isfinite(self.least) else ""
        high = f"above {self.most:.4g}" if math.isfinite(self.most) else ""
        return " or ".join(part for part in (low, high) if part)


def tally(claims: tuple[Claim, ...] | list[Claim]) -> str:
    """How many claims hold, do not hold and are inconclusive, in words."""
    words = {Judgement.HOLDS: ("holds", "hold"), Judgement.FAILS: ("does not hold", "do not hold")}
    counts = {judgement: sum(claim.judgement is judgement for claim in claims) for judgement in Judgement}
    told = [f"{n} {words.get(j, (j.value, j.value))[n != 1]}" for j, n in counts.items() if n]
    return f"{len(claims)} claim{'s' * (len(claims) != 1)}: {', '.join(told)}"
