"""Public calls leave the process as they found it, alone and several at once in threads."""

import copy
import logging
import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from isthmus import FullyConnected, Limits, compress, diagnose, discover, factorise, fit, theory
from isthmus.tasks import read_table

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
        "factorise": lambda: factorise(module, x),
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
