"""Models of the literature: their formulas, their gradients, their inputs and noise."""

import math

import numpy as np
import pytest
import torch

from isthmus.tasks import ReductionModel, gradients, reduction_model, spread_index
from tolerances import closed_form, rounding

VALUES = {  # at a = 1, b = 2
    ReductionModel.A: 1 / 10 + 9,
    ReductionModel.B: math.sin(0.3 * math.pi) + 1,
    ReductionModel.C: 9 * math.log(5.001),
}


@pytest.mark.parametrize("model", list(ReductionModel))
def test_a_model_is_its_formula_and_depends_on_two_columns(model: ReductionModel) -> None:
    x = torch.zeros(1, 5, dtype=torch.float64)
    x[0, 0], x[0, 1] = 1.0, 2.0
    assert model(x).item() == pytest.approx(VALUES[model], abs=closed_form(20))
    task = reduction_model(model, num_samples=200, d_in=6, seed=1)
    jacobians = gradients(model, torch.from_numpy(task.x))[:, 0]
    assert float(jacobians[:, 2:].abs().max()) == 0
    eigenvalues = torch.linalg.eigvalsh(jacobians.T @ jacobians)
    assert float(eigenvalues[-2] / eigenvalues[-1]) > 0.01
    assert task.latent is not None
    assert np.std(task.target - task.latent) == pytest.approx(0.5, rel=5 / math.sqrt(400))
    assert (task.index_rank, task.true_rank) == (2, 1)


def test_mean_and_spread_follow_their_own_directions() -> None:
    task = spread_index(num_samples=50_000, d_in=6, seed=1)
    assert task.directions is not None
    assert task.latent is not None
    u, v = (task.x @ task.directions.T).T
    np.testing.assert_allclose(task.latent, np.stack([u + np.sin(2 * u), 0.7 * v - 0.5], 1), atol=rounding(size=100))
    e = (task.target[:, 0] - task.latent[:, 0]) / np.exp(task.latent[:, 1])
    assert (e.mean(), e.std()) == (pytest.approx(0, abs=0.03), pytest.approx(1, rel=0.02))
    calm, wild = (np.std((task.target[:, 0] - task.latent[:, 0])[v * s > 1]) for s in (-1, 1))
    assert wild > 3 * calm


def test_impossible_models_are_refused() -> None:
    with pytest.raises(ValueError, match="needs d_in >= 2"):
        reduction_model(ReductionModel.A, num_samples=10, d_in=1)
    with pytest.raises(ValueError, match="finite noise"):
        reduction_model(ReductionModel.A, num_samples=10, noise=-1.0)
    with pytest.raises(ValueError, match="needs d_in >= 2"):
        spread_index(num_samples=0)
