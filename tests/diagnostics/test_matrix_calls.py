"""Transposed convolutions are products with a matrix too: of patches of the image with zeros between its pixels."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import isthmus
from foreign_modules import samples
from isthmus.diagnostics.matrix_calls import matrix_call
from isthmus.theory.convolutions import frequency_singular_values

DOUBLE = torch.float64
SHAPES: list[dict[str, Any]] = [
    {},
    {"padding": 2},  # more than the kernel holds: the borders are cut off
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"stride": 3, "padding": 2, "dilation": 2, "groups": 2},
]


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_a_transposed_convolution_is_a_product_with_a_matrix(settings: dict[str, Any]) -> None:
    for kind, name, pixels in (
        (nn.ConvTranspose1d, "conv_transpose1d", (7,)),
        (nn.ConvTranspose2d, "conv_transpose2d", (5, 4)),
    ):
        layer = kind(6, 4, 3, **settings).double()
        x = samples(2, 6, *pixels, dtype=DOUBLE)
        z = layer(x)
        words = (layer.stride, layer.padding, layer.output_padding, layer.groups, layer.dilation)
        call = matrix_call(name, (x, layer.weight, layer.bias, *words), {}, lambda _: True)
        assert call is not None
        bias = layer.get_parameter("bias")
        assert torch.allclose(call.rows_in() @ call.matrix.mT + bias, call.rows_out(z))
        kept = torch.tensor([0, 3, 9])
        assert torch.equal(call.some_rows_in(kept), call.rows_in()[kept])


def test_a_transposed_convolution_of_planted_rank_is_read() -> None:
    """Nine channels that are mixtures of three; its frequencies are those of the convolution that it is adjoint to."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer, mixing = nn.ConvTranspose2d(4, 9, 4, stride=2, padding=1), torch.randn(9, 3)
        with torch.no_grad():
            layer.weight.copy_(torch.einsum("ikyx,ok->ioyx", torch.randn(4, 3, 4, 4), mixing))
        module = nn.Sequential(
            nn.Linear(6, 64), nn.ReLU(), nn.Unflatten(1, (4, 4, 4)), layer, nn.Flatten(), nn.Linear(576, 3)
        )
    found = isthmus.diagnose(module.double(), samples(200, 6, dtype=DOUBLE))
    table = found.layers
    assert table["dimension_activation"].values[1] == 3
    wanted = frequency_singular_values(layer.weight.detach(), grid=(8, 8), stride=(2, 2))
    assert table["frequency_pairs"].values[1] == wanted.numel() == 16 * 4
    values = table["frequency_singular_values"].values[1][:16, :4]
    assert np.allclose(np.sort(values.ravel()), np.sort(wanted.numpy().ravel()), atol=1e-6)
    assert np.isfinite(table["tangent_kernel_trace"].values[1])


class Added(nn.Module):
    """addmm with factors, and of two parameters: no layer as it stands."""

    def __init__(self, alpha: float, beta: float) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, beta
        self.weight, self.bias = nn.Parameter(samples(6, 4)), nn.Parameter(samples(4))
        self.down, self.up = nn.Parameter(samples(4, 2)), nn.Parameter(samples(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) @ (self.down @ self.up)

    def first(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x, self.weight, alpha=self.alpha, beta=self.beta)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 1.0), (1.0, 0.0), (2.0, 0.5), (1.0, 1.0)])
def test_a_product_with_factors_is_read_right_or_not_at_all(alpha: float, beta: float) -> None:
    module, x = Added(alpha, beta).double(), samples(50, 6, dtype=DOUBLE)
    if (alpha, beta) != (1.0, 1.0):
        with pytest.raises(ValueError, match="needs a module that multiplies by weight matrices"):
            isthmus.diagnose(module, x)
        return
    found = isthmus.diagnose(module, x).layers
    assert [str(name) for name in found["name"].values] == ["weight"]
    z = module.first(x).detach()
    values = torch.linalg.svdvals(z - z.mean(0)).numpy() / 50**0.5
    assert np.allclose(found["preactivation_singular_values"].values[0][:4], values)
