"""The ridge of a training is read off its network: exactly where `fit` ended, closely where Adam did."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import isthmus
from foreign_modules import samples
from isthmus.errors import ShapeError
from isthmus.training import Outcome

DOUBLE = torch.float64


def targets(x: Tensor) -> Tensor:
    return torch.stack([x[:, 0] + x[:, 1], x[:, 2] * 0.5 - x[:, 0]], 1)


@pytest.mark.parametrize("ridge", [1e-2, 3e-2])
def test_it_is_exact_where_fit_has_converged(ridge: float) -> None:
    x = samples(60, 4, dtype=DOUBLE)
    network = isthmus.FullyConnected(4, 2, width=5, depth=3, linear=(1, 2), seed=0, dtype=DOUBLE)
    result = isthmus.fit(network, x, targets(x), ridge=ridge)
    assert result.outcome is Outcome.CONVERGED
    found = isthmus.forensics(result.network, x, targets(x))
    assert found.ridge == pytest.approx(ridge, rel=1e-6)
    assert found.residual <= 1e-6
    assert found.is_stationary
    assert found.loss == pytest.approx(result.data_loss, rel=1e-9)
    strong = found.parameters["size"].values > 0.1
    assert np.allclose(found.parameters["ridge"].values[strong], ridge, rtol=1e-4)


def test_a_penalty_of_its_own_is_taken_as_it_is() -> None:
    x = samples(60, 4, dtype=DOUBLE)
    network = isthmus.ResNet(4, 2, width=5, depth=2, block_depth=1, linear=True, seed=0, dtype=DOUBLE)
    result = isthmus.fit(network, x, targets(x), ridge=1e-2)
    found = isthmus.forensics(result.network, x, targets(x))
    assert found.residual <= 10 * result.stationarity + 1e-9
    assert found.ridge == pytest.approx(1e-2, rel=10 * result.stationarity + 1e-9)


def classifier(x: Tensor, classes: Tensor, decay: float) -> nn.Sequential:
    """6-16-16-3 that Adam with L2 has trained."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
    optimiser = torch.optim.Adam(module.parameters(), lr=5e-3, weight_decay=decay)
    for _ in range(1500):
        optimiser.zero_grad()
        functional.cross_entropy(module(x), classes).backward()
        optimiser.step()
    return module


def test_adam_with_weight_decay_and_a_function_of_torch() -> None:
    x = samples(90, 6)
    classes = x[:, :3].argmax(1)
    module = classifier(x, classes, 2e-2)
    before = {name: (p.requires_grad, p.detach().clone()) for name, p in module.named_parameters()}
    found = isthmus.forensics(module, x, classes)
    other = isthmus.forensics(module, x, classes, loss=functional.cross_entropy)
    assert 2 * found.ridge == pytest.approx(2e-2, rel=0.1)
    assert other.ridge == pytest.approx(found.ridge, rel=1e-9)
    assert found.collapse is not None
    assert 0 < found.collapse.variation < 1
    assert found.collapse.simplex_distance < 0.5
    tail, bound = (found.parameters[name].values for name in ("tail", "tail_bound"))
    known = np.isfinite(tail)
    assert known.sum() == 3
    assert (tail[known] <= bound[known] + 1e-9).all()
    after = {name: (p.requires_grad, p.detach()) for name, p in module.named_parameters()}
    assert all(flag == after[name][0] and torch.equal(p, after[name][1]) for name, (flag, p) in before.items())


def test_a_network_that_no_penalty_explains_says_so() -> None:
    x = samples(60, 4, dtype=DOUBLE)
    fresh = isthmus.FullyConnected(4, 2, width=5, depth=3, seed=0, dtype=DOUBLE)
    found = isthmus.forensics(fresh, x, targets(x))
    assert not found.is_stationary
    assert found.collapse is None
    with pytest.raises(ShapeError, match="needs one row of y per row of x, 60; got 59"):
        isthmus.forensics(fresh, x, targets(x)[:-1])
