"""Parameters with `requires_grad=False` stay where they are, whatever trains the others, or fit says that it cannot."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from isthmus import FullyConnected, LeakyResNet, Limits, ResNet, fit
from isthmus.errors import DataError
from isthmus.training.batched.fit_batch import fit_batch, fit_many
from isthmus.training.moves import rebalancing
from isthmus.training.sharded.distributed import fit_shards
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps
from isthmus.training.solvers.minibatches import MiniBatches
from isthmus.training.solvers.precision import InPrecision
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.rank_raising import raise_rank
from isthmus.training.solvers.schedule import Schedule
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import ExactMoves, RankTrials
from tolerances import rounding

RIDGE = 0.01
X = torch.randn(300, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = torch.relu(X[:, :1]) * torch.ones(4, dtype=torch.float64) + 0.1 * X
MODULE = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).double()


def leaky(maps: str) -> LeakyResNet:
    return LeakyResNet(4, 4, width=5, depth=3, effective_depth=2.0, maps=maps, seed=0, dtype=torch.float64)


# a network and the names of what is frozen in it
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[str, ...]]] = {
    "first layer": (
        lambda: FullyConnected(4, 4, width=8, depth=4, seed=0, dtype=torch.float64), ("weights.0", "biases.0"),
    ),
    "linear middle": (
        lambda: FullyConnected(4, 4, width=8, depth=4, linear=(2,), seed=0, dtype=torch.float64), ("weights.1",),
    ),
    "one map": (lambda: leaky("learned"), ("embedding",)),
    "layers": (lambda: leaky("learned"), ("weights",)),
    "blocks": (lambda: ResNet(4, 4, width=6, depth=2, block_depth=2, seed=0, dtype=torch.float64), ("embedding",)),
    "any module": (lambda: copy.deepcopy(MODULE), ("0.weight",)),
}  # fmt: skip
SOLVERS: dict[str, Schedule | None] = {
    "usual": None,
    "moves": (Adam(30, moves=(rebalancing,), move_every=5), ExactMoves(), LBFGS(20), RankTrials(LBFGS(10))),
    "raised ranks": (LBFGS(20), RankTrials(LBFGS(10), attempt=raise_rank)),
    "batches, in float32": (MiniBatches(Adam(20), batch=50), InPrecision(LBFGS(20))),
}


def frozen(name: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """The network, and what must stay."""
    make, names = NETWORKS[name]
    network = make()
    parameters = dict(network.named_parameters())
    for one in names:
        parameters[one].requires_grad_(False)
    return network, {one: parameters[one].detach().clone() for one in names}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_frozen_stays_and_the_rest_is_trained(name: str, solver: str) -> None:
    network, kept = frozen(name)
    before = {one: p.detach().clone() for one, p in network.named_parameters()}
    result = fit(network, X, Y, ridge=RIDGE, solver=SOLVERS[solver], limits=Limits(evaluations=60))
    after = dict(network.named_parameters())
    assert all(torch.equal(after[one], kept[one]) for one in kept)
    assert all(not torch.equal(after[one], before[one]) for one in after if one not in kept)
    assert all(p.requires_grad == (one not in kept) for one, p in after.items())
    assert result.objective < float(result.history["objective"][0])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_frozen_part_counts_in_the_objective_however_many_rows_are_at_once(name: str) -> None:
    results = [
        fit(frozen(name)[0], X, Y, ridge=RIDGE, solver=LBFGS(10), limits=Limits(evaluations=8, memory=memory))
        for memory in (None, 1)
    ]
    for result in results:  # of float64 networks: what training saw last is what is returned
        assert float(result.history["objective"][-1]) == pytest.approx(result.objective, rel=rounding(size=len(X)))
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_is_frozen_as_a_whole_is_refused(name: str) -> None:
    network = NETWORKS[name][0]().requires_grad_(False)
    with pytest.raises(DataError, match=r"all parameters .* are frozen .* requires_grad_\(True\)"):
        fit(network, X, Y, ridge=RIDGE)
    with pytest.raises(DataError, match=r"all parameters .* are frozen .* requires_grad_\(True\)"):
        fit_shards(network, X, Y, total=300, team=Team(), ridge=RIDGE)


@pytest.mark.parametrize("solver", [PreconditionedLBFGS(), AdaptiveSteps()])
@pytest.mark.parametrize("name", ["one map", "layers"])
def test_solvers_of_all_weights_refuse_a_part_of_them(name: str, solver: PreconditionedLBFGS | AdaptiveSteps) -> None:
    network, _ = frozen(name)
    with pytest.raises(ValueError, match="LBFGS"):
        fit(network, X, Y, ridge=RIDGE, solver=solver)


def test_fixed_maps_are_not_frozen_by_anyone() -> None:
    network = leaky("fixed")
    assert fit(network, X, Y, ridge=RIDGE, solver=PreconditionedLBFGS(10)).gradient_evaluations >= 10
    thawed = leaky("fixed").requires_grad_(True)
    fit(thawed, X, Y, ridge=RIDGE, solver=PreconditionedLBFGS(10))
    assert torch.equal(thawed.embedding, network.embedding)
    assert torch.equal(thawed.weights, network.weights)


def test_many_networks_at_once_are_trained_as_a_whole_or_one_by_one() -> None:
    networks = [FullyConnected(4, 4, width=8, depth=3, seed=seed, dtype=torch.float64) for seed in (0, 1)]
    networks[1].weights[0].requires_grad_(False)
    kept = networks[1].weights[0].detach().clone()
    solver = (Adam(10), LBFGS(10))
    with pytest.raises(ValueError, match=r"fit_batch\(networks\): .* frozen \(requires_grad=False\).* Use fit"):
        fit_batch(networks, X, Y, ridges=[RIDGE] * 2, solver=solver)
    assert len(fit_many(networks, X, Y, ridges=[RIDGE] * 2, solver=solver)) == 2
    assert torch.equal(networks[1].weights[0], kept)


def test_the_parts_of_split_parameters_are_trained_as_a_whole() -> None:
    network, _ = frozen("first layer")
    with pytest.raises(ValueError, match="Leave split_parameters out"):
        fit_shards(network, X, Y, total=300, team=Team(), ridge=RIDGE, split_parameters=True)
