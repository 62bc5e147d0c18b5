"""The data of one task with what is known about its rank. The tasks themselves are in the sibling files.

Splitting, standardising and training on a task are the business of `discovery` and `training`.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float64

from isthmus.tasks.input_columns import InputColumn
from isthmus.tasks.written_units import WrittenUnits


class Kind(StrEnum):
    """What the outputs of a task are.

    >>> tasks.circle(num_samples=20).kind.value
    'autoencoding'
    """

    REGRESSION = "regression"
    CLASSIFICATION = "classification"
    AUTOENCODING = "autoencoding"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Inputs, targets and the rank that a correct answer gives; samples are rows, numbers float64.

    Args:
        x: inputs, (n, d_in).
        y: targets, (n, d_out); None when autoencoding, where x is its own target; one 0/1 column per class for classes.
        true_rank: *exact* bottleneck rank of the task without its noise; None where it is not known.
        source: where the data come from, in one line.
        kind: what the targets are.
        ordered: neighbouring rows resemble each other (a time series): hold out whole blocks.
        x_names: names of the input columns, or empty.
        y_names: names of the target columns or of the classes, or empty.
        latent: the hidden coordinates behind the rows, where the task was made from them.
        jacobian_rank: largest rank of the map's Jacobian along the data, where it is known; never above `true_rank`.
        flat_rank: least rank of an affine map that is exact on the data, where it is known; never below `true_rank`.
        groups: a label per row, where rows of one label belong together.
        x_columns: how each input column was made from a table, or empty.
        units: of inputs and targets, as the table tells them; None where it was not asked.
        row_names: of the rows, where each is a file; or empty.
        directions: rows that span all gradients of the noise-free targets in the columns of x, where they are known.
        modes: rows that span what the noise-free targets take, up to a constant, where they are known.

    Raises:
        ValueError: x and y differ in length, names, directions or modes do not fit the columns, or the ranks are
            out of order.

    >>> tasks.Task(x=np.ones((3, 2)), y=np.ones((3, 1)), true_rank=1, source="by hand").x.shape
    (3, 2)
    """

    x: Float64[np.ndarray, "n d_in"]
    y: Float64[np.ndarray, "n_y d_out"] | None
    true_rank: int | None
    source: str
    kind: Kind = Kind.REGRESSION
    ordered: bool = False
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()
    latent: Float64[np.ndarray, "n latent_dim"] | None = None
    jacobian_rank: int | None = None
    flat_rank: int | None = None
    groups: np.ndarray | None = None
    x_columns: tuple[InputColumn, ...] = ()
    directions: Float64[np.ndarray, "index_rank d_x"] | None = None
    modes: Float64[np.ndarray, "mode_rank d_target"] | None = None
    units: WrittenUnits | None = None
    row_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.y is None) != (self.kind is Kind.AUTOENCODING):
            raise ValueError(
                f"Task(kind={self.kind}): needs y=None exactly when autoencoding, got y of {type(self.y)}."
            )
        if self.y is not None and len(self.y) != len(self.x):
            raise ValueError(f"Task: needs one row of y per row of x, got {len(self.x)} of x and {len(self.y)} of y.")
        for name, names, columns in (("x", self.x_names, self.x), ("y", self.y_names, self.y)):
            if names and (columns is None or columns.shape[1] != len(names)):
                raise ValueError(f"Task: needs as many {name}_names as columns of {name}, got {len(names)}: {names}.")
        known = [k for k in (self.jacobian_rank, self.true_rank, self.flat_rank) if k is not None]
        if known != sorted(known):
            raise ValueError(f"Task: needs jacobian_rank <= true_rank <= flat_rank, got {known}.")
        for name, rows, columns in (("directions", self.directions, self.x), ("modes", self.modes, self.target)):
            if rows is not None and (rows.shape[1] != columns.shape[1] or len(rows) < (self.true_rank or 0)):
                raise ValueError(
                    f"Task: needs at least true_rank = {self.true_rank} {name} of {columns.shape[1]} columns, got "
                    f"{rows.shape}."
                )

    @property
    def num_samples(self) -> int:
        """Number of rows n."""
        return len(self.x)

    @property
    def index_rank(self) -> int | None:
        """Number of combinations of the columns of x that the targets depend on: that of `directions`."""
        return None if self.directions is None else len(self.directions)

    @property
    def mode_rank(self) -> int | None:
        """Dimension of the affine hull of what the targets take: the number of `modes`."""
        return None if self.modes is None else len(self.modes)

    @property
    def target(self) -> Float64[np.ndarray, "n d_out"]:
        """What the network is to answer: y, or x when autoencoding."""
        return self.x if self.y is None else self.y
