"""What stands out in a table before anything is trained on it: numbers of rows, doubles, heavy tails, ties of rows.

Said only; what is done about it is for the user to say. What cannot be used at all: `tasks.columns`, `data.checking`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float64, Integer

from isthmus.discovery.data.scaling import doubles
from isthmus.discovery.data.splitting import STRETCHES
from isthmus.tasks.arrays import constant_columns, counted, in_parts, listing
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.names import quoted

HEAVY = 20.0  # excess kurtosis above which a few rows hold most of a variance; that of an exponential law is 6
_LISTED = 5  # classes, and columns that are the same as others, by name
_FLAT = 1e-24  # of the largest number squared: a variance of rounding
_TAILS = "heavy tails, a few rows hold most of the variance"
_LEAST_LABELS = 10  # different ones
_SHORTEST, _LONGEST = 8, 1000  # rows of a stretch
_ALIKE = (
    0.5  # correlation of neighbours; of independent rows 1.25 / sqrt(n), of the largest of many columns 3 times that
)
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
    counts, rises = _rising(x)
    counting = [i for i in moving if not ordered and counts[i]]
    clocks = [i for i in moving if not targets and rises[i] and i not in counting]
    lighter, other = _heavy(x, [i for i in moving if i not in counting])
    sources = dict.fromkeys(column.source for column in columns)
    made = f" as {counted(len(columns), 'input')}" if len(sources) != len(columns) else ""
    aim = f"predict {listing(map(quoted, targets), 'column')}" if targets else "reconstruct them"
    more = len(targets) - _LISTED
    classes = ", ".join(map(quoted, targets[:_LISTED])) + (f" and {more} more" if more > 0 else "")
    aim = f"tell apart {len(targets)} classes, {classes}" if are_classes else aim
    changing = {column.source for column, is_still in zip(columns, still, strict=True) if not is_still}
    unused = f" ({len(sources) - len(changing):,} more never change)" if len(changing) < len(sources) else ""
    said = [f"{counted(len(x), 'row')} of {counted(len(changing), 'input column')}{unused}{made}, to {aim}."]

    def note(places: Iterable[int], what: str) -> None:
        if names := [quoted(columns[place].name) for place in places]:
            said.append(f"{listing(names, 'column')}: {what}.")

    note(counting, "rises by one from row to row, a number of the row perhaps: leave it out if it is no measurement")
    note(clocks, "rises from row to row: a clock is no state, and would be a dimension of its own; then leave it out")
    same = doubles(x, moving)
    if len(same) <= _LISTED:
        for first, second in same:
            note([second], f"the same as {quoted(columns[first].name)} but for scale and origin")
    else:
        pairs = [f"{quoted(columns[second].name)} as {quoted(columns[first].name)}" for first, second in same[:_LISTED]]
        more = f"{', '.join(pairs)} and {len(same) - _LISTED} more"
        said.append(f"{len(same)} columns are the same as others but for scale and origin: {more}.")
    note(lighter, f"{_TAILS}: take logarithms")
    note(other, f"{_TAILS}: look at these rows")
    return said


def target_tails(y: Float64[np.ndarray, "n q"], names: Sequence[str]) -> list[str]:
    """Sentences about targets, as they are predicted, a few rows of which decide what is learnt and what is lost."""
    lighter, other = _heavy(y, range(y.shape[1]))
    advice = (
        (lighter, "Take their logarithms (log, --log)"),
        (other, 'Look at these rows, or take the Huber loss (loss="huber", --loss huber)'),
    )
    return [
        f"Of {listing((quoted(names[i]) for i in places), 'target')} a few rows hold most of the variance. {what}."
        for places, what in advice if places
    ]  # fmt: skip


def copies_in_words(num_copies: int, kept: int) -> str:
    """What has become of rows that repeat others."""
    return (
        f"{num_copies:,} of {kept + num_copies:,} rows repeat others: the {kept:,} that differ are searched, each by "
        "the weight of its copies. Rows of a time series are kept with ordered=True (--ordered)."
    )


def ties(
    x: Float64[np.ndarray, "n d"], y: np.ndarray | None, columns: Sequence[InputColumn], *, are_classes: bool = False
) -> list[str]:
    """Sentences about rows that look as if they belonged together, though nothing was said of groups or of an order.

    Where they do, rows that are held out lie beside rows that are fitted, and what is told of them is too good.

    Args:
        x: the inputs, rows as the user has them.
        y: targets, or class numbers (n,); None where the inputs are reconstructed.
        columns: how each input was made.
        are_classes: whether these are class numbers.
    """
    said: list[str] = []
    if names := _labels(x, columns):
        said.append(
            f"Each value of {listing(map(quoted, names), 'column')} stands in neighbouring rows alone. If it numbers "
            "what rows belong to (a run, a batch, a person), it is no measurement: give it as groups (--groups NAME)."
        )
    if _resemble_neighbours(x, y, are_classes=are_classes):
        said.append(
            "Neighbouring rows resemble each other. If they were measured one after another, so that something may "
            "have drifted, pass ordered=True (--ordered), or groups; of a table that was sorted it means nothing."
        )
    return said


def _labels(x: Float64[np.ndarray, "n d"], columns: Sequence[InputColumn]) -> list[str]:
    """Columns of whole numbers or text with many values, each of which is one block of neighbouring rows."""
    sources: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        if column.made in {Made.NUMERIC, Made.ONE_HOT}:
            sources.setdefault(column.source, []).append(place)
    found: list[str] = []
    for source, places in sources.items():
        if len(places) > 1:  # text, one place for each value
            values = x[:, places].argmax(axis=1)
        elif (x[: 2 * _LEAST_LABELS, places] % 1).any():  # most columns of numbers, of which no more is read
            continue
        else:
            values = x[:, places[0]]
        blocks = 1 + np.count_nonzero(np.diff(values))
        is_label = _LEAST_LABELS <= blocks <= len(x) // 2 and len(np.unique(values)) == blocks
        if is_label and not (values % 1).any():
            found.append(source)
    return found


def _resemble_neighbours(x: Float64[np.ndarray, "n d"], y: np.ndarray | None, *, are_classes: bool) -> bool:
    """Whether a column of the inputs and one of the targets change little from row to row, in most stretches of rows.

    Within stretches, so that a table sorted by few kinds does not count, and of classes within each, nor one by these.
    Rows of equal inputs count once, and what rises or falls throughout, as numbers of rows do, does not.
    """
    length = min(len(x) // STRETCHES, _LONGEST)
    if length < _SHORTEST:
        return False
    inputs: list[Float64[np.ndarray, "2 d"]] = []
    targets: list[Float64[np.ndarray, "2 d"]] = []
    for start in np.linspace(0, len(x) - length, STRETCHES).astype(np.int64).tolist():
        rows = np.array(x[start : start + length])
        differs = np.append(True, (np.diff(rows, axis=0) != 0).any(axis=1))
        if differs.sum() < _SHORTEST:
            continue
        rows, labels = rows[differs], np.zeros(int(differs.sum()), dtype=np.int64)
        if y is not None:
            beside = np.array(y[start : start + length])[differs]
            if are_classes:
                labels = np.unique(beside, return_inverse=True)[1].reshape(-1)
            else:
                targets.append(_from_row_to_row(beside.reshape(len(rows), -1), np.zeros_like(labels)))
        inputs.append(_from_row_to_row(rows, labels))
    if 2 * len(inputs) <= STRETCHES:
        return False
    return all(_change_little(np.array(parts)) for parts in (inputs, targets) if parts)


def _change_little(parts: Float64[np.ndarray, "stretches 2 d"]) -> bool:
    is_sorted = np.abs(parts[:, 1].sum(axis=0)) == len(parts)
    return bool((np.median(parts[:, 0], axis=0)[~is_sorted] > _ALIKE).any())


def _from_row_to_row(rows: Float64[np.ndarray, "n d"], labels: Integer[np.ndarray, " n"]) -> Float64[np.ndarray, "2 d"]:
    """Of each column the correlation with itself one row on, about the mean of each label, 0 where it stands still.

    And whether it never falls (1) or never rises (-1).
    """
    scaled = rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)  # squares of large numbers overflow
    sums = np.zeros((int(labels.max()) + 1, rows.shape[1]))
    np.add.at(sums, labels, scaled)
    z, steps = scaled - (sums / np.bincount(labels)[:, None])[labels], np.diff(rows, axis=0)
    spread = np.square(z).sum(axis=0)
    alike = np.where(spread > _FLAT * len(rows), (z[1:] * z[:-1]).sum(axis=0) / np.maximum(spread, 1e-300), 0.0)
    return np.array([alike, (steps >= 0).all(axis=0) * 1.0 - (steps <= 0).all(axis=0)])


def _heavy(x: Float64[np.ndarray, "n d"], places: Sequence[int]) -> tuple[list[int], list[int]]:
    """Columns with heavy tails: those of which logarithms have lighter ones, and the others."""
    excess = _excesses(x, places)
    heavy = [i for i in places if excess[i] > HEAVY]
    positive = [i for i in heavy if all(float(part[:, i].min()) > 0 for part in in_parts(x))]
    of_logs = _excesses(x, positive, of=np.log)
    lighter = [i for i in positive if of_logs[i] < _LIGHTER * excess[i]]
    return lighter, [i for i in heavy if i not in lighter]


def _rising(x: Float64[np.ndarray, "n d"]) -> tuple[Bool[np.ndarray, " d"], Bool[np.ndarray, " d"]]:
    """Which columns rise by one from row to row, and which rise at all in every row."""
    by_one = np.full(x.shape[1], len(x) > 2)  # noqa: PLR2004 - two rows are one step
    at_all, last = by_one.copy(), x[:0]
    for part in in_parts(x):
        for steps in (np.diff(part, axis=0), part[:1] - last):  # nothing comes before the first
            by_one &= (steps == 1).all(axis=0)
            at_all &= (steps > 0).all(axis=0)
        last = part[-1:].copy()
    return by_one, at_all


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
