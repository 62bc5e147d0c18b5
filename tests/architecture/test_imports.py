"""The rooms import in one direction only: each may use the rooms to its left (DESIGN, the house)."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "isthmus"
ORDER = (
    ("errors", "recheck"), ("theory",), ("networks",), ("constructions",), ("tasks",), ("training",), ("diagnostics",),
    ("discovery",), ("estimators", "plots"), ("reports",), ("sweeps",), ("figures",), ("cli",),
)  # fmt: skip
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
FILES = sorted(SRC.rglob("*.py"))


def room_of(path: Path) -> str:
    parts = path.relative_to(SRC).parts
    return parts[0].removesuffix(".py")


def imported_rooms(source: str) -> list[tuple[int, str]]:
    """(line, room) for every import of ours; `from isthmus import x` counts as room x."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_rooms_import_only_to_their_left(path: Path) -> None:
    room = room_of(path)
    if room in {"__init__", "__main__"}:
        return
    assert room in RANK, f"{path} is in no known room: the house is {ORDER}"
    assert violations(room, path.read_text()) == []


def test_the_check_catches_a_wrong_import() -> None:
    assert violations("theory", "from isthmus.networks import walk") == ["line 1: theory imports networks"]
    assert violations("plots", "import isthmus.estimators.shells") == ["line 1: plots imports estimators"]
    assert violations("networks", "from isthmus import cli") == ["line 1: networks imports cli"]
    assert violations("cli", "from isthmus.theory import RankEstimate") == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_every_module_says_what_lives_there(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, f"{path}: the module docstring says what lives here and what does not"
