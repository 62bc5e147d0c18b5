"""Kernel ridge regression with its Jacobian: the baseline that learns no dimensions.

On noisy data its Jacobian has full rank whatever the task's rank; networks and `discovery` are compared with it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_positive, check_tensor


@dataclass(frozen=True, slots=True)
class KernelRidge:
    """A fitted Gaussian kernel ridge regression, f(x) = sum_i exp(-|x - x_i|^2 / (2 h^2)) c_i.

    Attributes:
        centres: x_i, shape (m, d_in).
        coefficients: c_i, shape (m, d_out).
        bandwidth: h.
    """

    centres: Tensor
    coefficients: Tensor
    bandwidth: float

    def __call__(self, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n d_out"]:
        """f(x), samples as rows."""
        return _gaussian(x, self.centres, self.bandwidth) @ self.coefficients

    def jacobian(self, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n d_out d_in"]:
        """Jf(x) = - sum_i c_i (x - x_i)^T k(x, x_i) / h^2, *exact*, one matrix per sample.

        Its rank is min(d_out, d_in, m, affine dimension of the centres + 1) for generic x and noisy outputs; a
        bandwidth far below the distances underflows to rank 0.
        """
        kernel, origin = _gaussian(x, self.centres, self.bandwidth), self.centres.mean(0)
        # sum_i k_i c_i (x_i - x)^T without an (n, m, d_in) tensor; from among them: far away both parts cancel
        moments = torch.einsum("nm,mo,mi->noi", kernel, self.coefficients, self.centres - origin)
        return (moments - (kernel @ self.coefficients)[:, :, None] * (x - origin)[:, None, :]) / self.bandwidth**2


def kernel_ridge(
    x: Float[Tensor, "n d_in"], y: Float[Tensor, "n d_out"], *, ridge: Real, bandwidth: Real
) -> KernelRidge:
    """Gaussian kernel ridge regression (*exact* solution of its linear system).

        c = (K + ridge I)^{-1} y,   K_ij = exp(-|x_i - x_j|^2 / (2 h^2))

    Args:
        x: inputs, rows.
        y: outputs, rows.
        ridge: added to the diagonal of K, > 0; not divided by the number of samples.
        bandwidth: h > 0, in units of x.

    Raises:
        ValueError: `ridge` or `bandwidth` <= 0, or a ridge lost in the rounding of K, NaN or infinity.
        ShapeError: numbers of rows that differ.
        TypeError: complex or integer tensor.

    Accuracy: eps |K| / ridge. Cost O(n^3).
    Source: Jacot 2023a, Appendix D.1, with sign and rank corrected. Test: FC-26.

    >>> fit = theory.kernel_ridge([[0], [1]], [[1], [2]], ridge=1e-9, bandwidth=1)
    >>> round(float(fit(torch.tensor([[1.0]], dtype=torch.float64))), 6)
    2.0
    """
    check_tensor("kernel_ridge", "x", x, ndim=2)
    check_tensor("kernel_ridge", "y", y, ndim=2)
    check_positive("kernel_ridge", "ridge", ridge)
    check_positive("kernel_ridge", "bandwidth", bandwidth)
    if len(x) != len(y):
        raise ShapeError(f"kernel_ridge: needs one y per x; got {len(y)} and {len(x)} rows. Pair them.")
    gram = _gaussian(x, x, bandwidth)
    gram.diagonal().add_(ridge)
    factor, failed = torch.linalg.cholesky_ex(gram)
    if int(failed):
        raise ValueError(
            f"kernel_ridge: needs a ridge above the rounding of K, {len(x)} samples with repeated or near inputs; got "
            f"ridge={ridge!r}. Raise it, or drop the repetitions."
        )
    return KernelRidge(x, torch.cholesky_solve(y, factor), float(bandwidth))


def _gaussian(x: Tensor, centres: Tensor, bandwidth: Real) -> Tensor:
    # the exact distances: the expanded square loses half the digits near the centres
    distances = torch.cdist(x, centres, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.exp(-(distances / bandwidth).square() / 2)
