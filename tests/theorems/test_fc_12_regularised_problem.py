import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from isthmus.theory import diagonal_linear_cost
from theorem_checks import assert_close

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
