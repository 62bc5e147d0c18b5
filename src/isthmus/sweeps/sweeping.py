"""`sweep`: a plan carried out in a folder, and its numbers over the grid.

The parts: `plan` and `plan_check`, `store`, `engine` and `cluster`, `driver`. One row per run: `run_table`.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from isthmus.errors import PlanError, SweepError
from isthmus.networks.arguments import whole_argument
from isthmus.sweeps.driver import Driver, Summary, SweepOutcome
from isthmus.sweeps.engine_choice import EngineChoice, opened_engine
from isthmus.sweeps.fields import path_of, shown
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.plan import Plan
from isthmus.sweeps.plan_check import checked_runs
from isthmus.sweeps.run_table import MISSING, NUMBERS, WARNINGS, alike, are_numbers, believed
from isthmus.sweeps.runs import SweepRun
from isthmus.sweeps.store import Store, as_kept
from isthmus.sweeps.sweep_progress import SweepListener

RETRIES = 1
_WORDS = ("outcome", MISSING, WARNINGS)


def sweep(
    plan: Plan | Mapping[str, Any] | str | Path,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    slurm: str | Path | None = None,
    retries: int = RETRIES,
    progress: SweepListener | None = None,
    device: str | None = None,
) -> xr.Dataset:
    """Train a network at every point of a grid, each once, and return the numbers over the grid.

    Finished runs are kept in `out` under ids that depend on their settings alone: the same call computes nothing
    again, a grid with more values only the new ones, and a call after a kill goes on from the checkpoints. Every number
    but `seconds` is the same, bit for bit, whatever the interruptions and whoever computes.

    Args:
        plan: a `Plan`, a TOML file with one, or a dict with what stands in such a file.
        out: the folder of the sweep; a temporary one, removed at the end, unless given.
        workers: processes on this machine, one thread each; one per core unless given, 0 for this process itself. More
            than 0 needs the extra `cluster`, and in a script the guard `if __name__ == "__main__"`.
        scheduler: address of a running dask scheduler, as tls://host:8786, instead of workers of its own; certificates
            come from dask's configuration. Workers of its own get certificates that are made for the sweep.
        slurm: a TOML file that says how to start workers as Slurm jobs.
        retries: how often a run that raised is tried again.
        progress: hears how far the sweep is.
        device: where each worker trains: "cpu", which None means, "cuda", "cuda:1", or "auto" for a GPU where there is
            one. Rounding differs between devices.

    Returns:
        One dimension per axis of the grid ("run" for a list of settings, which are variables then, each with what its
        runs used); objective, data_loss, penalty, stationarity, rank and the other readings, gradient_evaluations,
        steps, seconds, outcome, rank_missing, warnings, status, id. NaN and "" where a run has none; no rank where it
        diverged or collapsed.

    Raises:
        PlanError: the plan cannot be carried out; nothing was started.
        SweepError: the folder is in use or cannot be written, the scheduler cannot be reached or was lost, or workers
            have other versions.
        KeyboardInterrupt: interrupted; the state was saved.

    >>> task = {"name": "teacher", "rank": 1, "d_in": 5, "d_out": 3, "latent_dim": 2, "num_samples": 30}
    >>> network = {"kind": "fully_connected", "width": 4, "depth": 2}
    >>> training = {"loss": "squared", "dtype": "float64"}
    >>> plan = isthmus.Plan(task=task, network=network, training=training, grid={"ridge": [0.1], "seed": [0]})
    >>> isthmus.sweep(plan, out=tempfile.mkdtemp(), workers=0)["objective"].size
    1
    """
    given = Plan.of(plan) if isinstance(plan, Mapping) else plan
    kinds = "a Plan, a dict with its sections, or the path of a TOML file"
    read = given if isinstance(given, Plan) else Plan.read(path_of(given, "sweep(plan)", needs=kinds))
    if whole_argument(retries, "sweep(retries=...)") < 0:
        raise PlanError(f"sweep(retries={retries}): needs retries >= 0.")
    if progress is not None and not callable(progress):
        raise PlanError(f"sweep(progress={shown(progress)}): needs a function that hears how far the sweep is.")
    place = None if out is None else path_of(out, "sweep(out=...)", needs="the path of a folder")
    how = None if slurm is None else path_of(slurm, "sweep(slurm=...)", needs="the path of a TOML file")
    choice = EngineChoice(workers, scheduler, how, device=device)
    runs = checked_runs(read)
    with tempfile.TemporaryDirectory(prefix="isthmus-sweep-") as temporary:
        folder = place or Path(temporary)
        summary = run_plan(runs, folder, choice, retries=retries, listener=progress or (lambda _progress: None))
        if summary.outcome is SweepOutcome.INTERRUPTED:
            raise KeyboardInterrupt
        if summary.outcome is SweepOutcome.WORKERS_LOST:
            raise SweepError(f"{folder}: {summary.outcome.value}.")
        with closing(SweepFolder(folder).reader()) as index:
            return grid_dataset([as_kept(folder, run) for run in runs], read.axes(), index.rows())


def run_plan(
    runs: tuple[SweepRun, ...],
    folder: Path,
    choice: EngineChoice,
    *,
    retries: int = RETRIES,
    listener: SweepListener,
    say: Callable[[str], None] = lambda _text: None,
) -> Summary:
    """Carry out checked runs in a folder; see `sweep`.

    Args:
        runs: as `plan_check.checked_runs` gives them.
        folder: of the sweep, made if missing.
        choice: where to run.
        retries: see `sweep`.
        listener: hears how far it is.
        say: hears notes, one line each.

    Returns:
        How it ended; an interrupt is an outcome.

    Raises:
        SweepError: see `sweep`. OSError: the folder cannot be written.
    """
    store = Store.make(folder)
    with store.place.locked():
        store.tidy()
        runs = tuple(as_kept(folder, run) for run in runs)
        with closing(store.opened_index(say)) as index:
            driver = Driver(runs, store, index, retries=retries, listener=listener, say=say, device=choice.device)
            waiting = driver.reconcile()
            if not waiting:  # no workers for no work: starting them takes seconds
                return driver.summary
            with closing(opened_engine(choice, runs, folder, say)) as engine:
                return driver.run(engine, waiting)


def grid_dataset(runs: Sequence[SweepRun], axes: Mapping[str, Sequence[object]], rows: Sequence[Row]) -> xr.Dataset:
    """The numbers of every run over the axes of the plan.

    Args:
        runs: of the plan, in the order of the grid.
        axes: of the grid; empty for a list of settings, which gives the one dimension "run".
        rows: of the index; runs that are not among them count as waiting.

    Returns:
        One dimension per axis. Variables: the numbers (NaN where there is none), "outcome", "rank_missing", "warnings"
        ("" where there is none), "status" and "id".
    """
    found = {row.id: row for row in rows}
    shape = tuple(len(values) for values in axes.values()) if axes else (len(runs),)
    dims = tuple(axes) if axes else ("run",)
    table = {name: np.full(len(runs), np.nan) for name in NUMBERS}
    words = {name: np.full(len(runs), "", dtype=object) for name in (*_WORDS, "status", "id")}
    for i, run in enumerate(runs):
        row = found.get(run.id)
        words["id"][i], words["status"][i] = run.id, (row.status if row else Status.WAITING).value
        if row is None or row.status is not Status.DONE:
            continue
        numbers = believed(row.numbers)
        for name in _WORDS:
            words[name][i] = str(numbers.get(name) or "")
        for name in NUMBERS:
            if (value := numbers.get(name)) is not None:
                table[name][i] = float(value)
    variables = {name: (dims, values.reshape(shape)) for name, values in {**table, **words}.items()}
    coordinates: dict[str, object] = {axis: _as_array(values) for axis, values in axes.items()}
    if not axes:
        coordinates = {"run": list(range(1, len(runs) + 1))}
        for axis in dict.fromkeys(axis for run in runs for axis in run.axes):
            variables[axis] = (dims, _as_array([_used(run, axis) for run in runs]))
    return xr.Dataset(variables, coords=coordinates)


def _used(run: SweepRun, axis: str) -> object:
    """What a run used of a setting, also where it stands in the plan for all runs or is a default; None without it."""
    section, dot, key = axis.rpartition(".")
    for settings in (run.settings[section],) if dot else (run.settings["training"], run.settings["network"]):
        if key in settings:
            return settings[key]
    return run.axes.get(axis)  # the file of a task, of which the settings have a checksum


def _as_array(values: Sequence[object]) -> np.ndarray:
    """Values of a setting as an array of one type that files of tables hold: NaN or "" where a run has none."""
    column = alike(values)
    if are_numbers(column):
        has_none = None in column
        return np.array([np.nan if value is None else value for value in column], dtype=float if has_none else None)
    if all(isinstance(value, bool) for value in column):
        return np.array(column)
    return np.array(["" if value is None else str(value) for value in column], dtype=object)
