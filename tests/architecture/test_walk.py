"""The walk of `docs/walk.md` is the way of the code: each file defines what is named, and hands on to the next step."""

import ast
import re
from itertools import pairwise
from pathlib import Path

from syntax_trees import parsed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "walk.md"
STEP = re.compile(r"^\d+\. `(?P<path>[^`]+)`: `(?P<name>\w+)`(?P<rest>.*?)(?=^\d+\. |^$)", re.M | re.S)


def steps(text: str) -> list[tuple[str, str, list[str]]]:
    """Path, name and the other names of each step."""
    return [
        (m["path"], m["name"], [n for n in re.findall(r"`(\w+)`", m["rest"])]) for m in STEP.finditer(text)
    ]  # fmt: skip


def names_in(path: str) -> set[str]:
    """What a file defines, imports, or calls: names and attributes."""
    found: set[str] = set()
    for node in ast.walk(parsed((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found


def defined_in(path: str) -> set[str]:
    tree = parsed((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def wrong(text: str) -> list[str]:
    found = [f"{path} does not define {name}" for path, name, _ in steps(text) if name not in defined_in(path)]
    found += [
        f"{path} names no {more}" for path, _, named in steps(text) for more in named if more not in names_in(path)
    ]
    there, back = (steps(part) for part in text.split("With all of them the story goes on"))
    # work is handed to a runner as functions: who runs units knows none of them
    for (path, _, _), (_, name, _) in pairwise(there):
        if "work/runner" not in path and name not in names_in(path):
            found.append(f"{path} does not hand on to {name}")
    known = set().union(*(names_in(path) for path, _, _ in there))
    return found + [f"nobody on the way there calls {name}" for _, name, _ in back if name not in known]
