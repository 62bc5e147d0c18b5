"""No test fails because the machine is busy: what is fast or soon is told by counts, files, or a process's own time."""

import ast
from pathlib import Path

from syntax_trees import parsed

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
CLOCKS = {"monotonic", "perf_counter", "time"}
PATIENCE = 15.0  # seconds on the wall that a busy machine never takes for what a quiet one does at once


def reads_clock(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in CLOCKS
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id == "time"
        for part in ast.walk(node)
    )


def durations(tree: ast.AST) -> set[str]:
    """Names that are given what a clock says now less something."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and reads_clock(node.value):
            taken = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) for part in ast.walk(node.value))
            found |= {target.id for target in node.targets if isinstance(target, ast.Name) and taken}
    return found


def hurried(source: str) -> list[str]:
    """Assertions that a duration is less than `PATIENCE` seconds."""
    tree = parsed(source)
    named = durations(tree)
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            numbers = [c.value for c in ast.walk(node.test) if isinstance(c, ast.Constant)]
            bounds = [float(n) for n in numbers if isinstance(n, int | float) and not isinstance(n, bool)]
            taken = reads_clock(node.test) or any(
                isinstance(n, ast.Name) and n.id in named for n in ast.walk(node.test)
            )
            upper = any(isinstance(part, ast.Lt | ast.LtE) for part in ast.walk(node.test))
            if taken and upper and bounds and min(bounds) < PATIENCE:
                found.append(f"line {node.lineno}")
    return found


def test_nothing_is_asserted_to_be_over_soon() -> None:
    texts = {path: path.read_text() for path in FILES}
    wrong = {str(path.relative_to(TESTS)): hurried(text) if "time." in text else [] for path, text in texts.items()}
    assert {path: lines for path, lines in wrong.items() if lines} == {}
    assert len(wrong) > 200


def test_the_check_catches_a_hurry() -> None:
    assert hurried("assert time.monotonic() - began < 5, 'soon'") == ["line 1"]
    assert hurried("s = time.perf_counter() - began\nassert s <= 2") == ["line 2"]
    assert hurried("assert time.monotonic() < until\nassert time.monotonic() - began < 60\nassert n < 5") == []


def raced(source: str) -> list[str]:
    """Functions that say how small `compress` makes a network, and let the speed of this machine decide."""
    found: list[str] = []
    for function in ast.walk(parsed(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        parts = list(ast.walk(function))
        calls = [c for c in parts if isinstance(c, ast.Call) and ast.unparse(c.func) == "isthmus.compress"]
        told = any(isinstance(p, ast.Attribute) and p.attr in {"parameters_after", "dimensions"} for p in parts)
        own_clock = "race" in ast.unparse(function)  # a test of what the clock decides has one of its own
        if told and not own_clock and any("allow_slower" not in {k.arg for k in c.keywords} for c in calls):
            found.append(function.name)
    return found


def test_no_size_of_a_network_is_left_to_the_speed_of_the_machine() -> None:
    texts = {path: path.read_text() for path in FILES}
    called = {path: text for path, text in texts.items() if "compress" in text}  # the others need no reading
    wrong = {str(path.relative_to(TESTS)): raced(text) for path, text in called.items()}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_the_check_catches_a_race() -> None:
    body = "small = isthmus.compress(net, x, tolerance=1e-2{})\n    assert small.parameters_after < 9"
    assert raced("def test_a() -> None:\n    " + body.format("")) == ["test_a"]
    assert raced("def test_a() -> None:\n    " + body.format(", allow_slower=True")) == []
