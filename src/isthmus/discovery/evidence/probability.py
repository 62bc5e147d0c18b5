"""How often a rank that was read like this one was right, on tasks of known rank; a set of ranks that holds the truth.

    log odds of "right" = a + b . features + [confident] c . features,  b, c >= 0
    set of step s:  {rank}, the hull of all readings, then one rank more on either side at each step

What is read weighs otherwise in a confident answer, which passed every check: of combinations for one target all that
were told .9 and more without c were right, and of those told .8 to .9 only 12 of 20.

The numbers a, b, c and the steps by verdict are fitted by `benchmarks/calibration.py` to tasks that people made, and
are as good as these are like the one at hand: both are *estimates*. Nothing is said before enough were measured.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from isthmus.theory import Verdict

VERDICTS, READ = ("confident", "doubtful"), ("agreement", "sharpness", "margin", "resamples", "rows")
FEATURES = (*VERDICTS, *READ, *(f"confident {name}" for name in READ))
FEW, ENOUGH_ROWS = 16, 240  # rows trained on: the least of the tasks that were measured; from where more change nothing
MOST_SHARP = 1.0  # sharpness and margin beyond which nothing more is learnt
ENOUGH_TASKS = 100  # fewer tell nothing: fitted to one suite of 20, another was told .25 where all were right
CURVES = ("objective_rank", "scree_rank", "jacobian_rank")
Readings = Mapping[str, float | int | None]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was fitted.

    Attributes:
        intercept, weights: of the log odds, the weights by feature and not negative.
        steps: of the set of ranks by the name of the verdict.
        tasks: of known rank that it was fitted to.
    """

    intercept: float
    weights: Mapping[str, float]
    steps: Mapping[str, int]
    tasks: int

    def probability(self, rank: int, verdict: Verdict, readings: Readings) -> float:
        """That the rank is right."""
        odds = self.intercept + sum(self.weights[k] * v for k, v in features(rank, verdict, readings).items())
        return 1 / (1 + math.exp(-odds))

    def ranks(self, rank: int, verdict: Verdict, readings: Readings, *, most: int) -> tuple[int, ...]:
        """The ranks, in order, that hold the truth of 95 of 100 such tasks; none above `most`."""
        low, high = hull(rank, readings, self.steps[verdict.name])
        return tuple(range(max(low, 0), min(high, most) + 1))


def features(rank: int, verdict: Verdict, readings: Readings) -> dict[str, float]:
    """What the probability is told of an answer, each from 0 to 1, more speaking for the answer."""
    curves = [readings.get(name) for name in CURVES]
    confident = float(verdict is Verdict.CONFIDENT)
    read = {
        "agreement": sum(one == rank for one in curves) / len(curves),
        "sharpness": _share(readings.get("sharpness")),
        "margin": _share(readings.get("scree_margin")),
        "resamples": float(readings.get("resample_share") or 0.0),
        "rows": _between(math.log(max(float(readings["rows"] or 0), 1)), math.log(FEW), math.log(ENOUGH_ROWS)),
    }
    return {
        "confident": confident,
        "doubtful": float(verdict in {Verdict.CONFIDENT, Verdict.DOUBTFUL}),
        **read,
        **{f"confident {name}": confident * value for name, value in read.items()},
    }


def _between(value: float, low: float, high: float) -> float:
    """From 0 at `low` and below it to 1 at `high` and above."""
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _share(value: float | None) -> float:
    """From 0 to 1; none is known where the curve ends at the rank, which is as sharp as can be."""
    return 1.0 if value is None else min(max(float(value), 0.0), MOST_SHARP) / MOST_SHARP


def hull(rank: int, readings: Readings, step: int) -> tuple[int, int]:
    """The least and the largest rank of the set of a step."""
    if step == 0:
        return rank, rank
    read = [rank, *(int(value) for name in CURVES if (value := readings.get(name)) is not None)]
    return min(read) - (step - 1), max(read) + (step - 1)


def steps_to(truth: int, rank: int, readings: Readings) -> int:
    """The least step whose set holds the truth."""
    step = 0
    while not hull(rank, readings, step)[0] <= truth <= hull(rank, readings, step)[1]:
        step += 1
    return step


def enough_steps(steps: list[int], share: float = 0.95) -> int:
    """The step that holds the truth of this share of further tasks like these (split conformal prediction).

    Of n tasks the ceil((n + 1) share)-th least; of too few for that, one more than the largest.
    """
    place = math.ceil((len(steps) + 1) * share)
    return sorted(steps)[place - 1] if 0 < place <= len(steps) else max(steps, default=1) + 1


def calibration(kind: str, task: str, readings: Readings) -> Calibration | None:
    """Of a kind of rank and of task; None where too few were measured, or not all is known that it asks of an answer.

    Of tasks of fewer rows than any that was measured nothing is known either.
    """
    known = readings.keys() >= {*CURVES, "rows"} and float(readings["rows"] or 0) >= FEW
    return calibration_of_kind(f"{kind}, {task}") if known else None


@cache
def calibration_of_kind(kind: str) -> Calibration | None:
    """Of a kind as the table names it; None where too few tasks of it were measured."""
    found: Any = json.loads(files(__package__ or "").joinpath("calibration.json").read_text("utf-8"))["kinds"].get(kind)
    return None if found is None or found["tasks"] < ENOUGH_TASKS else Calibration(**found)


def fitted(rows: np.ndarray, right: np.ndarray, *, penalty: float = 1.0) -> tuple[float, np.ndarray]:
    """Intercept and weights >= 0 of a logistic regression, |weights|^2 * penalty / 2 beside the likelihood.

    Args:
        rows: features (n, k).
        right: 0 or 1, (n,).
        penalty: of the weights; the intercept has none.
    """
    from scipy.optimize import minimize  # nothing that reads a probability needs it

    sign = 2.0 * right - 1

    def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (p[0] + rows @ p[1:])
        pull = -sign / (1 + np.exp(margin))
        value = np.logaddexp(0, -margin).sum() + penalty / 2 * (p[1:] ** 2).sum()
        return float(value), np.concatenate([[pull.sum()], rows.T @ pull + penalty * p[1:]])

    bounds = [(None, None), *[(0.0, None)] * rows.shape[1]]
    found = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, bounds=bounds, method="L-BFGS-B")
    return float(found.x[0]), found.x[1:]
