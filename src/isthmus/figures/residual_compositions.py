"""Networks written down after Theorem 3.3 for a nonlinear function through two dimensions, over the residual weight.

The networks: `constructions.residual`. The lower bound: `theory`. The figure that shows both: `linear_resnets`.
"""

import numpy as np
import torch
import xarray as xr

from isthmus.constructions import best_embedding_scale, residual_composition
from isthmus.networks import FullyConnected
from isthmus.networks.jacobians import jacobians
from isthmus.theory import resnet_jacobian_lower_bound

RANK, NUM_POINTS = 2, 200
_D_IN, _D_OUT = 4, 3


def compositions(depth: int) -> xr.Dataset:
    """Costs of the networks of so many blocks for a random function, and the lower bound from its Jacobians."""
    inner = FullyConnected(_D_IN, RANK, width=8, depth=2, seed=1, dtype=torch.float64)
    outer = FullyConnected(RANK, _D_OUT, width=8, depth=2, seed=2, dtype=torch.float64)
    x = torch.randn(NUM_POINTS, _D_IN, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with torch.no_grad():
        after = inner(x)
    slopes = jacobians(outer, after) @ jacobians(inner, x)
    weights = np.logspace(-16, -2, 8)
    rows = np.empty((3, len(weights)))
    for i, weight in enumerate(map(float, weights)):
        scale = best_embedding_scale(weight, rank=RANK, d_in=_D_IN, d_out=_D_OUT)
        made = residual_composition(inner, outer, depth=depth, residual_weight=weight, embedding_scale=scale, x=x)
        bound = resnet_jacobian_lower_bound(slopes, residual_weight=weight, depth=None, block_depth=2)
        with torch.no_grad():
            error = float((made.network(x) - outer(after)).abs().max() / outer(after).abs().max())
        rows[:, i] = made.cost, float(bound), error
    names = ("construction_cost", "construction_bound", "construction_error")
    return xr.Dataset(
        {"construction_weight": ("case", weights), **{n: ("case", row) for n, row in zip(names, rows, strict=True)}}
    )
