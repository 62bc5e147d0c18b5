"""What every stage of a discovery asks of its data."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.kinds import family_of
from isthmus.discovery.settings import Settings
from isthmus.training.losses import CROSS_ENTROPY, SQUARED, Gaussian, Huber, Loss

X = np.random.default_rng(0).normal(size=(60, 3))
HELD = np.arange(60) % 5 == 2


def classes(y: np.ndarray) -> Problem:
    return pose(X, y, HELD, loss=CROSS_ENTROPY, inputs=Standardiser.of(X), targets=None)


def test_the_best_constant_of_classes_has_their_entropy() -> None:
    y = np.zeros(60)
    y[~HELD] = np.arange(48) % 2
    assert classes(y).constant_loss() == pytest.approx(math.log(2))


def test_rows_of_one_class_alone_leave_a_loss_that_has_a_logarithm() -> None:
    """The other class lies among the held-out rows alone; weights that add up to 1 + 3e-8 gave -3e-8."""
    y = np.zeros(60)
    y[np.flatnonzero(HELD)[0]] = 1
    loss = classes(y).constant_loss()
    assert 0 < loss < 1e-6


def test_targets_that_vary_among_held_out_rows_alone_leave_one_too() -> None:
    y = np.where(HELD, 1.0, 0.0)[:, None] * X[:, :1]
    targets = Standardiser.of(y, total=True)
    problem = pose(X, y, HELD, loss=SQUARED, inputs=Standardiser.of(X), targets=targets)
    assert 0 < problem.constant_loss() < 1e-6


def test_scores_of_classes_count_up_to_a_common_shift() -> None:
    """Two classes need one dimension; as many numbers need two."""
    y = np.arange(60) % 2.0
    assert (classes(y).d_out, classes(y).free_outputs) == (2, 1)
    numbers = np.stack([y, X[:, 0]], axis=1).astype(np.float64)
    targets = Standardiser.of(numbers, total=True)
    posed = pose(X, numbers, HELD, loss=SQUARED, inputs=Standardiser.of(X), targets=targets)
    assert (posed.d_out, posed.free_outputs) == (2, 2)


def test_the_error_of_the_constant_is_that_of_a_network_that_answers_it() -> None:
    problem = classes(np.where(X[:, 0] > 0.3, 1.0, 0.0))
    constant = nn.Linear(3, 2)
    with torch.no_grad():
        constant.weight.zero_()
        constant.bias.copy_(problem.best_constant())
    assert problem.heldout_error_of_constant() == pytest.approx(problem.heldout_error(constant), rel=1e-6)
    with torch.no_grad():
        constant.bias.add_(torch.tensor([1.0, 0.0]))
    assert problem.heldout_error_of_constant() < problem.heldout_error(constant)


def test_accuracy_counts_rows_by_weight() -> None:
    y = np.where(X[:, 0] > 0, 1.0, 0.0)
    y[np.flatnonzero(HELD)[:3]] = 1 - y[HELD][:3]
    weight = np.where(np.arange(60) < 15, 4.0, 1.0)
    sign = nn.Linear(3, 2)
    inputs = Standardiser.of(X)
    with torch.no_grad():
        sign.weight.copy_(torch.tensor([[0.0, 0, 0], [1, 0, 0]]))
        sign.bias.copy_(torch.tensor([0.0, float(inputs.mean[0] / inputs.scale[0])]))
    assert classes(y).heldout_accuracy(sign) == pytest.approx(9 / 12)
    weighted = pose(X, y, HELD, loss=CROSS_ENTROPY, inputs=inputs, targets=None, weight=weight)
    heavy = weight[HELD]
    assert weighted.heldout_accuracy(sign) == pytest.approx(1 - heavy[:3].sum() / heavy.sum())
    assert heavy[:3].sum() / heavy.sum() > 0.3


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def posed(x: np.ndarray, y: np.ndarray) -> Problem:
    inputs, targets = Standardiser.of(x), Standardiser.of(y, total=True)
    return pose(x, y, np.arange(len(x)) % 5 == 2, loss=SQUARED, inputs=inputs, targets=targets)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-3])
def test_columns_made_of_others_add_no_direction(noise: float) -> None:
    """Beyond what float32 rounds: a table of 3 numbers in 12 columns passes through 3 dimensions, and so do targets."""
    x = rows(300, 3) @ rows(3, 12, seed=1) + 5.0 + noise * rows(300, 12, seed=2)
    y = rows(300, 2, seed=3) @ rows(2, 7, seed=4)
    found, is_small = posed(x, y), noise < 1e-6
    assert (found.most_in, found.most_out) == (3 if is_small else 12, 2)
    assert found.at_rows(torch.arange(40)).most_in == found.most_in
    family = family_of(found, Settings())
    assert family.most_rank == 2
    assert family_of(posed(x, rows(300, 9, seed=5)), Settings()).most_rank == (3 if is_small else 9)


def test_rows_that_fill_their_columns_and_few_rows_leave_all_directions() -> None:
    full, few = posed(rows(200, 6), rows(200, 4, seed=1)), posed(rows(20, 30), rows(20, 25, seed=1))
    assert (full.most_in, full.most_out, few.most_in, few.most_out) == (6, 4, 30, 25)
    assert classes(np.arange(60) % 4.0).most_out == 3


@pytest.mark.parametrize("loss", [SQUARED, Huber(), Gaussian()], ids=str)
def test_targets_bound_ranks_only_where_their_means_are_what_networks_give(loss: Loss) -> None:
    """Of a Gaussian the variances are given too, of which targets in two directions say nothing."""
    y = rows(300, 2) @ rows(2, 3, seed=1)
    inputs, targets = Standardiser.of(rows(300, 4, seed=2)), Standardiser.of(y, total=True)
    held = np.arange(300) % 5 == 2
    found = pose(rows(300, 4, seed=2), y, held, loss=loss, inputs=inputs, targets=targets)
    assert found.most_out == (2 if loss is SQUARED else found.free_outputs)
