"""Residual networks as plain descriptions, beside the tensors that `files.networks` stores."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from isthmus.networks import LeakyResNet, ResNet

Stream = LeakyResNet | ResNet
STREAMS = ("LeakyResNet", "ResNet")


def stream_architecture(network: Stream) -> dict[str, object]:
    """What rebuilds a residual network apart from its numbers, in terms of JSON.

    Raises:
        TypeError: the network has a waist: `as_fully_connected` makes it part of a weight.
    """
    if network.waist is not None:
        raise TypeError("save: needs a residual network without a waist. Save isthmus.networks.as_fully_connected(it).")
    shared: dict[str, object] = {"dimensions": [network.d_in, network.width, network.d_out], "depth": network.depth}
    if isinstance(network, LeakyResNet):
        return shared | {
            "class": "LeakyResNet",
            "effective_depth": network.effective_depth,
            "maps": network.maps,
            "bias": network.has_bias,
            "scheme": network.scheme,
        }
    return shared | {
        "class": "ResNet",
        "block_depth": network.block_depth,
        "residual_weight": network.residual_weight,
        "linear": network.linear,
        "inner_width": network.inner_width,
    }


def stream_from(description: Mapping[str, Any], name: str, tensors: Mapping[str, Tensor]) -> Stream:
    """The network that `stream_architecture` described, with its tensors.

    Raises:
        ValueError: the tensors do not fit the description.
    """
    d_in, width, d_out = description["dimensions"]
    found = [tuple(tensors[key].shape) for key in ("embedding", "unembedding")]
    # before anything is allocated: dimensions that the stored tensors do not have
    if found != [(width, d_in), (d_out, width)]:
        raise ValueError(f"{name}: maps of shapes {found} do not fit dimensions {[d_in, width, d_out]}")
    network = _empty(description, name, tensors)
    network.load_state_dict(dict(tensors))
    return network


def _empty(description: Mapping[str, Any], name: str, tensors: Mapping[str, Tensor]) -> Stream:
    d_in, width, d_out = description["dimensions"]
    depth, dtype = int(description["depth"]), tensors["embedding"].dtype
    if description["class"] == "LeakyResNet":
        bias = bool(description["bias"])
        if tuple(tensors["weights"].shape) != (depth, width, width + bias):
            raise ValueError(f"{name}: weights of shape {tuple(tensors['weights'].shape)} do not fit depth {depth}")
        return LeakyResNet(
            d_in, d_out, width=width, depth=depth, effective_depth=float(description["effective_depth"]),
            steps=tensors["steps"], maps=description["maps"], bias=bias, scheme=description["scheme"], seed=0,
            dtype=dtype,
        )  # fmt: skip
    size, inner = int(description["block_depth"]), int(description["inner_width"])
    if sum(key.startswith("block_weights.") for key in tensors) != depth * size:
        raise ValueError(f"{name}: the weights do not number {depth} blocks of {size}")
    needed = [(width, width)] if size == 1 else [(inner, width), (width, inner)]
    stored = [tuple(tensors[f"block_weights.{l}"].shape) for l in range(depth * size)]
    if stored != needed * depth:
        raise ValueError(f"{name}: blocks of shapes {stored[:size]} do not fit {needed}")
    return ResNet(
        d_in, d_out, width=width, depth=depth, block_depth=size, residual_weight=float(description["residual_weight"]),
        linear=bool(description["linear"]), inner_width=inner, seed=0, dtype=dtype,
    )  # fmt: skip
