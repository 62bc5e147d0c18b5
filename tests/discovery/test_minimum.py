"""A minimum goes into a file and back; those of older versions, which left fields out, are read too."""

import dataclasses

import pytest
import torch

from isthmus.discovery.minimum import Minimum, least
from isthmus.training import Outcome
from minima import minimum

FULL = minimum(
    0.5, theta=torch.arange(3.0), data_loss=0.4, penalty=100.0, stationarity=1e-4, outcome=Outcome.PLATEAU,
    gradient_evaluations=7, seconds=0.25, train_error=0.3, heldout_error=0.2, heldout_accuracy=0.9,
    jacobian_spectrum=(2.0, 1.0), jacobian_rank=1, activation_rank=2, start=1, kind="linear", rank=3, middle=4,
    between=0.1, true_rank=2, waist_rank=3, waist_axes=torch.eye(4)[:, :3], waist_mean=torch.ones(4),
)  # fmt: skip


def assert_same(first: Minimum, second: Minimum) -> None:
    for field in dataclasses.fields(Minimum):
        here, there = getattr(first, field.name), getattr(second, field.name)
        same = torch.equal(here, there) if isinstance(here, torch.Tensor) else here == there or here != here
        assert same, field.name


def test_every_field_comes_back_from_plain_python_and_tensors() -> None:
    state = FULL.as_state()
    assert {type(value) for value in state.values()} <= {str, int, float, list, torch.Tensor}
    assert_same(Minimum.of_state(state), FULL)
    with pytest.raises(AssertionError, match="penalty"):
        assert_same(Minimum.of_state(state | {"penalty": 1.0}), FULL)


def test_a_unit_of_an_older_version_is_read() -> None:
    """Its refined halves knew neither their ridge nor their one linear layer, its units a word that is gone."""
    old = {name: FULL.as_state()[name] for name in ("theta", "objective", "outcome", "jacobian_spectrum", "rank")}
    refined = Minimum.of_state(old | {"usable": True})
    assert (refined.rank, refined.middle, refined.heldout_accuracy) == (3, 1, None)
    assert refined.ridge != refined.ridge
    assert Minimum.of_state(old | {"ridge": 0.1}).middle is None


def test_only_what_diverged_cannot_be_used() -> None:
    assert [outcome for outcome in Outcome if not minimum(outcome=outcome).usable] == [Outcome.DIVERGED]


def test_only_what_collapsed_is_a_constant() -> None:
    assert [outcome for outcome in Outcome if minimum(outcome=outcome).collapsed] == [Outcome.COLLAPSED]


def test_the_least_objective_is_that_of_the_global_minimum() -> None:
    low, high = minimum(0.1), minimum(0.2)
    assert least([high, low]) is low


def test_a_start_that_was_left_free_has_no_number_of_dimensions() -> None:
    assert FULL.dimensions == 3
    with pytest.raises(ValueError, match="was led through no number of dimensions"):
        _ = minimum().dimensions
