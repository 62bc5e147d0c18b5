"""The graph of an exported program: from its JSON into torch.fx, without torch's own reader.

torch.export.load hands texts of the file to sympy, which evaluates them, and calls what a node names. Here no text of
the file is interpreted: operators are looked up in a list (`files.program_operators`), names are made anew or checked,
and the descriptions of shapes are not needed, since a graph that runs asks its tensors. They are looked at all the
same: what is no arithmetic there tells that the file was made to do harm. The archive: `files.programs`.
"""

import json
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from isthmus.discovery.files.program_operators import CHECKS, SHAPE_ARITHMETIC, arguments_of, pure_operator
from isthmus.discovery.files.program_tensors import TYPES, RefusedProgram
from isthmus.discovery.files.program_texts import Attributes, check_texts, input_names, owner_of, structured

# of the JSON that torch.export writes; its minor versions only add fields
SCHEMA = 8
_MOST_BITS = 63
_LAYOUTS = {7: torch.strided}
_MEMORY_FORMATS = {
    1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d, 4: torch.preserve_format,
}  # fmt: skip
_PLAIN_WORD = re.compile(r"[\w ,.>-]{0,200}", re.ASCII)  # modes, types of padding, the equation of einsum
# regions that change nothing but whether gradients are recorded
_REGION = "torch.ops.higher_order.wrap_with_set_grad_enabled"


def program_module(description: Any, tensors: Mapping[str, Tensor]) -> fx.GraphModule:
    """The module that the JSON of a program describes, with these weights and constants.

    Args:
        description: what stands in models/model.json.
        tensors: by the names that its signature gives them.

    Returns:
        A module of the positional and named tensors that the program took, with the structure of outputs that it gave.

    Raises:
        RefusedProgram: it calls something that is not known to be pure, or is no program of this version; says what.
    """
    try:
        check_texts(description)
        version = description["schema_version"]["major"]
        if version != SCHEMA:
            raise RefusedProgram(f"has version {str(version)[:20]!r} of the format; this reader knows {SCHEMA}")
        return _Reader(description["graph_module"], tensors).module()
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError, MemoryError) as error:
        if isinstance(error, RefusedProgram):
            raise
        raise RefusedProgram(f"is no graph of torch.export ({type(error).__name__}: {str(error)[:80]})") from error


class _Reader:
    """One graph on its way into torch.fx; `values` are its tensors and shapes by the names of the file."""

    def __init__(self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.description, self.tensors = description, tensors
        self.graph, self.root = fx.Graph(), nn.Module()
        self.attributes, self.kept = Attributes(), dict[str, str]()
        self.values: dict[str, Any] = {}
        self.ranks = dict[str, int]()  # number of dimensions of each tensor, which the kind of a batch norm hangs on

    def module(self) -> fx.GraphModule:
        signature, graph = self.description["signature"], self.description["graph"]
        call = self.description["module_call_graph"][0]["signature"]
        self._read_inputs(signature["input_specs"], call)
        self._read_nodes(graph)
        wanted = [
            self._argument(_only(spec)[1]["arg"])
            for spec in signature["output_specs"]
            if self._is_output(_only(spec)[0])
        ]
        leaves = iter(wanted)
        result = structured(json.loads(call["out_spec"])[1], leaves)
        if next(leaves, self) is not self:
            raise RefusedProgram("gives more outputs than its structure has room for")
        self.graph.output(result)
        return fx.GraphModule(self.root, self.graph)

    @staticmethod
    def _is_output(kind: str) -> bool:
        """Whether an entry is given back; what a program would write into its own buffers is left alone."""
        if kind not in {"user_output", "buffer_mutation", "user_input_mutation"}:
            raise RefusedProgram(f"gives back a {kind[:80]!r}; a program of torch.export in eval mode has outputs only")
        return kind == "user_output"

    def _read_inputs(self, specs: Sequence[Any], call: Mapping[str, Any]) -> None:
        entries = [_only(spec) for spec in specs]
        given = [(kind, entry) for kind, entry in entries if kind in {"user_input", "constant_input"}]
        names = input_names(call, len(given))
        for name, (kind, entry) in zip(names, given, strict=True):
            node = self.graph.placeholder(name)
            if kind == "user_input":
                self.values[_value_name(entry["arg"])] = node
        for kind, entry in entries:
            if kind in {"parameter", "buffer", "tensor_constant"}:
                attribute = self._kept(str(entry[f"{kind}_name"]), is_parameter=kind == "parameter")
                self.values[str(entry["arg"]["name"])] = self.graph.get_attr(attribute)
            elif kind not in {"user_input", "constant_input"}:
                raise RefusedProgram(f"takes a {kind[:80]!r}, which is no tensor")

    def _kept(self, name: str, *, is_parameter: bool) -> str:
        """Keep a tensor of the file under its dotted name in the module."""
        if name not in self.tensors:
            raise RefusedProgram(f"takes the tensor {name[:80]!r}, which the archive lacks")
        if name in self.kept:  # an input that stands there twice
            return self.kept[name]
        *path, last = segments = self.attributes.of(name)
        owner = self.root
        for part in path:
            if part not in dict(owner.named_children()):
                owner.add_module(part, nn.Module())
            owner = owner.get_submodule(part)
        if is_parameter:
            owner.register_parameter(last, nn.Parameter(self.tensors[name], requires_grad=False))
        else:
            owner.register_buffer(last, self.tensors[name])
        self.kept[name] = ".".join(segments)
        return self.kept[name]

    def _read_nodes(self, graph: Mapping[str, Any]) -> None:
        self.ranks |= {str(name): len(meta["sizes"]) for name, meta in graph["tensor_values"].items()}
        for entry in graph["nodes"]:
            target = str(entry["target"])
            if target == _REGION:
                self._read_region(entry)
            elif not CHECKS.fullmatch(target):
                node = self._called(target, entry["inputs"])
                node.meta.update(owner_of(entry.get("metadata") or {}))
                self._name_outputs(node, entry["outputs"])

    def _called(self, target: str, inputs: Sequence[Mapping[str, Any]]) -> fx.Node:
        if target == "_operator.getitem" or target in SHAPE_ARITHMETIC:
            function = SHAPE_ARITHMETIC.get(target, operator.getitem)
            return self.graph.call_function(function, tuple(self._argument(i["arg"]) for i in inputs))
        found = pure_operator(target)
        if found is None:
            raise RefusedProgram(f"calls {target[:80]!r}, which is no operator on tensors that is known to be pure")
        function, overload = found
        given = {str(i["name"]): self._argument(i["arg"]) for i in inputs}
        given.pop("pin_memory", None)  # of a machine with a GPU
        kinds = {str(i["name"]): i.get("kind") for i in inputs}
        args, kwargs, is_gapless = list[Any](), dict[str, Any](), True
        for argument in arguments_of(overload):
            name = argument.name
            if name not in given:
                is_gapless = False
            elif is_gapless and not argument.kwarg_only and kinds[name] != 2:
                args.append(given.pop(name))
            else:
                kwargs[name] = given.pop(name)
        if given:
            raise RefusedProgram(f"calls {target[:80]!r} with {next(iter(given))[:80]!r}, which it does not take")
        return self.graph.call_function(function, tuple(args), kwargs)

    def _read_region(self, entry: Mapping[str, Any]) -> None:
        """The nodes of a region in the place of its call."""
        _enabled, inner, *given = (i["arg"] for i in entry["inputs"])
        graph = inner["as_graph"]["graph"]
        for place, argument in zip(graph["inputs"], given, strict=True):
            self.values[_value_name(place)] = self._argument(argument)
        self._read_nodes(graph)
        results = [self._argument(output) for output in graph["outputs"]]
        [outputs] = [entry["outputs"]]
        names = outputs[0]["as_tensors"] if "as_tensors" in outputs[0] else [_only(o)[1] for o in outputs]
        for name, result in zip(names, results, strict=True):
            self.values[str(name.get("name") or name["as_name"])] = result

    def _name_outputs(self, node: fx.Node, outputs: Sequence[Mapping[str, Any]]) -> None:
        if len(outputs) == 1 and "as_tensors" not in outputs[0]:
            self._name(node, outputs[0])
            return
        parts = outputs
        if len(outputs) == 1:
            parts = [{"as_tensor": part} for part in outputs[0]["as_tensors"]]
        for place, part in enumerate(parts):
            if "as_none" not in part:
                item = self.graph.call_function(operator.getitem, (node, place))
                item.meta.update(node.meta)
                self._name(item, part)

    def _name(self, node: fx.Node, output: Mapping[str, Any]) -> None:
        if "as_none" in output:
            return
        name = _value_name(output)
        self.values[name] = node
        if name in self.ranks:  # of the shape that torch notes only the number of dimensions, which is not symbolic
            node.meta["val"] = torch.empty((1,) * min(self.ranks[name], 64), device="meta")

    def _argument(self, argument: Mapping[str, Any]) -> Any:
        kind, value = _only(argument)
        if kind in {"as_none", "as_int", "as_bool", "as_float", "as_string"}:
            return _constant(kind, value)
        if kind in {"as_ints", "as_bools", "as_floats"}:
            return [_constant(kind[:-1], item) for item in value]
        if kind in {"as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"}:
            return self._value(value)
        if kind in {"as_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"}:
            return [self._value(item) for item in value]
        if kind == "as_optional_tensor":
            return self._argument(value)
        if kind == "as_optional_tensors":
            return [self._argument(item) for item in value]
        if kind == "as_scalar_type":
            return _known(TYPES, value, "type")
        if kind == "as_memory_format":
            return _known(_MEMORY_FORMATS, value, "memory format")
        if kind == "as_layout":
            return _known(_LAYOUTS, value, "layout")
        if kind == "as_device":  # wherever it was exported: here it runs where its weights are
            return torch.device("cpu")
        raise RefusedProgram(f"calls an operator with {kind[:80]!r}, which is no tensor or number")

    def _value(self, value: Mapping[str, Any]) -> Any:
        """A node by its name, or the number that stands among such names."""
        for kind in ("as_int", "as_float", "as_bool"):
            if kind in value:
                return _constant(kind, value[kind])
        name = str(value.get("name") or value["as_name"])
        if name not in self.values:
            raise RefusedProgram(f"uses {name[:80]!r} before it is computed")
        return self.values[name]


def _only(union: Mapping[str, Any]) -> tuple[str, Any]:
    """The one entry of a dictionary that stands for a choice."""
    [(kind, value)] = union.items()
    return str(kind), value


def _value_name(argument: Mapping[str, Any]) -> str:
    kind, value = _only(argument)
    if kind not in {"as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"}:
        raise RefusedProgram(f"names a {kind[:80]!r}, which is no tensor")
    return str(value.get("name") or value["as_name"])


def _constant(kind: str, value: Any) -> Any:
    """A number or word of the file that an operator is called with."""
    if kind == "as_none":
        return None
    if kind == "as_bool" and type(value) is bool:
        return value
    if kind == "as_int" and type(value) is int and value.bit_length() <= _MOST_BITS:
        return value
    if kind == "as_float" and (isinstance(value, float) or value in {"Infinity", "-Infinity", "NaN"}):
        return float(value)
    if kind == "as_float" and type(value) is int and value.bit_length() <= _MOST_BITS:
        return float(value)
    if kind == "as_string" and isinstance(value, str) and _PLAIN_WORD.fullmatch(value):
        return value
    raise RefusedProgram(f"holds {str(value)[:80]!r} in place of {kind.removeprefix('as_')}")


def _known(table: Mapping[int, Any], value: Any, what: str) -> Any:
    if type(value) is not int or value not in table:
        raise RefusedProgram(f"asks for the {what} {str(value)[:80]!r}, which is none of plain tensors")
    return table[value]
