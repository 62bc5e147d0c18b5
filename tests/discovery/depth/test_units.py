"""Narrow starts: the same function at another depth, at the least cost, and the kinds that a rank begins from."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from isthmus.discovery.depth import units
from isthmus.discovery.depth.units import RankStart
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.unit import Session, Stopped
from isthmus.networks import FullyConnected
from isthmus.networks.folding import with_linear_run
from isthmus.theory import linear_cost
from isthmus.training.solvers.solver import LBFGS, Adam
from minima import connected, minimum, problem_of

SETTINGS = Settings(width=16)


def random_run(middle: int) -> FullyConnected:
    """A narrow network with random biases and a random linear run of rank 2, in float64."""
    network = connected(SETTINGS, d_in=4, d_out=3).narrow(2, middle=middle, seed=3).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return network


@pytest.mark.parametrize("middle", [1, 2, 7])
def test_another_depth_keeps_the_function_at_the_least_cost(middle: int) -> None:
    network = random_run(3)
    other = with_linear_run(network, rank=2, middle=middle)
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(other(x), network(x), rtol=1e-10, atol=1e-10)
    assert sorted(other.linear) == list(range(4, 4 + middle))
    run = [w.detach() for w in other.weights[3 : 4 + middle]]
    product = torch.linalg.multi_dot([w for w in reversed(run)])
    paid = sum(float(w.square().sum()) for w in run)
    assert paid == pytest.approx(float(linear_cost(product, depth=middle + 1, rank=2)), rel=1e-9)
    before = [w.detach() for w in network.weights[3:7]]
    assert sum(float(w.square().sum()) for w in before) > 1.05 * float(
        linear_cost(torch.linalg.multi_dot([w for w in reversed(before)]), depth=4, rank=2)
    )


def test_a_wide_run_is_cut_to_the_rank() -> None:
    network = random_run(2)
    cut = with_linear_run(network, rank=1, middle=2)
    assert cut.dimensions[4:6] == (1, 1)
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float((cut(x) - network(x)).detach().abs().max()) > 1e-3


@pytest.mark.parametrize(
    ("rank", "autoencoding", "is_mapped"),
    [(1, True, True), (2, True, True), (3, True, True), (4, True, False), (2, False, False)],
)
def test_rows_that_are_autoencoded_are_mapped_to_few_dimensions(
    rank: int, *, autoencoding: bool, is_mapped: bool
) -> None:
    """The last of the starts, so that seeds of the others are what they were; a ring where it lies in a plane."""
    problem = replace(problem_of(np.eye(6), np.eye(6)), autoencoding=autoencoding)
    kinds = units.kinds_of(problem, units.DepthSettings(random_starts=2), rank)
    assert kinds[:4] == [RankStart.GEODESIC, RankStart.TRUNCATED, RankStart.RANDOM, RankStart.RANDOM]
    ring = [RankStart.RING] if rank == 2 else []
    assert kinds[4:] == ([RankStart.NEIGHBOURS, *ring] if is_mapped else [])


@pytest.mark.other_types
@pytest.mark.parametrize("kind", units.MAPS)
def test_a_map_of_the_rows_is_what_its_start_is_trained_towards(
    kind: RankStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def through(coordinates: str, *_: object, **__: object) -> None:
        seen.append(coordinates)
        raise Stopped

    for name in units.MAPS:
        monkeypatch.setitem(units.MAPS, name, lambda *_, name=name, **__: str(name))
    monkeypatch.setattr(units, "network_through", through)
    family = connected(SETTINGS, problem_of(np.eye(6), np.eye(6)))
    with pytest.raises(Stopped):
        units.ranked_start(family, Session(), kind=kind, number=0, rank=2, middle=4, base=minimum(rank=2))
    assert seen == [kind]


@pytest.mark.other_types
@pytest.mark.parametrize("kind", units.MAPS)
def test_a_ring_alone_is_told_in_which_units_columns_came(kind: RankStart, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def mapped(*_: object, scale: object = None, **__: object) -> None:
        seen.append(scale)
        raise Stopped

    monkeypatch.setitem(units.MAPS, kind, mapped)
    problem = problem_of(np.eye(6), np.diag(np.arange(1.0, 7)))
    assert problem.targets is not None
    family = connected(SETTINGS, problem)
    with pytest.raises(Stopped):
        units.ranked_start(family, Session(), kind=kind, number=0, rank=2, middle=4, base=minimum(rank=2))
    assert seen == [problem.targets.scale if kind is RankStart.RING else None]


@pytest.mark.other_types
@pytest.mark.parametrize("kind", [RankStart.RANDOM, *units.MAPS])
def test_a_start_costs_what_its_solvers_may_take(kind: RankStart, monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress bar and a budget count on it; halves that are trained as long as others are not counted."""
    taken: list[int] = []
    halves = [0]

    def through(*_: object, evaluations: int, **__: object) -> None:
        if evaluations > SETTINGS.polish_evaluations:
            halves.append(SETTINGS.adam_steps + evaluations)

    def trained(_family: object, _network: object, _ridge: float, solver: tuple[Adam, LBFGS], _session: object) -> None:
        taken.append(solver[0].steps + solver[1].evaluations)
        raise Stopped

    monkeypatch.setattr(Connected, "trained", trained)
    monkeypatch.setattr(units, "network_through", through)
    monkeypatch.setattr(units, "MAPS", dict.fromkeys(units.MAPS, lambda *_, **__: None))
    family = connected(SETTINGS, problem_of(np.eye(6), np.eye(6)))
    with pytest.raises(Stopped):
        units.ranked_start(family, Session(), kind=kind, number=0, rank=2, middle=4, base=minimum(rank=2))
    assert 0.7 * units.start_cost(SETTINGS, kind) < taken[0] + max(halves) <= units.start_cost(SETTINGS, kind)
    assert (max(halves) > 0) == (kind is RankStart.RING)
