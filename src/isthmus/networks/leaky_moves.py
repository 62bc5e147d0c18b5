"""Moves and symmetries of leaky networks: other weights, leak or steps, the same function.

`retimed` never raises the penalty (LEAKY-17); `releaked` shows that the leak is a choice of scale (LEAKY-03). Both rest
on the relu being homogeneous, so they need an unsmoothed one. Moves of fully connected networks: the other files.
"""

import copy

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks.departures import check_as_written
from isthmus.networks.leaky import LeakyResNet
from isthmus.networks.leaky_steps import check_leak
from isthmus.theory.home import at_home
from isthmus.theory.inputs import Real, check_positive

LEAST_STEP = 1e-4  # a step stays above this share of the mean step: a layer of no length would need infinite weights


@at_home
def with_steps(network: LeakyResNet, steps: Float[Tensor, " depth"]) -> LeakyResNet:
    """The same function with other steps (*exact*): layer l is passed at another time, so the stream is rescaled.

        A'_l = c_l A_l,  c_l = exp(Lt (p_l - p'_l));   phi' V' = (c_l / c_{l-1}) phi V,   phi' b' = c_l phi b
        phi = (1 - exp(-rho Lt)) / Lt;   c_0 = c_L = 1, so the outputs stay

    Args:
        network: exponential, not smoothed; not changed.
        steps: rho'_l > 0 with sum 1.

    Returns:
        A new network.

    Raises:
        ValueError: an explicit Euler network, whose total leak the steps would change; a smoothed one; bad steps.

    Accuracy: rounding. Source: Jacot and Kaiser 2024, Proposition 10, in discrete form ours. Test: LEAKY-17.

    >>> network = isthmus.LeakyResNet(2, 1, width=3, depth=2, effective_depth=1.0, scheme="exponential", seed=0)
    >>> other = networks.with_steps(network, torch.tensor([0.25, 0.75]))
    >>> torch.allclose(other(torch.ones(1, 2)), network(torch.ones(1, 2)), atol=1e-6)
    True
    """
    _check_movable("with_steps", network)
    moved = LeakyResNet(
        network.d_in, network.d_out, width=network.width, depth=network.depth, scheme="exponential",
        effective_depth=network.effective_depth, steps=steps, maps=network.maps, bias=network.has_bias, seed=0,
        dtype=network.weights.dtype,
    )  # fmt: skip
    with torch.no_grad():
        gain, drift = _factors(network.steps.double(), moved.steps.double(), network.effective_depth)
        moved.embedding.copy_(network.embedding)
        moved.unembedding.copy_(network.unembedding)
        moved.weights.copy_(network.weights)
        moved.weights[:, :, : network.width] *= gain.to(moved.weights.dtype)[:, None, None]
        if network.has_bias:
            moved.weights[:, :, -1] *= drift.to(moved.weights.dtype)[:, None]
    return moved


@at_home
def retimed(network: LeakyResNet) -> LeakyResNet:
    """The same function with the steps that make its penalty least among all steps (*exact* in the function).

        minimises sum phi'_l |W'_l|^2 over rho', weights as in `with_steps`; without bias and in the continuum the
        optimum has constant |V|

    Args:
        network: exponential, not smoothed; not changed.

    Returns:
        A new network whose penalty is not higher; a copy where no better steps were found.

    Raises:
        ValueError: an explicit Euler network, or a smoothed one.

    Accuracy: the outputs to rounding; the steps are a local optimum.
    Source: Jacot and Kaiser 2024, Proposition 10. Test: LEAKY-17.

    >>> network = isthmus.LeakyResNet(2, 1, width=3, depth=4, effective_depth=1.0, scheme="exponential", seed=0)
    >>> bool(networks.retimed(network).penalty() <= network.penalty())
    True
    """
    _check_movable("retimed", network)
    W, width = network.weights.detach().double(), network.width
    V2, b2 = W[:, :, :width].square().sum((1, 2)), W[:, :, width:].square().sum((1, 2))
    old, Lt, L = network.steps.double(), network.effective_depth, network.depth

    def steps_of(logits: Tensor) -> Tensor:
        return LEAST_STEP / L + (1 - LEAST_STEP) * logits.softmax(0)

    def cost(logits: np.ndarray) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            t = torch.from_numpy(logits).requires_grad_()
            new = steps_of(t)
            gain, drift = _factors(old, new, Lt)
            value = (-torch.expm1(-new * Lt) * (gain.square() * V2 + drift.square() * b2)).sum()
            (gradient,) = torch.autograd.grad(value, t)
        return float(value.detach()), gradient.numpy()

    from scipy.optimize import minimize  # as long to import as all of our own modules, and rarely used

    found = minimize(cost, old.log().numpy(), jac=True, method="L-BFGS-B")
    moved = with_steps(network, steps_of(torch.from_numpy(found.x)))
    return moved if float(moved.penalty().detach()) < float(network.penalty().detach()) else copy.deepcopy(network)


def releaked(network: LeakyResNet, effective_depth: Real) -> tuple[LeakyResNet, float]:
    """The network of another leak whose outputs are a constant times those of this one (*exact*).

        A'_l = c_l A_l,   1 - rho Lt' = (c_l / c_{l-1}) (1 - rho Lt);   V' = (c_l / c_{l-1}) V,   b' = c_l b

    The biases must shrink with the stream; the paper leaves that out. Training with growing outputs, as cross-entropy
    has it, is therefore training with a growing effective depth.

    Args:
        network: explicit Euler, not smoothed; not changed.
        effective_depth: the new leak Lt' > 0, rho_l Lt' < 1.

    Returns:
        The new network and c_L, the factor on the outputs.

    Raises:
        ValueError: an exponential or smoothed network, a leak out of range.

    Accuracy: rounding. Source: Jacot and Kaiser 2024, section 1.2, with the bias ours. Test: LEAKY-03.

    >>> network = isthmus.LeakyResNet(2, 1, width=3, depth=4, effective_depth=1.0, seed=0, dtype=torch.float64)
    >>> other, factor = networks.releaked(network, 2.0)
    >>> x = torch.ones(1, 2, dtype=torch.float64)
    >>> torch.allclose(other(x), factor * network(x))
    True
    """
    check_positive("releaked", "effective_depth", effective_depth)
    if network.scheme != "euler":
        raise ValueError('releaked: needs scheme="euler". For an exponential network use its steps of Euler.')
    _check_smoothing("releaked", network)
    rho, width = network.steps.double(), network.width
    check_leak(rho, float(effective_depth), "euler")
    if float(rho.max()) * max(network.effective_depth, effective_depth) >= 1:
        raise ValueError(
            "releaked: needs rho Lt < 1 in every layer, before and after: a layer without a skip has no leak."
        )
    ratio = (1 - rho * effective_depth) / (1 - rho * network.effective_depth)
    moved = copy.deepcopy(network)
    moved.effective_depth = float(effective_depth)
    with torch.no_grad():
        moved.weights[:, :, :width] *= ratio.to(moved.weights.dtype)[:, None, None]
        moved.weights[:, :, width:] *= ratio.cumprod(0).to(moved.weights.dtype)[:, None, None]
    return moved, float(ratio.prod())


def _factors(old: Tensor, new: Tensor, effective_depth: float) -> tuple[Tensor, Tensor]:
    """What V_l and b_l are multiplied by when the steps change."""
    scale = torch.exp(effective_depth * (old.cumsum(0) - new.cumsum(0)))  # c_l
    shorter = torch.expm1(-old * effective_depth) / torch.expm1(-new * effective_depth)  # phi / phi'
    return shorter * torch.exp(effective_depth * (old - new)), shorter * scale


def _check_movable(call: str, network: LeakyResNet) -> None:
    if network.scheme != "exponential":
        raise ValueError(
            f'{call}: needs scheme="exponential"; explicit Euler leaks by a product that depends on the steps.'
        )
    if not network.effective_depth:
        raise ValueError(f"{call}: needs a network that leaks; this one is a plain ResNet (effective_depth=0).")
    _check_smoothing(call, network)


def _check_smoothing(call: str, network: LeakyResNet) -> None:
    check_as_written(call, network, LeakyResNet)
    if float(network.smoothing):
        raise ValueError(
            f"{call}: needs the relu itself; the network is smoothed by {float(network.smoothing):g}. "
            "Set network.smoothing.zero_() first."
        )
