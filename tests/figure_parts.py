"""Parts of figures for tests: small trainings, one that raises and one whose process is killed."""

import os
import signal
from pathlib import Path

import xarray as xr

from isthmus.figures.linear_resnet_training import LinearTraining
from isthmus.figures.parts import Hear, Part


def trainings(count: int, *, depth: int = 2, evaluations: int = 60) -> list[Part]:
    """Linear ResNets, as they stand of a tenth of a second each."""
    return [LinearTraining(1, depth, 0.5 + i, 0.05, evaluations).part() for i in range(count)]


def raising() -> Part:
    """A part that raises."""
    return Part("raising", {}, _raise)


def dying() -> Part:
    """A part that kills its process."""
    return Part("dying", {}, _die)


def _raise(_checkpoint: Path, _hear: Hear) -> xr.Dataset:
    raise ArithmeticError("no square root")


def _die(_checkpoint: Path, _hear: Hear) -> xr.Dataset:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError
