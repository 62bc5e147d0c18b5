"""The two parts of the objective of any network, without gradients. With gradients: `steps`, `leaky_step`."""

import copy

import torch
from torch import Tensor, nn

from isthmus.training.losses import DataLoss


def in_float64(network: nn.Module, x: Tensor, data: DataLoss) -> tuple[float, float]:
    """Data loss and penalty, both computed in float64."""
    exact = copy.deepcopy(network).double()
    with torch.no_grad():
        return data.to(torch.float64).value(exact(x.double())), float(penalty_of(exact))


def penalty_of(network: nn.Module) -> Tensor:
    """`network.penalty()` where the class defines one, else the squared norm of all trainable parameters."""
    own = getattr(network, "penalty", None)
    if callable(own):
        value = own()
        assert isinstance(value, Tensor)
        return value
    return torch.stack([p.square().sum() for p in network.parameters() if p.requires_grad]).sum()
