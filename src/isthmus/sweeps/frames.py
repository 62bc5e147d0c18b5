"""The results of a sweep for further computing: a dataset over the grid of a plan, a frame with one row per run.

The same rows without pandas: `table`. Where results lie: `store`. Pictures: `plots`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.numbers import NUMBERS
from isthmus.sweeps.runs import Run
from isthmus.sweeps.table import run_columns, scalar


def run_table(rows: Sequence[Row]) -> pd.DataFrame:
    """The columns of `table.run_columns`, one row per run."""
    return pd.DataFrame(run_columns(rows))


def grid_dataset(runs: Sequence[Run], axes: Mapping[str, Sequence[object]], rows: Sequence[Row]) -> xr.Dataset:
    """The numbers of every run over the axes of the plan.

    Args:
        runs: of the plan, in the order of the grid.
        axes: of the grid; empty for a list of settings, which gives the one dimension "run".
        rows: of the index; runs that are not among them count as waiting.

    Returns:
        One dimension per axis. Variables: the numbers (NaN where there is none), "outcome", "status" and "id".
    """
    found = {row.id: row for row in rows}
    shape = tuple(len(values) for values in axes.values()) if axes else (len(runs),)
    dims = tuple(axes) if axes else ("run",)
    table = {name: np.full(len(runs), np.nan) for name in NUMBERS}
    words = {name: np.full(len(runs), "", dtype=object) for name in ("outcome", "status", "id")}
    for i, run in enumerate(runs):
        row = found.get(run.id)
        words["id"][i], words["status"][i] = run.id, (row.status if row else Status.WAITING).value
        if row is None or row.status is not Status.DONE:
            continue
        words["outcome"][i] = str(row.numbers["outcome"])
        for name in NUMBERS:
            if (value := row.numbers.get(name)) is not None:
                table[name][i] = float(value)
    variables = {name: (dims, values.reshape(shape)) for name, values in {**table, **words}.items()}
    coordinates = {axis: [scalar(value) for value in values] for axis, values in axes.items()}
    if not axes:
        coordinates = {"run": list(range(1, len(runs) + 1))}
        for axis in dict.fromkeys(axis for run in runs for axis in run.axes):
            variables[axis] = (dims, np.array([scalar(run.axes.get(axis, "")) for run in runs], dtype=object))
    return xr.Dataset(variables, coords=coordinates)
