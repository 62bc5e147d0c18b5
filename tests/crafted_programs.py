"""Some hundred exported programs, each of which would make a file if any text in it were run, evaluated or unpickled.

A program has many texts: each attack puts a payload into one of them. Files of other kinds: `crafted_files`.
"""

import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from crafted_files import Members, Payload, code
from isthmus.networks.export_noise import without_export_noise

Change = Callable[[Members], None]
GRAPH = "models/model.json"
WEIGHTS, CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"


class Everything(nn.Module):
    """A module whose program has every kind of text: symbols, arithmetic, guards, a region, words, a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 3, 3, stride=2, padding=1)
        self.layer = nn.Linear(8, 8)
        self.register_buffer("offset", torch.arange(8.0), persistent=False)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, dict[str, Any]]:
        z = self.convolution(x)
        count = z.shape[0] * z.shape[2] // 2
        q = self.layer(y) + self.offset
        q = q.view(y.shape[0], 2, -1).transpose(1, 2).reshape(y.shape[0], -1)
        with torch.no_grad():
            q = nn.functional.gelu(q * 2, approximate="tanh")
        w = torch.zeros(count, y.shape[0]) + max(count, y.shape[0])
        return z.flatten(1), w, {"a": q[: y.shape[0] // 2], "b": [q.std(), float("inf") * q]}


def inputs() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(4, 1, 8, 8, generator=generator), torch.randn(6, 8, generator=generator)


def program(path: Path) -> Path:
    """The program of `Everything`, as it should be."""
    auto = torch.export.Dim.AUTO
    torch.manual_seed(0)
    with without_export_noise(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = {0: torch.export.Dim("rows", min=2), 2: auto}
        exported = torch.export.export(Everything().eval(), inputs(), dynamic_shapes=(rows, {0: auto}))
        torch.export.save(exported, path)
    return path


def attacks(marker: Path) -> dict[str, Change]:
    """Changes of the program by name; each holds a payload that makes the marker where it is run."""
    return dict([*_expressions(marker), *_targets(marker), *_names(marker), *_words(marker), *_pickles(marker)])


def _edit(member: str, change: Callable[[Any], None]) -> Change:
    def edit(members: Members) -> None:
        value = json.loads(members[member])
        change(value)
        members[member] = json.dumps(value).encode()

    return edit


def _expressions(marker: Path) -> Iterator[tuple[str, Change]]:
    """Texts that sympy or eval would take, in each place where an expression may stand."""
    run, quoted = code(marker), repr(code(marker))
    symbol = "Symbol('s77', positive=True, integer=True)"
    texts = {
        "bare": run,
        "Max": f"Max({quoted}, 1)",
        "Min": f"Min({quoted}, 1)",
        "Mod": f"Mod({quoted}, 3)",
        "FloorDiv": f"FloorDiv({quoted}, 2)",
        "Identity": f"Identity({quoted})",
        "Add": f"Add(Integer(1), {quoted})",
        "Integer": f"Integer({quoted})",
        "Pow": f"Pow({quoted}, Integer(2))",
        "S": f"S({quoted})",
        "sympify": f"sympify({quoted})",
        "eval": f"eval({quoted})",
        "newline in a symbol": "Symbol('s77\\\n', " + f"{run})",
        "symbol that ends": f"Symbol('s77', {run})",
        "assumption": f"Symbol('s77', positive={run})",
        "attribute": f"{symbol}.__class__({quoted})",
        "subscript": f"({symbol},)[{run}]",
        "lambda": f"(lambda: {run})()",
        "list": f"[{run} for _ in (1,)][0]",
        "f-string": f'f"{{{run}}}"',
        "walrus": f"(x := {run})",
        "ternary": f"1 if {run} else 2",
        "getattr": f"getattr(__import__('os'), 'system')('touch {marker}')",
        "after a comment": f"Integer(1) #\n+ {run}",
        "not ascii": f"Ｍax({quoted}, 1)",
        "keyword": f"Max(1, evaluate={run})",
        "comparison": f"Eq({quoted}, 1)",
        "precision": f"Float('1.0', precision={run})",
    }
    places = {
        "a size": lambda v: v["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0]["as_expr"],
        "a shape": lambda v: v["graph_module"]["graph"]["sym_int_values"]["sym_size_int_3"]["as_expr"],
    }
    for name, text in texts.items():
        for place, entry in places.items():
            yield f"{name} in {place}", _edit(GRAPH, lambda v, e=entry, t=text: e(v).update(expr_str=t))
        for key in ("sym_float_values", "sym_bool_values"):
            value = {"sym_size_int_3": {"as_expr": {"expr_str": text, "hint": None}}}
            yield f"{name} in {key}", _edit(GRAPH, lambda v, k=key, x=value: v["graph_module"]["graph"][k].update(x))
        yield f"{name} in a guard", _edit(GRAPH, lambda v, t=text: v["guards_code"].append(f"{t} == 1"))

    def strides(value: Any) -> None:
        value["graph_module"]["graph"]["tensor_values"]["x"]["strides"][0] = {
            "as_expr": {"expr_str": f"Max({quoted}, 1)", "hint": None}
        }

    yield "Max in a stride", _edit(GRAPH, strides)
    sizes = [{"as_expr": {"expr_str": f"Max({quoted}, 1)", "hint": None}}]
    for member in (WEIGHTS, CONSTANTS):
        yield (
            f"Max in {member}",
            _edit(member, lambda v: next(iter(v["config"].values()))["tensor_meta"].update(sizes=sizes)),
        )


def _targets(marker: Path) -> Iterator[tuple[str, Change]]:
    """What a node may call, with the words that would do harm in its arguments."""
    word, command = {"as_string": str(marker)}, {"as_string": f"touch {marker}"}
    tensor = {"as_tensor": {"name": "y"}}
    calls: dict[str, list[Any]] = {
        "torch.ops.aten.save.default": [("self", tensor), ("filename", word)],
        "torch.ops.aten.from_file.default": [
            ("filename", word),
            ("shared", {"as_bool": True}),
            ("size", {"as_int": 1}),
        ],
        "torch.ops.aten.from_file.out": [("filename", word), ("shared", {"as_bool": True}), ("size", {"as_int": 1})],
        "torch.save": [("obj", tensor), ("f", word)],
        "torch.load": [("f", word)],
        "torch.hub.load": [("repo", word), ("model", word)],
        "torch.os.system": [("command", command)],
        "torch.sys.modules": [("command", command)],
        "torch.serialization.os.system": [("command", command)],
        "torch.utils.data.datapipes.utils.common.os.system": [("command", command)],
        "torch.nn.Module.__init__.__globals__": [("command", command)],
        "torch.ops.aten.add.__class__": [("command", command)],
        "torch.ops.aten.__class__": [("command", command)],
        "torch.ops.aten.add.overloads": [],
        "torch.ops.aten.set_.source_Tensor": [("self", tensor), ("source", tensor)],
        "torch.ops.aten.resize_.default": [("self", tensor), ("size", {"as_ints": [2**40]})],
        "torch.ops.aten.add.out": [("self", tensor), ("other", tensor), ("out", tensor)],
        "torch.ops.prims.convert_element_type.default": [("a", tensor)],
        "torch.ops.higher_order.cond": [("pred", {"as_bool": True})],
        "torch.ops.load_library": [("path", word)],
        "torch.ops.__class__.load_library": [("path", word)],
        "torch.classes.load_library": [("path", word)],
        "_operator.call": [("obj", {"as_operator": "torch.os.system"}), ("command", command)],
        "_operator.methodcaller": [("name", command)],
        "_operator.attrgetter": [("name", command)],
        "_operator.concat": [("a", command), ("b", command)],
        "_operator.setitem": [("a", tensor), ("b", {"as_int": 0}), ("c", {"as_int": 0})],
        "_operator.iadd": [("a", tensor), ("b", tensor)],
        "math.__loader__.load_module": [("name", command)],
        "builtins.exec": [("source", {"as_string": code(marker)})],
        "os.system": [("command", command)],
        "#custom:os.system": [("command", command)],
        "torch.sym_max.__globals__": [("command", command)],
        "torch.export.load": [("f", word)],
        "torch.jit.load": [("f", word)],
        "torch.compile": [("model", tensor)],
        "torch.ops.isthmus.no_such_operator.default": [("self", tensor)],
        f"torch.ops.aten.relu.default;      {code(marker)}": [("self", tensor)],
        "": [],
    }
    for target, arguments in calls.items():

        def change(value: Any, target: str = target, arguments: list[Any] = arguments) -> None:
            entry = {"inputs": [{"name": n, "arg": a, "kind": 1} for n, a in arguments], "outputs": []}
            entry |= {"target": target, "metadata": {}, "outputs": [{"as_tensor": {"name": "crafted"}}]}
            value["graph_module"]["graph"]["nodes"].insert(0, entry)

        yield f"calls {target[:34]!r}", _edit(GRAPH, change)
    for kind, content in {
        "as_operator": "torch.os.system",
        "as_custom_obj": {"name": "x", "class_fqn": "os.system"},
        "as_string": code(marker),
        "as_strings": [code(marker)],
        "as_int": code(marker),
        "as_float": code(marker),
        "as_ints": [code(marker)],
        "as_device": {"type": code(marker), "index": 0},
        "as_scalar_type": code(marker),
        "as_memory_format": code(marker),
        "as_string_to_argument": {code(marker): {"as_operator": "torch.os.system"}},
        code(marker): 1,
    }.items():
        argument = {"name": "approximate", "arg": {kind: content}, "kind": 2}

        def put(value: Any, argument: Any = argument) -> None:
            value["graph_module"]["graph"]["nodes"][0]["inputs"].append(argument)

        yield f"an argument {kind[:24]!r}", _edit(GRAPH, put)


def _names(marker: Path) -> Iterator[tuple[str, Change]]:
    """Names that would be code where a module is written as a text of Python, which torch.fx does."""
    payloads = {
        "call": f"x); {code(marker)} #",
        "line": f"x\n    {code(marker)}\n#",
        "quote": f'x"); {code(marker)} #',
        "default": f"x={code(marker)}",
        "dunder": "__class__.__init__.__globals__",
        "keyword": "lambda",
        "brackets": f"x[{code(marker)}]",
        "bare": code(marker),
    }
    for name, text in payloads.items():
        # in each place alone, and everywhere at once, so that the names still fit each other
        for place, old in {
            "input": "x",
            "parameter": "layer.weight",
            "value": "conv2d",
            "argument": "p_layer_weight",
        }.items():

            def everywhere(members: Members, text: str = text, old: str = old) -> None:
                for member in (GRAPH, WEIGHTS, CONSTANTS):
                    members[member] = members[member].replace(json.dumps(old).encode(), json.dumps(text).encode())

            yield f"{name} as the name of the {place}", everywhere

        def spoken(value: Any, text: str = text) -> None:
            value["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] = [text, "y"]

        yield f"{name} as the name of an argument", _edit(GRAPH, spoken)

        def keyed(value: Any, text: str = text) -> None:
            signature = value["graph_module"]["module_call_graph"][0]["signature"]
            spec = json.loads(signature["in_spec"])
            inner = spec[1]["children_spec"]
            inner[1] |= {"context": json.dumps([text]), "children_spec": [inner[0]["children_spec"].pop()]}
            signature["in_spec"] = json.dumps(spec)

        yield f"{name} as a keyword", _edit(GRAPH, keyed)

        def result(value: Any, text: str = text) -> None:
            signature = value["graph_module"]["module_call_graph"][0]["signature"]
            signature["out_spec"] = signature["out_spec"].replace('\\"a\\"', json.dumps(json.dumps(text))[1:-1])

        yield f"{name} as a key of the outputs", _edit(GRAPH, result)


def _words(marker: Path) -> Iterator[tuple[str, Change]]:
    """Texts beside the graph that torch looks up, imports or parses."""
    run = code(marker)
    for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node"):

        def told(value: Any, key: str = key) -> None:
            value["graph_module"]["graph"]["nodes"][0]["metadata"][key] = f"x,{run},torch.os.system"

        yield f"metadata {key}", _edit(GRAPH, told)
    for kind in ("collections.defaultdict", "os.system", "builtins.eval", run):
        for spec in ("in_spec", "out_spec"):

            def structure(value: Any, spec: str = spec, kind: str = kind) -> None:
                signature = value["graph_module"]["module_call_graph"][0]["signature"]
                signature[spec] = signature[spec].replace('"builtins.dict"', json.dumps(kind))

            yield f"a structure {kind[:24]!r} in {spec}", _edit(GRAPH, structure)
    yield "verifiers", _edit(GRAPH, lambda v: v.update(verifiers=["os", run]))
    yield "version", _edit(GRAPH, lambda v: v["schema_version"].update(major=run))
    yield "version of operators", _edit(GRAPH, lambda v: v["opset_version"].update({run: 1}))
    yield "torch_version", _edit(GRAPH, lambda v: v.update(torch_version=run))
    yield "range", _edit(GRAPH, lambda v: v["range_constraints"].update({run: {"min_val": 1, "max_val": 2}}))
    yield (
        "named tuple",
        _edit(
            GRAPH, lambda v: v["graph_module"].update(treespec_namedtuple_fields={"os.system": {"field_names": [run]}})
        ),
    )
    for kind in ("custom_obj", "token", "constant_input", "user_input", run):
        entry = {
            kind: {"arg": {"as_custom_obj": {"name": "x", "class_fqn": run}}, "name": "x", "value": {"as_string": run}}
        }

        def taken(value: Any, entry: Any = entry) -> None:
            value["graph_module"]["signature"]["input_specs"].append(entry)

        yield f"an input {kind[:24]!r}", _edit(GRAPH, taken)


def _pickles(marker: Path) -> Iterator[tuple[str, Change]]:
    """Pickles in every member that some reader of torch unpickles."""
    raw = pickle.dumps(Payload(marker))
    for name in (
        "data/sample_inputs/model.pt", "data/weights/model.pt", "data/constants/model.pt", "data/weights/other.pt",
        "data/xl_model_weights/model.pt", "data/aotinductor/model/model.so", "data.pkl", "constants.pkl", "code/x.py",
    ):  # fmt: skip
        yield f"a pickle as {name}", lambda members, name=name: members.update({name: raw})
    for member, path in ((WEIGHTS, "weight_0"), (CONSTANTS, "tensor_0")):
        for flag in (True, 1, "no", None):

            def pickled(members: Members, member: str = member, path: str = path, flag: object = flag) -> None:
                value = json.loads(members[member])
                for entry in value["config"].values():
                    entry["use_pickle"] = flag
                members[member] = json.dumps(value).encode()
                members[f"{member.rpartition('/')[0]}/{path}"] = raw

            yield f"use_pickle {flag!r} in {member}", pickled
    for path in ("custom_obj_0", "opaque_obj_0", "../weights/weight_0", "/etc/passwd", "tensor_0/../opaque_obj_0"):

        def constant(members: Members, path: str = path) -> None:
            entry = {"path_name": path, "is_param": False, "use_pickle": path.startswith("opaque"), "tensor_meta": None}
            _edit(CONSTANTS, lambda v: v["config"].update(offset=entry))(members)
            members[f"data/constants/{path}"] = raw

        yield f"a constant {path!r}", constant
