import pytest
import torch

from isthmus.theory import nonlinearity_impact
from theorem_checks import assert_close, normal

pytestmark = pytest.mark.theorem("FC-47")


def test_the_impact_of_a_leaky_layer_is_its_negative_part() -> None:
    z = normal(0, 30, 5)
    expected = 0.7 * z.clamp_max(0).norm() / z.norm()
    assert_close(nonlinearity_impact(z, torch.nn.functional.leaky_relu(z, 0.3)), expected)
    with pytest.raises(AssertionError):  # divided by the activation instead
        assert_close(nonlinearity_impact(z, z.relu()), z.clamp_max(0).norm() / z.relu().norm())


def test_positive_and_zero_layers_are_linear() -> None:
    z = normal(0, 30, 5).abs()
    assert_close(nonlinearity_impact(z, z.relu()), 0.0)
    assert_close(nonlinearity_impact(0 * z, 0 * z), 0.0)
