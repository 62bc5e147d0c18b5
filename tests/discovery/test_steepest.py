"""Directions of largest slope against closed forms, and what they say that the combinations that lose least do not."""

import numpy as np
import pytest
import torch

from isthmus.discovery.combinations import Steepest, steepest
from isthmus.discovery.factors import Factorisation
from isthmus.networks import FullyConnected, jacobians
from tolerances import rounding

ROWS = np.random.default_rng(1).normal(size=(3, 7))


SLOPES = np.random.default_rng(2).normal(size=(40, 2, 3)) * [3.0, 1.0, 0.2]
COVARIANCE = np.einsum("nqi,nqj->ij", SLOPES, SLOPES) / len(SLOPES)


def test_they_are_the_eigenvectors_of_the_covariance_of_all_gradients() -> None:
    found, gradients = Steepest.of(COVARIANCE, ROWS), SLOPES @ ROWS
    covariance = np.einsum("nqi,nqj->ij", gradients, gradients) / len(gradients)
    values, vectors = np.linalg.eigh(covariance)
    np.testing.assert_allclose(found.shares, values[::-1][:3] / values.sum(), rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.directions @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-7)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(3), atol=rounding(size=7))
    assert (np.take_along_axis(found.directions, np.abs(found.directions).argmax(1)[:, None], 1) > 0).all()


def test_another_basis_of_the_coordinates_changes_nothing() -> None:
    mixing = np.array([[1.0, 0.5, 0.0], [0.2, 1.0, -0.4], [0.0, 0.3, 1.0]])
    back = np.linalg.inv(mixing)
    found, other = Steepest.of(COVARIANCE, ROWS), Steepest.of(back.T @ COVARIANCE @ back, mixing @ ROWS)
    np.testing.assert_allclose(other.directions, found.directions, atol=1e-9)
    np.testing.assert_allclose(other.shares, found.shares, rtol=1e-9)


def test_a_map_that_is_constant_has_no_steep_direction_and_no_nan() -> None:
    found = Steepest.of(np.zeros((3, 3)), ROWS)
    assert found.shares.tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(found.directions).all()


def test_the_first_so_many_are_compared_with_those_of_others() -> None:
    here = Steepest(np.eye(4)[:2], np.array([0.9, 0.1]))
    turned = np.array([[1.0, 0, 0, 0], [0, np.cos(0.3), np.sin(0.3), 0]])
    swapped = Steepest(np.eye(4)[[1, 0]], np.array([0.6, 0.4]))
    np.testing.assert_allclose(here.angles([here, Steepest(turned, here.shares)]), [0.0, 0.3], atol=1e-12)
    np.testing.assert_allclose(here.angles([swapped]), [np.pi / 2, 0.0], atol=1e-12)  # the same span of both


def test_least_is_lost_along_others_where_what_changes_fast_changes_little() -> None:
    here = Steepest(np.eye(4)[:2], np.array([0.9, 0.1]))
    assert here.apart(np.array([[0.0, 5.0, 0.0, 0.0]])) == pytest.approx(np.pi / 2)
    assert here.apart(np.array([[2.0, 0.0, 0.0, 0.0]])) == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(here.apart(np.zeros((1, 4))))
    assert np.isnan(here.apart(np.ones((2, 4))))


@pytest.mark.parametrize("common", [False, True])
def test_a_common_shift_of_scores_counts_only_where_it_is_seen(common: bool) -> None:
    # scores (a + 9 b, -a + 9 b): that b moves both alike changes no class
    matrix = torch.tensor([[1.0, 9.0], [-1.0, 9.0]], dtype=torch.float64)
    encoder = FullyConnected.from_layers([torch.eye(2, dtype=torch.float64)], [torch.zeros(2, dtype=torch.float64)])
    decoder = FullyConnected.from_layers([matrix], [torch.zeros(2, dtype=torch.float64)])
    halves = Factorisation(encoder, decoder, 2, 1, 0.0)
    x = torch.randn(1500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = steepest(halves, x, np.eye(2), common=common)
    np.testing.assert_allclose(found.directions[0], [1.0, 0.0] if common else [0.0, 1.0], atol=1e-12)


def test_jacobians_of_many_outputs_are_added_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = torch.Generator().manual_seed(1)
    sizes, zeros = ((2, 3), (4, 2), (5, 4)), (torch.zeros(4, dtype=torch.float64), torch.zeros(5, dtype=torch.float64))
    first, *others = [torch.randn(size, generator=drawn, dtype=torch.float64) for size in sizes]
    encoder = FullyConnected.from_layers([first], [torch.zeros(2, dtype=torch.float64)])
    halves = Factorisation(encoder, FullyConnected.from_layers(others, list(zeros)), 2, 1, 0.0)
    x = torch.randn(50, 3, generator=drawn, dtype=torch.float64)
    whole = steepest(halves, x, first.numpy(), common=True)
    seen = list[int]()

    def counted(module: FullyConnected, points: torch.Tensor) -> torch.Tensor:
        seen.append(len(points))
        return jacobians(module, points)

    monkeypatch.setattr("isthmus.discovery.combinations.MOST_ENTRIES", 70)
    monkeypatch.setattr("isthmus.discovery.combinations.jacobians", counted)
    parts = steepest(halves, x, first.numpy(), common=True)
    assert (max(seen), sum(seen)) == (7, 50)
    np.testing.assert_allclose(parts.directions, whole.directions, atol=1e-9)
    np.testing.assert_allclose(parts.shares, whole.shares, rtol=1e-9)
