"""Every public name shows itself in an example that runs and gives what it says; the few that cannot are listed."""

import doctest
import inspect
import pydoc
import re
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import isthmus
from isthmus import constructions, errors, networks, plots, tasks, theory
from shape_checks import own_shape_checks

ROOMS = ("", ".constructions", ".errors", ".networks", ".plots", ".tasks", ".theory")
# seconds each: many trainings, many measurements of speed, simulations that run until they have settled
NOT_RUN = {"effective_depth", "compress", "spiral_waves", "ginzburg_landau"}


@pytest.fixture(autouse=True)
def _as_users_run_it() -> Iterator[None]:
    """The run-time type checker of the tests knows nothing of lists of numbers: users do not have it."""
    with own_shape_checks():
        yield


@cache
def _shared() -> dict[str, object]:
    """What docs/reference/api.md says that x, y, found, module, network and leaky are."""
    x = np.random.default_rng(0).normal(size=(60, 4))
    y = np.stack([np.tanh(x[:, 0] + x[:, 1]), x[:, 0] - x[:, 1]], 1)
    torch.manual_seed(0)
    quick = isthmus.Limits(evaluations=40)
    return {
        "x": x,
        "y": y,
        "found": isthmus.discover(x, y, ridge=1e-2, starts=1, effort="quick", limits=quick),
        "module": torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)),
        "network": isthmus.FullyConnected(4, 2, width=8, depth=3, seed=0, dtype=torch.float64),
        "leaky": isthmus.LeakyResNet(4, 2, width=6, depth=4, effective_depth=2.0, seed=0, dtype=torch.float64),
    }


def names() -> dict[str, object]:
    """Functions and classes by name, each once, where it stands first."""
    found: dict[str, object] = {}
    for room in ROOMS:
        module = import_module(f"isthmus{room}")
        for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
            what = getattr(module, name)
            if (inspect.isfunction(what) or inspect.isclass(what)) and what not in found.values():
                found[f"isthmus{room}.{name}"] = what
    return found


PUBLIC = names()


def test_help_opens_with_arguments_not_with_unions_and_their_types_are_kept() -> None:
    """Of `discover` the line of types took 1,790 characters."""
    for name in isthmus.__all__:
        if inspect.isfunction(function := getattr(isthmus, name)):
            line = str(inspect.signature(function))
            assert len(line) <= 450, name
            assert set(function.__annotations__) >= set(inspect.signature(function).parameters), name
    told = " ".join(pydoc.plain(pydoc.render_doc(isthmus.discover)).split())  # Python 3.13 has a line for each argument
    assert "x, y=None, *, encoder=None, decoder=None, log=None," in told
    assert "scaling='auto', effort='default'," in told.replace('"', "'")
    assert told.index("found = isthmus.discover(x, y)") < 1000


def results() -> set[object]:
    """Records that a public function returns: its example shows them."""
    given = {inspect.signature(f).return_annotation for f in PUBLIC.values() if inspect.isfunction(f)}
    return {what for what in given if inspect.isclass(what)}


def example_of(what: object) -> str:
    return inspect.getdoc(what) or ""


def without_example() -> list[str]:
    shown = results()
    return [name for name, what in PUBLIC.items() if ">>> " not in example_of(what) and what not in shown]


def failures(text: str, name: str) -> str:
    """What the examples of a docstring give instead of what they say; they are to be there."""
    rooms = {"constructions": constructions, "errors": errors, "networks": networks, "plots": plots, "tasks": tasks}
    world = {"isthmus": isthmus, "theory": theory, "torch": torch, "np": np, "xr": xr, "pd": pd, **rooms}
    world |= {"Path": Path, "tempfile": tempfile, "warnings": warnings}
    if not name.startswith(("isthmus.theory", "isthmus.tasks", "isthmus.networks", "isthmus.constructions")):
        world |= _shared()
    found = doctest.DocTestParser().get_doctest(text, world, name, None, None)
    assert found.examples, f"{name} has no example"
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(found, out=told.append)
    return "".join(told)


@pytest.mark.parametrize("name", [name for name, what in PUBLIC.items() if ">>> " in example_of(what)])
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning", "ignore::isthmus.errors.NumericalWarning")
def test_every_example_gives_what_it_says(name: str) -> None:
    assert failures(example_of(PUBLIC[name]), name) == ""


MADE_THERE = re.compile(r"torch\.|(ResNet|FullyConnected)\(")  # tensors and networks that the example itself makes
EXAMPLES = {name: example_of(what) for name, what in PUBLIC.items() if ">>> " in example_of(what)}


@pytest.mark.parametrize("name", [name for name, text in EXAMPLES.items() if not MADE_THERE.search(text)])
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning", "ignore::isthmus.errors.NumericalWarning")
def test_no_example_minds_where_torch_makes_its_tensors(name: str) -> None:
    """On a device that a program set, here one without numbers: what comes as arrays is computed on the CPU."""
    _shared()
    torch.set_default_device("meta")
    try:
        told = failures(EXAMPLES[name], name)
    finally:
        torch.set_default_device(None)
    assert told == ""


def test_a_version_of_torch_that_tells_of_no_context_is_no_endless_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_default_device", lambda: torch.device("meta"))  # as 2.6, within `with CPU`
    assert theory.numerical_rank(np.eye(3)) == 3  # pyright: ignore[reportArgumentType]


def test_every_public_name_has_an_example() -> None:
    assert len(PUBLIC) > 280, "the names are read as they are"
    assert without_example() == []


def test_every_function_of_the_theory_calls_itself_by_its_room() -> None:
    functions = {n: w for n, w in PUBLIC.items() if n.startswith("isthmus.theory.") and inspect.isfunction(w)}
    assert len(functions) > 80
    assert [n for n, w in functions.items() if f"{n.removeprefix('isthmus.')}(" not in example_of(w)] == []


def test_the_examples_that_are_not_run_are_few() -> None:
    skipped = {n.rpartition(".")[2] for n, what in PUBLIC.items() if "+SKIP" in example_of(what)}
    assert skipped == NOT_RUN


def test_a_wrong_example_and_a_missing_one_are_seen() -> None:
    text = example_of(theory.numerical_rank)
    assert "Got:\n    1" in failures(text.removesuffix("1") + "2", "isthmus.theory.numerical_rank")
    with pytest.raises(AssertionError, match="isthmus.theory.nothing has no example"):
        failures("No example.", "isthmus.theory.nothing")


def test_the_room_of_the_theory_lists_functions_and_records_only() -> None:
    listed = dir(theory)
    assert listed == sorted(set(listed))
    assert not [name for name in listed if inspect.ismodule(getattr(theory, name))]
