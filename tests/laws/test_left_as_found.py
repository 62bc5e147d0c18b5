"""Public calls leave the process as they found it, alone and several at once in threads, and the module they get."""

import copy
import logging
import os
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from isthmus import FullyConnected, Limits, Monitor, compress, diagnose, discover, factorise, fit, forensics, theory
from isthmus.diagnostics import representation_path
from isthmus.networks import jacobians
from isthmus.tasks import read_table
from isthmus.theory.undisturbed import attributes_kept, left_as_found

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.c_[np.sin(X[:, 0]), X[:, 0] + X[:, 1]]
FEW = Limits(evaluations=20)


def state() -> dict[str, object]:
    """Without chance of Python itself, from which the checkers of types draw that stand around all calls in tests."""
    legacy = np.random.get_state()  # noqa: NPY002 - the one that all share
    return {
        "filters": list(warnings.filters),
        "showwarning": warnings.showwarning,
        "impl": vars(warnings)["_showwarnmsg_impl"],
        "torch": torch.get_rng_state().tolist(),
        "numpy": [np.asarray(part).tolist() for part in legacy],
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "grad": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "threads": torch.get_num_threads(),
        "streams": (sys.stdout, sys.stderr, os.environ.get("PYTHONSAFEPATH")),
        "kernels": (torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled),
        "levels": [logging.getLogger(name).level for name in ("torch.export", "torch.onnx")],
    }


def changed(before: dict[str, object]) -> list[str]:
    return [name for name, now in state().items() if now != before[name]]


def chain() -> nn.Sequential:
    generator = torch.Generator().manual_seed(0)
    layers = [nn.Linear(a, b) for a, b in ((4, 12), (12, 12), (12, 2))]
    with torch.no_grad():
        for layer in layers:
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) / 3)
    return nn.Sequential(layers[0], nn.ReLU(), nn.Dropout(0.1), layers[1], nn.ReLU(), layers[2]).eval()


def searched(**where: object) -> None:
    discover(X, Y, ridge=(1e-2, 1e-3), starts=2, effort="quick", limits=FEW, **where)  # pyright: ignore[reportArgumentType]


def in_a_pool_of_ones_own() -> None:
    with ThreadPoolExecutor(4) as pool:
        searched(executor=pool)


def trained() -> None:
    fit(FullyConnected(4, 2, width=6, depth=3, seed=0), X, Y, ridge=1e-2, limits=FEW)


def read(path: Path) -> None:
    for _ in range(5):
        read_table(path, target=["b"])


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    table, module = folder / "t.csv", chain()
    table.write_text("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(30)))
    x = torch.tensor(X, dtype=torch.float32)
    return {
        "diagnose": lambda: diagnose(copy.deepcopy(module), x),
        "discover": partial(searched, workers=1),
        "discover(executor)": in_a_pool_of_ones_own,
        "fit": trained,
        "compress": lambda: compress(copy.deepcopy(module), x, tolerance=0.3),
        "factorise": lambda: factorise(module, x, 2),
        "certificates": lambda: theory.certificates(copy.deepcopy(module), x),
        "read_table": partial(read, table),
    }


NAMES = ("diagnose", "discover", "discover(executor)", "fit", "compress", "factorise", "certificates", "read_table")


@pytest.mark.parametrize("name", NAMES)
def test_a_call_leaves_the_process_as_it_found_it(name: str, tmp_path: Path) -> None:
    call = calls(tmp_path)[name]
    call()  # libraries that are loaded late add filters of their own
    before = state()
    call()
    assert changed(before) == [], "alone"
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(call) for _ in range(4)]:
            done.result()
    assert changed(before) == [], "several at once"


def test_all_calls_are_tried_and_what_one_leaves_is_seen(tmp_path: Path) -> None:
    assert tuple(calls(tmp_path)) == NAMES
    before, threads = state(), torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        assert changed(before) == ["filters"]
    with torch.random.fork_rng(devices=[]), torch.no_grad(), torch.device("meta"):
        torch.manual_seed(1)
        torch.set_num_threads(threads + 1)
        seen = changed(before)
        torch.set_num_threads(threads)
    assert seen == ["torch", "device", "grad", "threads"]
    assert changed(before) == []


class Notes:
    """What a module of this file keeps in an object of its own."""

    def __init__(self) -> None:
        self.count, self.seen = 0, list[int]()


class Writing(nn.Module):
    """Writes into itself with every call; without `is_quiet` it is a plain network of two layers."""

    kept: Tensor

    def __init__(self, *, is_quiet: bool = False) -> None:
        super().__init__()
        self.first, self.last, self.is_quiet = nn.Linear(4, 6), nn.Linear(6, 3), is_quiet
        self.register_buffer("kept", torch.zeros(2))
        self.calls, self.cache, self.total = 0, None, torch.zeros(())
        self.outputs, self.by_size, self.sizes = list[int](), {"sizes": list[int]()}, set[int]()
        self.notes, self.pair, self.hidden, self.leaves = Notes(), (dict[int, int](), 0), [nn.Identity()], "yes"
        self.first.register_forward_hook(self.heard)  # of a copy: writes into the copy
        self.last.register_forward_hook(lambda *_: self.outputs.append(-1))  # of a copy: writes into this one

    def heard(self, _module: nn.Module, _args: object, output: Tensor) -> None:
        if not self.is_quiet:
            self.features = output

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_quiet:
            self.calls, self.cache, self.kept = self.calls + 1, x, torch.ones(len(x))
            self.total += x.sum().detach()
            self.outputs.append(len(x))
            self.by_size["sizes"].append(len(x))
            self.by_size["new"] = []
            self.sizes.add(len(x))
            self.notes.count += 1
            self.notes.seen.append(len(x))
            self.pair[0][len(x)] = 1
            self.hidden[0].calls = self.calls  # pyright: ignore[reportArgumentType]
            self.made = nn.Identity()
            vars(self).pop("leaves", None)
        return self.last(torch.relu(self.first(x)))


def attributes(module: Writing) -> dict[str, object]:
    """In numbers and words; which objects they are where it matters."""
    given = vars(module)
    return {
        "numbers": (module.calls, float(module.total), id(module.total), id(module.kept), module.kept.tolist()),
        "cache": given["cache"],
        "containers": (str(module.outputs), str(module.by_size), str(module.sizes), str(module.pair)),
        "object": (module.notes.count, str(module.notes.seen)),
        "hidden": sorted(vars(module.hidden[0])),
        "names": (sorted(given), list(given["_modules"])),
        "modes": [module.first.training, module.last.training],
    }


ROWS = torch.tensor(X, dtype=torch.float32)
READINGS: dict[str, Callable[[nn.Module], object]] = {
    "diagnose": lambda module: diagnose(module, ROWS),
    "diagnose without Jacobians": lambda module: diagnose(module, ROWS, jacobians=False),
    "diagnose a loader": lambda module: diagnose(module, DataLoader(TensorDataset(ROWS), batch_size=20)),
    "Monitor": lambda module: Monitor(module, ROWS).record(0),
    "forensics": lambda module: forensics(module, ROWS, torch.zeros(60, 3)),
    "representation_path": lambda module: representation_path(module, ROWS),
    "compress": lambda module: compress(module, ROWS, tolerance=0.3),
    "factorise": lambda module: factorise(module, ROWS, 2),
    "jacobians": lambda module: jacobians(module, ROWS[:3]),
    "certificates": lambda module: theory.certificates(module, ROWS[:3]),
}


@pytest.mark.parametrize("name", READINGS)
def test_what_a_module_writes_into_itself_is_put_back(name: str) -> None:
    """The cache of a forward pass was in inference mode afterwards, or a counter had gone on, by some ways."""
    module = Writing()
    before = attributes(module)
    with suppress(ValueError):  # one that writes into itself cannot be taken apart
        READINGS[name](module)
    assert attributes(module) == before


def test_what_a_module_writes_into_itself_is_seen() -> None:
    module = Writing()
    before = attributes(module)
    module(ROWS)
    changed_by_a_call = [name for name, now in attributes(module).items() if now != before[name]]
    assert changed_by_a_call == [name for name in before if name != "modes"]


@pytest.mark.parametrize("name", ["diagnose without Jacobians", "Monitor"])
def test_what_hooks_do_elsewhere_and_with_their_handles_stays(name: str) -> None:
    module, heard = Writing(is_quiet=True), list[int]()
    module.first.register_forward_hook(lambda _m, _a, output: heard.append(len(output)))
    once = module.first.register_forward_hook(lambda *_: once.remove())
    READINGS[name](module)
    assert heard
    assert once.id not in vars(module.first)["_forward_hooks"]
    heard.clear()
    module(ROWS)
    assert heard == [60]


class Frozen(dict[str, Tensor]):
    """A container that refuses to be written."""

    def __setitem__(self, key: str, value: Tensor) -> None:
        raise TypeError(f"{key} is frozen")

    def __delitem__(self, key: str) -> None:
        raise TypeError(f"{key} is frozen")


class Keeps(nn.Module):
    """Counts its calls, and holds what is hard to copy or to put back."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.calls, self.last = layer, 0, OrderedDict((i, i) for i in range(3))
        self.frozen = Frozen(table=torch.ones(2))
        self.register_buffer("wide", torch.ones(1, 1).expand(30_000, 30_000))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last.move_to_end(0)
        return self.layer(x)


def scripted() -> nn.Module:
    return torch.jit.script(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).train())


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("copied", [True, False])
def test_what_is_hard_to_put_back_hides_nothing_else(copied: bool) -> None:
    """An error while copies were put in place had left them there; one while others were put back had ended that."""
    module = Keeps(nn.Linear(4, 3))
    held = module.frozen["table"], module.wide
    with attributes_kept(module, copied=copied):
        module(torch.ones(2, 4))
    assert (module.calls, [*module.last]) == (0, [0, 1, 2])
    assert module.frozen["table"] is held[0]
    assert module.wide is held[1]


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("alone", [True, False])
def test_buffers_of_scripted_parts_are_put_back(alone: bool) -> None:
    part = scripted()
    module = part if alone else Keeps(part)
    before = {name: value.clone() for name, value in part.named_buffers()}
    assert before
    with left_as_found(module):
        module(torch.randn(20, 4, generator=torch.Generator().manual_seed(0)))
        assert any(not torch.equal(value, before[name]) for name, value in part.named_buffers())
    assert all(torch.equal(value, before[name]) for name, value in part.named_buffers())
