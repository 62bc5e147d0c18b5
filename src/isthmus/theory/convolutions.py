"""Spectra of convolutions frequency by frequency: what of each frequency passes through which combination of channels.

Convolutions as matrices of one patch: `diagnostics`. Splitting them: `discovery.chains`.
"""

import itertools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import check_tensor


def frequency_singular_values(
    kernel: Float[Tensor, "c_out c_in *k"],
    *,
    grid: Sequence[int],
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
) -> Float[Tensor, "frequencies r"]:
    """Singular values of a convolution by frequency of its output; together, those of the whole map.

        K(w)_oi = sum_t k_oit exp(-2 pi i w t / n),   s(w) those of K(w), or with steps of s pixels,
                                                      of all K(w + j n / s) beside each other over sqrt(s)

    *Exact* for circular padding (the discrete Fourier transform makes the map block diagonal); for other padding an
    *estimate*, which leaves out what the borders change.

    Args:
        kernel: the weight.
        grid: pixels of the input along each axis, multiples of the stride.
        stride: steps along each axis; 1 unless given.
        dilation: gaps between the pixels of the kernel; 1 unless given.

    Returns:
        One row per frequency of the output, in the order of `torch.fft.fftn`; values fall.

    Raises:
        TypeError, ValueError: a kernel that is not real, floating point and finite. ShapeError: a grid, stride or
            dilation that does not fit.

    Source: Sedghi, Gupta and Long 2019; the frequencies and channels that are kept are the rank of Wen and Jacot 2024.
        Test: theory/test_convolutions.
    """
    call = "frequency_singular_values"
    kernel = check_tensor(call, "kernel", kernel, least_ndim=3).double()
    axes = kernel.ndim - 2
    steps, gaps = tuple(stride or (1,) * axes), tuple(dilation or (1,) * axes)
    fits = len(grid) == len(steps) == len(gaps) == axes and min(*grid, *steps, *gaps) >= 1
    if not fits or any(n % s for n, s in zip(grid, steps, strict=True)):
        raise ShapeError(
            f"{call}: needs one size, step and gap for each of {axes} axes, sizes being multiples of the steps; got "
            f"grid {tuple(grid)}, stride {steps}, dilation {gaps}."
        )
    places = [torch.arange(k) * gap % n for k, gap, n in zip(kernel.shape[2:], gaps, grid, strict=True)]
    index = torch.zeros(tuple(kernel.shape[2:]), dtype=torch.long)
    for axis, (place, n) in enumerate(zip(places, grid, strict=True)):
        index = index * n + place.reshape([-1 if i == axis else 1 for i in range(axes)])
    flat = kernel.new_zeros(*kernel.shape[:2], math.prod(grid)).index_add_(2, index.flatten(), kernel.flatten(2))
    symbol = torch.fft.fftn(flat.reshape(*kernel.shape[:2], *grid), dim=tuple(range(2, 2 + axes)))
    fewer = [n // s for n, s in zip(grid, steps, strict=True)]
    parts = [
        symbol[(..., *(slice(j * m, (j + 1) * m) for j, m in zip(alias, fewer, strict=True)))]
        for alias in itertools.product(*map(range, steps))
    ]
    blocks = torch.cat(parts, 1).flatten(2).permute(2, 0, 1) / math.sqrt(math.prod(steps))
    return torch.linalg.svdvals(blocks)
