"""Cells that are missing in a table: their rows left out, or filled in, and said. Refused unless asked for: `cells`."""

import warnings
from collections import Counter
from collections.abc import Collection, Mapping
from typing import cast

import numpy as np
import pandas as pd

from isthmus.errors import DataError, DataWarning, outside
from isthmus.tasks.arrays import counted, listing
from isthmus.tasks.cells import as_number
from isthmus.tasks.columns import MOST_TOLD
from isthmus.tasks.names import quoted


def complete_rows(
    table: pd.DataFrame, apart: pd.DataFrame | None, where: str, *, targets: Collection[str] = ()
) -> np.ndarray:
    """The rows, from 0, in which no cell is missing; a DataWarning counts the others, and says what they lack most.

    Args:
        table: the columns.
        apart: targets beside them, or None.
        where: the file.
        targets: which of the columns are targets too; of these it is always said what they lack.

    Raises:
        DataError: there is none.
    """
    absent = table.isna() if apart is None else pd.concat([table, apart], axis=1).isna()
    rows = np.flatnonzero(~absent.to_numpy().any(axis=1))
    if len(rows) == len(table):
        return rows
    counts = absent.to_numpy().sum(axis=0)
    beside = [place >= table.shape[1] or name in targets for place, name in enumerate(absent.columns)]
    worst = int(counts.argmax())
    told = [worst, *(place for place in np.flatnonzero(beside & (counts > 0)).tolist() if place != worst)]
    lacks = [
        f"{'target' if beside[place] else 'column'} {quoted(absent.columns[place])} lacks {counts[place]}"
        for place in told[:MOST_TOLD]
    ]
    if not len(rows):
        raise DataError(
            f"{where}: a cell is missing in each of the {len(table)} rows; {lacks[0]}. Leave that column out."
        )
    lost = np.setdiff1d(np.arange(len(table)), rows) + 1
    warnings.warn(
        f"{where}: left out {listing(lost.tolist(), 'row')}, in which cells are missing, of {len(table)}; "
        f"{', '.join(lacks)}.",
        DataWarning,
        stacklevel=outside(),
    )
    return rows


def filled(table: pd.DataFrame, where: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """The table with the median, or the most frequent text, where a cell is missing; a DataWarning says where.

    Columns without any cell are left as they are.

    Returns:
        The table; by column what stands, or would stand, in the place of a missing cell, as text.
    """
    found, told, labels, fills = table.copy(deep=False), list[str](), list[str](), dict[str, str]()
    for place, name in enumerate(table.columns):
        column = cast(pd.Series, table.iloc[:, place])
        absent = column.isna().to_numpy()
        if absent.all():
            continue
        present = column.to_numpy(dtype=object)[~absent]
        numbers = np.array([as_number(cell) for cell in present])
        is_text = bool(np.isnan(numbers).any())
        value = Counter(present.tolist()).most_common(1)[0][0] if is_text else float(np.median(numbers))
        fills[str(name)] = str(value) if is_text else repr(value)
        if not absent.any():
            continue
        if is_text and 2 * absent.sum() > len(absent):  # as where a label stands in the first row that it holds for
            labels.append(quoted(name))
        found.isetitem(place, column.astype(object).where(~absent, value).infer_objects())
        told.append(f"{quoted(name)} ({counted(int(absent.sum()), 'cell')})")
    if labels:
        raise DataError(
            f"{where}: most cells of {listing(labels, 'text column')} are missing, and would all be filled with one "
            "text. Where a label stands once for several rows write it in each of them, or leave the column out."
        )
    if told:
        _tell(f"{where}: missing cells of {listing(told, 'column', shown=10)} were filled with the median, or with the "
              "most frequent text.")  # fmt: skip
    return found, fills


def filled_as(columns: Mapping[str, pd.Series], fills: Mapping[str, str], where: str) -> dict[str, pd.Series]:
    """Columns of other rows, missing cells filled with what stood in their place before; a DataWarning says where."""
    found, told = dict(columns), list[str]()
    for name, column in columns.items():
        absent = column.isna().to_numpy()
        if fills.get(name) and absent.any():
            found[name] = column.astype(object).where(~absent, fills[name])
            told.append(f"{quoted(name)} ({counted(int(absent.sum()), 'cell')})")
    if told:
        _tell(f"{where}: missing cells of {listing(told, 'column', shown=10)} were filled as the run's own were.")
    return found


def _tell(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=outside())
