"""Of classes, the least number of dimensions through which as many are told apart as through any.

    accuracy rank = least k such that  a_k >= a_b - sqrt(a_b (1 - a_b) / n),   b the rank that tells most apart

with a_k the share of all n rows told right through k, each by networks that were not fitted to it: the rule of one
standard error. That of the difference of the same rows is a third of it, and the best of many ranks, which is the best
by chance too, exceeds the truth by more: 6 for 4 where .709 are told right through 4 and .714 through 6.

The rank of the least minimum, which the rest of `discovery` asks for, counts what lowers the objective, and that is not
what tells classes apart: halves of its search tell .614 of 1,172 rows around 13 centres in 3 dimensions through 3, .769
through 4. So networks are trained here that only have to predict, from random weights. Depth and ridge are those of
least loss on rows held out of the rows trained on. Through few dimensions training ends in worse minima than through
many (.735 for .789 there, of two starts each), so networks of many dimensions tell those of few what they say of each
row trained on, not its class alone:

    loss of a network of rank k:   cross-entropy of f_k(x_i) against  mean_t softmax(f_t(x_i) / HEAT)

(distillation; the networks f_t have up to `WHOLE` dimensions). .673, .792 and .784 are right through 2, 3 and 4 then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from isthmus.discovery.choices import OVERSHOOT, WHOLE, steps_upwards
from isthmus.discovery.data.problem import Numbers, Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import FOLDS, numbered_apart
from isthmus.discovery.evidence.confidence import Array
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.minimum import Minimum, least
from isthmus.discovery.search import Search
from isthmus.discovery.settings import CONNECTED, Settings
from isthmus.discovery.work.search_memory import Foresight
from isthmus.discovery.work.unit import Unit
from isthmus.theory.curve_readings import standard_error
from isthmus.training import Outcome

WORDS = "rank for accuracy"  # what the bar says of the work for it
FACTORS = np.geomspace(0.05, 5.0, 24).tolist()  # of logits
TEACHERS = 3  # networks of many dimensions, which tell the others
STARTS = 3  # of who is told, through each rank: of one through 1 dimension .76 were right, of the lowest of three .86
HEAT = 4.0  # by which their logits are divided: told at 2 the others were right less often
EASED = 3.0  # by which the ridge is divided for who is told: what is told has no noise to fit
RESAMPLES, SEED = 400, 11
Right = Array  # (ranks from 0, rows): 1 where a row's class is predicted


@dataclass(frozen=True, slots=True, eq=False)
class AccuracyRank:
    """The rank of accuracy, an *estimate*.

    Attributes:
        rank: the least that is within one standard error of the best.
        low, high: that hold 95 % of what resampled rows give.
        accuracy: share of the rows told right through 0, 1, 2, ... dimensions.
        error: standard error of each.
    """

    rank: int
    low: int
    high: int
    accuracy: Array
    error: Array

    def of_ranks(self, ranks: Sequence[int]) -> dict[str, tuple[str, Array]]:
        """The columns that a table by rank gets, NaN beyond the ranks that are known."""
        known = {"fold_accuracy": self.accuracy, "fold_accuracy_error": self.error}
        return {
            name: ("rank", np.array([values[r] if r < len(values) else np.nan for r in ranks]))
            for name, values in known.items()
        }

    def as_readings(self) -> dict[str, float | int | None]:
        """Its numbers among the readings of a discovery."""
        return {"accuracy_rank": self.rank, "accuracy_rank_low": self.low, "accuracy_rank_high": self.high}


@dataclass(frozen=True, slots=True)
class HalfShape:
    """Curved layers on each side of the middle, and the ridge."""

    layers: int
    ridge: float


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutRows:
    """A problem whose held-out rows are to be told apart, and what its trainings are called."""

    name: str
    problem: Problem
    settings: Settings

    def unit(self, shape: HalfShape, rank: int, start: int, *, told: Tensor | None = None) -> Unit:
        """Train a network of a shape through so many dimensions, on classes or on what it is told of them."""
        compute = partial(self._family(shape).through, ridge=shape.ridge, rank=rank, number=start, told=told)
        phase = f"accuracy-{self.name}-{shape.layers}-{rank}{'' if told is None else '-told'}"
        return Unit(f"{phase}-{shape.ridge:g}-{start}", compute, _cost(self.settings), WORDS, shape.ridge, start)

    def told(self, shape: HalfShape, minima: Sequence[Minimum]) -> Tensor | None:
        """What networks say of the rows trained on, in the mean; None where there are none."""
        networks = [self._family(shape).network_of(minimum) for minimum in minima if minimum.usable]
        with torch.no_grad():
            shares = [(network(self.problem.x) / HEAT).softmax(1) for network in networks]
        return torch.stack(shares).mean(0) if shares else None

    def right(self, shape: HalfShape, minimum: Minimum) -> Array:
        """Which held-out rows its network tells right."""
        return self.problem.right(self._family(shape).network_of(minimum)).numpy()

    def loss(self, shape: HalfShape, minimum: Minimum) -> float:
        """The loss of its network on the held-out rows, by the best common factor of its logits; infinite if unusable.

        A small ridge makes logits large, which says nothing of which one is the largest.
        """
        if not minimum.usable:
            return math.inf
        with torch.no_grad():
            logits = self._family(shape).network_of(minimum)(self.problem.x_held).double()
        y, weight = self.problem.y_held, self.problem.weight_held
        return min(self.problem.loss_of(logits * factor, y, weight) for factor in FACTORS)

    def right_by_constant(self) -> Array:
        """Which the most frequent class tells right."""
        return np.asarray(self.problem.y_held == int(self.problem.best_constant().argmax()), dtype=np.float64)

    def _family(self, shape: HalfShape) -> Connected:
        return Connected(self.problem, replace(self.settings, relu_layers=shape.layers))


Place = tuple[HeldOutRows, HalfShape, Tensor | None]  # of which shape its networks are, and what they are told


class OutOfTime(Exception):  # noqa: N818 - not an error: the time limit was met
    """Raised where a training was cut short, so that nothing is known."""


class Trainings:
    """All that is trained for the rank for accuracy, after a search of the same rows."""

    def __init__(self, sample: Sample, search: Search) -> None:
        self.settings, self.runner = replace(search.size.settings, network=CONNECTED), search.runner
        self.ridge, self.parts = search.trained.ridge, sample.folds(self.settings, FOLDS)

    def best_shapes(self, rank: int) -> list[HalfShape]:
        """Of each part, that of the least loss on rows held out of those that it is trained on.

        The best ridge of networks with one curved layer, and that depth or the one of the search.
        """
        posed = [part.without_held(self.settings).posed_again(self.settings) for part in self.parts]
        inner = [
            HeldOutRows(f"within-{n}", problem, self.settings) for n, problem in enumerate(posed) if problem is not None
        ]
        if len(inner) < len(self.parts):  # one class is left
            return [HalfShape(1, self.ridge)] * len(self.parts)
        tried = [[HalfShape(1, ridge) for ridge in self.settings.ridges] for _ in inner]
        losses = self._losses(inner, tried, rank)
        best = [min(of_part, key=of_part.__getitem__) for of_part in losses]
        deeper = self._losses(inner, [[replace(shape, layers=self.settings.relu_layers)] for shape in best], rank)
        both = [of_part | more for of_part, more in zip(losses, deeper, strict=True)]
        return [min(of_part, key=of_part.__getitem__) for of_part in both]

    def told(self, parts: Sequence[HeldOutRows], chosen: Sequence[HalfShape], rank: int) -> list[Tensor | None]:
        """What networks of so many dimensions say of the rows that each part is trained on."""
        places = list(zip(parts, chosen, strict=True))
        minima = self._minima([part.unit(shape, rank, n) for part, shape in places for n in range(TEACHERS)])
        found = [minima[i : i + TEACHERS] for i in range(0, len(minima), TEACHERS)]
        return [part.told(shape, some) for (part, shape), some in zip(places, found, strict=True)]

    def right(self, places: Sequence[Place], ranks: Sequence[int]) -> list[dict[int, Array]]:
        """Of each part, by rank, which held-out rows the lowest of the networks that were told tells right."""
        eased = [(part, replace(shape, ridge=shape.ridge / EASED), told) for part, shape, told in places]
        numbers = range(STARTS)
        found = iter(self._minima([p.unit(s, r, n, told=told) for p, s, told in eased for r in ranks for n in numbers]))
        right: list[dict[int, Array]] = [{} for _ in eased]
        for of_part, (part, shape, _) in zip(right, eased, strict=True):
            for rank in ranks:
                if usable := [minimum for _ in numbers if (minimum := next(found)).usable]:
                    of_part[rank] = part.right(shape, least(usable))
        return right

    def _losses(
        self, parts: Sequence[HeldOutRows], shapes: Sequence[Sequence[HalfShape]], rank: int
    ) -> list[dict[HalfShape, float]]:
        """Of each part the losses of its shapes."""
        each = list(zip(parts, shapes, strict=True))
        found = iter(self._minima([part.unit(shape, rank, 0) for part, its in each for shape in its]))
        return [{shape: part.loss(shape, next(found)) for shape in its} for part, its in each]

    def _minima(self, units: Sequence[Unit]) -> list[Minimum]:
        minima = self.runner.run(units)
        if self.runner.out_of_time() or any(minimum.outcome is Outcome.TIME_LIMIT for minimum in minima):
            raise OutOfTime
        return minima


def planned_evaluations(foresight: Foresight, settings: Settings) -> int:
    """Gradient evaluations that the rank for accuracy will take beside a search that takes that."""
    ranks, _ = foresight.batches[-1]
    count = len(settings.ridges) + 1 + TEACHERS + STARTS * ranks
    return FOLDS * count * _cost(settings)


def _cost(settings: Settings) -> int:
    return settings.linear_steps + settings.linear_steps // 8


def accuracy_rank(sample: Sample, search: Search) -> AccuracyRank | None:
    """By networks that together hold out every row once; None where time ran out or a part of the rows is one class.

    Ranks are tried up to two above what the search reads, and on while the last of them is found.
    """
    search.runner.tracker.begin(WORDS, planned_evaluations(search.size.foresight, search.size.settings))
    trainings = Trainings(sample, search)
    posed = [part.posed_again(trainings.settings) for part in trainings.parts]
    problems = [problem for problem in posed if problem is not None]
    if len(problems) < len(posed):
        return None
    parts = [HeldOutRows(f"fold-{n}", problem, trainings.settings) for n, problem in enumerate(problems)]
    weights = [part.held_weight for part in trainings.parts]
    together = numbered_apart([problem.together_held for problem in problems])
    read_off, limit = search.readings, search.size.family.most_rank
    top = max(read_off.objective.rank, read_off.scree.rank, read_off.jacobian_rank, search.decision.rank, 1)
    right, most = [[part.right_by_constant()] for part in parts], min(top + OVERSHOOT, limit)
    try:
        free = min(limit, WHOLE)
        chosen = trainings.best_shapes(free)
        told = trainings.told(parts, chosen, free)
        places = list(zip(parts, chosen, told, strict=True))
        while True:
            new = range(len(right[0]), most + 1)
            by_rank = trainings.right(places, steps_upwards(new[0], most, gaps=most > WHOLE))
            for rows, of_part in zip(right, by_rank, strict=True):
                for rank in new:  # one that was not trained is as the one below it
                    rows.append(of_part.get(rank, rows[-1]))
            found = read([np.stack(rows) for rows in right], weights, together)
            if found.rank < most or most == limit:
                return found
            most = min(most + max(most // 4, OVERSHOOT), limit)
    except OutOfTime:
        return None


def read(found: Sequence[Right], weights: Sequence[Array], together: Numbers | None = None) -> AccuracyRank:
    """The rank from what each part of the rows says; a rank beyond those of a part is as its largest.

    Args:
        found: of each part.
        weights: of its rows.
        together: a number of each row of all parts, the same for rows that are right or wrong together.
    """
    most = max(len(right) for right in found)
    right = np.concatenate([np.pad(part, ((0, most - len(part)), (0, 0)), mode="edge") for part in found], axis=1)
    weight = np.concatenate(weights)
    weight = weight / weight.sum()
    rng, n = np.random.default_rng(SEED), len(weight)
    number = np.arange(n) if together is None else together
    again = [_rank(right[:, rows], weight[rows], of) for rows, of in (drawn(number, rng) for _ in range(RESAMPLES))]
    low, high = np.quantile(again, [0.025, 0.975], method="inverted_cdf").astype(int).tolist()
    accuracy = right @ weight
    error = standard_error(right, weight, together)
    return AccuracyRank(_rank(right, weight, together), low, high, accuracy, error)


def drawn(number: Numbers, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Rows of as many numbers, drawn with replacement, and a number of each: what is drawn twice counts as two."""
    m = int(number.max()) + 1
    times = np.bincount(rng.integers(0, m, m), minlength=m)[number]
    rows = np.repeat(np.arange(len(number)), times)
    copy = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, number[rows] + m * copy


def _rank(right: Right, weight: Array, together: Numbers | None) -> int:
    """The least rank within one standard error of the best."""
    share = weight / weight.sum()
    means = right @ share
    best = int(means.argmax())
    allowed = max(float(standard_error(right[best], share, together)), float(share.max()))  # where all are right, a row
    return int(np.flatnonzero(means >= means[best] - allowed)[0])
