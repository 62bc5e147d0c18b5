"""A linear fit whose first steps make the loss infinite, for the losses that hold an exponential."""

import torch
from torch import Tensor, nn

from isthmus import Outcome, fit
from isthmus.training.fit_result import FitResult
from isthmus.training.losses import Loss
from isthmus.training.solvers.solver import LBFGS


def wide_inputs() -> Tensor:
    """So far from 0 that outputs of slope 1 overflow."""
    return torch.linspace(-1000, 1000, 40, dtype=torch.float64)[:, None]


def fitted_past_infinity(loss: Loss, x: Tensor, y: Tensor, *, overflows: int) -> tuple[nn.Linear, FitResult]:
    """A converged linear map from 0; at some step on its way e^(`overflows` * outputs) was infinite."""
    seen: list[float] = []
    network = nn.Linear(1, loss.per_target).double()
    network.register_forward_hook(
        lambda _module, _x, outputs: seen.append(float((overflows * outputs.detach()).exp().max()))
    )
    with torch.no_grad():
        network.weight.zero_()
        network.bias.zero_()
    result = fit(network, x, y, ridge=1e-6, loss=loss, solver=LBFGS(400))
    assert max(seen) == float("inf"), "a trial step overflowed, or nothing was tested"
    assert result.outcome is Outcome.CONVERGED
    return network, result
