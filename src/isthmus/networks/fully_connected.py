"""Fully connected networks with penalised biases and optional linear hidden layers.

The training step that is fast by hand lives in `training.steps.connected_step`, and is tested against `forward`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.errors import ShapeError
from isthmus.networks.departures import check_as_written
from isthmus.networks.devices import drawn_on_cpu
from isthmus.networks.layers import LayerState, activation, check_features
from isthmus.networks.network import Network, check_numbers_of


class FullyConnected(Network):
    """Fully connected network of `depth` weight matrices, no activation after the last.

        a_0 = x;   z_l = a_{l-1} W_l^T + b_l;   a_l = sigma_a(z_l), or z_l where l is in `linear`;   f(x) = z_L
        penalty = sum_l |W_l|_F^2 + |b_l|^2    (the last bias included)

    Args:
        d_in: number of input features.
        d_out: number of outputs.
        width: the width of all hidden layers, or the L-1 hidden widths.
        depth: number of weight matrices L, at least 1.
        negative_slope: slope a of sigma_a for negative inputs, |a| < 1; 0 is ReLU.
        linear: numbers (1..L-1) of hidden layers without activation.
        bias: whether layers have biases.
        seed: seed of the initial weights (He normal before an activation, 1/fan-in before a linear layer, zero biases).
        dtype: parameter type, torch's default unless given.

    Raises:
        ValueError: depth < 1, widths that do not number L-1 or are not positive, |negative_slope| >= 1, or a linear
            layer number outside 1..L-1.

    >>> net = isthmus.FullyConnected(4, 2, width=6, depth=3, seed=0)
    >>> net.dimensions, net(torch.zeros(5, 4)).shape
    ((4, 6, 6, 2), torch.Size([5, 2]))
    """

    @drawn_on_cpu
    def __init__(  # noqa: PLR0913 - the arguments are a public contract
        self,
        d_in: int,
        d_out: int,
        *,
        width: int | Sequence[int],
        depth: int,
        negative_slope: float = 0.0,
        linear: Iterable[int] = (),
        bias: bool = True,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_numbers_of("FullyConnected", d_in=d_in, d_out=d_out, depth=depth, width=width, seed=seed, dtype=dtype)
        widths = _hidden_widths(width, depth)
        self.linear = frozenset(int(l) for l in linear)
        self.dimensions: tuple[int, ...] = (d_in, *widths, d_out)
        self.d_in, self.d_out = d_in, d_out
        self.negative_slope = float(negative_slope)
        _check_shape(self.dimensions, depth, self.negative_slope, self.linear)
        generator = torch.Generator().manual_seed(torch.seed() % 2**63 if seed is None else seed)
        pairs = list(zip(self.dimensions[:-1], self.dimensions[1:], strict=True))
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for l, (fan_in, fan_out) in enumerate(pairs, 1):
            gain = 2.0 if l < depth and l not in self.linear else 1.0
            weight = torch.randn(fan_out, fan_in, generator=generator, dtype=dtype) * (gain / max(fan_in, 1)) ** 0.5
            self.weights.append(nn.Parameter(weight))
            if bias:
                self.biases.append(nn.Parameter(torch.zeros(fan_out, dtype=dtype)))

    @classmethod
    def from_layers(
        cls,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor] | None = None,
        *,
        negative_slope: float = 0.0,
        linear: Iterable[int] = (),
        dtype: torch.dtype | None = torch.float64,
    ) -> "FullyConnected":
        """The network whose weights are written down.

        Args:
            weights: W_1 .. W_L, each (width_l, width_{l-1}); they are copied.
            biases: b_1 .. b_L, each (width_l,); None for a network without biases.
            negative_slope: slope a of sigma_a for negative inputs.
            linear: numbers (1..L-1) of hidden layers without activation.
            dtype: parameter type, float64 unless given; None keeps that of the weights.

        Raises:
            TypeError: complex or integer tensors.
            ShapeError: no weight, a weight that does not fit the one before, or biases that do not fit the weights.
        """
        _check_layers(weights, biases)
        dtype = weights[0].dtype if dtype is None else dtype
        widths = [int(w.shape[0]) for w in weights[:-1]]
        shape = {"width": widths, "depth": len(weights), "negative_slope": negative_slope, "linear": linear}
        d_in, d_out = int(weights[0].shape[1]), int(weights[-1].shape[0])
        network = cls(d_in, d_out, **shape, bias=biases is not None, seed=0, dtype=dtype)  # pyright: ignore[reportArgumentType]
        network.to(weights[0].device)
        with torch.no_grad():
            for parameter, value in zip(network.weights, weights, strict=True):
                parameter.copy_(value)
            for parameter, value in zip(network.biases, biases or (), strict=True):
                parameter.copy_(value)
        return network

    def rewritten(
        self, weights: Sequence[Tensor], biases: Sequence[Tensor] | None, *, linear: Iterable[int] | None = None
    ) -> "FullyConnected":
        """A new network with other layers and the same slope and parameter type (and linear layers, unless given)."""
        linear = self.linear if linear is None else linear
        return FullyConnected.from_layers(
            weights, biases, negative_slope=self.negative_slope, linear=linear, dtype=None
        )

    def written_layers(self) -> tuple[list[Tensor], list[Tensor] | None]:
        """Detached copies of W_1 .. W_L and of b_1 .. b_L (None without biases), free to be changed.

        Raises:
            ValueError: they need not be what the network computes: it has hooks, or methods of its own.
        """
        check_as_written("written_layers", self, FullyConnected)
        weights = [w.detach().clone() for w in self.weights]
        return weights, [b.detach().clone() for b in self.biases] if self.has_bias else None

    @property
    def depth(self) -> int:
        """Number of weight matrices L."""
        return len(self.weights)

    @property
    def has_bias(self) -> bool:
        """Whether layers have biases."""
        return len(self.biases) > 0

    def is_activated(self, position: int) -> bool:
        """Whether hidden layer `position` is followed by the activation."""
        return position < self.depth and position not in self.linear

    def bias_of(self, position: int) -> Tensor | None:
        """b_l of weight layer `position`, or None."""
        return self.biases[position - 1] if self.has_bias else None

    def layer_states(self, x: Float[Tensor, "n d_in"]) -> list[LayerState]:
        """See `isthmus.walk`."""
        check_features("FullyConnected(x)", x, self.d_in)
        states: list[LayerState] = []
        a = x
        for l, weight in enumerate(self.weights, 1):
            bias = self.bias_of(l)
            z = torch.nn.functional.linear(a, weight, bias)
            a = activation(z, self.negative_slope) if self.is_activated(l) else z
            states.append(LayerState(l, z, a, weight, bias, f"weights.{l - 1}"))
        return states

    def penalty(self) -> Float[Tensor, ""]:
        """sum_l |W_l|_F^2 + |b_l|^2, the norm that `ridge` multiplies (no factor 1/2, no division by L)."""
        return torch.stack([p.square().sum() for p in self.parameters()]).sum()

    def reseed(self, seed: int) -> None:
        """Draw new initial weights, in place."""
        fresh = FullyConnected(
            self.d_in, self.d_out, width=self.dimensions[1:-1], depth=self.depth, negative_slope=self.negative_slope,
            linear=self.linear, bias=self.has_bias, seed=seed, dtype=self.weights[0].dtype,
        )  # fmt: skip
        with torch.no_grad():
            for mine, theirs in zip(self.parameters(), fresh.parameters(), strict=True):
                mine.copy_(theirs)

    def description(self) -> dict[str, object]:
        """See `Network`."""
        return {
            "class": "FullyConnected",
            "dimensions": list(self.dimensions),
            "negative_slope": self.negative_slope,
            "linear": sorted(self.linear),
            "bias": self.has_bias,
        }

    @classmethod
    def from_description(
        cls, description: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str
    ) -> "FullyConnected":
        """See `Network`."""
        dimensions = description["dimensions"]
        shapes = [tuple(tensors[f"weights.{l}"].shape) for l in range(len(dimensions) - 1)]
        if shapes != list(zip(dimensions[1:], dimensions[:-1], strict=True)):
            raise ValueError(f"{name}: weights of shapes {shapes} do not fit dimensions {dimensions}")
        network = cls(
            dimensions[0], dimensions[-1], width=dimensions[1:-1], depth=len(dimensions) - 1,
            negative_slope=float(description["negative_slope"]), linear=description["linear"],
            bias=bool(description["bias"]), seed=0, dtype=tensors["weights.0"].dtype,
        )  # fmt: skip
        network.load_state_dict(dict(tensors))
        return network

    def extra_repr(self) -> str:
        """Dimensions and what differs from a plain ReLU network."""
        return f"dimensions={self.dimensions}, negative_slope={self.negative_slope}, linear={sorted(self.linear)}"


def _hidden_widths(width: int | Sequence[int], depth: int) -> tuple[int, ...]:
    if isinstance(width, int):
        return (width,) * max(depth - 1, 0)
    widths = tuple(int(w) for w in width)
    if len(widths) != depth - 1:
        raise ValueError(
            f"FullyConnected(width={widths}, depth={depth}): needs depth - 1 = {depth - 1} hidden widths, "
            f"got {len(widths)}."
        )
    return widths


def _check_layers(weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> None:
    kinds = {tensor.dtype for tensor in [*weights, *(biases or ())]}
    if bad := [kind for kind in kinds if not kind.is_floating_point]:
        raise TypeError(
            f"FullyConnected.from_layers: needs weights and biases of real floating-point numbers; got {bad}. "
            "Convert whole numbers with .double()."
        )
    shapes = [tuple(w.shape) for w in weights]
    if not shapes or any(len(shape) != 2 for shape in shapes):
        raise ShapeError(f"FullyConnected.from_layers: needs at least one weight, each a matrix; got shapes {shapes}.")
    if any(outer[1] != inner[0] for inner, outer in zip(shapes[:-1], shapes[1:], strict=True)):
        raise ShapeError(
            f"FullyConnected.from_layers: needs weight l of shape (width_l, width_(l-1)); got {shapes}. "
            "Samples are rows, weights act on columns: transpose weights stored the other way."
        )
    if biases is not None and [tuple(b.shape) for b in biases] != [shape[:1] for shape in shapes]:
        raise ShapeError(
            f"FullyConnected.from_layers: needs one bias per weight, of shapes {[shape[:1] for shape in shapes]}; "
            f"got {[tuple(b.shape) for b in biases]}. Write zeros for a layer without bias."
        )


def _check_shape(dimensions: tuple[int, ...], depth: int, slope: float, linear: frozenset[int]) -> None:
    if depth < 1:
        raise ValueError(f"FullyConnected(depth={depth}): needs depth >= 1; depth counts weight matrices.")
    # no input or no output is a constant or nothing: what a map of rank 0 factors through
    if min(dimensions) < 0 or min(dimensions[1:-1], default=1) < 1:
        raise ValueError(f"FullyConnected: needs hidden widths >= 1 and no negative dimension, got {dimensions}.")
    if not abs(slope) < 1:
        raise ValueError(f"FullyConnected(negative_slope={slope}): needs |negative_slope| < 1; 0 is ReLU.")
    if outside := sorted(l for l in linear if not 1 <= l < depth):
        raise ValueError(f"FullyConnected(linear=...): needs hidden layer numbers in 1..{depth - 1}, got {outside}.")
