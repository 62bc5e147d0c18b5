"""The pages and the public names tell the truth: paths exist, names resolve, docstrings name every argument."""

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import isthmus
from syntax_trees import parsed

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "isthmus"
PAGES = ("docs/map.md", "docs/notation.md")
FUNCTIONS = [name for name in isthmus.__all__ if inspect.isfunction(getattr(isthmus, name))]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def paths_in(text: str) -> list[str]:
    return [token for token in quoted(text) if "/" in token]


def missing_tests(text: str) -> list[str]:
    """Tests named as FILE::FUNCTION that are not there."""
    named = [token for token in paths_in(text) if "::" in token]
    files = {token: ROOT / token.partition("::")[0] for token in named}
    return [
        token for token, path in files.items()
        if not (path.is_file() and re.search(rf"^def {re.escape(token.partition('::')[2])}\(", path.read_text(), re.M))
    ]  # fmt: skip


def names_in(text: str) -> list[str]:
    return [token for token in quoted(text) if re.fullmatch(r"isthmus(\.\w+)+(\(\w+\))?", token)]


def missing_paths(text: str) -> list[str]:
    return [path for path in paths_in(text) if not (ROOT / path.partition("::")[0]).exists()]


def resolve(dotted: str) -> object:
    """What a dotted name stands for; with an argument in parentheses, its parameter."""
    path, _, argument = dotted.removesuffix(")").partition("(")
    first, *rest = path.split(".")
    found: object = importlib.import_module(first)
    walked = first
    for part in rest:
        walked = f"{walked}.{part}"
        # a field without a default is no attribute of its class unless the class is slotted
        if dataclasses.is_dataclass(found) and part in {f.name for f in dataclasses.fields(found)}:
            found = {f.name: f for f in dataclasses.fields(found)}[part]
        elif inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(walked)
        else:
            found = getattr(found, part)
    if argument:
        assert callable(found)
        found = inspect.signature(found).parameters[argument]
    return found


def missing_names(text: str) -> list[str]:
    missing: list[str] = []
    for name in names_in(text):
        try:
            resolve(name)
        except (AttributeError, KeyError, ModuleNotFoundError):
            missing.append(name)
    return missing


def wrong_rooms(page: str, there: set[str]) -> list[str]:
    """What the map says wrongly about which rooms there are."""
    to_come = set(re.findall(r"^\| (\w+) \(to come\)", page, re.MULTILINE))
    listed = {
        Path(path).name.removesuffix(".py") for path in re.findall(r"^\| `(src/isthmus/\w+(?:\.py)?)`", page, re.M)
    }
    return [
        *(f"{room} is there: replace '(to come)' by its path" for room in sorted(to_come & there)),
        *(f"{room} is not listed under Rooms" for room in sorted(there - listed - to_come)),
    ]


def checked_names(source: str) -> dict[str, str]:
    """Name -> module of the imports in the TYPE_CHECKING block."""
    [block] = [
        n for n in parsed(source).body
        if isinstance(n, ast.If) and isinstance(n.test, ast.Name) and n.test.id == "TYPE_CHECKING"
    ]  # fmt: skip
    return {
        str(alias.asname): str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def documentation_gaps(function: Callable[..., object]) -> list[str]:
    """What the docstring of a function leaves out: a section, or an argument."""
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    if not text:
        return ["docstring"]
    arguments = re.search(r"^Args:\n((?:    .*\n|\n)*)", text + "\n", re.MULTILINE)
    named = re.findall(r"^    ([\w, ]+):", arguments.group(1), re.MULTILINE) if arguments else []
    told = {name.strip() for line in named for name in line.split(",")}
    gaps = [name for name in signature.parameters if name not in told]
    returns_nothing = signature.return_annotation is None
    return gaps + (["Returns"] if signature.parameters and "Returns:" not in text and not returns_nothing else [])


@pytest.mark.parametrize("page", PAGES)
def test_every_path_and_name_of_a_page_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    assert missing_paths(text) == []
    assert missing_names(text) == []
    assert len(paths_in(text)) + len(names_in(text)) >= 20, "the page is read as it is written"


def test_a_wrong_path_and_a_wrong_name_are_seen() -> None:
    page = "see `src/isthmus/theory/spectra.py`, `src/isthmus/theory/spectre.py`, `isthmus.fit(ridge)`, `x`, "
    page += "`isthmus.fit(lam)`, `isthmus.LayerState.weight`, `isthmus.LayerState.wait`, `isthmus.theory.spectra`, "
    page += "`isthmus.theory.spectres`"
    assert missing_paths(page) == ["src/isthmus/theory/spectre.py"]
    assert missing_names(page) == ["isthmus.fit(lam)", "isthmus.LayerState.wait", "isthmus.theory.spectres"]


def rooms() -> set[str]:
    files = (p for p in SRC.iterdir() if (p / "__init__.py").exists() or p.suffix == ".py")
    return {p.name.removesuffix(".py") for p in files} - {"__init__", "__main__"}


def test_the_map_lists_every_room() -> None:
    assert wrong_rooms((ROOT / "docs/map.md").read_text(), rooms()) == []


def test_a_forgotten_room_and_one_that_has_come_are_seen() -> None:
    page = "| `src/isthmus/theory` | pure |\n| cli (to come) | commands |\n"
    assert wrong_rooms(page, {"theory"}) == []
    assert wrong_rooms(page, {"theory", "cli", "plots"}) == [
        "cli is there: replace '(to come)' by its path",
        "plots is not listed under Rooms",
    ]


@pytest.mark.parametrize("page", sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")))
def test_links_and_notes_name_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    own = [t for t in paths_in(text) if t.split("/")[0] in {"src", "tests", "docs", "benchmarks", "examples"}]
    assert [t for t in own if not (ROOT / t.partition("::")[0]).exists()] == []
    assert missing_tests(text) == []
    assert missing_names(text) == []


def test_every_error_of_a_paper_has_its_test() -> None:
    lines = (ROOT / "docs/errata.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| place")]
    assert len(rows) >= 25, "the page is read as it is written"
    assert [row for row in rows if row.count("::test_") != 1] == []


def test_a_test_that_is_not_there_is_seen() -> None:
    there = "tests/architecture/test_docs.py::test_a_test_that_is_not_there_is_seen"
    assert missing_tests(f"`{there}` `{there}_twice` `tests/nothing.py::test_x`") == [
        f"{there}_twice",
        "tests/nothing.py::test_x",
    ]


@pytest.mark.parametrize("name", isthmus.__all__)
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    found = getattr(isthmus, name)
    assert isinstance(found, str) if name == "__version__" else inspect.getdoc(found)
    assert name in dir(isthmus)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Resnet'"):
        _ = isthmus.Resnet  # pyright: ignore[reportAttributeAccessIssue]


def test_type_checkers_and_the_table_see_the_same_names() -> None:
    source = (SRC / "__init__.py").read_text()
    table = isthmus._HOME | dict.fromkeys(isthmus._ROOMS, "isthmus")  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert checked_names(source) == table
    assert checked_names(source.replace("import walk as walk", "import wake as wake")) != table
    assert checked_names(source.replace("isthmus.training import fit", "isthmus.networks import fit")) != table


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_of_a_public_function_is_documented(name: str) -> None:
    assert documentation_gaps(getattr(isthmus, name)) == []


def test_undocumented_arguments_and_results_are_seen() -> None:
    def half(x: int, y: int) -> int:
        """The sum.

        Args:
            x: one number: the first.
        """
        return x + y

    def whole(x: int, y: int) -> int:
        """The sum.

        Args:
            x, y: numbers.

        Returns:
            x + y.
        """
        return x + y

    def silent(x: int) -> None:
        """Nothing.

        Args:
            x: a number.
        """

    assert documentation_gaps(half) == ["y", "Returns"]
    assert documentation_gaps(whole) == documentation_gaps(silent) == []
    assert documentation_gaps(lambda: None) == ["docstring"]
