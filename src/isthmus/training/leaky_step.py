"""Objective and gradient of a leaky network by hand, on preallocated buffers: one matrix product per layer each way.

The reference that it is tested against, and steps of other networks: `training.steps`.
"""

import torch
from torch import Tensor

from isthmus.networks import LeakyResNet
from isthmus.training.coordinates import AllCoordinates, Coordinates
from isthmus.training.flat import flatten_parameters, views
from isthmus.training.losses import DataLoss, Digest, identify, is_constant
from isthmus.training.objective import in_float64


class LeakyStep:
    """Objective and gradient of a `LeakyResNet`, its smoothed relu included; no autograd, no allocation per layer.

    The leak rides on the products: a_l = rho S W^T + (1 - rho Lt) a_{l-1} is one call, and so is the gradient of W_l
    with that of its penalty.
    """

    def __init__(self, network: LeakyResNet, x: Tensor, data: DataLoss, ridge: float) -> None:
        parameters = [p for p in network.parameters() if p.requires_grad]
        self.network = network
        self.theta, self.gradient = flatten_parameters(parameters)
        gradients = views(self.gradient, parameters)
        self._W, self._E, self._U = network.weights.data, network.embedding.data, network.unembedding.data
        self._gW = gradients[0]
        self._map_gradients = gradients[1:]  # of the input and of the output map, where they are learned
        n, w, p = len(x), network.width, network.weights.shape[2]
        self._whole = (
            [x.new_empty(n, w) for _ in range(network.depth + 1)],
            [x.new_ones(n, p) for _ in range(network.depth)],  # the last column stays 1
            [x.new_empty(n, w) for _ in range(network.depth)],
            [x.new_empty(n, w), x.new_empty(n, w), x.new_empty(n, network.d_out)],
        )
        self.ridge, self.data_value = ridge, float("nan")
        self.coordinates: Coordinates = AllCoordinates()
        self.use(x, data)
        self.refresh()

    def use(self, x: Tensor, data: DataLoss) -> None:
        """Go over to other samples, at most as many as the step was made with."""
        self._a, self._S, self._roots, rest = ([whole[: len(x)] for whole in buffers] for buffers in self._whole)
        self._g, self._below, self._y = rest
        self.x, self.data = x, data

    def refresh(self) -> None:
        """Take over the steps of the network, after they changed."""
        self._rho: list[float] = self.network.layer_steps().tolist()
        shares = self.network.layer_steps() / self.network.effective_depth
        size = self._W[0].numel()
        rest = self.theta.new_ones(self.theta.numel() - size * len(self._rho))
        self.curvature: Tensor | float = torch.cat([shares.to(self.theta).repeat_interleave(size), rest])

    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""
        self._forward()
        self.data_value, residual = self.data.value_and_gradient(self._y)
        self._backward(residual)
        assert isinstance(self.curvature, Tensor)
        return self.data_value + self.ridge / 2 * float(torch.dot(self.curvature * self.theta, self.theta))

    def outputs(self) -> Tensor:
        """What the network gives on its training data, a new tensor."""
        self._forward()
        return self._y.clone()

    def in_float64(self) -> tuple[float, float]:
        """Data loss and penalty, both computed in float64."""
        return in_float64(self.network, self.x, self.data)

    def computes_constant(self) -> bool:
        """Whether the network gives the same output for all its training data although the targets vary."""
        return is_constant(self.outputs(), self.data)

    def identify(self, digest: Digest) -> None:
        """Add the training data to a digest."""
        identify(digest, self.x, self.data)

    def _forward(self) -> None:
        eps, Lt, w = float(self.network.smoothing), self.network.effective_depth, self.network.width
        torch.mm(self.x, self._E.t(), out=self._a[0])
        self._narrow(0)
        for l, rho in enumerate(self._rho):
            a, S = self._a[l], self._S[l]
            positive = S[:, :w]
            if eps:
                torch.mul(a, a, out=self._roots[l]).add_(eps * eps).sqrt_()
                torch.add(a, self._roots[l], out=positive).mul_(0.5)
            else:
                torch.clamp_min(a, 0.0, out=positive)
            torch.addmm(a, S, self._W[l].t(), beta=1 - rho * Lt, alpha=rho, out=self._a[l + 1])
            self._narrow(l + 1)
        torch.mm(self._a[-1], self._U.t(), out=self._y)

    def _backward(self, residual: Tensor) -> None:
        eps, Lt, w = float(self.network.smoothing), self.network.effective_depth, self.network.width
        g, below = self._g, self._below
        if self._map_gradients:
            torch.mm(residual.t(), self._a[-1], out=self._map_gradients[1])
            self._map_gradients[1].add_(self._U, alpha=self.ridge)
        torch.mm(residual, self._U, out=g)
        for l in range(len(self._rho) - 1, -1, -1):
            rho, S = self._rho[l], self._S[l]
            self._pull_through(l + 1)
            torch.addmm(self._W[l], g.t(), S, beta=self.ridge * rho / Lt, alpha=rho, out=self._gW[l])
            torch.mm(g, self._W[l, :, :w], out=below)
            if eps:  # the slope (1 + a / r) / 2 is relu / r, r = sqrt(a^2 + eps^2)
                below.mul_(S[:, :w]).div_(self._roots[l])
            else:
                torch.ops.aten.threshold_backward.grad_input(below, self._a[l], 0.0, grad_input=below)
            g.mul_(1 - rho * Lt).add_(below, alpha=rho)
        self._pull_through(0)
        if self._map_gradients:
            torch.mm(g.t(), self.x, out=self._map_gradients[0])
            self._map_gradients[0].add_(self._E, alpha=self.ridge)

    def _narrow(self, layer: int) -> None:
        """Lead the stream behind `layer` through the waist, if it stands there."""
        waist = self.network.waist
        if waist is not None and waist.layer == layer:
            torch.addmm(waist.offset, self._a[layer], waist.projection, out=self._below)
            self._a[layer].copy_(self._below)

    def _pull_through(self, layer: int) -> None:
        """The gradient in front of the waist from the one behind it; the projection is its own transpose."""
        waist = self.network.waist
        if waist is not None and waist.layer == layer:
            torch.mm(self._g, waist.projection, out=self._below)
            self._g.copy_(self._below)
