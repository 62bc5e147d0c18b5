"""The exit codes of every command, in one place."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended, for whoever called it."""

    DONE = 0  # also "no sharp rank", and claims that do not hold: those are answers
    BUG = 1  # an error that isthmus did not foresee
    BAD_INPUT = 2  # or a refused resource: one line says what, where and what to do
    DOUBTFUL = 3  # finished, but doubtful, not converged, refuted, or with runs that failed
    INTERRUPTED = 130  # the state was saved
    UNREAD = 141  # the reader of stdout left before everything was said, as `| head` does
