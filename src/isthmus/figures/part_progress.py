"""How far the parts of figures are: which are done, and what the trainings in those at work said last."""

from collections.abc import Sequence

from isthmus.figures.parts import Part
from isthmus.sweeps.sweep_progress import Pace, Running, SweepListener, SweepProgress
from isthmus.sweeps.telling import Telling


class PartProgress:
    """Tells a listener how far parts are that are made in their order, so many at a time.

    Args:
        missing: the parts that are made.
        total: of these and those that were there.
        at_once: how many are at work.
        listener: hears of every change.
    """

    def __init__(self, missing: Sequence[Part], *, total: int, at_once: int, listener: SweepListener) -> None:
        self._labels = dict(zip((part.id for part in missing), labels(missing), strict=True))
        self._total, self._at_once, self._listener = total, at_once, listener
        self._told: dict[str, Telling] = {}
        self._pace = Pace()
        self._tell()

    def told(self, telling: Telling) -> None:
        """A training says how far it is."""
        self._told[telling.id] = telling
        self._tell()

    def finished(self, part: str) -> None:
        """A part is done."""
        del self._labels[part]
        self._pace.ended += 1
        self._tell()

    def _tell(self) -> None:
        left = len(self._labels)
        at_work = list(self._labels.items())[: self._at_once]
        running = tuple(Running(label, self._told.get(part)) for part, label in at_work)
        self._listener(SweepProgress(self._total, self._total - left, 0, running, self._pace.seconds_left(left)))


def labels(parts: Sequence[Part]) -> list[str]:
    """Name of each part, with what tells it from the others of its name."""
    found: list[str] = []
    for part in parts:
        others = [other.settings for other in parts if other.name == part.name]
        differing = [name for name in part.settings if any(s.get(name) != part.settings[name] for s in others)]
        found.append(" ".join([part.name, *(f"{name}={part.settings[name]}" for name in differing)]))
    return found
