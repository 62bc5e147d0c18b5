"""Steps as CUDA graphs: on a GPU the same numbers as on the CPU; on the CPU, that a step is fit to be captured."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from isthmus import FullyConnected, LeakyResNet, fit
from isthmus.errors import NumericalWarning
from isthmus.training.losses import LOSSES, SQUARED, DataLoss, Loss
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.steps.captured import Captured
from isthmus.training.steps.connected_step import FullyConnectedStep
from isthmus.training.steps.leaky_step import LeakyStep
from isthmus.training.steps.step import step_of
from loss_targets import targets_of
from tolerances import rounding

GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="compares a GPU with the CPU, and there is no GPU"),
]
KINDS = ("relu", "negative slope", "leaky", "smoothed leaky")


class NoLook(TorchDispatchMode):
    """Refuses to hand a number of a tensor to Python, which waits for the device and cannot be captured."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            raise AssertionError("a number was looked at")
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def made(kind: str, loss: Loss, device: str) -> FullyConnectedStep | LeakyStep:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 5, generator=generator, dtype=torch.float64)
    y = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    data = DataLoss(loss, targets_of(loss, y).to(device))
    shape: dict[str, Any] = {"d_in": 5, "d_out": 4 * loss.per_target, "seed": 1, "dtype": torch.float64}
    if kind.endswith("leaky"):
        network = LeakyResNet(**shape, width=9, depth=6, effective_depth=3.0, maps="learned")
        network.smoothing.fill_(0.3 if kind == "smoothed leaky" else 0.0)
    else:
        slope = 0.0 if kind == "relu" else -0.4
        network = FullyConnected(**shape, width=7, depth=4, negative_slope=slope)
    step = step_of(network.to(device), x.to(device), data, 0.1)
    assert isinstance(step, FullyConnectedStep | LeakyStep)
    return step


@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_looks_at_no_number_while_it_computes(kind: str, loss: Loss) -> None:
    step = made(kind, loss, "cpu")
    value = step()
    with NoLook():
        total, square = step._compute()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(AssertionError, match="was looked at"):  # the control
            float(total)
    factor = 0.5 if isinstance(step, LeakyStep) else 1.0
    assert value == pytest.approx(step.data.share * float(total) + 0.1 * factor * float(square), rel=1e-12)


def test_on_a_cpu_everything_is_computed_as_it_stands() -> None:
    calls: list[int] = []

    def compute() -> int:
        calls.append(len(calls))
        return calls[-1]

    captured = Captured[int](torch.device("cpu"))
    assert [captured(compute, n) for n in (1, 1, 2)] == [0, 1, 2]
    captured.stop()
    assert captured(compute, 2) == 3


def gpu(test: Any) -> Any:
    for mark in GPU:
        test = mark(test)
    return test


@gpu
@pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda l: l.name)
@pytest.mark.parametrize("kind", KINDS)
def test_a_captured_step_gives_the_numbers_of_the_cpu(kind: str, loss: Loss) -> None:
    steps = [made(kind, loss, device) for device in ("cpu", "cuda")]
    for ridge in (0.1, 0.1, 0.02):  # a replay, then another graph
        values: list[float] = []
        for step in steps:
            step.ridge = ridge
            values.append(step())
            step.theta.add_(step.gradient, alpha=-0.01)
        assert values[1] == pytest.approx(values[0], rel=rounding(size=400))
        torch.testing.assert_close(steps[1].gradient.cpu(), steps[0].gradient, rtol=0, atol=rounding(size=400))
    for step in steps:
        step.use(step.x[:20].clone(), DataLoss(loss, step.data.y[:20].clone()))
    assert steps[1]() == pytest.approx(steps[0](), rel=rounding(size=400))


@gpu
@pytest.mark.parametrize("kind", ["relu", "leaky"])
def test_a_fit_on_a_gpu_ends_where_one_on_the_cpu_does(kind: str) -> None:
    ends: list[float] = []
    for device in ("cpu", "cuda"):
        step = made(kind, SQUARED, device)
        x, y = step.x.cpu().numpy(), step.data.y.cpu().numpy()  # goes to the network's device
        found = fit(step.network, x, y, ridge=0.1, solver=(Adam(30), LBFGS(30)))
        assert next(found.network.parameters()).device.type == device
        ends.append(found.objective)
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


@gpu
def test_what_cannot_be_captured_goes_on_without_a_graph() -> None:
    x = torch.ones(3, device="cuda")
    captured = Captured[float](torch.device("cuda"))
    with pytest.warns(NumericalWarning, match="cannot be captured as a CUDA graph"):
        assert captured(lambda: float(x.sum()), None) == 3.0
    x.add_(1.0)
    assert captured(lambda: float(x.sum()), None) == 6.0  # without another warning, which would be an error here
