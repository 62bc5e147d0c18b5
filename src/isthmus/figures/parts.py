"""Parts of figures that are no training of a sweep: what they depend on, how they are made, where they lie.

    parts/runs/ab/ab12../   what a part computed, in folders as those of a sweep (`sweeps.run_files`)
    parts/work/             checkpoints of unfinished parts

Which parts a figure has: its own file. In which process they are made: `processes`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from isthmus.errors import CheckpointError
from isthmus.figures.provenance import provenance
from isthmus.networks.devices import device_argument, trained_on
from isthmus.sweeps.execution import Computed
from isthmus.sweeps.folder import RUNS, WORK
from isthmus.sweeps.run_files import arrays_of, write_run
from isthmus.sweeps.runs import run_id
from isthmus.sweeps.store import checked_run, checkpoint_path, run_folder
from isthmus.training import FitEvent
from isthmus.training.checkpoint import set_aside
from isthmus.training.threads import one_thread_each
from isthmus.writing.atomic import remove_leftovers
from isthmus.writing.staying import made_folder

Settings = Mapping[str, object]
Hear = Callable[[FitEvent], bool | None]
Make = Callable[[Path, Hear], xr.Dataset]


def unheard(_event: FitEvent) -> None:
    """Hears the iterations of a training and lets it go on."""


@dataclass(frozen=True, slots=True)
class Part:
    """One computation.

    Attributes:
        name: of the computation, with its revision if it changed its meaning.
        settings: everything that its result depends on, in terms of JSON.
        make: computes it; given a path for the checkpoint of a training inside and who hears its iterations. A function
            of a module or a `partial` of one, so that a worker process can be handed it.
    """

    name: str
    settings: Settings
    make: Make

    @property
    def sections(self) -> dict[str, dict[str, object]]:
        """The settings as those of a run."""
        return {"part": {"name": self.name}, "settings": dict(self.settings)}

    @property
    def id(self) -> str:
        """Of the name and the settings alone."""
        return run_id(self.sections)

    def is_there(self, root: Path, say: Callable[[str], None] = lambda _text: None) -> bool:
        """Whether it was computed before, in this folder of parts; what is damaged is set aside, which is said."""
        if checked_run(root, self.id, say) is None:
            return False
        checkpoint_path(root, self.id).unlink(missing_ok=True)  # of a kill just before it was removed
        return True

    def result(self, root: Path) -> xr.Dataset:
        """What it computed, with where it comes from in the attribute "provenance".

        Raises:
            SweepError: missing or damaged.
        """
        return arrays_of(run_folder(root, self.id))

    def compute(self, root: Path, hear: Hear = unheard, device: str | None = None) -> None:
        """Make it, on one thread: the same bits whoever computes on one device; and write it, whole or not at all.

        Args:
            root: the folder of parts, as `opened` leaves it.
            hear: hears the iterations of the training inside, if there is one.
            device: where that training runs, as `fit` takes it.

        Raises:
            OSError: the folder cannot be written.
        """
        checkpoint = checkpoint_path(root, self.id)
        began = time.perf_counter()
        place = device_argument(device, f"device {device}")
        with one_thread_each(), trained_on(place):
            arrays = self._made(checkpoint, hear)
        seconds = time.perf_counter() - began
        arrays = arrays.assign_attrs(provenance=provenance(seconds, place))
        write_run(run_folder(root, self.id), self.sections, Computed({"seconds": seconds}, [], arrays, {}))
        checkpoint.unlink(missing_ok=True)

    def _made(self, checkpoint: Path, hear: Hear) -> xr.Dataset:
        """What it computes, from its checkpoint on; from the start where that cannot be used."""
        try:
            return self.make(checkpoint, hear)
        except CheckpointError as error:
            if not checkpoint.exists():
                raise
            set_aside(checkpoint, error)
            return self.make(checkpoint, hear)


def opened(root: Path) -> Path:
    """The folder of parts, made if missing, without what killed processes left half-written.

    Call it only where no other process writes to it.

    Raises:
        OSError: the folder cannot be written.
    """
    for name in (RUNS, WORK):
        made_folder(root / name)
    for place in (root / WORK, *(root / RUNS).iterdir()):
        remove_leftovers(place)
    return root
