"""Sample weights act like repeated rows in the losses, errors, baseline and training of a posed problem."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from isthmus import FullyConnected, discover, fit
from isthmus.discovery.data.checking import checked_weights, groups_of_rows
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.evidence.baseline import linear_errors
from isthmus.errors import DataError
from isthmus.training import Limits
from isthmus.training.losses import LOSSES, SQUARED, Loss
from loss_targets import targets_of
from shape_checks import own_shape_checks
from tolerances import rounding

N = 40
SINGLE = 2.0**-23
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = np.tanh(X @ RNG.normal(size=(4, 2))) + 0.1 * RNG.normal(size=(N, 2))
WEIGHT = RNG.integers(1, 4, size=N)
HELD = np.arange(N) % 4 == 0


def weighted_and_repeated(loss: Loss) -> tuple[Problem, Problem]:
    """The same rows with weights, and as often as their weights say; standardised alike."""
    y = targets_of(loss, torch.from_numpy(np.stack([Y[:, 0], Y[:, 1], -Y.sum(1)], 1))).double().numpy()
    maps: dict[str, Any] = {
        "inputs": Standardiser.of(X),
        "targets": Standardiser.of(y, total=True) if loss.standardised else None,
    }
    rows = np.repeat(np.arange(N), WEIGHT)
    weighted = pose(X, y, HELD, loss=loss, weight=WEIGHT.astype(np.float64), **maps)
    ones = np.ones(len(rows))
    return weighted, pose(X[rows], y[rows], HELD[rows], loss=loss, weight=ones, **maps)


@pytest.mark.dear(1)
@pytest.mark.parametrize("loss", LOSSES.values())
def test_errors_and_the_linear_baseline_are_those_of_repeated_rows(loss: Loss) -> None:
    weighted, repeated = weighted_and_repeated(loss)
    network = FullyConnected(4, weighted.d_out, width=8, depth=3, seed=1)
    assert weighted.unit == pytest.approx(repeated.unit, rel=rounding(size=N))
    for error in (Problem.train_error, Problem.heldout_error):
        assert error(weighted, network) == pytest.approx(error(repeated, network), rel=N * SINGLE)
    # logistic regression has a ridge of its own, which more rows outweigh; others are found by iteration
    tolerance = N * SINGLE if loss.is_quadratic else 0.1
    assert linear_errors(weighted, most=3) == pytest.approx(linear_errors(repeated, most=3), rel=tolerance)
    blind = dataclasses.replace(weighted, weight=None, weight_held=None)
    assert blind.heldout_error(network) != pytest.approx(repeated.heldout_error(network), rel=1e-3)
    assert linear_errors(blind, most=3) != pytest.approx(linear_errors(repeated, most=3), rel=max(tolerance, 1e-3))


@pytest.mark.parametrize("loss", LOSSES.values())
def test_a_fit_with_weights_is_a_fit_with_repeated_rows(loss: Loss) -> None:
    weighted, repeated = weighted_and_repeated(loss)

    def trained(problem: Problem) -> float:
        network = FullyConnected(4, problem.d_out, width=6, depth=2, seed=1, dtype=torch.float64)
        y = loss.cast(problem.y, torch.float64)
        result = fit(
            network, problem.x.double(), y, ridge=1e-2, loss=loss, sample_weight=problem.weight,
            limits=Limits(evaluations=60),
        )  # fmt: skip
        return result.objective

    one, other = trained(weighted), trained(repeated)
    blind = trained(dataclasses.replace(weighted, weight=None))
    assert one == pytest.approx(other, rel=1e-6)
    assert one != pytest.approx(blind, rel=1e-4)


def test_without_weights_nothing_is_weighted() -> None:
    problem = pose(X, Y, HELD, loss=SQUARED, inputs=Standardiser.of(X), targets=Standardiser.of(Y, total=True))
    assert problem.weight is None
    assert problem.weight_held is None
    assert problem.unit == 1.0
    weighted, _ = weighted_and_repeated(SQUARED)
    assert weighted.fingerprint() != problem.fingerprint()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Errors rest on")  # ten groups
def test_groups_follow_the_rows_that_have_weight() -> None:
    quick: dict[str, Any] = {"ridge": 3e-3, "starts": 1, "limits": Limits(evaluations=20)}
    weight, groups = np.where(np.arange(N) < 30, 1.0, 0.0), np.arange(N) // 3
    some = discover(X, Y, sample_weight=weight, groups=groups, **quick, effort="quick")
    alone = discover(X[:30], Y[:30], sample_weight=np.ones(30), groups=groups[:30], **quick, effort="quick")
    np.testing.assert_array_equal(some.predict(X), alone.predict(X))
    assert some.settings["weighted"] is True
    assert some.settings["rows"] == 30
    with pytest.raises(DataError, match="one label per row, 40; got shape"):
        discover(X, Y, sample_weight=weight, groups=groups[:30], **quick, effort="quick")


@pytest.mark.parametrize("factor", [5e307, 1e-46, 5e-324])
def test_weights_count_up_to_a_common_factor(factor: float) -> None:
    maps: dict[str, Any] = {"inputs": Standardiser.of(X), "targets": Standardiser.of(Y, total=True)}
    weight, scaled = (checked_weights(WEIGHT * one, N) for one in (1.0, factor))
    assert np.array_equal(np.asarray(weight), WEIGHT)  # those of every day are left as they are
    found = [pose(X, Y, HELD, loss=SQUARED, weight=one, **maps) for one in (weight, scaled)]
    assert found[0].unit == pytest.approx(found[1].unit, rel=rounding(size=N))
    assert found[0].weight is not None
    assert found[1].weight is not None
    assert torch.allclose(found[0].weight, found[1].weight, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "make",
    [pd.Series, lambda w: pd.Series(w, index=[f"r{i}" for i in range(N)]), torch.tensor, list, tuple,
     lambda w: [Fraction(int(v)) for v in w], lambda w: pd.DataFrame({"w": w})["w"]],
    ids=["series", "index", "tensor", "list", "tuple", "fractions", "column"],
)  # fmt: skip
def test_weights_come_in_every_form_that_holds_a_row_of_numbers(make: Callable[[Any], Any]) -> None:
    weight = np.arange(N) % 3.0
    groups = np.arange(N) // 2
    with own_shape_checks():
        np.testing.assert_array_equal(checked_weights(make(weight), N), weight)
        np.testing.assert_array_equal(groups_of_rows(groups, make(weight)), groups[weight > 0])


LABELS = {"table": np.array([[1, "a"]] * N, dtype=object), "dictionaries": [{1: 2}, {3: 4}] * (N // 2)}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_that_are_no_labels_are_refused_in_words(labels: Any) -> None:
    given = labels
    if isinstance(labels, list):
        given = np.empty(N, dtype=object)
        given[:] = labels
    with pytest.raises(DataError, match="needs one label per row"):
        groups_of_rows(given, None)
