"""The step sizes of a leaky residual network (LEAKY-19): how long each layer lasts, with sum 1.

Steps that follow the training, and what the steps multiply: elsewhere (`training`, `networks.leaky`).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real

STEPS = ("equidistant", "irregular", "adaptive")
SCHEMES = ("euler", "exponential")
ROUNDING = 1e-5  # how far a sum of steps may be from 1: float32 tensors of a few hundred steps
BEYOND_ONE = 1e-12  # by which rho Lt of a layer without any skip may exceed 1


def step_sizes(steps: str | Tensor, depth: int, *, irregularity: Real = 1.0) -> Float[Tensor, " depth"]:
    """The steps rho_1 .. rho_L > 0 with sum 1, float64.

        equidistant: 1/L;   irregular: proportional to 1 + a (1/4 - |(l - 1/2)/L - 1/2|);   adaptive: 1/L to begin with

    The irregular mesh stands at mid-points, so that it is its own mirror image, and is normalised; the formula of the
    paper is neither for odd L.

    Args:
        steps: one of the three words, or a tensor.
        depth: L.
        irregularity: a in [0, 1], of irregular steps; 0 is an equidistant mesh, more has more layers near the ends.

    Returns:
        One step per layer.

    Raises:
        ValueError: another word; `irregularity` outside [0, 1]; a step <= 0; a sum other than 1.
        ShapeError: not one step per layer.

    Source: Jacot and Kaiser 2024, section 3, as corrected. Test: LEAKY-19.
    """
    if not 0 <= irregularity <= 1:
        raise ValueError(f"LeakyResNet(irregularity={irregularity!r}): needs a number in [0, 1]; 0 is equidistant.")
    if isinstance(steps, str):
        if steps not in STEPS:
            raise ValueError(
                f"LeakyResNet(steps={steps!r}): needs {', '.join(map(repr, STEPS))} or a tensor of {depth} steps."
            )
        if steps != "irregular":
            return torch.full((depth,), 1.0 / depth, dtype=torch.float64)
        middle = (torch.arange(depth, dtype=torch.float64) + 0.5) / depth
        rho = 1 + irregularity / 4 - irregularity * (middle - 0.5).abs()
        return rho / rho.sum()
    if steps.shape != (depth,):
        raise ShapeError(f"LeakyResNet(steps=tensor): needs {depth} steps, one per layer; got {tuple(steps.shape)}.")
    rho = steps.detach().double()
    if not bool((rho > 0).all()):
        raise ValueError(f"LeakyResNet(steps=tensor): needs positive steps; the least is {float(rho.min()):.3g}.")
    if not abs(float(rho.sum()) - 1) <= ROUNDING:
        raise ValueError(f"LeakyResNet(steps=tensor): needs sum 1; got {float(rho.sum()):.6g}. Divide by the sum.")
    return rho / rho.sum()


def check_leak(steps: Tensor, effective_depth: float, scheme: str) -> None:
    """Raise where explicit Euler would turn the sign of the stream: rho_l Lt > 1."""
    largest = float(steps.max()) * effective_depth
    if scheme == "euler" and not largest <= 1 + BEYOND_ONE:
        raise ValueError(
            f"LeakyResNet(effective_depth={effective_depth:g}): explicit Euler needs rho Lt <= 1 in every layer; got "
            f'{largest:.3g} with depth {len(steps)}. Raise depth, or pass scheme="exponential".'
        )
