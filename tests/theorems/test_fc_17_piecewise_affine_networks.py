from math import ceil, log2

import numpy as np
import pytest
import torch

from closeness import assert_equals, assert_same_values, random
from isthmus.constructions import (
    lattice_network,
    lattice_sets,
    max_affine_network,
    piecewise_linear_network,
    shallow_lattice_network,
)
from isthmus.errors import ShapeError
from shape_checks import own_shape_checks

pytestmark = pytest.mark.theorem("FC-17")


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8, 9])
def test_a_maximum_of_m_pieces_has_the_stated_depth_and_values(m: int) -> None:
    slopes, offsets, x = random(m, 3), random(m, seed=1), 3 * random(50, 3, seed=2)
    network = max_affine_network(slopes, offsets)
    assert network.depth == ceil(log2(m)) + 1
    assert_same_values(network(x)[:, 0], (x @ slopes.T + offsets).amax(1))
    if m > 1:
        with pytest.raises(AssertionError):
            assert_same_values(network(x)[:, 0], (x @ slopes.T + offsets)[:, :-1].amax(1))


def hat(x: torch.Tensor) -> torch.Tensor:
    """max(0, 1 - |x|_1): neither convex nor concave."""
    return (1 - x.abs().sum(1)).clamp(min=0)


HAT_SLOPES = torch.tensor([[0.0, 0], [-1, -1], [1, -1], [-1, 1], [1, 1]], dtype=torch.float64)
HAT_OFFSETS = torch.tensor([0.0, 1, 1, 1, 1], dtype=torch.float64)


def test_the_hat_has_a_lattice_form_of_five_pieces() -> None:
    points, x = 2 * random(400, 2), 2 * random(400, 2, seed=1)
    sets = lattice_sets(hat, HAT_SLOPES, HAT_OFFSETS, points)
    assert len(sets) == 5
    network = lattice_network(HAT_SLOPES, HAT_OFFSETS, sets)
    assert network.depth == 2 + 3 + 1
    assert_same_values(network(x)[:, 0], hat(x))
    with pytest.raises(AssertionError):  # a piece lost from a minimum
        assert_same_values(lattice_network(HAT_SLOPES, HAT_OFFSETS, [[0], [1, 2, 3]])(x)[:, 0], hat(x))


@pytest.mark.parametrize(("d_in", "m", "num_sets"), [(1, 2, 1), (1, 6, 4), (2, 5, 3), (2, 7, 5), (3, 7, 4), (4, 8, 4)])
def test_every_lattice_form_has_the_depth_that_the_dimension_asks_for(d_in: int, m: int, num_sets: int) -> None:
    """Not that of the number of pieces: ceil(log2(d_in + 1)) + 1 matrices, whatever they are."""
    generator = np.random.default_rng(10 * d_in + m)
    for seed in range(4):
        slopes, offsets, x = random(m, d_in, seed=seed), random(m, seed=seed + 9), 3 * random(200, d_in, seed=seed + 20)
        if seed == 3:  # parallel pieces and a repeated gradient: the hulls meet in fewer of them
            slopes[1], slopes[-1] = slopes[0], 2 * slopes[0]
        sizes = generator.integers(1, m, size=num_sets)
        sets = [sorted(generator.choice(m, size=int(size), replace=False).tolist()) for size in sizes]
        pieces = x @ slopes.T + offsets
        expected = torch.stack([pieces[:, chosen].amin(1) for chosen in sets]).amax(0)
        network = shallow_lattice_network(slopes, offsets, sets)
        assert network.depth <= ceil(log2(d_in + 1)) + 1
        terms = float(network.weights[-1].detach().abs().sum())  # each may err by rounding of the largest piece
        off = (network(x)[:, 0] - expected).detach().abs().max()
        assert float(off) <= 1e-14 * terms * float(pieces.abs().max())


def test_the_hat_takes_three_matrices_instead_of_six() -> None:
    x, sets = 2 * random(400, 2, seed=1), lattice_sets(hat, HAT_SLOPES, HAT_OFFSETS, 2 * random(400, 2))
    network = shallow_lattice_network(HAT_SLOPES, HAT_OFFSETS, sets)
    assert network.depth == 3
    assert_same_values(network(x)[:, 0], hat(x))
    with pytest.raises(AssertionError):  # a piece lost from a minimum
        assert_same_values(shallow_lattice_network(HAT_SLOPES, HAT_OFFSETS, [[0], [1, 2, 3]])(x)[:, 0], hat(x))
    with pytest.raises(ValueError, match="shallow_lattice_network.*none empty"):
        shallow_lattice_network(HAT_SLOPES, HAT_OFFSETS, [[]])


def test_one_piece_and_one_maximum_stay_what_they_are() -> None:
    slopes, offsets, x = random(3, 2), random(3, seed=1), random(50, 2, seed=2)
    one = shallow_lattice_network(slopes, offsets, [[1]])
    assert one.depth == 1
    assert_same_values(one(x)[:, 0], x @ slopes[1] + offsets[1])
    largest = shallow_lattice_network(slopes, offsets, [[0], [1], [2]])
    assert_same_values(largest(x), max_affine_network(slopes, offsets)(x))


def test_a_piece_that_is_missing_or_wrong_is_seen() -> None:
    """Without the check the form of the other pieces is some other function: below the hat, and above it."""
    points = 2 * random(400, 2)
    with pytest.raises(ValueError, match="none of 4 has its value at"):
        lattice_sets(hat, HAT_SLOPES[:4], HAT_OFFSETS[:4], points)
    with pytest.raises(ValueError, match="none of 5 has its value at"):
        lattice_sets(hat, HAT_SLOPES, HAT_OFFSETS + torch.tensor([0, 0, 0, 0, 1e-6]).double(), points)
    assert lattice_sets(hat, HAT_SLOPES, HAT_OFFSETS, points[:0]) == []


def test_arrays_and_lists_of_numbers_stand_for_tensors() -> None:
    knots, values = np.array([0.0, 1.0, 2.0]), [[0.0], [1.0], [0.0]]
    network = piecewise_linear_network(knots, values)  # pyright: ignore[reportArgumentType]
    assert_same_values(network(torch.tensor([[0.5], [1.5]]).double()), torch.tensor([[0.5], [0.5]]).double())
    sets = lattice_sets(hat, HAT_SLOPES.numpy(), HAT_OFFSETS.tolist(), 2 * random(400, 2).numpy())  # pyright: ignore
    assert sets == lattice_sets(hat, HAT_SLOPES, HAT_OFFSETS, 2 * random(400, 2))


def test_sets_of_unequal_sizes_reduce_together() -> None:
    slopes, offsets, x = random(7, 3), random(7, seed=1), random(50, 3, seed=2)
    sets = [[0, 1, 2, 3, 4], [5], [6, 0, 2]]
    pieces = x @ slopes.T + offsets
    expected = torch.stack([pieces[:, chosen].amin(1) for chosen in sets]).amax(0)
    network = lattice_network(slopes, offsets, sets)
    assert network.depth == 3 + 2 + 1
    assert_same_values(network(x)[:, 0], expected)


def test_a_curve_through_knots_is_exact_between_and_beyond() -> None:
    knots = torch.tensor([-1.0, 0.0, 0.5, 2.0], dtype=torch.float64)
    values, left, right = random(4, 3), random(3, seed=1), random(3, seed=2)
    network = piecewise_linear_network(knots, values, left_slope=left, right_slope=right)
    t = torch.tensor([-3.0, -1.0, -0.5, 0.25, 0.5, 1.25, 2.0, 4.0], dtype=torch.float64)[:, None]
    middle = [(values[i] + values[i + 1]) / 2 for i in range(3)]
    expected = [values[0] - 2 * left, values[0], middle[0], middle[1], values[2], middle[2], values[3]]
    assert_same_values(network(t), torch.stack([*expected, values[3] + 2 * right]))
    flat = piecewise_linear_network(knots, values)
    with pytest.raises(AssertionError):
        assert_same_values(flat(t), network(t))
    assert_same_values(flat(t[1:7]), network(t[1:7]))


def test_every_neuron_of_a_curve_is_balanced_and_idle_knots_have_none() -> None:
    knots = torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=torch.float64)
    values = torch.tensor([0.0, 1.0, 2.0, 5.0], dtype=torch.float64)[:, None]
    network = piecewise_linear_network(knots, values, right_slope=torch.tensor([3.0]))
    assert network.dimensions == (1, 2, 1)
    incoming = network.weights[0].square().sum(1) + network.biases[0].square()
    assert_same_values(incoming, network.weights[1].square().sum(0))
    assert_equals(network.penalty(), 2 * 1 + 2 * 2 * 5**0.5)


def test_constant_curves_and_single_knots_are_curves_too() -> None:
    t = torch.linspace(-2, 2, 5, dtype=torch.float64)[:, None]
    one = piecewise_linear_network(torch.zeros(1), torch.ones(1, 2))
    assert_same_values(one(t), torch.ones(5, 2, dtype=torch.float64))


def test_bad_input_is_refused_in_words() -> None:
    with own_shape_checks(), pytest.raises(ShapeError, match="needs m >= 1 pieces"):
        max_affine_network(torch.ones(2, 3), torch.ones(3))
    with pytest.raises(ValueError, match="none empty"):
        lattice_network(torch.ones(2, 3), torch.ones(2), [[0], []])
    with pytest.raises(ValueError, match="strictly increasing"):
        piecewise_linear_network(torch.zeros(2), torch.ones(2, 1))
    with own_shape_checks(), pytest.raises(ShapeError, match="needs knots"):
        piecewise_linear_network(torch.zeros(2), torch.ones(3, 1))
