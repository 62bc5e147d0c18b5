"""A traced graph of one input and one output as steps: cut wherever all that comes later depends on one tensor alone.

What lies between two such cuts and is more than one call is one step: x + branch(x) with the branch as steps of its
own, anything else (parallel branches, a layer on the shortcut) opaque.
"""

import re
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from copy import copy
from operator import attrgetter
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree

from isthmus.networks.export_noise import without_export_noise
from isthmus.networks.fully_connected import FullyConnected
from isthmus.networks.graph_calls import function_name, is_batch_size, is_in_place, module_of_call
from isthmus.networks.stage_kinds import NOTHING, ResidualSum, Stage, barrier_reason

_CALLS = {"call_module", "call_function", "call_method"}
_SUMS = {"add", "iadd"}
_ONE_AT_A_TIME = threading.RLock()  # one that is traced tries its parts first


class PatientTracer(fx.Tracer):
    """Traces like `fx.Tracer`, and takes a submodule whose forward cannot be traced as one call.

    While torch traces, the calls of all modules of the process come here: those of other threads go their usual way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, bool] = {}
        self.thread = threading.get_ident()

    def trace(self, root: nn.Module | Callable[..., Any], concrete_args: Any = None) -> fx.Graph:
        """The graph; torch puts back what it found, and of two at once the later one would find the first's."""
        with _ONE_AT_A_TIME:
            return super().trace(root, concrete_args)

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What a call inside a module becomes."""
        if self.thread != threading.get_ident():
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Any) -> Any:
        """What a parameter that is asked for becomes."""
        if self.thread != threading.get_ident():
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether the module becomes one call: a layer of torch, one of ours, or one that cannot be traced."""
        if super().is_leaf_module(m, module_qualified_name) or isinstance(m, FullyConnected):
            return True
        if id(m) not in self.known:
            self.known[id(m)] = not _is_traceable(m)
        return self.known[id(m)]


def traced(module: nn.Module) -> fx.GraphModule:
    """The module as a graph; whatever the tracer raises passes through, and the module keeps no proxy."""
    with _without_proxies(module):
        return fx.GraphModule(module, PatientTracer().trace(module))


@contextmanager
def _without_proxies(module: nn.Module) -> Generator[None]:
    """What parts of a module keep of their calls while they are traced is no number, and put back to what it was."""
    kept = [(vars(part), {name: _copied(value) for name, value in vars(part).items()}) for part in module.modules()]
    try:
        yield
    finally:
        for attributes, before in kept:
            for name in [name for name, value in attributes.items() if _holds_proxies(value)]:
                del attributes[name]
                attributes.update({name: before[name]} if name in before else {})


def _copied(value: object) -> object:
    return copy(value) if type(value) in {dict, list} else value


def _holds_proxies(value: object) -> bool:
    return any(isinstance(leaf, fx.Proxy) for leaf in _pytree.tree_leaves(value))


def graph_stages(graph_module: fx.GraphModule) -> list[Stage]:
    """The steps of a graph with one tensor in and one tensor out; their weights are those of the graph, tied as there.

    Raises:
        ValueError: more than one input or output; says how many.
    """
    graph = graph_module.graph
    inputs = [node for node in graph.nodes if node.op == "placeholder" and node.users]
    [output] = [node for node in graph.nodes if node.op == "output"]
    result = output.args[0]
    if isinstance(result, list | tuple) and len(result) == 1:
        result = result[0]
    if len(inputs) != 1 or not isinstance(result, fx.Node):
        count = len(result) if isinstance(result, list | tuple | dict) else 1
        raise ValueError(f"it takes {len(inputs)} inputs and gives {count} outputs; one of each is needed")
    return [_stage(graph_module, source, nodes) for source, nodes in _segments(graph.nodes, inputs[0], result)]


def _segments(nodes: Iterable[fx.Node], start: fx.Node, end: fx.Node) -> list[tuple[fx.Node, list[fx.Node]]]:
    """(input, nodes) between consecutive cuts; the last node of each is its output."""
    ancestors = {end}
    for node in reversed(list(nodes)):
        if node in ancestors:
            ancestors.update(node.all_input_nodes)
    data: set[fx.Node] = {start}
    order = [start]
    for node in nodes:
        if is_batch_size(node):
            continue
        if node.op in _CALLS and node in ancestors and any(i in data for i in node.all_input_nodes):
            data.add(node)
            order.append(node)
    place = {node: i for i, node in enumerate(order)}
    last_use = [max((place[u] for u in node.users if u in place), default=len(order)) for node in order]
    found: list[tuple[fx.Node, list[fx.Node]]] = []
    source, segment = start, list[fx.Node]()
    for i, node in enumerate(order[1:], 1):
        segment.append(node)
        if node is end or all(last <= i for last in last_use[:i]):
            found.append((source, segment))
            source, segment = node, []
    return found


def _stage(root: fx.GraphModule, source: fx.Node, nodes: list[fx.Node]) -> Stage:
    node = nodes[-1]
    if len(nodes) == 1 and node.op == "call_module" and node.args == (source,) and not node.kwargs:
        module = root.get_submodule(str(node.target))
        return Stage(str(node.target), module, barrier_reason(module))
    if len(nodes) == 1 and node.op != "call_module" and node.args and node.args[0] is source:
        module = module_of_call(node, lambda name: attrgetter(name)(root))
        if module is not None:
            return Stage(_owner(node), module, barrier_reason(module))
    found = _residual_sum(root, source, nodes)
    return Stage(_owner(node), found or _opaque(root, source, nodes), _reason(root, nodes))


def _residual_sum(root: fx.GraphModule, source: fx.Node, nodes: list[fx.Node]) -> ResidualSum | None:
    """The nodes as source + branch(source); None where they are something else, as with a layer on the shortcut."""
    *inner, last = nodes
    terms = [term for term in last.args if _before_nothing(root, term) is not source]
    if function_name(last) not in _SUMS or len(last.args) != 2 or last.kwargs or len(terms) != 1:
        return None
    end = terms[0]
    if not isinstance(end, fx.Node) or end not in inner:
        return None
    return ResidualSum([_stage(root, *segment) for segment in _segments(inner, source, end)])


def _before_nothing(root: fx.GraphModule, term: object) -> object:
    """What enters the modules without effect, as nn.Identity on a shortcut, that end in this node."""
    while isinstance(term, fx.Node) and term.op == "call_module":
        if not isinstance(root.get_submodule(str(term.target)), NOTHING):
            break
        term = term.args[0]
    return term


def _opaque(root: fx.GraphModule, source: fx.Node, nodes: list[fx.Node]) -> fx.GraphModule:
    """The nodes as a module of their own."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {source: graph.placeholder("x")}

    def copied(node: fx.Node) -> fx.Node:
        if node not in copies:
            copies[node] = graph.node_copy(node, copied)
        return copies[node]

    graph.output(copied(nodes[-1]))
    return fx.GraphModule(root, graph)


def _owner(node: fx.Node) -> str:
    """Name of the innermost submodule in whose forward a node was called, or of the weights that it takes."""
    if node.op == "call_module":
        return str(node.target)
    taken = [
        re.sub(r"\.(weight|bias|running_\w+)$", "", str(i.target)) for i in node.all_input_nodes if i.op == "get_attr"
    ]
    stack = [str(entry[0]) for entry in node.meta.get("nn_module_stack", {}).values()]
    return (taken[:1] or stack[-1:] or [""])[0] or function_name(node)


def _reason(root: fx.GraphModule, nodes: list[fx.Node]) -> str:
    kinds = [type(root.get_submodule(str(n.target))).__name__ for n in nodes if n.op == "call_module"]
    names = [*kinds, *(function_name(n) for n in nodes if n.op != "call_module")]
    if any("attention" in name.lower() for name in names):
        return "attention mixes the samples of a sequence"
    if len(nodes) == 1 and "norm" in names[0].lower():
        return f"{names[0]}: normalisation couples the features between the layers"
    if len(nodes) > 1:
        return "a skip connection or parallel branches"
    return f"{names[0]}: not a layer whose features can be told apart"


def overwrites(graph_module: fx.GraphModule) -> bool:
    """Whether some call of a graph writes into what it is given, as x.relu_() and nn.ReLU(inplace=True) do."""
    parts = (graph_module.get_submodule(str(n.target)) for n in graph_module.graph.nodes if n.op == "call_module")
    calls = [node for node in graph_module.graph.nodes if node.op in {"call_function", "call_method"}]
    return any(getattr(part, "inplace", False) for part in parts) or any(
        node.kwargs.get("inplace") or is_in_place(node) for node in calls
    )


def _is_traceable(module: nn.Module) -> bool:
    try:
        with _without_proxies(module):
            PatientTracer().trace(module)
    except Exception:  # the forward of a stranger raises what it likes
        return False
    return True


def exported(module: nn.Module, x: torch.Tensor) -> fx.GraphModule:
    """The module as a graph of aten calls, for what cannot be traced symbolically."""
    rows = torch.export.Dim("rows", min=1)
    with without_export_noise():
        program = torch.export.export(module, (x,), dynamic_shapes=({0: rows},))
        return program.module(check_guards=False)  # pyright: ignore[reportReturnType]
