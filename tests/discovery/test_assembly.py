"""From trained networks to the two halves, on a network written down. The whole of `discover`: test_discover."""

import numpy as np
import torch

from isthmus.discovery.assembly import halves_of
from isthmus.discovery.minimum import flat_parameters
from isthmus.discovery.settings import Settings
from minima import connected, minimum, problem_of

SETTINGS = Settings(relu_layers=1, linear_layers=1, width=4)


def test_the_coordinate_that_saves_most_error_comes_first_though_it_varies_least() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    problem = problem_of(x, x)
    family = connected(SETTINGS, problem)
    network = family.narrow(2, middle=1)
    signs = torch.tensor([[1.0, 0, -1, 0], [0, 1, 0, -1]])
    with torch.no_grad():  # y_1 = 0.1 x_1 through a coordinate of deviation 10, y_2 = x_2 through one of deviation 1
        for bias in network.biases:
            bias.zero_()
        written = (signs.T, torch.diag(torch.tensor([10.0, 1])) @ signs, signs.T, torch.diag(torch.tensor([0.01, 1])))
        for weight, value in zip(network.weights, (*written[:3], written[3] @ signs), strict=True):
            weight.copy_(value)
    scree = {2: minimum(theta=flat_parameters(network), rank=2, middle=1)}
    halves = halves_of(family, {}, scree, 2)
    with torch.no_grad():
        z = halves.encoder(problem.x.double())
        y = halves.decoder(z)
    assert z.var(0)[1] > 50 * z.var(0)[0]
    assert torch.allclose(z[:, 0].abs(), problem.x[:, 1].double().abs(), atol=0.2)
    assert torch.allclose(y, problem.x.double() * torch.tensor([0.1, 1.0]), atol=1e-6)
    covariance = torch.cov(z.T)
    assert abs(float(covariance[0, 1])) < 1e-6 * float(covariance[1, 1])
    axes = halves.decoder.weights[0].detach()
    assert bool((axes.gather(0, axes.abs().argmax(0, keepdim=True)) > 0).all())


def test_through_no_coordinate_it_is_the_constant_whose_error_is_told() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 3)), rng.exponential(size=(60, 2))
    problem = problem_of(x, y)
    family = connected(SETTINGS, problem)
    network = family.new(seed=0)
    curve = {1: minimum(theta=flat_parameters(network), rank=1)}
    halves = halves_of(family, curve, {}, 0)
    with torch.no_grad():
        outputs = halves.decoder(halves.encoder(problem.x_held.double()))
    assert halves.encoder.dimensions[-1] == 0
    assert torch.equal(outputs, problem.best_constant().expand_as(outputs))
    assert problem.loss_of(outputs, problem.y_held) == problem.heldout_error_of_constant()
