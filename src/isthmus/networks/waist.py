"""A waist in a residual stream: at one place it is led through a few of its dimensions, which makes its rank exact.

Which dimensions: `discovery.kinds.streams`. Networks whose hidden layers are narrow in themselves: `fully_connected`.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.errors import ShapeError


class Waist(nn.Module):
    """A projection of the stream behind one layer, without parameters.

        A -> (A - mean) P P^T + mean,   P (width, rank) with orthonormal columns

    Args:
        layer: number of the layer or block behind which it stands, 0 for the input map.
        axes: P.
        mean: what stays of the stream when nothing goes through.

    Raises:
        ShapeError: axes and mean of different widths. ValueError: layer < 0, or columns that are not orthonormal.

    >>> networks.Waist(layer=2, axes=torch.eye(3)[:, :1], mean=torch.zeros(3)).layer
    2
    """

    projection: Tensor
    offset: Tensor

    def __init__(self, layer: int, axes: Float[Tensor, "width rank"], mean: Float[Tensor, " width_of_mean"]) -> None:
        super().__init__()
        if layer < 0:
            raise ValueError(f"Waist(layer={layer}): needs layer >= 0, the layer of the stream behind which it stands.")
        if len(axes) != len(mean):
            raise ShapeError(f"Waist: needs one mean per row of the axes, {len(axes)}; got {len(mean)}.")
        gram = axes.mT @ axes
        if float((gram - torch.eye(len(gram)).to(gram)).abs().max() if gram.numel() else 0.0) > 1e-5:
            raise ValueError("Waist: needs axes with orthonormal columns. Take those of a QR factorisation.")
        self.layer, self.rank = layer, axes.shape[1]
        self.register_buffer("projection", axes @ axes.mT)
        self.register_buffer("offset", mean - mean @ self.projection)

    def forward(self, a: Float[Tensor, "n width"]) -> Float[Tensor, "n width"]:
        """The stream behind the waist."""
        return torch.addmm(self.offset, a, self.projection)

    def extra_repr(self) -> str:
        """Where it stands and how narrow it is."""
        return f"layer={self.layer}, rank={self.rank}"


def check_waist(call: str, waist: Waist, *, width: int, depth: int) -> None:
    """Raise unless a waist fits a stream of this width behind one of these layers."""
    if len(waist.offset) != width or waist.layer > depth:
        raise ShapeError(
            f"{call}: needs a waist of width {width} behind one of the layers 0..{depth}; got width "
            f"{len(waist.offset)} behind layer {waist.layer}."
        )
