"""The results of a sweep as columns, one row per run; no more is imported than reading them takes.

Over the grid of a plan: `sweeping`. Where results lie: `store`. What the numbers mean: `execution.Computed`.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from isthmus.sweeps.index import Row

READINGS = ("rank_estimate", "rank_lower", "rank_upper", "rank_jacobian", "rank_hamiltonian")
SPANS = ("rank_index", "rank_mode")  # of networks with a linear half alone: others have no such number
RANKS = ("rank", *READINGS, *SPANS)  # what is read of a trained network
FLOATS = ("objective", "data_loss", "penalty", "stationarity", "seconds")
COUNTS = ("gradient_evaluations", "steps", *RANKS, "true_rank")
NUMBERS = (*FLOATS, *COUNTS)
MISSING, WARNINGS = "rank_missing", "warnings"  # sentences of a run
MOST_LINES = 10  # in one picture
KIND = "network.kind"
# outcomes that leave no map whose rank could be read, and why; runs of earlier versions have ranks there
LOST: Mapping[str, str] = MappingProxyType(
    {
        "COLLAPSED": "the training collapsed: the network computes a constant, and what its spectra show is rounding",
        "DIVERGED": "the training diverged: there is no map whose rank could be read",
    }
)


def believed(numbers: Mapping[str, Any]) -> Mapping[str, Any]:
    """The numbers of a finished run without the ranks that its outcome takes away, and why they are gone."""
    why = LOST.get(str(numbers.get("outcome")))
    return numbers if why is None else {**numbers, **dict.fromkeys(RANKS), MISSING: why}


def run_columns(rows: Sequence[Row]) -> dict[str, list[object]]:
    """Per run its id, status, every setting that differs between runs, the numbers, what was said, and its error.

    The settings are named "section.key"; the runs are sorted by them. Every column is of one type (`alike`). Of the
    error it is the last line.
    """
    varying, found = _varying_settings(rows), [believed(row.numbers) for row in rows]
    columns: dict[str, list[object]] = {"id": [row.id for row in rows], "status": [row.status.value for row in rows]}
    columns |= {name: alike(values) for name, values in varying.items()}
    columns |= {name: [numbers.get(name) for numbers in found] for name in ("outcome", *NUMBERS, MISSING, WARNINGS)}
    columns["error"] = [row.error.strip().splitlines()[-1] if row.error.strip() else "" for row in rows]
    order = sorted(range(len(rows)), key=lambda i: [_key(values[i]) for values in varying.values()])
    return {name: [values[i] for i in order] for name, values in columns.items()}


def drawn_settings(columns: Mapping[str, Sequence[object]]) -> tuple[list[str], list[str]]:
    """The settings that make an axis, and those whose values may get a line each.

    First those that every run has, numbers before words, those of most values first. Seeds are the last of the axes,
    and get no lines. Of words there may be no more than an eye tells apart; the kind of network is the first of lines.

    Args:
        columns: as `run_columns` gives them.
    """
    counts = {name: len(set(map(str, values))) for name, values in columns.items() if "." in name}
    ordered = sorted(counts, key=lambda name: (is_seed(name), -counts[name]))
    few = [name for name in ordered if counts[name] <= MOST_LINES]
    along = [name for name in ordered if name in few or are_numbers(columns[name])]
    along.sort(key=lambda name: (is_seed(name), None in columns[name], not are_numbers(columns[name])))
    return along, sorted((name for name in few if not is_seed(name)), key=lambda name: name != KIND)


def is_seed(setting: str) -> bool:
    """Whether a setting makes another draw of the same."""
    return setting.rpartition(".")[2] == "seed"


def are_numbers(values: Sequence[object]) -> bool:
    """Whether they stand on an axis of numbers, or nowhere: a setting that other kinds of networks lack."""
    return {_type(value) for value in values if value is not None} <= {float}


def alike(values: Sequence[object]) -> list[object]:
    """Values of a setting as a column of one type, numbers or yes and no; else all as text. None where one has none."""
    plain = [scalar(value) for value in values]
    if len({_type(value) for value in plain if value is not None}) <= 1:
        return plain
    return [None if value is None else str(value) for value in plain]


def scalar(value: object) -> object:
    """A list (widths, layer numbers) as text, "[]" where nothing is in it: a coordinate holds no lists."""
    return (" ".join(map(str, value)) or "[]") if isinstance(value, list | tuple) else value


def _type(value: object) -> type:
    return bool if isinstance(value, bool) else float if isinstance(value, int | float) else str


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


def _key(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (0, float(value), "")
    return (1, 0.0, str(value))
