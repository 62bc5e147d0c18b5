"""Columns of the table for convolutions: their spectrum by frequency, and how many frequencies and channels it keeps.

Formula: `theory.convolutions`. Spectra of kernels as matrices of one patch, and of activations: `table`.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.diagnostics.listener import Reading
from isthmus.diagnostics.matrix_calls import Convolution
from isthmus.theory.convolutions import frequency_singular_values
from isthmus.theory.spectra import energy_rank

# frequencies * channels^3, and frequencies: beyond them a coarser grid is looked at
MOST_WORK, MOST_FREQUENCIES = 1e9, 1024
MOST_NUMBERS = 5e6  # of all spectra side by side: more are not kept
SHARE = 0.99


def add_convolution_columns(table: xr.Dataset, layers: Sequence[LayerSums], readings: Sequence[Reading]) -> None:
    """Groups of convolutions, their spectra by frequency, frequency_rank_99 of these, and how many pairs there are.

    Args:
        table: gets the columns, NaN in rows of other layers; nothing without a convolution, and no spectra where
            they would fill the memory.
        layers: its rows.
        readings: of two samples, which know the sizes of images.
    """
    found: dict[int, Tensor] = {}
    for place, (layer, reading) in enumerate(zip(layers, readings, strict=True)):
        if layer.convolution is not None:
            pixels = reading.z.shape[-len(layer.convolution.kernel) :]
            found[place] = _by_frequency(layer.weight.cpu(), layer.convolution, pixels)
    if not found:
        return
    shape = np.max([tuple(values.shape) for values in found.values()], axis=0)
    is_small = len(layers) * math.prod(map(int, shape)) <= MOST_NUMBERS
    spectra = np.full((len(layers), *shape) if is_small else (0, 0, 0), math.nan)
    kept, pairs = (np.full(len(layers), math.nan) for _ in range(2))
    for place, values in found.items():
        if is_small:
            spectra[place, : len(values), : values.shape[1]] = values.numpy()
        kept[place] = int(energy_rank(values.flatten().sort(descending=True).values, share=SHARE))
        pairs[place] = values.numel()
    groups = [math.nan if layer.convolution is None else float(layer.convolution.groups) for layer in layers]
    table["groups"] = ("layer", np.array(groups))
    if is_small:
        table["frequency_singular_values"] = (("layer", "frequency", "channel"), spectra)
    table["frequency_rank_99"], table["frequency_pairs"] = ("layer", kept), ("layer", pairs)


def _by_frequency(matrix: Tensor, convolution: Convolution, pixels: Sequence[int]) -> Tensor:
    """The spectrum on the grid that a circular convolution with so many pixels of output has, or on a coarser one."""
    kernel = matrix.reshape(len(matrix), -1, *convolution.kernel)
    steps = convolution.stride
    if convolution.spread:  # its adjoint has the same singular values, and steps in place of zeros between pixels
        kernel, steps = kernel.transpose(0, 1), convolution.spread
        pixels = [-(-pixel // step) for pixel, step in zip(pixels, steps, strict=True)]
    sizes = [max(1, pixel) for pixel in pixels]
    beside = kernel.shape[1] * math.prod(steps)
    channels = len(kernel) * beside * min(len(kernel), beside)
    most = min(MOST_FREQUENCIES, MOST_WORK / channels)
    while math.prod(sizes) > most and max(sizes) > 1:
        sizes = [-(-size // 2) for size in sizes]
    grid = [size * step for size, step in zip(sizes, steps, strict=True)]
    with torch.no_grad():
        return frequency_singular_values(kernel, grid=grid, stride=steps, dilation=convolution.dilation)
