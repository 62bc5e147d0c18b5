"""`BottleneckClassifier`: predict classes through as few coordinates as the task needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from isthmus.estimators.shell import FLOATS, Array, Bottleneck, Samples, plain
from isthmus.tasks.foreign import check_row_labels
from isthmus.tasks.weights_and_labels import checked_weights


class BottleneckClassifier(ClassifierMixin, Bottleneck):
    """Classification through the least number of coordinates.

    The arguments are those of `BottleneckRegressor`.

    Attributes:
        classes_: labels, sorted; those of samples of weight 0 alone are not among them.
        rank_: number of coordinates.
        scree_: error through 1, 2, 3, ... coordinates.
        discovery_: the whole `Discovery`, with its verdict and warnings.

    >>> model = isthmus.BottleneckClassifier(effort="quick", starts=1, ridge=1e-2, evaluations=30, random_state=0)
    >>> model.fit(x, x[:, 0] > 0).predict_proba(x).shape
    (60, 2)
    """

    def fit(
        self, X: Samples, y: Samples, sample_weight: Samples = None, groups: Samples = None
    ) -> "BottleneckClassifier":
        """Find the rank and the two halves.

        Args:
            X: samples (n, d_in).
            y: labels (n,).
            sample_weight: a weight >= 0 for each sample.
            groups: a label for each sample; those of one group are held out together.

        Returns:
            Itself.
        """
        check_row_labels(X, {"y": y, "sample_weight": sample_weight, "groups": groups}, in_order=False)
        rows, labels = validate_data(self, plain(X), plain(y), dtype=FLOATS, ensure_min_samples=2)
        check_classification_targets(labels)
        labels = column_or_1d(labels, warn=True)
        weights = checked_weights(sample_weight, len(labels))
        self.classes_: NDArray[Any] = np.unique(labels if weights is None else labels[weights > 0])
        self._discover(rows, labels, weights, groups, classes=True)
        return self

    def predict_proba(self, X: Samples) -> Array:
        """Probabilities of the classes.

        Args:
            X: samples (n, d_in).

        Returns:
            Probabilities (n, number of classes), in the order of `classes_`, in float64.
        """
        return self._predictions(X)

    def predict(self, X: Samples) -> NDArray[Any]:
        """The likeliest class of each sample.

        Args:
            X: samples (n, d_in).

        Returns:
            Labels (n,).
        """
        likeliest = self.predict_proba(X).argmax(1)
        return self.classes_[likeliest]
