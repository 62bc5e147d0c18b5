"""Minima written down, and families of networks on small problems, for the tests of what a search does with them."""

from typing import Any

import numpy as np
import torch

from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.kinds import family_of
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.kinds.streams import Streams
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.settings import Settings
from isthmus.training.losses import SQUARED


def minimum(objective: float = 1.0, *, ridge: float = 1e-3, **known: Any) -> Minimum:
    fields: dict[str, Any] = {"theta": torch.zeros(0), **known}
    return Minimum(objective=objective, ridge=ridge, **fields)


def problem_of(x: np.ndarray, y: np.ndarray) -> Problem:
    """Squared error, in the units of the arrays, the first fifth of the rows held out."""
    held = np.arange(len(x)) < len(x) // 5
    return pose(x, y, held, loss=SQUARED, inputs=Standardiser.of(x), targets=Standardiser.of(y, total=True))


def noise_problem(d_in: int, d_out: int, *, rows: int = 50) -> Problem:
    rng = np.random.default_rng(0)
    return problem_of(rng.normal(size=(rows, d_in)), rng.normal(size=(rows, d_out)))


def connected(settings: Settings, problem: Problem | None = None, *, d_in: int = 5, d_out: int = 3) -> Connected:
    found = family_of(problem or noise_problem(d_in, d_out), settings)
    assert isinstance(found, Connected)
    return found


def streams(settings: Settings, problem: Problem | None = None, *, d_in: int = 5, d_out: int = 3) -> Streams:
    found = family_of(problem or noise_problem(d_in, d_out), settings)
    assert isinstance(found, Streams)
    return found
