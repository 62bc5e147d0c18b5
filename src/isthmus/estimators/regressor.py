"""`BottleneckRegressor`: predict targets through as few coordinates as the task needs."""

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from isthmus.estimators.shell import FLOATS, Array, Bottleneck, Samples, plain
from isthmus.tasks.foreign import check_row_labels


class BottleneckRegressor(RegressorMixin, Bottleneck):
    """Regression through the least number of coordinates; `isthmus.discover` says what is computed.

    Args:
        encoder, decoder: "curved" or "linear", which rank is asked for. None: curved, but a linear encoder for one
            target, whose coordinates are the combinations of the inputs that it depends on.
        loss: by name, "squared" or another one of numbers, or as an object of `training.losses`. None: squared error.
            Under "gaussian" `predict` gives the mean, `discovery_.loss.spreads(discovery_.predict(X))` the spread.
        depth: number of weight matrices; more depth prefers fewer, more curved coordinates. None: 11.
        ridge: one ridge or several, of which the one with the least held-out error is kept. None: 1e-1 ... 3e-4, for
            targets of total variance 1.
        starts: starts at each ridge, the first from the linear map, the others random. None: 2.
        evaluations: gradient evaluations of each start. None: 800.
        max_seconds: wall time after which the search ends with what it has. None: no bound.
        scaling: "column" gives every column variance 1, "global" keeps the relative scale of the columns; "auto" is the
            first, and tries the second on columns of one kind where the answer is in doubt.
        effort: work that doubts are worth: "quick", none; "default", up to ten times that of the first answer, of many
            rows less; "thorough", four times that.
        random_state: an integer is the seed of `discover` itself; a generator, or None, draws one.
        n_jobs: threads that train side by side, as in scikit-learn: None is 1, -1 all cores.
        verbose: write a line on standard error for each tenth of the work.
        device: where networks are trained: None or "cpu", "cuda", or "auto" for a GPU where there is one.
        ordered: whether samples are a time series, of which whole stretches are held out.

    Attributes:
        rank_: number of coordinates.
        scree_: error through 1, 2, 3, ... coordinates.
        discovery_: the whole `Discovery`, with its verdict and warnings.

    >>> model = isthmus.BottleneckRegressor(effort="quick", starts=1, ridge=1e-2, evaluations=30, random_state=0)
    >>> model.fit(x, y).transform(x).shape == (60, model.rank_)
    True
    """

    def fit(
        self, X: Samples, y: Samples, sample_weight: Samples = None, groups: Samples = None
    ) -> "BottleneckRegressor":
        """Find the rank and the two halves.

        Args:
            X: samples (n, d_in).
            y: targets (n,) or (n, d_out).
            sample_weight: a weight >= 0 for each sample.
            groups: a label for each sample; those of one group are held out together.

        Returns:
            Itself.
        """
        check_row_labels(X, {"y": y, "sample_weight": sample_weight, "groups": groups}, in_order=False)
        rows, targets = validate_data(
            self, plain(X), plain(y), dtype=FLOATS, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        values, names = np.asarray(targets), getattr(y, "columns", None)
        if isinstance(y, pd.Series) and y.name is not None:
            names = [y.name]
        self._is_single_ = values.ndim == 1
        self._discover(rows, values if names is None else pd.DataFrame(values, columns=names), sample_weight, groups)
        return self

    def predict(self, X: Samples) -> Array:
        """Predictions for samples, in the shape that the targets had.

        Args:
            X: samples (n, d_in).

        Returns:
            Targets (n,) or (n, d_out), in float64.
        """
        found = self._predictions(X)
        return found[:, 0] if self._is_single_ else found

    def __sklearn_tags__(self) -> Tags:
        """Several targets at once are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
