"""Question: how long would `isthmus figure all --preset paper` take?

Answer: about 3 hours of one core without figures 4 and 7 (not timed) and the leaky networks of 8 to 10, which are
allowed 80 hours more: a gradient of them takes .5 s (figure 8) or .2 s (figure 9). Shared machine, one thread of two
busy cores, torch 2.13.0 CPU, `--seconds .4`, November 2026. By figure: `docs/figures.md`.

Three computations of each figure (first, middle, last of its plan) are begun at the papers' sizes and stopped after
`--seconds`; the seconds of the processor per gradient times the planned gradients give their cost, the mean times their
number that of the figure. Trainings may end earlier than planned, so this is an estimate from above. Reading tables
and drawing are not in it, nor regions of classes, which need trained networks. `--figure` measures one; `--quick` the
last one for a fifth of a second.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from isthmus.figures import FIGURES, PaperFigure, Preset
from isthmus.figures.parts import Hear
from isthmus.sweeps.execution import compute
from isthmus.training import FitEvent

Training = Callable[[Path, Hear], object]


class Enough(Exception):  # noqa: N818 - no error: it has run for long enough
    """Ends a training from inside."""


@dataclass(slots=True)
class Cost:
    """What one computation takes: all of its seconds, and where it trains those of a gradient and how many."""

    seconds: float
    per_gradient: float = 0.0
    gradients: int = 0


@dataclass(slots=True)
class Watch:
    """Hears a training and ends it after so many seconds of the processor, counted from its first step on."""

    limit: float
    began: float = 0.0
    first: int = 0
    last: int = 0
    total: int = 0
    now: float = 0.0

    def __call__(self, event: FitEvent) -> bool:
        """One iteration."""
        self.now = time.process_time()
        if not self.total:
            self.began, self.first = self.now, event.evaluations
        self.last, self.total = event.evaluations, event.total
        if self.last > self.first and self.now - self.began > self.limit:
            raise Enough
        return False


def cost(training: Training, limit: float) -> Cost:
    """The cost of one computation, by its first seconds."""
    watch, began = Watch(limit), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        try:
            training(Path(folder) / "state.pt", watch)
        except Enough:
            each = (watch.now - watch.began) / (watch.last - watch.first)
            return Cost(each * watch.total, each, watch.total)
    return Cost(time.process_time() - began)


def computations(figure: PaperFigure) -> list[tuple[str, Training]]:
    """Everything that the plan of a figure names, by id."""
    plan = figure.plan(Preset.PAPER)
    runs = [run for sweep in plan.sweeps.values() for run in sweep.runs()]
    trainings = [(run.id, partial(_carry_out, run.settings, run.source)) for run in runs]
    return [*trainings, *((part.id, part.make) for part in plan.parts)]


def _carry_out(settings: object, source: str | None, checkpoint: Path, hear: Hear) -> object:
    return compute(settings, source, checkpoint, lambda event: bool(hear(event)))  # pyright: ignore[reportArgumentType]


def main() -> None:
    """Print a line per figure, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--figure", default=None)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    limit, seen, whole = 0.2 if given.quick else given.seconds, set[str](), 0.0
    chosen = [figure for name, figure in FIGURES.items() if given.figure in {None, name}]
    for figure in chosen[-1:] if given.quick else chosen:
        named = [(key, training) for key, training in computations(figure) if key not in seen]
        seen.update(key for key, _ in named)
        places = sorted({0, len(named) // 2, len(named) - 1}) if named else []
        costs = [cost(named[place][1], limit) for place in places]
        hours = sum(found.seconds for found in costs) / max(len(costs), 1) * len(named) / 3600
        whole += hours
        told = "; ".join(
            f"{1e3 * found.per_gradient:.1f} ms x {found.gradients} = {found.seconds / 3600:.2f} h"
            if found.gradients
            else f"{found.seconds:.1f} s"
            for found in costs
        )
        sys.stdout.write(f"{figure.name}: {len(named)} computations ({told}), {hours:.1f} h\n")
        sys.stdout.flush()
    sys.stdout.write(f"all of these: {whole:.0f} h of one core\n")


if __name__ == "__main__":
    main()
