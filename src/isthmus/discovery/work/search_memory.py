"""How much a search will take: gradients, by which threads or processes are faster, and memory, which is announced.

What data themselves may take when they are read: `tasks.memory`.
"""

import logging
import multiprocessing
import sys
from dataclasses import dataclass
from typing import Any

import torch

import isthmus
from isthmus.discovery.choices import LONG_BESIDE, LONG_CURVE, WHOLE
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.kinds import family_of
from isthmus.discovery.kinds.family import JACOBIAN_POINTS, Family
from isthmus.discovery.settings import Settings
from isthmus.networks.devices import CPU
from isthmus.networks.kinds import kind_named
from isthmus.processes.pool import CAN_FORK, Where, is_begun, num_cores
from isthmus.tasks.arrays import counted
from isthmus.tasks.memory import check_memory, in_words
from isthmus.training.sharded.row_step import MEMORY, VECTORS, rows_at_once
from isthmus.training.steps.step import maker_of

_LOG = logging.getLogger(__name__)
COPIES = 3  # of the data in float64: while they are scaled, or beside their diagnosis
KEPT = 50  # trained networks that are kept for the curves
WORTH_PROCESSES = 2e6  # rows times gradients from which a search gains more than the imports of a process take
COPIED = 2_000_000  # numbers of data up to which each process has a copy of its own
READ = 16  # bytes of a neuron at a row while the answer is diagnosed: before and after its activation, in float64
JACOBIANS = 3  # products of Jacobians at some rows, float64, that a training is read with


@dataclass(frozen=True, slots=True)
class Foresight:
    """About how much networks of one size will take.

    Attributes:
        most_ranks: the largest rank that they can show.
        ridges: that are trained where the best is the first or beside it: it and its neighbours.
        batches: trainings that wait for those before, how many and of how many gradient evaluations each: starts, ranks
            raised, objective curves and, last, the scree curve.
        rows: that each gradient goes over.
    """

    most_ranks: int
    ridges: int
    batches: tuple[tuple[int, int], ...]
    rows: int

    @property
    def scree(self) -> int:
        """Gradient evaluations of the scree curve."""
        count, each = self.batches[-1]
        return count * each

    @property
    def all(self) -> int:
        """Those of starts, objective curves and scree curve."""
        return sum(count * each for count, each in self.batches)

    @classmethod
    def of(cls, family: Family[Any]) -> "Foresight":
        """Of the networks of a family, before any of it is begun: for the estimate of the time left alone."""
        settings, most = family.settings, min(family.room, family.most_rank)
        ridges = min(2 * settings.patience + 1, len(settings.ridges))
        ranks, beside = (LONG_CURVE, LONG_BESIDE) if most > WHOLE else (min(most, 6), min(most, 6))
        batches = (
            (ridges * len(settings.starts), settings.start_evaluations),
            (ridges, settings.raise_evaluations),
            (ranks + (ridges - 1) * beside, settings.polish_evaluations),
            (ranks, settings.refine_evaluations),
        )
        return cls(most, ridges, batches, len(family.problem.x))


def search_memory(problem: Problem, settings: Settings, *, workers: int | None) -> int:
    """Bytes that a search takes beyond the data given (*estimate*): copies of the data, and what trainings work on.

        8 [3 n (d_in + d_out) + d_in d_out] + 50 P + 16 n neurons
            + workers * (45 P + rows at once * activations of a row + 3 Jacobians at 64 rows)

    where P are the bytes of the parameters of a network: the vectors of L-BFGS are as long. The linear baseline is a
    map of all inputs to all outputs. Beside 200 MiB for libraries, and 50 where scikit-learn is loaded (as much again,
    and 50 for each worker, where these are processes), it was .86 to 2
    times what was measured of 500 x 12, 1,797 x 61, 3,000 x 30 and 10,000 x 50 with 1, 2 and 8 workers. At 200 x 2,000,
    300 x 5,000 and 2,000 x 4,900 it was .5 to 1.3 without neurons and Jacobians, which are at most a fifth there.

    Args:
        problem: the data.
        settings: sizes of the networks.
        workers: threads that train side by side; None: one for each core.
    """
    network = family_of(problem, settings).new(seed=0)
    parameters = sum(p.numel() * p.element_size() for p in network.parameters())
    rows = min(len(problem.x), rows_at_once(network, problem.x, MEMORY))
    activations = rows * maker_of(network).bytes_of_row(network, problem.x)
    rows_in_all = len(problem.x) + len(problem.x_held)
    diagnosed = READ * len(problem.x) * sum(p.shape[:-1].numel() for p in network.parameters() if p.ndim > 1)
    jacobians = JACOBIANS * 8 * JACOBIAN_POINTS * settings.width * min(problem.d_in, settings.width)
    data = 8 * (COPIES * rows_in_all * (problem.d_in + problem.d_out) + problem.d_in * problem.d_out)
    at_once = VECTORS * parameters + activations + jacobians
    return data + KEPT * parameters + diagnosed + (workers or num_cores()) * at_once


def announce_memory(problem: Problem, settings: Settings, *, workers: int | None) -> int:
    """Say to the log how much memory a search will take; the bytes, as `search_memory` has them.

    Raises:
        DataError: more than there is.
    """
    needed = search_memory(problem, settings, workers=workers)
    rows = len(problem.x) + len(problem.x_held)
    what = f"{rows:,} rows, {counted(problem.d_in, 'input')} and {counted(problem.d_out, 'output')}"
    _LOG.info("%s: about %s of memory", what, in_words(needed))
    fewer = "" if workers == 1 else "workers=1, "
    check_memory(needed, f"discover: {what}", share=1.0, instead=f"Take {fewer}fewer rows or columns")
    return needed


def faster(problem: Problem, network: str, *, gradients: int, workers: int, device: torch.device) -> Where:
    """Where units of a search are computed faster: in processes, unless it is short, or they may lack what it needs.

    In threads the interpreter runs for one at a time: of 500 rows for half of it, of 2,000 for a fifth. Classes that a
    program made by itself, or kinds of network that it registered, other processes do not know.
    """
    classes = (type(problem.loss), kind_named(network).network)
    ours = all(one.__module__.partition(".")[0] == isthmus.__name__ for one in classes)
    few = sum(part.numel() for part in (problem.x, problem.y)) <= COPIED
    alone = multiprocessing.parent_process() is None  # whoever started several processes wants no more of them
    pays = workers > 1 and len(problem.x) * gradients >= WORTH_PROCESSES and device == CPU
    able = CAN_FORK and sys.platform == "linux"  # others end processes that fork once libraries are loaded
    return Where.PROCESSES if able and pays and few and ours and alone and is_begun() else Where.THREADS
