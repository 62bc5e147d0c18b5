"""Sound bounds on what a network can output over a box, by interval arithmetic.

Exact values on segments and 2-D slices: `networks.segments` and `networks.slices`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.layers import Points, as_points


def output_range(
    network: FullyConnected, lower: Float[Tensor, " d_in"] | Points, upper: Float[Tensor, " d_in"] | Points
) -> tuple[Float[Tensor, " d_out"], Float[Tensor, " d_out"]]:
    """Lower and upper bounds on each output over the box lower <= x <= upper (*lower bound*, *upper bound*).

        c' = W c + b,   r' = |W| r,   then sigma_a on both ends (its minimum is 0 at 0 where a < 0)

    Sound and usually loose: neurons are treated as if they moved independently.

    Args:
        network: any fully connected network.
        lower: least value of each feature.
        upper: largest value of each feature, nowhere below `lower`.

    Returns:
        The least and the largest value that each output can take, up to rounding.

    Raises:
        ShapeError: a bound that does not have one entry per feature.
        ValueError: a lower bound above the upper one, or not a number.

    >>> network = isthmus.FullyConnected.from_layers([torch.eye(2), torch.ones(1, 2)])
    >>> lower, upper = networks.output_range(network, torch.tensor([-1.0, -1.0]), torch.tensor([1.0, 1.0]))
    >>> float(lower), float(upper)
    (0.0, 2.0)
    """
    lower, upper = as_points("output_range", lower=lower, upper=upper)
    d_in = network.dimensions[0]
    if tuple(lower.shape) != (d_in,) or tuple(upper.shape) != (d_in,):
        raise ShapeError(
            f"output_range: needs lower and upper of shape ({d_in},); got {tuple(lower.shape)}, {tuple(upper.shape)}."
        )
    if not (lower <= upper).all():
        raise ValueError("output_range: needs lower <= upper in every feature and no NaN. Swap the bounds.")
    weights, biases = network.written_layers()
    low, high = lower.to(weights[0].dtype), upper.to(weights[0].dtype)
    for l, weight in enumerate(weights, 1):
        centre, radius = weight @ (low / 2 + high / 2), weight.abs() @ (high / 2 - low / 2)
        if biases is not None:
            centre = centre + biases[l - 1]
        low = (centre - radius).nan_to_num(-torch.inf, torch.inf, -torch.inf)  # what overflows is bounded by nothing
        high = (centre + radius).nan_to_num(torch.inf, torch.inf, -torch.inf)
        if network.is_activated(l):
            low, high = _activated_range(low, high, network.negative_slope)
    return low, high


def _activated_range(low: Tensor, high: Tensor, slope: float) -> tuple[Tensor, Tensor]:
    ends = torch.stack([torch.where(t >= 0, t, slope * t) for t in (low, high)])
    least = torch.where((low < 0) & (high > 0), ends.amin(0).clamp(max=0), ends.amin(0))
    return least, ends.amax(0)
