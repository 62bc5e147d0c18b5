"""Factors of covariances: singular values and axes, from squares where these are as good; values of weight matrices.

Who sums the rows: `moments`. What is read off: `readings`.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg.blas import dsyrk  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType] - compiled
from torch import Tensor

EXACT_WORK = 2e8  # rows * width^2 up to which singular values are exact to rounding; above, they come from squares
PRODUCT_ROWS = 4096  # of a weight matrix that are widened to float64 at a time


class Factor:
    """F with F^T F = centred covariance (divided by n), and its singular value decomposition, taken at most once.

    Its singular values are those of the centred activations over sqrt(n); F W^T is a factor of those times W^T.

    Args:
        matrix: F, (k, width), or what makes it.
        axes: its right singular vectors as rows where they are known: F is then the values times the axes.
        values: its singular values, falling, where they are known.
        is_squared: whether values below 1e-8 of the largest are lost already, as they are when F comes from a
            covariance, or may be: what follows from F is then had from the smaller of its two Gram matrices, a tenth of
            the work of a singular value decomposition.
        gram: what makes that without F.
    """

    def __init__(
        self,
        matrix: Tensor | Callable[[], Tensor],
        *,
        values: Tensor | None = None,
        axes: Tensor | None = None,
        is_squared: bool = False,
        gram: Callable[[], Tensor] | None = None,
    ) -> None:
        self._matrix, self._values, self._axes, self._is_squared = matrix, values, axes, is_squared
        self._gram, self._left = gram, None

    @property
    def matrix(self) -> Tensor:
        """F; a product is made anew each time, since those of wide layers would fill the memory."""
        return self._matrix if isinstance(self._matrix, Tensor) else self._matrix()

    @property
    def values(self) -> Tensor:
        """Singular values, falling."""
        if self._values is None and not self._is_squared:
            self._values = torch.linalg.svdvals(self.matrix)
        elif self._values is None:
            self._values = _roots((self._gram or (lambda: _smaller_gram(self.matrix)))())
        return self._values

    def decompose(self) -> None:
        """Take values and axes at once, where the axes will be asked for."""
        if self._axes is not None or self._left is not None:
            return
        if not self._is_squared:
            _, self._values, self._axes = torch.linalg.svd(self.matrix, full_matrices=False)
            return
        matrix = self.matrix
        squares, vectors = torch.linalg.eigh(_smaller_gram(matrix))
        self._values, vectors = squares.clamp_min(0).sqrt().flip(0), vectors.flip(1)
        if len(matrix) <= matrix.shape[1]:
            self._left = vectors
        else:
            self._axes = vectors.mT

    def leading(self, count: int) -> Tensor:
        """The first right singular vectors as rows, in the order of `values`; 0 where the value is lost."""
        self.decompose()
        if self._axes is not None:
            return self._axes[:count]
        assert self._left is not None
        values = self.values[:count, None]
        return torch.where(values > 0, self._left[:, :count].mT @ self.matrix / values, 0.0)

    def through(self, weight: Tensor) -> "Factor":
        """The factor of activations times W^T."""

        def gram() -> Tensor:
            return _gram_of_product(self.matrix, weight)

        return Factor(lambda: self.matrix @ weight.double().mT, is_squared=self._is_squared, gram=gram)

    def on_leading(self, weight: Tensor, count: int) -> Tensor:
        """Singular values of W on the span of the first right singular vectors, falling."""
        return Factor(self.leading(count), is_squared=self._is_squared).through(weight).values


def weight_values(matrix: Tensor) -> Tensor:
    """Singular values of a matrix in float64, falling.

    Accuracy: exact to rounding of float64 matrices and of those up to 2e8 of larger times smaller side squared; of
    others from squares: values below 1e-8 of the largest are lost, and float32 rounds the matrix by more.
    """
    tall = matrix if len(matrix) >= matrix.shape[1] else matrix.mT
    if matrix.dtype is torch.float64 or len(tall) * tall.shape[1] ** 2 <= EXACT_WORK:
        return torch.linalg.svdvals(matrix.double())
    gram = tall.new_zeros(tall.shape[1], tall.shape[1], dtype=torch.float64)
    for part in tall.split(PRODUCT_ROWS):
        add_square(gram, part.double().contiguous())
    return _roots(gram)


def _gram_of_product(left: Tensor, weight: Tensor) -> Tensor:
    """The smaller Gram matrix of left W^T, its lower triangle at least; never the whole product of a large W."""
    if len(left) > len(weight):
        return _smaller_gram(left @ weight.double().mT)
    gram = left.new_zeros(len(left), len(left))
    for part in weight.split(PRODUCT_ROWS):
        add_square(gram, part.double() @ left.mT)
    return gram


def _smaller_gram(matrix: Tensor) -> Tensor:
    """Of rows or of columns, whichever are fewer; its lower triangle at least."""
    gram = matrix.new_zeros(min(matrix.shape), min(matrix.shape))
    add_square(gram, (matrix.mT if len(matrix) <= matrix.shape[1] else matrix).contiguous())
    return gram


def _roots(gram: Tensor) -> Tensor:
    """Singular values, falling, from squares."""
    return torch.linalg.eigvalsh(gram).clamp_min(0).sqrt().flip(0)


def add_square(total: Tensor, rows: Tensor) -> None:
    """Add A^T A to its lower triangle at least: on a CPU no more, which is half of the work, and in place."""
    if not rows.numel():
        return  # dsyrk refuses a matrix without columns
    if rows.device.type != "cpu":
        total.addmm_(rows.mT, rows)
        return
    whole = total.numpy().T
    out: np.ndarray = dsyrk(1.0, rows.numpy().T, beta=1.0, c=whole, overwrite_c=1)
    assert np.may_share_memory(out, whole)
