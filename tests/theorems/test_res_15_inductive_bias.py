import math

import pytest
import torch

from isthmus.theory import resnet_cost, resnet_cost_gradient
from theorem_checks import assert_close

pytestmark = pytest.mark.theorem("RES-15")


def test_uniform_weight_decay_is_nuclear_below_one_and_logarithmic_above() -> None:
    small, large = torch.tensor([0.2, 0.9], dtype=torch.float64), torch.tensor([5.0], dtype=torch.float64)
    assert_close(resnet_cost(small, residual_weight=1.0, block_depth=2), small.sum())
    assert_close(resnet_cost(large, residual_weight=1.0, block_depth=2), 1 + math.log(5.0))
    assert_close(resnet_cost_gradient(large, residual_weight=1.0, block_depth=2), 1 / large)
    with pytest.raises(AssertionError):
        assert_close(resnet_cost(large, residual_weight=1.0, block_depth=2), large.sum())
