"""The rooms import in one direction only: each may use the rooms to its left (DESIGN, the house)."""

import ast
import re
from pathlib import Path

import isthmus
from syntax_trees import parsed

SRC = Path(__file__).parents[2] / "src" / "isthmus"
ORDER = (
    ("errors", "recheck"), ("writing", "processes"), ("theory",), ("networks",), ("constructions",), ("tasks",),
    ("training",),
    ("diagnostics",), ("discovery",), ("estimators", "plots"), ("reports",), ("sweeps",), ("figures",), ("cli",),
)  # fmt: skip
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
FILES = sorted(SRC.rglob("*.py"))


def room_of(path: Path) -> str:
    parts = path.relative_to(SRC).parts
    return parts[0].removesuffix(".py")


def imported_rooms(source: str) -> list[tuple[int, str]]:
    """(line, room) for every import of ours; `from isthmus import x` counts as room x, and so does its name in a text.

    A text that is the dotted name of a module is there to import it by name, or to have it imported.
    """
    found: list[tuple[int, str]] = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Constant):
            names = [str(node.value)] if re.fullmatch(r"isthmus(\.\w+)+", str(node.value)) else []
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; write the full path"
            names = [f"{node.module}.{a.name}" if node.module == "isthmus" else str(node.module) for a in node.names]
        else:
            continue
        found += [(node.lineno, n.split(".")[1]) for n in names if n.startswith("isthmus.")]
    return found


def violations(room: str, source: str) -> list[str]:
    return [
        f"line {line}: {room} imports {other}"
        for line, other in imported_rooms(source)
        if other in RANK and other != room and RANK[other] >= RANK[room]
    ]


def test_rooms_import_only_to_their_left() -> None:
    rooms = {path: room_of(path) for path in FILES if room_of(path) not in {"__init__", "__main__"}}
    assert set(rooms.values()) == set(RANK), f"the house is {ORDER}"
    wrong = {str(path): violations(room, path.read_text()) for path, room in rooms.items()}
    assert {path: lines for path, lines in wrong.items() if lines} == {}


def test_what_rooms_ask_the_house_for_is_there() -> None:
    """`isthmus.provided` alone names rooms for those to their left: every name is asked for, and only those."""
    asked = {name for path in FILES for name in names_asked_for(path.read_text())}
    assert asked == set(isthmus._PROVIDED)  # pyright: ignore[reportPrivateUsage]
    assert all(isthmus.provided(name).__name__ == module for name, module in isthmus._PROVIDED.items())  # pyright: ignore[reportPrivateUsage]


def names_asked_for(source: str) -> set[str]:
    """The texts of a file that calls `provided` which are names there."""
    texts = {str(node.value) for node in ast.walk(parsed(source)) if isinstance(node, ast.Constant)}
    return texts & set(isthmus._PROVIDED) if "isthmus.provided(" in source else set()  # pyright: ignore[reportPrivateUsage]


def test_the_check_catches_a_wrong_import() -> None:
    assert violations("theory", "from isthmus.networks import walk") == ["line 1: theory imports networks"]
    assert violations("plots", "import isthmus.estimators.shells") == ["line 1: plots imports estimators"]
    assert violations("networks", "from isthmus import cli") == ["line 1: networks imports cli"]
    assert violations("cli", "from isthmus.theory import RankEstimate") == []
    by_name = 'READERS = "isthmus.networks.facts"\nimport_module(READERS)'
    assert violations("theory", by_name) == ["line 1: theory imports networks"]
    assert violations("writing", 'import_module("isthmus.reports.looks")') == ["line 1: writing imports reports"]
    assert violations("networks", 'GROUP = "isthmus.kinds"\n"""isthmus.cli is elsewhere."""') == []


def slow_imports(source: str) -> list[str]:
    """Imports of scikit-learn outside functions: they cost a fifth of the time in which a command starts."""
    return [
        f"line {node.lineno}"
        for node in parsed(source).body
        if isinstance(node, ast.ImportFrom | ast.Import)
        and any(name.split(".")[0] == "sklearn" for name in [getattr(node, "module", None) or node.names[0].name])
    ]


def test_only_what_is_made_of_scikit_learn_imports_it_at_once() -> None:
    others = [path for path in FILES if room_of(path) not in {"estimators", "figures"}]
    assert {str(path): lines for path in others if (lines := slow_imports(path.read_text()))} == {}
    assert slow_imports("from sklearn.manifold import Isomap") == ["line 1"]
    assert slow_imports("import sklearn.svm\ndef f():\n    import sklearn") == ["line 1"]


def is_silent(source: str) -> bool:
    return not ast.get_docstring(parsed(source))


def test_every_module_says_what_lives_there() -> None:
    silent = [str(path) for path in FILES if is_silent(path.read_text())]
    assert silent == [], "the module docstring says what lives here and what does not"
    assert is_silent('"""  """\nimport ast\n')
