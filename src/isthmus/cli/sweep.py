"""`isthmus sweep PLAN.toml`, and `isthmus sweep status|table|plot|report|reindex DIR`: options in, lines and codes out.

The sweep itself: `sweeps`. How progress looks: `progress_bar`. What stands in a folder: `sweep_folder`.
"""

from dataclasses import replace as changed
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from isthmus.cli.shared_options import Workers
from isthmus.cli.typed import Command
from isthmus.cli.voice import speaking, tell, voice
from isthmus.cli.workplace import CaFile, Certificate, Device, Key, certificates_of


class _PlanOrCommand(TyperGroup):
    """Takes a first word that is no subcommand for a plan: `sweep PLAN.toml` is `sweep run PLAN.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in {"-h", "--help"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_PlanOrCommand, no_args_is_help=True,
    help="Train over a grid of settings. isthmus sweep PLAN.toml is short for isthmus sweep run PLAN.toml.",
)  # fmt: skip
_EXAMPLES = {
    "run": "Example: isthmus sweep plan.toml --out runs/plan",
    "status": "Example: isthmus sweep status runs/plan",
    "table": "Example: isthmus sweep table runs/plan --out runs.csv",
    "plot": "Example: isthmus sweep plot runs/plan --axis network.depth --quantity rank",
    "report": "Example: isthmus sweep report runs/plan",
    "reindex": "Example: isthmus sweep reindex runs/plan",
}
_Folder = Annotated[Path, typer.Argument(help="The folder of a sweep.")]


_speaking = partial(speaking, group="sweep")


@app.command(epilog=_EXAMPLES["run"], cls=Command)
@_speaking
def run(
    plan: Annotated[Path, typer.Argument(help="A TOML file: task, network, training, grid.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the sweep; default runs/PLAN.")] = None,
    workers: Workers = None,
    scheduler: Annotated[str | None, typer.Option(help="Join a running dask scheduler: tls://host:8786.")] = None,
    slurm: Annotated[Path | None, typer.Option(help="A TOML file: start workers as Slurm jobs.")] = None,
    patience: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for a lost --scheduler.")] = 60.0,
    tls_ca_file: CaFile = None,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    device: Device = None,
    dashboard: Annotated[
        str | None, typer.Option(help="Where the dashboard listens, HOST:PORT; default this machine alone, any port.")
    ] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often a run that fails is tried again.")] = 1,
    most_runs: Annotated[
        int | None, typer.Option(min=1, help="Refuse a plan of more runs than this; default 100,000.")
    ] = None,
) -> int:
    """Compute every run of PLAN that is not there yet; the same command goes on after any interruption.

    Exit codes: 0 done, 2 bad input, 3 some runs failed or the scheduler was lost, 130 interrupted.
    """
    from isthmus.sweeps.engine_choice import EngineChoice  # torch and the rest: not for the help

    certificates = certificates_of(tls_ca_file, tls_cert, tls_key)
    choice = EngineChoice(workers, scheduler, slurm, patience, certificates, dashboard, device)
    return _carried_out(plan, out or Path("runs") / plan.stem, choice, retries=retries, most_runs=most_runs)


def _carried_out(path: Path, folder: Path, choice: Any, *, retries: int, most_runs: int | None) -> int:
    """Notes and progress on stderr, the end in words."""
    from isthmus.cli.interrupts import ExitCode, heard_again, terminate_like_interrupt, warnings_as_lines
    from isthmus.cli.progress_bar import shown_sweep
    from isthmus.cli.run_folder import check_writable
    from isthmus.cli.terminal import Notes, terminal
    from isthmus.sweeps.driver import Summary, SweepOutcome
    from isthmus.sweeps.plan import Plan
    from isthmus.sweeps.plan_check import checked_runs
    from isthmus.sweeps.sweeping import run_plan

    errors = terminal(stderr=True)
    say = Notes(errors)
    try:
        with terminate_like_interrupt() as stop_again, warnings_as_lines(say):
            plan = Plan.read(path)
            runs = checked_runs(plan if most_runs is None else changed(plan, most_runs=most_runs))
            check_writable(folder)
            with shown_sweep(errors) as listener:
                summary = run_plan(
                    runs, folder, choice, retries=retries, listener=heard_again(listener, stop_again), say=say
                )
    except KeyboardInterrupt:
        summary = Summary(SweepOutcome.INTERRUPTED)
    tell(folder=folder, computed=summary.computed, found=summary.found, failed=list(summary.failed))
    tell(outcome=summary.outcome.name)
    counts = f"{summary.computed} computed, {summary.found} found, {len(summary.failed)} failed"
    is_stopped = summary.outcome is SweepOutcome.INTERRUPTED and voice().as_json  # no object says it then
    terminal(stderr=is_stopped, always=is_stopped).print(f"{folder}: {counts}. {summary.outcome.value}", soft_wrap=True)
    codes = {SweepOutcome.DONE: ExitCode.DONE, SweepOutcome.INTERRUPTED: ExitCode.INTERRUPTED}
    return codes.get(summary.outcome, ExitCode.DOUBTFUL)


@app.command(epilog=_EXAMPLES["status"], cls=Command)
@_speaking
def status(folder: _Folder) -> int:
    """How many runs are done, waiting and failed, and why."""
    from isthmus.cli.sweep_folder import print_status

    return print_status(folder)


@app.command(epilog=_EXAMPLES["table"], cls=Command)
@_speaking
def table(
    folder: _Folder,
    out: Annotated[Path | None, typer.Option(help="Write all columns to this .csv or .parquet file.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an older file at --out.")] = False,
) -> int:
    """One row per run: the settings that differ, and the numbers."""
    from isthmus.cli.sweep_folder import print_table, write_table

    return print_table(folder) if out is None else write_table(folder, out, replace=replace)


@app.command(epilog=_EXAMPLES["plot"], cls=Command)
@_speaking
def plot(
    folder: _Folder,
    axis: Annotated[
        str | None, typer.Option(help="The setting along the axis; default the one of most values.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="One line for each value of this setting.")] = None,
    quantity: Annotated[
        str | None, typer.Option(help="The numbers to draw: NAME,NAME; default objective and the rank most runs have.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The picture, .png or .svg; default DIR/sweep.png.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an older file of that name.")] = False,
) -> int:
    """Draw numbers against a setting, one panel each."""
    from isthmus.cli.sweep_folder import draw
    from isthmus.tasks.names import names_in

    names = None if quantity is None else names_in(quantity)
    return draw(folder, axis, by, names, out or folder / "sweep.png", replace=replace)


@app.command(epilog=_EXAMPLES["report"], cls=Command)
@_speaking
def report(
    folder: _Folder,
    out: Annotated[Path | None, typer.Option(help="The page, .html; default DIR/report.html.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an older file of that name.")] = False,
) -> int:
    """One page about all runs: pictures against every setting, and a table to sort and to filter."""
    from isthmus.cli.sweep_folder import write_page

    return write_page(folder, out or folder / "report.html", replace=replace)


@app.command(epilog=_EXAMPLES["reindex"], cls=Command)
@_speaking
def reindex(folder: _Folder) -> int:
    """Make the index again from the folders of the runs; damaged runs are set aside."""
    from isthmus.cli.sweep_folder import reindex as again

    return again(folder)
