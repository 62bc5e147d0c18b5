"""Objectives and gradients of many fully connected networks of one shape on the same data, by hand, all at once.

One network: `steps`. What is done with them: `batched.batch_solvers`, `batched`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.networks.layers import activation_derivative
from isthmus.networks.rebalancing import balance_layers
from isthmus.training.losses import DataLoss


class BatchedStep:
    """Networks stacked along a first dimension, each with its own ridge.

        objective_b = data loss of network b + ridge_b * |theta_b|^2

    Attributes:
        theta, gradient: (B, P); row b is laid out as the flat vector of a `FullyConnectedStep`.
        ridges: (B, 1), float64.
    """

    def __init__(self, shape: FullyConnected, theta: Tensor, x: Tensor, data: DataLoss, ridges: Tensor) -> None:
        assert data.weight is None, "weighted samples are for one network"
        self._shape, self._x, self._data = shape, x, data
        self.theta, self.gradient, self.ridges = theta, torch.zeros_like(theta), ridges
        self._layers, self._gradients = self.layers(theta), self.layers(self.gradient)
        self._slopes = [shape.negative_slope if shape.is_activated(l) else None for l in range(1, shape.depth + 1)]
        size, d = len(theta), shape.dimensions
        self._a = [x.expand(size, *x.shape), *(theta.new_empty(size, len(x), width) for width in d[1:])]
        self._d = [theta.new_empty(size, len(x), width) for width in d[1:-1]]

    @classmethod
    def of(
        cls, networks: Sequence[FullyConnected], x: Tensor, data: DataLoss, ridges: Sequence[float]
    ) -> "BatchedStep":
        """The networks at their present weights, which are copied."""
        rows = [torch.cat([p.detach().reshape(-1) for p in _in_order(network)]) for network in networks]
        column = torch.tensor(ridges, dtype=torch.float64, device=x.device)[:, None]
        return cls(networks[0], torch.stack(rows), x, data, column)

    def some(self, members: Tensor) -> "BatchedStep":
        """A step of some of the networks, at copies of their weights."""
        return BatchedStep(self._shape, self.theta[members], self._x, self._data, self.ridges[members])

    def layers(self, rows: Tensor) -> list[tuple[Tensor, Tensor | None]]:
        """Views (B, out, in) and (B, out) of rows of parameters."""
        found: list[tuple[Tensor, Tensor | None]] = []
        at = 0
        for weight, bias in zip(self._shape.weights, self._shape.biases or [None] * self._shape.depth, strict=True):
            view = rows[:, at : at + weight.numel()].unflatten(1, weight.shape)
            at += weight.numel()
            found.append((view, None if bias is None else rows[:, at : at + len(bias)]))
            at += 0 if bias is None else len(bias)
        return found

    def __call__(self) -> Tensor:
        """The objectives (B,) at `theta`, float64; fills `gradient`."""
        a = self._a
        for l, (weight, bias) in enumerate(self._layers):
            self._affine(l, weight, bias, a[l + 1])
            slope = self._slopes[l]
            if slope is not None:
                torch.nn.functional.leaky_relu_(a[l + 1], slope) if slope else a[l + 1].relu_()
        losses, g = self._data.loss.batched(a[-1], self._data.y)
        self._backward(g)
        self.gradient.add_(self.theta * (2 * self.ridges).to(self.theta.dtype))
        return losses.double() + self.ridges[:, 0] * self.theta.square().sum(1).double()

    def rebalance(self) -> None:
        """One sweep of neuron rebalancing of all networks."""
        biases = [bias for _, bias in self._layers if bias is not None]
        balance_layers([weight for weight, _ in self._layers], biases or None)

    def write(self, member: int, network: FullyConnected) -> None:
        """Copy the weights of one member into a network."""
        at = 0
        with torch.no_grad():
            for parameter in _in_order(network):
                parameter.copy_(self.theta[member, at : at + parameter.numel()].view_as(parameter))
                at += parameter.numel()

    def _affine(self, l: int, weight: Tensor, bias: Tensor | None, out: Tensor) -> None:
        if bias is None:
            torch.bmm(self._a[l], weight.mT, out=out)
        else:
            torch.baddbmm(bias[:, None, :], self._a[l], weight.mT, out=out)

    def _backward(self, g: Tensor) -> None:
        for l in range(len(self._layers) - 1, -1, -1):
            of_weight, of_bias = self._gradients[l]
            of_weight.copy_(torch.bmm(g.mT, self._a[l]))  # into strided memory bmm itself is slower
            if of_bias is not None:
                of_bias.copy_(g.sum(1))
            if l == 0:
                return
            below = torch.bmm(g, self._layers[l][0], out=self._d[l - 1])
            slope = self._slopes[l - 1]
            if slope == 0.0:
                torch.ops.aten.threshold_backward.grad_input(below, self._a[l], 0.0, grad_input=below)
            elif slope is not None:
                below.mul_(self._derivative(l, slope))
            g = below

    def _derivative(self, l: int, slope: float) -> Tensor:
        if slope > 0:
            return activation_derivative(self._a[l], slope)
        # the activation is never negative: its sign does not tell the one before it (see steps)
        weight, bias = self._layers[l - 1]
        before = torch.empty_like(self._a[l])
        self._affine(l - 1, weight, bias, before)
        return activation_derivative(before, slope)


def _in_order(network: FullyConnected) -> list[Tensor]:
    """The parameters in the order of `FullyConnectedStep.theta`."""
    if not network.has_bias:
        return list(network.weights)
    return [p for pair in zip(network.weights, network.biases, strict=True) for p in pair]
