"""`BottleneckAutoencoder`: the least number of coordinates that give the data back."""

from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from isthmus.errors import ShapeError
from isthmus.estimators.shell import FLOATS, Array, Bottleneck, Samples, plain
from isthmus.tasks.arrays import counted
from isthmus.tasks.foreign import check_row_labels


class BottleneckAutoencoder(Bottleneck):
    """Data through the least number of coordinates, and back.

    The arguments are those of `BottleneckRegressor`.

    Attributes:
        rank_: number of coordinates.
        n_components_: the same, as decompositions of scikit-learn call it.
        scree_: error through 1, 2, 3, ... coordinates.
        discovery_: the whole `Discovery`, with its verdict and warnings.

    >>> model = isthmus.BottleneckAutoencoder(effort="quick", starts=1, ridge=1e-2, evaluations=10, random_state=0)
    >>> coordinates = model.fit_transform(x[:25, :2])
    >>> coordinates.shape == (25, model.n_components_), model.inverse_transform(coordinates).shape
    (True, (25, 2))
    """

    def fit(
        self, X: Samples, y: Samples = None, sample_weight: Samples = None, groups: Samples = None
    ) -> "BottleneckAutoencoder":
        """Find the dimension of the data and the two halves.

        Args:
            X: samples (n, d).
            y: ignored.
            sample_weight: a weight >= 0 for each sample.
            groups: a label for each sample; those of one group are held out together.

        Returns:
            Itself.
        """
        check_row_labels(X, {"sample_weight": sample_weight, "groups": groups}, in_order=False)
        rows = validate_data(self, plain(X), dtype=FLOATS, ensure_min_samples=2)
        self.n_components_: int = self._discover(rows, None, sample_weight, groups).rank
        return self

    def inverse_transform(self, X: Samples) -> Array:
        """The samples that belong to coordinates.

        Args:
            X: coordinates (n, n_components_).

        Returns:
            Samples (n, d), in the precision of the coordinates.

        Raises:
            ShapeError: another number of coordinates.
        """
        check_is_fitted(self)
        rows = check_array(X, dtype=FLOATS, ensure_min_features=0)
        if rows.shape[1] != self.n_components_:
            raise ShapeError(
                f"inverse_transform(X): needs {counted(self.n_components_, 'coordinate')} as columns, got shape "
                f"{rows.shape}."
            )
        return self.discovery_.loss.means(self.discovery_.decode(rows)).astype(rows.dtype)

    def score(self, X: Samples, y: Samples = None, sample_weight: Samples = None) -> float:
        """Share of the variance of X that the coordinates keep, R^2 over all columns together; 1 is best.

        Args:
            X: samples (n, d).
            y: ignored.
            sample_weight: a weight for each sample.

        Returns:
            R^2 in the user's units.
        """
        rows = self._rows(X)
        back = self.discovery_.loss.means(self.discovery_.predict(rows))
        return float(r2_score(rows, back, sample_weight=sample_weight, multioutput="variance_weighted"))
