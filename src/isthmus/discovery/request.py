"""A discovery whose arguments were checked: data posed, work planned, stages run, the control beside."""

import platform
import time
import warnings
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from isthmus.discovery.accuracy import accuracy_rank, planned_evaluations
from isthmus.discovery.answer_doubts import (
    against_leftovers,
    against_lost_columns,
    against_lost_targets,
    against_sets_of_rows,
    against_short_blocks,
    against_unseen,
    against_wild_rows,
    in_order,
)
from isthmus.discovery.assembly import assemble, constant_discovery
from isthmus.discovery.data.checking import CheckedData
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import digest_of
from isthmus.discovery.depth.path import DepthPath, DepthSearch, planned_depth_evaluations
from isthmus.discovery.depth.units import DepthSettings
from isthmus.discovery.findings import Findings
from isthmus.discovery.halves import RankKind
from isthmus.discovery.kinds import family_of
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.remedies import REMEDIES
from isthmus.discovery.remedies.anew import BRIEF, are_numbered
from isthmus.discovery.remedies.remedy import Case, Effort, treat
from isthmus.discovery.result import Discovery
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings, with_sides
from isthmus.discovery.work.elsewhere import opened, units_at_once
from isthmus.discovery.work.runner import Tracker, UnitRunner, check_same_run
from isthmus.discovery.work.search_memory import Foresight, announce_memory, faster
from isthmus.discovery.work.unit import Progress, ProgressListener
from isthmus.errors import DataWarning, outside
from isthmus.networks.devices import CPU
from isthmus.processes.pool import Where
from isthmus.processes.shared_state import heard, silenced
from isthmus.tasks import covariance_surrogate
from isthmus.tasks.input_columns import recorded
from isthmus.tasks.seen_ranges import recorded_range
from isthmus.training.threads import one_thread_each
from isthmus.writing.staying import made_folder

CONTROL_SEED = 5
DEPTHS = DepthSettings()


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What is to be discovered, and how.

    Attributes:
        sample: the rows that are searched first, of all that were given.
        settings: numbers of the discovery.
        folder: where work is kept and the result saved, or None.
        seconds: for everything, or None.
        progress: hears how far it is.
        control: also search Gaussian data of the same covariance.
        depth_path: also train each rank at several depths.
        workers: units of work at once, or None for one on each core.
        beside: other ranks of the same task, searched after it.
        starts: at each ridge, as many as were asked for; None: as many as each rank usually has.
        effort: how much work doubts are worth.
        rescale: whether columns of one kind may be scaled together instead.
        began: when its seconds began, by `time.monotonic`.
        executor: where units of work are computed; None: where it is faster.
        device: on which device.
    """

    sample: Sample
    settings: Settings
    folder: Path | None
    seconds: float | None
    progress: ProgressListener
    control: bool
    depth_path: bool
    workers: int | None
    beside: tuple[RankKind, ...] = ()
    starts: int | None = None
    effort: Effort = Effort.QUICK
    rescale: bool = False
    began: float = field(default_factory=time.monotonic)
    executor: Executor | Where | None = None
    device: torch.device = CPU

    def answered(self) -> Discovery:
        """The discovery; warnings of constant columns are given and kept in it."""
        with heard() as told:
            for note in self.sample.notes():
                warnings.warn(note, DataWarning, stacklevel=outside())
            problem = self.sample.posed(self.settings)
        for category, text in told:
            warnings.warn(text, category, stacklevel=outside())
        if problem is None:
            data = self.data
            found = constant_discovery(
                data.x,
                data.y,
                self.settings,
                names=(data.input_names, data.target_names),
                task=data.task,
                loss=data.loss,
            )
            return replace(found, settings={**found.settings, **self._of_inputs()})
        return self._searched(problem, tuple(text for _, text in told))

    def _searched(self, problem: Problem, told: tuple[str, ...]) -> Discovery:
        with one_thread_each():  # between units too, where many small products wait for each other on a busy machine
            found = self._answer(problem, told)
        self.progress(Progress("finished", 1.0, rank=found.rank, seconds_left=0.0))
        return found

    def _answer(self, problem: Problem, told: tuple[str, ...]) -> Discovery:
        announce_memory(problem, self.settings, workers=self.workers)
        work, workers = self.folder / "work" if self.folder else None, units_at_once(self.executor, self.workers)
        planned, network = self.planned(problem), self.settings.network
        first = foreseen(problem, self.settings)  # what comes besides has a share of its own
        tracker = Tracker(self.progress, first, self.began + self.seconds if self.seconds else None)
        executor = self.executor or faster(problem, network, gradients=planned, workers=workers, device=self.device)
        with opened(executor, workers=workers, folder=work, asked=self.executor is not None) as elsewhere:
            run = self._stamped(work, problem)
            runner = UnitRunner(work, tracker, workers=workers, run=run, elsewhere=elsewhere, device=self.device)
            return self._discovered(problem, told, runner)

    def _discovered(self, problem: Problem, told: tuple[str, ...], runner: UnitRunner) -> Discovery:
        case = self._treated(self.sample, Search(problem, self.settings, runner))
        findings, path = case.search.findings(), case.path
        accuracy = None
        if problem.classes and self.effort is not Effort.QUICK:
            accuracy = accuracy_rank(case.sample, case.search)
            if accuracy is None and runner.out_of_time():
                told = (*told, "The time limit left out the rank for accuracy; give more seconds.")
        if self.depth_path and path is None:
            path = self._depth_path(case.search.problem, findings, runner)
            if path is not None and not runner.out_of_time():
                case.search.beside(path)
                findings = replace(findings, readings=case.search.readings, decision=case.search.decision)
        if self.depth_path and runner.out_of_time():
            told = (*told, "The time limit cut the depth path short; give more seconds for straight lines.")
        found = self._assembled(findings, case.sample, told=told)
        if accuracy is not None:
            scree = found.scree.assign(accuracy.of_ranks(found.scree["rank"].values.tolist()))
            found = replace(found, scree=scree, readings={**found.readings, **accuracy.as_readings()})
        others = {kind.name: self._other(kind, runner) for kind in self.beside}
        control = self._control(runner, passes=case.passes) if self.control else None
        remedies = tuple(one.as_plain() for one in case.applied)
        return in_order(replace(found, depth_path=path, control=control, others=others, remedies=remedies))

    @property
    def data(self) -> CheckedData:
        """All rows."""
        return self.sample.everything

    def _treated(self, sample: Sample, search: Search, *, passes: float | None = None) -> Case:
        """The search after its first answer and work on its doubts, of so many first passes or by the effort."""
        search.run()
        search.read_linear_maps(sample)
        depth = DEPTHS if self.depth_path and not search.name else BRIEF
        numbered = self.rescale and are_numbered(sample.data.input_names)
        case = Case(search, sample, numbered=numbered, depth=depth)
        budget = self.effort.budget(case.first) if passes is None else int(passes * case.first.all)
        treat(case, [kind() for kind in REMEDIES], budget=budget)
        return case

    def _other(self, kind: RankKind, runner: UnitRunner) -> Discovery:
        """Another rank of the same task."""
        settings = self.settings_of(kind)
        problem = self.problem_of(settings)
        runner.tracker.begin(kind.name, foreseen(problem, settings))
        search = Search(problem, settings, runner, name=kind.name)
        case = self._treated(self.sample, search)
        found = self._assembled(case.search.findings(), case.sample, told=())
        return replace(found, remedies=tuple(one.as_plain() for one in case.applied), depth_path=case.path)

    def settings_of(self, kind: RankKind) -> Settings:
        """Those of another rank of the same task."""
        return with_sides(self.settings, kind, self.starts)

    def problem_of(self, settings: Settings) -> Problem:
        """The problem of another rank, of data that vary."""
        problem = self.sample.posed_again(settings)
        assert problem is not None
        return problem

    def planned(self, problem: Problem) -> int:
        """Gradient evaluations, as far as they are known beforehand."""
        planned = foreseen(problem, self.settings) * (1 + self.control)
        if problem.classes and self.effort is not Effort.QUICK:
            planned += planned_evaluations(Foresight.of(family_of(problem, self.settings)), self.settings)
        if self.depth_path:  # the ranks are known when the objective curve is: see `DepthSearch`
            ranks = min(3, family_of(problem, self.settings).most_rank)
            planned += planned_depth_evaluations(self.settings, problem, DEPTHS, ranks=range(1, ranks + 1))
        return planned

    def _stamped(self, work: Path | None, problem: Problem) -> str:
        """What the work in a folder, made if missing, belongs to."""
        if work is None:
            return ""
        made_folder(work)
        others = "".join(kind.name for kind in self.beside)
        asked = f"{self.settings.stamp}{self.control}{DEPTHS if self.depth_path else ''}{others}"
        return check_same_run(work, {"data": problem.fingerprint() + self._rest(), "settings": asked})

    def _rest(self) -> str:
        """What tells apart runs that search the same sample of other data, or of rows in other groups."""
        groups = self.sample.groups
        labels = "" if groups is None else digest_of(groups)
        return (self.data.fingerprint() if self.sample.num_unseen else "") + labels

    def _depth_path(self, problem: Problem, findings: Findings, runner: UnitRunner) -> DepthPath | None:
        assert isinstance(findings.family, Connected)
        runner.tracker.begin("depth", planned_depth_evaluations(self.settings, problem, DEPTHS, ranks=[1]))
        search = DepthSearch(findings.family, DEPTHS, runner)
        return search.run(findings.curve, findings.decision.rank)

    def _control(self, runner: UnitRunner, *, passes: float) -> Discovery:
        """The same search on the Gaussian surrogate of the same covariance, its doubts worked on as long."""
        with silenced():  # the same columns are constant, which was said already
            surrogate = self.sample.of_others(_surrogate(self.sample.data))
            problem = surrogate.posed(self.settings)
        assert problem is not None
        runner.tracker.begin("control", foreseen(problem, self.settings))
        case = self._treated(surrogate, Search(problem, self.settings, runner, name="control"), passes=passes)
        return self._assembled(case.search.findings(), case.sample, told=())

    def _assembled(self, findings: Findings, sample: Sample, *, told: tuple[str, ...]) -> Discovery:
        found = assemble(findings, sample.data, warnings=told, about=self._about(sample))
        if sample.everything is self.data:  # rows of a surrogate are independent
            found = against_sets_of_rows(against_short_blocks(found, sample), sample)
        if sample.groups is None:  # rows of one group may be off together
            found = against_leftovers(found, findings)
        found = against_wild_rows(against_lost_targets(found, findings), findings)
        if self.rescale:
            found = against_lost_columns(found, findings)
        return against_unseen(found, findings, sample) if sample.num_unseen else found

    def _about(self, sample: Sample) -> dict[str, object]:
        """What a run folder says of where its numbers come from."""
        from isthmus import __version__  # the package's own number; not a room

        about: dict[str, object] = {
            "held_out_rows": int(sample.held.sum()),
            "rows": len(sample.held),
            "loss": self.data.loss.name,
            "effort": self.effort.value,
            "isthmus": __version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "data": self.data.fingerprint(),
            **self._of_inputs(),
        }
        if self.data.powers is not None:
            about["powers"] = self.data.powers.as_plain()
        if self.device != CPU:
            about["device"] = self.device.type
        if sample.num_unseen:
            about["unseen_rows"] = int(sample.unseen.sum())
            about["rows_in_all"] = len(sample.taken)
        if self.sample.num_unseen:
            about["first_rows"] = len(self.sample.held)
        if self.sample.groups is not None and not self.sample.by_inputs:
            about["labels"] = digest_of(self.sample.groups)
        if self.data.num_copies:
            about["copies"] = self.data.num_copies
        return about if self.data.weight is None else about | {"weighted": True}

    def _of_inputs(self) -> dict[str, object]:
        """How they were made, and between which values they lie."""
        return {"input_columns": recorded(self.data.columns), "input_ranges": recorded_range(self.data.x)}


def foreseen(problem: Problem, settings: Settings) -> int:
    """Gradient evaluations of a first answer, as far as they are known beforehand."""
    return Foresight.of(family_of(problem, settings)).all


def _surrogate(data: CheckedData) -> CheckedData:
    same = data.y is data.x
    target = None if same else data.y if data.y.ndim == 2 else np.eye(int(data.y.max()) + 1)[data.y.astype(int)]
    drawn = covariance_surrogate(data.x, CONTROL_SEED, y=target)
    if target is None or drawn.y is None:
        x = data.loss.from_gaussian(drawn.x, data.x)
        return replace(data, x=x, y=x)
    return replace(data, x=drawn.x, y=data.loss.from_gaussian(drawn.y, target))
