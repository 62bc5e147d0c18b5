"""Classes of a mixture: drawn with the probabilities that the docstring states, of the rank that it claims."""

import numpy as np
import pytest
import torch

from isthmus import tasks
from isthmus.tasks.mixture import class_scores
from tolerances import rounding


def labels(task: tasks.Task) -> np.ndarray:
    assert task.y is not None
    return task.y.argmax(1)


def test_scores_are_squared_distances_up_to_what_all_classes_share() -> None:
    generator = torch.Generator().manual_seed(0)
    z, centres = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (7, 4))
    squared = -torch.cdist(z, centres).square() / 2
    difference = class_scores(z, centres) - squared
    spread = difference - difference.mean(1, keepdim=True)
    assert float(spread.abs().max()) < rounding(size=100)
    assert float((class_scores(z, 2 * centres) - squared).std(1).max()) > 0.1  # other centres, other scores


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_logarithms_of_the_odds_have_the_claimed_rank(rank: int) -> None:
    generator = torch.Generator().manual_seed(rank)
    centres = torch.randn(rank + 3, rank, generator=generator, dtype=torch.float64)
    z = torch.randn(64, rank, generator=generator, dtype=torch.float64)
    odds = class_scores(z, centres).diff(dim=1)
    assert int(torch.linalg.matrix_rank(odds - odds.mean(0), rtol=rounding(size=100))) == rank
    # centres on a line have odds of rank 1 in any number of coordinates
    flat = centres @ torch.eye(rank, dtype=torch.float64)[:, :1] @ torch.ones(1, rank, dtype=torch.float64)
    on_line = class_scores(z, flat).diff(dim=1).diff(dim=0)
    assert int(torch.linalg.matrix_rank(on_line, rtol=rounding(size=100))) == 1


def test_without_overlap_neighbours_in_the_first_coordinates_share_their_class_and_the_others_say_nothing() -> None:
    task = tasks.mixture_classes(2, d_in=20, num_classes=5, num_samples=4000, seed=1)
    assert task.latent is not None
    assert same_as_nearest(task.latent[:, :2], labels(task)) > 0.95
    assert same_as_nearest(task.latent[:, 2:], labels(task)) < 0.5


def same_as_nearest(z: np.ndarray, label: np.ndarray) -> float:
    """Share of the rows whose nearest neighbour has their class."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=2).fit(z).kneighbors(return_distance=False)
    return float((label[found[:, 0]] == label).mean())


def test_overlapping_classes_are_drawn_anew_around_the_same_centres() -> None:
    apart, a, b = (
        tasks.mixture_classes(1, d_in=17, num_classes=3, num_samples=3000, overlap=overlap, seed=2)
        for overlap in (0.0, 1e-4, 0.5)
    )
    np.testing.assert_array_equal(apart.x, a.x)
    assert (labels(apart) != labels(a)).mean() < 0.02
    assert (labels(apart) != labels(b)).mean() > 0.1


def test_odds_are_affine_in_the_first_coordinates_and_half_as_steep_at_twice_the_overlap() -> None:
    """Classes are drawn with the stated odds: logistic regression on z finds slopes (c_i - c_j) / overlap."""
    from sklearn.linear_model import LogisticRegression

    slopes: list[np.ndarray] = []
    for overlap in (0.5, 1.0):
        task = tasks.mixture_classes(2, d_in=17, num_classes=3, num_samples=20_000, overlap=overlap, seed=5)
        assert task.latent is not None
        model = LogisticRegression(C=1e6).fit(task.latent, labels(task))
        slopes.append(model.coef_ - model.coef_.mean(0))
    steep, gentle = slopes
    np.testing.assert_allclose(steep[:, :2], 2 * gentle[:, :2], atol=0.15)
    assert np.abs(steep[:, :2] - gentle[:, :2]).max() > 1.0
    assert np.abs(np.concatenate(slopes)[:, 2:]).max() < 0.15


@pytest.mark.parametrize(("rank", "overlap", "known"), [(1, 0.0, 1), (3, 0.0, None), (3, 0.2, 3)])
def test_a_rank_is_claimed_where_it_is_known(rank: int, overlap: float, known: int | None) -> None:
    task = tasks.mixture_classes(rank, d_in=20, num_classes=8, num_samples=200, overlap=overlap)
    assert task.true_rank == known
    assert task.kind is tasks.Kind.CLASSIFICATION


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_classes": 2}, "rank < num_classes"),
        ({"num_samples": 3}, "num_classes <= num_samples"),
        ({"overlap": -1.0}, "overlap >= 0"),
        ({"overlap": float("nan")}, "overlap >= 0"),
        ({"overlap": float("inf")}, "finite overlap"),
        ({"d_in": 5, "latent_dim": 4}, r"mixture_classes\(d_in=5, latent_dim=4\): needs d_in >= 2 latent_dim \+ 1 = 9"),
    ],
)
def test_other_numbers_are_refused(change: dict[str, float], message: str) -> None:
    asked = {"d_in": 20, "num_classes": 6, "num_samples": 100, "rank": 2} | change
    with pytest.raises(ValueError, match=message):
        tasks.mixture_classes(**asked)  # pyright: ignore[reportArgumentType] - the table mixes types
