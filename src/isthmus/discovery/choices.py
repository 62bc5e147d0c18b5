"""What a discovery decides by, besides its readings: every threshold, each with its evidence, and the rules on them.

Pure functions of numbers. Which minimum is computed when: `search`. From readings to a verdict: `decision`; what was
measured, at length: docs/notes/decision.md.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from isthmus.theory.comparison import Comparison, by_ratio

SLACK = 0.01  # relative rise of the objective at which a rank is enough: above theirs teachers are flat to less
SHARP = 0.05  # log rise one rank below that is sharp: Kuramoto-Sivashinsky .23 to .29, its surrogate .02 to .03
CLEAR_MARGIN = 0.2  # margin of the scree curve from which its bend is clear; plays the same part there
ENDED = 0.1  # of what a rank saves, the most that more may where the fall ends: of 13 teachers of 9 to 15 at most .04
SHARED_BY = 8  # dimensions from which that is asked: fewer bend by CLEAR_MARGIN, and one of 56 rows read 1 for 3 so
OUTVOTES = 1.0  # margin of the scree curve above a blunt objective: a plane of 8 reads 9 by 3.7 %, its error 8 by 1.8
FILLED = 0.5  # dimensions that rows may seem to lack locally and still fill all columns: it is an estimate
AS_LINEAR = 1.02  # error over that of linear maps, above which these predict better; and over theirs through more
LINEAR_GAIN = 0.25  # error over that of a linear map, one rank lower, up to which curves are of use: else .26 to 1.9
NOTHING_LEFT = 1e-9  # relative held-out error up to which a linear map is exact: float64 leaves 1e-15, noise 1e-4
MAPPED = 0.05  # error of all rows up to which linear maps that predict as well as networks leave no doubt
LEFT_OVER = 0.05  # share of what is left over that other combinations must explain: as what tells equal ranks apart,
LEFT_BENT = 0.2  # the same of linear maps: of 60 whose combination is bent at most .078, of 240 others none
LEFT_OVER_ERROR = 0.01  # held-out error below which noise hides nothing, and what is left over is how training ends
LEFT_OVER_SURE = 6.0  # standard deviations above chance: 36 exact fits reach 2.0, model B read 1 for 2 has 7.7 to 26
FORETOLD = 0.2  # more of what is lost that inputs tell than coordinates: of 70 right answers at most .05, else .25
FORETOLD_ERROR = 1e-3  # held-out error below which what is left over is how training ends
ONE_WAY = 0.5  # of what is lost of data that are autoencoded, along one direction: a factor of .3 % has .76 to .9 of it
SMALLER = (1.0, 1 / 3, 0.1, 1 / 30)  # of the chosen ridge, where weaker dimensions are looked for
UNEVEN = 0.33  # median loss of rows over the mean, below which few lose most: chains .27 and .28, planes .40 to .54
UNEVEN_ERROR = 1e-3  # held-out error up to which it does not matter who loses it
FREE = 1e-3  # relative rise of the objective up to which a truncation costs nothing
GAIN = SLACK / 2  # relative fall of the objective from which more dimensions gain something: half of what is read
PREDICTIVE = 0.95  # error over that of the constant below which a network predicts more than the constant
CLOSE = 1.1  # error over the least one up to which a ridge may be chosen instead
AS_READ = 1.25  # and up to which one is looked at in doubt whose reading is that of the held-out error
OVERSHOOT = 2  # ranks above that of the trained network that the curves cover
BELOW = 2  # ranks below a reading from which a neighbouring curve begins, and by which it goes on
WHOLE = 24  # ranks that are all trained; of a longer curve those in steps of a quarter, and all around its reading
LONG_CURVE, LONG_BESIDE = 20, 8  # about how many ranks of a curve with gaps are trained, and of one beside it
NEARLY_FULL = 0.9  # of the room that networks have: 71 columns of one size read 23 of 24, and 24 at a smaller ridge
WIDENED_COST = 2.0  # a whole search over its starts and curves, in time, at equal widths
GLUED = 0.25  # error between rows, over the variance, from which a rank does not hold the data together
GLUED_WIDTH = 1.0  # or over what is lost of held-out rows through one dimension fewer: the width that is glued
GLUED_RATIO = 4.0  # and how many times that of the largest rank, whose error is noise and curvature
LOST = 0.05  # held-out error up to which a rank may hold data together whose rows lie too far apart to tell,
LOST_RATIO = 2.0  # or so many times that of the largest rank
CURVED_GAIN = 0.5  # held-out error over that of as many principal components up to which coordinates are curved
AROUND = 1.15  # share by which the dimension that rows fill with their neighbours is read too low: 5 as 4.4, 7 as 6
CLOSELY = 1.2  # and the most where it speaks against a rank found by work: disks of pixels fill 2.3 to 2.4, never 3
CAPPED_FROM = 5  # targets from which as many coordinates are doubted by `AROUND`: of one number less .82 to .86
FAR_FEWER = 2.0  # dimensions for each that rows fill, above which a first answer too is one: waves of rank 8 have 1.9
NARROW = 13  # up to which `CLOSELY` does: four numbers and three functions of them, which fill 2.4, read 5, sure
LOW_RANK = 6  # and in any number of columns up to this rank: a roll in 20 that fills 2.0 read 3; waves fill 4.3 of 8
HALVES, MANY = 8, 40  # of the rows, that say how far directions scatter; rows from which they do
ROWS_TO_WHITEN = 10  # rows for each column from which their covariance is known well enough to divide by
PASSES, PASSES_THOROUGH = 10.0, 40.0  # first passes of the search that doubts are worth,
ROW_GRADIENTS = 3.4e8  # and gradients of a row with the first, four times as many if thorough: 8,000 take 8 minutes
LONGER = 4  # times the polish that a rank in dispute is trained on: bijections of rank 8 from 300 rows need it
UNMOVED = 2  # remedies in a row that leave rank and verdict, after which none follows: 20 of 20 had settled before
EVEN = 0.5  # of its doubts that a remedy settles, from which it follows all the same
REPEATED = 0.05  # share of the rows that may repeat others: copies on both sides of the split are held out of nothing
BY_CHANCE = 10.0  # pairs of equal inputs over those expected of columns of few values, up to which they are no copies
SHARE_TOGETHER = 0.5  # of the columns are the same in each set of rows, from which a set is on one side of the split
ROWS_ENOUGH, ROWS_FOR_EACH = 10_000, 10  # rows that are searched, in all and for each column: the rest check it
MORE_ROWS = 4  # times as many rows are searched where a sample leaves doubts,
MORE_TAKEN = 0.6  # which takes this share of the gradients that it plans: first passes of 10,000 rows took .5 to .65
MORE_STARTS = 2  # random starts more at each ridge where minima are in doubt
HARDLY = 0.9  # error over that of the constant, above which less than this many standard errors may be chance:
BY_LUCK = 2.0  # 5 kinds of 70 rows in 3 dimensions read 1, sharply, .97 of the loss of the constant in 14 held-out rows
HANDFUL = 10  # rows trained on, below which readings agree by chance: four rows of a square read 1, confidently
FEW_ROWS, FEW_FOR_EACH = 50, 2  # rows, in all and for each column, below which no success proves nothing
UNLEARNT = 0.3  # of the variance, lost of unseen rows beyond those trained on: teachers of 30 rows read one too few so
UNLEARNT_TARGET = 0.5  # the same of one target beside others: a rare event .61, one wild row 22
ROWS_FOR_STARTS = 240  # rows trained on, below which it counts how many starts keep the rank
FEW_STARTS = 0.25  # share below which: 5 read wrong without another doubt had at most .17, 32 read right .33 and more
ROWS_TO_SEE = 100  # rows trained on, below which combinations lost in more than this look like noise
LOST_UNSEEN = 0.1  # share of the variance: targets of 2 and 3 combinations in 30 to 79 rows read 1, .13 was missed
FAINT_FOR_EACH = 10  # rows for each column, below which they look like noise where this share is missed:
LOST_FAINT = 0.04  # 3 in 231 rows of 27 columns read 2, .051 was missed; of 63 sure answers no other had so few
LOST_READ = 0.02  # the same where another ridge reads more: 2 in 41 rows of 10 columns read 1, .036 was missed
ROWS_TO_KEEP = 400  # rows trained on, below which the same holds of combinations that fewer starts keep than this,
KEPT_FOR_EACH = 30  # or so many for each column: 4 and 5 in 461 to 734 rows of 26 to 30 columns read one or two less
SHARE_KEPT = 0.4  # of 152 sure answers 6 were wrong so, kept by 0 to .33 of the starts; 4 right ones too
LOST_KEPT = 0.08  # share of the variance beyond which: these six missed .09 to .29
FEW_COLUMNS = 8  # from which columns that differ in their numbers alone may be pixels of a picture
UNEQUAL = 4.0  # largest over smallest variance from which one scale for all columns is another question
SPREAD_COLUMNS = 0.1  # share of the columns that must hold the variance together: else one may be in other units
SPREAD_LEAST = 5  # and as many at least, however few columns there are: in pictures of 36 pixels 9 to 37 hold it
COLUMN_LOST = 0.5  # share of a column beyond which it is lost: one scale must not lose what variance 1 for each kept
WILD_ROWS, WILD = 0.01, 0.5  # share of the rows, and of what varies, from which these hold most of it,
OTHERS_LOST = 0.015  # and of the others lost, from which the answer is about them: wrong .018 to .89, right to .0095
TOLD = 0.1  # of a column that one scale loses, told by others, from which it is no noise: pixels 0, waves .3
SAVES = 1.5  # error over that of the largest rank, from which fewer than rows fill may be too few: 1.8, a plane 1.3
LIFTED = 0.5  # error in the columns' own units over that with each at variance 1, below which noise is lifted
TOGETHER = 3  # ranks trained before it is asked whether lower ones can hold the data at all


def next_ridge(errors: Mapping[int, float], count: int, *, patience: int, useless: float = math.inf) -> int | None:
    """Number of the next ridge, or None where `patience` ridges, or all there are, lie on both sides of the best.

        least error at i, lo..hi were tried:   hi + 1 while hi - i < patience,   then lo - 1 while i - lo < patience

    Args:
        errors: held-out error by the number of each ridge that was tried; they are next to each other. Infinite where
            nothing could be trained; as long as all are, every ridge is tried.
        count: ridges of the path, at least 1; number 0 is the largest.
        patience: at least 1, so that a best ridge inside the path has both its neighbours.
        useless: error of the best constant. While no ridge does better, the rows are fitted too closely, and all the
            larger ridges are tried: errors of overconfident classes go up and down from ridge to ridge.

    Test: discovery/test_choices.
    """
    if not errors:
        return count // 2
    best = min(errors, key=lambda i: (errors[i], i))
    enough = patience if math.isfinite(errors[best]) else count
    upwards = count if errors[best] >= useless else enough
    lowest, highest = min(errors), max(errors)
    if highest - best < enough and highest + 1 < count:
        return highest + 1
    if best - lowest < upwards and lowest > 0:
        return lowest - 1
    return None


def ridges_at_once(count: int, *, patience: int, starts: int, workers: int) -> list[int]:
    """Numbers of the ridges whose starts are trained together at first: those that `next_ridge` is expected to ask for.

    The second is asked for whatever the first gives; the others only if the first is the best, and are trained where
    workers would stand idle. One worker takes one ridge after the other, so that a time limit finds the first ended.

    Args:
        count: ridges of the path.
        patience: as of `next_ridge`.
        starts: at each ridge.
        workers: that train side by side.

    Test: discovery/test_choices.
    """
    expected: dict[int, float] = {}
    most = 1 if workers == 1 else max(2, workers // starts)
    while len(expected) < most and (i := next_ridge(expected, count, patience=patience)) is not None:
        expected[i] = float(len(expected))  # the first is the best
    return list(expected)


def ridges_beside(path: Sequence[float], known: Collection[float]) -> list[float]:
    """The ridges of a path next to those that are known, which are asked for where one at the end is the best."""
    at = [path.index(ridge) for ridge in known]
    return [path[i] for i in (max(at) + 1, min(at) - 1) if 0 <= i < len(path)]


def choose_ridge(
    errors: Mapping[float, float],
    objectives: Mapping[float, float],
    *,
    constant_error: float,
    constant_objective: float,
    compared: Comparison = by_ratio,
) -> float:
    """The ridge of least held-out error; beside it one nearly as good, where the constant is the least minimum.

    Where the constant has the lower objective, though the trained network predicts more than the constant, the ridge is
    too large to read a rank there, which would be 0: classes drop from all their dimensions to none within one ridge. A
    ridge may be chosen instead whose error is at most `CLOSE` times as large.

    Args:
        errors: held-out error by ridge, at least one.
        objectives: least objective by ridge.
        constant_error: held-out error of the best constant.
        constant_objective: its objective, at any ridge.
        compared: how errors are compared.

    Returns:
        The ridge; where none nearly as good predicts more than the constant at a lower objective, that of least error.

    Test: discovery/test_choices.
    """
    enough = min(compared.raised(min(errors.values()), CLOSE), compared.raised(constant_error, PREDICTIVE))
    kept = [r for r in errors if objectives[r] < constant_objective and errors[r] <= enough]
    return min(kept or errors, key=lambda r: errors[r])


def steps_upwards(low: int, high: int, *, gaps: bool) -> list[int]:
    """Ranks from `low` to `high` of a curve: all of them, or with gaps in steps that grow with the rank."""
    if not gaps:
        return list(range(low, high + 1))
    ranks, rank = list[int](), low
    while rank < high:
        ranks.append(rank)
        rank += max(rank // 4, 1)
    return [*ranks, high]


def steps_downwards(low: int, *, gaps: bool) -> list[int]:
    """The next ranks below `low` that are trained: two, or one a quarter below where the curve has gaps."""
    if gaps:
        return [max(low - max(low // 4, BELOW), 1)]
    return list(range(max(low - BELOW, 1), low))


def is_full(rank: int, room: int, *, beside: Collection[int] = (), most: int, widest: int) -> bool:
    """Whether the objective asks for as many dimensions as networks have room for, and wider ones may have more.

    What a start uses says less: noise fills all layers of a network whose objective reads 8.

    Args:
        rank: that the objective reads.
        room: the largest rank that networks of this size can show.
        beside: what it reads at neighbouring ridges, which counts where the rank is nearly all (`NEARLY_FULL`).
        most: rank that no map of these inputs to these targets exceeds.
        widest: room that is not exceeded.

    Test: discovery/test_choices.
    """
    read = max([rank, *beside]) if rank >= NEARLY_FULL * room else rank
    return room < min(most, widest) and read >= room


def leaves_room(seconds_left: float | None, spent: float, *, growth: float) -> bool:
    """Whether a time limit, if there is one, leaves room for wider starts, their curves and the scree curve.

        left > 2 * growth^2 * spent

    Args:
        seconds_left: until the limit, or None.
        spent: seconds on the starts and curves of networks of this size, in this sitting or an earlier one.
        growth: width of the wider networks over that of these.

    Test: discovery/test_choices.
    """
    return seconds_left is None or seconds_left > WIDENED_COST * growth**2 * spent
