"""Stationarity of a leaky network whose stream sits on kinks of the relu, where no single derivative can vanish.

The stationarity of the relu's own derivative, layer by layer: `leaky`. Smoothed relus, which have no kinks: `training`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.diagnostics.leaky import checked_copy
from isthmus.networks import LeakyResNet, walk
from isthmus.theory.home import at_home
from isthmus.theory.inputs import Real, check_positive
from isthmus.theory.representation_costs import lifted, lifted_slope


@dataclass(frozen=True, slots=True)
class KinkStationarity:
    """How far a network is from critical, with and without a choice of the slopes at its kinks.

    Attributes:
        raw: |grad objective| / |ridge grad penalty| with the slope 1 at 0, as `LeakyPath.total_stationarity`.
        generalised: the same for the best slopes in [0, 1] that were found (*upper bound* on the least).
        kinks: entries of the stream, over samples, neurons and layers, within `width` of 0.
        entries: all of them.
        width: largest size of an entry that counts as a kink.
    """

    raw: float
    generalised: float
    kinks: int
    entries: int
    width: float


@at_home
def kink_stationarity(
    network: LeakyResNet,
    x: Float[Tensor, "n d_in"],
    y: Float[Tensor, "n d_out"],
    *,
    ridge: Real,
    width: Real = 1e-3,
    iterations: int = 500,
) -> KinkStationarity:
    """Least gradient of the exact relu's objective over all slopes that its kinks allow (*upper bound*).

        min over s in [0, 1]^kinks:  ( sum_l rho_l |W_l - Lt B_l(s)^T sigma(A_{l-1})|^2 / sum_l rho_l |W_l|^2 )^(1/2)
        B_{l-1} = (1 - rho_l Lt) B_l + rho_l s_{l-1} * (B_l V_l),   s = 0 below -width, 1 above width

    These gradients are a conservative field of the objective: every element of Clarke's subdifferential is an average
    of some, so that a local minimum on kinks (width 0) has a zero average of them. A small value with one choice of
    slopes says more: the same multipliers serve all layers, as at the limit of critical points of smoothed relus,
    whose slopes the search starts from. A width > 0 stands for kinks that a solver has only come near to, and is an
    error of that size in the stream.

    Args:
        network: not changed; its smoothing is left out. Its maps are held fixed.
        x: samples as rows.
        y: targets; squared error.
        ridge: that of the training, > 0.
        width: > 0, absolute, in units of the stream; three times the last smoothing of the
            training takes in all kinks.
        iterations: of the bounded quasi-Newton method over the slopes.

    Returns:
        Both stationarities and how many kinks there are.

    Raises:
        As `leaky_path`; ValueError also for width <= 0.

    Accuracy: the sum is a polynomial in the slopes, not convex: a local least value. Memory O(L n w).
    Source: ours; the field as in Bolte and Pauwels 2021. Test: LEAKY-25.
    """
    check_positive("kink_stationarity", "width", width)
    exact, x, y = checked_copy(network, x, y, ridge)
    exact.smoothing.zero_()
    with torch.no_grad():
        stream = torch.stack([state.activation for state in walk(exact, x)[:-1]])
        residual = stream[-1] @ exact.unembedding.mT - y
    top = -2 / (len(x) * float(ridge)) * residual @ exact.unembedding
    near = (before := stream[:-1]).abs() <= float(width)
    near[0] = False  # the input has no weights in front of it: its slopes change nothing
    slopes = lifted_slope(before, smoothing=0.0)
    size = float((exact.layer_steps()[:, None, None] * exact.weights.square()).sum())
    features = lifted(before, bias=exact.has_bias, smoothing=0.0)

    def value_and_gradient(chosen: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        free = torch.from_numpy(chosen).requires_grad_()
        with torch.enable_grad():
            value = _square(exact, features, slopes.masked_scatter(near, free), top) / size
            (gradient,) = torch.autograd.grad(value, free)
        return float(value.detach()), gradient.numpy()

    raw, best = float(_square(exact, features, slopes, top)) / size, float("inf")
    if bool(near.any()):
        from scipy.optimize import minimize  # as long to import as all of our own modules, and rarely used

        start = lifted_slope(before[near], smoothing=float(width)).numpy()
        options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-15, "gtol": 1e-14}
        found = minimize(
            value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(start), options=options
        )
        best = float(found.fun)
    return KinkStationarity(raw**0.5, min(raw, best) ** 0.5, int(near.sum()), near.numel(), float(width))


def _square(network: LeakyResNet, features: Tensor, slopes: Tensor, top: Tensor) -> Tensor:
    """Sum over the layers of rho |W - Lt B^T S|^2 when the relu of level l has slopes[l]."""
    momentum, total = top, top.new_zeros(())
    Lt, w, waist = network.effective_depth, network.width, network.waist
    for l in range(network.depth - 1, -1, -1):
        rho, W = float(network.layer_steps()[l]), network.weights[l]
        if waist is not None and waist.layer == l + 1:
            momentum = momentum @ waist.projection
        total = total + rho * (W - Lt * momentum.mT @ features[l]).square().sum()
        momentum = (1 - rho * Lt) * momentum + rho * slopes[l] * (momentum @ W[:, :w])
    return total
