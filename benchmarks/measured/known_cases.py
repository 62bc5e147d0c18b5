"""Cases of `index_rank` from the literature: models, a spread, formulas, functions of engineering; seeds from a commit.

Random ones: `index_cases`. What is measured of each: `index_search`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from isthmus import tasks
from isthmus.discovery.groups.group_words import groups_in_words
from isthmus.tasks import ENGINEERING, FORMULAS, Predictors, ReductionModel
from measured.index_cases import IndexCase
from measured.index_search import Row, Search, against, classical, rows_of, searched
from measured.spans import Array, distance, distance_correlation

FRESH = 1000  # rows on which coordinates are compared with the truth
REPEATS, SEEDS = 20, 10
SIZES = (1000, 2000, 5000)
SPREAD_ROWS, ENGINEERING_ROWS = 4000, 1000
EXACT = 1e-9  # of spans and units that are whole numbers but for rounding
GAP = 2.0  # of neighbouring eigenvalues, from which the ones before are directions of their own
NEAR = 0.05  # of the leading eigenvectors of the gradient covariance


@dataclass(frozen=True)
class ReductionCase:
    """Model A, B or C of Chen et al."""

    model: ReductionModel
    predictors: Predictors
    num_samples: int
    seed: int

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        return f"{self.model} {self.predictors} n={self.num_samples} seed={self.seed}"

    def measure(self, search: Search) -> Row:
        """Rank and span, and on new rows the distance correlation of the prediction with the noise-free target."""
        task, fresh = (
            tasks.reduction_model(self.model, num_samples=n, predictors=self.predictors, seed=seed)
            for n, seed in ((self.num_samples, self.seed), (FRESH, self.seed + 1))
        )
        assert task.directions is not None
        assert fresh.latent is not None
        found, row = searched(search, task.x, task.target, encoder="linear")
        predicted = np.asarray(found.predict(fresh.x), dtype=np.float64)
        coordinates = np.asarray(found.transform(fresh.x), dtype=np.float64)
        beside = f"dcor of the combinations {distance_correlation(coordinates, fresh.latent):.4f}; {row['detail']}"
        return (
            against(task.directions, found, row)
            | classical(task.x, task.target, task.directions, local=False)
            | {"dcor": distance_correlation(predicted, fresh.latent), "detail": beside}
        )


@dataclass(frozen=True)
class SpreadCase:
    """A second combination that moves the spread alone."""

    seed: int

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        return f"n={SPREAD_ROWS} seed={self.seed}"

    def measure(self, search: Search) -> Row:
        """Rank and span of mean and logarithmic variance together."""
        task = tasks.spread_index(num_samples=SPREAD_ROWS, seed=self.seed)
        assert task.directions is not None
        found, row = searched(search, task.x, task.target, encoder="linear", loss="gaussian")
        return against(task.directions, found, row) | classical(task.x, task.target, task.directions)


@dataclass(frozen=True)
class FormulaCase:
    """A formula with known groups; the logarithms are taken here."""

    formula: str
    num_samples: int
    noise: float
    seed: int

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        return f"{self.formula} n={self.num_samples} noise={self.noise:g} seed={self.seed}"

    def measure(self, search: Search) -> Row:
        """Number of groups, their span, and in the details how far an exponent of the best combinations is off."""
        one = FORMULAS[self.formula]
        task = one.task(num_samples=self.num_samples, noise=self.noise, seed=self.seed)
        x, y = np.log(task.x), np.log(task.target) if one.log_target else task.target
        found, row = searched(search, x, y, encoder="linear")
        q = np.linalg.qr(rows_of(found).T)[0]
        off = np.abs(one.exponents - one.exponents @ q @ q.T).max()
        said = f"exponents off by {off:.4f}; {row['detail']}"
        return against(one.exponents, found, row) | classical(x, y, one.exponents) | {"detail": said}


@dataclass(frozen=True)
class UnitsCase:
    """A formula of which the units are told: its groups are to be those of the textbook, with their exact exponents."""

    formula: str
    num_samples: int
    noise: float
    seed: int

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        return f"{self.formula} n={self.num_samples} noise={self.noise:g} seed={self.seed}"

    def measure(self, search: Search) -> Row:
        """Right means as many groups, of exactly the same span; in the details they are written out."""
        one = FORMULAS[self.formula]
        task = one.task(num_samples=self.num_samples, noise=self.noise, seed=self.seed)
        names, log = list(one.columns), [*one.columns, *([one.target] if one.log_target else [])]
        units = {name: dict(column.units) for name, column in one.columns.items()} | {
            one.target: dict(one.target_units)
        }
        x, y = pd.DataFrame(task.x, columns=names), pd.DataFrame(task.target, columns=[one.target])
        found, row = searched(search, x, y, encoder="linear", log=log, units=units)
        truth = self.truth(found)
        groups = np.array([[float(group.get(name, 0)) for name in names] for group in found.groups])
        exact = len(groups) == len(truth) and distance(groups, truth) < EXACT
        said = f"{'; '.join(groups_in_words(found.groups)) or 'no exact groups'}; {row['detail']}"
        return against(truth, found, row) | {"right": int(found.rank == len(truth) and exact), "detail": said}

    def truth(self, found: Any) -> Array:
        """What of the groups, and of the powers that took the unit of the target, has no unit itself."""
        one = FORMULAS[self.formula]
        taken = [] if found.powers is None else found.powers.target_exponents or []
        rows = np.vstack([one.exponents, *(np.array([[float(a) for a in of]]) for of in taken)])
        left, values, _ = np.linalg.svd(rows @ one.units)
        free = left[:, int((values > EXACT).sum()) :].T @ rows
        _, sizes, basis = np.linalg.svd(free, full_matrices=False)
        return basis[sizes > EXACT]


@dataclass(frozen=True)
class EngineeringCase:
    """A function of engineering; the directions are compared in columns of variance 1."""

    function: str
    noise: float
    seed: int

    @property
    def name(self) -> str:
        """Everything that makes it, in one line."""
        return f"{self.function} n={ENGINEERING_ROWS} noise={self.noise:g} seed={self.seed}"

    def measure(self, search: Search) -> Row:
        """Right means near the as many leading eigenvectors of the exact gradient covariance, or no sharp rank.

        Beside it, `leading`: how near the leading gradient directions that were found lie up to the clearest gap of
        the exact eigenvalues at no more of them.
        """
        function = ENGINEERING[self.function]
        task = tasks.engineering(self.function, num_samples=ENGINEERING_ROWS, noise=self.noise, seed=self.seed)
        values, vectors = np.linalg.eigh(function.standardised_covariance().numpy())
        values, vectors = values[::-1], vectors[:, ::-1].T
        found, row = searched(search, task.x, task.target, encoder="linear")
        low, high = np.array(list(function.ranges.values())).T
        gap = distance(rows_of(found) * (high - low), vectors[: found.rank])
        shares = " ".join(f"{v:.2g}" for v in values / values.sum())
        near, said = leading_directions(found, values, vectors, (high - low) / task.x.std(0))
        said = f"shares of the gradients {shares}; {said}{row['detail']}"
        right = int((found.rank > 0 and gap <= NEAR) or found.verdict.name == "NO_SHARP_RANK")
        scaled = task.x / (high - low)
        beside = classical(scaled, task.target, vectors[: found.rank]) if found.rank else {}
        truth = len(function.directions)
        return row | beside | {"truth": truth, "right": right, "distance": gap, "leading": near, "detail": said}


def leading_directions(found: Any, values: Array, vectors: Array, scales: Array) -> tuple[float | str, str]:
    """How near the first gradient directions lie to the eigenvectors, up to the clearest gap; and of all clear gaps.

    Args:
        found: a discovery, or a stand-in for one, which knows none.
        values: of the exact gradient covariance, descending, and
        vectors: its eigenvectors as rows.
        scales: what turns directions of standardised columns into those of its columns.
    """
    table = getattr(found, "combinations", None)
    if table is None or "gradient_direction" not in table:
        return "", ""
    rows = table["gradient_direction"].values * scales
    ratios = {
        j: float(values[j - 1] / max(values[j], EXACT * values[0])) for j in range(1, min(len(rows) + 1, len(values)))
    }
    clear = [j for j, ratio in ratios.items() if ratio >= GAP]
    near = {j: distance(rows[:j], vectors[:j]) for j in clear}
    sure = table["gradient_angle"].values if "gradient_angle" in table else np.full(len(rows), np.nan)
    listed = ", ".join(f"{j}: {near[j]:.3f} ({sure[j - 1]:.3f})" for j in clear)
    return near[max(clear, key=lambda j: ratios[j])] if clear else "", f"first directions of slope {listed}; "


def reduction_cases(rng: np.random.Generator) -> list[IndexCase]:
    """Three models x three kinds of predictors x 1000, 2000, 5000 rows, 20 times: round by round, the small first."""
    return [
        ReductionCase(model, predictors, n, int(rng.integers(2**31)))
        for _ in range(REPEATS) for n in SIZES for model in ReductionModel for predictors in Predictors
    ]  # fmt: skip


def spread_cases(rng: np.random.Generator) -> list[IndexCase]:
    """Ten seeds."""
    return [SpreadCase(int(seed)) for seed in rng.integers(2**31, size=SEEDS)]


def formula_cases(rng: np.random.Generator) -> list[IndexCase]:
    """Eight formulas with 600, 2000 and 200 rows and errors of 1 and 5 %."""
    return [
        FormulaCase(name, n, noise, int(rng.integers(2**31)))
        for n, noise in ((600, 0.01), (600, 0.05), (2000, 0.01), (2000, 0.05), (200, 0.01), (200, 0.05))
        for name in FORMULAS
    ]  # fmt: skip


def units_cases(rng: np.random.Generator) -> list[IndexCase]:
    """The same with 600 rows and their units."""
    return [UnitsCase(name, 600, noise, int(rng.integers(2**31))) for noise in (0.01, 0.05) for name in FORMULAS]


def engineering_cases(rng: np.random.Generator) -> list[IndexCase]:
    """Six functions without noise and with 5 %."""
    return [
        EngineeringCase(name, noise, int(rng.integers(2**31))) for noise in (0.0, 0.05) for name in ENGINEERING
    ]  # fmt: skip
