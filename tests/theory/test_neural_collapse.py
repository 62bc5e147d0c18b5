"""Measures of neural collapse are 0 on a simplex, and known on features that were made; the bound is one."""

import math

import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.neural_collapse import class_rank_bound, neural_collapse

DOUBLE = torch.float64
CLASSES = torch.arange(60) % 3


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def simplex() -> Tensor:
    """Three corners in five dimensions, around another centre than 0."""
    frame = torch.linalg.qr(numbers(5, 3)).Q.mT
    return 2.0 * (torch.eye(3, dtype=DOUBLE) - 1 / 3) @ frame + numbers(5, seed=1)


def test_corners_of_a_simplex_are_a_complete_collapse() -> None:
    corners = simplex()
    found = neural_collapse(corners[CLASSES], CLASSES, weight=0.3 * corners + 1.0)
    assert max(found.variation, found.weighted_variation, found.simplex_distance, found.alignment_distance) < 1e-12


def test_variation_within_classes_is_what_was_put_there() -> None:
    corners = simplex()
    noise = numbers(60, 5, seed=2)
    means = torch.stack([noise[c == CLASSES].mean(0) for c in range(3)])
    noise -= means[CLASSES]
    found = neural_collapse(corners[CLASSES] + 0.5 * noise, CLASSES)
    centred = corners - corners.mean(0)
    assert math.isclose(found.variation, float(0.25 * noise.square().sum() / 60 / (centred.square().sum() / 3)))
    assert math.isnan(found.alignment_distance)
    seen = (0.25 * noise.mT @ noise / 60) @ torch.linalg.pinv(centred.mT @ centred / 3)
    assert math.isclose(found.weighted_variation, float(seen.trace()) / 3)


def test_means_on_a_line_are_far_from_a_simplex() -> None:
    line = torch.tensor([[-1.0, 0], [0, 0], [1, 0]], dtype=DOUBLE)
    products = line @ line.mT
    ideal = (torch.eye(3, dtype=DOUBLE) - 1 / 3) / math.sqrt(2)
    wanted = float((products / products.norm() - ideal).norm())
    assert math.isclose(neural_collapse(line[CLASSES], CLASSES).simplex_distance, wanted)
    assert wanted > 0.5


def test_the_tail_beyond_the_classes_is_bounded_and_gone_after_a_collapse() -> None:
    delta, rows = numbers(60, 4, seed=3), numbers(60, 6, seed=4)
    for spread in (1.0, 0.0):
        means = torch.stack([rows[c == CLASSES].mean(0) for c in range(3)])
        rows = means[CLASSES] + spread * (rows - means[CLASSES])
        gradient = delta.mT @ rows / 60
        sums = torch.stack([delta[c == CLASSES].sum(0) for c in range(3)]) / 60
        weight = -gradient / (2 * 0.01) + 1e-3 * numbers(4, 6, seed=5)
        bound = class_rank_bound(weight, gradient, class_gradients=sums, class_means=means, ridge=0.01)
        tail = float(torch.linalg.svdvals(weight)[3:].norm())
        assert tail <= bound
        if not spread:
            assert bound <= 1.01 * 1e-3 * float(numbers(4, 6, seed=5).norm())


def test_what_is_no_classification_is_refused() -> None:
    with pytest.raises((ShapeError, TypeCheckError), match="needs one class per row|dimension n"):
        neural_collapse(numbers(5, 2), CLASSES)
    with pytest.raises(ValueError, match="at least two classes"):
        neural_collapse(numbers(60, 2), 2 * CLASSES)
    with pytest.raises(ValueError, match="needs a ridge > 0"):
        class_rank_bound(
            numbers(4, 6), numbers(4, 6), class_gradients=numbers(3, 4), class_means=numbers(3, 6), ridge=0.0
        )
