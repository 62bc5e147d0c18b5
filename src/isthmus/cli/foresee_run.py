"""What `isthmus discover --dry-run` prints; nothing is written. How it is foretold: `discovery.foresee`."""

from isthmus.cli.discover import DiscoverRequest
from isthmus.cli.discover_run import rows_of, search_options
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.interrupts import warnings_as_lines
from isthmus.cli.terminal import notes, print_headed, terminal
from isthmus.cli.voice import tell
from isthmus.cli.workplace import Workplace
from isthmus.discovery import foresee
from isthmus.training import Limits


def say_beforehand(request: DiscoverRequest, place: Workplace) -> int:
    """Say what the request would take; returns the exit code.

    Raises:
        DataError: the data cannot be used, or need more memory than there is.
    """
    say = notes()
    with warnings_as_lines(say), place.opened() as (workers, executor):
        place.check_device()
        rows = rows_of(request, say)
        limits = Limits(request.max_seconds, request.evaluations)
        found = foresee(
            rows.x,
            rows.y,
            **search_options(rows, request),
            limits=limits,
            workers=workers,
            executor=executor,
            device=place.device,
        )
    for line in rows.summary():
        say(line)
    tell(**found.to_dict())
    print_headed(terminal(), found.headline, found.lines, style="bold")
    return ExitCode.DONE
