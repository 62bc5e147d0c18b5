"""Residual networks between an embedding and an unembedding, residual weights paid separately (RES-01, 02, 10).

Networks that attain the costs: `constructions.residual`. The leaky network of the Hamiltonian theory is another class.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.errors import ShapeError
from isthmus.networks.arguments import check_fits
from isthmus.networks.devices import drawn_on_cpu
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import LayerState, check_features
from isthmus.networks.network import check_numbers_of
from isthmus.networks.residual_rewriting import Map, chained, narrowed
from isthmus.networks.residual_stream import ResidualStream


class ResNet(ResidualStream):
    """Residual network of `depth` blocks between an embedding and an unembedding.

        s_0 = x W_e^T + b_e;   f(x) = s_L W_u^T + b_u
        block_depth 1:  s_l = s_{l-1} + relu(s_{l-1} W_l^T + b_l)
        block_depth 2:  s_l = s_{l-1} + relu(s_{l-1} W_{l,1}^T + b_{l,1}) W_{l,2}^T + b_{l,2}
        penalty = 1/2 |W_u|^2 + 1/2 |W_e|^2 + lambda L sum |W_l|^2                        (block_depth 1)
        penalty = 1/2 |W_u|^2 + 1/2 |W_e|^2 + (lambda/2) sum |W_{l,1}|^2 + |W_{l,2}|^2    (block_depth 2)

    Biases are free. A linear network has neither relu nor biases.

    Args:
        d_in: number of input features.
        d_out: number of outputs.
        width: width of the residual stream.
        depth: number of residual blocks L, at least 0; not the number of weight matrices.
        block_depth: weight matrices per block, 1 or 2.
        residual_weight: lambda, the weight of the residual cost against that of embedding and unembedding.
        linear: whether the network is linear.
        inner_width: width inside depth-2 blocks; that of the stream unless given.
        seed: seed of the initial weights (1/fan-in at both ends, He / L in the blocks, zero biases).
        dtype: parameter type, torch's default unless given.

    Attributes:
        waist: leads the stream through a few dimensions behind one block; None unless `narrow` put one there.

    Raises:
        ValueError: a dimension < 1, depth < 0, a block depth other than 1 and 2, or residual_weight <= 0.

    >>> net = isthmus.ResNet(4, 2, width=6, depth=3, block_depth=2, seed=0)
    >>> net(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """

    @drawn_on_cpu
    def __init__(  # noqa: PLR0913 - the arguments are a public contract
        self,
        d_in: int,
        d_out: int,
        *,
        width: int,
        depth: int,
        block_depth: int,
        residual_weight: float = 1.0,
        linear: bool = False,
        inner_width: int | None = None,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        inner_width = width if inner_width is None else inner_width
        sizes = {"width": width, "depth": depth, "block_depth": block_depth, "inner_width": inner_width}
        check_numbers_of("ResNet", d_in=d_in, d_out=d_out, **sizes, seed=seed, dtype=dtype)
        _check_resnet((d_in, width, inner_width, d_out), depth, block_depth, residual_weight, dtype)
        self.residual_weight = float(residual_weight)
        self.block_depth = self.matrices_per_layer = block_depth
        self.linear = linear
        self.d_in, self.d_out, self.width, self.inner_width = d_in, d_out, width, inner_width
        generator = torch.Generator().manual_seed(torch.seed() % 2**63 if seed is None else seed)

        def drawn(fan_out: int, fan_in: int, gain: float) -> nn.Parameter:
            scale = (gain / fan_in) ** 0.5
            return nn.Parameter(torch.randn(fan_out, fan_in, generator=generator, dtype=dtype) * scale)

        shapes = [(width, width)] if block_depth == 1 else [(inner_width, width), (width, inner_width)]
        self.embedding = drawn(width, d_in, 1.0)
        self.block_weights = nn.ParameterList(drawn(*shape, 2.0 / depth) for _ in range(depth) for shape in shapes)
        self.unembedding = drawn(d_out, width, 1.0)
        biased = [] if linear else [width, *(fan_out for _ in range(depth) for fan_out, _ in shapes), d_out]
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(size, dtype=dtype)) for size in biased)
        self.waist = None

    @classmethod
    def from_layers(
        cls,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor] | None = None,
        *,
        block_depth: int,
        residual_weight: float = 1.0,
    ) -> "ResNet":
        """The float64 network whose weights are written down.

        Args:
            weights: W_e, the matrices of the blocks in the order in which they act, W_u.
            biases: one per weight; None for a linear network.
            block_depth: weight matrices per block, 1 or 2.
            residual_weight: lambda.

        Raises:
            ShapeError: a number of weights or a shape that does not fit.
        """
        depth, rest = divmod(len(weights) - 2, block_depth)
        if len(weights) < 2 or rest:
            raise ShapeError(
                f"ResNet.from_layers: needs W_e, {block_depth} matrices per block and W_u; got {len(weights)} weights."
            )
        width, d_in = (int(size) for size in weights[0].shape)
        inner = int(weights[1].shape[0]) if block_depth == 2 and depth else width
        network = cls(
            d_in, int(weights[-1].shape[0]), width=width, depth=depth, block_depth=block_depth, inner_width=inner,
            residual_weight=residual_weight, linear=biases is None, seed=0, dtype=torch.float64,
        )  # fmt: skip
        parameters = [*network.weight_layers(), *network.biases]
        values = [*weights, *(biases or ())]
        if [tuple(p.shape) for p in parameters] != [tuple(v.shape) for v in values]:
            raise ShapeError(
                f"ResNet.from_layers: needs shapes {[tuple(p.shape) for p in parameters]}; "
                f"got {[tuple(v.shape) for v in values]}. Every block needs the same inner width: pad with zeros."
            )
        with torch.no_grad():
            for parameter, value in zip(parameters, values, strict=True):
                parameter.copy_(value)
        return network

    @property
    def depth(self) -> int:
        """Number of residual blocks L."""
        return len(self.block_weights) // self.block_depth

    def weight_layers(self) -> list[Tensor]:
        """W_e, the block matrices in the order in which they act, W_u."""
        return [self.embedding, *self.block_weights, self.unembedding]

    def layer_states(self, x: Float[Tensor, "n d_in"]) -> list[LayerState]:
        """See `isthmus.walk`: the activation of the embedding and of a block's last matrix is the residual stream."""
        check_features("ResNet(x)", x, self.d_in)
        weights = self.weight_layers()
        biases: list[Tensor | None] = list(self.biases) or [None] * len(weights)
        states: list[LayerState] = []
        a = stream = x
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            z = torch.nn.functional.linear(a, weight, bias)
            in_block = 0 < i < len(weights) - 1
            ends_block = in_block and i % self.block_depth == 0
            activated = in_block and not self.linear and (self.block_depth == 1 or not ends_block)
            a = z.relu() if activated else z
            a = stream + a if ends_block else a
            if ends_block or i == 0:
                a = stream = self.behind(i // self.block_depth, a)
            states.append(LayerState(i + 1, z, a, weight, bias, self._name(i)))
        return states

    def penalty(self) -> Float[Tensor, ""]:
        """1/2 |W_u|^2 + 1/2 |W_e|^2 + residual cost with weight lambda; biases are free. `ridge` multiplies it."""
        ends = (self.embedding.square().sum() + self.unembedding.square().sum()) / 2
        if not self.depth:
            return ends
        factor = self.residual_weight * (self.depth if self.block_depth == 1 else 0.5)
        return ends + factor * torch.stack([w.square().sum() for w in self.block_weights]).sum()

    def as_fully_connected(self) -> FullyConnected:
        """See `isthmus.networks.as_fully_connected`."""
        return self._linear_rewritten() if self.linear else self._rewritten()

    def _rewritten(self) -> FullyConnected:
        first, *inner, last = [w.detach().double() for w in self.weight_layers()]
        b_first, *b_inner, b_last = [b.detach().double() for b in self.biases]
        eye, size = torch.eye(self.width, dtype=torch.float64), self.block_depth
        maps, parts = [(first, b_first)], list[Map]()
        for i in range(0, len(inner), size):
            parts.append((torch.cat([eye, -eye, inner[i]]), torch.cat([eye.new_zeros(2 * self.width), b_inner[i]])))
            added, bias = (eye, torch.zeros_like(b_first)) if size == 1 else (inner[i + 1], b_inner[i + 1])
            maps.append((torch.cat([eye, -eye, added], 1), bias))
        parts.append((torch.cat([eye, -eye]), eye.new_zeros(2 * self.width)))
        return chained(narrowed(maps, self.waist), parts, (torch.cat([last, -last], 1), b_last), linear=False)

    def _linear_rewritten(self) -> FullyConnected:
        first, *inner, last = [w.detach().double() for w in self.weight_layers()]
        eye, size = torch.eye(self.width, dtype=torch.float64), self.block_depth
        zero = eye.new_zeros(self.width)
        blocks = [inner[i] if size == 1 else inner[i + 1] @ inner[i] for i in range(0, len(inner), size)]
        maps = [(first, zero), *((eye + block, zero) for block in blocks)]
        return chained(
            narrowed(maps, self.waist), [(eye, zero) for _ in maps], (last, zero.new_zeros(len(last))), linear=True
        )

    def description(self) -> dict[str, object]:
        """See `Network`."""
        self.check_storable()
        return {
            "dimensions": [self.d_in, self.width, self.d_out],
            "depth": self.depth,
            "class": "ResNet",
            "block_depth": self.block_depth,
            "residual_weight": self.residual_weight,
            "linear": self.linear,
            "inner_width": self.inner_width,
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str) -> "ResNet":
        """See `Network`."""
        d_in, width, d_out = cls.check_maps(description, tensors, name)
        depth, size, inner = (int(description[key]) for key in ("depth", "block_depth", "inner_width"))
        if sum(key.startswith("block_weights.") for key in tensors) != depth * size:
            raise ValueError(f"{name}: the weights do not number {depth} blocks of {size}")
        needed = [(width, width)] if size == 1 else [(inner, width), (width, inner)]
        stored = [tuple(tensors[f"block_weights.{l}"].shape) for l in range(depth * size)]
        if stored != needed * depth:
            raise ValueError(f"{name}: blocks of shapes {stored[:size]} do not fit {needed}")
        network = cls(
            d_in, d_out, width=width, depth=depth, block_depth=size, inner_width=inner, seed=0,
            residual_weight=float(description["residual_weight"]), linear=bool(description["linear"]),
            dtype=tensors["embedding"].dtype,
        )  # fmt: skip
        network.load_state_dict(dict(tensors))
        return network

    def extra_repr(self) -> str:
        """Dimensions and what differs from a plain residual network."""
        return (
            f"dimensions={(self.d_in, self.width, self.d_out)}, depth={self.depth}, block_depth={self.block_depth}, "
            f"residual_weight={self.residual_weight}, linear={self.linear}"
        )

    def _name(self, i: int) -> str:
        if i == 0:
            return "embedding"
        return "unembedding" if i == len(self.block_weights) + 1 else f"block_weights.{i - 1}"


def _check_resnet(
    dimensions: tuple[int, ...], depth: int, block_depth: int, residual_weight: float, dtype: torch.dtype | None
) -> None:
    if min(dimensions) < 1:
        raise ValueError(f"ResNet: needs every dimension >= 1, got (d_in, width, inner_width, d_out) = {dimensions}.")
    if depth < 0:
        raise ValueError(f"ResNet(depth={depth}): needs depth >= 0; depth counts residual blocks.")
    if block_depth not in (1, 2):
        raise ValueError(
            f"ResNet(block_depth={block_depth}): needs 1 or 2 weight matrices per block; no cost is known beyond 2."
        )
    if not 0 < residual_weight < float("inf"):
        raise ValueError(f"ResNet(residual_weight={residual_weight}): needs a finite lambda > 0.")
    check_fits(residual_weight, f"ResNet(residual_weight={residual_weight:g})", dtype, squared=True)
