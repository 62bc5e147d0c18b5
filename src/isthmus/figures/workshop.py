"""Where figures compute: trainings through the sweep engine, everything else kept in the same form, each once.

    runs/               a sweep (`sweeps.store`): every training of every figure, shared between them
    parts/runs/ab/..    what is no single training, in folders as those of a sweep (`sweeps.run_files`)
    parts/work/         checkpoints of unfinished parts

What is computed: the files of the figures. Nothing here knows any of them.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import xarray as xr
from torch import Tensor, nn

from isthmus.discovery.work import one_thread_each
from isthmus.errors import SweepError
from isthmus.figures.provenance import provenance
from isthmus.sweeps import Plan
from isthmus.sweeps.driver import SweepOutcome
from isthmus.sweeps.engines import EngineChoice
from isthmus.sweeps.execution import Computed
from isthmus.sweeps.plan_check import checked_runs
from isthmus.sweeps.progress import SweepListener
from isthmus.sweeps.run_files import Result, arrays_of, read_network, read_result, write_run
from isthmus.sweeps.runs import Run, run_id
from isthmus.sweeps.setup import prepared
from isthmus.sweeps.store import WORK, checkpoint_path, run_folder
from isthmus.sweeps.sweep import run_plan
from isthmus.training.atomic import remove_leftovers

RUNS, PARTS = "runs", "parts"
Settings = Mapping[str, object]
Make = Callable[[Path], xr.Dataset]


@dataclass(frozen=True, slots=True)
class Trained:
    """One finished training.

    Attributes:
        run: its settings and its place on the axes of the plan.
        result: its numbers.
        folder: where it lies.
    """

    run: Run
    result: Result
    folder: Path

    def axis(self, name: str) -> float:
        """The value on an axis that holds numbers."""
        return float(str(self.run.axes[name]))

    def number(self, name: str) -> float:
        """One of the numbers of the run; NaN where it has none."""
        value = self.result.numbers[name]
        return float("nan") if value is None else float(value)

    def table(self) -> xr.Dataset:
        """Its table by layer and its history."""
        return arrays_of(self.folder)

    def network(self) -> nn.Module:
        """The trained network."""
        return read_network(self.folder, source=self.run.source)

    def data(self) -> tuple[Tensor, Tensor]:
        """The inputs and targets that it was trained on, scaled as they were."""
        start = prepared(self.run.settings, self.run.source)
        return start.x, start.y


class Workshop:
    """A folder in which figures compute; whatever is finished in it is never computed again.

    Args:
        folder: made if missing.
        choice: where trainings run.
        listener: hears how far they are.
        say: hears notes, one line each.
    """

    def __init__(
        self,
        folder: Path,
        choice: EngineChoice,
        *,
        listener: SweepListener = lambda _progress: None,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.folder, self.choice, self.listener, self.say = folder, choice, listener, say

    def train(self, plans: Iterable[Plan]) -> None:
        """Carry out every run of the plans that is not there yet, all together, so that every worker has work.

        Raises:
            PlanError: a plan cannot be carried out. SweepError: a run failed, or the folder is in use.
            KeyboardInterrupt: interrupted; the state was saved.
        """
        runs = {run.id: run for plan in plans for run in checked_runs(plan)}
        if not runs:
            return
        summary = run_plan(
            tuple(runs.values()), self.folder / RUNS, self.choice, listener=self.listener, say=self.say
        )  # fmt: skip
        if summary.outcome is SweepOutcome.INTERRUPTED:
            raise KeyboardInterrupt
        if summary.outcome is not SweepOutcome.DONE:
            raise SweepError(f"{self.folder / RUNS}: {summary.outcome.value}.")

    def trained(self, plan: Plan) -> list[Trained]:
        """The finished runs of a plan in its order, after those that are missing were computed.

        Raises:
            As `train`.
        """
        self.train([plan])
        folders = [(run, run_folder(self.folder / RUNS, run.id)) for run in plan.runs()]
        return [Trained(run, read_result(folder), folder) for run, folder in folders]

    def part(self, name: str, settings: Settings, make: Make) -> xr.Dataset:
        """What `make` computes, from the folder if it was computed before with the same settings.

        Args:
            name: of the computation, with its revision if it changed its meaning.
            settings: everything that its result depends on, in terms of JSON.
            make: computes it; given a path for the checkpoint of a training inside.

        Returns:
            The arrays, with where they come from in the attribute "provenance".

        Raises:
            OSError: the folder cannot be written.
        """
        sections = {"part": {"name": name}, "settings": settings}
        root = self.folder / PARTS
        identity = run_id(sections)
        folder = run_folder(root, identity)
        try:
            return arrays_of(folder)
        except SweepError:
            if folder.exists():
                raise
        for place in (root / WORK, folder.parent):
            place.mkdir(parents=True, exist_ok=True)
            remove_leftovers(place)
        began = time.perf_counter()
        with one_thread_each():  # the same bits whoever computes
            arrays = make(checkpoint_path(root, identity))
        seconds = time.perf_counter() - began
        arrays = arrays.assign_attrs(provenance=provenance(seconds))
        write_run(folder, sections, Computed({"seconds": seconds}, [], arrays, {}))
        checkpoint_path(root, identity).unlink(missing_ok=True)
        return arrays_of(folder)
