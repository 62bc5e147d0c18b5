"""docs/theorems.md, the code and the tests tell one story: every id has a row, a function, a test with its marker."""

import ast
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from isthmus.figures.catalogue import FIGURES
from syntax_trees import parsed

ROOT = Path(__file__).parents[2]
LEDGER = (*(f"FC-{i:02d}" for i in range(1, 52)), *(f"RES-{i:02d}" for i in range(1, 16)),
          *(f"LEAKY-{i:02d}" for i in range(1, 26)))  # fmt: skip
PAPERS = ("Jacot 2023a", "Jacot 2023b", "Jacot and Kaiser 2024", "Boix-Adsera 2025")


@dataclass(frozen=True)
class Row:
    source: str
    statement: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]
    figure: str


def read_table(text: str) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not re.fullmatch(r"[A-Z]+-\d+", cells[0]):
            continue
        assert len(cells) == 6, f"{cells[0]}: {len(cells)} cells, needs id, source, statement, function, test, figure"
        assert cells[0] not in rows, f"{cells[0]} has two rows"
        functions, tests = ([part.strip("` ") for part in cell.split(",")] for cell in cells[3:5])
        rows[cells[0]] = Row(cells[1], cells[2], tuple(functions), tuple(tests), cells[5])
    return rows


def markers(source: str) -> set[str]:
    """Ids that a test file carries: first arguments of calls to `theorem`."""
    calls = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Call)]
    named = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "theorem"]
    return {str(a.value) for c in named for a in c.args if isinstance(a, ast.Constant)}


def text_of(test: Path) -> str:
    """A test file and the files of tests/ that it imports its helpers from."""
    source = test.read_text()
    imported = [node.module for node in ast.walk(parsed(source)) if isinstance(node, ast.ImportFrom)]
    helpers = [ROOT / "tests" / f"{module}.py" for module in imported]
    return "\n".join([source, *(helper.read_text() for helper in helpers if helper.is_file())])


def assert_importable(dotted: str) -> None:
    module, _, name = dotted.rpartition(".")
    assert module, f"{dotted!r} is no dotted name"
    assert hasattr(import_module(module), name), f"{dotted} cannot be imported"


def assert_row_stands(identifier: str, row: Row) -> None:
    assert row.statement, f"{identifier} states nothing"
    named = [paper for paper in PAPERS if re.search(rf"{paper}, \w", row.source)]
    assert named or row.source == "ours", f"{identifier} names no paper with a place"
    assert row.figure, f"{identifier}: write - where there is no figure"
    for name in re.findall("`(.+?)`", row.figure):
        assert name in FIGURES, f"{identifier}: there is no figure {name}"
    for dotted in row.functions:
        assert_importable(dotted)
    for test in row.tests:
        path = ROOT / "tests" / test
        assert path.is_file(), f"{identifier}: {test} does not exist"
        assert identifier in markers(path.read_text()), f"{identifier}: {test} does not carry its marker"
    used = "\n".join(text_of(ROOT / "tests" / test) for test in row.tests)
    for dotted in row.functions:
        name = dotted.rpartition(".")[2]
        assert re.search(rf"\b{name}\b", used), f"{identifier}: no test of the row uses {name}"


def test_the_page_names_the_papers_that_its_rows_cite() -> None:
    page = " ".join((ROOT / "docs" / "theorems.md").read_text().split())
    citation = (ROOT / "CITATION.cff").read_text().lower()
    for paper in PAPERS:
        [title] = re.findall(rf"\*\*{paper}\*\*: [^*]+, \*([^*]+)\*", page)
        assert title.lower() in citation, f"CITATION.cff does not refer to {title}"


ROWS = read_table((ROOT / "docs" / "theorems.md").read_text())


@pytest.mark.parametrize("identifier", sorted({*LEDGER, *ROWS}))
def test_every_statement_has_a_row_that_stands(identifier: str) -> None:
    assert identifier in ROWS, f"{identifier} has no row in docs/theorems.md"
    assert_row_stands(identifier, ROWS[identifier])


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "theorems").glob("test_*.py")), ids=lambda p: p.stem)
def test_every_theorem_test_names_statements_that_list_it(path: Path) -> None:
    found = markers(path.read_text())
    assert found, f"{path.name} names no id"
    for identifier in found:
        assert identifier in ROWS, f"{path.name} names {identifier}, which has no row"
        tests = ROWS[identifier].tests
        assert f"theorems/{path.name}" in tests, f"the row of {identifier} does not list {path.name}"


def test_the_checks_catch_broken_rows() -> None:
    good = ROWS["FC-09"]
    assert_row_stands("FC-09", good)
    good_cells = (good.statement, good.functions, good.tests, "-")
    broken = {
        "cannot be imported": Row("ours", "s", ("isthmus.theory.no_such_cost",), good.tests, "-"),
        "does not exist": Row("ours", "s", good.functions, ("theorems/test_nothing.py",), "-"),
        "does not carry": Row("ours", "s", good.functions, ("theorems/test_fc_10_diagonal_cost.py",), "-"),
        "is no dotted name": Row("ours", "s", ("experiment",), good.tests, "-"),
        "no test of the row uses": Row("ours", "s", ("isthmus.theory.resnet_cost",), good.tests, "-"),
        "names no paper": Row("Jacot 2023", *good_cells),
        "there is no figure": Row("ours", "s", good.functions, good.tests, "`no-such-figure`"),
    }
    for message, row in broken.items():
        with pytest.raises(AssertionError, match=message):
            assert_row_stands("FC-09", row)
    with pytest.raises(AssertionError, match="two rows"):
        read_table("| FC-01 | ours | s | a.b | c | - |\n| FC-01 | ours | s | a.b | c | - |")
