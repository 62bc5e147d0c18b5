"""What a paper states about a figure, what was measured here, and what would have refuted it.

Which claims a figure makes: its own file. How they are shown: `gallery`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from isthmus.theory.inputs import Real

SURE = 0.95  # of the interval around the mean of several starts
UNFINISHED = 0.05  # a relative stationarity above which what training left is not what it was going to
MOST_STARTS = 1000  # starts, beyond which nobody asks for more


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
        starts: the number at each start where training decides it by chance; see `over_starts`.
        looks: how often the starts are looked at, see `StartRule`.

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
    starts: tuple[float, ...] = ()
    looks: int = 1

    def __post_init__(self) -> None:
        if not (self.least <= self.most and (math.isfinite(self.least) or math.isfinite(self.most))):
            raise ValueError(
                f"Claim({self.statement!r}): needs a threshold that would refute it, got {self.least} to {self.most}."
            )

    @classmethod
    def over_starts(
        cls, statement: str, source: str, quantity: str, starts: Sequence[float], *, least: Real = -math.inf,
        most: Real = math.inf, doubt: str = "", looks: int = 1,
    ) -> "Claim":  # fmt: skip
        """A claim on the mean over starts, which is judged by its interval.

        Raises:
            ValueError: no number could refute the claim, `least` > `most`, or fewer than two starts.
        """
        if len(starts) < 2:
            raise ValueError(f"Claim({statement!r}): needs two starts for a spread, got {len(starts)}.")
        return cls(statement, source, quantity, float(np.mean(starts)), least, most, doubt, tuple(starts), looks)

    @property
    def interval(self) -> tuple[float, float]:
        """Around the mean of the starts, by Student's t, 95 % of all looks; the number itself where there are none."""
        return (self.measured - (half := self._half(len(self.starts))), self.measured + half)

    @property
    def needed_starts(self) -> int:
        """How many starts their spread asks for: the fewest of which the interval would not reach a threshold."""
        room = min(abs(self.measured - self.least), abs(self.measured - self.most))
        return next((n for n in range(2, MOST_STARTS) if self._half(n) < room), MOST_STARTS) if self.starts else 1

    def _half(self, n: int) -> float:
        if not self.starts or not all(map(math.isfinite, self.starts)):
            return 0.0 if not self.starts else math.inf
        return float(stdtrit(n - 1, 1 - (1 - SURE) / 2 / self.looks) * np.std(self.starts, ddof=1) / n**0.5)

    @property
    def value(self) -> str:
        """The number as it is shown, with its interval."""
        low, high = self.interval
        if math.isnan(self.measured):
            return "not measured"
        return f"{self.measured:.4g}" + (f" ({low:.3g} to {high:.3g})" if self.starts else "")

    @property
    def judgement(self) -> Judgement:
        """Whether the interval lies between the thresholds or outside; open where it reaches one, or with a doubt."""
        low, high = self.interval
        if self.doubt or math.isnan(low) or not all(map(math.isfinite, self.starts)):
            return Judgement.OPEN
        if self.least <= low and high <= self.most:
            return Judgement.HOLDS
        return Judgement.FAILS if high < self.least or low > self.most else Judgement.OPEN

    @property
    def wants_starts(self) -> bool:
        """Whether more starts may decide it."""
        return self.judgement is Judgement.OPEN and not self.doubt

    @property
    def refutation(self) -> str:
        """The thresholds in words."""
        low = f"below {self.least:.4g}" if math.isfinite(self.least) else ""
        high = f"above {self.most:.4g}" if math.isfinite(self.most) else ""
        return " or ".join(part for part in (low, high) if part)


@dataclass(frozen=True, slots=True)
class StartRule:
    """How many starts a figure takes: the rule for numbers that training decides by chance.

    The claims are judged at the first look, by an interval around the mean of its starts. While one of them reaches a
    threshold, starts are added up to the next look; after the last it stays open. Each look errs in 5 % / looks of all
    cases at most, so that all of them together err in 5 %.

    Attributes:
        looks: how many starts there are at each, ascending, two at least.
    """

    looks: tuple[int, ...] = (4, 8, 16)

    def decided(
        self, computed: Callable[[int], xr.Dataset], verdict: Callable[[xr.Dataset], Iterable[Claim]]
    ) -> xr.Dataset:
        """What is computed of as many starts as the claims want, with the number of looks for `verdict`."""
        data = xr.Dataset()
        for count in self.looks:
            data = computed(count).assign(looks=((), len(self.looks)))
            if not any(claim.wants_starts for claim in verdict(data)):
                break
        return data


def unfinished(stationarity: xr.DataArray) -> str:
    """Why what these trainings left decides nothing, or an empty text."""
    worst = float(stationarity.max())
    return "" if worst <= UNFINISHED else f"training ended at a stationarity of {worst:.2g}, above {UNFINISHED:g}"


def unlearned(data_loss: Real, *, most: Real) -> str:
    """Why a network that kept so much of the variance decides nothing, or an empty text."""
    return "" if data_loss <= most else f"the data loss is {data_loss:.2g} of the variance"


def tally(claims: tuple[Claim, ...] | list[Claim]) -> str:
    """How many claims hold, do not hold and are inconclusive, in words."""
    words = {Judgement.HOLDS: ("holds", "hold"), Judgement.FAILS: ("does not hold", "do not hold")}
    counts = {judgement: sum(claim.judgement is judgement for claim in claims) for judgement in Judgement}
    told = [f"{n} {words.get(j, (j.value, j.value))[n != 1]}" for j, n in counts.items() if n]
    return f"{len(claims)} claim{'s' * (len(claims) != 1)}: {', '.join(told)}"
