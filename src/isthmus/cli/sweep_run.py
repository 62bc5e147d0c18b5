"""A plan carried out from the command line: notes and progress on stderr, the end in words, an exit code."""

from dataclasses import replace
from pathlib import Path

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.interrupts import heard_again, terminate_like_interrupt, warnings_as_lines
from isthmus.cli.run_folder import check_writable
from isthmus.cli.sweep_progress import shown_sweep
from isthmus.cli.terminal import terminal
from isthmus.sweeps.driver import Summary, SweepOutcome
from isthmus.sweeps.engines import EngineChoice
from isthmus.sweeps.plan import Plan
from isthmus.sweeps.plan_check import checked_runs
from isthmus.sweeps.sitting import run_plan

_CODES = {SweepOutcome.DONE: ExitCode.DONE, SweepOutcome.INTERRUPTED: ExitCode.INTERRUPTED}


def run_in(path: Path, folder: Path, choice: EngineChoice, *, retries: int, most_runs: int | None = None) -> int:
    """Carry out the plan of a file in a folder; returns the exit code.

    Raises:
        PlanError, SweepError: see `sweeps.sweep`; nothing was started. OSError: the folder cannot be written.
    """
    errors = terminal(stderr=True)

    def say(text: str) -> None:
        errors.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    try:
        with terminate_like_interrupt() as stop_again, warnings_as_lines(say):
            plan = Plan.read(path)
            runs = checked_runs(plan if most_runs is None else replace(plan, most_runs=most_runs))
            check_writable(folder)
            with shown_sweep(errors) as listener:
                summary = run_plan(
                    runs, folder, choice, retries=retries, listener=heard_again(listener, stop_again), say=say
                )
    except KeyboardInterrupt:
        summary = Summary(SweepOutcome.INTERRUPTED)
    counts = f"{summary.computed} computed, {summary.found} found, {len(summary.failed)} failed"
    terminal().print(f"{folder}: {counts}. {summary.outcome.value}", markup=False, highlight=False, soft_wrap=True)
    return _CODES.get(summary.outcome, ExitCode.DOUBTFUL)
