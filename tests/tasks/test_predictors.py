"""Inputs have the moments they state."""

import numpy as np
import pytest
import torch

from isthmus.tasks import Inputs, Predictors

ROWS = 40_000


@pytest.mark.parametrize("inputs", list(Inputs))
def test_mean_and_covariance_are_those_stated(inputs: Inputs) -> None:
    x, covariance = inputs.draw(ROWS, 6, torch.Generator().manual_seed(0))
    # entries of the sample covariance scatter by sqrt((kurtosis - 1) / n) of the variance; t with 5 degrees has 9
    size = float(covariance.diagonal().max())
    assert float(x.mean(0).abs().max()) < 6 * (size / ROWS) ** 0.5
    assert float((torch.cov(x.T) - covariance).abs().max()) < 6 * size * (8 / ROWS) ** 0.5
    is_correlated = float((covariance - torch.eye(6, dtype=torch.float64)).abs().max()) > 0.05
    assert is_correlated == (inputs is Inputs.CORRELATED)


def test_tails_are_heavy_or_cut_off() -> None:
    fourth = {i: float(i.draw(ROWS, 6, torch.Generator().manual_seed(0))[0].pow(4).mean()) for i in Inputs}
    assert fourth[Inputs.UNIFORM] == pytest.approx(9 / 5, rel=0.02)
    assert fourth[Inputs.NORMAL] == pytest.approx(3, rel=0.03)
    assert fourth[Inputs.HEAVY_TAILED] > 5


def test_predictors_have_their_moments() -> None:
    normal, poisson, t4 = (p.draw(2000, 50, torch.Generator().manual_seed(2)).numpy() for p in Predictors)
    assert normal.var() == pytest.approx(0.5, rel=0.02)
    assert (poisson.mean(), poisson.var()) == (pytest.approx(1, rel=0.02), pytest.approx(1, rel=0.02))
    assert np.array_equal(poisson, poisson.round())
    assert (np.abs(t4) > 4).mean() == pytest.approx(0.0161, rel=0.1)  # P(|t4| > 4)
