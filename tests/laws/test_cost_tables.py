"""No row of the tables is a bound that an explicit network breaks, and none is exact that rounding decides."""

import pytest
import torch
from torch import Tensor

from isthmus import FullyConnected, ResNet
from isthmus.theory import bottleneck_rank_upper_bound, certificates, costs, optimal_resnet_factors, resnet_cost

WIDTH = 5


def turned(size: int, seed: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size, generator=torch.Generator().manual_seed(seed)).double())[0]


def cheapest_residual(rank: int, weight: float, depth: int, seed: int) -> tuple[ResNet, Tensor]:
    """A network that pays just what its map costs, in a basis in which no product is free of rounding."""
    chance = torch.Generator().manual_seed(seed)
    left, right = (torch.randn(*shape, generator=chance).double() for shape in ((WIDTH, rank), (rank, WIDTH)))
    found = optimal_resnet_factors(left @ right, residual_weight=weight, depth=depth, block_depth=2, width=WIDTH)
    Q = turned(WIDTH, seed)
    inner = [Q @ matrix @ Q.T for block in found.blocks for matrix in block]
    layers = [Q @ found.embedding, *inner, found.unembedding @ Q.T]
    return ResNet.from_layers(layers, block_depth=2, residual_weight=weight), left @ right


def rows(table: object, id: str) -> list[tuple[float, str]]:  # noqa: A002 - the column's name
    mine = table[(table["id"] == id) & table["applies"]]  # pyright: ignore[reportIndexIssue]
    return list(zip(mine["value"], mine["kind"], strict=True))


@pytest.mark.slow
def test_no_residual_network_pays_less_than_its_table_says() -> None:
    broken, old = [], []
    for seed, weight in enumerate((1e-300, 1e-100, 1e-40, 1e-20, 1e-17, 1e-12, 1e-3, 1.0)):
        for rank, depth in ((1, 300), (2, 50), (1, 3)):
            network, matrix = cheapest_residual(rank, weight, depth, seed)
            table = costs(network)
            (paid, _), (here, kind), (least, lower) = (rows(table, id)[0] for id in ("RES-02", "RES-03", "RES-05"))
            assert lower == "lower"
            if least > paid or (kind == "exact" and abs(here - paid) > 1e-8 * paid):
                broken.append((weight, rank, depth, paid, here, kind, least))
            values = torch.linalg.svdvals(turned(WIDTH, seed) @ (turned(WIDTH, seed).T @ matrix))
            old.append(float(resnet_cost(values, residual_weight=weight, block_depth=2)) > paid)
    assert not broken
    assert any(old)  # the control: singular values that are rounding counted


def test_a_number_that_rounding_does_not_reach_is_exact() -> None:
    network, matrix = cheapest_residual(WIDTH, 1e-3, 4, seed=0)
    values = torch.linalg.svdvals(matrix)
    (here, kind), *_ = rows(costs(network), "RES-03")
    assert kind == "exact"
    wanted = float(resnet_cost(values, residual_weight=1e-3, depth=4, block_depth=2))
    assert abs(here - wanted) < 1e-9 * wanted


def turning_network(depth: int, least: float) -> FullyConnected:
    """Balanced layers of singular values 1, s, s, turned against one another; their product has 1, least, least."""
    stretch = torch.diag(torch.tensor([1.0, least ** (1 / depth), least ** (1 / depth)]).double())
    basis = [turned(3, seed) for seed in range(depth + 1)]
    layers = [basis[l + 1] @ stretch @ basis[l].T for l in range(depth)]
    return FullyConnected.from_layers(layers, linear=range(1, depth))


def test_the_norm_of_a_product_is_an_estimate_where_rounding_hides_its_rank() -> None:
    tame, wild = (costs(turning_network(100, least)) for least in (1e-3, 1e-30))
    for id in ("FC-09", "FC-27"):
        assert {kind for _, kind in rows(tame, id)} == {"exact"}
        assert {kind for _, kind in rows(wild, id)} == {"estimate"}
    paid = rows(tame, "FC-12")[0][0]
    assert abs(rows(tame, "FC-09")[0][0] - paid) < 1e-9 * paid
    assert all("rounding" in reason for reason in wild[wild["id"] == "FC-09"]["reason"])
    assert rows(wild, "FC-09")[0][0] < rows(wild, "FC-12")[0][0]


def test_diagonal_networks_of_any_depth_cost_what_they_pay() -> None:
    diagonal = torch.diag(torch.tensor([1.0, 1e-3, 0.0]).double())
    table = costs(FullyConnected.from_layers([diagonal] * 200, linear=range(1, 200)))
    (paid, _), (least, kind) = rows(table, "FC-12")[0], rows(table, "FC-10")[0]
    assert kind == "exact"  # the product underflows, at 1e-600
    assert abs(least - paid) < 1e-9 * paid


def test_a_rank_of_weights_is_a_bound_where_widths_give_it() -> None:
    x = torch.eye(2).double()
    small, large = (torch.diag(torch.tensor([1.0, 2.0**power]).double()) for power in (-60, 60))
    identity = FullyConnected.from_layers([small, large], linear=[1])
    assert torch.equal(identity(x), x)  # of rank 2
    assert bottleneck_rank_upper_bound(list(identity.weights)) == 1
    assert rows(certificates(identity, x), "FC-02") == [(1.0, "estimate")]
    narrow = FullyConnected.from_layers([torch.ones(1, 2).double(), torch.ones(2, 1).double()])
    assert rows(certificates(narrow, x), "FC-02") == [(1.0, "upper")]
