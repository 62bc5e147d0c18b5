"""The page about a sweep: what was asked, how it ended, numbers against every setting, and each run in one table.

The table itself: `run_table`. Lines and points: `plots.sweeps`. The markup: `reports.gallery_page`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from isthmus import __version__, plots
from isthmus.plots.sweeps import drawn_rows, left_out
from isthmus.reports.gallery_page import Gallery, Section, write_gallery
from isthmus.reports.picture import Picture
from isthmus.reports.tables import TableText
from isthmus.reports.words import Line, VerdictText
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.run_table import MISSING, READINGS, SPANS, WARNINGS, drawn_settings, is_seed, run_columns
from isthmus.tasks.arrays import counted
from isthmus.training import Outcome

MOST_AXES = 4  # of settings that get a section
_MOST_VALUES, _MOST_LISTED = 8, 12
# what is drawn, in this order, where any run has it
_QUANTITIES = {
    "rank_estimate": "Dimensions that spectra or Jacobians show, where a cut of the network confirms them.",
    "rank": "Rank of the weights in the middle of the network, whatever the data use of it.",
    "rank_index": "Combinations of the inputs that networks use whose first half is linear.",
    "rank_mode": "Modes of the targets that networks use whose last half is linear.",
    "rank_jacobian": "Where the median singular values of the Jacobians have their largest gap.",
    "rank_hamiltonian": "What the Hamiltonian of leaky networks reads of the rank, from below; near critical points.",
    "objective": "What training makes least: data loss + ridge x penalty. Compare runs of one ridge by it.",
    "data_loss": "The error on the rows that were trained on.",
    "penalty": "The squared weights that the ridge multiplies.",
}
_COLUMNS = (
    "status", "outcome", *READINGS, "rank", *SPANS, "true_rank", "objective", "data_loss", "penalty", "stationarity",
    "gradient_evaluations", "seconds", WARNINGS, MISSING, "error", "id",
)  # fmt: skip
_WORDS = {"id", "status", "outcome", WARNINGS, MISSING, "error"}


def write_sweep_page(path: Path, rows: Sequence[Row], folder: Path) -> None:
    """Write the page.

    Args:
        path: the file to write, whole or not at all.
        rows: the runs of the index, at least one.
        folder: of the sweep, for the words.

    Raises:
        OSError: the file cannot be written.
    """
    columns = run_columns(rows)
    along, lines = drawn_settings(columns)
    sections = [
        section
        for axis in [name for name in along if not is_seed(name)][:MOST_AXES] or along[:1]
        if (section := _section(columns, axis, next((name for name in lines if name != axis), None))) is not None
    ]
    day = datetime.now(UTC).date().isoformat()
    facts = {"folder": str(folder), "page written by": f"isthmus {__version__}"}
    verdict = _verdict(rows, columns)
    write_gallery(
        path, Gallery(f"Sweep: {folder.resolve().name}, {day}", verdict, sections, facts, runs=_runs(columns))
    )


def _verdict(rows: Sequence[Row], columns: Mapping[str, Sequence[object]]) -> VerdictText:
    """How many runs over which settings; what was asked, how they ended, which ranks they read."""
    settings = [name for name in columns if "." in name]
    called = _called(columns)
    over = f" over {_and([called[name] for name in settings])}" if settings else ""
    counts = Counter(row.status for row in rows)
    ends = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    asked = rows[0].settings.get("task", {})
    lines = [Line("Task", _task({key: value for key, value in asked.items() if f"task.{key}" not in settings}))]
    lines += [Line(called[name], _values(columns[name])) for name in settings]
    lines += [Line("Ranks read", text)] if (text := _ranks(columns)) else []
    outcomes = Counter(str(name) for name in columns["outcome"] if name)
    known = Outcome.__members__
    why = {name: known[name].value.partition(": ")[2] if name in known else "" for name in outcomes}
    said = [f"{name} ({count}): {why[name]}" if why[name] else f"{name} ({count})" for name, count in outcomes.items()]
    lines += [Line("Trainings ended", ". ".join(said) + ".")] if said else []
    if warned := sum(bool(text) for text in columns[WARNINGS]):
        lines.append(Line("Warnings", f"of {counted(warned, 'run')}; the table has them"))
    return VerdictText(f"{counted(len(rows), 'run')}{over}: {ends}", tuple(lines))


def _called(columns: Mapping[str, Sequence[object]]) -> dict[str, str]:
    """What each column is called in words: by its last word, where no other has the same, else by all of its name."""
    last = {name: name.rpartition(".")[2].replace("_", " ") for name in columns}
    times = Counter(last.values())
    return {
        name: word if times[word] == 1 or "." not in name else name.replace(".", " ").replace("_", " ")
        for name, word in last.items()
    }


def _task(task: Mapping[str, object]) -> str:
    """A task in words: its name, or that it is a file; then its arguments."""
    hidden = {"name", "sha256", "suffix"}
    head = str(task.get("name", f"a {task.get('suffix', '')} file"))
    rest = [f"{key.replace('_', ' ')} {_plain(value)}" for key, value in task.items() if key not in hidden and value]
    return ", ".join([head, *rest])


def _ranks(columns: Mapping[str, Sequence[object]]) -> str:
    """How often each rank was read, and the true one where all runs have the same."""
    read = Counter(rank for rank in columns["rank_estimate"] if isinstance(rank, int))
    if not read:
        return ""
    text = ", ".join(f"{rank} in {count}" for rank, count in sorted(read.items()))
    true = {rank for rank in columns["true_rank"] if rank is not None}
    return f"{text} of {counted(read.total(), 'run')}" + (f"; the true rank is {true.pop()}" if len(true) == 1 else "")


def _section(columns: Mapping[str, Sequence[object]], axis: str, by: str | None) -> Section | None:
    """The pictures of every number against one setting; None where no run has a number."""
    called = _called(columns)
    also = f", one line for each {called[by]}" if by else ""
    table = pd.DataFrame(columns)
    pictures = [
        _picture(table, called[axis], axis, by, quantity, words.removesuffix(".") + also)
        for quantity, words in _QUANTITIES.items()
        if len(drawn_rows(table, axis=axis, quantity=quantity))
    ]
    if not pictures:
        return None
    words = (
        "Every point is a run; every line goes through the medians of the runs at one place, whatever else differs "
        "between them, and breaks where none of them has the number. Runs that diverged or collapsed are not drawn."
    )
    return Section(
        f"against-{called[axis].replace(' ', '_')}", f"Against {called[axis]}", words, "plain", "", None, pictures
    )


def _picture(table: pd.DataFrame, called: str, axis: str, by: str | None, quantity: str, words: str) -> Picture:
    def draw() -> Axes:
        return plots.sweep_lines(table, axis=axis, quantity=quantity, by=by)

    drawn = counted(len(drawn_rows(table, axis=axis, quantity=quantity)), "run")
    gone = left_out(table, axis=axis, quantity=quantity)
    shown = f"{quantity.replace('_', ' ')} of {drawn} against {called}"
    caption = f"{words}. {gone[0].upper()}{gone[1:]}." if gone else f"{words}."
    return Picture(f"{quantity}_by_{called.replace(' ', '_')}", caption, shown, draw)


def _runs(columns: Mapping[str, Sequence[object]]) -> TableText:
    """Every run: the settings that differ, what came out, and at the end its id."""
    settings = [name for name in columns if "." in name]
    names = [*settings, *(name for name in _COLUMNS if any(value not in {None, ""} for value in columns[name]))]
    called = _called(columns)
    headings = tuple(called[name] for name in names)
    rows = zip(*([_plain(value) for value in columns[name]] for name in names), strict=True)
    return TableText(headings, tuple(rows), tuple(i for i, name in enumerate(names) if name in _WORDS))


def _values(values: Sequence[object]) -> str:
    """The values of a setting, each once, in the order of the table."""
    own = list(dict.fromkeys(_plain(value) for value in values))
    more = f" and {len(own) - _MOST_LISTED} more" if len(own) > _MOST_LISTED else ""
    return ", ".join(text or "none" for text in own[:_MOST_LISTED]) + more


def _and(words: Sequence[str]) -> str:
    shown = [word.replace("_", " ") for word in words[:_MOST_VALUES]]
    more = len(words) - _MOST_VALUES
    shown += [f"{counted(more, 'setting')} more"] if more > 0 else []
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
