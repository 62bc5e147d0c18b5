"""The Gaussian loss: its closed form, variances of any size, units, and a direction that moves the spread alone."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Normal, kl_divergence

import isthmus
from command_lines import line_of
from isthmus import BottleneckRegressor, FullyConnected, Limits, Verdict, discover, fit, tasks
from isthmus.cli.main import run
from isthmus.discovery import request
from isthmus.discovery.asked import ranks_beside, with_halves
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.scaling import Scaling, Standardiser
from isthmus.discovery.depth.units import DepthSettings
from isthmus.discovery.halves import INDEX, MODE, RANK, Side
from isthmus.discovery.settings import Settings
from isthmus.errors import DataError, DataWarning, ShapeError
from isthmus.reports import verdict_of
from isthmus.training.losses import LOSSES, DataLoss, loss_argument
from isthmus.training.losses.gaussian import Gaussian
from overflows import fitted_past_infinity, wide_inputs
from tolerances import closed_form, rounding

FEW: dict[str, Any] = {"ridge": (1e-2, 3e-3), "starts": 1, "limits": Limits(evaluations=200)}
SHORT: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "limits": Limits(evaluations=60)}
SPREAD = tasks.spread_index(num_samples=1000, d_in=4, seed=0)
EDGE = 88.0  # beyond which e^s is infinite in float32


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_it_is_the_divergence_from_a_normal_distribution_around_the_target() -> None:
    y, m, s = normal(20, 3, seed=1), normal(20, 3, seed=2), 2 * normal(20, 3, seed=3)
    v = 0.06 / 3
    expected = kl_divergence(Normal(y, math.sqrt(v)), Normal(m, (s / 2).exp())).mean(1)
    found = Gaussian(0.06).row_losses(torch.cat([m, s], 1), y)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=closed_form(20))
    exact = Gaussian(0.06).row_losses(torch.cat([y, torch.full_like(s, math.log(v))], 1), y)
    assert exact.abs().max() <= closed_form(20), "nothing is less"


def test_between_predictions_it_differs_as_the_likelihood_does() -> None:
    y, outputs, other = normal(50, 2), normal(50, 4, seed=1), normal(50, 4, seed=2)

    def negative_log_likelihood(outputs: Tensor) -> Tensor:
        m, s = outputs.chunk(2, 1)
        return -Normal(m, (s / 2).exp()).log_prob(y).mean(1)

    loss = Gaussian(1e-9)
    ours = loss.row_losses(outputs, y) - loss.row_losses(other, y)
    theirs = negative_log_likelihood(outputs) - negative_log_likelihood(other)
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=1e-6)


def test_no_variance_below_the_least_one_pays() -> None:
    s = torch.linspace(-12, 3, 200, dtype=torch.float64)[:, None]
    y = torch.zeros_like(s)
    rows = Gaussian(0.01).row_losses(torch.cat([y, s], 1), y)
    best = float(s[rows.argmin()])
    assert best == pytest.approx(math.log(0.01), abs=0.1)
    assert bool((rows[:-1] >= rows[1:])[s[1:, 0] < math.log(0.01)].all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("s", [-60.0, -30.0, 0.0, 30.0, 80.0])
def test_derivatives_of_far_off_variances_are_those_of_autograd(s: float, dtype: torch.dtype) -> None:
    y = torch.tensor([[0.5, -1.0]], dtype=torch.float64)
    outputs = torch.tensor([[0.5, 3.0, s, s]], dtype=torch.float64, requires_grad=True)
    loss = Gaussian()
    (expected,) = torch.autograd.grad(loss.row_losses(outputs, y).sum(), outputs)
    data = DataLoss(loss, y)
    value, gradient = data.to(dtype).value_and_gradient(outputs.detach().to(dtype))
    assert value == pytest.approx(data.value(outputs.detach()), rel=rounding(size=100, dtype=dtype))
    for got, wanted in zip(gradient[0].tolist(), expected[0].tolist(), strict=True):
        assert got == pytest.approx(wanted, rel=rounding(size=100, dtype=dtype))


def test_a_variance_that_overflows_is_infinitely_bad_and_no_nan() -> None:
    y = torch.zeros(1, 1)
    for residual in (0.0, 1.0):
        value, _ = DataLoss(Gaussian(), y).value_and_gradient(torch.tensor([[residual, -2 * EDGE]]))
        assert value == float("inf")


def test_an_infinite_value_ends_no_fit() -> None:
    x = wide_inputs()
    network, _ = fitted_past_infinity(Gaussian(), x, (3e-3 * x).exp() * normal(40, 1), overflows=-1)
    assert float(network.weight[1].detach()) == pytest.approx(2 * 3e-3, rel=0.2)


def test_targets_in_other_units_have_the_same_loss_with_a_floor_in_these() -> None:
    y, outputs, c = normal(30, 2), normal(30, 4, seed=1), 1000.0
    scaled = torch.cat([c * outputs[:, :2], outputs[:, 2:] + 2 * math.log(c)], 1)
    assert Gaussian(0.01 * c**2).row_losses(scaled, c * y).tolist() == pytest.approx(
        Gaussian(0.01).row_losses(outputs, y).tolist(), rel=closed_form(50)
    )


def test_the_best_constant_is_mean_and_variance_of_each_target() -> None:
    y = normal(40, 2) * torch.tensor([1.0, 3.0]) + 5
    loss = Gaussian(0.02)
    variance = y.var(0, correction=0)
    expected = [*y.mean(0).tolist(), *(variance + 0.01).log().tolist()]
    assert loss.best_constant(y, None, 4).tolist() == pytest.approx(expected, rel=closed_form(40))
    assert loss.constant_loss(y, None, 4) == pytest.approx(float((1 + variance / 0.01).log().mean()) / 2)
    assert loss.constant_loss(torch.ones(5, 1), None, 2) > 0, "for its logarithm"
    assert loss.unit(np.asarray((y / y.std()).numpy()), None) > 0


def test_means_and_spreads_are_read_off_the_outputs() -> None:
    outputs = np.array([[1.0, 2.0, 0.0, math.log(9.0)]])
    assert Gaussian().means(outputs).tolist() == [[1.0, 2.0]]
    assert Gaussian().spreads(outputs)[0].tolist() == pytest.approx([1.0, 3.0])
    assert Gaussian().output_names(["a", "b"]) == ["mean of a", "mean of b", "log variance of a", "log variance of b"]
    beside = {kind: loss.spreads(outputs) for kind, loss in LOSSES.items()}
    assert beside["squared"] is beside["huber"] is None
    assert beside["poisson"] == pytest.approx(np.sqrt(np.exp(outputs)))
    p = np.exp(outputs) / np.exp(outputs).sum()
    assert beside["cross_entropy"] == pytest.approx(np.sqrt(p * (1 - p)))


@pytest.mark.parametrize("scaling", Scaling)
def test_outputs_are_folded_back_into_the_units_of_the_targets(scaling: Scaling) -> None:
    y = normal(50, 3).numpy() * [1.0, 1e4, 0.0] + [0.0, -3e4, 7.0]  # the last does not vary
    maps = Standardiser.of(y, scaling=scaling, total=True)
    network = FullyConnected(2, 4, width=5, depth=3, seed=0, dtype=torch.float64)
    x = normal(6, 2)
    with torch.no_grad():
        inside = network(x).numpy()
        outside = maps.of_outputs(Gaussian()).fold_into_decoder(network)(x).numpy()
    loss = Gaussian()
    means, spreads = loss.means(inside), loss.spreads(inside)
    assert loss.means(outside)[:, :2] == pytest.approx(means * maps.scale + maps.mean[:2], rel=closed_form(100))
    assert loss.spreads(outside)[:, :2] == pytest.approx(spreads * maps.scale, rel=closed_form(100))
    assert loss.means(outside)[:, 2].tolist() == [7.0] * 6
    assert loss.spreads(outside)[:, 2].max() < 1e-150


def both(loss: str, **settings: Any) -> isthmus.Discovery:
    return discover(SPREAD.x, SPREAD.target, loss=loss, **{**FEW, **settings}, effort="quick")


@pytest.mark.slow
def test_a_direction_that_moves_the_spread_alone_is_found() -> None:
    found, mean_alone = both("gaussian"), both("squared", ridge=(3e-2, 1e-2), limits=Limits(evaluations=100))
    assert (mean_alone.rank, mean_alone.kind) == (1, "index"), "of the mean"
    assert (found.rank, found.kind, found.verdict) == (2, "index", Verdict.CONFIDENT)
    assert SPREAD.directions is not None
    assert SPREAD.latent is not None
    spans = [np.linalg.qr(rows.T)[0] for rows in (found.directions, SPREAD.directions) if rows is not None]
    cosines: NDArray[np.float64] = np.linalg.svd(spans[0].T @ spans[1])[1]
    assert cosines.min() > 0.97
    spreads = found.loss.spreads(found.predict(SPREAD.x))
    assert spreads is not None
    assert np.corrcoef(np.log(spreads[:, 0]), SPREAD.latent[:, 1])[0, 1] > 0.95
    said = " ".join(line.text for line in verdict_of(found).lines)
    assert "mean and spread" in said
    assert "at most 2 by construction" in said
    one, two, *_ = found.objective_curve["objective"].where(found.objective_curve["chosen"], drop=True).values[0]
    assert found.readings["sharpness"] == pytest.approx(2 * (one - two)), "read by nats"
    assert any(re.search(r"one combination fewer raises the objective by 0\.\d+ nats", text) for text in found.reasons)
    assert found.interval.lower == 2


@pytest.mark.slow
def test_an_even_spread_adds_no_direction() -> None:
    x = normal(1000, 4)
    y = x[:, :1] + torch.sin(2 * x[:, :1]) + 0.6 * normal(1000, 1, seed=1)
    # trained to the end: after 60 evaluations the networks through one direction had not yet found the mean
    found = discover(x, y, loss="gaussian", ridge=(1e-2, 3e-2), starts=1, effort="quick")
    assert (found.rank, found.verdict) == (1, Verdict.CONFIDENT)


@pytest.mark.slow
def test_curved_halves_count_both() -> None:
    found = both("gaussian", encoder="curved", decoder="curved", **SHORT)
    assert (found.rank, found.kind) == (2, "rank")
    said = " ".join(line.text for line in verdict_of(found).lines)
    assert "cannot exceed the number of outputs, mean and spread of each target" in said
    assert "not show more than 2 dimensions" in said


@pytest.mark.slow
def test_a_depth_path_starts_from_distances_between_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "DEPTHS", DepthSettings(middle_layers=(1, 4, 8)))
    rows = slice(0, 100)
    short: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "limits": Limits(evaluations=15), "depth_path": True}
    found = discover(SPREAD.x[rows], SPREAD.target[rows], loss="gaussian", **short, effort="quick")
    assert found.depth_path is not None
    assert found.kind == "rank"


def test_one_target_is_asked_for_its_combinations() -> None:
    data = checked_data(SPREAD.x, SPREAD.target, "gaussian")
    assert data.num_targets == 1
    assert ranks_beside(INDEX, data) == (RANK, MODE), "a mean and a spread may move in one mode or in two"
    assert ranks_beside(INDEX, checked_data(SPREAD.x, SPREAD.target, None)) == (RANK,)
    assert with_halves(Settings(), data, encoder=None, decoder=None).encoder_side is Side.LINEAR
    two = checked_data(SPREAD.x, np.hstack([SPREAD.target, SPREAD.x[:, :1]]), "gaussian")
    assert with_halves(Settings(), two, encoder=None, decoder=None).encoder_side is Side.CURVED


@pytest.mark.slow
def test_estimators_predict_the_mean_and_scale_does_not_matter() -> None:
    few: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "evaluations": 60, "random_state": 0, "effort": "quick"}
    y = SPREAD.target[:, 0]
    plain = BottleneckRegressor(loss="gaussian", **few).fit(SPREAD.x, y)
    large = BottleneckRegressor(loss="gaussian", **few).fit(SPREAD.x, 2.0**20 * y)
    assert plain.score(SPREAD.x, y) > 0.5
    assert large.predict(SPREAD.x) == pytest.approx(2.0**20 * plain.predict(SPREAD.x), rel=1e-6)
    spreads = [Gaussian().spreads(e.discovery_.predict(SPREAD.x)) for e in (plain, large)]
    assert spreads[1] == pytest.approx(2.0**20 * spreads[0], rel=1e-6)
    assert np.std((y - plain.predict(SPREAD.x)) / spreads[0][:, 0]) == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
def test_constant_targets_are_said_and_predicted() -> None:
    y = np.column_stack([SPREAD.target[:, 0], np.full(1000, 7.0)])
    found = discover(SPREAD.x, np.full((1000, 1), 7.0), loss="gaussian", effort="quick")
    assert found.rank == 0
    assert found.loss.means(found.predict(SPREAD.x[:2])).tolist() == [[7.0], [7.0]]
    with pytest.warns(DataWarning, match="1 constant target column not used"):
        beside = discover(
            SPREAD.x, y, loss="gaussian", ridge=1e-2, starts=1, limits=Limits(evaluations=40), effort="quick"
        )
    outputs = beside.predict(SPREAD.x[:3])
    assert outputs.shape == (3, 4)
    assert np.isfinite(outputs).all()
    assert beside.loss.means(outputs)[:, 1].tolist() == [7.0] * 3


@pytest.mark.slow
def test_inputs_may_be_logarithms_but_not_the_targets() -> None:
    x = pd.DataFrame(np.exp(3 * SPREAD.x), columns=list("abcd"))
    y = pd.DataFrame({"t": np.exp(SPREAD.target[:, 0]), "u": SPREAD.x[:, 0] ** 2})
    short: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "limits": Limits(evaluations=30), "encoder": "linear"}
    with pytest.warns(DataWarning, match="Logarithms were taken of all input columns"):
        found = discover(x, y, loss="gaussian", log="all", **short, effort="quick")
    assert found.predict(x).shape == (1000, 4)
    with pytest.raises(ValueError, match="loss='gaussian'.*takes the targets as they are; leave out their logarithm"):
        discover(x, y, loss="gaussian", log=["a", "t"], **short, effort="quick")


@pytest.mark.slow
def test_few_rows_give_an_answer_in_words() -> None:
    found = discover(SPREAD.x[:24], SPREAD.target[:24], loss="gaussian", **SHORT, effort="quick")
    assert found.verdict is not Verdict.CONFIDENT
    assert np.isfinite(found.predict(SPREAD.x)).all()


def test_classes_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    labels = np.where(SPREAD.x[:, 0] > 0, "up", "down")
    with pytest.raises(DataError, match="numbers"):
        discover(SPREAD.x, labels, loss="gaussian", effort="quick")
    with pytest.raises(DataError, match="discover.*needs numbers, but every target is 0 or 1.*cross_entropy"):
        discover(SPREAD.x, labels == "up", loss="gaussian", effort="quick")
    pd.DataFrame({"a": SPREAD.x[:, 0], "b": SPREAD.x[:, 1], "t": labels}).to_csv("d.csv", index=False)
    assert run(["discover", "d.csv", "--classes", "t", "--loss", "gaussian", "--out", "found"]) == 2
    assert "Gaussian loss needs numbers, but every target is 0 or 1" in line_of(capsys.readouterr().err)
    fitted = ["fit", "d.csv", "--classes", "t", "--ridge", "0.1", "--loss", "gaussian", "--out", "net"]
    assert run(fitted) == 2
    assert "--loss gaussian: needs --target or --autoencode" in line_of(capsys.readouterr().err)


@pytest.mark.parametrize("name", ["gaussian:0", "gaussian:-1", "gaussian:nan", "gaussian:inf", "gaussian:x"])
def test_a_floor_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"needs one of .*'gaussian', .*or 'gaussian:FLOOR'"):
        loss_argument(name, "here")


def test_a_network_without_two_outputs_for_each_target_is_refused() -> None:
    x, y = normal(30, 3), normal(30, 2)
    with pytest.raises(ShapeError, match="2 outputs, y has 2 columns, for which the loss 'gaussian' needs 4"):
        fit(FullyConnected(3, 2, width=4, depth=2, seed=0), x, y, ridge=0.1, loss="gaussian")
    with pytest.raises(ShapeError, match=r"needs y of shape \(30, 1\), as the network answers; got \(30, 2\)"):
        isthmus.diagnose(FullyConnected(3, 2, width=4, depth=3, seed=0), x, y, loss="gaussian")
    with pytest.raises(ShapeError, match="a mean and a log variance for each"):
        isthmus.diagnose(FullyConnected(3, 5, width=4, depth=3, seed=0), x, y, loss="gaussian")


@pytest.mark.slow
def test_coordinates_are_interpreted_whatever_the_units_and_the_scaling() -> None:
    x = normal(200, 2)
    y = torch.sin(2 * x[:, :1]) + 0.2 * x[:, :1].exp() * normal(200, 1, seed=1)
    for scaling in (Scaling.COLUMN, Scaling.GLOBAL):
        few: dict[str, Any] = {"ridge": 1e-3, "starts": 1, "limits": Limits(evaluations=40), "scaling": scaling}
        small, large = (discover(x, c * y, loss="gaussian", **few, effort="quick") for c in (1, 2.0**20))
        saved = [isthmus.interpret(found, x)["error_saved"].values for found in (small, large)]
        assert saved[1] == pytest.approx(saved[0], rel=1e-6), "a mean and a log variance have no unit in common"


@pytest.mark.slow
def test_a_run_and_its_control_know_their_floor(tmp_path: Path) -> None:
    found = both("gaussian:0.05", ridge=1e-2, limits=Limits(evaluations=50), control=True, out=tmp_path / "run")
    assert found.loss == Gaussian(0.05)
    assert found.control is not None
    assert found.control.rank < 2, "data of the same covariance have one spread"
    assert isthmus.load(tmp_path / "run").loss == Gaussian(0.05)
