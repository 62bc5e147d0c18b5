"""Random cases of `index_rank`, drawn from the hash of a commit: combinations, modes, their order, metamorphic pairs.

Cases of the literature: `known_cases`. What is measured of each: `index_search`.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isthmus import tasks
from isthmus.tasks import Inputs, Link, Task
from measured.index_search import Row, Search, against, classical, rows_of, searched
from measured.spans import Array, distance

Order = NDArray[np.int64]
NOISES = (0.0, 0.05, 0.2)
LEAST_ROWS, MOST_ROWS, PER_ENTRY = 500, 3000, 10  # at least ten rows per entry of B
LEAST_COLUMNS, MOST_COLUMNS, MOST_COMBINATIONS, MOST_MODES = 8, 40, 5, 6
USELESS = 10  # columns added
ROUNDS = 10  # of mode ranks, and of metamorphic bases


class IndexCase(Protocol):
    """A case of a suite."""

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        ...

    def measure(self, search: Search) -> Row:
        """One line of the table."""
        ...


@dataclass(frozen=True)
class MultiIndexCase:
    """A random multi-index task."""

    index_rank: int
    d_in: int
    d_out: int
    num_samples: int
    inputs: Inputs
    link: Link
    noise: float
    seed: int

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        return (
            f"k={self.index_rank} d={self.d_in} q={self.d_out} n={self.num_samples} {self.inputs} {self.link} "
            f"noise={self.noise:g} seed={self.seed}"
        )

    def task(self) -> Task:
        """Its data."""
        return tasks.multi_index(
            self.index_rank, d_in=self.d_in, d_out=self.d_out, num_samples=self.num_samples, inputs=self.inputs,
            link=self.link, noise=self.noise, seed=self.seed,
        )  # fmt: skip

    def measure(self, search: Search) -> Row:
        """The rank, the span, and those of all classical methods."""
        task = self.task()
        assert task.directions is not None
        found, row = searched(search, task.x, task.target, encoder="linear")
        return against(task.directions, found, row) | classical(task.x, task.target, task.directions)


@dataclass(frozen=True)
class ModeCase:
    """Targets of few modes; `index_rank` combinations of the inputs."""

    mode_rank: int
    index_rank: int
    d_in: int
    d_out: int
    num_samples: int
    noise: float
    seed: int

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        return (
            f"modes={self.mode_rank} k={self.index_rank} d={self.d_in} q={self.d_out} n={self.num_samples} "
            f"noise={self.noise:g} seed={self.seed}"
        )

    def task(self) -> Task:
        """Its data."""
        return tasks.multi_mode(
            self.mode_rank, d_in=self.d_in, d_out=self.d_out, num_samples=self.num_samples,
            index_rank=self.index_rank, noise=self.noise, seed=self.seed,
        )  # fmt: skip

    def measure(self, search: Search) -> Row:
        """The mode rank, and the span of what is predicted beside the modes."""
        task = self.task()
        assert task.modes is not None
        found, row = searched(search, task.x, task.target, decoder="linear")
        predicted = np.asarray(found.predict(task.x), dtype=np.float64)
        moved = np.linalg.svd(predicted - predicted.mean(0), full_matrices=False)[2][: found.rank]
        right = {"truth": self.mode_rank, "right": int(found.rank == self.mode_rank)}
        return row | right | {"distance": distance(moved, task.modes)}


@dataclass(frozen=True)
class OrderCase:
    """All three ranks of one task: that of curved halves must not lie above either of the others."""

    of: MultiIndexCase | ModeCase

    @property
    def name(self) -> str:
        """That of the task."""
        return self.of.name

    def measure(self, search: Search) -> Row:
        """The rank of curved halves beside the lesser of the other two."""
        task, ranks, verdicts, seconds = self.of.task(), dict[str, int](), list[str](), 0.0
        halves = {"rank": ("curved", "curved"), "index": ("linear", "curved"), "mode": ("curved", "linear")}
        for name, (encoder, decoder) in halves.items():
            found, row = searched(search, task.x, task.target, encoder=encoder, decoder=decoder)
            ranks[name], seconds = found.rank, seconds + row["seconds"]
            verdicts.append(f"{name} {found.rank} {found.verdict.name}")
        least = min(ranks["index"], ranks["mode"])
        known = f"known: {task.true_rank}, {task.index_rank}, {task.mode_rank}"
        return {
            "truth": least, "found": ranks["rank"], "right": int(ranks["rank"] <= least), "verdict": "ORDER",
            "seconds": seconds, "detail": "; ".join([*verdicts, known]),
        }  # fmt: skip


@dataclass(frozen=True)
class MetamorphicCase:
    """A task and the same one told otherwise: the rank must be the same, and the span after it is led back."""

    base: MultiIndexCase
    change: str  # one of CHANGES

    @property
    def name(self) -> str:
        """The change and the task."""
        return f"{self.change}: {self.base.name}"

    def measure(self, search: Search) -> Row:
        """The rank of the changed task beside that of the task as it was; `truth` is the latter."""
        task, rng = self.base.task(), np.random.default_rng(self.base.seed)
        plain, rows = _plain(self.base, search)
        matrix, order = _change(self.change, task.x.shape[1], len(task.x), rng)
        x, y = (task.x @ matrix)[order], task.target[order]
        if self.change == "useless":
            x = np.hstack([x, rng.standard_normal((len(x), USELESS))])
        scale = 1000.0 if self.change == "units" else 1.0
        found, row = searched(search, x, scale * y, encoder="linear")
        # A x' = A M^T x for x' = x M, and added columns are left out
        back = rows_of(found)[:, : matrix.shape[1]] @ matrix.T
        said = f"known {self.base.index_rank}; {row['detail']}"
        gap = distance(back, rows)
        return row | {"truth": plain, "right": int(found.rank == plain), "distance": gap, "detail": said}


CHANGES = ("units", "order", "map", "useless")


def _change(change: str, d: int, n: int, rng: np.random.Generator) -> tuple[Array, Order]:
    """What the columns are multiplied with, and the order of the rows."""
    if change == "units":
        return np.diag(10.0 ** rng.uniform(-3, 3, d)), np.arange(n)
    if change == "order":
        return np.eye(d)[:, rng.permutation(d)], rng.permutation(n)
    if change == "map":
        return np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d), np.arange(n)
    return np.eye(d), np.arange(n)


@cache
def _plain(base: MultiIndexCase, search: Search) -> tuple[int, Array]:
    """Rank and span of a task as it is, searched once for all of its changes."""
    task = base.task()
    found, _ = searched(search, task.x, task.target, encoder="linear")
    return found.rank, rows_of(found)


def drawn_rows(rng: np.random.Generator, least: int, most: int = MOST_ROWS) -> int:
    """A number of rows, uniform in the logarithm."""
    return round(float(np.exp(rng.uniform(np.log(least), np.log(most)))))


def multi_index_cases(rng: np.random.Generator) -> list[IndexCase]:
    """200 tasks: k 1..5 x five links x four kinds of inputs, twice, in random order."""
    kinds = [*itertools.product(range(1, MOST_COMBINATIONS + 1), Link, Inputs)] * 2
    return [_drawn(rng, *kinds[i]) for i in rng.permutation(len(kinds))]


def _drawn(rng: np.random.Generator, k: int, link: Link, inputs: Inputs) -> MultiIndexCase:
    """8 to 40 columns, 1 to 3 targets, three noises; 500 to 3000 rows and at least ten per entry of B."""
    d = int(rng.integers(LEAST_COLUMNS, MOST_COLUMNS + 1))
    rows = drawn_rows(rng, max(LEAST_ROWS, PER_ENTRY * k * d))
    noise, d_out = float(rng.choice(NOISES)), int(rng.integers(1, 4))
    return MultiIndexCase(k, d, d_out, rows, inputs, link, noise, int(rng.integers(2**31)))


def mode_cases(rng: np.random.Generator) -> list[IndexCase]:
    """60 tasks: mode rank 1..6 ten times, 8 to 40 targets, 600 to 2000 rows; half through fewer combinations."""
    return [_drawn_modes(rng, modes, i) for i in range(ROUNDS) for modes in range(1, MOST_MODES + 1)]


def _drawn_modes(rng: np.random.Generator, modes: int, i: int) -> ModeCase:
    d = int(rng.integers(5, 21))
    k = d if i % 2 else int(rng.integers(1, min(d, modes) + 1))
    q = int(rng.integers(LEAST_COLUMNS, MOST_COLUMNS + 1))
    return ModeCase(modes, k, d, q, drawn_rows(rng, 600, 2000), NOISES[i % 3], int(rng.integers(2**31)))


def order_cases(rng: np.random.Generator) -> list[IndexCase]:
    """20 tasks of both kinds, of at most 20 columns."""
    indices = [_drawn(rng, 1 + i % MOST_COMBINATIONS, [*Link][i % 5], [*Inputs][i % 4]) for i in range(ROUNDS)]
    small = [replace(case, d_in=min(case.d_in, 20), d_out=3, num_samples=1000) for case in indices]
    modes = [_drawn_modes(rng, 1 + i % MOST_MODES, i) for i in range(ROUNDS)]
    return [OrderCase(case) for pair in zip(small, modes, strict=True) for case in pair]


def metamorphic_cases(rng: np.random.Generator) -> list[IndexCase]:
    """Ten tasks with each of the four changes."""
    bases = [_drawn(rng, 1 + i % MOST_COMBINATIONS, [*Link][i // 2 % 5], [*Inputs][i % 4]) for i in range(ROUNDS)]
    return [MetamorphicCase(base, change) for base in bases for change in CHANGES]
