"""Residual networks written as fully connected ones: the stream is carried by its positive and its negative part.

The fully connected form can be cut, certified, exported and folded as any other. Its norm is another one: costs belong
to the network itself.
"""

import torch
from torch import Tensor

from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.leaky import LeakyResNet
from isthmus.networks.resnet import ResNet
from isthmus.networks.waist import Waist

Map = tuple[Tensor, Tensor]  # h -> h R^T + r
Residual = LeakyResNet | ResNet


def as_fully_connected(network: Residual) -> FullyConnected:
    """The same function as a fully connected network (*exact*), float64.

        leaky:   h_l = relu([A_l, -A_l]),              A_{l+1} = (1 - rho Lt) [I, -I] h_l + rho (V [I, 0] h_l + b)
        ResNet:  h_l = relu([s_l, -s_l, W_1 s_l + b_1]),  s_{l+1} = [I, -I, I or W_2] h_l + b_2
        linear:  h_l = s_l,                            s_{l+1} = (I + W) h_l

    Args:
        network: not changed; a waist in it becomes part of a weight.

    Returns:
        A network of depth L + 2, whose hidden layer l + 1 holds the stream behind layer l = 0..L: as in `walk`. It is
        2 or 3 times as wide.

    Raises:
        ValueError: a leaky network with a smoothed relu, which no relu network computes.

    Accuracy: rounding. Source: ours. Test: tests/networks/test_residual_rewriting.py.
    """
    if isinstance(network, LeakyResNet):
        return _leaky(network)
    return _linear(network) if network.linear else _nonlinear(network)


def _leaky(network: LeakyResNet) -> FullyConnected:
    if float(network.smoothing):
        raise ValueError(
            f"as_fully_connected: needs a LeakyResNet with an exact relu; its smoothing is {float(network.smoothing):g}"
            ". Train it to the end with PreconditionedLBFGS(smoothing=(..., 0.0))."
        )
    W, width, Lt = network.weights.detach().double(), network.width, network.effective_depth
    eye = torch.eye(width, dtype=torch.float64)
    maps: list[Map] = [(network.embedding.detach().double(), eye.new_zeros(width))]
    for weight, rho in zip(W, network.layer_steps().double().tolist(), strict=True):
        kept = (1 - rho * Lt) * eye
        bias = rho * weight[:, width] if network.has_bias else eye.new_zeros(width)
        maps.append((torch.cat([kept + rho * weight[:, :width], -kept], 1), bias))
    end = network.unembedding.detach().double()
    parts = [torch.cat([eye, -eye]) for _ in maps]
    return _chained(
        _narrowed(maps, network.waist), [(p, p.new_zeros(len(p))) for p in parts],
        (torch.cat([end, -end], 1), end.new_zeros(network.d_out)), linear=False,
    )  # fmt: skip


def _nonlinear(network: ResNet) -> FullyConnected:
    first, *inner, last = [w.detach().double() for w in network.weight_layers()]
    b_first, *b_inner, b_last = [b.detach().double() for b in network.biases]
    eye, size = torch.eye(network.width, dtype=torch.float64), network.block_depth
    maps, parts = [(first, b_first)], list[Map]()
    for i in range(0, len(inner), size):
        parts.append((torch.cat([eye, -eye, inner[i]]), torch.cat([eye.new_zeros(2 * network.width), b_inner[i]])))
        added, bias = (eye, torch.zeros_like(b_first)) if size == 1 else (inner[i + 1], b_inner[i + 1])
        maps.append((torch.cat([eye, -eye, added], 1), bias))
    parts.append((torch.cat([eye, -eye]), eye.new_zeros(2 * network.width)))
    return _chained(_narrowed(maps, network.waist), parts, (torch.cat([last, -last], 1), b_last), linear=False)


def _linear(network: ResNet) -> FullyConnected:
    first, *inner, last = [w.detach().double() for w in network.weight_layers()]
    eye, size = torch.eye(network.width, dtype=torch.float64), network.block_depth
    zero = eye.new_zeros(network.width)
    blocks = [inner[i] if size == 1 else inner[i + 1] @ inner[i] for i in range(0, len(inner), size)]
    maps = [(first, zero), *((eye + block, zero) for block in blocks)]
    return _chained(
        _narrowed(maps, network.waist), [(eye, zero) for _ in maps], (last, zero.new_zeros(len(last))), linear=True
    )


def _narrowed(maps: list[Map], waist: Waist | None) -> list[Map]:
    """The maps that make the streams, with the waist behind its layer."""
    if waist is None:
        return maps
    projection, offset = waist.projection.double(), waist.offset.double()
    weight, bias = maps[waist.layer]
    maps[waist.layer] = (projection @ weight, bias @ projection + offset)
    return maps


def _chained(maps: list[Map], parts: list[Map], end: Map, *, linear: bool) -> FullyConnected:
    """Preactivation of hidden layer l + 1: `parts` of the stream that `maps` makes of the layer before."""
    pairs = [(P @ R, P @ r + p) for (R, r), (P, p) in zip(maps, parts, strict=True)]
    weights, biases = zip(*pairs, end, strict=True)
    return FullyConnected.from_layers(weights, biases, linear=range(1, len(pairs) + 1) if linear else ())
