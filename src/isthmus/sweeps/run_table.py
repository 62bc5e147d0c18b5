"""The results of a sweep as columns, one row per run; no more is imported than reading them takes.

Over the grid of a plan: `sweeping`. Where results lie: `store`. What the numbers mean: `execution.Computed`.
"""

from collections.abc import Mapping, Sequence

from isthmus.sweeps.index import Row

READINGS = ("rank_estimate", "rank_lower", "rank_upper", "rank_jacobian", "rank_hamiltonian")
SPANS = ("rank_index", "rank_mode")  # of networks with a linear half alone: others have no such number
FLOATS = ("objective", "data_loss", "penalty", "stationarity", "seconds")
COUNTS = ("gradient_evaluations", "steps", "rank", *READINGS, *SPANS, "true_rank")
NUMBERS = (*FLOATS, *COUNTS)
MOST_LINES = 10  # in one picture


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


def drawn_settings(columns: Mapping[str, Sequence[object]]) -> tuple[list[str], list[str]]:
    """The settings against which numbers can be drawn, and those whose values may get a line each.

    Those of most values first. Seeds are the last of the axes, and get no lines. Numbers alone make an axis; lines are
    for words too, but for no more of them than an eye tells apart.

    Args:
        columns: as `run_columns` gives them.
    """
    counts = {name: len(set(map(str, values))) for name, values in columns.items() if "." in name}
    ordered = sorted(counts, key=lambda name: (is_seed(name), -counts[name]))
    along = [name for name in ordered if all(map(_is_number, columns[name]))]
    return along, [name for name in ordered if not is_seed(name) and counts[name] <= MOST_LINES]


def is_seed(setting: str) -> bool:
    """Whether a setting makes another draw of the same."""
    return setting.rpartition(".")[2] == "seed"


def _is_number(value: object) -> bool:
    """Whether it stands on an axis, or nowhere: a setting that other kinds of networks lack."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


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
