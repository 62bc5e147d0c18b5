"""What a device may be called, and networks that lie elsewhere for a while."""

import sys
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import isthmus
from isthmus import Discovery, FullyConnected, LeakyResNet, Limits, ResNet, discover, fit
from isthmus.networks.devices import CPU, device_argument, lying_on, trained_on, usual_device
from isthmus.tasks import teacher
from isthmus.training import Outcome
from isthmus.training.checkpoint import load_state
from isthmus.training.solvers.adaptive_steps import AdaptiveSteps
from isthmus.training.solvers.minibatches import MiniBatches
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.rank_raising import raise_rank
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import ExactMoves, RankTrials
from pretended_device import AWAY, PretendedDevice

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]
ROWS = torch.Generator().manual_seed(0)
X, Y = torch.randn(60, 5, generator=ROWS), torch.randn(60, 3, generator=ROWS)
TASK = teacher(2, d_in=5, d_out=3, num_samples=60, seed=3)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pretended device may be asked for by name."""
    for place in ("isthmus.training.fit", "isthmus.discovery.asked"):
        monkeypatch.setattr(sys.modules[place], "device_argument", lambda device, _: device)


def network(kind: str) -> nn.Module:
    leaky: dict[str, Any] = {"effective_depth": 3.0, "maps": "learned"}
    made = {
        "connected": lambda: FullyConnected(5, 3, width=6, depth=5, linear=(2, 3), seed=1),
        "sloped": lambda: FullyConnected(5, 3, width=6, depth=3, negative_slope=-0.3, seed=1),
        "leaky": lambda: LeakyResNet(5, 3, width=6, depth=4, seed=1, dtype=torch.float32, **leaky),
        "adaptive": lambda: LeakyResNet(5, 3, width=6, depth=6, seed=1, steps="adaptive", **leaky),
        "resnet": lambda: ResNet(5, 3, width=6, depth=3, block_depth=1, seed=1, dtype=torch.float32),
    }[kind]()
    return made


def weights(module: nn.Module) -> list[bytes]:
    return [p.detach().numpy().tobytes() for p in module.parameters()]


def test_the_pretended_device_refuses_what_a_gpu_refuses() -> None:
    with PretendedDevice():
        there = torch.ones(3, device=AWAY)
        assert float((there * 2).sum()) == 6.0
        assert isinstance(there.cpu(), Tensor)
        with pytest.raises(RuntimeError, match="on the same device"):
            torch.add(there, torch.ones(3))
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "mps", "cpu:3", torch.device("meta")])
def test_what_is_no_device_is_refused_in_one_line(device: Any) -> None:
    for call in (
        lambda: discover(X.numpy(), Y.numpy(), device=device),
        lambda: fit(network("connected"), X, Y, ridge=1e-2, device=device),
        lambda: isthmus.diagnose(network("connected"), X, device=device),
    ):
        with pytest.raises(ValueError, match="needs cpu, cuda, cuda:1 and so on, or auto") as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="of a machine without a GPU")
def test_without_a_gpu_cuda_is_refused_and_auto_is_the_cpu() -> None:
    for name in ("cuda", "cuda:1", torch.device("cuda", 0)):
        with pytest.raises(
            ValueError, match=r"discover\(device='cuda.*torch .* sees no CUDA device. Give cpu, or auto"
        ):
            discover(X.numpy(), Y.numpy(), device=name)
    assert device_argument("auto", "") == device_argument("cpu", "") == CPU
    assert device_argument(None, "") is None
    with pytest.raises(ValueError, match="sees no CUDA device"):
        isthmus.BottleneckRegressor(device="cuda").fit(X.numpy(), Y.numpy())


def test_the_device_of_a_block_is_that_of_the_blocks_in_it_that_name_none() -> None:
    assert usual_device() is None
    with trained_on(AWAY):
        with trained_on(None):
            assert usual_device() == AWAY
        with trained_on(CPU):
            assert usual_device() == CPU
        assert usual_device() == AWAY
    assert usual_device() is None


@pytest.mark.usefixtures("away")
def test_a_fit_lies_where_its_block_says_unless_its_caller_does() -> None:
    places: list[str] = []

    def look(event: Any) -> None:
        places.append(next(event.network.parameters()).device.type)

    with PretendedDevice(), trained_on(AWAY):
        for device in (None, CPU):
            fit(network("connected"), X, Y, ridge=1e-2, solver=Adam(1), callback=look, device=device)
    assert places == ["meta", "cpu"]


def test_a_network_lies_elsewhere_while_a_block_runs_and_also_comes_back_from_an_error() -> None:
    module = network("leaky")
    before = weights(module)

    def broken() -> None:
        with lying_on(module, AWAY):
            assert {t.device for t in (*module.parameters(), *module.buffers())} == {AWAY}
            raise KeyError

    with PretendedDevice(), pytest.raises(KeyError):
        broken()
    assert weights(module) == before


@pytest.mark.slow
@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("kind", ["connected", "sloped", "leaky", "resnet"])
def test_a_fit_elsewhere_gives_the_same_and_comes_back(kind: str) -> None:
    trials = [ExactMoves(), RankTrials(LBFGS(9)), RankTrials(LBFGS(9), most=1, attempt=raise_rank)]
    solver = (MiniBatches(Adam(8), batch=20), Adam(8), LBFGS(12), *(trials if kind == "connected" else ()))
    here, there = network(kind), network(kind)
    usual = fit(here, X, Y, ridge=1e-2, solver=solver, sample_weight=torch.ones(60))
    with PretendedDevice():
        found = fit(there, X, Y, ridge=1e-2, solver=solver, sample_weight=torch.ones(60), device=AWAY)
    assert found.network is there
    assert weights(there) == weights(here)
    assert found.objective == usual.objective


# solvers, and evaluations after which a fit is stopped: within Adam, within L-BFGS of a trial; within a round of steps
# after which they move, and within the one after
GOING_ON: dict[str, tuple[Any, tuple[int, int]]] = {
    "connected": ((Adam(5), RankTrials(LBFGS(10), most=1)), (3, 9)),
    "resnet": ((MiniBatches(Adam(4), batch=20), LBFGS(20)), (5, 18)),
    "adaptive": (AdaptiveSteps(PreconditionedLBFGS(40), rounds=2, round_evaluations=15), (9, 25)),
}


@pytest.mark.usefixtures("away")
@pytest.mark.dear(3)
@pytest.mark.parametrize("kind", GOING_ON)
@pytest.mark.parametrize("way", ["out", "home"])
def test_a_fit_goes_on_on_another_device_bit_for_bit(kind: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.pt"
    solver, stops = GOING_ON[kind]
    usual = fit(network(kind), X, Y, ridge=1e-2, solver=solver)
    devices = [CPU, AWAY] if way == "out" else [AWAY, CPU]
    for stop in stops:
        with PretendedDevice():
            stopped = fit(
                network(kind), X, Y, ridge=1e-2, solver=solver, checkpoint=path, device=devices[0],
                callback=lambda event, stop=stop: event.evaluations >= stop,
            )  # fmt: skip
        assert stopped.outcome is Outcome.INTERRUPTED
        tensors = [t for t in tree_leaves(load_state(path)) if isinstance(t, Tensor)]
        assert {t.device for t in tensors} == {CPU}
        devices = devices[::-1]
    with PretendedDevice():
        found = fit(network(kind), X, Y, ridge=1e-2, solver=solver, checkpoint=path, device=devices[0])
    assert found.objective == usual.objective


class OnTheDevice(Executor):
    """Computes at once, with the pretended device there."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The future of what is known already."""
        future: Future[Any] = Future()
        try:
            with PretendedDevice():
                future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as any executor
            future.set_exception(error)
        return future


def searched(options: dict[str, Any], y: Any, **where: Any) -> Discovery:
    usual = {"effort": "quick", "ridge": [1e-2], "starts": 2, "limits": Limits(evaluations=12)}
    return discover(TASK.x, y, **usual, **options, workers=1, **where)


CLASSES = (TASK.x[:, 0] > 0).astype(int) + (TASK.x[:, 1] > 0.3)
SEARCHES: dict[str, tuple[dict[str, Any], Any]] = {
    "squared": ({}, TASK.y),
    "classes": ({"loss": "cross_entropy"}, CLASSES),
    "gaussian, weights": ({"loss": "gaussian", "sample_weight": np.linspace(0.5, 1, 60)}, TASK.y),
    "linear encoder": ({"encoder": "linear"}, TASK.y),
    "leaky": ({"network": "leaky", "depth": 4}, TASK.y),
    "resnet": ({"network": "resnet", "depth": 4}, TASK.y),
}
SLOW = set(SEARCHES) - {"linear encoder"}


@pytest.mark.slow
@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in SEARCHES])
def test_a_search_elsewhere_gives_the_same_and_files_that_lie_here(name: str, tmp_path: Path) -> None:
    options, y = SEARCHES[name]
    usual = searched(options, y, executor="threads")
    found = searched(options, y, executor=OnTheDevice(), device=AWAY, out=tmp_path / "run")
    assert weights(found.network) == weights(usual.network)
    assert weights(isthmus.load(tmp_path / "run").decoder) == weights(usual.decoder)
    assert found.settings["device"] == "meta"
    assert "device" not in usual.settings
    assert found.rank == usual.rank


@pytest.mark.slow
@pytest.mark.usefixtures("away")
def test_a_depth_path_elsewhere_gives_the_same() -> None:
    usual = discover(TASK.x, effort="quick", ridge=[1e-2], limits=Limits(evaluations=12), depth_path=True, workers=1)
    found = discover(
        TASK.x, effort="quick", ridge=[1e-2], limits=Limits(evaluations=12), depth_path=True, workers=1,
        executor=OnTheDevice(), device=AWAY,
    )  # fmt: skip
    assert found.depth_path is not None
    assert usual.depth_path is not None
    assert found.depth_path.table.identical(usual.depth_path.table)


def gpu(test: Any) -> Any:
    for mark in GPU:
        test = mark(test)
    return test


@gpu
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_gpu_finds_the_rank_that_the_cpu_finds(executor: str, tmp_path: Path) -> None:
    task = teacher(2, d_in=8, d_out=5, num_samples=400, seed=1)
    found = discover(task.x, task.y, device="cuda", executor=executor, workers=2, out=tmp_path / "run", effort="quick")
    assert found.rank == 2
    assert found.settings["device"] == "cuda"
    assert np.array_equal(isthmus.load(tmp_path / "run").predict(task.x), found.predict(task.x))
