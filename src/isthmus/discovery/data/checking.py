"""The arguments of `discover` turned into checked data and settings, before any work begins.

Weights, groups and classes of rows: `tasks.weights_and_labels`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from isthmus.discovery.data.column_summary import copies_in_words, target_tails, ties
from isthmus.discovery.groups.powers import Powers, powers_argument
from isthmus.errors import DataError
from isthmus.networks.arguments import tensor_argument
from isthmus.tasks.arrays import (
    LEAST_SPREAD,
    as_samples,
    check_rows,
    check_same_length,
    chosen_rows,
    constant_columns,
    counted,
    in_parts,
    listing,
)  # fmt: skip
from isthmus.tasks.foreign import in_memory
from isthmus.tasks.input_columns import InputColumn, Made, pixels_of
from isthmus.tasks.mapped import is_on_disk
from isthmus.tasks.memory import check_memory
from isthmus.tasks.missing_codes import said_codes
from isthmus.tasks.names import checked_names, quoted
from isthmus.tasks.seen_ranges import column_range
from isthmus.tasks.weights_and_labels import checked_weights, class_numbers, names_of
from isthmus.tasks.weights_and_labels import groups_of_rows as groups_of_rows
from isthmus.training.losses import CROSS_ENTROPY, SQUARED, Loss, loss_argument
from isthmus.training.losses.squared import Squared

Array = NDArray[np.float64]
LEAST_ROWS = 3


@dataclass(frozen=True, slots=True, eq=False)
class CheckedData:
    """Checked data in the user's units."""

    x: Array
    y: Array  # class numbers (n,) when classifying
    loss: Loss
    task: str
    input_names: tuple[str, ...]
    target_names: tuple[str, ...]
    weight: Array | None = None  # of each row, > 0
    columns: tuple[InputColumn, ...] = ()  # how the inputs were made
    powers: Powers | None = None  # what has become of inputs and targets already
    numbers: NDArray[np.int64] | None = None  # of each row, in what the caller gave; None: as they stand
    num_copies: int = 0  # rows that were left out because they repeat others, which weigh more instead,
    given: str = ""  # and the fingerprint with them

    @property
    def num_targets(self) -> int | None:
        """How many numbers vary with the inputs; scores of classes count up to a common shift. None: autoencoding."""
        if self.y is self.x:
            return None
        return len(self.target_names) - 1 if self.loss.classes else int((~constant_columns(self.y)).sum())

    def notes(self, *, are_tied: bool = False) -> list[str]:
        """Sentences for the user on columns and, unless it was said that they are ordered or in groups, on rows."""
        made = [self.powers.sentence] if self.powers and self.powers.sentence else []
        if self.num_copies:
            made.append(copies_in_words(self.num_copies, len(self.x)))
        y = None if self.y is self.x else self.y
        if y is not None and isinstance(self.loss, Squared):
            made += target_tails(y, self.target_names)
        tied = [] if are_tied else ties(self.x, y, self.columns, are_classes=bool(self.loss.classes))
        return [*made, *self._codes(), *tied]

    def _codes(self) -> list[str]:
        """Numbers that stand for missing cells perhaps, in inputs and targets."""
        of_inputs, of_targets = (
            (self.powers.coordinates.is_logged, self.powers.target_logs) if self.powers else ((), ())
        )
        said = said_codes(self.x, self.input_names, self.numbers, logged=of_inputs)
        if self.y is self.x or self.loss.classes:
            return said
        return [*said, *said_codes(self.y, self.target_names, self.numbers, logged=of_targets)]

    def rows(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> "CheckedData":
        """Some of the rows; itself where these are all."""
        if which.dtype == bool and which.all():
            return self
        x = chosen_rows(self.x, which)
        y = x if self.y is self.x else chosen_rows(self.y, which)
        numbers = np.arange(len(self.x)) if self.numbers is None else self.numbers
        weight = None if self.weight is None else self.weight[which]
        return replace(self, x=x, y=y, weight=weight, numbers=numbers[which], given="")

    def fingerprint(self) -> str:
        """Hash of the data, by which a finished run knows its own."""
        if self.given:
            return self.given
        digest = hashlib.sha256(f"{self.loss.name} {self.task} {self.input_names} {self.target_names}".encode())
        for array in (self.x, self.y, np.zeros(0) if self.weight is None else self.weight):
            digest.update(f"{array.shape}".encode())
            for part in in_parts(array):
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


def checked_data(
    x: object,
    y: object,
    loss: str | Loss | None,
    sample_weight: ArrayLike | None = None,
    columns: Sequence[InputColumn] | None = None,
) -> CheckedData:
    """Data as float64 rows, without those of weight 0; raises before any work."""
    kind = SQUARED if loss is None else loss_argument(loss, "discover")
    if isinstance(x, str | Path):
        what = f"got the path {str(x)[:80]!r}"
        raise DataError(f"discover(x): {what}. Read it with isthmus.tasks.read_table, and pass x and y of that.")
    for name, values in (("x", x), ("y", y)):
        if isinstance(values, Tensor):  # what is sparse or has no data is no array
            tensor_argument(values, f"discover({name})")
    pixels = pixels_of(x.shape) if isinstance(x, np.ndarray | Tensor) else ()
    x, y = in_memory(x, y)
    everything = as_samples(x, "x")
    weight, kept = _weights_and_rows(sample_weight, len(everything))
    samples, numbers = everything[kept], None if weight is None else np.arange(len(everything))[kept]
    is_told = columns is not None and isinstance(x, np.ndarray) and len(columns) == samples.shape[1]
    told = [column.name for column in columns or ()] if is_told else None
    inputs = checked_names(told, "discover(columns)") if told else names_of(x, samples.shape[1], "x")
    made = _made(x, inputs, columns, pixels)
    check_enough(len(samples))
    if bool(constant_columns(samples).all()):
        raise DataError(f"discover(x): all {len(samples)} rows of x are identical; there is nothing to learn from.")
    check_rows(len(samples))
    _check_spread(samples, inputs, "x")
    if y is None and kind.classes:
        raise DataError(f"discover(loss={kind.name!r}): needs class labels y; leave out loss to autoencode x.")
    if y is None:
        kind.check(torch.from_numpy(samples), "discover(x)")
        return CheckedData(samples, samples, kind, "autoencoding", inputs, inputs, weight, made, numbers=numbers)
    if kind.classes:
        labels, classes = class_numbers(y)
        check_same_length(len(everything), len(labels))
        if weight is not None:
            present, labels = np.unique(labels[kept], return_inverse=True)
            labels, classes = labels.astype(np.float64), tuple(classes[int(c)] for c in present)
        return CheckedData(samples, labels, kind, "classification", inputs, classes, weight, made, numbers=numbers)
    targets = _numbers_to_predict(y)
    check_same_length(len(everything), len(targets))
    kind.check(torch.from_numpy(targets), "discover(y)")
    names = names_of(y, targets.shape[1], "y")
    _check_spread(targets, names, "y")
    return CheckedData(samples, targets[kept], kind, "regression", inputs, names, weight, made, numbers=numbers)


def check_enough(rows: int, *, that: str = "") -> None:
    """Refuse rows of which none could be held out.

    Raises:
        DataError: there are fewer than three.
    """
    if rows < LEAST_ROWS:
        raise DataError(
            f"discover(x): has {counted(rows, 'row')}{that}; needs at least {LEAST_ROWS}, two to train on and one to "
            "hold out. Add rows."
        )


def _check_spread(samples: Array, names: Sequence[str], where: str) -> None:
    """Refuse columns that vary by less than can be divided by; one that does not vary is no matter here."""
    low, high = column_range(samples)
    spread = high - low
    faint = [quoted(names[i]) for i in np.flatnonzero((spread > 0) & (spread < LEAST_SPREAD)).tolist()]
    if faint:
        varies, it = ("varies", "it") if len(faint) == 1 else ("vary", "them")
        raise DataError(
            f"{where}: {listing(faint, 'column')} {varies} by less than {LEAST_SPREAD:g}; what is divided by that "
            f"overflows. Rescale or remove {it}."
        )


def with_powers(data: CheckedData, log: str | Sequence[str] | None, units: object) -> CheckedData:
    """The data as logarithms and without units, as far as they are asked for.

    Raises:
        DataError: a logarithm that cannot be taken, or units that do not fit.
        ValueError: the targets are to be changed, under a loss that takes them as they are.
    """
    same = data.y is data.x
    numbers = None if same or data.loss.classes else data.y
    names = (data.input_names, () if data.loss.classes else data.target_names)
    powers = powers_argument(data.x, numbers, names, log=log, units=units)
    if powers is None:
        return data
    if same:
        powers = replace(powers, target_logs=powers.coordinates.is_logged)
    in_their_units = data.loss.standardised and data.loss.per_target == 1
    if not in_their_units and (any(powers.target_logs) or powers.target_exponents):
        raise ValueError(
            f"discover(loss={data.loss.name!r}): takes the targets as they are; leave out their logarithm and units."
        )
    if is_on_disk(data.x):
        check_memory(3 * data.x.nbytes, "discover(log, units)", instead="Leave out logarithms and units")
    x = powers.inputs(data.x)
    y = x if same else data.y if numbers is None else powers.targets(data.x, data.y)
    return replace(data, x=x, y=y, powers=powers)


def _weights_and_rows(sample_weight: ArrayLike | None, num_rows: int) -> tuple[Array | None, NDArray[np.bool_] | slice]:
    """The positive weights, and which rows have them."""
    weights = checked_weights(sample_weight, num_rows)
    return (None, slice(None)) if weights is None else (weights[weights > 0], weights > 0)


def _numbers_to_predict(y: object) -> Array:
    """The targets of a regression; of text it is said how classes are predicted."""
    try:
        return as_samples(y, "y")
    except DataError as error:
        if not any(isinstance(value, str) for value in np.asarray(y, dtype=object).flat):
            raise
        raise DataError(f"{error} To predict classes pass loss={CROSS_ENTROPY.name!r}.") from error


def _made(
    x: object, names: Sequence[str], columns: Sequence[InputColumn] | None, pixels: Sequence[str]
) -> tuple[InputColumn, ...]:
    """How the inputs were made, as the caller knows it, the types of a data frame or the shape of an array say."""
    if columns:
        if [column.name for column in columns] != list(names):
            raise ValueError(f"discover(columns=...): needs one for each column of x, in order; got {len(columns)}.")
        return tuple(columns)
    if pixels:
        return tuple(InputColumn(name, pixel=pixel) for name, pixel in zip(names, pixels, strict=True))
    dtypes = getattr(x, "dtypes", None)
    kinds = [getattr(dtype, "kind", "f") for dtype in dtypes] if isinstance(dtypes, pd.Series) else ["f"] * len(names)
    return tuple(InputColumn(n, Made.BOOLEAN if k == "b" else Made.NUMERIC) for n, k in zip(names, kinds, strict=True))
