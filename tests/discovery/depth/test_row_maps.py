"""Maps of rows: coordinates that follow a curve, that keep neighbours together, and rings of an angle and a width."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from sklearn.manifold import trustworthiness

from isthmus import tasks
from isthmus.discovery.depth import row_maps
from isthmus.discovery.depth.row_maps import geodesic_coordinates, neighbour_coordinates, ring_coordinates


def test_geodesic_coordinates_follow_a_coil_where_principal_ones_do_not() -> None:
    t = np.sort(np.random.default_rng(0).uniform(0, 4 * np.pi, 400))
    coil = np.stack([np.cos(t), np.sin(t), t / 4], 1)
    found = geodesic_coordinates(torch.from_numpy(coil).float(), 1, seed=0)[:, 0].numpy()
    assert abs(np.corrcoef(found, t)[0, 1]) > 0.999
    centred = coil - coil.mean(0)
    principal = np.linalg.svd(centred, full_matrices=False)[0][:, 0]
    assert (np.diff(found) * np.sign(found[-1] - found[0]) > 0).mean() > 0.95
    assert (np.diff(principal) * np.sign(principal[-1] - principal[0]) > 0).mean() < 0.9


def test_a_ribbon_that_closes_lies_in_the_plane_as_a_ring_where_distances_lay_it_flat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a cylinder; the rows beyond those that are mapped, too, come to lie among their neighbours."""
    angle, height = np.random.default_rng(0).uniform([[0], [-0.6]], [[2 * np.pi], [0.6]], (2, 600))
    cylinder = torch.from_numpy(np.stack([np.cos(angle), np.sin(angle), height], 1)).float()
    monkeypatch.setattr(row_maps, "MAPPED_ROWS", 400)
    mapped, flat = (
        trustworthiness(cylinder.numpy(), placed(cylinder, 2, seed=0).numpy(), n_neighbors=8)
        for placed in (neighbour_coordinates, geodesic_coordinates)
    )
    assert mapped > 0.99
    assert flat < 0.97


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("placed", [geodesic_coordinates, neighbour_coordinates])
def test_few_rows_have_coordinates_for_every_rank(rank: int, placed: Callable[..., torch.Tensor]) -> None:
    y = torch.tensor(np.random.default_rng(0).normal(size=(2, 3)), dtype=torch.float32)
    found = placed(y, rank, seed=0)
    assert found.shape == (2, rank)
    assert float(found.var(0, unbiased=False).sum()) == pytest.approx(rank)


@pytest.mark.parametrize("rows", [2, 3, 4, 30])
@pytest.mark.parametrize("what", ["noise", "nothing", "copies"])
def test_a_ring_of_whatever_rows_there_are(rows: int, what: str) -> None:
    """Few rows, rows that do not differ, and rows that were measured many times have places, too."""
    y = torch.tensor(np.random.default_rng(0).normal(size=(rows, 3)), dtype=torch.float32)
    y = {"noise": y, "nothing": torch.zeros_like(y), "copies": y[[0, 1] * (rows // 2) + [0] * (rows % 2)]}[what]
    found = ring_coordinates(y, 2, seed=0)
    assert found.shape == (rows, 2)
    assert bool(found.isfinite().all())


def turned(angle: np.ndarray, width: np.ndarray) -> torch.Tensor:
    """A ribbon that closes: its width points elsewhere at each angle, and bends what lies along it."""
    along = np.stack([np.cos(2 * angle), np.sin(2 * angle), 0 * angle], 1)
    centre = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)], 1)
    return torch.from_numpy(np.hstack([2 * centre, width[:, None] * along + 0.2 * np.square(width)[:, None]]))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_ring_turns_with_the_angle_and_its_radius_is_the_width(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows beyond those that make the graph lie between them; the control: distances along the ribbon lay it flat."""
    angle, width = np.random.default_rng(seed).uniform([[0], [-1]], [[2 * np.pi], [1]], (2, 500))
    ribbon = turned(angle, width)
    monkeypatch.setattr(row_maps, "RING_ROWS", 400)
    told = [angle_and_width(placed(ribbon, 2, seed=0).numpy(), angle, width) for placed in (ring_coordinates, flat)]
    assert min(told[0]) > 0.95
    assert min(told[1]) < 0.9
    assert float(ring_coordinates(ribbon, 2, seed=0).var(0, correction=0).sum()) == pytest.approx(2)


def flat(y: torch.Tensor, rank: int, *, seed: int) -> torch.Tensor:
    placed = geodesic_coordinates(y, rank, seed=seed)
    return placed - placed.mean(0)


def angle_and_width(placed: np.ndarray, angle: np.ndarray, width: np.ndarray) -> tuple[float, float]:
    """How well the angle and the radius of the places agree with them, either way round."""
    found = np.arctan2(placed[:, 1], placed[:, 0])
    agreed = max(abs(np.exp(1j * (found - way * angle)).mean()) for way in (1, -1))
    return float(agreed), float(abs(np.corrcoef(np.hypot(*placed.T), width)[0, 1]))


@pytest.mark.parametrize(("side", "rows", "seed"), [(6, 600, 0), (6, 600, 1), (8, 500, 2), (11, 500, 3), (16, 500, 4)])
def test_the_speed_of_a_pendulum_is_the_width_of_a_ring_of_its_pictures(side: int, rows: int, seed: int) -> None:
    """At every angle, of coarse pixels too, where the direction of the width turns fast."""
    task = tasks.pictures("pendulum", side=side, num_samples=rows, seed=seed)
    assert task.latent is not None
    angle, speed = task.latent.T
    x = torch.from_numpy(task.x)
    told = [angle_and_width(placed(x, 2, seed=0).numpy(), angle, speed) for placed in (ring_coordinates, flat)]
    assert min(told[0]) > 0.9
    assert told[1][1] < 0.7
    assert in_order(ring_coordinates(x, 2, seed=0).numpy(), angle, speed) > 0.7
    assert in_order(flat(x, 2, seed=0).numpy(), angle, speed) < 0.5


@pytest.mark.parametrize("twists", [0, 1, 2, 3, 4, 5])
def test_a_band_that_is_twisted_lies_in_the_plane_as_a_ring(twists: int) -> None:
    """Once around, its width points everywhere in turn, so many times; the control: the width of another twist."""
    angle, width = np.random.default_rng(twists).uniform([[0], [-0.4]], [[2 * np.pi], [0.4]], (2, 700))
    out, up = width * np.cos(twists * angle), width * np.sin(twists * angle)
    band = torch.from_numpy(np.stack([(1 + out) * np.cos(angle), (1 + out) * np.sin(angle), up], 1))
    found = ring_coordinates(band, 2, seed=0).numpy()
    assert min(angle_and_width(found, angle, width)) > 0.95
    assert in_order(found, angle, width) > 0.9
    assert in_order(found, angle, width * np.cos((twists + 1) * angle)) < 0.9


def test_a_ring_is_seen_in_the_units_of_the_columns_too() -> None:
    """A band that is twisted five times is none of its columns at variance 1; the control: their scale is not told."""
    angle, width = np.random.default_rng(0).uniform([[0], [-0.5]], [[2 * np.pi], [0.5]], (2, 800))
    out, up = width * np.cos(5 * angle), width * np.sin(5 * angle)
    band = np.stack([(1 + out) * np.cos(angle), (1 + out) * np.sin(angle), up], 1)
    y = torch.from_numpy((band - band.mean(0)) / band.std(0))
    assert in_order(ring_coordinates(y, 2, seed=0, scale=band.std(0)).numpy(), angle, width) > 0.9
    assert in_order(ring_coordinates(y, 2, seed=0).numpy(), angle, width) < 0.9


def in_order(placed: np.ndarray, angle: np.ndarray, width: np.ndarray) -> float:
    """The least rank correlation of radius and width among rows near an angle, either way round."""
    radius, told = np.hypot(*placed.T), list[float]()
    for place in np.linspace(0, 2 * np.pi, 24, endpoint=False):
        near = np.cos(angle - place) > np.cos(0.15)
        if near.sum() > 8:
            told.append(float(np.corrcoef(rankdata(radius[near]), rankdata(width[near]))[0, 1]))
    return max(min(told), min(-np.array(told)))
