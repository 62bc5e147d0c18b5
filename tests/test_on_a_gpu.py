"""What takes a module, data or a device: on a GPU it gives what it gives on the CPU, up to rounding.

On a machine without one a pretended device stands for it, which mixes with tensors of the CPU as little as a GPU does.
"""

import copy
import functools
import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

import isthmus
import public_calls
from command_lines import carried_out
from isthmus import FullyConnected, LeakyResNet, Limits, ResNet, diagnostics, networks, tasks, theory, training
from isthmus.networks.devices import CPU
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.solver import LBFGS, Adam
from pretended_device import AWAY, PretendedDevice
from shape_checks import own_shape_checks

ON_A_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]
ONLY_A_GPU = [pytest.param("cuda", marks=ON_A_GPU)]
DOUBLE = torch.float64
GENERATOR = torch.Generator().manual_seed(0)
X, Y = (torch.randn(120, d, generator=GENERATOR, dtype=DOUBLE) for d in (6, 4))
CLASSES = (X[:, 0] > 0).long() + (X[:, 1] > 0.3).long()
SOLVER = (Adam(12), LBFGS(12))


@pytest.fixture(params=["pretended", pytest.param("cuda", marks=ON_A_GPU)])
def away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The device beside the CPU."""
    if request.param == "cuda":  # threads do not hear of a pretended one, nor does fast attention
        yield torch.device("cuda", 0)
        return
    for place in ("isthmus.training.fit", "isthmus.discovery.asked", "isthmus.diagnostics.diagnose"):
        asked = importlib.import_module(place).device_argument
        monkeypatch.setattr(
            sys.modules[place], "device_argument", lambda d, said, asked=asked: d if d == AWAY else asked(d, said)
        )
    with PretendedDevice():
        yield AWAY


def connected() -> FullyConnected:
    return FullyConnected(6, 4, width=9, depth=4, seed=1, dtype=DOUBLE)


def leaky(**changes: Any) -> LeakyResNet:
    shape: dict[str, Any] = {"width": 9, "depth": 6, "effective_depth": 3.0, "maps": "learned"}
    return LeakyResNet(6, 4, **shape | changes, seed=1, dtype=DOUBLE)


def resnet() -> ResNet:
    return ResNet(6, 4, width=7, depth=3, block_depth=1, seed=1, dtype=DOUBLE)


def sequential() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3), nn.GELU(), nn.Linear(3, 4)).double()


class Encoder(nn.Module):
    """A transformer of two layers, whose rows are sequences."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.table = nn.Embedding(11, 8)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, t, 8)."""
        return self.body(self.table(tokens))


def images() -> nn.Module:
    torch.manual_seed(1)
    layers = nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 4)
    return nn.Sequential(*layers).eval().double()


def close(here: Any, there: Any, tolerance: float = 1e-7) -> None:
    assert there.shape == here.shape
    np.testing.assert_allclose(np.asarray(there), np.asarray(here), rtol=tolerance, atol=tolerance, equal_nan=True)


def on_both(read: Callable[[Any, Tensor], Any], module: nn.Module, x: Tensor, away: torch.device) -> tuple[Any, Any]:
    """The reading of a module and its samples on the CPU, and of copies on the device."""
    return read(copy.deepcopy(module), x), read(copy.deepcopy(module).to(away), x.to(away))


@pytest.mark.dear(1)
@pytest.mark.parametrize("kind", [connected, leaky, resnet, sequential])
@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_a_fit(kind: Callable[[], nn.Module], loss: str, away: torch.device) -> None:
    y = Y if loss == "squared" else CLASSES
    here, there = (isthmus.fit(kind(), X, y, ridge=1e-2, loss=loss, solver=SOLVER, device=d) for d in (CPU, away))
    assert there.objective == pytest.approx(here.objective, rel=1e-6)
    assert there.gradient_evaluations == here.gradient_evaluations
    assert next(there.network.parameters()).device.type == "cpu"


@pytest.mark.dear(1)
@pytest.mark.parametrize(("memory", "sampled", "evaluations"), [(400_000_000, 2000, 8), (1000, 2000, 8), (1000, 0, 90)])
def test_the_solver_of_leaky_networks(memory: int, sampled: int, evaluations: int, away: torch.device) -> None:
    # without a kernel its equations are solved as exactly: their iterations are counted as evaluations
    solver = PreconditionedLBFGS(evaluations, memory=memory, sampled=sampled, residual=1e-11)
    here, there = (
        isthmus.fit(leaky(maps="fixed"), X[:9], Y[:9], ridge=1e-2, solver=solver, device=d).objective
        for d in (CPU, away)
    )
    assert there == pytest.approx(here, rel=1e-5)


@pytest.mark.slow
def test_adaptive_steps(away: torch.device) -> None:
    here, there = (
        isthmus.fit(
            leaky(maps="fixed", steps="adaptive"), X, Y, ridge=1e-2, limits=Limits(evaluations=60), device=d
        ).objective
        for d in (CPU, away)
    )
    assert there == pytest.approx(here, rel=1e-4)


@pytest.mark.dear(1)
@pytest.mark.parametrize("solver", [(Adam(20),), (LBFGS(20),)])
def test_a_batch(solver: Any, away: torch.device) -> None:
    ends: list[list[float]] = []
    for device in (CPU, away):
        made = [FullyConnected(6, 4, width=7, depth=4, seed=s, dtype=DOUBLE).to(device) for s in range(5)]
        found = training.fit_batch(made, X, Y, ridges=[1e-2, 1e-3, 1e-2, 1e-1, 1e-2], solver=solver)
        assert {p.device.type for n in made for p in n.parameters()} == {device.type}
        ends.append([f.objective for f in found])
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


@pytest.mark.parametrize("away", ONLY_A_GPU, indirect=True)
def test_several_starts(away: torch.device) -> None:
    ends: list[list[float]] = []
    for device in (CPU, away):
        made = [FullyConnected(6, 4, width=7, depth=4, seed=s, dtype=DOUBLE) for s in range(3)]
        found = training.fit_several(made, X, Y, ridge=1e-2, solver=SOLVER, device=device, workers=1)
        ends.append([r.objective for r in found.results])
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


def same_tables(here: isthmus.Diagnosis, there: isthmus.Diagnosis, tolerance: float) -> None:
    assert {*there.layers.variables} == {*here.layers.variables}
    for name, values in here.layers.items():
        # what lies below the floor of rounding is rounding
        if np.issubdtype(values.dtype, np.floating) and not re.search("floor|stationarity|null|condition", str(name)):
            close(values, there.layers[name], tolerance)


CASES: dict[str, tuple[Callable[[], nn.Module], Tensor, dict[str, Any]]] = {
    "connected": (connected, X, {"y": Y, "ridge": 1e-2}),
    "leaky": (leaky, X, {"y": Y, "ridge": 1e-2}),
    "resnet": (resnet, X, {"y": Y, "ridge": 1e-2}),
    "sequential": (sequential, X, {"jacobians": True}),
    "transformer": (Encoder, torch.arange(200).reshape(40, 5) % 11, {}),
    "images": (images, X.new_ones(30, 1, 8, 8) * X[:30, :1, None, None], {}),
}


@pytest.mark.dear(1)
@pytest.mark.parametrize("way", ["device", "module"])
@pytest.mark.parametrize(
    ("name", "away"), [(n, "pretended") for n in CASES if n != "transformer"] + [
        pytest.param(n, "cuda", marks=ON_A_GPU) for n in CASES
    ], indirect=["away"],
)  # fmt: skip
def test_a_diagnosis(name: str, way: str, away: torch.device) -> None:
    kind, x, options = CASES[name]
    here = isthmus.diagnose(kind(), x, **options, progress=lambda _: None)
    module = kind() if way == "device" else kind().to(away)
    there = isthmus.diagnose(module, x, **options, device=away if way == "device" else None, progress=lambda _: None)
    assert next(module.parameters()).device.type == ("cpu" if way == "device" else away.type)
    same_tables(here, there, 1e-3 if name == "transformer" else 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("lies", ["here", "away"])
def test_a_diagnosis_of_a_stream(lies: str, tmp_path: Path, away: torch.device) -> None:
    parts = [X[i : i + 20] for i in range(0, 120, 20)]
    here = isthmus.diagnose(sequential(), iter(parts), progress=lambda _: None)
    for _ in range(2):
        there = isthmus.diagnose(
            sequential(), iter([part.to(away if lies == "away" else CPU) for part in parts]), device=away,
            checkpoint=tmp_path / "sums.pt", progress=lambda _: None,
        )  # fmt: skip
        same_tables(here, there, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [connected, sequential])
def test_a_compression(kind: Callable[[], nn.Module], away: torch.device) -> None:
    def compressed(module: nn.Module, x: Tensor) -> isthmus.Compression:
        return isthmus.compress(module, x, tolerance=0.3, allow_slower=True)

    here, there = on_both(compressed, kind(), X, away)
    assert there.relative_error == pytest.approx(here.relative_error, rel=1e-3, abs=1e-9)
    assert there.parameters_after == here.parameters_after
    assert there.module(X.to(next(there.module.parameters()).device)).shape == (120, 4)


def test_a_monitor(away: torch.device) -> None:
    def watched(module: nn.Module, x: Tensor) -> Any:
        monitor, optimiser = isthmus.Monitor(module, x, every=2), torch.optim.SGD(module.parameters(), lr=1e-2)
        for _ in range(6):
            module(x).square().mean().backward()
            optimiser.step()
            optimiser.zero_grad()
            monitor.step()
        return monitor.history

    here, there = on_both(watched, sequential(), X, away)
    assert {*there.variables} == {*here.variables}
    for name, values in here.data_vars.items():
        if np.issubdtype(values.dtype, np.floating):
            close(values, there[name], 1e-5)


@pytest.mark.dear(1)
@pytest.mark.filterwarnings("ignore:.*rows are few for:isthmus.errors.DataWarning")
@pytest.mark.parametrize("rows", [2, 120])
@pytest.mark.parametrize("kind", [connected, sequential])
def test_a_factorisation(kind: Callable[[], nn.Module], rows: int, away: torch.device) -> None:
    def through(module: nn.Module, x: Tensor) -> Tensor:
        found = isthmus.factorise(module, x, 3)
        weight = next(found.decoder.parameters())
        return found.decoder(found.encoder(x.to(weight))).detach().cpu()

    close(*on_both(through, kind(), X[:rows], away), 1e-6)


def test_forensics(away: torch.device) -> None:
    with own_shape_checks():
        here, there = on_both(lambda m, x: isthmus.forensics(m, x, Y.to(x.device)), sequential(), X, away)
    assert str(there)[:40] == str(here)[:40]


@pytest.mark.dear(1)
@pytest.mark.parametrize("kind", [connected, leaky, resnet])
def test_theory_and_jacobians(kind: Callable[[], Any], away: torch.device) -> None:
    close(*on_both(lambda m, x: networks.jacobians(m, x).detach().cpu(), kind(), X[:20], away))
    for read in (theory.certificates, lambda m, _: theory.costs(m)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here, there = on_both(read, kind(), X[:20], away)
        close(here["value"].to_numpy(float), there["value"].to_numpy(float), 1e-4)


@pytest.mark.filterwarnings("ignore::isthmus.errors.NumericalWarning")  # far from critical
def test_readings_of_leaky_networks(away: torch.device) -> None:
    network = leaky(maps="fixed")
    here, there = on_both(lambda m, x: isthmus.leaky_diagnosis(m, x, Y.to(x.device), ridge=1e-2), network, X, away)
    for name in here.data_vars:
        close(here[name], there[name], 1e-5)
    here, there = on_both(
        lambda m, x: diagnostics.kink_stationarity(m, x, Y.to(x.device), ridge=1e-2).generalised, network, X, away
    )
    assert there == pytest.approx(here, rel=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::isthmus.errors.NumericalWarning")
def test_an_effective_depth(away: torch.device) -> None:
    here, there = on_both(
        lambda m, x: isthmus.effective_depth(
            m, x, Y.to(x.device), ridge=0.05, most=3.5, limits=Limits(evaluations=15)
        ),
        leaky(maps="fixed"), X, away,
    )  # fmt: skip
    assert there.reason[:20] == here.reason[:20]


def numbers(found: Any) -> list[Tensor]:
    """All tensors and numbers in what a function gives, the parameters of networks too."""
    if isinstance(found, Tensor):
        return [found.detach()]
    if isinstance(found, int | float | np.ndarray):
        return [torch.as_tensor(found)]
    if isinstance(found, nn.Module):
        return [p.detach() for p in (*found.parameters(), *found.buffers())]
    if isinstance(found, pd.DataFrame):
        return [torch.as_tensor(found["value"].to_numpy(float, copy=True))]
    if is_dataclass(found):
        return [n for part in fields(found) for n in numbers(getattr(found, part.name))]
    entries = found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else ()
    return [n for entry in entries for n in numbers(entry)]


def taken_there(value: Any, away: torch.device) -> Any:
    return tree_map_only((Tensor, nn.Module), lambda v: copy.deepcopy(v).to(away), value)


PUBLIC = {f"theory.{name}": arguments for name, arguments in public_calls.theory_calls().items()} | {
    f"constructions.{name}": arguments for name, arguments in public_calls.construction_calls().items()
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_of_tensors(name: str, away: torch.device) -> None:
    function: Any = functools.reduce(getattr, name.split("."), isthmus)
    given = PUBLIC[name]
    here, there = numbers(function(**given)), numbers(function(**taken_there(dict(given), away)))
    assert len(there) == len(here) > 0
    for one, other in zip(here, there, strict=True):
        close(one, other.cpu(), 1e-9)


SIXTHS = torch.full((6,), 1 / 6, dtype=DOUBLE)
LINE = networks.FullyConnected(6, 4, width=5, depth=5, linear=(2, 3), seed=1, dtype=DOUBLE)
PLANE: dict[str, Any] = {
    "origin": X[0],
    "basis": torch.eye(6, dtype=DOUBLE)[:2],
    "lower": (-1.0, -1.0),
    "upper": (1.0, 1.0),
}
OF_NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[Any, Callable[[Any], Any]], Any]]] = {
    "as_fully_connected": (lambda: leaky(maps="fixed"), lambda m, _: networks.as_fully_connected(m)),
    "as_fully_connected of a ResNet": (resnet, lambda m, _: networks.as_fully_connected(m)),
    "balance_linear_runs": (lambda: LINE, lambda m, to: networks.balance_linear_runs(m)(to(X))),  # but for signs
    "caratheodory_prune": (connected, lambda m, to: networks.caratheodory_prune(m, to(X[:5]))),
    "class_regions": (connected, lambda m, to: networks.class_regions(networks.slice_cells(m, **to(PLANE)))),
    "class_slice": (connected, lambda m, to: diagnostics.class_slice(m, to(X))["points"].values),
    "compress_depth": (lambda: LINE, lambda m, to: networks.compress_depth(m, to(X), tolerance=0.5)),
    "delete_dead_neurons": (connected, lambda m, to: networks.delete_dead_neurons(m, to(X))),
    "enclosed_jacobians": (connected, lambda m, to: networks.enclosed_jacobians(m, to(X))),
    "fold_constant_neurons": (connected, lambda m, to: networks.fold_constant_neurons(m, to(X))),
    "insert_identity_layers": (connected, lambda m, _: networks.insert_identity_layers(m, 2)),
    "merge_layers": (lambda: LINE, lambda m, to: networks.merge_layers(m, 2, to(X))),
    "merge_parallel_neurons": (connected, lambda m, _: networks.merge_parallel_neurons(m)),
    "min_norm_projection": (connected, lambda m, to: networks.min_norm_projection(m, to(X))),
    "output_range": (connected, lambda m, to: networks.output_range(m, to(-X[0].abs()), to(X[0].abs()))),
    "rebalance": (connected, lambda m, _: networks.rebalance(m)),
    "reduced_jacobians": (connected, lambda m, to: networks.reduced_jacobians(m, to(X)).values),
    "releaked": (lambda: leaky(maps="fixed"), lambda m, _: networks.releaked(m, 2.0)),
    "retimed": (lambda: leaky(maps="fixed", scheme="exponential"), lambda m, _: networks.retimed(m)),
    "segment_pieces": (connected, lambda m, to: networks.segment_pieces(m, to(X[0]), to(X[1]))),
    "walk": (connected, lambda m, to: networks.walk(m, to(X))),
    "with_steps": (
        lambda: leaky(maps="fixed", scheme="exponential"), lambda m, to: networks.with_steps(m, to(SIXTHS))
    ),
    "representation_path": (connected, lambda m, to: diagnostics.representation_path(m, to(X)).path.values),
    "reconstruction_arrows": (
        lambda: FullyConnected(6, 6, width=5, depth=3, seed=0, dtype=DOUBLE),
        lambda m, to: diagnostics.reconstruction_arrows(m, to(X)).to_array().values,
    ),
    "leaky_path": (
        lambda: leaky(maps="fixed"), lambda m, to: diagnostics.leaky_path(m, to(X), to(Y), ridge=1e-2).critical
    ),
    "symmetry_defect": (connected, lambda m, to: isthmus.symmetry_defect(m, lambda x: -x, to(X))),
}  # fmt: skip


@pytest.mark.dear(1)
@pytest.mark.filterwarnings("ignore::isthmus.errors.NumericalWarning", "ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize("name", OF_NETWORKS)
def test_a_public_function_of_a_network(name: str, away: torch.device) -> None:
    make, call = OF_NETWORKS[name]
    network = make()
    here = numbers(call(copy.deepcopy(network), lambda value: value))
    there = numbers(call(copy.deepcopy(network).to(away), lambda value: taken_there(value, away)))
    assert len(there) == len(here) > 0
    for one, other in zip(here, there, strict=True):
        close(one, other.cpu(), 1e-7)


TASK = tasks.teacher(2, d_in=5, d_out=3, num_samples=200, seed=3)
LABELS = (TASK.x[:, 0] > 0).astype(int) + (TASK.x[:, 1] > 0.3)
SEARCHES: dict[str, tuple[dict[str, Any], Any]] = {
    "autoencoding": ({}, None),
    "squared": ({}, TASK.y),
    "classes": ({"loss": "cross_entropy"}, LABELS),
    "gaussian, weights": ({"loss": "gaussian", "sample_weight": np.linspace(0.5, 1, 200)}, TASK.y),
    "linear encoder": ({"encoder": "linear"}, TASK.y),
    "leaky": ({"network": "leaky", "depth": 4}, TASK.y),
    "resnet": ({"network": "resnet", "depth": 4}, TASK.y),
}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search(name: str, tmp_path: Path) -> None:
    """On a pretended device: `networks/test_devices.py`."""
    options, y = SEARCHES[name]
    usual: dict[str, Any] = {"effort": "quick", "ridge": [1e-2], "starts": 1, "limits": Limits(evaluations=40)}
    found = isthmus.discover(
        TASK.x, y, **usual, **options, workers=1, executor="threads", device="cuda", out=tmp_path / "run"
    )
    again = isthmus.load(tmp_path / "run")
    assert found.settings["device"] == "cuda"
    assert np.array_equal(again.predict(TASK.x), found.predict(TASK.x))
    assert {p.device.type for p in found.network.parameters()} == {"cpu"}


PLAN = isthmus.Plan(
    task={"name": "teacher", "rank": 1, "d_in": 5, "d_out": 3, "latent_dim": 2, "num_samples": 30},
    network={"kind": "fully_connected", "width": 4, "depth": 2}, training={"dtype": "float64", "evaluations": 20},
    grid={"ridge": [0.1, 0.01], "seed": [0]},
)  # fmt: skip


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_sweep(workers: int, tmp_path: Path) -> None:
    here, there = (
        isthmus.sweep(PLAN, out=tmp_path / str(device), workers=workers, device=device) for device in (None, "cuda")
    )
    close(here["objective"], there["objective"], 1e-6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_figure(tmp_path: Path) -> None:
    carried_out(
        ["figure", "boundedness", "--preset", "tiny", "--out", str(tmp_path), "--workers", "2", "--device", "cuda"]
    )
    found = [path.read_bytes() for path in (tmp_path / "parts" / "runs").rglob("*") if path.is_file()]
    assert any(torch.cuda.get_device_name().encode() in data for data in found)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_estimators_and_what_is_foretold() -> None:
    task = tasks.teacher(2, d_in=8, d_out=5, num_samples=400, seed=1)
    found = isthmus.BottleneckRegressor(device="cuda", effort="quick").fit(task.x, task.y)
    assert found.rank_ == 2
    assert isthmus.foresee(task.x, task.y, device="cuda", effort="quick").seconds > 0
