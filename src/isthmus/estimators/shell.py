"""What the three estimators share: their arguments, the call of `discover`, the coordinates. The rest: their files."""

import sys
from operator import index
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
import xarray as xr
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from isthmus.discovery import Discovery, discover
from isthmus.discovery.work.unit import Progress
from isthmus.tasks.arrays import tensor_numbers
from isthmus.training import Limits
from isthmus.training.losses import loss_argument, usual_loss

FLOATS: Any = [np.float64, np.float32]
Array = NDArray[np.floating[Any]]
# scikit-learn's rules: `__init__` stores whatever comes, and its own checks refuse data in their own words, so that a
# type narrower than these two would refuse first
Argument: TypeAlias = Any
Samples: TypeAlias = Any


class Bottleneck(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Arguments, coordinates and their names; `fit` and what follows from the targets is up to the three estimators.

    The arguments are described by `BottleneckRegressor`.
    """

    def __init__(  # noqa: PLR0913 - the arguments are a public contract
        self,
        *,
        encoder: Argument = None,
        decoder: Argument = None,
        loss: Argument = None,
        depth: Argument = None,
        ridge: Argument = None,
        starts: Argument = None,
        evaluations: Argument = None,
        max_seconds: Argument = None,
        scaling: Argument = "auto",
        effort: Argument = "default",
        random_state: Argument = None,
        n_jobs: Argument = None,
        verbose: Argument = False,
        device: Argument = None,
        ordered: Argument = False,
    ) -> None:
        self.encoder = encoder
        self.decoder = decoder
        self.loss = loss
        self.depth = depth
        self.ridge = ridge
        self.starts = starts
        self.evaluations = evaluations
        self.max_seconds = max_seconds
        self.scaling = scaling
        self.effort = effort
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.device = device
        self.ordered = ordered

    def transform(self, X: Samples) -> Array:
        """The coordinates of samples (n, rank): centred and decorrelated on the training data, signs fixed.

        The coordinate that saves most error comes first: the one without which predictions change most.

        Args:
            X: samples (n, d_in).

        Returns:
            Coordinates in the precision of X.
        """
        rows = self._rows(X)
        return self.discovery_.transform(rows).astype(rows.dtype)

    def _discover(
        self, X: Samples, y: Samples, sample_weight: Samples, groups: Samples, *, classes: bool = False
    ) -> Discovery:
        """Run `discover` on checked data and keep the discovery with its rank and its curve."""
        loss = usual_loss(classes=classes) if self.loss is None else loss_argument(self.loss, type(self).__name__)
        if loss.classes != classes:
            needed = f"a loss of {'classes' if classes else 'numbers'}"
            raise ValueError(f"{type(self).__name__}(loss={loss.name!r}): needs {needed}. Leave it out for the usual.")
        names = getattr(self, "feature_names_in_", None)
        found = discover(
            X if names is None else pd.DataFrame(X, columns=names),
            y,
            encoder=self.encoder,
            decoder=self.decoder,
            loss=loss,
            depth=_whole(self.depth, "depth"),
            ridge=None if self.ridge is None else np.ravel(self.ridge).tolist(),
            starts=_whole(self.starts, "starts"),
            scaling=self.scaling,
            effort=self.effort,
            sample_weight=None if sample_weight is None else np.asarray(sample_weight),  # row for row, as in sklearn
            groups=None if groups is None else np.asarray(groups),
            ordered=self.ordered,
            seed=self._seed(),
            limits=Limits(seconds=self.max_seconds, evaluations=_whole(self.evaluations, "evaluations")),
            progress=VerboseLines(type(self).__name__) if self.verbose else None,
            workers=_num_threads(self.n_jobs),
            device=self.device,
        )
        self.discovery_: Discovery = found
        self.rank_: int = found.rank
        self.scree_: xr.Dataset = found.scree
        return found

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        if isinstance(self.random_state, np.random.Generator):  # which scikit-learn does not know
            return int(self.random_state.integers(2**31 - 1))
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _rows(self, X: Samples) -> Array:
        """New samples, checked against those of the fit."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, plain(X), reset=False, dtype=FLOATS))

    def _predictions(self, X: Samples) -> Array:
        """Expected targets, of classes their probabilities, in float64 whatever X is in, shape (n, d_out)."""
        rows = self._rows(X)  # which says so where nothing was fitted
        return self.discovery_.loss.means(self.discovery_.predict(rows))

    @property
    def _n_features_out(self) -> int:
        """Number of coordinates, from which scikit-learn makes their names."""
        return self.discovery_.rank

    def __sklearn_tags__(self) -> Tags:
        """Coordinates keep the precision of the samples."""
        tags = super().__sklearn_tags__()
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def plain(values: Any) -> Any:
    """Values as scikit-learn takes them: tensors, also of types that numpy lacks, as arrays."""
    return tensor_numbers(values, "tensor") if isinstance(values, torch.Tensor) else values


def _whole(number: Any, said: str) -> int | None:
    """Plain Python of an integer, also of one that a search drew with numpy; `said` names the argument.

    Raises:
        TypeError: no whole number.
    """
    try:
        if isinstance(number, bool):
            raise TypeError
        return None if number is None else index(number)
    except TypeError:
        raise TypeError(f"{said}={str(number)[:40]}: needs a whole number, or None for the default.") from None


def _num_threads(n_jobs: Any) -> int:
    """What scikit-learn means by `n_jobs`: None is 1, or what `joblib.parallel_config` says; -1 is every core."""
    found: Any = effective_n_jobs(n_jobs)
    return int(found)


class VerboseLines:
    """What `verbose` shows: hears progress and writes a line on stderr when a new tenth of the work is done."""

    def __init__(self, name: str) -> None:
        self.name, self.part, self.shown = name, "", -1

    def __call__(self, progress: Progress) -> None:
        """Hear one event."""
        tenth = int(10 * progress.fraction)
        is_service = sys.stderr is None  # pyright: ignore[reportUnnecessaryComparison] - as under pythonw
        if is_service or (progress.part == self.part and tenth <= self.shown):
            return
        self.part, self.shown = progress.part, tenth
        rank = "" if progress.rank is None else f", rank {progress.rank} so far"
        left = "" if progress.seconds_left is None else f", about {progress.seconds_left:.0f} s left"
        part = f"{progress.part}: " if progress.part else ""
        sys.stderr.write(f"[{self.name}] {10 * tenth:3d} % {part}{progress.stage}{rank}{left}\n")
