"""The Fourier transform makes a circular convolution block diagonal: values by frequency are those of the map."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from isthmus.errors import ShapeError
from isthmus.theory.convolutions import frequency_singular_values

DOUBLE = torch.float64


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def whole_map(kernel: Tensor, grid: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Tensor:
    """The convolution with circular padding as a matrix, column by column."""
    channels, size = kernel.shape[1], int(torch.tensor(grid).prod())
    inputs = torch.eye(channels * size, dtype=DOUBLE).reshape(channels * size, channels, *grid)
    sides = [side for k, d in zip(kernel.shape[:1:-1], dilation[::-1], strict=True) for side in (0, (k - 1) * d)]
    for axis, n in enumerate(grid):  # wrap as often as a long kernel needs
        repeats = 1 + -(-sides[::-1][2 * axis] // n)
        inputs = torch.cat([inputs] * repeats, 2 + axis).narrow(2 + axis, 0, n + sides[::-1][2 * axis])
    convolve = (functional.conv1d, functional.conv2d)[len(grid) - 1]
    return convolve(inputs, kernel, stride=stride, dilation=dilation).flatten(1)


@pytest.mark.parametrize(
    ("shape", "grid", "stride", "dilation"),
    [
        ((3, 2, 3), (7,), (1,), (1,)),
        ((2, 3, 4), (8,), (2,), (1,)),
        ((2, 2, 3, 3), (4, 5), (1, 1), (1, 1)),
        ((3, 2, 2, 3), (4, 6), (2, 3), (1, 1)),
        ((2, 2, 3, 2), (3, 4), (1, 2), (2, 1)),
        ((2, 1, 5), (4,), (1,), (2,)),
    ],
)
def test_values_by_frequency_are_those_of_the_circular_map(
    shape: tuple[int, ...], grid: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> None:
    kernel = numbers(*shape)
    found = frequency_singular_values(kernel, grid=grid, stride=stride, dilation=dilation)
    wanted = torch.linalg.svdvals(whole_map(kernel, grid, stride, dilation))
    values = found.flatten().sort(descending=True).values
    assert torch.allclose(values, wanted[: len(values)], rtol=1e-10, atol=1e-12)
    assert not bool((wanted[len(values) :] > 1e-10).any())
    assert len(found) == int(torch.tensor([n // s for n, s in zip(grid, stride, strict=True)]).prod())


def test_a_pointwise_convolution_has_one_spectrum_and_a_mean_only_low_frequencies() -> None:
    pointwise = frequency_singular_values(numbers(3, 2, 1, 1), grid=(4, 4))
    assert torch.allclose(pointwise, pointwise[:1].expand(16, 2))
    mean = frequency_singular_values(torch.ones(1, 1, 4, dtype=DOUBLE), grid=(4,))
    assert torch.allclose(mean[:, 0], torch.tensor([4.0, 0, 0, 0], dtype=DOUBLE), atol=1e-12)


def test_grids_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"multiples of the steps; got grid \(5,\), stride \(2,\)"):
        frequency_singular_values(numbers(2, 2, 3), grid=(5,), stride=(2,))
