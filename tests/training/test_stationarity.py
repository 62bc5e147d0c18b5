"""The stationarity that `fit` reports is the theory's: in the coordinates in which the penalty is Euclidean."""

import pytest
import torch

import isthmus
from isthmus.networks import LeakyResNet
from isthmus.training.ending import stationarity
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.steps.step import step_of
from theorem_checks import assert_close, normal


def test_it_is_the_relative_residual_of_the_critical_weights() -> None:
    Lt, ridge, x, y = 2.0, 0.3, normal(0, 8, 3), normal(1, 8, 2)
    network = LeakyResNet(3, 2, width=4, depth=5, effective_depth=Lt, steps="irregular", seed=0, dtype=torch.float64)
    step = step_of(network, x, DataLoss(SQUARED, y), ridge)
    step()
    states = isthmus.walk(network, x.clone().requires_grad_())  # so that A_0 carries a gradient
    stream = [s.activation for s in states[:-1]]
    gradients = torch.autograd.grad((states[-1].activation - y).square().sum(1).mean(), stream)
    rho, W = network.steps, network.weights.detach()
    one = torch.ones(8, 1, dtype=torch.float64)
    critical = torch.stack([
        -Lt / ridge * g.mT @ torch.cat([A.detach().relu(), one], 1)
        for g, A in zip(gradients[1:], stream[:-1], strict=True)
    ])  # fmt: skip
    defect = (rho * (W - critical).square().sum((1, 2))).sum() / (rho * W.square().sum((1, 2))).sum()
    assert_close(stationarity(step), float(defect.sqrt()), relative=1e-10)
    step.curvature = 2.0  # the penalty taken for the squared norm of all weights
    with pytest.raises(AssertionError):
        assert_close(stationarity(step), float(defect.sqrt()), relative=1e-10)
