"""Links are what their names say."""

import pytest
import torch

from closeness import random
from isthmus.tasks import Link
from isthmus.tasks.links import LinkMap
from tolerances import closed_form


def drawn(link: Link, k: int, d_out: int = 1) -> LinkMap:
    return LinkMap.random(link, k, d_out, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("link", list(Link))
def test_only_even_functions_do_not_see_the_sign(link: Link) -> None:
    h, z = drawn(link, 3, 2), random(50, 3)
    assert h(z).shape == (50, 2)
    gap = float((h(z) - h(-z)).abs().max())
    assert (gap <= closed_form(float(h(z).abs().max()))) == (link is Link.EVEN)


def test_a_polynomial_is_cubic_and_a_ratio_bounded_in_its_denominator() -> None:
    t = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]
    differences = drawn(Link.POLYNOMIAL, 1)(t)[:, 0].diff(n=4)
    assert float(differences.abs().max()) <= closed_form() * 100
    assert float(drawn(Link.SINE, 1)(t)[:, 0].diff(n=4).abs().max()) > 1e-5
    s, u = random(5), random(5, seed=1)
    assert torch.equal(Link.RATIO.bend(torch.cat([s, u])), s / (1 + u.square()))
