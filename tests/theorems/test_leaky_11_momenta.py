import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.networks import LeakyResNet
from isthmus.theory import critical_weights
from leaky_networks import random_leaky, random_path
from theorem_checks import SEEDS, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-11")


def objective_gradient(network: LeakyResNet, seed: int, ridge: float) -> torch.Tensor:
    x, y = normal(seed + 2, 8, 3), normal(seed + 3, 8, 2)
    value = (network(x) - y).square().sum(1).mean() + ridge * network.penalty()
    return torch.autograd.grad(value, network.weights)[0]


@settings(deadline=None, max_examples=10)
@given(
    seed=SEEDS,
    bias=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.2]),
    scheme=st.sampled_from(["euler", "exponential"]),
)
def test_momenta_give_the_gradient_at_any_weights(seed: int, bias: bool, smoothing: float, scheme: str) -> None:
    network, ridge, Lt = random_leaky(seed, bias=bias, smoothing=smoothing, scheme=scheme), 0.3, 2.5
    path = random_path(network, seed)
    A, B = path.activations, path.momenta

    def predicted(momenta: torch.Tensor) -> torch.Tensor:
        best = critical_weights(A[:-1], momenta, effective_depth=Lt, bias=bias, smoothing=smoothing)
        return path.steps[:, None, None] * ridge / Lt * (path.weights - best)

    found = objective_gradient(network, seed, ridge)
    assert_close(found, predicted(B[1:]), relative=1e-11)
    with pytest.raises(AssertionError):  # indices not staggered: B_{l-1} for B_l
        assert_close(found, predicted(B[:-1]), relative=1e-11)
