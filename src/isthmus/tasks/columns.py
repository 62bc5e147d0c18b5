"""Columns of a table as numbers: choosing them, text into 0/1 columns, classes. Reading the file: `files`.

What is wrong with several columns is collected and told at once.
"""

import difflib
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import cast

import numpy as np
import pandas as pd
from jaxtyping import Float64

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import counted, listing
from isthmus.tasks.cells import CellProblem, column_numbers, missing_cells, unusable_type
from isthmus.tasks.input_columns import InputColumn, Made
from isthmus.tasks.names import checked_names, quoted
from isthmus.tasks.quantities import quantities_in

MOST_CATEGORIES = 50
MOST_TOLD = 10
_SHARED = 0.8  # of the rows, whose text other rows have too: labels of what they belong to
_WHOLE = 2**53  # below it float64 has every whole number


class ColumnError(DataError):
    """Columns that cannot be used, with their problems, for those who know more about the rows."""

    def __init__(self, where: str, problems: Sequence[CellProblem]) -> None:
        self.where, self.problems = where, tuple(problems)
        super().__init__(self.told())

    @property
    def is_missing(self) -> bool:
        """Whether cells are missing, and nothing else is wrong."""
        return all(problem.is_missing for problem in self.problems)

    def told(self, *, addition: str = "") -> str:
        """The line: the first problems, what else is known of them, and what to do."""
        shown = self.problems[:MOST_TOLD]
        clauses = [problem.what for problem in shown]
        left = len(self.problems) - len(shown)
        more = f"; {counted(left, 'more column')} cannot be used" if left else ""
        remedies = " ".join(dict.fromkeys(problem.remedy for problem in shown))
        return f"{self.where}: {'; '.join(clauses)}{more}. {remedies}{f' {addition}' if addition else ''}"


def check_present(columns: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Raise a DataError that lists the columns, nearest first, when one that is wanted is missing."""
    known = set(columns)
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name[:200], [c[:200] for c in columns[:2000]], n=1)
            hint = f" Did you mean {quoted(near[0])}?" if near else ""
            shown = [c if len(c) <= 60 and c.isprintable() and "," not in c else quoted(c) for c in columns[:20]]
            rest = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
            listed = f"{listing(shown, 'column', shown=20)}{rest}"
            raise DataError(f"{where}: has no column {quoted(name)}.{hint} It has {listed}.")


def input_columns(
    table: pd.DataFrame, where: str, problems: list[CellProblem]
) -> tuple[Float64[np.ndarray, "n d"], tuple[InputColumn, ...]]:
    """All columns as numbers, and how each was made; a DataWarning says which text became one 0/1 column per value.

    Columns that cannot be used are left out, and added to `problems`.
    """
    parts: list[np.ndarray] = []
    made: list[InputColumn] = []
    for column in _series(table):
        own, values = made_column(column, problems)
        made += own
        parts += values
    said_columns(made, where, are_usable=not problems)
    return np.column_stack(parts) if parts else np.zeros((len(table), 0)), tuple(made)


def made_column(column: pd.Series, problems: list[CellProblem]) -> tuple[list[InputColumn], list[np.ndarray]]:
    """What inputs a column makes, and their numbers; none where it cannot be used, which is added to `problems`."""
    name = str(column.name)
    numbers = column_numbers(column)
    if isinstance(numbers, CellProblem):
        problems.append(numbers)
    elif numbers is not None:
        is_boolean = pd.api.types.is_bool_dtype(column.dtype)
        return [InputColumn(name, Made.BOOLEAN if is_boolean else Made.NUMERIC)], [numbers]
    elif (found := _one_hot_text(column, problems)) is not None:
        return [InputColumn(f"{name}={value}", Made.ONE_HOT, name, value) for value in found[0]], found[1]
    return [], []


def said_columns(made: Sequence[InputColumn], where: str, *, are_usable: bool = True) -> None:
    """Say which text became 0/1 columns (DataWarning); inputs of one name are refused, where others are not anyway.

    Raises:
        DataError: names that cannot be used.
    """
    values = Counter(column.column for column in made if column.made is Made.ONE_HOT)
    if encoded := [f"{quoted(name)} ({count} values)" for name, count in values.items()]:
        warnings.warn(
            f"{where}: text in {listing(encoded, 'column', shown=10)} became one 0/1 column per value.",
            DataWarning,
            stacklevel=outside(),
        )
    if are_usable:
        checked_names([column.name for column in made], where)


def target_columns(
    table: pd.DataFrame, problems: list[CellProblem]
) -> tuple[Float64[np.ndarray, "n d"], tuple[str, ...]]:
    """Columns that are predicted as numbers, with their names; those that cannot be are added to `problems`."""
    parts: list[np.ndarray] = []
    for column in _series(table):
        numbers = column_numbers(column)
        if numbers is None:
            numbers = quantities_in(column) or CellProblem(
                f"target column {quoted(column.name)} holds text",
                "To predict classes name it as classes "
                "(--classes), or of a file of targets the file, its other columns left out (--leave-out).",
            )
        if isinstance(numbers, CellProblem):
            problems.append(numbers)
        else:
            parts.append(numbers)
    names = tuple(str(c) for c in table.columns)
    return np.column_stack(parts) if parts else np.zeros((len(table), 0)), names


def class_columns(
    labels: pd.Series, where: str, problems: list[CellProblem]
) -> tuple[Float64[np.ndarray, "n classes"], tuple[str, ...]]:
    """One 0/1 column per class in sorted order, and the names of the classes."""
    unusable = unusable_type(labels)
    if (problem := unusable or missing_cells(labels)) is not None:
        problems.append(problem)
        return np.zeros((len(labels), 0)), ()
    classes, index = np.unique(sortable(_stripped(labels)), return_inverse=True)
    # those of an array: 0 and 1, not 0.0 and 1.0
    if classes.dtype.kind == "f" and (np.abs(classes) < _WHOLE).all() and (classes == np.trunc(classes)).all():
        classes = classes.astype(np.int64)
    if len(classes) > max(2, len(labels) // 2):
        problems.append(
            CellProblem(
                f"class column {quoted(labels.name)} has {counted(len(classes), 'different value')} in "
                f"{len(labels)} rows",
                "For numbers use target instead of classes.",
            )
        )
        return np.zeros((len(labels), 0)), ()
    return np.eye(len(classes))[index.reshape(-1)], checked_names(classes.tolist(), where, what="class")


def group_labels(labels: pd.Series, where: str) -> np.ndarray:
    """A number per row, equal where the labels, numbers or text, are equal."""
    if (problem := unusable_type(labels) or missing_cells(labels)) is not None:
        raise ColumnError(where, [problem])
    return np.unique(_stripped(labels).astype(str).to_numpy(dtype=str), return_inverse=True)[1].reshape(-1)


def one_hot_as(column: pd.Series, values: Sequence[str], where: str) -> list[np.ndarray]:
    """A column of text as one 0/1 column for each of these values.

    Raises:
        DataError: cells are missing, or hold another value.
    """
    if (problem := unusable_type(column) or missing_cells(column)) is not None:
        raise ColumnError(where, [problem])
    is_older = any(value != value.strip() for value in values)  # a run that kept the blanks around texts
    texts = (column if is_older else _stripped(column)).astype(str).to_numpy(dtype=object)
    known = np.isin(texts.astype(str), np.array(list(values), dtype=str))
    if not known.all():
        rows = (~known).nonzero()[0]
        raise DataError(
            f"{where}: column {quoted(column.name)} holds {quoted(texts[rows[0]])}, which the run never saw, in "
            f"{listing((rows + 1).tolist(), 'row')}. Remove these rows."
        )
    return [(texts == value).astype(np.float64) for value in values]


def numeric_as(column: pd.Series, where: str) -> np.ndarray:
    """A column as numbers.

    Raises:
        DataError: it holds text, or cells that cannot be used.
    """
    problems: list[CellProblem] = []
    values, _names = target_columns(column.to_frame(), problems)
    if problems:
        text = f"column {quoted(column.name)} holds text, which was numbers in the run"
        told = [CellProblem(text, "Correct it.") if "target column" in p.what else p for p in problems]
        raise ColumnError(where, told)
    return values[:, 0]


def _stripped(column: pd.Series) -> pd.Series:
    """Texts without the blanks around them, which numbers and names of columns lose too."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    return column.map(lambda cell: cell.strip() if isinstance(cell, str) else cell, na_action="ignore")


def _series(table: pd.DataFrame) -> list[pd.Series]:
    return [cast(pd.Series, table.iloc[:, place]) for place in range(table.shape[1])]


def _one_hot_text(column: pd.Series, problems: list[CellProblem]) -> tuple[list[str], list[np.ndarray]] | None:
    """The values of a column of text, and one 0/1 column for each; None where something is wrong with it."""
    if (missing := missing_cells(column)) is not None:
        problems.append(missing)
        return None
    if (quantities := quantities_in(column)) is not None:
        problems.append(quantities)
        return None
    values = _stripped(column).astype(str).to_numpy(dtype=object)
    categories = sorted(set(values))
    if len(categories) > min(MOST_CATEGORIES, max(2, len(values) // 2)):
        times = Counter(values)
        are_shared = sum(times[value] > 1 for value in values) >= _SHARED * len(values)
        remedy = "If rows of one value belong together (a run, a batch, a person), name it as groups (--groups); else r"
        problems.append(
            CellProblem(
                f"text column {quoted(column.name)} has {len(categories)} different values in {len(values)} rows",
                f"{remedy if are_shared else 'R'}emove it, or replace it by numbers.",
            )
        )
        return None
    return categories, [(values == category).astype(np.float64) for category in categories]


def sortable(labels: pd.Series) -> np.ndarray:
    """Labels as values of one type, which have an order."""
    if labels.dtype.kind in "biuf" and isinstance(labels.dtype, np.dtype):
        return labels.to_numpy()
    values = labels.to_numpy(dtype=object)
    # objects of several types have no order; numbers beside text are text, as in a .csv
    return values.astype(str) if any(not isinstance(v, str) for v in values) else values
