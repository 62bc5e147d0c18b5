import math

import pytest
import torch
from torch import Tensor

from isthmus.theory import largest_stable_step, sharpness, suffix_jacobians, tangent_kernel
from theorem_checks import assert_close, linearised, normal, random_network

pytestmark = pytest.mark.theorem("FC-41")


def kernel_and_hessian() -> tuple[Tensor, Tensor]:
    """Kernel of a small network, and the Hessian of (1/N) sum |f(x_i) - y_i|^2 where it interpolates."""
    network, x = random_network(0, [2, 3, 2]), normal(1, 4, 2)
    y = network(x).detach()
    shapes = [p.shape for p in network.parameters()]
    names = [name for name, _ in network.named_parameters()]

    def loss(flat: Tensor) -> Tensor:
        parts = [p.view(s) for p, s in zip(flat.split([s.numel() for s in shapes]), shapes, strict=True)]
        outputs = torch.func.functional_call(network, dict(zip(names, parts, strict=True)), (x,))
        return (outputs - y).square().sum(1).mean()

    flat = torch.cat([p.detach().flatten() for p in network.parameters()])
    hessian = torch.autograd.functional.hessian(loss, flat)
    assert isinstance(hessian, Tensor)
    net = linearised(network, x)
    return tangent_kernel((net.activations, suffix_jacobians(net.weights, net.derivatives))), hessian


def test_sharpness_is_the_norm_of_the_hessian_of_an_interpolating_network() -> None:
    kernel, hessian = kernel_and_hessian()
    expected = torch.linalg.eigvalsh(hessian)[-1]
    assert_close(sharpness(kernel), expected, relative=1e-10)
    with pytest.raises(AssertionError):  # the loss with a factor 1/2
        assert_close(sharpness(kernel) / 2, expected, relative=1e-10)


def test_gradient_descent_diverges_just_beyond_the_largest_step() -> None:
    kernel, hessian = kernel_and_hessian()
    step = largest_stable_step(kernel)

    def growth(eta: float) -> float:
        return float((1 - eta * torch.linalg.eigvalsh(hessian)).abs().max())

    assert growth(0.99 * step) <= 1 + 1e-9
    assert growth(1.01 * step) > 1


def test_vanishing_and_empty_kernels_allow_any_step() -> None:
    assert largest_stable_step(torch.zeros(3, 3, 2, 2)) == math.inf
    assert float(sharpness(torch.zeros(0, 0, 2, 2))) == 0
