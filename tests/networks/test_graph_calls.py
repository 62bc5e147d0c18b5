"""A call in a graph becomes a module that computes the same with every argument of it, or none."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

import isthmus
from foreign_modules import samples
from isthmus.networks import graph_calls
from isthmus.networks.chain import UnreadableModule, as_module, read_chain
from isthmus.networks.graph_calls import module_of_call
from isthmus.networks.graph_stages import exported, overwrites

ROWS, SIGNALS, IMAGES = samples(9, 6), samples(9, 3, 7), samples(9, 3, 7, 7)
Call = tuple[str, Callable[..., Any], Tensor, dict[str, Any]]
POOLS = {"stride": 1, "padding": 1, "ceil_mode": True}
# a function by the name of its module, what enters, and values of its arguments that change what comes out
FUNCTIONS: list[Call] = [
    ("relu", F.relu, ROWS, {"inplace": True}),
    ("leaky_relu", F.leaky_relu, ROWS, {"negative_slope": 0.3, "inplace": True}),
    ("gelu", F.gelu, ROWS, {"approximate": "tanh"}),
    ("silu", F.silu, ROWS, {"inplace": True}),
    ("tanh", torch.tanh, ROWS, {}),
    ("sigmoid", torch.sigmoid, ROWS, {}),
    ("elu", F.elu, ROWS, {"alpha": 0.4}),
    ("selu", F.selu, ROWS, {"inplace": True}),
    ("softplus", F.softplus, ROWS, {"beta": 3, "threshold": 1}),
    ("mish", F.mish, ROWS, {"inplace": True}),
    ("relu6", F.relu6, 9 * ROWS, {"inplace": True}),
    ("hardtanh", F.hardtanh, ROWS, {"min_val": -0.3, "max_val": 0.4}),
    ("hardswish", F.hardswish, ROWS, {"inplace": True}),
    ("flatten", torch.flatten, IMAGES, {"start_dim": 1, "end_dim": 2}),
    ("max_pool2d", F.max_pool2d, IMAGES, {"dilation": 2, "return_indices": True} | POOLS),
    ("avg_pool2d", F.avg_pool2d, IMAGES, {"count_include_pad": False, "divisor_override": 2} | POOLS),
    ("adaptive_avg_pool2d", F.adaptive_avg_pool2d, IMAGES, {}),
    ("max_pool1d", F.max_pool1d, SIGNALS, {"dilation": 2, "return_indices": True} | POOLS),
    ("avg_pool1d", F.avg_pool1d, SIGNALS, {"count_include_pad": False} | POOLS),
    ("adaptive_avg_pool1d", F.adaptive_avg_pool1d, SIGNALS, {}),
]
OPTIONS = {name: options for name, _, _, options in FUNCTIONS}
CASES = [
    (name, call, x, dict(given))
    for name, call, x, options in FUNCTIONS
    for given in [{}, *({key: value} for key, value in options.items()), dict(options)]
]


class Calling(nn.Module):
    """One call of a function."""

    def __init__(self, call: Callable[..., Any], given: dict[str, Any]) -> None:
        super().__init__()
        self.call, self.given = call, given

    def forward(self, x: Tensor) -> Any:
        return self.call(x, **self.given)


def nodes(graph: fx.GraphModule) -> list[fx.Node]:
    return [n for n in graph.graph.nodes if n.op in {"call_function", "call_method"}]


def needed(name: str) -> dict[str, Any]:
    """The arguments that have no default."""
    if name.startswith("adaptive"):
        return {"output_size": 2}
    return {"kernel_size": 3} if "pool" in name else {}


@pytest.mark.parametrize(("name", "call", "x", "given"), CASES, ids=[f"{n} {[*g]}" for n, _, _, g in CASES])
def test_no_argument_is_lost(name: str, call: Callable[..., Any], x: Tensor, given: dict[str, Any]) -> None:
    module = Calling(call, needed(name) | given)
    wanted = module(x.clone())
    graphs = [fx.symbolic_trace(module)]
    if not given or given == OPTIONS[name]:  # an export takes its time
        graphs.append(exported(module, x))
    for graph in graphs:
        for node in nodes(graph)[:1]:
            found = module_of_call(node, lambda _: None)
            answer = None if found is None else found(x.clone())
            if answer is not None:
                torch.testing.assert_close(answer, wanted, msg=node.format_node())
    if not given and name != "flatten":  # as it is called most often
        assert all(module_of_call(n, lambda _: None) is not None for n in nodes(fx.symbolic_trace(module)))


def test_every_function_is_in_the_table() -> None:
    assert {name for name, *_ in FUNCTIONS} == set(vars(graph_calls)["_FUNCTIONS"])


@pytest.mark.parametrize("more", [{"out": 1}, {"dtype": torch.float64}, {"scale": 2.0}])
def test_an_argument_that_nobody_knows_is_not_dropped(more: dict[str, Any]) -> None:
    graph = fx.Graph()
    node = graph.call_function(torch.relu, (graph.placeholder("x"),), more)
    assert module_of_call(node, lambda _: None) is None


def relu(x: Tensor) -> Tensor:
    """Not torch's."""
    return x.clamp_min(0.25)


def test_a_function_of_ones_own_is_not_taken_for_one_of_torch() -> None:
    graph = fx.Graph()
    node = graph.call_function(relu, (graph.placeholder("x"),))
    assert module_of_call(node, lambda _: None) is None


class Pooled(nn.Module):
    def __init__(self, pool: Callable[..., Tensor], size: int, **given: Any) -> None:
        super().__init__()
        self.layer, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8 * size, 2)
        self.pool, self.given = pool, given

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.pool(torch.relu(self.layer(x)), 2, **self.given).flatten(1))


@pytest.mark.parametrize(
    "module",
    [Pooled(F.max_pool2d, 16, ceil_mode=True), Pooled(F.avg_pool2d, 9, divisor_override=1)],
    ids=["ceil_mode", "divisor_override"],
)
def test_networks_with_such_pools_are_chains(module: nn.Module) -> None:
    x = samples(60, 3, 7, 7)
    chain = read_chain(module, x)
    assert len(chain) == 5
    assert not any(stage.reason for stage in chain)
    with torch.no_grad():
        assert torch.allclose(as_module(chain)(x), module(x), atol=1e-6)
    assert isthmus.compress(module, x, tolerance=0.5, allow_slower=True).was_tried


def test_steps_that_do_not_run_are_a_reason_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = Pooled(F.max_pool2d, 9), samples(60, 3, 7, 7)
    monkeypatch.setitem(vars(graph_calls)["_FUNCTIONS"], "relu", (lambda: nn.Linear(1, 1), ()))
    with pytest.raises(UnreadableModule, match="do not run one after the other"):
        read_chain(module, x)
    assert isthmus.compress(module, x, tolerance=0.5, allow_slower=True).refused


def test_what_overwrites_nothing_is_not_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(graph_calls)["_FUNCTIONS"], "avg_pool2d", (nn.MaxPool2d, ("kernel_size",)))
    with pytest.raises(UnreadableModule, match="a step takes more than its input"):
        read_chain(Pooled(F.avg_pool2d, 9), samples(60, 3, 7, 7))


class Overwriting(nn.Module):
    """A function of torch that works in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.relu_(self.layer(x)))


def test_calls_that_overwrite_are_known() -> None:
    for kind, expected in ((Overwriting().eval(), True), (nn.Sequential(nn.ReLU()), False)):
        assert overwrites(fx.symbolic_trace(kind)) == expected
    assert overwrites(fx.symbolic_trace(nn.Sequential(nn.ReLU(inplace=True))))
    assert overwrites(exported(Overwriting().eval(), ROWS))
