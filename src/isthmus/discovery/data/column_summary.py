"""What stands out among the columns of a table before anything is trained on it: numbers of rows, doubles, heavy tails.

Said only; what is done about it is for the user to say. What cannot be used at all: `tasks.columns`, `data.checking`.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float64

from isthmus.discovery.data.scaling import doubles
from isthmus.tasks.arrays import constant_columns, counted, listing
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.names import quoted

HEAVY = 20.0  # excess kurtosis above which a few rows hold most of a variance; that of an exponential law is 6
_LIGHTER = 0.25  # of that, which logarithms may leave for them to be advised


def column_summary(
    x: Float64[np.ndarray, "n d"], columns: Sequence[InputColumn], targets: Sequence[str] = (), *, ordered: bool = False
) -> list[str]:
    """Sentences: what is used, and which inputs number the rows, repeat each other, stand still or have heavy tails.

    Args:
        x: the inputs.
        columns: how each was made.
        targets: names of what is predicted; empty where the inputs are reconstructed.
        ordered: whether the rows are a time series, in which a column may well count.
    """
    still = constant_columns(x)
    moving = [i for i, column in enumerate(columns) if column.made is Made.NUMERIC and not still[i]]
    counting = [i for i in moving if not ordered and _counts(x[:, i])]
    heavy = [i for i in moving if i not in counting and _excess(x[:, i]) > HEAVY]
    lighter = [i for i in heavy if x[:, i].min() > 0 and _excess(np.log(x[:, i])) < _LIGHTER * _excess(x[:, i])]
    sources = dict.fromkeys(column.source for column in columns)
    made = f" as {counted(len(columns), 'input')}" if len(sources) != len(columns) else ""
    aim = f"predict {listing(map(quoted, targets), 'column')}" if targets else "reconstruct them"
    said = [f"{counted(len(x), 'row')} of {counted(len(sources), 'input column')}{made}, to {aim}."]

    def note(places: Iterable[int], what: str) -> None:
        if names := [quoted(columns[place].name) for place in places]:
            said.append(f"{listing(names, 'column')}: {what}.")

    note(np.flatnonzero(still).tolist(), "the same in every row, left out of the training")
    note(counting, "rises by one from row to row, a number of the row perhaps: leave it out if it is no measurement")
    for first, second in doubles(x, moving):
        note([second], f"the same as {quoted(columns[first].name)} but for scale and origin")
    tails = "heavy tails, a few rows hold most of the variance"
    note(lighter, f"{tails}: take logarithms")
    note([i for i in heavy if i not in lighter], f"{tails}: look at these rows")
    return said


def _counts(values: Float64[np.ndarray, " n"]) -> bool:
    return len(values) > 2 and bool((np.diff(values) == 1).all())


def _excess(values: Float64[np.ndarray, " n"]) -> float:
    """Excess kurtosis; 0 where the values are as good as constant."""
    centred = values / max(1e-300, float(np.abs(values).max()))
    centred = centred - centred.mean()
    variance = float((centred**2).mean())
    return float((centred**4).mean()) / variance**2 - 3 if variance > 1e-24 else 0.0
