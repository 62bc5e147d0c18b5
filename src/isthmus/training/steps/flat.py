"""All parameters of a network in one flat vector, each parameter a view of it, and its gradient likewise."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def flatten_parameters(parameters: Sequence[nn.Parameter]) -> tuple[Tensor, Tensor]:
    """Move parameters into one vector (they become views of it) and return it with a gradient vector of equal layout.

    The vectors are padded to nothing and keep the order of `parameters`; solvers then work on two tensors only.
    """
    sizes = [p.numel() for p in parameters]
    theta = torch.cat([p.detach().reshape(-1) for p in parameters]).clone()
    gradient = torch.zeros_like(theta)
    for parameter, view in zip(parameters, views(theta, parameters), strict=True):
        parameter.data = view
    assert sum(sizes) == theta.numel()
    return theta, gradient


def views(vector: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Views of `vector` with the shapes of `parameters`, in order."""
    out: list[Tensor] = []
    offset = 0
    for parameter in parameters:
        out.append(vector[offset : offset + parameter.numel()].view(parameter.shape))
        offset += parameter.numel()
    return out
