"""Weights that serve in several places stay tied, are counted once, and the rest of the network is made smaller."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import isthmus
from foreign_modules import samples, seeded
from isthmus.discovery.chains import compression, not_slower
from isthmus.discovery.chains.running_cost import TimedPasses, num_parameters
from isthmus.networks import FullyConnected
from isthmus.networks.chain import as_module, read_chain

DOUBLE = torch.float64
SAVED = 12 * 5 + 12 + 4 * 12  # by half of the neurons between the first two layers


class Enters(nn.Module):
    """5-24-4, every neuron twice; what follows is for classes below."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.tied = nn.Linear(5, 24), nn.Linear(24, 4), nn.Linear(4, 4)
        with torch.no_grad():
            for tensor in self.first.parameters():
                tensor[12:] = tensor[:12]

    def enter(self, x: Tensor) -> Tensor:
        return torch.tanh(self.second(torch.relu(self.first(x))))


class CalledThrice(Enters):
    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.tied(torch.tanh(self.tied(self.enter(x)))))
        return self.tied(x)


class ByAnotherName(Enters):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(4, 4)
        self.other.weight = self.tied.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.other(torch.tanh(self.tied(self.enter(x))))


class InABranch(Enters):
    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        return self.tied(x + torch.tanh(self.tied(x)))


class BesideAGate(Enters):
    """One place is in a part that is one step of the chain."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        return self.tied(torch.sigmoid(self.tied(x)) * torch.cos(x))


class AsAFunction(Enters):
    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(F.linear(self.enter(x), self.tied.weight, self.tied.bias))
        return F.linear(x, self.tied.weight)


class Transposed(Enters):
    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.tied(self.enter(x))) @ self.tied.weight


class Exported(Enters):
    """What cannot be traced, because it looks at its numbers' place."""

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) > 5 or x.shape[1] + 1 == len(x.stride()):
            return x
        return self.tied(torch.tanh(self.tied(self.enter(x))))


class Blocks(nn.Module):
    """A part that cannot be traced holds a layer that stands outside of it too."""

    def __init__(self, tied: nn.Module) -> None:
        super().__init__()
        self.tied, self.own = tied, nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.own(torch.tanh(self.tied(x))) if float(x.sum()) < 1e9 else x


class InAPart(Enters):
    def __init__(self) -> None:
        super().__init__()
        self.part = Blocks(self.tied)

    def forward(self, x: Tensor) -> Tensor:
        return self.tied(torch.tanh(self.part(self.enter(x))))


class OfOurs(Enters):
    """A network of ours that is called twice; its layers become steps of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.tied = FullyConnected(4, 4, width=4, depth=2, seed=0)

    def forward(self, x: Tensor) -> Tensor:
        return self.tied(torch.tanh(self.tied(self.enter(x))))


KINDS = [CalledThrice, ByAnotherName, InABranch, BesideAGate, AsAFunction, Transposed, Exported, InAPart, OfOurs]


@pytest.fixture(autouse=True)
def _untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No race is run: all take as long."""
    for module in (not_slower, compression):
        monkeypatch.setattr(module, "race", lambda *_: TimedPasses([1.0] * 9, [1.0] * 9))


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_is_made_smaller_and_ties_hold(kind: Callable[[], nn.Module]) -> None:
    module, x = seeded(kind).double(), samples(300, 5, dtype=DOUBLE)
    found = isthmus.compress(module, x, tolerance=1e-9, allow_slower=True)
    assert found.parameters_before - found.parameters_after == SAVED
    assert found.parameters_after == num_parameters(found.module)
    with torch.no_grad():
        assert torch.allclose(found.module(x), module(x))
    assert not any("had no say" in why for _, why in found.refused)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_kept_twice_at_a_loose_tolerance(kind: Callable[[], nn.Module]) -> None:
    module, x = seeded(kind).double(), samples(300, 5, dtype=DOUBLE)
    found = isthmus.compress(module, x, tolerance=0.5, allow_slower=True)
    assert found.parameters_after == num_parameters(found.module) <= found.parameters_before - SAVED
    assert found.relative_error <= 0.5


def test_the_layer_is_named_once_with_the_reason() -> None:
    found = isthmus.compress(seeded(CalledThrice), samples(300, 5), tolerance=1e-4, allow_slower=True)
    assert [why.partition(":")[0] for name, why in found.refused if name == "tied"] == [
        "its weights serve in other places too"
    ]
    assert ("second", "its neurons are fixed by what follows ('tied')") in found.refused


def test_ties_that_come_apart_are_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "parameters", lambda _: 10**6)
    found = isthmus.compress(seeded(CalledThrice), samples(300, 5), tolerance=0.5, allow_slower=True)
    assert found.is_unchanged
    assert any("came apart" in why for _, why in found.refused)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_chain_is_tied_as_its_module_is(kind: Callable[[], nn.Module]) -> None:
    module, x = seeded(kind), samples(20, 5)
    chain = as_module(read_chain(module, x))
    assert num_parameters(chain) == num_parameters(module)
    assert not {id(p) for p in chain.parameters()} & {id(p) for p in module.parameters()}


class TiedAutoencoder(nn.Module):
    """Nothing in it is free: its one layer encodes, and transposed decodes."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer, self.bias, self.how = nn.Linear(6, 24), nn.Parameter(torch.zeros(6)), how
        with torch.no_grad():
            self.layer.weight[12:], self.layer.bias[12:] = self.layer.weight[:12], self.layer.bias[:12]

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.layer(x))
        if self.how == "linear":
            return F.linear(hidden, self.layer.weight.t(), self.bias)
        return hidden.to(self.layer.weight.dtype) @ self.layer.weight + self.bias


@pytest.mark.parametrize("tolerance", [1e-9, 0.5])
@pytest.mark.parametrize("how", ["linear", "matmul"])
def test_a_layer_whose_weights_its_owner_reads_off_is_left_alone(how: str, tolerance: float) -> None:
    """It was made smaller, doubled neurons and all, and the decoder ended in an error of shapes."""
    module, x = seeded(lambda: TiedAutoencoder(how)).double(), samples(300, 6, dtype=DOUBLE)
    found = isthmus.compress(module, x, tolerance=tolerance, allow_slower=True)
    assert found.parameters_after == found.parameters_before
    with torch.no_grad():
        assert torch.equal(found.module(x), module(x))
