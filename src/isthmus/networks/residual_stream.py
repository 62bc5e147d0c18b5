"""What the residual networks share: a stream between two maps, and the waist that it may be led through.

The classes: `leaky`, `resnet`. Their rewriting as fully connected networks: `residual_rewriting`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.network import Network
from isthmus.networks.waist import Waist, check_waist


class ResidualStream(Network):
    """A network whose layers add to a stream of one width: A_0 = embedding(x), .., A_L, f(x) = unembedding(A_L).

    Attributes:
        width: of the stream.
        embedding: E, (width, d_in).
        unembedding: U, (d_out, width).
        matrices_per_layer: weight matrices between two states of the stream, as `walk` counts them.
        waist: leads the stream through a few dimensions behind one layer; None unless `narrow` put one there.
    """

    width: int
    embedding: Tensor
    unembedding: Tensor
    matrices_per_layer: int
    waist: Waist | None

    @property
    @abstractmethod
    def depth(self) -> int:
        """Number of layers or blocks L."""

    @abstractmethod
    def as_fully_connected(self) -> FullyConnected:
        """See `isthmus.networks.as_fully_connected`."""

    def stream(self, x: Float[Tensor, "n d_in"], layer: int) -> Float[Tensor, "n width"]:
        """A_l, the stream behind layer l = 0 .. L, after a waist that stands there."""
        return self.layer_states(x)[layer * self.matrices_per_layer].activation

    def narrow(self, waist: Waist | None) -> None:
        """Put a waist into the stream, or take it away.

        Raises:
            ShapeError: it does not fit the stream.
        """
        if waist is not None:
            check_waist(f"{type(self).__name__}.narrow", waist, width=self.width, depth=self.depth)
            waist = waist.to(self.embedding)
        self.waist = waist

    def behind(self, layer: int, a: Tensor) -> Tensor:
        """The stream behind a layer: `a`, but through the waist where there is one."""
        return self.waist(a) if self.waist is not None and self.waist.layer == layer else a

    @staticmethod
    def check_maps(description: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str) -> tuple[int, int, int]:
        """d_in, width and d_out of a description, which the two maps must have.

        Raises:
            ValueError: they do not.
        """
        d_in, width, d_out = description["dimensions"]
        found = [tuple(tensors[key].shape) for key in ("embedding", "unembedding")]
        if found != [(width, d_in), (d_out, width)]:
            raise ValueError(f"{name}: maps of shapes {found} do not fit dimensions {[d_in, width, d_out]}")
        return d_in, width, d_out

    def check_storable(self) -> None:
        """Raise unless tensors and a description hold all of the network.

        Raises:
            TypeError: it has a waist: `as_fully_connected` makes that part of a weight.
        """
        if self.waist is not None:
            raise TypeError(
                "save: needs a residual network without a waist. Save isthmus.networks.as_fully_connected(it)."
            )
