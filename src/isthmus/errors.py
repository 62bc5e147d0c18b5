"""What can go wrong, as types: shapes, numbers, runs that did not end where they should.

Bad input raises (`ShapeError`, `DataError`, or a plain ValueError/TypeError); bad numbers warn (`NumericalWarning`);
a training run that stopped early is an `Outcome` (see training), turned into `NotConverged` only by those who ask.
"""


class IsthmusError(Exception):
    """Base of the errors that this library raises on purpose."""


class ShapeError(IsthmusError, ValueError):
    """A tensor whose shape does not fit: says which call, what it needs and what came."""


class DataError(IsthmusError, ValueError):
    """Data that cannot be used: an unreadable file, text in a number column, NaN, too few rows."""


class CheckpointError(DataError):
    """Saved work that cannot be gone on from: of another computation or version, or under another's name."""


class DamagedCheckpoint(CheckpointError):
    """Saved work that is not what was written; whoever can compute it again does so, and says it."""


class PlanError(IsthmusError, ValueError):
    """A plan of a sweep that cannot be carried out: says which key or which run, and what it needs."""


class SweepError(IsthmusError, RuntimeError):
    """A sweep that cannot start or go on: a folder in use or damaged, a scheduler or workers that do not fit."""


class NotConverged(IsthmusError, RuntimeError):
    """A training run that ended away from a minimum, raised only where the caller asked for it."""


class ProcessLost(IsthmusError, RuntimeError):
    """One of several processes that train together died or fell silent: the others end, the checkpoint stays."""


class NumericalWarning(UserWarning):
    """Numbers were rescued or are doubtful: says what was added, cut or could not be reached."""


class DataWarning(UserWarning):
    """The data were usable after a change, or are thin: says which columns or rows, and what was done."""


class ExposureWarning(UserWarning):
    """Others could do more than they should: says who, what, and how to keep them from it."""
