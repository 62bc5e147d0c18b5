"""Whatever is handed to the public calls instead of a network, samples or a seed is refused in words."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch
from torch import nn

import isthmus
from isthmus import FullyConnected, LeakyResNet, ResNet
from isthmus.diagnostics import reconstruction_arrows, representation_path
from isthmus.errors import IsthmusError
from isthmus.networks.network import Network
from shape_checks import own_shape_checks

torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
OURS = isthmus.FullyConnected(3, 2, width=4, depth=3, seed=0, dtype=torch.float64)
X, Y = torch.randn(30, 3, dtype=torch.float64), torch.randn(30, 2, dtype=torch.float64)
LIMITS = isthmus.Limits(evaluations=10)
Call = Callable[[object], object]
OF_NETWORKS: dict[str, Call] = {
    "fit": lambda net: isthmus.fit(net, X, Y, ridge=1e-3, limits=LIMITS),  # pyright: ignore[reportArgumentType]
    "diagnose": lambda net: isthmus.diagnose(net, X),  # pyright: ignore[reportArgumentType]
    "factorise": lambda net: isthmus.factorise(net, X, 1),  # pyright: ignore[reportCallIssue, reportArgumentType]
    "compress": lambda net: isthmus.compress(net, X, tolerance=0.1),  # pyright: ignore[reportArgumentType]
    "scree": lambda net: isthmus.scree(net, X, Y),  # pyright: ignore[reportArgumentType]
    "report": lambda net: isthmus.report(net, "page.html"),  # pyright: ignore[reportArgumentType]
    "forensics": lambda net: isthmus.forensics(net, X, Y),  # pyright: ignore[reportArgumentType]
    "Monitor": lambda net: isthmus.Monitor(net, X).record(0),  # pyright: ignore[reportArgumentType]
    "path": lambda net: representation_path(net, X),  # pyright: ignore[reportArgumentType]
    "arrows": lambda net: reconstruction_arrows(net, X),  # pyright: ignore[reportArgumentType]
}
FOREIGN = ("diagnose", "factorise", "compress", "forensics", "Monitor", "path", "arrows")  # take any module
NO_NETWORKS = {
    "numpy": X.numpy(), "None": None, "path": "net.pt", "weights": NET.state_dict(), "class": nn.Linear, "list": [NET],
    "function": torch.relu, "number": 3,
}  # fmt: skip
OF_SAMPLES: dict[str, Call] = {
    "fit x": lambda x: isthmus.fit(OURS, x, Y, ridge=1e-3, limits=LIMITS),  # pyright: ignore[reportArgumentType]
    "fit y": lambda y: isthmus.fit(OURS, X, y, ridge=1e-3, limits=LIMITS),  # pyright: ignore[reportArgumentType]
    "diagnose x": lambda x: isthmus.diagnose(NET, x),  # pyright: ignore[reportArgumentType]
    "factorise x": lambda x: isthmus.factorise(NET, x, 1),  # pyright: ignore[reportCallIssue, reportArgumentType]
    "factorise ours": lambda x: isthmus.factorise(OURS, x, 1),  # pyright: ignore[reportCallIssue, reportArgumentType]
    "compress x": lambda x: isthmus.compress(NET, x, tolerance=0.1),  # pyright: ignore[reportArgumentType]
    "scree x": lambda x: isthmus.scree(OURS, x, Y),  # pyright: ignore[reportArgumentType]
    "scree y": lambda y: isthmus.scree(OURS, X, y),  # pyright: ignore[reportArgumentType]
    "discover x": lambda x: isthmus.discover(x, Y, limits=LIMITS, effort="quick"),  # pyright: ignore[reportArgumentType]
    "discover y": lambda y: isthmus.discover(X, y, limits=LIMITS, effort="quick"),  # pyright: ignore[reportArgumentType]
}
NO_SAMPLES = {
    "path": "rows.csv", "ragged": [[1.0, 2.0], [3.0]], "complex": X.to(torch.complex128), "sparse": X.to_sparse(),
    "no data": X.to("meta"), "number": 3.0, "objects": np.array([[object()] * 3] * 30), "no rows": X[:0],
}  # fmt: skip


def in_words(call: Call, value: object) -> None:
    with own_shape_checks(), pytest.raises((IsthmusError, TypeError)) as caught:
        call(value)
    assert str(caught.value).count("\n") == 0
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("call", OF_NETWORKS)
@pytest.mark.parametrize("what", NO_NETWORKS)
def test_what_is_no_network_is_refused(call: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    in_words(OF_NETWORKS[call], NO_NETWORKS[what])


class Trainer:
    """Holds a network, as those of frameworks do."""

    model = NET


INSTEAD: dict[str, tuple[object, str]] = {
    "weights": (NET.state_dict(), "Weights alone are no network: make the module, and give it after module.load_state"),
    "checkpoint": ({"model": NET.state_dict(), "epoch": 3}, "Weights alone are no network"),
    "file": ("net.pt", "Load that file first"),
    "path": (Path("net.pt2"), r"or torch\.export\.load\(file\); or give it to the command isthmus"),
    "class": (nn.Linear, r"got the class Linear. Give a network of that class, Linear\(..\)"),
    "method": (NET.forward, "Give the module itself, of which this is a method"),
    "function": (torch.relu, "Give a module whose forward does this"),
    "trainer": (Trainer(), r"It holds one, its \.model: give that"),
    "list": ([NET], r"one as nn\.Sequential\(\*modules\)"),
    "data": (X, "The network comes first, then its data"),
}


@pytest.mark.parametrize("call", FOREIGN)
@pytest.mark.parametrize("what", INSTEAD)
def test_what_stands_in_the_place_of_a_network_is_refused_with_what_to_give(call: str, what: str) -> None:
    value, message = INSTEAD[what]
    with own_shape_checks(), pytest.raises(TypeError, match=message):
        OF_NETWORKS[call](value)


@pytest.mark.parametrize("call", FOREIGN)
def test_what_takes_any_module_says_that_it_takes_an_exported_program(call: str) -> None:
    doors = {"path": representation_path, "arrows": reconstruction_arrows, "Monitor": isthmus.Monitor.__init__}
    hints = get_type_hints(doors.get(call) or getattr(isthmus, call))
    assert set(get_args(hints["module"])) == {nn.Module, torch.export.ExportedProgram}


@pytest.mark.slow  # to export takes seconds
@pytest.mark.parametrize("call", [call for call in FOREIGN if call != "arrows"])
def test_an_exported_program_is_taken_as_its_module(call: str) -> None:
    OF_NETWORKS[call](program())


@cache
def program() -> torch.export.ExportedProgram:
    """Of any number of rows."""
    return torch.export.export(NET, (X,), dynamic_shapes=({0: torch.export.Dim("n")},))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("call", OF_NETWORKS)
def test_torchscript_is_refused_in_words(call: str) -> None:
    for module in (torch.jit.script(NET), torch.jit.trace(NET, X), nn.Sequential(torch.jit.script(NET))):
        in_words(OF_NETWORKS[call], module)
        if call in FOREIGN:
            with pytest.raises(
                TypeError, match=r"Give the module that was scripted or traced, or one of torch\.export"
            ):
                OF_NETWORKS[call](module)


@pytest.mark.parametrize("call", OF_SAMPLES)
@pytest.mark.parametrize("what", NO_SAMPLES)
def test_what_is_no_array_of_numbers_is_refused(call: str, what: str) -> None:
    in_words(OF_SAMPLES[call], NO_SAMPLES[what])


SIZES: dict[str, Callable[[], object]] = {
    "seed": lambda: isthmus.discover(X, Y, seed=10**20, effort="quick"),
    "negative seed": lambda: isthmus.discover(X, Y, seed=-1, effort="quick"),
    "seed in words": lambda: isthmus.discover(X, Y, seed="one", effort="quick"),  # pyright: ignore[reportArgumentType]
    "seed of a fit": lambda: isthmus.fit(OURS, X, Y, ridge=1e-3, seed=10**20),
    "seed of a split": lambda: isthmus.scree(OURS, X, Y, seed=10**20),
    "depth": lambda: isthmus.discover(X, Y, depth=10**9, effort="quick"),
    "endless depth": lambda: isthmus.discover(X, Y, depth=10**400, effort="quick"),
    "depth in words": lambda: isthmus.discover(X, Y, depth="deep", effort="quick"),  # pyright: ignore[reportArgumentType]
    "starts": lambda: isthmus.discover(X, Y, starts=10**12, effort="quick"),
    "streams": lambda: isthmus.discover(X, Y, network="leaky", depth=10**9, effort="quick"),
    "ridge": lambda: isthmus.discover(X, Y, ridge=float("nan"), effort="quick"),
    "endless ridge": lambda: isthmus.fit(OURS, X, Y, ridge=float("inf")),
    "limits": lambda: isthmus.discover(X, Y, limits=5, effort="quick"),  # pyright: ignore[reportArgumentType]
    "memory of a discovery": lambda: isthmus.discover(X, Y, limits=isthmus.Limits(memory=10**9), effort="quick"),
    "rows of a discovery": lambda: isthmus.discover(X, Y, limits=isthmus.Limits(rows=10), effort="quick"),
    "rows of a fit": lambda: isthmus.fit(OURS, X, Y, ridge=1e-3, limits=isthmus.Limits(rows=10)),
    "gradients of a diagnosis": lambda: isthmus.diagnose(OURS, X, limits=isthmus.Limits(evaluations=10)),
    "ridges that look the same": lambda: isthmus.discover(X, Y, ridge=[1e-2, 1.0000001e-2], effort="quick"),
    "limits of a fit": lambda: isthmus.fit(OURS, X, Y, ridge=1e-3, limits=5),  # pyright: ignore[reportArgumentType]
    "seconds": lambda: isthmus.Limits(seconds=float("nan")),
    "seconds in words": lambda: isthmus.Limits(seconds="soon"),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("what", SIZES)
def test_sizes_and_seeds_that_cannot_be_are_refused_before_anything_is_made(what: str) -> None:
    with own_shape_checks(), pytest.raises((ValueError, TypeError)) as caught:
        SIZES[what]()
    assert len(str(caught.value)) < 300
    assert "(" in str(caught.value), "it says which call"


KINDS: dict[str, Callable[..., Network]] = {
    "connected": FullyConnected,
    "resnet": partial(ResNet, block_depth=1),
    "leaky": partial(LeakyResNet, effective_depth=1.0),
}
WRONG: list[tuple[str, object]] = [
    ("d_in", 4.5), ("width", "x"), ("depth", None), ("seed", "x"), ("seed", -1), ("dtype", "float64"),
    ("dtype", torch.int64),
]  # fmt: skip


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("name", "value"), WRONG, ids=[f"{name}-{str(value)[-5:]}" for name, value in WRONG])
def test_networks_say_which_of_their_numbers_is_none(make: Callable[..., Network], name: str, value: object) -> None:
    given: dict[str, Any] = {"d_in": 4, "d_out": 3, "width": 5, "depth": 2, "seed": 0} | {name: value}
    with own_shape_checks():  # the run-time type checker of the tests refuses them first
        with pytest.raises(ValueError, match=rf"\w+\({name}=.*\): needs a "):
            make(**given)
        sizes = {size: np.int64(number) for size, number in (given | {name: 4}).items() if size != "dtype"}
        made = make(**sizes)
    assert made(torch.zeros(2, made.d_in)).shape == (2, 3)


@pytest.mark.parametrize("width", [[5, 6], (5, 6), range(5, 7), np.array([5, 6]), torch.tensor([5, 6])], ids=str)
def test_widths_of_layers_come_in_every_form(width: Any) -> None:
    with own_shape_checks():
        assert FullyConnected(4, 3, width=width, depth=3).dimensions == (4, 5, 6, 3)
