"""Question: would a test fail if a formula were another?

    python benchmarks/mutations.py --out MUTANTS.jsonl            (goes on where it was stopped)

Answer: docs/notes/mutations.md, with the survivors and why they live.

Mutants are drawn by seed from `theory`, `constructions` and the moves of `networks`: another operator, comparison,
number, sign, axis, or max for min. Each is written into a copy of src, and the tests run that name something of its
file, those of the theorems first, until one fails; `timed out` (after so many seconds of the processor, so that a busy
machine kills nothing) counts as killed. torch is imported once, then forked.
`--quick` takes two.
"""

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/isthmus")
MOVES = ("caratheodory", "depth_moves", "folding", "jacobians", "leaky_moves", "leaky_steps", "min_norm", "pruning",
         "rebalancing")  # fmt: skip
FILES = (*sorted((ROOT / PACKAGE / "theory").glob("*.py")), *sorted((ROOT / PACKAGE / "constructions").glob("*.py")),
         *(ROOT / PACKAGE / "networks" / f"{name}.py" for name in MOVES))  # fmt: skip
TESTS = ("theorems", "theory", "constructions", "networks", "laws", "diagnostics")
Changes = dict[type[ast.AST], tuple[str, str]]
OPERATORS: Changes = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.MatMult: ("@", "+"),
}
COMPARISONS: Changes = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
NAMES = {"min": "max", "max": "min", "amin": "amax", "amax": "amin", "argmin": "argmax", "argmax": "argmin",
         "minimum": "maximum", "maximum": "minimum", "exp": "expm1", "expm1": "exp", "floor": "ceil", "ceil": "floor",
         "clamp_min": "clamp_max", "cumsum": "cumprod", "svdvals": "pinv", "all": "any", "any": "all"}  # fmt: skip
SECONDS = 240  # of the processor


@dataclass(frozen=True)
class Mutant:
    """One change of one line: `before` at a place of a file becomes `after`."""

    file: str
    line: int
    column: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """By which a mutant is known again."""
        return f"{self.file}:{self.line}:{self.column} {self.before} -> {self.after}"

    def applied(self, text: str) -> str:
        """The text of the file with the change."""
        lines = text.splitlines(keepends=True)
        row = lines[self.line - 1].encode()
        end = self.column + len(self.before.encode())
        assert row[self.column : end].decode() == self.before, self.name
        lines[self.line - 1] = (row[: self.column] + self.after.encode() + row[end:]).decode()
        return "".join(lines)


class _Sites(ast.NodeVisitor):
    """Places where the text of a formula can be changed; none in annotations, messages and checks of arguments."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.lines, self.found = file, text.splitlines(), list[Mutant]()

    def visit_Raise(self, node: ast.Raise) -> None: ...
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...
    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if not node.name.startswith(("check_", "_check")):
            for part in [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]:
                self.visit(part)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        before, after = OPERATORS.get(type(node.op), ("", ""))
        self._between(node.left, node.right, before, after)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for op, left, right in zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False):
            self._between(left, right, *COMPARISONS.get(type(op), ("", "")))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub):
            self._add(node.lineno, node.col_offset, "-", "+")
        elif isinstance(node.op, ast.Invert):
            self._add(node.lineno, node.col_offset, "~", "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) in {int, float}:
            text = ast.get_source_segment("\n".join(self.lines), node) or ""
            doubled = f"(2 * {text})" if type(node.value) is float and node.value else f"({text} + 1)"
            self._add(node.lineno, node.col_offset, text, doubled)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES and node.end_lineno is not None and node.end_col_offset is not None:
            self._add(node.end_lineno, node.end_col_offset - len(node.attr), node.attr, NAMES[node.attr])
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in NAMES:
            self._add(node.lineno, node.col_offset, node.id, NAMES[node.id])

    def _between(self, left: ast.expr, right: ast.expr, before: str, after: str) -> None:
        if before and left.end_lineno == right.lineno:
            row = self.lines[right.lineno - 1].encode()
            place = row.find(before.encode(), left.end_col_offset, right.col_offset)
            if place >= 0:
                self._add(right.lineno, place, before, after)

    def _add(self, line: int, column: int, before: str, after: str) -> None:
        self.found.append(Mutant(self.file, line, column, before, after))


def mutants(count: int, seed: int) -> list[Mutant]:
    """Drawn without regard to the file, each once."""
    found = list[Mutant]()
    for path in FILES:
        if path.stem != "__init__":
            text = path.read_text(encoding="utf-8")
            sites = _Sites(path.relative_to(ROOT / PACKAGE).as_posix(), text)
            sites.visit(ast.parse(text))
            found += sites.found
    return random.Random(seed).sample(found, min(count, len(found)))


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / PACKAGE).with_suffix("").parts)


def _words(paths: list[Path]) -> re.Pattern[str]:
    """Names of these files and of their public functions and classes."""
    names = [
        node.name
        for path in paths
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    return re.compile(rf"\b({'|'.join([*(path.stem for path in paths), *names])})\b")


def tests_of(file: str) -> list[str]:
    """Test files that name a function of the file or of one that imports it, those of the theorems first."""
    path = ROOT / PACKAGE / file
    near = _words([path])
    importers = [p for p in FILES if re.search(rf"^from isthmus\.{_dotted(path)} import", p.read_text(), re.MULTILINE)]
    words = near if path.stem == "inputs" else _words([path, *importers])
    helpers = {helper.stem for helper in (ROOT / "tests").glob("*.py") if words.search(helper.read_text())}
    found = list[tuple[int, int, str]]()
    for place, room in enumerate(TESTS):
        for test in sorted((ROOT / "tests" / room).rglob("test_*.py")):
            text = test.read_text(encoding="utf-8")
            named = len(words.findall(text)) or any(f"from {helper} import" in text for helper in helpers)
            if named:  # those that name the file's own functions before those of its importers
                far = 0 if near.search(text) else len(TESTS)
                found.append((far + place, -int(named), test.relative_to(ROOT).as_posix()))
    return [test for _, _, test in sorted(found)]


def outcome(mutant: Mutant, folder: Path) -> str:
    """`killed`, `timed out`, `survived` or `no test`, in a process forked from this one."""
    tests = tests_of(mutant.file)
    if not tests:
        return "no test"
    target = folder / "src" / "isthmus" / mutant.file
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.applied(original), encoding="utf-8")
    child = os.fork()
    if child == 0:
        _test(folder, tests)
    _, status = os.waitpid(child, 0)
    target.write_text(original, encoding="utf-8")
    code = os.waitstatus_to_exitcode(status)
    if -code in {signal.SIGXCPU, signal.SIGKILL}:
        return "timed out"
    assert code in {0, 1, 2} or code < 0, (folder / "output.txt").read_text()[-2000:]
    return "killed" if code else "survived"


def _test(folder: Path, tests: list[str]) -> None:
    """In the child, which never returns: the tests against the copy, silently."""
    code = 3
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))
        with (folder / "output.txt").open("wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        os.chdir(folder)
        sys.path[:0] = [str(folder / room) for room in ("src", "tests", "benchmarks")]
        sys.dont_write_bytecode = True
        import pytest

        options = ["-x", "-q", "-m", "not slow and not gpu", "-p", "no:cacheprovider", "--import-mode=importlib"]
        code = int(pytest.main([*options, *tests]))
    except BaseException:  # whatever it is, the child must not go on with the parent's work
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def rows(path: Path) -> Iterator[dict[str, object]]:
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = given.out or Path(temporary) / "mutants.jsonl"
        known = {str(row["name"]) for row in rows(out)}
        folder = Path(temporary) / "copy"
        for room in ("src", "tests", "benchmarks", "docs"):
            shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__", "images"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / name, folder / name)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(temporary) / "hypothesis")
        for name in ("mpmath", "scipy.optimize", "torch", "xarray"):  # imported once for all children
            import_module(name)

        for mutant in mutants(2 if given.quick else given.count, given.seed):
            if mutant.name in known:
                continue
            began = time.monotonic()
            row = {"name": mutant.name, "outcome": outcome(mutant, folder), **asdict(mutant)}
            row["seconds"] = round(time.monotonic() - began, 1)
            with out.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
            print(f"{row['outcome']:9} {row['seconds']:6} s  {mutant.name}", flush=True)
        outcomes = [str(row["outcome"]) for row in rows(out)]
        print(f"{sum(o in {'killed', 'timed out'} for o in outcomes)} of {len(outcomes)} killed")


if __name__ == "__main__":
    main()
