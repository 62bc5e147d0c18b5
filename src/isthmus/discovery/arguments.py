"""The arguments of `discover` turned into checked data and settings, before any work begins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.discovery.scaling import Scaling
from isthmus.discovery.settings import Settings, StartKind
from isthmus.errors import DataError
from isthmus.tasks.arrays import as_samples, check_rows, check_same_length, constant_columns
from isthmus.training import Limits
from isthmus.training.losses import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CheckedData:
    """Checked data in the user's units."""

    x: Array
    y: Array  # class numbers (n,) when classifying
    loss: Loss
    task: str
    input_names: tuple[str, ...]
    target_names: tuple[str, ...]


def checked_data(x: ArrayLike, y: ArrayLike | None, loss: str | Loss | None) -> CheckedData:
    """Data as float64 rows; raises before any work."""
    if loss is not None and loss not in {l.value for l in Loss} and not isinstance(loss, Loss):
        raise ValueError(f"discover(loss={loss!r}): needs one of {', '.join(repr(l.value) for l in Loss)}.")
    kind = Loss(loss) if loss is not None else Loss.SQUARED
    samples = as_samples(x, "x")
    inputs = _names(x, samples.shape[1], "x")
    if bool(constant_columns(samples).all()):
        raise DataError(f"discover(x): all {len(samples)} rows of x are identical; there is nothing to learn from.")
    check_rows(len(samples))
    if y is None:
        return CheckedData(samples, samples, Loss.SQUARED, "autoencoding", inputs, inputs)
    if kind is Loss.CROSS_ENTROPY:
        labels, classes = _classes(y)
        check_same_length(len(samples), len(labels))
        return CheckedData(samples, labels, kind, "classification", inputs, classes)
    targets = as_samples(y, "y")
    check_same_length(len(samples), len(targets))
    return CheckedData(samples, targets, kind, "regression", inputs, _names(y, targets.shape[1], "y"))


def _classes(y: ArrayLike) -> tuple[Array, tuple[str, ...]]:
    """Class numbers and names, from labels or from one 0/1 column per class."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        return values.argmax(1).astype(np.float64), _names(y, values.shape[1], "class ")
    classes, numbers = np.unique(values.reshape(-1), return_inverse=True)
    return numbers.astype(np.float64), tuple(str(c) for c in classes)


def _names(values: object, width: int, prefix: str) -> tuple[str, ...]:
    columns = getattr(values, "columns", None)
    return tuple(str(c) for c in columns) if columns is not None else tuple(f"{prefix}{i}" for i in range(width))


def settings_from(  # noqa: PLR0913
    network: str | None,
    depth: int | None,
    ridge: float | Sequence[float] | None,
    starts: int | None,
    seed: int,
    limits: Limits | None,
    *,
    ordered: bool,
    scaling: Scaling,
) -> Settings:
    """The defaults with what the caller chose."""
    if network not in {None, "connected"}:
        raise ValueError(f"discover(network={network!r}): needs 'connected' (or None, which means it).")
    settings = Settings(seed=seed, ordered=ordered, scaling=scaling.value)
    if ridge is not None:
        ridges = (float(ridge),) if isinstance(ridge, int | float) else tuple(sorted(map(float, ridge), reverse=True))
        settings = replace(settings, ridges=ridges)
    if starts is not None:
        kinds = (StartKind.LINEAR, *(StartKind.RANDOM for _ in range(starts - 1))) if starts > 0 else ()
        settings = replace(settings, starts=kinds)
    if depth is not None:
        settings = replace(settings, linear_layers=depth - 2 * settings.relu_layers - 1)
    if limits is not None and limits.evaluations is not None:
        settings = settings.scaled_to(limits.evaluations)
    return settings
