"""What a discovery would take, before it is begun: gradients planned, memory, seconds from a few gradients timed here.

How many gradients a search plans: `kinds.family.Foresight`. Memory: `work.search_memory`. How well it was foretold:
`docs/performance.md`.
"""

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from isthmus.discovery.asked import Asked
from isthmus.discovery.kinds import family_of
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.request import Request, foreseen
from isthmus.discovery.settings import StartKind
from isthmus.discovery.work.elsewhere import units_at_once
from isthmus.discovery.work.search_memory import Foresight, announce_memory
from isthmus.discovery.work.unit import Session
from isthmus.networks.devices import CPU, made_on_cpu, with_gradients
from isthmus.tasks.arrays import counted
from isthmus.tasks.memory import in_words
from isthmus.training import FitEvent
from isthmus.training.solvers.solver import LBFGS, Solver
from isthmus.training.threads import one_thread_each

TAKEN_OF_MANY = 0.4  # of regressions with curved halves at several ridges: .24 to .44 of four such teachers
TAKEN = 0.8  # of the gradients planned: trainings end early, ranks merge; .69 to .86 of teachers of 200 to 1,000 rows
TIMED = 0.4  # seconds of each solver, at most
GRADIENTS = 100  # of each
READINGS = 30  # times as long as the ranks of one training take to be read, the answer takes to be put together


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a discovery would take on this machine, as busy as it is now.

    Attributes:
        rows: that are searched, those held out among them.
        rows_in_all: that were given.
        inputs, outputs: columns that vary.
        workers: trainings side by side.
        shapes: of the weight matrices of the first networks.
        evaluations: gradients that a first answer plans.
        evaluations_of_doubts: gradients that doubts may add at most.
        memory: bytes beyond the data and libraries (*estimate*).
        seconds: of the first answer (*estimate*; measured within a factor of two, but not of depth paths: up to three).
        seconds_of_doubts: that doubts may add at most.
        seconds_of_gradient: one, in a training alone.
    """

    rows: int
    rows_in_all: int
    inputs: int
    outputs: int
    workers: int
    shapes: tuple[tuple[int, int], ...] = ()
    evaluations: int = 0
    evaluations_of_doubts: int = 0
    memory: int = 0
    seconds: float = 0.0
    seconds_of_doubts: float = 0.0
    seconds_of_gradient: float = 0.0

    @property
    def headline(self) -> str:
        """It in one line."""
        doubts = f", with doubts up to {_duration(self.seconds + self.seconds_of_doubts)}"
        more = doubts if self.seconds_of_doubts else ""
        return (
            f"About {_duration(self.seconds)}{more}; about {in_words(self.memory)} of memory beyond data and libraries."
        )

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Labels, and what is said of each."""
        sample = f" of {self.rows_in_all:,}; the others check the answer" if self.rows < self.rows_in_all else ""
        matrices = "matrix" if len(self.shapes) == 1 else "matrices"
        doubts = f", and at most {self.evaluations_of_doubts:,} for doubts" if self.evaluations_of_doubts else ""
        return [
            ("rows", f"{self.rows:,}{sample}"),
            ("columns", f"{counted(self.inputs, 'input')} and {counted(self.outputs, 'output')}"),
            ("networks", f"{len(self.shapes)} weight {matrices}: {_sizes(self.shapes)}" if self.shapes else "none"),
            ("gradients", f"{self.evaluations:,} planned{doubts}; {1000 * self.seconds_of_gradient:.3g} ms each"),
            ("workers", f"{self.workers}, as far as trainings do not wait for each other"),
        ]

    def summary(self) -> str:
        """What it would take, in sentences."""
        return "\n".join([self.headline, *(f"{label}: {text}" for label, text in self.lines)])

    def to_dict(self) -> dict[str, object]:
        """Numbers by name."""
        return dataclasses.asdict(self)


@made_on_cpu
@with_gradients
def foresee(x: object, y: object = None, **options: Any) -> Forecast:  # noqa: ANN401 - those of `discover`
    """What `discover` would take with the same arguments: gradients, memory and seconds, from one second of trials.

        print(isthmus.foresee(x, y, effort="quick").summary())

    A few gradients of the very networks are timed on the very rows, and taken as often as the search plans them (about
    four fifths, of regressions at several ridges two fifths, as measured). Networks that must be widened, or more
    ridges than the middle ones, are not foretold. Nothing is written.

    Args:
        x: inputs, as `discover` takes them.
        y: targets, as `discover` takes them.
        options: any others of `discover`; `progress` hears nothing.

    Returns:
        The forecast, on this machine as busy as it is now. Constant targets take nothing.

    Raises:
        DataError: data that cannot be used, or that need more memory than there is.
        TypeError: an unknown option. ValueError: one that `discover` refuses.

    >>> isthmus.foresee(x, y, ridge=1e-2, starts=1).seconds > 0
    True
    """
    if unknown := sorted(options.keys() - {field.name for field in dataclasses.fields(Asked)}):
        raise TypeError(f"foresee({unknown[0][:60]}=...): no option of this name. It takes those of discover.")
    return forecast(Asked(**options).request(x, y))


def forecast(request: Request) -> Forecast:
    """The same of arguments that were checked."""
    problem = request.sample.posed(request.settings)
    workers = units_at_once(request.executor, request.workers)
    rows, in_all = len(request.sample.held), len(request.sample.taken)
    if problem is None:
        data = request.data
        return Forecast(rows, in_all, inputs=data.x.shape[1], outputs=data.y.shape[-1], workers=workers)
    memory = announce_memory(problem, request.settings, workers=request.workers)
    family = family_of(problem, request.settings)
    foresight = Foresight.of(family)
    with one_thread_each():
        pace, reading = timed(family, request.device)
    first = request.planned(problem) + _of_others(request)
    doubts = request.effort.budget(foresight) * (1 + request.control + len(request.beside))
    faster, trainings = _times_faster(foresight, workers), sum(count for count, _ in foresight.batches)
    between = (READINGS + trainings / faster) * reading * first / foresight.all
    spared = family.known_well and len(request.settings.ridges) > 1
    seconds = (TAKEN_OF_MANY if spared else TAKEN) * first * pace / faster + between
    seconds_of_doubts = doubts * pace / faster
    if request.seconds is not None:
        seconds = min(seconds, request.seconds)
        seconds_of_doubts = min(seconds_of_doubts, request.seconds - seconds)
    return Forecast(
        rows, in_all, inputs=problem.d_in, outputs=problem.d_out, workers=workers, shapes=_shapes(family.new(seed=0)),
        evaluations=first, evaluations_of_doubts=doubts, seconds=seconds, seconds_of_doubts=seconds_of_doubts,
        memory=memory, seconds_of_gradient=pace,
    )  # fmt: skip


def timed(family: Family[Any], device: torch.device = CPU) -> tuple[float, float]:
    """Seconds of a gradient in the training of a random start, half with each solver, and of reading off its ranks."""
    network, ridge = family.new(seed=0), family.settings.ridges[len(family.settings.ridges) // 2]
    solvers: tuple[Solver, ...] = (family.warm_up(StartKind.RANDOM), LBFGS(family.settings.lbfgs_evaluations))
    # how products are computed is measured in the first
    end = family.trained(network, ridge, solvers[0], Session(lambda event: event.evaluations > 1, device=device))
    gradient = sum(_timed(family, network, ridge, solver, device) for solver in solvers) / len(solvers)
    reading = math.inf
    for _ in range(2):  # the lesser one: it counts dozens of times, and a busy machine stalls now and then
        began = time.monotonic()
        family.measured(network, end, ridge=ridge)
        reading = min(reading, time.monotonic() - began)
    return gradient, reading


def _timed(family: Family[Any], network: nn.Module, ridge: float, solver: Solver, device: torch.device) -> float:
    began = time.monotonic()

    def enough(event: FitEvent) -> bool:
        return event.evaluations >= GRADIENTS or time.monotonic() - began > TIMED

    end = family.trained(network, ridge, solver, Session(enough, device=device))
    return end.seconds / max(end.gradient_evaluations, 1)


def _of_others(request: Request) -> int:
    """Gradients of other ranks of the task."""
    return sum(foreseen(request.problem_of(s), s) for s in map(request.settings_of, request.beside))


def _times_faster(foresight: Foresight, workers: int) -> float:
    """Than one worker: what waits for what is laid out on so many."""
    on_workers = sum(-(-count // workers) * each for count, each in foresight.batches)
    return foresight.all / max(on_workers, 1)


def _shapes(network: nn.Module) -> tuple[tuple[int, int], ...]:
    """Those of leaky networks lie on top of each other in one tensor."""
    matrices: list[Tensor] = [m for p in network.parameters() if p.ndim > 1 for m in p.reshape(-1, *p.shape[-2:])]
    return tuple((int(m.shape[0]), int(m.shape[1])) for m in matrices)


def _sizes(shapes: Sequence[tuple[int, int]]) -> str:
    """`6 24 24 3` where each matrix follows the one before; else `1 of 24 x 6, 8 of 24 x 24, 1 of 3 x 24`."""
    if all(one[0] == other[1] for one, other in pairwise(shapes)):
        return " ".join(str(size) for size in (shapes[0][1], *(rows for rows, _ in shapes)))
    return ", ".join(f"{count} of {rows} x {columns}" for (rows, columns), count in Counter(shapes).items())


def _duration(seconds: float) -> str:
    """`40 s`, `3.5 min`, `2.1 h`."""
    size, unit = next(((s, u) for s, u in ((3600, "h"), (60, "min")) if seconds >= 2 * s), (1, "s"))
    return f"{seconds / size:.2g} {unit}" if seconds / size < 10 else f"{seconds / size:.0f} {unit}"
