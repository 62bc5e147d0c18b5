"""The Poisson loss: its closed form, counts of any size, what is refused, and the rank behind counts."""

import numpy as np
import pytest
import torch

from isthmus import FullyConnected, Limits, Verdict, discover, fit, tasks
from isthmus.errors import DataError
from isthmus.training.losses.poisson import Poisson
from overflows import fitted_past_infinity, wide_inputs
from tolerances import closed_form, rounding


def test_it_is_the_likelihood_above_its_least() -> None:
    y = torch.tensor([[0.0, 1.0, 7.0]], dtype=torch.float64)
    f = torch.tensor([[-1.0, 0.5, 2.0]], dtype=torch.float64)
    saturated = y - torch.xlogy(y, y)
    expected = (f.exp() - y * f - saturated)[0].tolist()
    assert Poisson().entries(f, y)[0].tolist() == pytest.approx(expected, rel=closed_form())
    assert Poisson().entries(y[:, 1:].log(), y[:, 1:])[0].tolist() == [0.0, 0.0]


def test_large_counts_keep_their_digits_in_float32() -> None:
    y = torch.tensor([[1e6]], dtype=torch.float64)
    f = (y * 1.001).log().float()
    exact = float(Poisson().entries(f.double(), y))
    single = float(Poisson().entries(f, y.float()))
    # one part in 1000 off: the terms e^f and y f themselves are 1e6 and 1.4e7, of which float32 keeps 7 digits
    assert single == pytest.approx(exact, rel=1e-2)
    assert exact == pytest.approx(1e6 * 0.001**2 / 2, rel=1e-2)


def test_an_infinite_rate_ends_no_fit() -> None:
    x = wide_inputs()
    _, result = fitted_past_infinity(Poisson(), x, (3e-3 * x).exp().round(), overflows=1)
    assert result.data_loss < 0.1


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_what_is_no_count_is_refused_with_its_row(value: float) -> None:
    y = np.ones((30, 2))
    y[4, 1] = value
    network = FullyConnected(3, 2, width=4, depth=2, seed=0)
    with pytest.raises(DataError, match="Poisson loss needs counts >= 0, got .* in row 5"):
        fit(network, np.random.default_rng(0).normal(size=(30, 3)), y, ridge=0.1, loss="poisson")
    if np.isfinite(value):
        with pytest.raises(DataError, match="discover.*got -1 in row 5"):
            discover(np.random.default_rng(0).normal(size=(30, 3)), y, loss="poisson", effort="quick")


def test_the_level_of_the_counts_does_not_matter() -> None:
    y = np.random.default_rng(0).poisson(4.0, size=(50, 3)).astype(float)
    for factor in (0.01, 1.0, 1e4):
        values, shift = Poisson().reduced(factor * y, None)
        assert (y == 0).any()
        assert Poisson().unit(values, None) == pytest.approx(Poisson().unit(y, None) / y.mean(), rel=rounding(size=50))
        outputs = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        one = float(Poisson().summed(outputs, torch.from_numpy(values))) * factor * y.mean()
        other = float(Poisson().summed(outputs + shift, torch.from_numpy(factor * y)))
        assert one == pytest.approx(other, rel=rounding(size=1000))
        reduced, given = torch.from_numpy(values), torch.from_numpy(factor * y)
        for of in (lambda t: Poisson().scores(t, 3), lambda t: Poisson().best_constant(t, None, 3)):
            assert torch.allclose(of(reduced) + shift, of(given), rtol=0, atol=rounding(size=50))


def test_a_count_that_never_changes_is_told_by_its_log_rate() -> None:
    found = discover(
        np.random.default_rng(0).normal(size=(30, 3)), np.full((30, 1), 7.0), loss="poisson", effort="quick"
    )
    assert found.rank == 0
    assert float(found.predict(np.zeros((1, 3)))[0, 0]) == pytest.approx(np.log(7.0), rel=closed_form())


@pytest.mark.slow
def test_the_rank_behind_counts_is_found() -> None:
    task = tasks.teacher(2, d_in=12, d_out=6, latent_dim=4, num_samples=400, noise=0.0, seed=1)
    assert task.y is not None
    rate = 300 * np.exp(0.7 * (task.y - task.y.mean(0)) / task.y.std(0))
    counts = np.random.default_rng(0).poisson(rate)
    limits = Limits(evaluations=240)
    found = discover(task.x, counts, loss="poisson", ridge=(1e-2, 3e-3, 1e-3), starts=1, limits=limits, effort="quick")
    assert (found.rank, found.verdict) == (2, Verdict.CONFIDENT)
    assert np.median(np.abs(np.exp(found.predict(task.x)) / rate - 1)) < 0.05, "predictions are log rates"
    assert float(found.scree["heldout_error"].sel(rank=2)) < 0.1 * float(found.scree["linear_error"].sel(rank=2))
    assert float(found.scree["heldout_error"].sel(rank=1)) > 0.1
