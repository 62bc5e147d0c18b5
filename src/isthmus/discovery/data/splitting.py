"""Held-out rows: a seeded split that keeps groups together and, for ordered rows, holds out whole blocks."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from pandas.util import hash_pandas_object

from isthmus.discovery.choices import BY_CHANCE, REPEATED
from isthmus.discovery.data.scaling import Standardiser
from isthmus.errors import DataError
from isthmus.tasks.arrays import in_parts

FOLDS = 5  # parts of the rows that are held out in turn
BLOCKS = 20  # an ordered data set is cut into this many blocks, a fifth of which are held out
STRETCHES = 10  # and each side of the split into so many that are drawn whole: neighbours resemble each other
HASHED_FIRST = np.uint64(0x9E3779B97F4A7C15)  # odd, so that inputs and targets change places with another hash
LEAST = 1e-300  # that is divided by
COLUMNS_OF_SERIES = 64  # at most, that are asked for how long its rows resemble each other
LEVELS, TURNS = 20, 5  # values of a column, up to which it is one of a design; ups and downs of none made of another
NEAR, GAP, STRAY = 30, 3.0, 0.1  # see `near_sets`
PROBED, COMBINED = 256, 16  # rows and columns, there
JUMP, JUMPED = 10.0, 0.1  # see `joins`
LEAST_MEMORY = 5  # rows over which what has joins resembles itself
ROUNDING = 1e-6  # of distances that are differences of squares, in units of the spread
LEAST_TOGETHER = 3  # columns; two are also the sine and the cosine of one angle
DRAWS = 20  # of groups, until what is held out is at most half of the rows
MOST_SEED = 2**32 - 1  # that scikit-learn takes


def heldout_rows(
    num_rows: int, *, seed: int, fraction: float = 0.2, groups: ArrayLike | None = None, ordered: bool = False
) -> NDArray[np.bool_]:
    """Mask of the held-out rows, about `fraction` of them, at least one and never all.

    Args:
        num_rows: number of rows, at least 2.
        seed: of the split.
        fraction: share to hold out.
        groups: a label per row; rows of one label stay on one side.
        ordered: hold out whole blocks of neighbouring rows.

    Raises:
        DataError: labels do not number the rows, or all rows share one label, or both `groups` and `ordered`.
    """
    if groups is not None and ordered:
        raise DataError(
            "discover(groups=..., ordered=True), --groups and --ordered: give one of the two; groups already keep rows "
            "together."
        )
    rng = np.random.default_rng(seed)
    if groups is not None:
        return _whole_groups(np.asarray(groups), num_rows, fraction, seed)
    if not ordered:
        mask = np.zeros(num_rows, dtype=bool)
        mask[rng.permutation(num_rows)[: _share(fraction, num_rows)]] = True
        return mask
    blocks = min(BLOCKS, num_rows)
    block = np.arange(num_rows) * blocks // num_rows
    return np.isin(block, rng.choice(blocks, _share(fraction, blocks), replace=False))


def stretches(held: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number of each row of a series: the same for neighbours on one side of the split, ten stretches on each."""
    number = np.empty(len(held), dtype=np.int64)
    for side, first in ((~held, 0), (held, STRETCHES)):
        count = int(side.sum())
        number[side] = first + np.arange(count) * STRETCHES // max(count, 1)
    return number


def memory_of(series: NDArray[np.float64]) -> int:
    """Lag from which the rows of a series resemble each other no longer, in its slowest column; 0 where none does.

        least l with  rho(l) < 1/e,   rho(l) = (1 / (n - l)) sum_t z_t z_{t+l},   z standardised;   n if there is none

    Of many columns so many spread over them are looked at.
    """
    rows = series.reshape(len(series), -1)
    longest, n = 0, len(rows)
    for column in _looked_at(rows):
        z = np.asarray(rows[:, column], dtype=np.float64)
        z = z / max(float(np.abs(z).max()), LEAST)  # squares of large numbers overflow
        z = z - z.mean()
        if not (spread := float(z.std())) > 0:
            continue
        z, overlap = z / spread, np.arange(n, 0, -1)
        spectrum = np.abs(np.fft.rfft(z, 2 * n)) ** 2  # of twice the length, so that the end does not meet the begin
        rho = np.fft.irfft(spectrum, 2 * n)[:n] / overlap
        apart = np.flatnonzero(rho < np.exp(-1.0))
        longest = max(longest, int(apart[0]) if len(apart) else n)
    return longest


def joins(*series: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows from which a series (n, d), in one table or more, starts anew, as several put one after another do.

        b_t = |z_{t+1} - 2 z_t + z_{t-1}| > max(JUMP median(b), JUMPED)  at t = r - 1 and r, not at r - 2 and r + 1

    in half of the columns that vary and in two at least, z standardised: an angle that is taken modulo a turn, or one
    switch, is no join; one row that lies far off bends at three t, and a fast passage at more. Rows that hardly
    resemble their neighbours are no series. Of many columns so many spread over them are looked at.
    """
    x = np.concatenate([np.asarray(part[:, _looked_at(part)], dtype=np.float64) for part in series], axis=1)
    z = Standardiser.of(x).apply(x)  # without what does not vary
    if memory_of(z) < LEAST_MEMORY:
        return np.empty(0, dtype=np.intp)
    bend = np.abs(np.diff(z, n=2, axis=0))
    far = bend > np.maximum(JUMP * np.median(bend, axis=0), JUMPED)
    count = far.sum(axis=1)
    bent = np.append(np.append(False, (count >= 2) & (2 * count >= z.shape[1])), False)
    return np.flatnonzero(~bent[:-3] & bent[1:-2] & bent[2:-1] & ~bent[3:]) + 2


def copies(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """The first of the rows that each one is equal to, in inputs and targets; None where rows hardly repeat others.

    Columns of few values are equal by chance in as many pairs as below, if they are independent; they are no copies.

        n (n - 1) / 2  prod_j sum_v p_jv^2,   p_jv the share of the rows with value v in column j
    """
    keys = np.concatenate([_keys(part) for part in in_parts(x)])
    if y is not x:
        keys = keys * HASHED_FIRST + np.concatenate([_keys(part) for part in in_parts(y)])
    _, first, number, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    n, pairs = len(keys), float((times * (times - 1.0)).sum())
    if n - len(first) <= REPEATED * n:
        return None
    by_chance = n * (n - 1.0)
    for column in range(x.shape[1]):
        by_chance *= float(np.square(np.unique(x[:, column], return_counts=True)[1] / n).sum())
        if pairs > BY_CHANCE * by_chance:
            return first[number].astype(np.int64)
    return None


def settings_of(x: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """The first of the rows with the same inputs, for each row; None where hardly any repeat, or by their few values.

    What was measured several times under the same inputs may share what else was the same then. A table none of whose
    columns has more than `LEVELS` values is a design or a truth table, whose every combination is wanted.
    """
    first = copies(x, x)
    many = first is not None and any(len(np.unique(x[:, column])) > LEVELS for column in range(x.shape[1]))
    return first if many else None


class SetsOfRows(NamedTuple):
    """Rows that belong together, as of one subject or run: columns that tell the sets, and the set of each row."""

    columns: NDArray[np.intp]
    labels: NDArray[np.int64]


def sets_of_rows(x: NDArray[np.float64]) -> SetsOfRows | None:
    """Columns that keep their values together in sets of rows, and these sets; None where none do.

    The values of a column with more than `LEVELS` of them make sets, if most rows share one. It takes two more columns
    that are the same within each, and none of them may be what the others are made of, as squares, waves or classes
    of its values: along one that is, all others go up and down less than `TURNS` times. Of many columns so many spread
    over them are looked at.
    """
    n = len(x)
    looked = _looked_at(x)
    values = np.asarray(x[:, looked], dtype=np.float64)
    for place in range(len(looked)):
        _, number, times = np.unique(values[:, place], return_inverse=True, return_counts=True)
        shared = np.flatnonzero(times[number] > 1)  # what is one row is the same within its set whatever it is
        if not LEVELS < len(times) <= n / 2 or len(shared) <= n / 2:
            continue
        order = shared[np.argsort(number[shared], kind="stable")]
        within = np.diff(number[order]) == 0
        kept = ~(np.diff(values[order], axis=0)[within] != 0).any(axis=0)
        sets = values[order[np.append(True, ~within)]][:, kept]
        if kept.sum() >= LEAST_TOGETHER and all(_most_turns(sets, along) >= TURNS for along in range(sets.shape[1])):
            return SetsOfRows(looked[kept], number.astype(np.int64))
    return None


def near_sets(x: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """A number of each row, the same for rows that hardly differ and lie far from all others; None where none do.

    Runs whose inputs were measured each time are such sets. With distances in standardised columns there is a t > 0:

        half of the rows have another one within t;  for all but `STRAY` of them none lies between t and `GAP` t,
        and so no set has as many rows as are looked at around each, `NEAR`

    More than `LEVELS` sets: fewer are classes, or kinds. Of many columns so many random combinations are looked at.
    """
    z = Standardiser.of(x).apply(x)
    if z.shape[1] > COMBINED:
        z = z @ np.random.default_rng(0).normal(size=(z.shape[1], COMBINED)) / z.shape[1] ** 0.5
    reach = _reach(z) if z.shape[1] else None
    if reach is None:
        return None
    from scipy.sparse import csr_array  # slow to import, and hardly any table has such sets
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    pairs = KDTree(z).query_pairs(GAP**0.5 * reach, output_type="ndarray")
    graph = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(z), len(z)))
    count, labels = connected_components(graph, directed=False)
    first = np.unique(labels, return_index=True)[1]
    if not LEVELS < count <= len(z) / 2 or (x == x[first][labels]).all():  # equal rows are those of `settings_of`
        return None
    return labels.astype(np.int64)


def _reach(z: NDArray[np.float64]) -> float | None:
    """The distance t of `near_sets`, if there is one around so many rows spread over the table."""
    rows = np.unique(np.linspace(0, len(z) - 1, PROBED).astype(np.intp))
    d = torch.cdist(torch.from_numpy(np.ascontiguousarray(z[rows])), torch.from_numpy(np.ascontiguousarray(z)))
    d[torch.arange(len(rows)), torch.from_numpy(rows)] = torch.inf
    distances = d.topk(min(NEAR, len(z) - 1), largest=False).values.numpy()
    jump = (distances[:, 1:] / np.maximum(distances[:, :-1], ROUNDING)).argmax(axis=1)
    ends = distances[np.arange(len(rows)), jump]  # of its set, around each row
    for t in np.quantile(ends, np.linspace(0.5, 1, 26)):
        beyond = distances > t
        strays = (beyond & (distances <= GAP * t)).any(axis=1) | ~beyond[:, -1]
        if t >= max(float(np.median(distances[:, 0])), ROUNDING) and strays.mean() <= STRAY:
            return float(t)
    return None


def _most_turns(sets: NDArray[np.float64], along: int) -> int:
    """How often the column that does so most goes up and then down, or down and then up, as one of them rises."""
    signs = np.sign(np.diff(sets[np.argsort(sets[:, along], kind="stable")], axis=0))
    moves = (column[column != 0] for column in signs.T)
    return max(int((one[1:] != one[:-1]).sum()) for one in moves)


def _looked_at(table: NDArray[np.float64]) -> NDArray[np.intp]:
    """The columns (n, d) that are asked where every column would take too long, spread over all of them."""
    d = table.shape[1]
    return np.unique(np.linspace(0, d - 1, min(d, COLUMNS_OF_SERIES)).astype(np.intp))


def _keys(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A hash of each row, the same for equal ones."""
    values = pd.DataFrame(rows.reshape(len(rows), -1) + 0.0)  # which makes 0 of -0
    hashed: Any = hash_pandas_object  # its stubs know it as an object
    return hashed(values, index=False).to_numpy()


def digest_of(labels: NDArray[np.generic]) -> str:
    """By which labels of rows are known again."""
    return hashlib.sha256(repr(labels.tolist()).encode()).hexdigest()


def folds(
    num_rows: int, *, seed: int, count: int = FOLDS, groups: ArrayLike | None = None, ordered: bool = False
) -> list[NDArray[np.bool_]]:
    """Masks of `count` parts of the rows, as equal as can be, each row in one of them; fewer where rows are fewer.

    Rows of one label are in one part; of ordered rows whole blocks are.
    """
    kept = np.arange(num_rows)
    if groups is not None:
        kept = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    elif ordered:
        kept = np.arange(num_rows) * min(BLOCKS, num_rows) // num_rows
    together = int(kept.max()) + 1
    part = (np.random.default_rng(seed).permutation(together) % count)[kept]
    return [part == number for number in range(min(count, together))]


def _share(fraction: float, count: int) -> int:
    """About `fraction` of `count`, at least one and never all."""
    return min(max(1, round(fraction * count)), count - 1)


def _whole_groups(groups: NDArray[np.generic], num_rows: int, fraction: float, seed: int) -> NDArray[np.bool_]:
    if groups.shape != (num_rows,):
        raise DataError(f"discover(groups=...): needs one label per row, {num_rows}; got shape {groups.shape}.")
    if len(np.unique(groups)) < 2:
        raise DataError("discover(groups=...): needs at least two different labels, else nothing can be held out.")
    from sklearn.model_selection import GroupShuffleSplit  # slow to import, and only groups need it

    splitter = GroupShuffleSplit(n_splits=DRAWS, test_size=fraction, random_state=seed & MOST_SEED)
    masks = [np.isin(np.arange(num_rows), held) for _, held in splitter.split(np.zeros(num_rows), groups=groups)]
    # a group that holds most rows is trained on
    return next((mask for mask in masks if 2 * mask.sum() <= num_rows), ~masks[0])


def numbered_apart(parts: Sequence[NDArray[np.int64] | None]) -> NDArray[np.int64] | None:
    """Numbers of the rows of all parts, of which no two share one: no group and no stretch is in two."""
    known = [np.unique(part, return_inverse=True)[1] for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    first = np.cumsum([0, *(int(numbers.max()) + 1 for numbers in known)])
    return np.concatenate([numbers + start for numbers, start in zip(known, first, strict=False)])
