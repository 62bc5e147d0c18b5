"""What an exported program says in words: descriptions of shapes and conditions, structures, names.

Each is held against a pattern of what torch.export writes; none is ever evaluated. The graph: `files.program_graphs`.
"""

import json
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import fx, nn

from isthmus.discovery.files.program_tensors import RefusedProgram

_SEGMENT = re.compile(r"(?!__)\w{1,200}", re.ASCII)
# attributes of a module of torch.fx, those included that it sets on some modules only
_TAKEN = {*dir(fx.GraphModule(nn.Module(), fx.Graph())), "_boxed_call", "_tracer_cls", "_wrapped_call", "shape_env"}
_COUNTED = "input_"
_MOST_LEVELS = 50  # Python nests no more than 200 parentheses
_CONTAINERS: dict[str, Callable[[list[Any], Any], Any]] = {
    "builtins.tuple": lambda children, _keys: tuple(children),
    "builtins.list": lambda children, _keys: list(children),
    "builtins.dict": lambda children, keys: dict(zip(keys, children, strict=True)),
    "collections.OrderedDict": lambda children, keys: dict(zip(keys, children, strict=True)),
}
# the descriptions of shapes and conditions as torch.export writes them, word by word
_SHAPE = re.compile(
    r"(?:Symbol\('[A-Za-z_]\w*'(?:, [a-z_]+=(?:True|False))*\)|Float\('-?[\d.e+-]+', precision=\d+\)"
    r"|(?:Integer|Rational|Add|Mul|Pow|Mod|PythonMod|FloorDiv|CleanDiv|CeilDiv|IntTrueDiv|FloatTrueDiv|Max|Min|Eq|Equality"
    r"|Ne|Unequality|Lt|StrictLessThan|Le|LessThan|Gt|StrictGreaterThan|Ge|GreaterThan|And|Or|Not|ToFloat"
    r"|TruncToInt|FloorToInt|CeilToInt|Identity|Where|Piecewise|ExprCondPair)\("
    r"|(?<![\w.])(?:true|false|-?\d{1,19})(?![\w.'])|[(), ])*",
    re.ASCII,
)
_CONDITION = re.compile(
    r"(?:L(?:\['[\w .:-]*'\]|\[\d{1,19}\])+|\.(?:size|stride)\(\)\[\d{1,19}\]|\.storage_offset\(\)"
    r"|\b(?:max|min|and|or|not|True|False)\b|(?<![\w'])\d{1,19}(?:\.\d{1,19})?(?![\w'])|[-+*/%()<>=!, ])*",
    re.ASCII,
)


def check_texts(description: Any) -> None:
    """Refuse what is code in the place of a shape, although nothing here would run it."""
    for key, item in _entries(description):
        if key == "expr_str" and not (isinstance(item, str) and _SHAPE.fullmatch(item)):
            raise RefusedProgram(f"holds code in place of a shape: {str(item)[:80]!r}")
        if key == "guards_code" and not all(isinstance(g, str) and _CONDITION.fullmatch(g) for g in item or ()):
            raise RefusedProgram(f"holds code in place of a condition on shapes: {str(item)[:80]!r}")
        if key in {"as_custom_obj", "as_opaque", "custom_obj"}:
            raise RefusedProgram("holds an object that is no tensor")


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Every (key, value) of the dictionaries inside a value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from item.items()
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


class Attributes:
    """Names of modules and tensors as attributes, one for each: torch.fx writes them into a text of Python."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], str] = {}  # (name above, part in the file) -> attribute
        self._used = set[tuple[str, str]]()

    def of(self, name: str) -> list[str]:
        """The attributes on the way to a tensor; different names never share one.

        Raises:
            RefusedProgram: a part of it is empty, private to Python, too long, too often the same, or one of too many.
        """
        parts = name.split(".", _MOST_LEVELS)
        if len(parts) > _MOST_LEVELS:
            raise RefusedProgram(f"calls a tensor {name[:80]!r}, of more than {_MOST_LEVELS} levels")
        above, found = "", list[str]()
        for part in parts:
            if (above, part) not in self._parts:
                self._parts[above, part] = self._new(above, part, name)
            found.append(self._parts[above, part])
            above = f"{above}.{found[-1]}"
        return found

    def _new(self, above: str, part: str, name: str) -> str:
        attribute = re.sub(r"\W", "_", part, flags=re.ASCII)
        # each longer than the last: a file of many names that become the same would take for ever
        while _SEGMENT.fullmatch(attribute) and self._is_taken(above, attribute):
            attribute += "_"
        if not _SEGMENT.fullmatch(attribute):
            raise RefusedProgram(f"calls a tensor {name[:80]!r}")
        self._used.add((above, attribute))
        return attribute

    def _is_taken(self, above: str, attribute: str) -> bool:
        return keyword.iskeyword(attribute) or attribute in _TAKEN or (above, attribute) in self._used


def input_names(call: Mapping[str, Any], count: int) -> list[str]:
    """Names of the arguments: counted ones, and those of the file for arguments that are given by name."""
    positional, named = (_spec(part) for part in _spec(json.loads(call["in_spec"])[1])[1])
    if positional[0] != "builtins.tuple" or named[0] != "builtins.dict":
        raise _odd_structure(call["in_spec"])
    for part in (*positional[1], *named[1]):
        if _spec(part)[0] is not None:
            raise RefusedProgram("takes a structure of tensors; only tensors one by one can be given to it here")
    if len(positional[1]) + len(named[1]) != count:
        raise _odd_structure(call["in_spec"])
    keys = [str(key) for key in json.loads(named[2] or "[]")]
    if any(not _is_name(key) for key in keys) or len(set(keys)) != len(named[1]):
        raise _odd_structure(call["in_spec"])
    return [*(f"{_COUNTED}{i}" for i in range(1, len(positional[1]) + 1)), *keys]


def _is_name(text: str) -> bool:
    """Whether an argument may keep its name: not where it would hide what the text of the module refers to."""
    hides = text in {"self", "torch", "device", "inf", "nan", "NoneType"} or text.startswith((_COUNTED, "_operator"))
    return bool(_SEGMENT.fullmatch(text)) and text.isidentifier() and not keyword.iskeyword(text) and not hides


def _spec(spec: Mapping[str, Any]) -> tuple[str | None, list[Any], Any]:
    """Kind, children and keys of a structure; the kind of a single value is None."""
    kind, children = spec["type"], spec["children_spec"]
    if kind is None and not children:
        return None, [], None
    if kind not in _CONTAINERS or not isinstance(children, list):
        raise _odd_structure(spec)
    return kind, children, spec["context"]


def structured(spec: Mapping[str, Any], leaves: Iterator[Any], *, most_levels: int = _MOST_LEVELS) -> Any:
    """The outputs in the structure that the program gave them."""
    if not most_levels:
        raise RefusedProgram(f"gives back a structure of more than {_MOST_LEVELS} levels")
    kind, children, context = _spec(spec)
    if kind is None:
        found = next(leaves, spec)
        if found is spec:
            raise RefusedProgram("has fewer outputs than its structure has places")
        return found
    keys = json.loads(context or "null") or []
    if not isinstance(keys, list) or not all(isinstance(key, str | int) for key in keys):
        raise _odd_structure(spec)
    return _CONTAINERS[kind]([structured(child, leaves, most_levels=most_levels - 1) for child in children], keys)


def _odd_structure(spec: Any) -> RefusedProgram:
    return RefusedProgram(f"takes or gives a structure other than tuples, lists and dictionaries: {str(spec)[:80]!r}")


def owner_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """By which submodule a node was called, for its name in tables; torch writes "key,path,type;..."."""
    text = str(metadata.get("nn_module_stack") or "")
    stack: dict[str, tuple[str, str]] = {}
    for entry in text.split(";"):
        key, _, rest = entry.partition(",")
        path = rest.partition(",")[0]
        if re.fullmatch(r"[\w.]{1,500}", path, re.ASCII):
            stack[key[:200]] = (path, "")
    return {"nn_module_stack": stack} if stack else {}
