"""What stands in the folder of a sweep: on the terminal, as a file, as a picture; and a new index for it.

The table itself: `sweeps.run_table`; lines of the picture: `plots.sweeps`. Torch, pandas and matplotlib are imported
where they are needed, so that status and table are there before them.
"""

import difflib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.cli.output_file import checked_output
from isthmus.cli.output_tables import save_table
from isthmus.cli.terminal import Notes, terminal
from isthmus.cli.voice import tell
from isthmus.errors import DataError, SweepError
from isthmus.sweeps.folder import FAILED, SweepFolder
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.run_table import MISSING, MOST_LINES, NUMBERS, SPANS, WARNINGS, drawn_settings, run_columns
from isthmus.writing.atomic import atomic_path

if TYPE_CHECKING:
    import pandas as pd

_DRAWN = ("rank", "rank_estimate", "rank_jacobian", "rank_hamiltonian")  # one of them is drawn beside the objective
_SHOWN = ("outcome", "objective", "data_loss", "penalty", *_DRAWN, *SPANS, "seconds", "error")
_MOST_FAILURES = _MOST_SENTENCES = 10


def _say(text: str) -> None:
    terminal().print(text, soft_wrap=True)


def rows_of(folder: SweepFolder) -> list[Row]:
    """The runs of a folder.

    Raises:
        SweepError: there are none, or no index.
    """
    with closing(folder.reader()) as index:
        rows = index.rows()
    if not rows:
        raise SweepError(f"{folder.path}: holds no runs yet. Start a sweep with --out {folder.path}.")
    if any(row.status is Status.RUNNING for row in rows) and not folder.is_driven():
        # a driver that was killed cannot say that its runs no longer run
        rows = [changed(row, status=Status.WAITING) if row.status is Status.RUNNING else row for row in rows]
    return rows


def print_status(path: Path) -> int:
    """Counts, whether a driver is at work, and the failures; exit code 0."""
    folder = SweepFolder(path)
    rows, driven = rows_of(folder), folder.is_driven()
    counts = {status: sum(row.status is status for row in rows) for status in Status}
    told = ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)
    _say(f"{path}: {told}; {'a sweep is at work' if driven else 'no sweep is at work'}")
    failed = [row for row in rows if row.status is Status.FAILED]
    tell(**{status.value: count for status, count in counts.items()}, at_work=driven)
    tell(failures=[{"id": row.id, "error": row.error} for row in failed])
    for row in failed[:_MOST_FAILURES]:
        _say(f"failed {_cell(row.id)}: {_cell((row.error.strip().splitlines() or [''])[-1])}")
    if len(failed) > _MOST_FAILURES:
        _say(f"and {len(failed) - _MOST_FAILURES} more; all tracebacks are in {path / FAILED}")
    return 0


def print_table(path: Path) -> int:
    """The table as text, the columns that say something, and as notes what was said of runs; exit code 0."""
    columns = run_columns(rows_of(SweepFolder(path)))
    tell(runs=columns)
    settings = [name for name in columns if "." in name]
    said = [name for name in _SHOWN if any(value not in {None, ""} for value in columns[name])]
    _say(as_text({name: columns[name] for name in ("id", "status", *settings, *said)}))
    sentences, note = _sentences(columns), Notes()
    for sentence in sentences[:_MOST_SENTENCES]:
        note(sentence)
    if len(sentences) > _MOST_SENTENCES:
        more = len(sentences) - _MOST_SENTENCES
        note(f"and {more} more; all are in the columns {MISSING} and {WARNINGS} of isthmus sweep table --out FILE.csv")
    return 0


def _sentences(columns: dict[str, list[object]]) -> list[str]:
    """What was said of runs, warnings first, each with the runs that it was said of."""
    found: dict[tuple[str, str], list[str]] = {}
    for column, head in ((WARNINGS, "warning"), (MISSING, "no rank_estimate")):
        for run, text in zip(columns["id"], columns[column], strict=True):
            if text:
                found.setdefault((head, str(text)), []).append(str(run))
    return [f"{head} of {_cell(', '.join(runs))}: {_cell(text)}" for (head, text), runs in found.items()]


def as_text(columns: dict[str, list[object]]) -> str:
    """Columns side by side under their names, aligned to the right; floats to six digits, nothing for None."""
    texts = [_aligned([_cell(name), *map(_cell, values)]) for name, values in columns.items()]
    return "\n".join(" ".join(line) for line in zip(*texts, strict=True))


def _aligned(texts: Sequence[str]) -> list[str]:
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    # a folder of somebody else must not write to the terminal what the terminal obeys
    return "".join(letter if letter.isprintable() else "?" for letter in str(value))


def write_table(folder: Path, path: Path, *, replace: bool = False) -> int:
    """The whole table as a file; exit code 0.

    Raises:
        DataError: an extension that is neither .csv nor .parquet, or pyarrow is missing.
    """
    import pandas as pd

    checked_output(path, kinds=[".csv", ".parquet"], inputs=[folder], replace=replace)
    table = pd.DataFrame(run_columns(rows_of(SweepFolder(folder))))
    save_table(path, table)
    tell(out=path, runs=len(table))
    _say(f"{path}: {len(table)} run{'s' * (len(table) != 1)}")
    return 0


def write_page(folder: Path, path: Path, *, replace: bool = False) -> int:
    """One page about all runs; exit code 0.

    Raises:
        DataError: an extension that is no page. SweepError: no runs are there yet.
    """
    place = SweepFolder(folder)
    checked_output(path, kinds=[".html"], inputs=[folder], replace=replace)
    rows = rows_of(place)
    from isthmus.sweeps.sweep_page import write_sweep_page

    write_sweep_page(path, rows, folder)
    tell(out=path, runs=len(rows))
    _say(f"{path}: {len(rows)} run{'s' * (len(rows) != 1)}")
    return 0


def reindex(folder: Path) -> int:
    """A new index from the folders; exit code 0.

    Raises:
        SweepError: no sweep is there, or a driver is at work.
    """
    from isthmus.sweeps.store import Store

    store = Store(folder)
    with store.place.locked(), closing(store.rebuilt_index(Notes())) as index:
        statuses = list(index.statuses().values())
    done = sum(status is Status.DONE for status in statuses)
    tell(finished=done, failed=len(statuses) - done)
    _say(f"{folder}: {done} finished and {len(statuses) - done} failed runs in the index")
    return 0


def draw(
    folder: Path, axis: str | None, by: str | None, quantities: Sequence[str] | None, path: Path, *,
    replace: bool = False,
) -> int:  # fmt: skip
    """Numbers against a setting, one panel each, as a file; exit code 0.

    Raises:
        DataError: a name that is no setting or number of these runs, numbers that none of them has, or an extension
            that is no picture.
    """
    place = SweepFolder(folder)
    checked_output(path, kinds=[".png", ".svg"], inputs=[folder], replace=replace)
    if quantities is not None and not quantities:
        raise DataError(f"--quantity '': names no number. Known are {', '.join(NUMBERS)}.")
    import pandas as pd
    from matplotlib.figure import Figure

    from isthmus import plots
    from isthmus.plots.style import SIZE, own_settings
    from isthmus.plots.sweeps import left_out

    columns = run_columns(rows_of(place))
    table = pd.DataFrame(columns)
    along, lines = _axis_and_lines(columns, axis, by, folder)
    names = _drawn_numbers(table, along, quantities, folder)
    with own_settings():
        figure = Figure(figsize=(SIZE[0] * len(names), SIZE[1]), layout="constrained")
        for number, name in enumerate(names, 1):
            plots.sweep_lines(table, figure.add_subplot(1, len(names), number), axis=along, quantity=name, by=lines)
        with atomic_path(path) as temporary:
            figure.savefig(
                temporary, dpi=200, format=path.suffix.lower().removeprefix(".") or "png"
            )  # a stream has none
    tell(out=path, quantities=names, axis=along, by=lines)
    _say(f"{path}: {', '.join(names)} against {along}" + (f", by {lines}" if lines else ""))
    for name in names:
        if words := left_out(table, axis=along, quantity=name):
            _say(f"{name}: {words}")
    return 0


def _axis_and_lines(
    columns: dict[str, list[object]], axis: str | None, by: str | None, folder: Path
) -> tuple[str, str | None]:
    """Along which setting is drawn, and of which each value gets a line.

    Raises:
        DataError: no setting differs, or none can be drawn along; a name that is none of them, or both are one.
    """
    settings, (drawable, few) = [name for name in columns if "." in name], drawn_settings(columns)
    if not settings:
        raise DataError(f"{folder}: no setting differs between its runs. Sweep over one to draw it.")
    if not drawable:
        raise DataError(
            f"{folder}: its runs differ in {' and '.join(settings)} alone, of more words than an axis holds "
            f"({MOST_LINES}). Sweep over a number to draw it."
        )
    lines = _column(by, settings, "--by") if by else None
    along = _column(axis, drawable, "--axis") if axis else next((n for n in drawable if n != lines), drawable[0])
    if along == lines:
        raise DataError(f"--by {by}: that is the axis already. Give another setting, or another one with --axis.")
    return along, lines or next((name for name in few if name != along), None)


def _drawn_numbers(
    table: "pd.DataFrame", along: str, quantities: Sequence[str] | None, folder: Path
) -> list[str]:  # fmt: skip
    """The numbers to draw, each of which some run has: those asked for, or the objective and a rank.

    Raises:
        DataError: a name that is none, or of a number that no run has.
    """
    from isthmus.plots.sweeps import drawn_rows

    counts = {name: len(drawn_rows(table, axis=along, quantity=name)) for name in NUMBERS}
    if quantities is None:
        rank = max(_DRAWN, key=lambda name: counts[name])  # the first of them where several have as many
        asked = ["objective", *([rank] if counts[rank] else [])]
    else:
        asked = [_column(name, NUMBERS, "--quantity") for name in quantities]
    if empty := [name for name in asked if not counts[name]]:
        there = [name for name in NUMBERS if counts[name]]
        rest = f"There are {', '.join(there)}." if there else "Let one finish."
        raise DataError(f"{folder}: no run that can be drawn has {' or '.join(empty)} and {along} yet. {rest}")
    return asked


def _column(name: str, known: Sequence[str], option: str) -> str:
    """The column called `name`, or by its key alone where only one has it."""
    alike = [column for column in known if name == column.rpartition(".")[2]]
    if name not in known and len(alike) > 1:
        raise DataError(f"{option} {name}: is the last word of {' and of '.join(alike)}. Give the whole name.")
    for column in known:
        if name in {column, column.rpartition(".")[2]}:
            return column
    near = difflib.get_close_matches(name, [*known, *(column.rpartition(".")[2] for column in known)], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    same = "" if option == "--quantity" else ", or the same in every run"
    raise DataError(f"{option} {name}: unknown{same}.{hint} Known are {', '.join(known)}.")
