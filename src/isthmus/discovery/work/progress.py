"""What a running discovery tells its caller: small events, sent to one callable whose default does nothing.

Nothing is printed here; the live bar of the command line is `cli.progress_bar`. What is found at the end: `result`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands.

    Attributes:
        stage: what is being done, in words that a user understands ("training", "truncating", "scree curve").
        fraction: share of the work that is done, 0 to 1: of that for a first answer, then of that for each `part`.
        ridge: coefficient of the penalty of the current start.
        start: number of the current start, from 0.
        step: number of the current step within the stage.
        total_steps: steps of the stage, None where it is not known beforehand.
        objective: least objective of the current start so far (data loss + ridge * penalty).
        rank: the current reading of the rank.
        seconds_left: estimated seconds until that ends; None in the first seconds.
        part: what this work is for that came besides the first: a remedy of a doubt, a wider network; "" before.
    """

    stage: str
    fraction: float
    ridge: float | None = None
    start: int | None = None
    step: int = 0
    total_steps: int | None = None
    objective: float | None = None
    rank: int | None = None
    seconds_left: float | None = None
    part: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.fraction <= 1.0:
            raise ValueError(f"Progress(fraction={self.fraction}): needs a share of the work, 0 to 1.")


ProgressListener: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Hears every event and does nothing: the default listener."""
