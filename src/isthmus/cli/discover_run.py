"""A request carried out in its folder: data in, search, files and verdict out; an interrupt says how to go on.

The options: `discover`. The folder: `run_folder`. The search itself: `discovery`; its words: `reports.verdict`.
"""

import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from rich.console import Console

from isthmus.cli.data import Rows, choice_of, loss_option, read_rows
from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.finished_run import finished
from isthmus.cli.interrupts import ExitCode, terminate_like_interrupt, warnings_as_lines
from isthmus.cli.progress_bar import shown_progress
from isthmus.cli.run_folder import ROWS, FolderState, check_free, clear, state_of, tidy
from isthmus.cli.shared_options import words_of
from isthmus.cli.terminal import Notes, print_headed, print_place, terminal
from isthmus.cli.voice import tell
from isthmus.cli.workplace import Workplace
from isthmus.discovery import Discovery, discover, foresee, interpret
from isthmus.discovery.data.checking import CheckedData, checked_data, with_powers
from isthmus.discovery.data.scaling import Scaling
from isthmus.discovery.files.storage import INTERPRETATION, PAGE, write_beside
from isthmus.discovery.remedies.remedy import Effort
from isthmus.discovery.work.unit import Progress
from isthmus.errors import DataError, IsthmusError
from isthmus.tasks.columns import ColumnError
from isthmus.tasks.csv_cells import csv_text
from isthmus.theory import Verdict
from isthmus.training import Limits
from isthmus.writing.atomic import write_text
from isthmus.writing.folder_lock import only_writer

PICTURES = 2.0  # seconds that pictures and the page take, over those in which the libraries were loaded
SHOWN = 10_000  # rows in pictures
_COLORS = {
    Verdict.CONFIDENT: "green",
    Verdict.DOUBTFUL: "yellow",
    Verdict.NO_SHARP_RANK: "magenta",
    Verdict.TOO_FEW_DATA: "red",
}


class Deadline:
    """The seconds that a command was given, from its start to its last word."""

    def __init__(self, seconds: float | None, *, began: float) -> None:
        self.seconds, self.began = seconds, began
        # how busy this machine is: what it took to load the libraries, which pictures take about as long as
        self._loading = time.monotonic() - began

    def left(self) -> float | None:
        """Seconds until the end; negative beyond it."""
        return None if self.seconds is None else self.began + self.seconds - time.monotonic()

    def for_search(self, *, pictures: bool) -> float | None:
        """Seconds that a search may take, so that there is time to show what it found."""
        left = self.left()
        if left is None or self.seconds is None:
            return None
        return max(left - pictures * min(PICTURES * self._loading, self.seconds / 4), 0.1)


def run_in(
    folder: Path,
    request: DiscoverRequest,
    deadline: Deadline,
    *,
    resumed: bool = False,
    replace: bool = False,
    pictures: bool = True,
    place: Workplace = Workplace(),
) -> int:
    """Carry out `request` in `folder`, with pictures and page or without; returns the exit code.

    Raises:
        DataError: the data cannot be used, the folder holds a run that is not to be resumed or replaced, or one of
            other data or options, or another process works there.
        OSError: a file cannot be written.
    """
    errors, begun = terminal(stderr=True), resumed
    say = Notes(errors)
    typed = partial(_typed, place=place, pictures=pictures)
    try:
        with terminate_like_interrupt(), warnings_as_lines(say):
            # first: what is wrong with the request is said before what stands in the folder
            place.check_device()
            rows = rows_of(request, say)
            read = (*say.lines, *rows.summary()[1:])
            with only_writer(folder):
                check_free(folder, resumed=resumed, replace=replace)
                begun = True
                tidy(folder)
                if replace:
                    clear(folder)
                if state_of(folder) is FolderState.FINISHED:
                    found = finished(folder, rows, request, _checked(rows, request))
                    say(f"{folder}: the run there is finished; this is its result.")
                else:
                    found = _search(rows, folder, request, errors, deadline.for_search(pictures=pictures), place=place)
                if rows.files:  # which the result calls by number
                    table = pd.DataFrame({"row": range(1, len(rows.files) + 1), "file": rows.files})
                    write_text(folder / ROWS, csv_text(table))
                with suppress(BrokenPipeError, SystemExit):  # who hears no more words wants the page all the same
                    print_verdict(terminal(), found, rows.thinned(SHOWN))
                page = _page(found, rows, folder, request, deadline, say, typed, read) if pictures else None
    except KeyboardInterrupt:
        text = f"isthmus: interrupted. {how_to_go_on(typed(request), folder, begun=begun)}"
        terminal(stderr=True, always=True).print(text, soft_wrap=True)
        return ExitCode.INTERRUPTED
    except IsthmusError:
        raise
    except Exception as error:  # a full disk, no memory: see `complaints`
        if begun and state_of(folder) is FolderState.UNFINISHED:
            error.add_note(how_to_go_on(typed(request), folder))
        raise
    tell(folder=folder, report=page, **found.to_dict())
    print_place(terminal(), "Report" if page else "Result", page or folder)
    return exit_code(found.verdict)


def _page(
    found: Discovery,
    rows: Rows,
    folder: Path,
    request: DiscoverRequest,
    deadline: Deadline,
    say: Callable[[str], None],
    typed: Callable[[DiscoverRequest], str],
    read: Sequence[str],
) -> Path | None:
    """Pictures and page, of no more rows than one can see; nothing once the time is over."""
    if (deadline.left() or 0.0) < 0:
        again = f"{typed(dataclasses.replace(request, max_seconds=None))} {_in_folder('resume', folder)}"
        say(f"The time is over: pictures and page are left out, as if by --no-pictures; {again} makes them.")
        return None
    some = rows.thinned(SHOWN)
    if len(some.x) < len(rows.x):
        say(f"Pictures and meanings are of {len(some.x):,} of the {len(rows.x):,} rows.")
    command = f"{typed(request)} {_in_folder('out', folder)}"
    return write_outputs(found, folder, some.x, command, some.candidates, y=some.y, notes=read)


def rows_of(request: DiscoverRequest, say: Callable[[str], None]) -> Rows:
    """The data, read and checked, with what there is to say of them."""
    choice = choice_of(request.target, request.classes, autoencode=request.autoencode)
    try:
        rows = read_rows(
            request.data, choice, groups=request.groups, ordered=request.ordered, seed=request.seed,
            candidates=request.candidate_names, options=request.table_options,
        )  # fmt: skip
    except DataError as error:
        column = error if isinstance(error, ColumnError) else error.__cause__  # of a file of targets, or of DATA
        if not isinstance(column, ColumnError):
            raise
        ways = [] if column.is_missing else ["--leave-out NAME leaves a column out"]
        if not request.drop_missing and any(one.is_missing for one in column.problems):
            what = "such rows" if column.is_missing else "rows of missing cells"
            fills = "and --impute fills inputs"
            if request.impute:
                fills = "instead of --impute, which fills inputs alone, and no empty ones"
            ways.append(f"--drop-missing leaves {what} out, {fills}")
        raise DataError(f"{error} Or {'; '.join(ways)}." if ways else str(error)) from error
    if named := loss_option(request.loss):
        rows = dataclasses.replace(rows, loss=named.name)
    _checked(rows, request)
    if rows.note:
        say(rows.note)
    return rows


def _checked(rows: Rows, request: DiscoverRequest) -> CheckedData:
    return with_powers(
        checked_data(rows.x, rows.y, rows.loss, columns=rows.made), request.logs, rows.units or request.units
    )


def _typed(request: DiscoverRequest, *, place: Workplace, pictures: bool) -> str:
    """The command line that asks for the same, in the same place, without its folder."""
    words = [*place.words, *([] if pictures else ["--no-pictures"])]
    return " ".join([request.command, *([shlex.join(words)] if words else [])])


def _in_folder(option: str, folder: Path) -> str:
    return shlex.join(words_of({option: folder}))


def how_to_go_on(command: str, folder: Path, *, begun: bool = True) -> str:
    """What to type after an interrupt; before the run has begun, what lies in the folder is not of this one."""
    if begun and state_of(folder) in {FolderState.UNFINISHED, FolderState.FINISHED}:
        return f"The work so far is saved; go on with: {command} {_in_folder('resume', folder)}"
    return f"Nothing was saved yet; start again with: {command}"


def _search(
    rows: Rows, folder: Path, request: DiscoverRequest, errors: Console, seconds: float | None, *, place: Workplace
) -> Discovery:
    say, unsaid = Notes(errors), rows.summary()

    def told(event: Progress) -> None:
        while unsaid:  # once the work has begun: what is refused is one line, without notes above it
            say(unsaid.pop(0))
        listener(event)

    with place.opened() as (workers, executor), shown_progress(errors) as listener:
        return discover(
            rows.x, rows.y, **search_options(rows, request), limits=Limits(seconds, request.evaluations), out=folder,
            progress=told, workers=workers, executor=executor, device=place.device,
        )  # fmt: skip


def search_options(rows: Rows, request: DiscoverRequest) -> Mapping[str, Any]:
    """What was asked for, as `discover` takes it, but for limits and places."""
    return {
        "encoder": request.encoder,
        "decoder": request.decoder,
        "log": request.logs,
        "units": rows.units or request.units,
        "ranks": request.ranks,
        "network": request.network,
        "loss": rows.loss,
        "depth": request.depth,
        "ridge": request.ridges,
        "starts": request.starts,
        "groups": rows.groups,
        "ordered": rows.ordered,
        "seed": request.seed,
        "control": request.control,
        "depth_path": request.depth_path,
        "columns": rows.made,
        "rows": request.rows,
        "effort": request.effort or Effort.DEFAULT,
        "scaling": request.scaling or Scaling.AUTO,
    }


def say_beforehand(request: DiscoverRequest, place: Workplace) -> int:
    """Say what the request would take; returns the exit code.

    Raises:
        DataError: the data cannot be used, or need more memory than there is.
    """
    say = Notes()
    with warnings_as_lines(say), place.opened() as (workers, executor):
        place.check_device()
        rows = rows_of(request, say)
        limits = Limits(request.max_seconds, request.evaluations)
        found = foresee(
            rows.x,
            rows.y,
            **search_options(rows, request),
            limits=limits,
            workers=workers,
            executor=executor,
            device=place.device,
        )
    for line in rows.summary():
        say(line)
    tell(**found.to_dict())
    print_headed(terminal(), found.headline, found.lines, style="bold")
    return ExitCode.DONE


def exit_code(verdict: Verdict) -> int:
    """0 for an answer ("no sharp rank" is one), 3 for a doubtful one."""
    return ExitCode.DOUBTFUL if verdict in {Verdict.DOUBTFUL, Verdict.TOO_FEW_DATA} else ExitCode.DONE


def write_outputs(
    found: Discovery,
    folder: Path,
    x: np.ndarray,
    command: str,
    candidates: Mapping[str, np.ndarray] | None = None,
    *,
    y: ArrayLike | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """Write the pictures, what the coordinates mean, and the page of a discovery; returns the path of the page."""
    from isthmus.reports import report, write_pictures  # brings matplotlib: pictures come after the answer

    meaning = interpret(found, x, candidates=candidates) if found.rank else None
    if meaning is not None:
        write_beside(folder, INTERPRETATION, meaning)
    pictures = write_pictures(found, folder / "plots", x, meaning, y)
    page = folder / PAGE
    report(found, page, x=x, command=command, pictures=pictures, meaning=meaning, y=y, notes=notes)
    return page


def print_verdict(console: Console, found: Discovery, rows: Rows | None = None) -> None:
    """Say the rank, how sure it is and why; of rows, as the page does."""
    from isthmus.reports import verdict_of

    verdict = verdict_of(found) if rows is None else verdict_of(found, rows.x, rows.y)
    lines = ((line.label, line.text) for line in verdict.lines)
    print_headed(console, verdict.headline, lines, style=f"bold {_COLORS[found.verdict]}")
