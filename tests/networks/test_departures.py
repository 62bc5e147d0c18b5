"""Weights are read only of what computes what they say: everything else is called, or refused in words."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.utils import parametrizations, parametrize, prune

import isthmus
from isthmus.networks import (
    FullyConnected,
    LeakyResNet,
    ResNet,
    Waist,
    as_fully_connected,
    delete_dead_neurons,
    enclosed_jacobians,
    jacobians,
    reduced_jacobians,
    slice_cells,
)
from isthmus.networks.chain import read_chain
from isthmus.networks.departures import check_as_written, departure
from isthmus.networks.stage_kinds import barrier_reason, is_weighted
from isthmus.theory import certificates, costs
from isthmus.training.moves import in_sequence
from isthmus.training.steps.step import maker_of
from theorem_checks import assert_close, normal

X = normal(0, 6, 3)
OF_LAYERS = ("FC-02", "FC-13", "FC-28", "FC-37", "FC-38", "FC-41", "RES-12", "LEAKY-06")


def sequence() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3)).double()


def connected(kind: type[FullyConnected] = FullyConnected) -> FullyConnected:
    return kind(3, 3, width=5, depth=3, seed=0, dtype=torch.float64)


def resnet(kind: type[ResNet] = ResNet) -> ResNet:
    return kind(3, 3, width=5, depth=2, block_depth=2, seed=0, dtype=torch.float64)


def leaky(kind: type[LeakyResNet] = LeakyResNet) -> LeakyResNet:
    return kind(3, 3, width=5, depth=3, effective_depth=2.0, seed=0, dtype=torch.float64)


class HalfConnected(FullyConnected):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


class HalfResNet(ResNet):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


class HalfLeaky(LeakyResNet):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


class EverywhereActivated(FullyConnected):
    def is_activated(self, position: int) -> bool:
        return super().is_activated(position) or position == self.depth


HALF_WEIGHT = property(lambda self: self.raw / 2, lambda self, value: self.register_parameter("raw", value))
HALVED = type("Halved", (nn.Linear,), {"weight": HALF_WEIGHT})


class Half(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / 2


class HalfWaist(Waist):
    def forward(self, a: Tensor) -> Tensor:
        return super().forward(a) / 2


def hooked(network: nn.Module, part: str = "") -> nn.Module:
    network.get_submodule(part).register_forward_hook(lambda _m, _x, out: cast("Tensor", out) / 2)
    return network


def hooked_before(network: nn.Module) -> nn.Module:
    network.register_forward_pre_hook(lambda _m, args: (args[0] / 2,))
    return network


def of_its_own(network: nn.Module) -> nn.Module:
    forward = network.forward
    network.forward = lambda x: forward(x) / 2  # type: ignore[method-assign]
    return network


def pruned() -> nn.Module:
    """As after a step of an optimiser: the mask has not been put on the new weights yet."""
    network = sequence()
    prune.identity(network[0], "weight")
    with torch.no_grad():
        network.get_parameter("0.weight_orig").mul_(0.5)
    return network


def parametrized(network: nn.Module, part: str, name: str) -> nn.Module:
    parametrize.register_parametrization(network.get_submodule(part), name, Half())
    return network


def spectral() -> nn.Module:
    network = sequence()
    parametrizations.spectral_norm(network[0])
    return network.eval()


def with_waist() -> nn.Module:
    network = resnet()
    network.narrow(HalfWaist(1, torch.eye(5, 2, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)))
    return network


def twice() -> nn.Module:
    layer = nn.Linear(3, 3).double()
    return nn.Sequential(layer, nn.ReLU(), layer)


def tied() -> nn.Module:
    square = FullyConnected.from_layers([normal(l, 3, 3) for l in range(3)])
    square.weights[1] = square.weights[0]
    return square


def tied_blocks() -> nn.Module:
    network = resnet()
    network.block_weights[2] = network.block_weights[0]
    return network


DEPARTING: dict[str, Callable[[], nn.Module]] = {
    "a hook": lambda: hooked(sequence()),
    "a hook on a layer": lambda: hooked(sequence(), "0"),
    "a hook on an activation": lambda: hooked(sequence(), "1"),
    "a hook on one layer alone": lambda: hooked(nn.Linear(3, 3).double()),
    "a hook on a network": lambda: hooked(connected()),
    "a hook on a residual network": lambda: hooked(resnet()),
    "a hook on a leaky network": lambda: hooked(leaky()),
    "a hook before": lambda: hooked_before(sequence()),
    "a hook before a network": lambda: hooked_before(connected()),
    "a forward of an object": lambda: of_its_own(sequence()),
    "a forward of a network": lambda: of_its_own(connected()),
    "a forward of a leaky network": lambda: of_its_own(leaky()),
    "a subclass": lambda: connected(HalfConnected),
    "a residual subclass": lambda: resnet(HalfResNet),
    "a leaky subclass": lambda: leaky(HalfLeaky),
    "a subclass with another activation": lambda: connected(EverywhereActivated),
    "a weight that is computed": lambda: nn.Sequential(
        type("Halved", (nn.Linear,), {"weight": HALF_WEIGHT})(3, 3)
    ).double(),
    "pruned": pruned,
    "parametrized": lambda: parametrized(sequence(), "0", "weight"),
    "a parametrized network": lambda: parametrized(connected(), "weights", "0"),
    "spectral norm": spectral,
    "a waist": with_waist,
    "a layer in two places": twice,
    "a weight in two places": tied,
    "a residual weight in two places": tied_blocks,
}


def by_hand(network: nn.Module, x: Tensor) -> Tensor:
    """One row after the other, of what it computes when it is called."""
    rows = [torch.autograd.functional.jacobian(lambda row: network(row[None])[0], row) for row in x]  # pyright: ignore
    return torch.stack(rows).detach()


@pytest.mark.parametrize("what", DEPARTING)
def test_what_computes_something_else_than_its_weights_is_a_function_of_which_layers_are_unknown(what: str) -> None:
    network = DEPARTING[what]()
    expected = by_hand(network, X)
    assert float(expected.norm()) > 0
    assert_close(jacobians(network, X), expected, relative=1e-12)
    table = certificates(network, X)
    rows: list[Any] = [*table.itertuples()]
    for row in rows:
        if row.id in OF_LAYERS:
            assert not row.applies, row
            assert "computes what its weights say; it has" in str(row.reason) or what.endswith("computed")
    assert set(table[table["applies"]]["kind"]) <= {"estimate", "exact"}  # FC-46 is a number of the Jacobians
    defect = torch.linalg.matrix_norm(expected @ expected - expected).max()
    assert_close(float(next(row.value for row in rows if row.id == "FC-46")), defect, relative=1e-10)
    assert not any(costs(network)["applies"])


AS_WRITTEN: dict[str, Callable[[], nn.Module]] = {
    "sequence": sequence,
    "layer": lambda: nn.Linear(3, 3).double(),
    "connected": connected,
    "resnet": resnet,
    "leaky": leaky,
}


@pytest.mark.parametrize("what", AS_WRITTEN)
def test_what_adds_nothing_is_read_as_its_class(what: str) -> None:
    network = AS_WRITTEN[what]()
    kind = type(network)
    added = type("Named", (kind,), {"extra_repr": lambda _self: "", "title": "mine", "told": lambda self: self.title})
    network.__class__ = added
    assert departure(network, kind) == ""
    assert any(costs(network)["applies"])
    removed = network.register_forward_hook(lambda *_: None)
    assert "hook" in departure(network, kind)
    removed.remove()
    assert departure(network, kind) == ""
    assert "the class" in departure(network, nn.Conv1d)


@pytest.mark.parametrize("register", [register_module_forward_hook, register_module_forward_pre_hook])
def test_hooks_of_all_modules_count(register: Callable[..., torch.utils.hooks.RemovableHandle]) -> None:
    handle = register(lambda *_: None)
    try:
        assert not any(costs(connected())["applies"])
    finally:
        handle.remove()
    assert any(costs(connected())["applies"])


READERS: dict[str, Callable[[FullyConnected], object]] = {
    "written_layers": lambda network: network.written_layers(),
    "rebalance": isthmus.rebalance,
    "delete_dead_neurons": delete_dead_neurons,
    "slice_cells": lambda network: slice_cells(network, torch.zeros(3), torch.eye(3)[:2]),
    "reduced_jacobians": lambda network: reduced_jacobians(network, X),
    "enclosed_jacobians": lambda network: enclosed_jacobians(network, X),
    "scree": lambda network: isthmus.scree(network, X),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("what", ["a hook on a network", "a subclass", "a forward of a network"])
def test_whoever_needs_the_weights_refuses_in_words(reader: str, what: str) -> None:
    network = DEPARTING[what]()
    assert isinstance(network, FullyConnected)
    READERS[reader](connected())
    with pytest.raises(ValueError, match="need not say what it computes: it has a forward"):
        READERS[reader](network)


def test_residual_networks_are_rewritten_only_as_what_they_compute() -> None:
    for what in ("a hook on a residual network", "a leaky subclass", "a waist"):
        network = DEPARTING[what]()
        assert isinstance(network, ResNet | LeakyResNet)
        with pytest.raises(ValueError, match="as_fully_connected: reads the weights"):
            as_fully_connected(network)
    with pytest.raises(ValueError, match="leaky_path: reads the weights"):
        isthmus.leaky_diagnosis(leaky(HalfLeaky), X, X, ridge=0.1)
    check_as_written("here", leaky(), LeakyResNet)


@pytest.mark.slow
def test_training_and_diagnosis_by_hand_are_for_what_computes_its_weights() -> None:
    """The step by hand trained the weights of a subclass, and what it computes was another function."""
    assert maker_of(connected()) is not maker_of(hooked(connected()))
    assert maker_of(hooked(connected())) is maker_of(nn.Linear(2, 2)) is maker_of(connected(HalfConnected))
    assert in_sequence(connected()) is not None
    assert in_sequence(connected(HalfConnected)) is None
    y = normal(1, 6, 3)
    network = connected(HalfConnected)
    found = isthmus.fit(network, X, y, ridge=1e-6)
    assert_close(found.data_loss, (network(X) - y).square().sum(1).mean().detach(), relative=1e-6)
    halved, whole = (
        isthmus.diagnose(connected(kind), X).layers["tangent_kernel_trace"].values
        for kind in (HalfConnected, FullyConnected)
    )
    assert_close(torch.from_numpy(4 * halved), torch.from_numpy(whole), relative=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:factorise")  # 3 numbers of 3 are no narrowing
def test_steps_with_hooks_are_not_rewritten() -> None:
    network = hooked(sequence(), "0")
    assert not is_weighted(network.get_submodule("0"))
    assert barrier_reason(network.get_submodule("0")) == "Linear: it has a forward hook"
    assert barrier_reason(sequence()[0]) == ""
    stages = read_chain(network, X)
    assert [bool(stage.reason) for stage in stages] == [True, False, False]
    halves = isthmus.factorise(hooked(connected()), X, 3)  # called, or refused: never another function
    assert_close(halves.decoder(halves.encoder(X)).detach(), hooked(connected())(X).detach(), relative=1e-6)
