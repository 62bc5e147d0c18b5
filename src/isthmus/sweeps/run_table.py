"""The results of a sweep as columns, one row per run; no more is imported than reading them takes.

Over the grid of a plan: `sweeping`. Where results lie: `store`. What the numbers mean: `execution.Computed`.
"""

from collections.abc import Sequence

from isthmus.sweeps.index import Row

READINGS = ("rank_estimate", "rank_lower", "rank_upper", "rank_jacobian", "rank_hamiltonian")
SPANS = ("rank_index", "rank_mode")  # of networks with a linear half alone: others have no such number
FLOATS = ("objective", "data_loss", "penalty", "stationarity", "seconds")
COUNTS = ("gradient_evaluations", "steps", "rank", *READINGS, *SPANS, "true_rank")
NUMBERS = (*FLOATS, *COUNTS)


def run_columns(rows: Sequence[Row]) -> dict[str, list[object]]:
    """Per run its id, status, every setting that differs between runs, the numbers, and the error's last line.

    The settings are named "section.key"; the runs are sorted by them.
    """
    varying = _varying_settings(rows)
    columns: dict[str, list[object]] = {"id": [row.id for row in rows], "status": [row.status.value for row in rows]}
    columns |= varying
    columns["outcome"] = [row.numbers.get("outcome") for row in rows]
    columns |= {name: [row.numbers.get(name) for row in rows] for name in NUMBERS}
    columns["error"] = [row.error.strip().splitlines()[-1] if row.error.strip() else "" for row in rows]
    order = sorted(range(len(rows)), key=lambda i: [_key(values[i]) for values in varying.values()])
    return {name: [values[i] for i in order] for name, values in columns.items()}


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
                found[f"{section}.{key}"] = [scalar(value) for value in values]
    return found


def scalar(value: object) -> object:
    """A list (widths, layer numbers) as text: a coordinate holds no lists."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _key(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, float(value), "")
    return (1, 0.0, str(value))
