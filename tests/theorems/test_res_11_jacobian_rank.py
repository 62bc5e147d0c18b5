import pytest
import torch

from isthmus.theory import bottleneck_rank_upper_bound, jacobian_rank_lower_bound
from theorem_checks import normal

pytestmark = pytest.mark.theorem("RES-11")


def test_a_factored_map_shows_its_inner_dimension() -> None:
    outer, inner = [normal(0, 6, 2), normal(1, 5, 6)], [normal(2, 7, 4), normal(3, 2, 7)]

    def g(x: torch.Tensor) -> torch.Tensor:
        hidden = (x @ inner[0].mT).relu() @ inner[1].mT
        return (hidden @ outer[0].mT).relu() @ outer[1].mT

    points = normal(4, 50, 4)
    jacobians = torch.stack([torch.autograd.functional.jacobian(g, point) for point in points])  # pyright: ignore
    rank = jacobian_rank_lower_bound(jacobians, tolerance=1e-9).rank
    assert rank == 2
    assert rank <= bottleneck_rank_upper_bound([*inner, *outer])
    with pytest.raises(AssertionError):
        assert jacobian_rank_lower_bound(jacobians + 0.1 * normal(5, 50, 5, 4), tolerance=1e-9).rank == 2


def test_single_samples_can_be_poorer_than_the_map() -> None:
    jacobians = torch.stack([torch.diag(torch.tensor([1.0, 0.0])), torch.diag(torch.tensor([1.0, 1.0]))])
    assert jacobian_rank_lower_bound(jacobians, tolerance=1e-3) == (2, 1)
    assert jacobian_rank_lower_bound(jacobians[:1], tolerance=1e-3) == (1, 0)
