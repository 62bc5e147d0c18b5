"""Objective and gradient of a fully connected network by hand, on preallocated buffers.

The reference that it is tested against, and steps of other networks: `training.steps.step`.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from isthmus.networks import FullyConnected
from isthmus.networks.layers import activation_derivative
from isthmus.training.losses import DataLoss
from isthmus.training.steps.captured import Captured
from isthmus.training.steps.memory_step import MemoryStep, views
from isthmus.training.steps.products import ProductChoice, Products, activated, product


class _Layer(NamedTuple):
    """Views of one layer's parameters and of their gradients."""

    weight: Tensor
    weight_t: Tensor
    bias: Tensor | None
    weight_gradient: Tensor
    bias_gradient: Tensor | None


class _Choices(NamedTuple):
    """By which library the three products of a layer are computed."""

    forward: ProductChoice
    gradient: ProductChoice
    below: ProductChoice


class FullyConnectedStep(MemoryStep[FullyConnected]):
    """Objective and gradient of a `FullyConnected` by hand: no autograd, no allocation of activations per call.

    Every view that a call needs is made beforehand: at a few hundred samples a transpose costs a quarter of a product.
    On a CUDA device it is one graph, until it goes over to other samples.
    """

    def __init__(
        self, network: FullyConnected, x: Tensor, data: DataLoss, ridge: float, products: Products | None = None
    ) -> None:
        parameters = [p for pair in _layers(network) for p in pair if p is not None]
        super().__init__(network, parameters, ridge, products or Products())
        self.curvature: Tensor | float = 2.0
        gradients = iter(views(self.gradient, parameters))
        self._layers = [
            _Layer(
                w.data,
                w.data.t(),
                None if b is None else b.data,
                next(gradients),
                None if b is None else next(gradients),
            )
            for w, b in _layers(network)
        ]
        self._slopes = [
            network.negative_slope if network.is_activated(l) else None for l in range(1, network.depth + 1)
        ]
        d = network.dimensions
        self._outputs = [x.new_empty(len(x), width) for width in d[1:]]
        # gradients at the layers: each is needed for the one below it alone, so two pieces of memory take turns
        self._below = [x.new_empty(len(x) * max(d[first:-1:2], default=0)) for first in (2, 1)]
        self._set(x, data)
        self._computed = Captured[tuple[Tensor, Tensor]](x.device)

    def use(self, x: Tensor, data: DataLoss) -> None:
        """Go over to other samples, at most as many as the step was made with."""
        self._computed.stop()
        self._set(x, data)

    def _set(self, x: Tensor, data: DataLoss) -> None:
        n, d = len(x), self.network.dimensions
        self.x, self.data = x, data
        self._a = [x, *(whole[:n] for whole in self._outputs)]
        hidden = enumerate(d[1:-1], 1)
        self._d = [x, *(self._below[l % 2][: n * width].view(n, width) for l, width in hidden)]
        self._d_t = [below.t() for below in self._d]
        self._ones = x.new_ones(len(x))
        # the gradient at a layer's outputs has their shape, and lies in memory as they do
        self._choices = [
            _Choices(
                self.products.choice(a, layer.weight_t),
                self.products.choice(out.t(), a),
                self.products.choice(out, layer.weight),
            )
            for layer, a, out in zip(self._layers, self._a, self._a[1:], strict=False)
        ]

    def __call__(self) -> float:
        """Objective at `theta`; fills `gradient` and `data_value`."""
        total, square = self._computed(self._compute, self.ridge)
        self.data_value = self.data.share * float(total)
        return self.data_value + self.ridge * float(square)

    def _compute(self) -> tuple[Tensor, Tensor]:
        """The data loss over its share, and |theta|^2; fills `gradient`."""
        self._forward()
        # the outputs' buffer becomes the residual: total_and_gradient works in place
        total, g = self.data.total_and_gradient(self._a[-1])
        self._backward(g)
        self.gradient.add_(self.theta, alpha=2 * self.ridge)
        return total, torch.dot(self.theta, self.theta)

    @staticmethod
    def bytes_of_row(network: FullyConnected, x: Tensor) -> int:
        """Activations of all layers, gradients at two, and what a slope other than 0 is made of."""
        d = network.dimensions
        return (sum(d) + (6 if network.negative_slope else 2) * max(d)) * x.element_size()

    def refresh(self) -> None:
        """Nothing: all of the network are parameters."""

    def outputs(self) -> Tensor:
        """What the network gives on its training data, a new tensor."""
        self._forward()
        return self._a[-1].clone()

    def _forward(self) -> None:
        a = self._a
        for l, layer in enumerate(self._layers):
            activated(
                a[l], layer.weight_t, layer.bias, slope=self._slopes[l], out=a[l + 1], choice=self._choices[l].forward
            )

    def _backward(self, g: Tensor) -> None:
        a, g_t = self._a, g.t()
        for l in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[l]
            product(g_t, a[l], layer.weight_gradient, self._choices[l].gradient)
            if layer.bias_gradient is not None:
                torch.mv(g_t, self._ones, out=layer.bias_gradient)
            if l == 0:
                return
            below = product(g, layer.weight, self._d[l], self._choices[l].below)
            slope = self._slopes[l - 1]
            if slope == 0.0:
                below.mul_(a[l].sign_())  # nothing needs a[l] any more: 1 where it was positive, else 0
            elif slope is not None:
                # negative slopes flip the sign of a, so the mask must come from where a keeps the sign of z: a > 0 for
                # slope >= 0; for slope < 0 the activation is never negative and z cannot be read off: recompute it
                below.mul_(self._derivative(l, slope))
            g, g_t = below, self._d_t[l]

    def _derivative(self, l: int, slope: float) -> Tensor:
        if slope > 0:
            sign = self._a[l]
        else:
            layer = self._layers[l - 1]
            sign = torch.nn.functional.linear(self._a[l - 1], layer.weight, layer.bias)
        return activation_derivative(sign, slope)


def _layers(network: FullyConnected) -> list[tuple[nn.Parameter, nn.Parameter | None]]:
    biases = list(network.biases) if network.has_bias else [None] * network.depth
    return list(zip(network.weights, biases, strict=True))
