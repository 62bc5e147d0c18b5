"""What a discovery is compared with: estimators of intrinsic dimension, and held-out errors of usual predictors.

The rows and the table: `intrinsic_dimension`. The split and the units are those of a discovery with default settings.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.data.splitting import heldout_rows
from isthmus.tasks import Kind, Task
from isthmus.theory import neighbour_dimensions as nearest

Array = NDArray[np.float64]
SURE = 1e-4  # a forest that gives a class no chance at all would have an infinite cross-entropy
PENALTIES = np.logspace(-3, 3, 13)
TREES, NEIGHBOURS = 300, 5


def neighbour_estimates(x: Array) -> dict[str, float]:
    """The estimators of intrinsic dimension by name, on the columns as they are."""
    points = torch.from_numpy(x)
    return {
        "two_nn": nearest.two_neighbour_dimension(points),
        "mle": nearest.likeliest_dimension(points),
        "mom": nearest.mean_distance_dimension(points),
        "corr": nearest.correlation_dimension(points),
        "pca": float(nearest.principal_dimension(points)),
    }


@dataclass(frozen=True)
class Split:
    """A task as a discovery sees it: standardised, the same rows held out."""

    x: Array
    y: Array  # of total variance 1, or class numbers
    held: NDArray[np.bool_]
    classes: bool

    @classmethod
    def of(cls, task: Task) -> "Split":
        """The split of seed 0."""
        classes = task.kind is Kind.CLASSIFICATION
        y = task.target.argmax(1).astype(np.float64) if classes else task.target
        targets = y if classes else Standardiser.of(y, total=True).apply(y)
        return cls(Standardiser.of(task.x).apply(task.x), targets, heldout_rows(len(task.x), seed=0), classes)

    def error(self, model: Any) -> float:
        """Held-out error of a model fitted to the other rows, 1 for the best constant of all rows."""
        model.fit(self.x[~self.held], self.y[~self.held])
        x, y = self.x[self.held], self.y[self.held]
        if not self.classes:
            left = (np.asarray(model.predict(x)).reshape(len(y), -1) - y.reshape(len(y), -1)) ** 2
            return float(left.sum(1).mean())
        chances = np.clip(model.predict_proba(x), SURE, 1.0)
        _, counts = np.unique(self.y, return_counts=True)
        shares = counts / counts.sum()
        right = chances[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        return float(-np.log(right).mean() / -(shares * np.log(shares)).sum())


def heldout_errors(task: Task, rank: int) -> dict[str, float]:
    """Held-out errors of a ridge, of a regression on `rank` principal components, and of a random forest."""
    split = Split.of(task)
    linear: Any = LogisticRegression(max_iter=2000) if split.classes else LinearRegression()
    ridge: Any = LogisticRegression(max_iter=2000) if split.classes else RidgeCV(PENALTIES)
    forest: Any = (RandomForestClassifier if split.classes else RandomForestRegressor)(TREES, random_state=0)
    k = max(1, min(rank, *split.x.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {"pca_error": split.error(make_pipeline(PCA(k, random_state=0), linear))}
        if task.kind is not Kind.AUTOENCODING:  # predicting x from x, a ridge and a forest have nothing to find
            found |= {"ridge_error": split.error(ridge), "forest_error": split.error(forest)}
    return found


def explained(a: Array, b: Array) -> float:
    """Least R^2 over the columns of b, predicted on every other row from the 5 nearest in a (standardised columns)."""
    z = (a - a.mean(0)) / a.std(0)
    model = KNeighborsRegressor(NEIGHBOURS).fit(z[::2], b[::2])
    left = np.square(np.asarray(model.predict(z[1::2])) - b[1::2]).mean(0)
    return float((1 - left / b[1::2].var(0)).min())
