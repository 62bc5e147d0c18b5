import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.theory import diagonal_linear_cost, linear_cost
from isthmus.training import fit
from isthmus.training.solvers import LBFGS
from theorem_checks import assert_close, normal, with_spectrum

pytestmark = pytest.mark.theorem("FC-12")


@pytest.mark.parametrize(("depth", "target", "ridge"), [(2, 1.5, 0.1), (3, 2.0, 0.05), (5, -1.2, 0.02)])
def test_the_penalty_over_weights_is_the_representation_cost_over_functions(
    depth: int, target: float, ridge: float
) -> None:
    def over_weights(u: NDArray[np.float64]) -> float:
        return float((np.prod(u) - target) ** 2 + ridge * (u @ u))

    def over_functions(a: float, power: int = 1) -> float:
        cost = float(diagonal_linear_cost(torch.tensor([a], dtype=torch.float64), depth=power * depth)) / power
        return (a - target) ** 2 + ridge * cost

    start = np.full(depth, abs(target) ** (1 / depth))
    start[0] *= np.sign(target)
    trained = float(minimize(over_weights, start, method="BFGS", options={"gtol": 1e-10}).fun)

    def least(power: int) -> float:
        return float(minimize(lambda a: over_functions(float(a[0]), power), [0.9 * target], options={"gtol": 1e-9}).fun)

    assert_close(trained, least(1), relative=1e-8)
    with pytest.raises(AssertionError):  # exponent 1/L instead of 2/L
        assert_close(trained, least(2), relative=1e-8)


def test_two_matrices_pay_twice_the_nuclear_norm_of_their_product() -> None:
    """min |W_2 W_1 - T|^2 + ridge |W|^2 over weights is min |A - T|^2 + ridge R(A; 2) over maps: a soft threshold."""
    target, ridge = with_spectrum(0, [2.0, 0.6, 0.1], 3, 3), 0.3

    def over_weights(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        first, second = (w.clone().requires_grad_() for w in torch.from_numpy(flat).view(2, 3, 3))
        value = (second @ first - target).square().sum() + ridge * (first.square().sum() + second.square().sum())
        gradients = torch.autograd.grad(value, [first, second])
        return float(value.detach()), torch.stack(gradients).flatten().numpy()

    left, values, right = torch.linalg.svd(target)
    best = (left * (values - ridge).clamp_min(0)) @ right
    starts = [normal(seed, 18).numpy() for seed in range(3)]
    options = {"gtol": 1e-10, "ftol": 1e-15, "maxiter": 2000}
    trained = [float(minimize(over_weights, s, jac=True, method="L-BFGS-B", options=options).fun) for s in starts]

    def assert_least(cost: Tensor) -> None:
        assert_close(min(trained), (best - target).square().sum() + ridge * cost, relative=1e-8)

    assert_least(linear_cost(best, depth=2))
    with pytest.raises(AssertionError):  # the nuclear norm once
        assert_least(linear_cost(best, depth=2) / 2)


def test_a_network_that_is_trained_ends_at_the_soft_threshold() -> None:
    """Rows sqrt(N) e_i make the data loss |A - T|^2: `fit` over weights finds the least of loss + ridge R over maps."""
    target, ridge = with_spectrum(4, [2.0, 0.6, 0.1], 3, 3), 0.3
    x = 3**0.5 * torch.eye(3, dtype=torch.float64)
    left, values, right = torch.linalg.svd(target)
    best = (left * (values - ridge).clamp_min(0)) @ right

    def least(seed: int) -> float:
        network = FullyConnected(3, 3, width=3, depth=2, bias=False, linear=[1], seed=seed, dtype=torch.float64)
        fit(network, x, x @ target.mT, ridge=ridge, solver=LBFGS(2000, plateau=0.0))
        with torch.no_grad():
            return float((network(x) - x @ target.mT).square().sum(1).mean() + ridge * network.penalty())

    trained = min(least(seed) for seed in range(2))
    loss = float((best - target).square().sum())
    assert_close(trained, loss + ridge * float(linear_cost(best, depth=2)), relative=1e-6)
    with pytest.raises(AssertionError):  # at the cost of another depth
        assert_close(trained, loss + ridge * float(linear_cost(best, depth=3)), relative=1e-3)
