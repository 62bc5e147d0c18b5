"""The two parts of the objective of any network, without gradients. With gradients: `steps`, `steps.leaky_step`."""

import copy

import torch
from torch import Tensor, nn

from isthmus.networks.network import Network, penalty_of
from isthmus.training.losses import DataLoss

ROWS_AT_ONCE = 128  # float64 activations of 1024 rows were the largest thing in a fit of 50 layers, four times the rest


def in_float64(network: nn.Module, x: Tensor, data: DataLoss) -> tuple[float, float]:
    """Data loss and penalty, both computed in float64; a run of rows at a time where each stands for itself."""
    exact = copy.deepcopy(network).double()
    rows = ROWS_AT_ONCE if isinstance(network, Network) and network.rows_stand_alone else len(x)
    with torch.no_grad():
        if len(x) <= rows:
            return data.to(torch.float64).value(exact(x.double())), float(penalty_of(exact))
        value = 0.0
        for start in range(0, len(x), rows):
            part = slice(start, start + rows)
            weight = None if data.weight is None else data.weight[part].double()
            y = data.loss.cast(data.y[part], torch.float64)
            share = len(y) / len(x) if weight is None else 1.0
            value += share * DataLoss(data.loss, y, weight).value(exact(x[part].double()))
        return value, float(penalty_of(exact))
