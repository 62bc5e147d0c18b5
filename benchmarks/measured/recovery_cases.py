"""The cases of rank recovery: random tasks whose rank is chosen, drawn from the hash of a commit.

What is measured on them: `rank_recovery`.
"""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isthmus import tasks
from isthmus.tasks import Activation, Kind, Link, Task
from isthmus.tasks.scenes import SCENES

RANKS, NOISES = range(1, 9), (0.0, 0.05, 0.2)
MOST_COLUMNS = 50


@dataclass(frozen=True)
class Teacher:
    """y = h(z_1 .. z_rank) + noise, x = g(z), with random shallow networks g and h."""

    rank: int
    noise: float
    latent_dim: int
    d_in: int
    d_out: int
    num_samples: int
    seed: int
    activation: str = Activation.RELU.value

    def task(self) -> Task:
        """Its data."""
        settings: dict[str, Any] = asdict(self) | {"activation": Activation(self.activation)}
        return tasks.teacher(settings.pop("rank"), **settings)


@dataclass(frozen=True)
class Bijection:
    """A matrix of this rank between two leaky ReLU bijections."""

    rank: int
    d_in: int
    d_out: int
    num_samples: int
    seed: int
    noise: float = 0.0
    latent_dim: int = 0
    activation: str = "bijection"

    def task(self) -> Task:
        """Its data."""
        return tasks.bijective_rank(
            self.rank, d_in=self.d_in, d_out=self.d_out, num_samples=self.num_samples, seed=self.seed
        )


@dataclass(frozen=True)
class Combinations:
    """One target of `rank` combinations of the inputs; the activation is the kind of link."""

    rank: int
    noise: float
    d_in: int
    num_samples: int
    seed: int
    activation: str
    d_out: int = 1
    latent_dim: int = 0

    def task(self) -> Task:
        """Its data."""
        return tasks.multi_index(
            self.rank, d_in=self.d_in, num_samples=self.num_samples, noise=self.noise, link=Link(self.activation),
            seed=self.seed,
        )  # fmt: skip


@dataclass(frozen=True)
class Snapshots:
    """Autoencoding of the Kuramoto-Sivashinsky equation at L = 22, whose attractor lies in 8 dimensions."""

    seed: int
    rank: int = 8
    d_in: int = 64
    d_out: int = 64
    num_samples: int = 2500
    noise: float = 0.0
    latent_dim: int = 8
    activation: str = "physics"

    def task(self) -> Task:
        """Its data."""
        return tasks.kuramoto_sivashinsky(num_samples=self.num_samples, seed=self.seed)


@dataclass(frozen=True)
class Mixture:
    """Classes by the nearest centre in `rank` of 8 coordinates; noise is how much they overlap."""

    rank: int
    noise: float
    d_in: int
    d_out: int
    num_samples: int
    seed: int
    latent_dim: int = 8
    activation: str = "classes"

    def task(self) -> Task:
        """Its data."""
        return tasks.mixture_classes(
            self.rank, d_in=self.d_in, num_classes=self.d_out, num_samples=self.num_samples,
            latent_dim=self.latent_dim, overlap=self.noise, seed=self.seed,
        )  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """Autoencoding of a curved plane."""

    rank: int
    d_in: int
    num_samples: int
    seed: int
    d_out: int = 0
    noise: float = 0.0
    latent_dim: int = 0
    activation: str = "plane"

    def task(self) -> Task:
        """Its data."""
        return tasks.curved_plane(
            dimension=self.rank, num_columns=self.d_in, num_samples=self.num_samples, seed=self.seed
        )


@dataclass(frozen=True)
class Pictures:
    """Autoencoding of pictures of a moving thing."""

    activation: str
    rank: int
    side: int
    num_samples: int
    seed: int
    noise: float = 0.01
    d_in: int = 0
    d_out: int = 0
    latent_dim: int = 0

    def task(self) -> Task:
        """Its data."""
        return tasks.pictures(
            self.activation, side=self.side, num_samples=self.num_samples, noise=self.noise, seed=self.seed
        )


@dataclass(frozen=True)
class Flow:
    """Autoencoding of states of a flow; -1 where no manifold of fewer dimensions than columns is known."""

    activation: str
    rank: int
    num_samples: int
    seed: int
    noise: float = 0.0
    d_in: int = 0
    d_out: int = 0
    latent_dim: int = 0

    def task(self) -> Task:
        """Its data."""
        own: dict[str, Any] = {"num_samples": self.num_samples, "seed": self.seed}
        name, _, length = self.activation.partition("-")
        if name == "kuramoto":
            return tasks.kuramoto_sivashinsky(length=float(length), **own)
        if name == "ginzburg":
            return tasks.ginzburg_landau(length=float(length), **own)
        if name == "spiral":
            return tasks.spiral_waves(side=int(length), **own)
        return tasks.lorenz_chain(num_systems=int(length), **own)


@dataclass(frozen=True)
class LinearMap:
    """Targets that are a linear map of normal columns, of this rank, in noise of their mean scale."""

    rank: int
    noise: float
    d_in: int
    d_out: int
    num_samples: int
    seed: int
    latent_dim: int = 0
    activation: str = "linear"

    def task(self) -> Task:
        """Its data."""
        rng = np.random.default_rng(self.seed)
        x = rng.normal(size=(self.num_samples, self.d_in))
        y = x @ rng.normal(size=(self.d_in, self.rank)) @ rng.normal(size=(self.rank, self.d_out))
        return Task(x, y / y.std() + self.noise * rng.normal(size=y.shape), self.rank, "a linear map")


@dataclass(frozen=True)
class NoRank:
    """What has no rank: noise in all columns, targets in another order, or the surrogate of a task with one."""

    activation: str
    d_in: int
    d_out: int
    num_samples: int
    seed: int
    rank: int = -1
    noise: float = 1.0
    latent_dim: int = 0

    def task(self) -> Task:
        """Its data."""
        rng = np.random.default_rng(self.seed)
        if self.activation == "noise":
            shape = (self.num_samples, self.d_in)
            return Task(rng.normal(size=shape), rng.normal(size=(self.num_samples, self.d_out)), None, "noise")
        known = tasks.teacher(3, d_in=self.d_in, d_out=self.d_out, num_samples=self.num_samples, seed=self.seed)
        assert known.y is not None
        if self.activation == "permuted":
            return Task(known.x, rng.permutation(known.y), None, "permuted")
        if self.activation == "permuted index":
            return Task(known.x, rng.permutation(known.y)[:, :1], None, "permuted, one target")
        scene = tasks.pictures("disk", side=6, num_samples=self.num_samples, seed=self.seed)
        drawn = tasks.covariance_surrogate(scene.x, self.seed)
        return Task(drawn.x, None, None, "surrogate", Kind.AUTOENCODING)


Case = Teacher | Bijection | Combinations | Snapshots | Mixture | Plane | Pictures | Flow | LinearMap | NoRank


def name_of(case: Case) -> str:
    """Everything that makes the case, in one line."""
    return " ".join(f"{key}={value}" for key, value in asdict(case).items())


def cases_of(suite: str, commit: str) -> list[Case]:
    """The cases of a suite that belong to a commit, as drawn."""
    return SUITES[suite](np.random.default_rng(int(hashlib.sha256(commit.encode()).hexdigest()[:16], 16)))


def smallest_first(cases: list[Case]) -> list[Case]:
    """By rows, then by columns: what a run that is stopped early has seen."""
    return sorted(cases, key=lambda c: (c.num_samples, c.d_in + c.d_out))


def short(rng: np.random.Generator) -> list[Case]:
    """48 ReLU teachers: rank 1..8 at three noises, twice."""
    return [drawn_teacher(rng, rank, noise) for _ in range(2) for noise in NOISES for rank in RANKS]


def issue(rng: np.random.Generator) -> list[Case]:
    """216 teachers: rank 1..8 at three noises with three activations, three times."""
    return [
        drawn_teacher(rng, rank, noise, activation=activation)
        for _ in range(3) for activation in Activation for noise in NOISES for rank in RANKS
    ]  # fmt: skip


def few_targets(rng: np.random.Generator) -> list[Case]:
    """52 teachers of rank 1..4 with as many targets, one more and two more, 3 to 20 columns."""
    found: list[Case] = []
    for activation, extra, rank in [(a, e, r) for a in Activation for e in range(3) for r in range(1, 5)]:
        for _ in range(1 + (extra > 0 and activation is not Activation.TANH)):
            latent = int(rng.integers(rank, rank + 4))
            found.append(
                Teacher(rank, float(rng.choice([0.0, 0.02, 0.1])), latent, int(rng.integers(2 * latent + 1, 21)),
                        max(2, rank + extra), drawn_length(rng), int(rng.integers(2**31)), activation.value)
            )  # fmt: skip
    return found


def few_rows(rng: np.random.Generator) -> list[Case]:
    """60 teachers of rank 1..5 at three noises, 20 to 200 rows: tables that may say too little."""
    found: list[Case] = []
    for rank, noise in [(r, e) for _ in range(4) for r in range(1, 6) for e in NOISES]:
        latent = int(rng.integers(rank, rank + 5))
        columns = int(rng.integers(2 * latent + 1, 31)), int(rng.integers(max(2, rank), 21))
        found.append(Teacher(rank, noise, latent, *columns, drawn_length(rng, 20, 200), int(rng.integers(2**31))))
    return found


def combinations(rng: np.random.Generator) -> list[Case]:
    """90 tables of one target of 1..5 combinations of 6 to 30 inputs at three noises, 240 to 1200 rows."""
    return [
        Combinations(rank, noise, int(rng.integers(max(6, rank + 2), 31)), drawn_length(rng, 240, 1200),
                     int(rng.integers(2**31)), str(rng.choice([*Link])))
        for _ in range(6) for rank in range(1, 6) for noise in NOISES
    ]  # fmt: skip


def few_rows_of_all_kinds(rng: np.random.Generator) -> list[Case]:
    """72 tables of 20 to 200 rows: one target of 1..3 combinations, classes, curved planes, and what has no rank."""
    ranks = range(1, 4)

    def seed() -> int:
        return int(rng.integers(2**31))

    def columns() -> int:
        return int(rng.integers(5, 21))

    found: list[Case] = [
        Combinations(rank, noise, columns(), drawn_length(rng, 20, 200), seed(), str(rng.choice([*Link])))
        for _ in range(3) for rank in ranks for noise in NOISES
    ]  # fmt: skip
    found += [
        Mixture(rank, overlap, int(rng.integers(17, 31)), int(rng.integers(rank + 1, 2 * rank + 3)),
                drawn_length(rng, 40, 200), seed())
        for _ in range(2) for overlap in (0.0, 0.1) for rank in ranks
    ]  # fmt: skip
    found += [
        Plane(rank, int(rng.integers(max(6, 2 * rank), 21)), drawn_length(rng, 20, 200), seed())
        for _ in range(3)
        for rank in range(1, 6)
    ]
    names = ("noise", "permuted", "permuted index")
    return found + [
        NoRank(name, int(rng.integers(17, 31)), int(rng.integers(3, 11)), drawn_length(rng, 20, 200), seed())
        for _ in range(6) for name in names
    ]  # fmt: skip


def large(rng: np.random.Generator) -> list[Case]:
    """36 ReLU teachers of rank 9..20 at three noises, 4000 rows; up to 4 more latent coordinates than the rank."""
    found: list[Case] = []
    for noise in NOISES:
        for rank in range(9, 21):
            latent = int(rng.integers(rank, rank + 5))
            found.append(drawn_teacher(rng, rank, noise, latent=latent, num_samples=4000))
    return found


def bijections(rng: np.random.Generator) -> list[Case]:
    """80 matrices of rank 1..8 between bijections of 10 to 20 columns, 300 to 2000 rows."""
    return [
        Bijection(
            rank, int(rng.integers(10, 21)), int(rng.integers(10, 21)), drawn_length(rng), int(rng.integers(2**31))
        )
        for _ in range(10) for rank in RANKS
    ]  # fmt: skip


def snapshots(rng: np.random.Generator) -> list[Case]:
    """Five trajectories of the Kuramoto-Sivashinsky equation."""
    return [Snapshots(int(seed)) for seed in rng.integers(2**31, size=5)]


def mixtures(rng: np.random.Generator) -> list[Case]:
    """24 tables of classes: rank 1..4 without overlap and with, 17 to 50 columns, 1000 to 4000 rows."""
    return [
        Mixture(rank, overlap, int(rng.integers(17, 51)), int(rng.integers(2 * rank + 2, 4 * rank + 3)),
                round(float(np.exp(rng.uniform(np.log(1000), np.log(4000))))), int(rng.integers(2**31)))
        for _ in range(3) for overlap in (0.0, 0.1) for rank in range(1, 5)
    ]  # fmt: skip


def planes(rng: np.random.Generator) -> list[Case]:
    """40 curved planes: dimension 2..8 in 10 to 40 columns, 500 to 3000 rows."""
    ranks = [int(rng.integers(2, 9)) for _ in range(40)]
    return [
        Plane(rank, int(rng.integers(max(10, 2 * rank), 41)),
              round(float(np.exp(rng.uniform(np.log(500), np.log(3000))))), int(rng.integers(2**31)))
        for rank in ranks
    ]  # fmt: skip


def moving_things(rng: np.random.Generator) -> list[Case]:
    """Each scene with 6 x 6 to 16 x 16 pixels, three times."""
    return [
        Pictures(name, scene.rank, int(rng.choice([6, 8, 11, 16])), int(rng.integers(400, 1001)),
                 int(rng.integers(2**31)))
        for _ in range(3) for name, scene in SCENES.items()
    ]  # fmt: skip


def flows(rng: np.random.Generator) -> list[Case]:
    """Waves of three lengths, turbulence, spirals, and a chain of Lorenz systems, which has no rank."""
    known = (("spiral-8", 2, 500), ("spiral-16", 2, 800), ("chain-4", -1, 1500), ("chain-6", -1, 2500),
             ("kuramoto-44", 18, 4000), ("kuramoto-66", 28, 4000), ("ginzburg-20", 22, 4000))  # fmt: skip
    return [Flow(name, rank, rows, int(rng.integers(2**31))) for name, rank, rows in known]


def linear_maps(rng: np.random.Generator) -> list[Case]:
    """60 linear tables of rank 1..3, one target or up to 7, 40 to 100 rows of 5 to 12 columns, four noises."""
    return [
        LinearMap(rank, noise, int(rng.integers(5, 13)), int(rng.integers(rank, 8)), drawn_length(rng, 40, 100),
                  int(rng.integers(2**31)))
        for _ in range(5) for rank in (1, 2, 3) for noise in (0.0, 0.05, 0.1, 0.2)
    ]  # fmt: skip


def linear_maps_of_many_rows(rng: np.random.Generator) -> list[Case]:
    """30 linear tables of rank 1..16, up to ten targets more than it, 1250 to 8000 rows of up to 40 columns, noisy."""
    return [
        LinearMap(rank, noise, int(rng.integers(max(5, rank), 41)), int(rng.integers(rank, rank + 11)),
                  drawn_length(rng, 1250, 8000), int(rng.integers(2**31)))
        for rank in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16) for noise in NOISES
    ]  # fmt: skip


def without_rank(rng: np.random.Generator) -> list[Case]:
    """24 tables without a rank, where nothing may be confident."""
    return [
        NoRank(name, int(rng.integers(17, 31)), int(rng.integers(4, 21)), drawn_length(rng), int(rng.integers(2**31)))
        for _ in range(6) for name in ("noise", "permuted", "permuted index", "surrogate")
    ]  # fmt: skip


SUITES: dict[str, Callable[[np.random.Generator], list[Case]]] = {
    "short": short,
    "issue6": issue,
    "bijection": bijections,
    "targets": few_targets,
    "few": few_rows,
    "few-kinds": few_rows_of_all_kinds,
    "index": combinations,
    "large": large,
    "kuramoto": snapshots,
    "classes": mixtures,
    "planes": planes,
    "pictures": moving_things,
    "flows": flows,
    "linear": linear_maps,
    "linear-many": linear_maps_of_many_rows,
    "none": without_rank,
}


def drawn_teacher(  # noqa: PLR0913
    rng: np.random.Generator,
    rank: int,
    noise: float,
    *,
    activation: Activation = Activation.RELU,
    latent: int | None = None,
    num_samples: int | None = None,
) -> Teacher:
    """A teacher of this rank with 8 to 12 latent coordinates, up to 50 columns and 300 to 2000 rows."""
    latent = int(rng.integers(8, 13)) if latent is None else latent
    d_in, d_out = int(rng.integers(2 * latent + 1, MOST_COLUMNS + 1)), int(rng.integers(20, MOST_COLUMNS + 1))
    samples = drawn_length(rng) if num_samples is None else num_samples
    return Teacher(rank, noise, latent, d_in, d_out, samples, int(rng.integers(2**31)), activation.value)


def drawn_length(rng: np.random.Generator, least: int = 300, most: int = 2000) -> int:
    """So many rows, uniform in the logarithm."""
    return round(float(np.exp(rng.uniform(np.log(least), np.log(most)))))
