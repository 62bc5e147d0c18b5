"""Laws of every kind of network: one that is registered is checked by that, as is the example that comes from outside.

Each law is a function that raises, and is seen to raise where it is broken.
"""

import json
import math
import re
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import isthmus
from isthmus.discovery.files.networks import architecture, network_from, tensors_of
from isthmus.discovery.kinds import kind_of
from isthmus.discovery.kinds.streams import PlainStreams
from isthmus.discovery.work.unit import Progress
from isthmus.errors import PlanError
from isthmus.networks import Waist, walk
from isthmus.networks.kinds import KindOfNetwork, kind_named, kinds, register
from isthmus.networks.network import Network
from isthmus.networks.residual_stream import ResidualStream
from isthmus.sweeps import Plan
from isthmus.sweeps.execution import compute
from isthmus.training import FitEvent, FitResult, Outcome
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.sharded.row_step import ShardedStep, step_within
from isthmus.training.steps.live_bytes import LiveBytes
from isthmus.training.steps.memory_step import MemoryStep
from isthmus.training.steps.step import AutogradStep, Step, maker_of, step_of
from sweep_plans import TASK, TRAINING
from theorem_checks import assert_close, normal

ROOT = Path(__file__).parents[2]


def of_the_recipe() -> str:
    """The kind that the recipe of the map points to: loading its file is all that there is to do."""
    row = re.search(r"\| a kind of network \| one file, as `([^`]+)`", (ROOT / "docs" / "map.md").read_text())
    assert row is not None, "docs/map.md has no recipe for a kind of network"
    path = ROOT / row[1]
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path.stem] = module = module_from_spec(spec)
    before = {kind.name for kind in kinds()}
    spec.loader.exec_module(module)
    (name,) = {kind.name for kind in kinds()} - before
    return name


ADDED = of_the_recipe()
CASES = {f"{kind.name} {number}": (kind, dict(given)) for kind in kinds() for number, given in enumerate(kind.examples)}
D_IN, D_OUT = 4, 3
X, Y = normal(1, 40, D_IN), normal(2, 40, D_OUT)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[KindOfNetwork, dict[str, object]]:
    return CASES[request.param]


@pytest.fixture
def network(case: tuple[KindOfNetwork, dict[str, object]]) -> Network:
    return made(case)


def made(case: tuple[KindOfNetwork, dict[str, object]], seed: int = 3) -> Network:
    kind, given = case
    network = kind.made(D_IN, D_OUT, dtype=torch.float64, **given | {"seed": seed})
    with torch.no_grad():  # zeros hide what is wrong about biases
        for number, parameter in enumerate(network.parameters()):
            if parameter.requires_grad:
                parameter.add_(normal(number, *parameter.shape), alpha=0.05)
    return network


def step(network: Network) -> MemoryStep[Any]:
    with torch.no_grad():
        return step_of(network, X, DataLoss(SQUARED, Y), 0.1)


def test_the_kind_of_the_recipe_is_among_those_that_are_checked_and_so_are_all_of_discovery() -> None:
    assert f"{ADDED} 0" in CASES
    assert [kind_of(name) for name in (None, "fully-connected", "fully_connected", "leaky", "resnet", ADDED)] == [
        "connected", "connected", "connected", "leaky", "resnet", ADDED,
    ]  # fmt: skip
    with pytest.raises(ValueError, match=f"needs one of 'connected', 'leaky', 'resnet', '{ADDED}'"):
        kind_of("transformer")
    with pytest.raises(ValueError, match="needs one of 'fully_connected', 'leaky', 'resnet'"):
        kind_named("transformer")
    taken = KindOfNetwork("leaky", kind_named(ADDED).network, {}, ())
    with pytest.raises(ValueError, match="another kind of network is called 'leaky'"):
        register(taken)


def obeys_walk(network: Network) -> None:
    states, out = walk(network, X), network(X)
    assert out.shape == (len(X), network.d_out)
    assert torch.equal(states[-1].activation, out)
    assert [state.position for state in states] == list(range(1, len(states) + 1))
    assert len({state.name for state in states}) == len(states)
    assert all(state.preactivation.shape == (len(X), len(state.weight)) for state in states)
    assert states[0].weight.shape[1] == network.d_in
    if network.rows_stand_alone:
        assert_close(network(X[:7]).detach(), out[:7].detach(), relative=1e-13)


def test_forward_is_where_the_walk_ends(network: Network) -> None:
    obeys_walk(network)
    inner = network.forward
    network.forward = lambda x: inner(x) + x.mean()
    with pytest.raises(AssertionError):
        obeys_walk(network)


def by_parameter(step: Step, vector: Tensor) -> dict[str, Tensor]:
    """The parts of a vector laid out as theta, whose views the trained parameters are, in whatever order."""
    found: dict[str, Tensor] = {}
    for name, parameter in step.network.named_parameters():
        if parameter.requires_grad:
            start = (parameter.data_ptr() - step.theta.data_ptr()) // parameter.element_size()
            found[name] = vector[start : start + parameter.numel()].view(parameter.shape)
    return found


def obeys_penalty(network: Network, step: Step) -> None:
    value = network.penalty()
    for name, own in by_parameter(step, step.curvature * step.theta).items():
        (pull,) = torch.autograd.grad(
            value, network.get_parameter(name), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        assert_close(own, pull, relative=1e-13)
    assert_close(value.detach(), (step.curvature * step.theta.square()).sum() / 2, relative=1e-13)


def test_the_penalty_is_the_quadratic_form_that_solvers_take_it_for(network: Network) -> None:
    own = step(network)
    obeys_penalty(network, own)
    own.curvature = own.curvature * 1.001
    with pytest.raises(AssertionError):
        obeys_penalty(network, own)


def obeys_autograd(own: MemoryStep[Any], reference: MemoryStep[Any]) -> None:
    assert own() == pytest.approx(reference(), rel=1e-12)
    expected = by_parameter(reference, reference.gradient)
    for name, gradient in by_parameter(own, own.gradient).items():
        assert_close(gradient, expected[name], relative=1e-11)
    assert_close(own.outputs(), reference.outputs(), relative=1e-12)


def test_the_step_is_that_of_autograd(case: tuple[KindOfNetwork, dict[str, object]]) -> None:
    network, twin = made(case), made(case)
    with torch.no_grad():
        own, reference = step(network), AutogradStep(twin, X, DataLoss(SQUARED, Y), 0.1)
        obeys_autograd(own, reference)
        reference.ridge *= 1.001
        with pytest.raises(AssertionError):
            obeys_autograd(own, reference)


def obeys_runs(whole: Step, within: Step) -> None:
    assert within() == pytest.approx(whole(), rel=1e-12)
    assert_close(within.gradient, whole.gradient, relative=1e-10)
    assert within.in_float64() == pytest.approx(whole.in_float64(), rel=1e-12)


def test_within_little_memory_rows_are_gone_over_in_runs(case: tuple[KindOfNetwork, dict[str, object]]) -> None:
    x, y = normal(5, 900, D_IN), normal(6, 900, D_OUT)
    with torch.no_grad():
        whole = step_within(made(case), x, DataLoss(SQUARED, y), 0.1, memory=None)
        within = step_within(made(case), x, DataLoss(SQUARED, y), 0.1, memory=1)
        assert within.at_once < len(x) == whole.at_once
        assert isinstance(within, ShardedStep)
        obeys_runs(whole, within)
        within.ridge *= 1.001
        with pytest.raises(AssertionError):
            obeys_runs(whole, within)


def comes_back(network: Network, tensors: dict[str, Tensor]) -> None:
    text = json.dumps(architecture(network))
    back = network_from(json.loads(text), "n", tensors)
    assert type(back) is type(network)
    assert json.dumps(architecture(back)) == text
    state = back.state_dict()
    assert state.keys() == network.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in network.state_dict().items())
    assert torch.equal(back(X), network(X))


def test_a_network_is_saved_and_read_bit_for_bit(network: Network) -> None:
    tensors = tensors_of({"n": network})
    comes_back(network, tensors)
    changed = next(name for name, tensor in tensors.items() if tensor.ndim > 1)
    with pytest.raises(AssertionError):
        comes_back(network, tensors | {changed: tensors[changed] * (1 + 1e-15)})
    described = architecture(network)
    for key, value in described.items():
        if isinstance(value, list) and value and key != "linear":
            with pytest.raises((ValueError, RuntimeError)):
                network_from(described | {key: [v + 1 for v in value]}, "n", tensors)


def trained(network: Network, checkpoint: Path | None = None, stop_at: int | None = None) -> FitResult:
    seen: list[FitEvent] = []

    def stop(event: FitEvent) -> bool:
        seen.append(event)
        return len(seen) == stop_at

    limits = isthmus.Limits(evaluations=40)
    return isthmus.fit(network, X, Y, ridge=0.01, limits=limits, checkpoint=checkpoint, callback=stop)


def goes_on(network: Network, result: FitResult, whole: FitResult) -> None:
    assert result.objective == whole.objective
    expected = whole.network.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in network.state_dict().items())


def test_a_fit_lowers_the_objective_and_goes_on_bit_for_bit(
    case: tuple[KindOfNetwork, dict[str, object]], tmp_path: Path
) -> None:
    network = made(case)
    before = step(network)()
    whole = trained(network)
    assert whole.objective < before
    stopped = trained(made(case), tmp_path / "fit.pt", stop_at=3)
    assert stopped.outcome is Outcome.INTERRUPTED
    assert stopped.objective != whole.objective
    resumed = made(case)
    result = trained(resumed, tmp_path / "fit.pt")
    goes_on(resumed, result, whole)
    other = made(case, seed=4)
    with pytest.raises(AssertionError):
        goes_on(other, trained(other), whole)


def obeys_rows(network: Network, num_layers: int) -> None:
    found = isthmus.diagnose(network, X, Y, ridge=0.1)
    assert len(found.layers.layer) == num_layers
    assert bool(torch.isfinite(torch.from_numpy(found.layers["activation_singular_values"].values[:, 0])).all())
    assert found.layers.attrs["objective"] == pytest.approx(step(network)(), rel=1e-12)


def check_discovery(kind: str, folder: Path) -> None:
    """A rank with two halves that meet in it and predict; the same bits from the folder, and after a stop."""
    task = isthmus.tasks.teacher(1, d_in=6, d_out=4, latent_dim=2, num_samples=100, seed=1)
    arguments: dict[str, Any] = {"network": kind, "starts": 1, "ridge": [3e-3], "workers": 1, "depth": 8}
    limits = isthmus.Limits(evaluations=100)
    found = isthmus.discover(task.x, task.y, **arguments, limits=limits, out=folder / "whole", effort="quick")
    assert found.transform(task.x).shape == (100, found.rank)
    assert float(found.scree["heldout_error"].min()) < 0.5
    assert task.y is not None
    missed = ((found.predict(task.x) - task.y) ** 2).sum() / ((task.y - task.y.mean(0)) ** 2).sum()
    assert missed < 0.5, f"its halves miss {missed:.2f} of the variance"
    assert isinstance(found.network, kind_named("fully_connected" if kind == "connected" else kind).network)
    loaded = isthmus.load(folder / "whole")
    assert torch.equal(torch.from_numpy(loaded.predict(task.x)), torch.from_numpy(found.predict(task.x)))

    heard: list[Progress] = []

    def stop(progress: Progress) -> None:
        heard.append(progress)
        if len(heard) == 2:  # a tenth of a second after the first
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        isthmus.discover(
            task.x, task.y, **arguments, limits=limits, out=folder / "stopped", progress=stop, effort="quick"
        )
    again = isthmus.discover(task.x, task.y, **arguments, limits=limits, out=folder / "stopped", effort="quick")
    assert torch.equal(torch.from_numpy(again.predict(task.x)), torch.from_numpy(found.predict(task.x)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["connected", *(kind.name for kind in kinds() if kind.name != "fully_connected")])
def test_a_discovery_trains_it_and_goes_on_bit_for_bit(kind: str, tmp_path: Path) -> None:
    check_discovery(kind, tmp_path)


@pytest.mark.slow
def test_the_law_of_discovery_sees_halves_of_another_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainStreams, "written", lambda self, _: self.new(seed=5).as_fully_connected())
    with pytest.raises(AssertionError, match="its halves miss"):
        check_discovery(ADDED, tmp_path)


def test_a_diagnosis_has_a_row_for_every_weight_layer(network: Network) -> None:
    obeys_rows(network, len(walk(network, X)))
    with pytest.raises(AssertionError):
        obeys_rows(network, len(walk(network, X)) + 1)


def test_a_plan_describes_it_and_a_run_of_it_is_recorded(
    case: tuple[KindOfNetwork, dict[str, object]], tmp_path: Path
) -> None:
    kind, given = case
    (run,) = Plan(TASK, {"kind": kind.name, **given}, TRAINING, grid={"ridge": [0.01]}).runs()
    assert set(run.settings["network"]) == {"kind", *kind.arguments}
    assert run.id != Plan(TASK, {"kind": kind.name, **given, "seed": 5}, TRAINING, grid={"ridge": [0.01]}).runs()[0].id
    found = compute(run.settings, run.source, tmp_path / "fit.pt", lambda _event: False)
    assert found is not None
    assert 0 < float(str(found.numbers["objective"])) < math.inf
    arguments: dict[str, Any] = {key: value for key, value in run.settings["network"].items() if key != "kind"}
    assert set(found.tensors) == set(kind.made(5, 2, **arguments).state_dict())
    for wrong in ({"breadth": 3}, {"width": 0}, {"depth": "deep"}):
        with pytest.raises(PlanError):
            Plan(TASK, {"kind": kind.name, **given, **wrong}, TRAINING, grid={"ridge": [0.01]}).runs()


def held(case: tuple[KindOfNetwork, dict[str, object]], rows: int) -> int:
    x, y = normal(5, rows, D_IN), normal(6, rows, D_OUT)
    network = made(case)
    with torch.no_grad(), LiveBytes() as live:
        step_of(network, x, DataLoss(SQUARED, y), 0.1)()
    return live.most


def obeys_memory(measured: float, announced: float) -> None:
    assert measured <= 1.05 * announced <= 6 * measured


def test_a_row_takes_the_bytes_that_are_announced(case: tuple[KindOfNetwork, dict[str, object]]) -> None:
    network = made(case)
    announced = maker_of(network).bytes_of_row(network, X)
    measured = (held(case, 4000) - held(case, 2000)) / 2000
    obeys_memory(measured, announced)
    for wrong in (24, 10 * announced):
        with pytest.raises(AssertionError):
            obeys_memory(measured, wrong)


def obeys_stream(network: ResidualStream, rewritten: Callable[[Tensor], Tensor], layer: int) -> None:
    assert_close(rewritten(X).detach(), network(X).detach(), relative=1e-11)
    assert network.stream(X, layer).shape == (len(X), network.width)
    s = torch.linalg.svdvals(network.stream(X, layer).detach() - network.stream(X, layer).detach().mean(0))
    assert int((s > 1e-10 * s[0]).sum()) == 2


def test_a_stream_is_narrowed_and_rewritten(network: Network) -> None:
    if not isinstance(network, ResidualStream):
        assert not hasattr(network, "narrow")
        return
    layer, width = network.depth // 2, network.width
    assert network.embedding.shape == (width, D_IN)
    assert network.unembedding.shape == (D_OUT, width)
    network.narrow(Waist(layer, torch.linalg.qr(normal(8, width, 2)).Q, normal(9, width)))
    rewritten = network.as_fully_connected()
    obeys_stream(network, rewritten, layer)
    behind: Any = walk(rewritten, X)[layer].preactivation[:, :width]
    assert_close(behind.detach(), network.stream(X, layer).detach(), relative=1e-11)
    network.narrow(None)
    with pytest.raises(AssertionError):
        obeys_stream(network, rewritten, layer)
