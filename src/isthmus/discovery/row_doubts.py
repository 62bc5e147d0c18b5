"""What rows leave open of a rank that was read, each in a sentence: they are few, or few of them decide.

Which other doubts there are, and the verdict: `decision`. Thresholds: `choices`; why: docs/notes/decision.md.
"""

import math
from collections import Counter

from isthmus.discovery.choices import (
    BY_LUCK,
    FEW_STARTS,
    HANDFUL,
    HARDLY,
    KEPT_FOR_EACH,
    LOST_FAINT,
    LOST_KEPT,
    LOST_READ,
    LOST_UNSEEN,
    NOTHING_LEFT,
    ROWS_FOR_STARTS,
    ROWS_TO_KEEP,
    ROWS_TO_SEE,
    SHARE_KEPT,
    UNEVEN,
    UNEVEN_ERROR,
    UNLEARNT,
)
from isthmus.discovery.findings import Readings
from isthmus.discovery.halves import INDEX
from isthmus.tasks.arrays import counted
from isthmus.theory.curve_readings import Gain


def hidden_by_noise(readings: Readings, rank: int) -> list[str]:
    """Whether more dimensions may have been hidden by the noise of few rows."""
    gain, compared = gain_that_counts(readings, rank), readings.errors_compared
    if gain is None:
        return []
    if gain.error <= NOTHING_LEFT * (gain.error + gain.saved):
        nothing = f"Through {counted(gain.rank, readings.noun)} nothing is left of the held-out error"
        return [f"{nothing}: more data would tell whether there are more."]
    more, noise = (compared.said(compared.rise(gain.error + d, gain.error)) for d in (gain.saved, gain.noise))
    larger = f"The held-out error is {more} larger than through {counted(gain.rank, readings.noun)}"
    return [f"{larger} (standard error {noise}): more data would tell whether there are more."]


def gain_that_counts(readings: Readings, rank: int) -> Gain | None:
    """What more dimensions save of the held-out error, if that is more than training leaves between equal ranks."""
    gain = readings.gains.get(rank)
    return gain if gain is not None and gain.counts(readings.errors_compared) else None


def unlearnt(readings: Readings, rank: int) -> list[str]:
    """Whether so few rows leave open what else matters; of classes sureness is lost too, of many rows that alone.

    Of 30 rows of a map through 3 dimensions, networks through 2 leave .9 % of those trained on and 31 % of the others,
    in which a third has room; what is lost of both alike is noise. All readings are 2, but most starts keep more.
    """
    if rank == 0 or (readings.classes and not readings.has_few_for_each):
        return []
    known, error = readings.train_error.get(rank), readings.heldout_error[min(rank, len(readings.heldout_error) - 1)]
    of_starts = [*_unseen_combinations(readings, rank), *_kept_by_few_starts(readings, rank)]
    found, what = ([], "loss of the best constant") if readings.classes else (of_starts, "variance")
    if known is not None and error < 1 and error - known > UNLEARNT:
        seen, unseen = (f"{100 * share:.2g} %" for share in (known, error))
        lost = (
            f"Through {counted(rank, readings.noun)} {unseen} of the {what} is missed on held-out rows, {seen} on "
            "those trained on: so little is known of the map between rows that"
        )
        if _may_be_noise(readings, rank):
            found.append(f"{lost} more or fewer dimensions may matter there; more rows would tell.")
        else:
            found.append(f"{lost} more dimensions may matter there; more rows would tell.")
    return found


def _may_be_noise(readings: Readings, rank: int) -> bool:
    """Whether fewer dimensions predict held-out rows as well: 8 combinations for 5 of 480 rows, flat from 1 on."""
    return readings.scree.rank < rank


def _kept_by_few_starts(readings: Readings, rank: int) -> list[str]:
    """Whether few rows were read at a rank that hardly any start keeps when none is imposed on it."""
    count, kept = len(readings.start_ranks), readings.start_ranks.count(rank)
    if readings.rows is None or readings.rows >= ROWS_FOR_STARTS or kept >= FEW_STARTS * count:
        return []
    most = Counter(readings.start_ranks).most_common(1)[0][0]
    return [
        f"Of {count} starts on {readings.rows} rows {kept} keep {counted(rank, readings.noun)}, most {most}: by so few "
        "rows these are as good; more rows would tell."
    ]


def _unseen_combinations(readings: Readings, rank: int) -> list[str]:
    """Whether so few rows are explained so badly that further combinations cannot be told from noise.

    Targets of 2 and 3 combinations in 30 to 79 rows read 1, all agreeing, where 13 % of the variance was missed; those
    of 3 to 5 in 418 to 734 rows 2 to 4, where 9 to 29 % was and most starts kept other numbers.
    """
    error = readings.heldout_error[min(rank, len(readings.heldout_error) - 1)]
    if not readings.straight or readings.rows is None or error >= 1:
        return []
    is_kept = readings.start_ranks.count(rank) >= SHARE_KEPT * len(readings.start_ranks)
    most = (readings.inputs or 0) if readings.kind is INDEX else 0  # the columns that are combined
    noisy = readings.rows < ROWS_TO_SEE and error > LOST_UNSEEN
    # by so few held-out rows none of the ridges clearly predicts worse
    reads_more = any(one.rank > rank for _, one in readings.neighbours)
    faint = bool(most) and readings.has_few_for_each and error > (LOST_READ if reads_more else LOST_FAINT)
    scattered = readings.rows < max(ROWS_TO_KEEP, KEPT_FOR_EACH * most) and error > LOST_KEPT and not is_kept
    if not (noisy or faint or scattered):
        return []
    columns = f" of {counted(most, 'column')}" if most else ""
    missed = (
        f"Of {readings.rows} rows{columns} {100 * error:.2g} % of the variance is missed through "
        f"{counted(rank, readings.noun)}"
    )
    if _may_be_noise(readings, rank):
        return [f"{missed}: how many {readings.noun}s are noise cannot be told by so few; more rows would tell."]
    return [f"{missed}: further {readings.noun}s cannot be told from noise by so few; more rows would tell."]


def unevenly_lost(readings: Readings, rank: int) -> list[str]:
    """Whether few rows lose most of what data lose that are autoencoded: noise and misfit lie on all of them.

    A chain of six Lorenz systems reads two dimensions for each, .2 % lost: where sheets meet, nothing tells them apart.
    """
    median = readings.medians.get(rank, 1.0)
    if median >= UNEVEN or not readings.heldout_error[rank] > UNEVEN_ERROR:
        return []
    least = max(100 * median, 0.1)
    return [
        f"Through {counted(rank, 'dimension')} half of the held-out rows lose less than {least:.2g} % of the mean: few "
        "rows lose most of it, where sheets of the data meet, or where they need more dimensions than others."
    ]


def of_a_handful(readings: Readings) -> list[str]:
    """Whether rows are so few that whatever agrees may agree by chance."""
    if readings.rows is None or readings.rows >= HANDFUL:
        return []
    return [f"Only {readings.rows} rows were trained on: readings of so few agree by chance. Give more rows."]


def by_luck(readings: Readings, rank: int) -> list[str]:
    """Whether so little more than the constant is predicted that held-out rows may show it by chance."""
    error = readings.heldout_error[min(rank, len(readings.heldout_error) - 1)]
    known = readings.beyond_chance.get(rank, math.inf)
    if rank == 0 or not HARDLY < error < 1 or known >= BY_LUCK:
        return []
    return [
        f"Held-out rows lose {100 * error:.0f} % of what the best constant loses, {max(known, 0.0):.1f} standard "
        "errors below it: that may be chance. Give more rows."
    ]
