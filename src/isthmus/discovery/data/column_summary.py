"""What stands out among the columns of a table before anything is trained on it: numbers of rows, doubles, heavy tails.

Said only; what is done about it is for the user to say. What cannot be used at all: `tasks.columns`, `data.checking`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float64

from isthmus.discovery.data.scaling import doubles
from isthmus.tasks.arrays import constant_columns, counted, in_parts, listing
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.names import quoted

HEAVY = 20.0  # excess kurtosis above which a few rows hold most of a variance; that of an exponential law is 6
_LISTED = 5  # classes by name
_FLAT = 1e-24  # of the largest number squared: a variance of rounding
_TAILS = "heavy tails, a few rows hold most of the variance"
_LIGHTER = 0.25  # of that, which logarithms may leave for them to be advised


def column_summary(
    x: Float64[np.ndarray, "n d"],
    columns: Sequence[InputColumn],
    targets: Sequence[str] = (),
    *,
    ordered: bool = False,
    are_classes: bool = False,
) -> list[str]:
    """Sentences: what is used, and which inputs number the rows, repeat each other or have heavy tails.

    Of those that stand still `discover` itself warns, on whatever way they came.

    Args:
        x: the inputs.
        columns: how each was made.
        targets: names of what is predicted; empty where the inputs are reconstructed.
        are_classes: whether these are the classes of one column.
        ordered: whether the rows are a time series, in which a column may well count.
    """
    still = constant_columns(x)
    moving = [i for i, column in enumerate(columns) if column.made is Made.NUMERIC and not still[i]]
    counts = _counting(x)
    counting = [i for i in moving if not ordered and counts[i]]
    lighter, other = _heavy(x, [i for i in moving if i not in counting])
    sources = dict.fromkeys(column.source for column in columns)
    made = f" as {counted(len(columns), 'input')}" if len(sources) != len(columns) else ""
    aim = f"predict {listing(map(quoted, targets), 'column')}" if targets else "reconstruct them"
    more = len(targets) - _LISTED
    classes = ", ".join(map(quoted, targets[:_LISTED])) + (f" and {more} more" if more > 0 else "")
    aim = f"tell apart {len(targets)} classes, {classes}" if are_classes else aim
    said = [f"{counted(len(x), 'row')} of {counted(len(sources), 'input column')}{made}, to {aim}."]

    def note(places: Iterable[int], what: str) -> None:
        if names := [quoted(columns[place].name) for place in places]:
            said.append(f"{listing(names, 'column')}: {what}.")

    note(counting, "rises by one from row to row, a number of the row perhaps: leave it out if it is no measurement")
    for first, second in doubles(x, moving):
        note([second], f"the same as {quoted(columns[first].name)} but for scale and origin")
    note(lighter, f"{_TAILS}: take logarithms")
    note(other, f"{_TAILS}: look at these rows")
    return said


def target_tails(y: Float64[np.ndarray, "n q"], names: Sequence[str]) -> list[str]:
    """Sentences about targets, as they are predicted, a few rows of which decide what is learnt and what is lost."""
    lighter, other = _heavy(y, range(y.shape[1]))
    advice = ((lighter, "Take their logarithms (log)"), (other, "Look at these rows, or take the Huber loss"))
    return [
        f"Of {listing((quoted(names[i]) for i in places), 'target')} a few rows hold most of the variance. {what}."
        for places, what in advice if places
    ]  # fmt: skip


def _heavy(x: Float64[np.ndarray, "n d"], places: Sequence[int]) -> tuple[list[int], list[int]]:
    """Columns with heavy tails: those of which logarithms have lighter ones, and the others."""
    excess = _excesses(x, places)
    heavy = [i for i in places if excess[i] > HEAVY]
    positive = [i for i in heavy if all(float(part[:, i].min()) > 0 for part in in_parts(x))]
    of_logs = _excesses(x, positive, of=np.log)
    lighter = [i for i in positive if of_logs[i] < _LIGHTER * excess[i]]
    return lighter, [i for i in heavy if i not in lighter]


def _counting(x: Float64[np.ndarray, "n d"]) -> Bool[np.ndarray, " d"]:
    """Which columns rise by one from row to row."""
    found, last = np.full(x.shape[1], len(x) > 2), x[:0]  # noqa: PLR2004 - two rows are one step
    for part in in_parts(x):
        found &= (np.diff(part, axis=0) == 1).all(axis=0)
        found &= (part[:1] - last == 1).all(axis=0)  # nothing comes before the first
        last = part[-1:].copy()
    return found


def _excesses(
    x: Float64[np.ndarray, "n d"], places: Sequence[int], of: Callable[[np.ndarray], np.ndarray] = np.asarray
) -> dict[int, float]:
    """Excess kurtosis of some columns, or of what is made of them; 0 where the values are as good as constant."""
    if not places:
        return {}

    def parts() -> Iterator[np.ndarray]:
        return (of(part[:, places]) for part in in_parts(x))

    n, top = len(x), np.maximum(1e-300, np.max([np.abs(part).max(axis=0) for part in parts()], axis=0))
    mean = sum((part / top).sum(axis=0) for part in parts()) / n
    second, fourth = np.zeros(len(places)), np.zeros(len(places))
    for part in parts():
        square = (part / top - mean) ** 2
        second += square.sum(axis=0)
        fourth += (square**2).sum(axis=0)
    flat = second / n <= _FLAT
    kurtosis = np.where(flat, 3.0, fourth / n / np.where(flat, 1.0, (second / n) ** 2))
    return {place: float(value) - 3 for place, value in zip(places, kurtosis, strict=True)}
