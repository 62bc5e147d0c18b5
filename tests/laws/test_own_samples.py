"""Whatever is asked about a module that works in place, the samples of the caller stay as they are."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isthmus
from isthmus import diagnostics
from isthmus.discovery.files.export import write_module
from isthmus.errors import DataWarning
from isthmus.networks.chain import UnreadableModule, read_chain

Y = torch.randn(60, 4, generator=torch.Generator().manual_seed(1))


class Shifted(nn.Module):
    """Takes 1 from its input in place before anything else; `unused` by a call whose answer nobody takes."""

    def __init__(self, *, unused: bool = False) -> None:
        super().__init__()
        self.inner, self.unused = narrow(in_place=False), unused

    def forward(self, x: Tensor) -> Tensor:
        """(n, 4)."""
        if self.unused:
            x.sub_(1)
        else:
            x -= 1
        return self.inner(x)


class Skipped(nn.Module):
    """A branch that overwrites the stream it is added to."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(10, 10))
        self.inner = narrow(in_place=False)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 4)."""
        return self.inner(x + self.branch(x))


class Gated(nn.Module):
    """A part that is opened, whose own part works in place."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.inner = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(10, 10)), narrow(in_place=True)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 4)."""
        if x.shape[1] != 10:
            return x
        return self.inner(x.clone() * torch.sigmoid(self.gate(x)))


def narrow(*, in_place: bool) -> nn.Sequential:
    """Through three features, in the middle."""
    first = [nn.ReLU(inplace=True)] if in_place else []
    return nn.Sequential(*first, nn.Linear(10, 16), nn.ReLU(in_place), nn.Linear(16, 3), nn.Linear(3, 16), nn.ReLU(),
                         nn.Linear(16, 4))  # fmt: skip


MODULES: dict[str, Callable[[], nn.Module]] = {
    "a relu in place": lambda: narrow(in_place=True),
    "x -= 1": Shifted,
    "x.sub_(1)": lambda: Shifted(unused=True),
    "its own shortcut": Skipped,
    "a part in place": Gated,
}


def _factorised(net: nn.Module, x: Tensor) -> object:
    try:
        return isthmus.factorise(net, x, 3)
    except ValueError as error:
        assert "random" not in str(error)  # noqa: PT017 - what cannot be cut says why, and truly
        return None


def _written(net: nn.Module, x: Tensor, folder: Path) -> object:
    return write_module(folder, "network", net, x)


CALLS: dict[str, Callable[[nn.Module, Tensor], object]] = {
    "diagnose": lambda net, x: isthmus.diagnose(net, x),
    "with targets": lambda net, x: isthmus.diagnose(net, x, Y.to(x), ridge=1e-3),
    "forward passes": lambda net, x: isthmus.diagnose(net, x, jacobians=False),
    "batches": lambda net, x: isthmus.diagnose(net, iter([x[:30], x[30:]]), jacobians=False),
    "factorise": _factorised,
    "compress": lambda net, x: isthmus.compress(net, x, tolerance=0.5),
    "polish": lambda net, x: isthmus.compress(net, x, tolerance=0.5, heldout=x, polish="distil"),
    "monitor": lambda net, x: isthmus.Monitor(net, x).record(1),
    "forensics": lambda net, x: isthmus.forensics(net, x, Y.to(x)),
    "path": lambda net, x: diagnostics.representation_path(net, x),
}
DEAR = ("factorise", "compress", "polish")


@pytest.mark.dear(1)
@pytest.mark.parametrize(
    ("call", "dtype"),
    [(call, torch.float64) for call in CALLS]
    + [(call, torch.float32) for call in CALLS if call not in DEAR]
    + [pytest.param(call, torch.float32, marks=pytest.mark.slow) for call in DEAR],
    ids=str,
)
@pytest.mark.parametrize("kind", MODULES)
def test_samples_stay_as_they_are(kind: str, call: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    net = MODULES[kind]().eval().to(dtype)
    x = torch.randn(60, 10, dtype=dtype)
    before, version = x.clone(), x._version  # pyright: ignore[reportPrivateUsage] - who wrote to it, torch alone knows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        CALLS[call](net, x)
    assert torch.equal(x, before)
    assert x._version == version  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("kind", ["a relu in place", "x -= 1"])
def test_files_are_written_without_touching_the_samples(kind: str, tmp_path: Path) -> None:
    net, x = MODULES[kind]().eval(), torch.randn(60, 10)
    before = x.clone()
    _written(net, x, tmp_path)
    assert torch.equal(x, before)


@pytest.mark.parametrize("kind", ["x -= 1", "a relu in place"])
def test_records_of_a_module_that_stays_stay(kind: str) -> None:
    torch.manual_seed(0)
    monitor = isthmus.Monitor(MODULES[kind]().eval(), torch.randn(60, 10), every=1)
    for _ in range(5):
        monitor.step()
    history = monitor.history["dimension_participation"].values
    assert np.array_equal(history, np.broadcast_to(history[:1], history.shape))


@pytest.mark.slow
def test_a_network_that_works_in_place_is_cut_as_one_that_does_not() -> None:
    """The numbers, too: what is read is what the module computes on the samples as they came."""
    torch.manual_seed(0)
    net, x = narrow(in_place=True).eval(), torch.randn(60, 10)
    plain = nn.Sequential(*(nn.ReLU() if isinstance(part, nn.ReLU) else part for part in net))
    found, wanted = isthmus.factorise(net, x, 3), isthmus.factorise(plain, x, 3)
    assert found.heldout_error == wanted.heldout_error
    assert isthmus.diagnose(net, x).layers.equals(isthmus.diagnose(plain, x).layers)
    small, other = (isthmus.compress(one, x, tolerance=0.5, allow_slower=True) for one in (net, plain))
    assert small.parameters_after == other.parameters_after
    assert small.parameters_after < small.parameters_before


def test_the_reason_names_what_is_overwritten() -> None:
    with pytest.raises(UnreadableModule, match="overwrites in place what others read"):
        read_chain(Shifted(unused=True), torch.randn(8, 10))


def test_random_numbers_are_named_as_such() -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.randn(x.shape[1])

    with pytest.raises(UnreadableModule, match="draws random numbers"):
        read_chain(Noisy(), torch.randn(8, 10))
