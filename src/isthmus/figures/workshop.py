"""Where figures compute: trainings through the sweep engine, everything else kept in the same form, each once.

    runs/               a sweep (`sweeps.store`): every training of every figure, shared between them
    parts/              everything else (`parts`)

What is computed: the files of the figures. Nothing here knows any of them.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import xarray as xr
from torch import Tensor, nn

from isthmus.errors import SweepError
from isthmus.figures.part_progress import PartProgress
from isthmus.figures.parts import Part, opened
from isthmus.figures.processes import made_by, made_side_by_side
from isthmus.networks import FullyConnected
from isthmus.sweeps import Plan
from isthmus.sweeps.driver import SweepOutcome
from isthmus.sweeps.engine_choice import EngineChoice
from isthmus.sweeps.plan_check import checked_runs
from isthmus.sweeps.run_files import Result, arrays_of, read_network, read_result
from isthmus.sweeps.runs import SweepRun
from isthmus.sweeps.setup import prepared
from isthmus.sweeps.store import as_kept, run_folder
from isthmus.sweeps.sweep_progress import SweepListener
from isthmus.sweeps.sweeping import run_plan
from isthmus.sweeps.telling import telling_callback

RUNS, PARTS = "runs", "parts"


@dataclass(frozen=True, slots=True)
class FinishedTraining:
    """One finished training.

    Attributes:
        run: its settings and its place on the axes of the plan.
        result: its numbers.
        folder: where it lies.
    """

    run: SweepRun
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

    def connected(self) -> FullyConnected:
        """The trained network of a plan that has fully connected ones."""
        network = self.network()
        assert isinstance(network, FullyConnected)
        return network

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
        executor: where what is no training of a sweep is computed, whose workers see the folder; None: processes here.
    """

    def __init__(
        self,
        folder: Path,
        choice: EngineChoice,
        *,
        executor: Executor | None = None,
        listener: SweepListener = lambda _progress: None,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.folder, self.choice, self.listener, self.say = folder, choice, listener, say
        self.executor = executor

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

    def trained(self, plan: Plan) -> list[FinishedTraining]:
        """The finished runs of a plan in its order, after those that are missing were computed.

        Raises:
            As `train`.
        """
        self.train([plan])
        kept = [as_kept(self.folder / RUNS, run) for run in plan.runs()]
        folders = [(run, run_folder(self.folder / RUNS, run.id)) for run in kept]
        return [FinishedTraining(run, read_result(folder), folder) for run, folder in folders]

    def make(self, parts: Iterable[Part]) -> None:
        """Compute every part that is not there yet, all together, so that every worker has work.

        Raises:
            SweepError: a worker failed. OSError: the folder cannot be written. KeyboardInterrupt: interrupted; the same
            call goes on from what is there.
        """
        root = self.folder / PARTS
        every = {part.id: part for part in parts}
        missing = [part for part in every.values() if not part.is_there(root, self.say)]
        if not missing:
            return
        opened(root)
        workers = self.choice.processes()
        at_once = max(workers, 1)
        hears = PartProgress(missing, total=len(every), at_once=at_once, listener=self.listener)
        if self.executor is not None:
            made_by(self.executor, missing, root, hears=hears, device=self.choice.device)
            return
        if workers and len(missing) > 1:
            made_side_by_side(missing, root, workers=workers, hears=hears, device=self.choice.device)
            return
        for part in missing:
            part.compute(root, telling_callback(part.id, hears.told), self.choice.device)
            hears.finished(part.id)

    def parts(self, wanted: Sequence[Part]) -> list[xr.Dataset]:
        """What the parts computed, in their order, after those that are missing were made.

        Returns:
            The arrays of each, with where they come from in the attribute "provenance".

        Raises:
            SweepError: a worker failed, or a part is damaged. OSError: the folder cannot be written.
        """
        self.make(wanted)
        return [part.result(self.folder / PARTS) for part in wanted]
