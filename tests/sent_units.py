"""Units of work that can be sent to another process: what they compute stands in this module."""

import os
import signal
import time
import warnings
from functools import partial
from pathlib import Path

import torch

from isthmus import FullyConnected, fit
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.work.unit import Session, Unit
from isthmus.errors import DataError, DataWarning
from isthmus.training.solvers.solver import LBFGS, Adam
from minima import minimum


def trained(session: Session, *, number: int, steps: int = 40, pause: float = 0.0) -> Minimum:
    """A short fit, with its end in bits; it says in which process it was done."""
    x = torch.randn(600, 4, generator=torch.Generator().manual_seed(number))
    network = FullyConnected(4, 2, width=64, depth=4, seed=number)

    def hear(event: object) -> bool:
        time.sleep(pause)
        return session.hear(event)  # pyright: ignore[reportArgumentType] - handed on

    result = fit(
        network, x, x[:, :2].relu(), ridge=1e-3, solver=(Adam(steps), LBFGS(20, plateau=0.0)),
        checkpoint=session.checkpoint, callback=hear, limits=None,
    )  # fmt: skip
    theta = torch.cat([p.detach().flatten() for p in network.parameters()])
    return minimum(objective=result.objective, theta=theta, start=number, seconds=float(os.getpid()))


def asks_precision(_session: Session) -> Minimum:
    """How float32 is multiplied where it is computed."""
    return minimum(kind=torch.get_float32_matmul_precision())


def complains(_session: Session, *, number: int) -> Minimum:
    """Warns."""
    warnings.warn(f"unit {number} is thin", DataWarning, stacklevel=2)
    return minimum(start=number)


def fails(_session: Session) -> Minimum:
    """Fails."""
    raise DataError("in a unit")


def kills_once(session: Session, *, mark: Path) -> Minimum:
    """Kills its process the first time."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return trained(session, number=1)


def kills(_session: Session) -> Minimum:
    """Kills its process every time."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def trainings(count: int, *, steps: int = 40, pause: float = 0.0) -> list[Unit]:
    """So many short fits."""
    return [
        Unit(f"fit-{n}", partial(trained, number=n, steps=steps, pause=pause), steps + 20, "training")
        for n in range(count)
    ]
