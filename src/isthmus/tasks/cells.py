"""The cells of one column as numbers, or what is wrong with them. What a table makes of its columns: `columns`."""

import datetime
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isthmus.tasks.arrays import LARGEST, listing
from isthmus.tasks.names import quoted
from isthmus.tasks.written_numbers import MaybeThousands, is_grouped

_FILL_IN, _CORRECT = "Fill in or remove these rows.", "Correct or remove these rows."
TURN = "Turn them into numbers, or leave the column out."
_MOMENTS = (datetime.date, datetime.time, datetime.timedelta)
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
# a value of which is known where it does not lie: <10, >= 3.5, <LOD, BDL, n.d.
_AT_MOST = r"([<>\u2264\u2265]|&[lg]t;)=?\s*"
BOUND = re.compile(rf"\s*{_AT_MOST}[+\-\u2212]?\d[\d.,' ]*([eE][+-]?\d+)?\s*")
_UNDETECTED = re.compile(rf"\s*({_AT_MOST})?(LO[DQ]|[MI]?DL|RL|BDL|BQL|BLQ|BLD|n\.?\s?d\.?)\s*", re.IGNORECASE)
BOUNDED = (
    "Write a number for what lies below or above a limit, the limit itself or half of it: to remove these rows would "
    "leave out the least or the largest values, and bias what is found."
)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


@dataclass(frozen=True, slots=True)
class CellProblem:
    """What is wrong with a column.

    Attributes:
        what: a clause that names column and rows.
        remedy: a sentence.
        rows: from 0.
        is_missing: whether cells are missing there.
        is_text: whether text stands there among numbers.
    """

    what: str
    remedy: str
    rows: tuple[int, ...] = ()
    is_missing: bool = False
    is_text: bool = False


def unusable_type(column: pd.Series) -> CellProblem | None:
    """What is wrong with a column whose type is neither numbers nor text."""
    name, dtype = quoted(column.name), column.dtype
    if dtype.kind == "c":
        return CellProblem(f"column {name} holds complex numbers", "Store real and imaginary parts as two columns.")
    if dtype.kind in "mMV" or isinstance(dtype, pd.ArrowDtype):
        held = str(dtype).removesuffix("[pyarrow]")[:60]
        return CellProblem(f"column {name} holds {held}", "Turn it into numbers or remove it.")
    return None


def as_numbers(column: pd.Series) -> np.ndarray | CellProblem | None:
    """The column as float64; None when it is text; what is wrong with it else."""
    if (unusable := unusable_type(column)) is not None:
        return unusable
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # a long double beyond float64 becomes infinity, which is refused below
            numbers = column.to_numpy(dtype=np.float64)
    elif pd.api.types.is_numeric_dtype(dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        cells = column.to_numpy(dtype=object, na_value=np.nan)
        if (mixed := _mixed_types(column, cells)) is not None:
            return mixed
        numbers = np.array([as_number(cell) for cell in cells])
        absent = column.isna().to_numpy()
        is_text = np.isnan(numbers) & ~absent
        is_text &= np.array([str(cell).strip().lower() not in {"nan", "+nan", "-nan"} for cell in cells], dtype=bool)
        if is_text.any():
            return _text_among_numbers(column.name, cells, is_text, int((~absent).sum()))
    return _checked(column, numbers)


def _mixed_types(column: pd.Series, cells: np.ndarray) -> CellProblem | None:
    """What is wrong with objects that are no numbers and no text: those of a sheet know what they are."""
    present = ~column.isna().to_numpy()
    moments = [row for row in present.nonzero()[0].tolist() if isinstance(cells[row], _MOMENTS)]
    if moments:
        what = f"column {quoted(column.name)} holds dates or times in {listing([r + 1 for r in moments], 'row')}"
        return CellProblem(f"{what} ({str(cells[moments[0]])!r})", TURN, tuple(moments[:1]))
    is_boolean = np.array([isinstance(cell, bool | np.bool_) for cell in cells], dtype=bool)
    is_number = np.array([isinstance(cell, int | float | np.number) for cell in cells], dtype=bool) & ~is_boolean
    if is_boolean.any() and (is_number & present).any():
        rows = is_boolean.nonzero()[0].tolist()
        what = f"column {quoted(column.name)} holds booleans in {listing([row + 1 for row in rows], 'row')}"
        return CellProblem(f"{what}, numbers elsewhere", _CORRECT, tuple(rows[:1]))
    return None


def column_numbers(column: pd.Series) -> np.ndarray | CellProblem | None:
    """The same of a column that is known as a whole: what is written in it could be two numbers, and is refused."""
    found = as_numbers(column)
    if not isinstance(found, np.ndarray):
        return found
    if (merged := _merged(column, found)) is not None or pd.api.types.is_numeric_dtype(column.dtype):
        return merged or found
    looks, cells = MaybeThousands(), [str(cell) for cell in column.to_numpy()]
    for cell in cells:
        looks.look(cell)
    if not looks.holds:
        return found
    rows = [row for row, cell in enumerate(cells) if is_grouped(cell)]
    return CellProblem(
        f"column {quoted(column.name)} holds points before three digits in {listing([r + 1 for r in rows], 'row')} "
        f"({cells[rows[0]].strip()!r}) and whole numbers below 1000 elsewhere: thousands, or decimals",
        "Say the decimal sign (--decimal).",
        tuple(rows[:1]),
    )


def _merged(column: pd.Series, numbers: np.ndarray) -> CellProblem | None:
    """What is wrong with whole numbers that differ, and do not as float64."""
    is_whole = pd.api.types.is_integer_dtype(column.dtype) or all(
        isinstance(cell, int) for cell in column.head().tolist()
    )
    if not is_whole or not len(column) or (numbers != numbers[0]).any() or column.nunique() == 1:
        return None
    first, other = column.unique().tolist()[:2]
    return CellProblem(
        f"column {quoted(column.name)} holds whole numbers that differ by less than float64 can tell apart at "
        f"their size ({first}, {other})",
        "Subtract the first of them, or leave the column out.",
    )


def as_number(cell: object) -> float:
    """A cell as a number; NaN where it is none. Python's own rule, without its underscores between digits."""
    if isinstance(cell, str):
        try:
            return float("nan") if "_" in cell else float(cell)
        except ValueError:
            return float("nan")
    try:
        return float(cell)  # pyright: ignore[reportArgumentType] - whatever it is, it says
    except OverflowError:  # a whole number beyond the largest float64
        return float("inf")
    except (TypeError, ValueError):
        return float("nan")


def _text_among_numbers(column: object, values: np.ndarray, is_text: np.ndarray, present: int) -> CellProblem | None:
    """What is wrong with the numbers, or None where the column is text."""
    name, rows = quoted(column), is_text.nonzero()[0]
    cells = [str(cell) for cell in values[rows[:1000]]]
    for pattern, what, remedy in (
        (_THOUSANDS, "separators of thousands", "Write the numbers without them, or say the decimal sign (--decimal)."),
        (_DECIMAL_COMMA, "decimal commas", "Write decimal points, or say the decimal sign (--decimal)."),
    ):
        if all(pattern.fullmatch(cell) for cell in cells):
            listed = listing((rows + 1).tolist(), "row")
            return CellProblem(
                f"column {name} holds {what} in {listed} ({cells[0]!r})", remedy, tuple(rows[:1].tolist())
            )
    if 2 * len(rows) >= present:
        return None
    listed = listing((rows + 1).tolist(), "row")
    bounds = [cell for cell in cells if BOUND.fullmatch(cell) or _UNDETECTED.fullmatch(cell)]
    what = f"column {name} holds text in {listed} ({(bounds or cells)[0][:40]!r}), numbers elsewhere"
    remedy = BOUNDED if bounds else _CORRECT
    if 0 < len(bounds) < len(cells):
        remedy = f"{BOUNDED} Correct the others ({next(c for c in cells if c not in bounds)[:40]!r})."
    if all(cell.lstrip().startswith(("#", "%")) for cell in cells):
        remedy = f"{_CORRECT.rstrip('.')}, or say the sign of comments (--comment)."
    return CellProblem(what, remedy, tuple(rows[:5].tolist()), is_text=True)


def _checked(column: pd.Series, numbers: np.ndarray) -> np.ndarray | CellProblem:
    """The numbers, or what is wrong with some of them."""
    with np.errstate(invalid="ignore"):
        usable = np.abs(numbers) <= LARGEST
    if usable.all():
        return numbers
    rows = (~usable).nonzero()[0]
    value, name, listed = numbers[rows[0]], quoted(column.name), listing((rows + 1).tolist(), "row")
    first = tuple(rows[:5].tolist())
    if np.isfinite(value):
        what = f"column {name} holds {value:.3g} in {listed}; numbers above {LARGEST:g} overflow"
        return CellProblem(what, "Rescale or remove them.", first)
    if np.isnan(value):
        return CellProblem(f"column {name} holds a missing value or NaN in {listed}", _FILL_IN, first, is_missing=True)
    return CellProblem(f"column {name} holds infinity in {listed}", _FILL_IN, first)


def missing_cells(column: pd.Series) -> CellProblem | None:
    """What is wrong with a column of text in which cells are missing."""
    rows = column.isna().to_numpy().nonzero()[0]
    if not len(rows):
        return None
    listed = listing((rows + 1).tolist(), "row")
    what = f"column {quoted(column.name)} holds a missing value or NaN in {listed}"
    return CellProblem(what, _FILL_IN, tuple(rows[:5].tolist()), is_missing=True)
