"""What can go wrong, as types: shapes, numbers, runs that did not end where they should.

Bad input raises (`ShapeError`, `DataError`, or a plain ValueError/TypeError); bad numbers warn (`NumericalWarning`);
a training run that stopped early is an `Outcome` (see training), turned into `NotConverged` only by those who ask.
"""

import inspect


class IsthmusError(Exception):
    """Base of the errors that this library raises on purpose.

    >>> try:
    ...     tasks.builtin("nothing")
    ... except errors.IsthmusError as error:
    ...     print(type(error).__name__)
    ...
    DataError
    """


class ShapeError(IsthmusError, ValueError):
    """A tensor whose shape does not fit: says which call, what it needs and what came.

    >>> try:
    ...     theory.numerical_rank([1.0, 2.0])
    ... except errors.ShapeError as error:
    ...     print(type(error).__name__)
    ...
    ShapeError
    """


class DataError(IsthmusError, ValueError):
    """Data that cannot be used: an unreadable file, text in a number column, NaN, too few rows.

    >>> try:
    ...     tasks.as_samples([["a"]])
    ... except errors.DataError as error:
    ...     print(error)
    ...
    x: holds <U1, not numbers. Encode it as numbers or drop it.
    """


class CheckpointError(DataError):
    """Saved work that cannot be gone on from: of another computation or version, or under another's name.

    >>> issubclass(errors.CheckpointError, errors.IsthmusError)
    True
    """


class DamagedCheckpoint(CheckpointError):
    """Saved work that is not what was written; whoever can compute it again does so, and says it.

    >>> issubclass(errors.DamagedCheckpoint, errors.CheckpointError)
    True
    """


class PlanError(IsthmusError, ValueError):
    """A plan of a sweep that cannot be carried out: says which key or which run, and what it needs.

    >>> try:
    ...     isthmus.sweep(isthmus.Plan(task={"name": "nothing"}, network={}, training={}))
    ... except errors.PlanError as error:
    ...     print(type(error).__name__)
    ...
    PlanError
    """


class SweepError(IsthmusError, RuntimeError):
    """A sweep that cannot start or go on: a folder in use or damaged, a scheduler or workers that do not fit.

    >>> issubclass(errors.SweepError, errors.IsthmusError)
    True
    """


class NotConverged(IsthmusError, RuntimeError):
    """A training run that ended away from a minimum, raised only where the caller asked for it.

    >>> issubclass(errors.NotConverged, errors.IsthmusError)
    True
    """


class ProcessLost(IsthmusError, RuntimeError):
    """One of several processes that train together died or fell silent: the others end, the checkpoint stays.

    >>> issubclass(errors.ProcessLost, errors.IsthmusError)
    True
    """


class NumericalWarning(UserWarning):
    """Numbers were rescued or are doubtful: says what was added, cut or could not be reached.

    >>> issubclass(errors.NumericalWarning, UserWarning)
    True
    """


class DataWarning(UserWarning):
    """The data were usable after a change, or are thin: says which columns or rows, and what was done.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     tasks.check_rows(12)
    ...
    >>> [warning.category.__name__ for warning in caught]
    ['DataWarning']
    """


class ExposureWarning(UserWarning):
    """Others could do more than they should: says who, what, and how to keep them from it.

    >>> issubclass(errors.ExposureWarning, UserWarning)
    True
    """


def outside() -> int:
    """The level of the stack, for `warnings.warn`, of the nearest line that is not of this library: the user's.

    A warning that points into a library says nothing of what led to it, and a number written down is wrong as soon as
    a function calls another one.

    >>> errors.outside() >= 1
    True
    """
    frame = inspect.currentframe()
    level, frame = 1, frame and frame.f_back
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "isthmus":
        level, frame = level + 1, frame.f_back
    return level
