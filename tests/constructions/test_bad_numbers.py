"""Complex, integer and NaN tensors are refused by every construction before any work."""

from collections.abc import Callable

import pytest
import torch

from isthmus.constructions import (
    balanced_linear_network,
    between_bijections,
    completely_positive_path,
    compose_with_identity,
    lattice_sets,
    max_affine_network,
    piecewise_linear_network,
    rank_one_interpolator,
)
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, output_range, segment_pieces, slice_cells
from shape_checks import own_shape_checks

NETWORK = FullyConnected(2, 2, width=3, depth=2, seed=0)
CALLS: dict[str, Callable[[torch.Tensor], object]] = {
    "balanced_linear_network": lambda bad: balanced_linear_network(bad, depth=2),
    "between_bijections": between_bijections,
    "completely_positive_path": lambda bad: completely_positive_path(bad, depth=3, x=torch.ones(1, 2)),
    "max_affine_network": lambda bad: max_affine_network(bad, torch.ones(2)),
    "piecewise_linear_network": lambda bad: piecewise_linear_network(torch.tensor([0.0, 1.0]), bad),
    "rank_one_interpolator": lambda bad: rank_one_interpolator(bad, torch.ones(2, 1), depth=3),
    "lattice_sets": lambda bad: lattice_sets(lambda p: p[:, 0], torch.ones(1, 2), torch.zeros(1), bad),
    "compose_with_identity": lambda bad: compose_with_identity(NETWORK, NETWORK, 1, x=bad),
    "output_range": lambda bad: output_range(NETWORK, bad[0], torch.ones(2)),
    "segment_pieces": lambda bad: segment_pieces(NETWORK, bad[0], torch.ones(2)),
    "slice_cells": lambda bad: slice_cells(NETWORK, torch.zeros(2), bad),
}


@pytest.mark.parametrize("name", CALLS)
def test_integer_and_complex_tensors_are_type_errors(name: str) -> None:
    for bad in (torch.eye(2, dtype=torch.int64), torch.eye(2, dtype=torch.complex128)):
        with own_shape_checks(), pytest.raises(TypeError, match=f"{name}.*real floating-point numbers"):
            CALLS[name](bad)


@pytest.mark.parametrize("name", CALLS)
def test_nan_is_a_value_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: needs finite .*NaN"):
        CALLS[name](torch.tensor([[1.0, float("nan")], [0.0, 1.0]]))


def test_samples_shifts_and_directions_that_say_nothing_are_refused() -> None:
    with pytest.raises(ShapeError, match="needs at least one sample"):
        compose_with_identity(NETWORK, NETWORK, 1, x=torch.zeros(0, 2))
    with pytest.raises(ValueError, match="needs finite shift"):
        compose_with_identity(NETWORK, NETWORK, 1, shift=torch.tensor([float("nan"), 0.0]))
    with pytest.raises(ShapeError, match="n >= 1"):
        completely_positive_path(torch.eye(2), depth=3, x=torch.zeros(0, 2))
    with pytest.raises(ValueError, match="needs a direction that is not zero"):
        rank_one_interpolator(torch.eye(2), torch.ones(2, 1), depth=3, direction=torch.zeros(2))
    with pytest.raises(ValueError, match="needs at least one direction"):
        rank_one_interpolator(torch.eye(2), torch.ones(2, 1), depth=3, num_directions=0)
    with pytest.raises(ValueError, match="needs a finite tolerance >= 0"):
        lattice_sets(lambda p: p[:, 0], torch.ones(1, 2), torch.zeros(1), torch.eye(2), tolerance=-1.0)
    with pytest.raises(ValueError, match="needs depths >= 0 and stretch >= 1"):
        between_bijections(torch.eye(2), stretch=float("nan"))
    with own_shape_checks(), pytest.raises(ShapeError, match="needs a matrix"):
        between_bijections(torch.ones(2))


def test_integer_weights_are_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"from_layers: needs weights and biases of real"):
        FullyConnected.from_layers([torch.eye(2, dtype=torch.int64)])
