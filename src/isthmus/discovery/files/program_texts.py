"""What an exported program says in words: descriptions of shapes and conditions, structures, names.

Each is held against a pattern of what torch.export writes; none is ever evaluated. The graph: `files.program_graphs`.
"""

import json
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from isthmus.discovery.files.program_tensors import Refused

_SEGMENT = re.compile(r"(?!__)\w{1,200}", re.ASCII)
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
            raise Refused(f"holds code in place of a shape: {str(item)[:80]!r}")
        if key == "guards_code" and not all(isinstance(g, str) and _CONDITION.fullmatch(g) for g in item or ()):
            raise Refused(f"holds code in place of a condition on shapes: {str(item)[:80]!r}")
        if key in {"as_custom_obj", "as_opaque", "custom_obj"}:
            raise Refused("holds an object that is no tensor")


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


def attribute_path(name: str) -> list[str]:
    """The dotted name of a tensor as attributes of modules: torch.fx writes them into a text of Python.

    Raises:
        Refused: a part of it is empty, private to Python, or too long.
    """
    parts = [re.sub(r"\W", "_", part, flags=re.ASCII) for part in name.split(".")]
    if not all(_SEGMENT.fullmatch(part) for part in parts):
        raise Refused(f"calls a tensor {name[:80]!r}")
    return [f"{part}_" if keyword.iskeyword(part) else part for part in parts]


def input_names(call: Mapping[str, Any], count: int) -> list[str]:
    """Names of the arguments: those of the file where they are names of Python, counted ones else."""
    positional, named = (_spec(part) for part in _spec(json.loads(call["in_spec"])[1])[1])
    if positional[0] != "builtins.tuple" or named[0] != "builtins.dict":
        raise _odd_structure(call["in_spec"])
    for part in (*positional[1], *named[1]):
        if _spec(part)[0] is not None:
            raise Refused("takes a structure of tensors; only tensors one by one can be given to it here")
    if len(positional[1]) + len(named[1]) != count:
        raise _odd_structure(call["in_spec"])
    keys = [str(key) for key in json.loads(named[2] or "[]")]
    if any(not _is_name(key) for key in keys) or len(set(keys)) != len(named[1]):
        raise _odd_structure(call["in_spec"])
    known = [str(name) for name in call.get("forward_arg_names") or ()][: len(positional[1])]
    proper = len(known) == len(positional[1]) and len({*known, *keys}) == count and all(map(_is_name, known))
    return [*(known if proper else (f"input_{i}" for i in range(1, len(positional[1]) + 1))), *keys]


def _is_name(text: str) -> bool:
    return bool(_SEGMENT.fullmatch(text)) and text.isidentifier() and not keyword.iskeyword(text) and text != "self"


def _spec(spec: Mapping[str, Any]) -> tuple[str | None, list[Any], Any]:
    """Kind, children and keys of a structure; the kind of a single value is None."""
    kind, children = spec["type"], spec["children_spec"]
    if kind is None and not children:
        return None, [], None
    if kind not in _CONTAINERS or not isinstance(children, list):
        raise _odd_structure(spec)
    return kind, children, spec["context"]


def structured(spec: Mapping[str, Any], leaves: Iterator[Any]) -> Any:
    """The outputs in the structure that the program gave them."""
    kind, children, context = _spec(spec)
    if kind is None:
        found = next(leaves, spec)
        if found is spec:
            raise Refused("has fewer outputs than its structure has places")
        return found
    keys = json.loads(context or "null") or []
    if not isinstance(keys, list) or not all(isinstance(key, str | int) for key in keys):
        raise _odd_structure(spec)
    return _CONTAINERS[kind]([structured(child, leaves) for child in children], keys)


def _odd_structure(spec: Any) -> Refused:
    return Refused(f"takes or gives a structure other than tuples, lists and dictionaries: {str(spec)[:80]!r}")


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
