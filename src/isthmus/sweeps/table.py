"""The results of a sweep as tables: a dataset over the grid of a plan, or one row per run of a folder.

Where results lie: `store`. Pictures: `plots`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.readings import NAMES
from isthmus.sweeps.runs import Run

FLOATS = ("objective", "data_loss", "penalty", "stationarity", "seconds")
COUNTS = ("gradient_evaluations", "steps", "rank", *NAMES, "true_rank")
NUMBERS = (*FLOATS, *COUNTS)


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
    coordinates = {axis: [_scalar(value) for value in values] for axis, values in axes.items()}
    if not axes:
        coordinates = {"run": list(range(1, len(runs) + 1))}
        for axis in dict.fromkeys(axis for run in runs for axis in run.axes):
            variables[axis] = (dims, np.array([_scalar(run.axes.get(axis, "")) for run in runs], dtype=object))
    return xr.Dataset(variables, coords=coordinates)


def run_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One row per run: id, status, every setting that differs between runs, the numbers, and the error's last line.

    The settings are named "section.key"; rows are sorted by them.
    """
    varying = _varying_settings(rows)
    columns: dict[str, list[object]] = {"id": [row.id for row in rows], "status": [row.status.value for row in rows]}
    columns |= varying
    columns["outcome"] = [row.numbers.get("outcome") for row in rows]
    columns |= {name: [row.numbers.get(name) for row in rows] for name in NUMBERS}
    columns["error"] = [row.error.strip().splitlines()[-1] if row.error.strip() else "" for row in rows]
    frame = pd.DataFrame(columns)
    order = sorted(range(len(rows)), key=lambda i: [_key(columns[name][i]) for name in varying])
    return frame.iloc[order].reset_index(drop=True)


def _varying_settings(rows: Sequence[Row]) -> dict[str, list[object]]:
    """The settings that differ between rows, called "section.key", with their value in each row."""
    found: dict[str, list[object]] = {}
    for section in dict.fromkeys(name for row in rows for name in row.settings):
        first, *_ = tables = [row.settings.get(section, {}) for row in rows]
        if all(table == first for table in tables):
            continue
        for key in dict.fromkeys(key for table in tables for key in table):
            values = [table.get(key) for table in tables]
            if any(value != values[0] for value in values):
                found[f"{section}.{key}"] = [_scalar(value) for value in values]
    return found


def _scalar(value: object) -> object:
    """A list (widths, layer numbers) as text: a coordinate holds no lists."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _key(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, float(value), "")
    return (1, 0.0, str(value))
