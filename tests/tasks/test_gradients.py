"""Gradients are those of calculus, and a direction that takes no part has no strength."""

import pytest
import torch

from closeness import random
from isthmus.tasks import Link, gradient_covariance, gradients
from isthmus.tasks.gradients import Strength
from isthmus.tasks.links import LinkMap
from tolerances import closed_form


def bent(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.sin(x[..., 0]) * x[..., 1], x[..., 2].square() * x[..., 0]], -1)


def test_gradients_are_those_written_down() -> None:
    x = random(20, 3)
    a, b, c = x.T
    zero = torch.zeros(20, dtype=torch.float64)
    expected = torch.stack(
        [torch.stack([a.cos() * b, a.sin(), zero], 1), torch.stack([c.square(), zero, 2 * c * a], 1)], 1
    )
    assert float((gradients(bent, x) - expected).abs().max()) <= closed_form(float(expected.abs().max()))
    assert not x.requires_grad


def test_the_covariance_of_a_linear_map_is_its_gram_matrix() -> None:
    a = random(4, 6, seed=1)
    found = gradient_covariance(lambda x: x @ a.T, random(50, 6))
    assert float((found - a.T @ a).abs().max()) <= closed_form(float((a.T @ a).abs().max()))
    assert float((gradient_covariance(lambda x: x @ a.T * 2, random(50, 6)) - a.T @ a).abs().max()) > 1


@pytest.mark.parametrize("link", list(Link))
def test_a_direction_that_takes_no_part_has_no_strength(link: Link) -> None:
    h, z = LinkMap.random(link, 3, 2, generator=torch.Generator().manual_seed(3)), random(500, 3)
    with_all = Strength.of(h, z)
    assert min(with_all.slope, with_all.share) > 1e-3
    inner = h.inner.clone()
    inner[:, 1] = 0
    without = Strength.of(LinkMap(h.link, inner, h.bias, h.outer), z)
    assert max(without.slope, without.share) <= closed_form()


def test_strength_of_a_linear_link_is_its_closed_form() -> None:
    inner = torch.zeros(6, 2, dtype=torch.float64)
    inner[0, 0], inner[1, 1] = 1.0, 1.0
    outer = torch.tensor([[2.0], [1.0], [0.0], [0.0], [0.0], [0.0]], dtype=torch.float64)
    h = LinkMap(Link.POLYNOMIAL, inner, torch.zeros(6, dtype=torch.float64), outer)
    read = Strength.of(h, random(50_000, 2))
    # h = 2 u + v: one gradient, so the other direction has slope 0 and no share
    assert max(abs(read.slope), read.share) <= closed_form()
    curved = LinkMap(Link.POLYNOMIAL, inner.roll(1, 0), torch.zeros(6, dtype=torch.float64), outer.roll(1, 0))
    # h = 2 u + v^2 / sqrt 2, of variance 5: gradients (2, sqrt 2 v), eigenvalues 4 / 5 and 2 / 5, v's share 1 / 5
    read = Strength.of(curved, random(50_000, 2))
    assert read.slope == pytest.approx(2 / 3, rel=0.05)
    assert read.share == pytest.approx(1 / 5, rel=0.05)
