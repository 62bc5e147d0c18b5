"""What `verbose` shows: a line on standard error for each tenth of a fit. The bar of the command line: cli."""

import sys

from isthmus.discovery.progress import Progress


class Lines:
    """Hears progress and writes a line when a new tenth of the work is done."""

    def __init__(self, name: str) -> None:
        self.name, self.shown = name, -1

    def __call__(self, progress: Progress) -> None:
        """Hear one event."""
        tenth = int(10 * progress.fraction)
        if tenth <= self.shown:
            return
        self.shown = tenth
        rank = "" if progress.rank is None else f", rank {progress.rank} so far"
        left = "" if progress.seconds_left is None else f", about {progress.seconds_left:.0f} s left"
        sys.stderr.write(f"[{self.name}] {10 * tenth:3d} % {progress.stage}{rank}{left}\n")
