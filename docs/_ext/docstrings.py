"""Docstrings of the library, which are plain text, for Sphinx, which reads reStructuredText; signatures as written."""

import ast
import inspect
import re
import textwrap
from typing import Any

from sphinx.application import Sphinx

SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Yields|Examples?|Warns):$")
CODE = re.compile(r"(``[^`]+``|`[^`\n]+`)")


def escaped(line: str) -> str:
    """Bars, stars and trailing underscores are themselves; what stands in backquotes is code."""
    parts = CODE.split(line)
    parts[::2] = [re.sub(r"([|*])", r"\\\1", re.sub(r"(?<=\w)_(?!\w)", r"\\_", part)) for part in parts[::2]]
    parts[1::2] = [f"``{part.strip('`')}``" for part in parts[1::2]]
    return "".join(parts)


def plain(lines: list[str]) -> list[str]:
    """An indented paragraph outside of the sections is a formula, kept as it stands; doctests are left alone."""
    found: list[str] = []
    in_section = in_formula = in_example = False
    for line in lines:
        if SECTION.match(line):
            in_section = True
        elif line and not line[0].isspace():
            in_section = False
        before = found[-1] if found else ""
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if line.startswith("    ") and not in_section and (in_formula or not before.strip()):
            if not in_formula:
                found += ["::", ""]
            in_formula = True
            found.append(line)
            continue
        if line.strip():
            if in_formula and before.strip():
                found.append("")  # text directly behind a formula
            in_formula = False
        found.append(line if in_example or SECTION.match(line) else escaped(line))
    return found


def rewrite(_app: Sphinx, what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Before napoleon reads the sections; what a module says is for those who read its source."""
    lines[:] = [] if what == "module" else plain(lines)


def as_written(
    _app: Sphinx, what: str, _name: str, found: Any, _options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Annotations as the source has them, not what they stand for: ArrayLike is half a page of unions."""
    function = inspect.unwrap(found) if what in {"function", "method"} else getattr(found, "__init__", None)
    if not inspect.isfunction(function) or signature is None:
        return signature, returns
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return signature, returns
    if not isinstance(node := tree.body[0], ast.FunctionDef):
        return signature, returns
    if what in {"method", "class"} and node.args.args and node.args.args[0].arg in {"self", "cls"}:
        node.args.args.pop(0)
    written = ast.unparse(node.args)
    return f"({written})", ast.unparse(node.returns) if node.returns and what != "class" else None


def skipped(_app: Sphinx, _what: str, name: str, _object: object, skip: bool, _options: object) -> bool | None:
    """What scikit-learn adds to every estimator is told there."""
    return True if re.fullmatch(r"[sg]et_\w*_request|get_metadata_routing", name) else (skip or None)


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    app.connect("autodoc-process-signature", as_written)
    app.connect("autodoc-skip-member", skipped)
    return {"parallel_read_safe": True}
