"""Errors between rows: a network that is exact on every row and wrong between two of them is caught."""

import numpy as np
import pytest
import torch

from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.depth.between_rows import LinesBetweenRows
from isthmus.networks import FullyConnected
from isthmus.training.losses import SQUARED


def line_of(num_rows: int) -> Problem:
    """Rows at equal distances on a line, to be autoencoded."""
    x = np.linspace(0, 1, num_rows)[:, None]
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    held = np.arange(num_rows) % 5 == 2
    return pose(x, x, held, loss=SQUARED, inputs=inputs, targets=targets)


def with_bump(problem: Problem, height: float) -> FullyConnected:
    """The identity plus a hat of this height between two neighbouring rows, zero at both."""
    rows = torch.cat([problem.x, problem.x_held]).sort(0).values[:, 0].double()
    left, right = float(rows[10]), float(rows[11])
    middle, half = (left + right) / 2, (right - left) / 2
    first = torch.ones(5, 1, dtype=torch.float64)
    first[1] = -1.0
    bias = torch.tensor([0.0, 0.0, -left, -middle, -right], dtype=torch.float64)
    hat = torch.tensor([1.0, -2.0, 1.0], dtype=torch.float64) * height / half
    last = torch.cat([torch.tensor([1.0, -1.0], dtype=torch.float64), hat])[None]
    return FullyConnected.from_layers([first, last], [bias, torch.zeros(1, dtype=torch.float64)])


def test_a_bump_between_two_rows_counts_with_its_height() -> None:
    problem = line_of(40)
    assert problem.train_error(with_bump(problem, 1.5)) < 1e-6
    assert LinesBetweenRows.of(problem).error(with_bump(problem, 1.5)) == pytest.approx(1.5**2, rel=1e-4)
    assert LinesBetweenRows.of(problem).error(with_bump(problem, 0.0)) < 1e-9


def test_an_error_on_the_rows_counts_too() -> None:
    problem = line_of(40)
    constant = FullyConnected.from_layers([torch.zeros(1, 1)], [torch.zeros(1)])
    largest = float(torch.cat([problem.y, problem.y_held]).square().max())
    assert LinesBetweenRows.of(problem).error(constant) == pytest.approx(largest, rel=1e-5)


def autoencoded(x: np.ndarray) -> Problem:
    held = np.arange(len(x)) % 5 == 2
    inputs, targets = Standardiser.of(x), Standardiser.of(x, total=True)
    return pose(x, x, held, loss=SQUARED, inputs=inputs, targets=targets)


def close(problem: Problem) -> bool:
    return LinesBetweenRows.of(problem).close


def test_rows_in_many_dimensions_lie_far_apart_and_on_a_curve_close_together() -> None:
    t = np.linspace(0, 6, 300)
    assert close(autoencoded(np.stack([np.cos(t), np.sin(t), t], axis=1)))
    assert not close(autoencoded(np.random.default_rng(0).normal(size=(300, 10))))
    assert not close(autoencoded(np.linspace(0, 1, 4)[:, None]))  # three neighbours are all there are


@pytest.mark.parametrize(("rows", "resolved"), [(40, True), (20, True), (12, False)])
@pytest.mark.parametrize("repeats", [1, 5, 20])
def test_a_circle_is_resolved_by_its_places_however_often_each_was_measured(
    rows: int, resolved: bool, repeats: int
) -> None:
    angle = np.repeat(2 * np.pi * np.arange(rows) / rows, repeats)
    problem = autoencoded(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    assert close(problem) is resolved
    # the lines from place to place are asked, not those within a place alone
    lines, chord = LinesBetweenRows.of(problem), (2 * np.sin(np.pi / rows)) ** 2
    assert float(lines.length[lines.asked].max()) >= chord * (1 - 1e-5)


def test_a_long_line_across_a_gap_says_nothing_where_short_ones_join_the_rows() -> None:
    """Two pieces of a line, the second of few rows; the network is wrong in the gap alone."""
    near, far = np.linspace(0, 1, 100), np.linspace(2, 3, 6)
    problem = autoencoded(np.concatenate([near, far])[:, None])
    assert close(problem)
    rows = torch.cat([problem.x, problem.x_held]).sort(0).values[:, 0].double()
    left, right = float(rows[99]), float(rows[100])
    first, bias = torch.tensor([[1.0], [-1], [1], [1], [1]]), torch.tensor([0.0, 0, -left, -(left + right) / 2, -right])
    hat = torch.tensor([1.0, -2, 1]) * 3.0 / ((right - left) / 2)
    last = torch.cat([torch.tensor([1.0, -1]), hat])[None]
    bumped = FullyConnected.from_layers([first, last], [bias, torch.zeros(1)]).double()
    with torch.no_grad():
        middle = torch.tensor([[(left + right) / 2]], dtype=torch.float64)
        assert float(bumped(middle) - middle) == pytest.approx(3.0, rel=1e-4)
    assert LinesBetweenRows.of(problem).error(bumped) < 1e-9
    sparse = autoencoded(np.concatenate([near[::33], far])[:, None])  # the same pieces, ten rows
    assert not close(sparse)
    assert LinesBetweenRows.of(sparse).error(bumped) > 1.0
