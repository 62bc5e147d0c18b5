"""The verdict where depth was varied because the readings of a shallow network were in doubt: pure functions.

The readings of one depth: `decision`. How ranks are trained at several depths: `depth`.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

from isthmus.discovery.choices import AROUND, CURVED_GAIN, FILLED, LOST, LOST_RATIO, SAVES, SHARP
from isthmus.discovery.filled_dimensions import COORDINATES
from isthmus.discovery.findings import Decision, Readings
from isthmus.discovery.row_doubts import unevenly_lost
from isthmus.tasks.arrays import counted
from isthmus.theory import Verdict


@dataclass(frozen=True, slots=True)
class OverDepth:
    """What networks of several depths say of data that are autoencoded.

    Attributes:
        rank: that wins at the largest depth among those that hold the data together; 0 where none is left.
        before: that wins at the depth before.
        sure: whether it is known to hold them together; else rows lie too far apart to tell.
        rise: log of the objective of one dimension fewer over that of the rank, at the largest depth; infinite where
            that does not hold the data together or was left out.
        error: held-out error through so many curved coordinates.
        linear: of data that are autoencoded, that of as many principal components.
        around: dimension that rows, or their coordinates, fill with their nearest twenty neighbours, NaN where it is
            not known.
        columns: how many there are.
        flat: of regressions, rank of the shallow networks and held-out error through so many coordinates.
        torn: ranks below that do not hold the data together at the largest depth.
        filled, lost: of data that are autoencoded, dimensions that their coordinates fill through the largest rank, and
            held-out error through it.
    """

    rank: int
    before: int
    sure: bool
    rise: float
    error: float
    linear: float
    around: float
    columns: int
    flat: tuple[int, float] | None = None
    torn: Collection[int] = ()
    filled: float = math.nan
    lost: float = math.nan

    @property
    def fills(self) -> bool:
        """Whether rows fill so many dimensions around each of them: fewer coordinates are excluded then.

        A closed surface needs one coordinate more than that, but so does a roll that training did not unroll. Of
        coordinates it is read beside a cloud that fills all, so not too low.
        """
        too_low = AROUND if self.flat is None else 1.0
        return self.rank <= too_low * self.around + FILLED


def decide_over_depth(readings: Readings, deep: OverDepth) -> Decision:
    """The rank of the deepest networks, confident where nothing speaks against it.

    Confident: it wins at the two largest depths, holds the data together for certain, loses next to nothing of held-out
    rows (`LOST`) and far less than as many principal components (`CURVED_GAIN`), one coordinate fewer costs clearly
    more (`SHARP`), rows fill as many dimensions around each of them (`OverDepth.fills`) and no more through more
    coordinates (half of `FILLED`) that lose less (`SAVES`), and no shallow reading is smaller.
    """
    flat = sorted({readings.objective.rank, readings.scree.rank, readings.jacobian_rank})
    shallow = f"At the usual depth the readings are {', '.join(map(str, flat))}."
    # where the error of held-out rows bends where the data are cut open, rows lie on a line as finitely many always do
    bends = {readings.scree.rank} - {*deep.torn}
    least = min({readings.objective.rank, readings.jacobian_rank} | bends)
    if doubts := [*_doubts(deep, least), *unevenly_lost(readings, deep.rank)]:
        return Decision(deep.rank, Verdict.DOUBTFUL, (*doubts, shallow, *readings.complaints))
    others = (
        f"as many principal components {deep.linear:.2g}"
        if deep.flat is None
        else f"{deep.flat[0]} flat ones {deep.flat[1]:.2g}"
    )
    return Decision(
        deep.rank,
        Verdict.CONFIDENT,
        (
            f"Networks with a deeper middle keep {counted(deep.rank, 'coordinate')} at the two largest depths; fewer "
            "do not hold the data together, or cost clearly more.",
            f"Through them {deep.error:.2g} of the variance of held-out rows is lost, through {others}.",
            shallow,
        ),
    )


def held_against(decision: Decision, readings: Readings, deep: OverDepth) -> Decision:
    """What is believed where minima were trained anew after depth was varied.

    The shallow rank where it is sure and deeper networks need no fewer; else what depth says.
    """
    if decision.verdict is Verdict.CONFIDENT and decision.rank <= deep.rank:
        return decision
    return decide_over_depth(readings, deep)


def _doubts(deep: OverDepth, least: int) -> list[str]:
    found: list[str] = []
    if deep.before != deep.rank:
        found.append(f"The rank still moves with depth: {deep.before} before the largest depth, {deep.rank} there.")
    if not deep.sure:
        found.append(
            f"Rows lie too far apart to tell whether the data are cut open by {counted(deep.rank, 'coordinate')}."
        )
    found += _lost_of_rows(deep) if deep.flat is None else _lost_of_targets(deep, *deep.flat)
    if not deep.rise >= SHARP:
        found.append(
            f"One coordinate fewer raises the objective of the deepest networks by {100 * math.expm1(deep.rise):.1f} % "
            "only."
        )
    if not deep.fills:
        who = "rows" if deep.flat is None else COORDINATES
        found.append(
            f"With their neighbours, {who} fill {deep.around:.1f} dimensions: fewer than {deep.rank} coordinates, "
            "curved further, are not excluded."
        )
    # 721 pictures of rank 6 fill 5.6, and 5 lose .018, 7 .010; a plane of 6 filled 6.6 of 8, which lost .006, 6 .007
    if deep.filled > deep.rank + FILLED / 2 and deep.error > SAVES * deep.lost:
        found.append(
            f"Through more coordinates, rows fill {deep.filled:.1f} dimensions and lose {deep.lost:.2g} of the "
            f"variance, not {deep.error:.2g}: {deep.rank} may be too few for them."
        )
    if deep.rank > least:
        found.append(f"A shallow network reads {least}, and deeper ones need no more than that.")
    return found


def _lost_of_rows(deep: OverDepth) -> list[str]:
    """What is lost of data that are autoencoded, against nothing and against principal components."""
    found: list[str] = []
    if deep.error > LOST:
        found.append(f"Through {deep.rank} curved coordinates {100 * deep.error:.0f} % of the variance are lost.")
    if deep.rank < deep.columns and deep.error > CURVED_GAIN * deep.linear:
        found.append(
            f"As many principal components lose {deep.linear:.2g} of the variance, curved coordinates {deep.error:.2g}:"
            " little is gained by their curves."
        )
    return found


def _lost_of_targets(deep: OverDepth, rank: int, error: float) -> list[str]:
    """What is lost of targets, against the shallow networks of more coordinates; noise is lost through any number."""
    if deep.rank >= rank or not deep.error > LOST_RATIO * error:
        return []
    return [
        f"Through {counted(deep.rank, 'curved coordinate')} {deep.error:.2g} of the variance of held-out targets is "
        f"lost, through {rank} flat ones {error:.2g}."
    ]
