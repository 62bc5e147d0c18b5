"""Objective and gradient of a leaky network by hand, on preallocated buffers: one matrix product per layer each way.

The reference that it is tested against, and steps of other networks: `training.steps.step`.
"""

import torch
from torch import Tensor, nn

from isthmus.networks import LeakyResNet
from isthmus.training.losses import DataLoss
from isthmus.training.steps.captured import Captured
from isthmus.training.steps.memory_step import MemoryStep, frozen, views
from isthmus.training.steps.products import Products, added, product


def leaky_network(network: nn.Module, solver: str) -> LeakyResNet:
    """The network itself.

    Raises:
        TypeError: it is no leaky one, for which alone the solver is.
        ValueError: a part of it is frozen, for which the curvature is not taken apart.
    """
    if not isinstance(network, LeakyResNet):
        raise TypeError(
            f"{solver}: needs a LeakyResNet, got {type(network).__name__}. Use isthmus.training.solvers.solver.LBFGS."
        )
    if names := frozen(network):
        raise ValueError(
            f"{solver}: trains all parameters of a LeakyResNet, but frozen (requires_grad=False): {', '.join(names)}. "
            "Leave solver= out, use isthmus.training.solvers.solver.LBFGS, or thaw them with requires_grad_(True)."
        )
    return network


class LeakyStep(MemoryStep[LeakyResNet]):
    """Objective and gradient of a `LeakyResNet`, its smoothed relu included; no autograd, no allocation per layer.

    The leak rides on the products: a_l = rho S W^T + (1 - rho Lt) a_{l-1} is one call, and so is the gradient of W_l
    with that of its penalty. The stream takes one piece of memory, each a_l in the place of the one before: what the
    gradient needs of it are the features S, whose positive entries tell where the stream was positive. On a CUDA
    device it is one graph, until it goes over to other samples.
    """

    def __init__(
        self, network: LeakyResNet, x: Tensor, data: DataLoss, ridge: float, products: Products | None = None
    ) -> None:
        learned = network.maps == "learned"
        parameters = [p for name, p in network.named_parameters() if learned or name == "weights"]
        super().__init__(network, parameters, ridge, products or Products())
        gradients = views(self.gradient, parameters)
        self._W, self._E, self._U = network.weights.data, network.embedding.data, network.unembedding.data
        self._gW = gradients[0]
        self._map_gradients = gradients[1:]  # of the input and of the output map, where they are learned
        n, w, p = len(x), network.width, network.weights.shape[2]
        self._whole = (
            [x.new_ones(n, p) for _ in range(network.depth)],  # the last column stays 1
            [x.new_empty(n, w) for _ in range(network.depth)],
            [x.new_empty(n, w), x.new_empty(n, w), x.new_empty(n, w), x.new_empty(n, network.d_out)],
        )
        self._set(x, data)
        self.refresh()

    @staticmethod
    def bytes_of_row(network: LeakyResNet, x: Tensor) -> int:
        """Features and roots of all layers, and five such pieces of the linearisation that its solver makes."""
        w, p = network.width, network.weights.shape[2]
        return (network.depth * (2 * p + 5 * w) + 3 * w + network.d_out) * x.element_size()

    def use(self, x: Tensor, data: DataLoss) -> None:
        """Go over to other samples, at most as many as the step was made with."""
        self._computed.stop()
        self._set(x, data)

    def _set(self, x: Tensor, data: DataLoss) -> None:
        self._S, self._roots, rest = ([whole[: len(x)] for whole in buffers] for buffers in self._whole)
        self._a, self._g, self._below, self._y = rest
        self.x, self.data = x, data
        W, S, w = self._W[0], self._S[0], self.network.width
        self._forward_choice = self.products.choice(S, W.t())
        self._gradient_choice = self.products.choice(self._g.t(), S)
        self._below_choice = self.products.choice(self._g, W[:, :w])

    def refresh(self) -> None:
        """Take over the steps of the network, after they changed."""
        self._rho: list[float] = self.network.layer_steps().tolist()
        shares = self.network.layer_steps() / self.network.norm_divisor
        size = self._W[0].numel()
        rest = self.theta.new_ones(self.theta.numel() - size * len(self._rho))
        self.curvature: Tensor | float = torch.cat([shares.to(self.theta).repeat_interleave(size), rest])
        self._computed = Captured[tuple[Tensor, Tensor]](self.theta.device)

    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""
        self._eps = float(self.network.smoothing)
        total, square = self._computed(self._compute, (self.ridge, self._eps, id(self.network.waist)))
        self.data_value = self.data.share * float(total)
        return self.data_value + self.ridge / 2 * float(square)

    def _compute(self) -> tuple[Tensor, Tensor]:
        """The data loss over its share, and twice the penalty; fills `gradient`."""
        self._forward()
        total, residual = self.data.total_and_gradient(self._y)
        self._backward(residual)
        assert isinstance(self.curvature, Tensor)
        return total, torch.dot(self.curvature * self.theta, self.theta)

    def outputs(self) -> Tensor:
        """What the network gives on its training data, a new tensor."""
        self._eps = float(self.network.smoothing)
        self._forward()
        return self._y.clone()

    def _forward(self) -> None:
        eps, Lt, w, a = self._eps, self.network.effective_depth, self.network.width, self._a
        torch.mm(self.x, self._E.t(), out=a)
        self._narrow(0)
        for l, rho in enumerate(self._rho):
            S = self._S[l]
            positive = S[:, :w]
            if eps:
                torch.mul(a, a, out=self._roots[l]).add_(eps * eps).sqrt_()
                torch.add(a, self._roots[l], out=positive).mul_(0.5)
            else:
                torch.clamp_min(a, 0.0, out=positive)
            added(a, S, self._W[l].t(), beta=1 - rho * Lt, alpha=rho, out=a, choice=self._forward_choice)
            self._narrow(l + 1)
        torch.mm(a, self._U.t(), out=self._y)

    def _backward(self, residual: Tensor) -> None:
        Lt, w, g, below = self.network.effective_depth, self.network.width, self._g, self._below
        if self._map_gradients:
            torch.mm(residual.t(), self._a, out=self._map_gradients[1])
            self._map_gradients[1].add_(self._U, alpha=self.ridge)
        torch.mm(residual, self._U, out=g)
        for l in range(len(self._rho) - 1, -1, -1):
            rho, S, W = self._rho[l], self._S[l], self._W[l]
            self._pull_through(l + 1)
            pull = self.ridge * rho / self.network.norm_divisor
            added(W, g.t(), S, beta=pull, alpha=rho, out=self._gW[l], choice=self._gradient_choice)
            product(g, W[:, :w], below, self._below_choice)
            if self._eps:  # the slope (1 + a / r) / 2 is relu / r, r = sqrt(a^2 + eps^2)
                below.mul_(S[:, :w]).div_(self._roots[l])
            else:
                torch.ops.aten.threshold_backward.grad_input(below, S[:, :w], 0.0, grad_input=below)
            g.mul_(1 - rho * Lt).add_(below, alpha=rho)
        self._pull_through(0)
        if self._map_gradients:
            torch.mm(g.t(), self.x, out=self._map_gradients[0])
            self._map_gradients[0].add_(self._E, alpha=self.ridge)

    def _narrow(self, layer: int) -> None:
        """Lead the stream behind `layer` through the waist, if it stands there."""
        waist = self.network.waist
        if waist is not None and waist.layer == layer:
            torch.addmm(waist.offset, self._a, waist.projection, out=self._below)
            self._a.copy_(self._below)

    def _pull_through(self, layer: int) -> None:
        """The gradient in front of the waist from the one behind it; the projection is its own transpose."""
        waist = self.network.waist
        if waist is not None and waist.layer == layer:
            torch.mm(self._g, waist.projection, out=self._below)
            self._g.copy_(self._below)
