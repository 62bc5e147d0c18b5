"""What may stand in the graph of an exported program: operators of aten on tensors, and arithmetic of shapes.

Whatever else torch would evaluate or call while it reads the graph is an objection. The archive: `files.programs`.
"""

import ast
import json
import re
from typing import Any

_OPERATORS = re.compile(
    r"torch\.ops\.(aten|prims|higher_order)\.\w+(\.\w+)?|torch\.sym_\w+|math\.(ceil|floor|trunc|sqrt)"
)
_ARITHMETIC = re.compile(
    r"_operator\.(getitem|add|sub|mul|truediv|floordiv|mod|pow|neg|pos|eq|ne|lt|le|gt|ge|and_|or_|not_)"
)
# this one maps a file of any name into memory, and makes it if there is none
_FORBIDDEN = re.compile(r"torch\.ops\.aten\.from_file\b.*")
_EXPRESSION = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.cmpop,
    ast.boolop, ast.operator, ast.unaryop, ast.Subscript, ast.keyword,
)  # fmt: skip
_SHAPE_FUNCTIONS = {
    "Symbol", "Integer", "Add", "Mul", "Pow", "Mod", "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv", "IntTrueDiv",
    "FloatTrueDiv", "Max", "Min", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Rational", "ToFloat", "TruncToInt", "FloorToInt",
    "CeilToInt", "Identity",
}  # fmt: skip
# those whose description names no module to import
_CONTAINERS = {None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict"}
_READS = {"size", "shape", "dim", "ndim"}


def graph_objection(value: Any) -> str:
    """Why the JSON of a graph may not be read by torch; empty where nothing speaks against it.

    Args:
        value: what stands in models/*.json.
    """
    for key, item in _walk(value):
        if key in {"target", "as_operator"} and isinstance(item, str) and not _is_operator(item):
            return f"calls {item[:80]!r}, which is no operator on tensors"
        if key == "expr_str" and not _is_arithmetic(item):
            return f"holds code in place of a shape: {str(item)[:80]!r}"
        if key == "guards_code" and not all(_is_arithmetic(guard) for guard in item or ()):
            return f"holds code in place of a condition on shapes: {str(item)[:80]!r}"
        if key in {"in_spec", "out_spec"} and not _is_plain_structure(item):
            return f"takes or gives a structure whose reading imports modules: {str(item)[:80]!r}"
        if key in {"as_custom_obj", "as_opaque"}:
            return "holds an object that is no tensor"
    return ""


def _is_plain_structure(text: object) -> bool:
    """Whether the description of inputs or outputs is made of tuples, lists and dictionaries."""
    if text == "":
        return True
    try:
        entries = _walk(json.loads(str(text)))
    except ValueError:
        return False
    return "__enum__" not in str(text) and all(item in _CONTAINERS for key, item in entries if key == "type")


def _walk(value: Any) -> list[tuple[str, Any]]:
    """Every (key, value) of the dictionaries inside a value."""
    found: list[tuple[str, Any]] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            found += item.items()
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return found


def _is_operator(name: str) -> bool:
    if _FORBIDDEN.fullmatch(name):
        return False
    return bool(_OPERATORS.fullmatch(name) or _ARITHMETIC.fullmatch(name))


def _is_arithmetic(text: object) -> bool:
    """Whether a text is an expression of numbers, shapes and nothing that could be called besides."""
    if not isinstance(text, str):
        return False
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_is_harmless(node) for node in ast.walk(tree))


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        named = isinstance(function, ast.Name) and function.id in _SHAPE_FUNCTIONS
        return named or (isinstance(function, ast.Attribute) and function.attr in _READS)
    if isinstance(node, ast.Attribute):
        return node.attr in _READS
    if isinstance(node, ast.Name):
        return "__" not in node.id
    return isinstance(node, _EXPRESSION)
