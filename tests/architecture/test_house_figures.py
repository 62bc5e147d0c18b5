"""How easily the house is seen through, in numbers that may fall and not grow: files crossed, kin names, small files.

`PYTHONPATH=tests python tests/architecture/test_house_figures.py` prints the table; who lowers a number lowers its
limit here.
"""

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from syntax_trees import parsed

SRC = Path(__file__).parents[2] / "src" / "isthmus"
SMALL, WIDE = 60, 8  # lines of a file, all of them; arguments of a function
Sources = Mapping[str, str]  # path below src/isthmus -> text

# the figures with the most that each may be
LIMITS = {
    "files crossed by discover": 83,  # in cli and discovery; 14 make groups, 5 work on doubts, 1 looks at what is left
    "dict[str, Any] away from files": 3,
    "noqa: PLR0913": 9,
    "functions of more than 8 arguments": 11,  # diagnose takes its device by contract
    "files under 60 lines": 30,
    "class names used twice": 0,
    "module names used twice": 0,
}
# where a dict[str, Any] is what JSON, TOML, a database or a checkpoint holds
EDGES = (
    "discovery/files/", "sweeps/index.py", "sweeps/slurm.py", "tasks/door.py", "tasks/parquet.py",
    "training/checkpoint.py", "writing/",
)  # fmt: skip
_COMMAND = "a command has the name of the function that it calls"
_PICTURE = "a picture has the name of what it shows"
SHARED_MODULES = {
    "diagnose": _COMMAND,
    "discover": _COMMAND,
    "figure": _COMMAND,
    "fit": _COMMAND,
    "combinations": _PICTURE,
    "curves": _PICTURE,
    "images": _PICTURE,
    "interpretation": _PICTURE,
    "spectra": _PICTURE,
    "symmetry": "a figure has the name of its task",
    "leaky": "formulas, weights and tables of one kind of network, each in its room",
}
CROSSED_ROOMS = ("isthmus.cli.", "isthmus.discovery.")
START = ("isthmus.cli.discover", "discover")


def sources() -> dict[str, str]:
    return {p.relative_to(SRC).as_posix(): p.read_text(encoding="utf-8") for p in sorted(SRC.rglob("*.py"))}


def small_files(files: Sources) -> list[str]:
    """Without those that Python asks for, which say what a room is."""
    kept = {path: text for path, text in files.items() if Path(path).stem not in {"__init__", "__main__"}}
    return [path for path, text in kept.items() if len(text.splitlines()) < SMALL]


def twice(places: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def classes_used_twice(files: Sources) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in files.items():
        for node in parsed(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    return twice(places)


def modules_used_twice(files: Sources) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        places[Path(path).stem].append(path)
    return {name: found for name, found in twice(places).items() if name not in {"__init__", *SHARED_MODULES}}


def loose_dicts(files: Sources) -> list[str]:
    return [
        f"{path}:{node.lineno}"
        for path, text in files.items()
        if not path.startswith(EDGES) and "Any" in text  # the others need no reading
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]"
    ]


def wide_functions(files: Sources) -> list[str]:
    found: list[str] = []
    for path, text in files.items():
        for node in ast.walk(parsed(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len(names) - (names[:1] in (["self"], ["cls"])) > WIDE:
                    found.append(f"{path}: {node.name}")
    return found


def lines_of_code(text: str) -> int:
    """Lines that hold code: no comments, docstrings or blanks."""
    bare = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = {
        number
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in bare
        for number in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


class Definitions:
    """The functions, classes and constants of all modules, and which of them the text of one names.

    Names are followed through imports to where they are defined; what stands in annotations alone, and a method of an
    object that another module made, is not followed.
    """

    def __init__(self, files: Sources) -> None:
        self.of: dict[str, dict[str, ast.stmt]] = {}
        self.imported: dict[str, dict[str, tuple[str, str]]] = {}
        for path, text in files.items():
            module = ".".join(("isthmus", *Path(path).with_suffix("").parts)).removesuffix(".__init__")
            tree = parsed(text)
            self.of[module] = {name: node for node in tree.body for name in _defined(node)}
            self.imported[module] = {
                alias.asname or alias.name: (node.module, alias.name)
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("isthmus")
                for alias in node.names
            }

    def home(self, module: str, name: str) -> tuple[str, str] | None:
        """Where a name of a module is defined; (module, "") for a module."""
        seen: set[tuple[str, str]] = set()
        while (module, name) not in seen:
            seen.add((module, name))
            if name in self.of.get(module, {}):
                return module, name
            if name not in self.imported.get(module, {}):
                break
            module, name = self.imported[module][name]
        return (f"{module}.{name}", "") if f"{module}.{name}" in self.of else None

    def named_by(self, module: str, node: ast.stmt) -> Iterator[tuple[str, str]]:
        skipped = {id(part) for annotation in _annotations(node) for part in ast.walk(annotation)}
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and id(part) not in skipped and (home := self.home(module, part.id)):
                yield home
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                place = self.home(module, part.value.id)
                if place and not place[1] and (home := self.home(place[0], part.attr)):
                    yield home

    def modules_from(self, start: tuple[str, str], rooms: tuple[str, ...]) -> set[str]:
        """The modules in which the definitions stand that are reached from `start` without leaving the rooms."""
        reached, waiting = {start}, [start]
        while waiting:
            module, name = waiting.pop()
            node = self.of[module].get(name)
            for home in self.named_by(module, node) if node is not None else ():
                if home not in reached and home[1] and home[0].startswith(rooms):
                    reached.add(home)
                    waiting.append(home)
        return {module for module, _ in reached}


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _annotations(node: ast.stmt) -> Iterator[ast.expr]:
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef) and part.returns is not None:
            yield part.returns
        elif isinstance(part, ast.arg | ast.AnnAssign) and part.annotation is not None:
            yield part.annotation


FIGURES: dict[str, Callable[[Sources], int]] = {
    "files crossed by discover": lambda files: len(Definitions(files).modules_from(START, CROSSED_ROOMS)),
    "dict[str, Any] away from files": lambda files: len(loose_dicts(files)),
    "noqa: PLR0913": lambda files: sum(text.count("noqa: PLR0913") for text in files.values()),
    "functions of more than 8 arguments": lambda files: len(wide_functions(files)),
    "files under 60 lines": lambda files: len(small_files(files)),
    "class names used twice": lambda files: len(classes_used_twice(files)),
    "module names used twice": lambda files: len(modules_used_twice(files)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_of_the_house_grows(name: str) -> None:
    assert FIGURES[name](sources()) <= LIMITS[name], table()


def table() -> str:
    files = sources()
    rows = [f"{measure(files):6} of {LIMITS[name]:3}  {name}" for name, measure in FIGURES.items()]
    definitions = Definitions(files)
    for what, rooms in (("with training", (*CROSSED_ROOMS, "isthmus.training.")), ("in all rooms", ("isthmus.",))):
        rows.append(f"{len(definitions.modules_from(START, rooms)):6}         files crossed by discover {what}")
    rows.append(f"{sum(map(lines_of_code, files.values())):6}         lines of code")
    for listed in (classes_used_twice(files), modules_used_twice(files)):
        rows += [f"{name}: {', '.join(places)}" for name, places in listed.items()]
    return "\n".join(rows)


HOUSE = {
    "cli/discover.py": "def discover():\n    from isthmus.cli.run import run_in\n    return run_in()\n",
    "cli/run.py": "from isthmus.discovery import search\nfrom isthmus.theory.rank import rank\n"
    "def run_in(x: 'int' = 1) -> None:\n    search(rank)\n\ndef other():\n    pass\n",
    "discovery/__init__.py": "from isthmus.discovery.story import search\n",
    "discovery/story.py": "from isthmus.discovery import rules\nfrom isthmus.discovery.kin import Kin\n"
    "def search(kin: Kin):\n    return rules.SLACK\n",
    "discovery/rules.py": "SLACK = 0.01\n",
    "discovery/kin.py": "class Kin:\n    def f(self, a, b, c, d, e, f, g, h, i): ...\n",
    "theory/rank.py": "def rank(): ...\n",
}


def test_the_figures_are_what_they_are_called() -> None:
    crossed = Definitions(HOUSE).modules_from(START, CROSSED_ROOMS)
    assert crossed == {f"isthmus.{name}" for name in ("cli.discover", "cli.run", "discovery.story", "discovery.rules")}
    assert "isthmus.theory.rank" in Definitions(HOUSE).modules_from(START, ("isthmus.",))
    assert wide_functions(HOUSE) == ["discovery/kin.py: f"]
    assert wide_functions({"a.py": "def f(self, a, b, c, d, e, f, g, h): ...\n"}) == []
    kin = {
        **HOUSE,
        "theory/kin.py": "class Kin: ...\nclass _Own: ...\n",
        "plots/fit.py": "class _Own: ...\n",
        "cli/fit.py": "",
    }
    assert classes_used_twice(kin) == {"Kin": ["discovery/kin.py", "theory/kin.py"]}
    assert modules_used_twice(kin) == {"kin": ["discovery/kin.py", "theory/kin.py"]}
    assert small_files({"a.py": "x = 1\n" * 60, "b.py": "x = 1\n" * 59}) == ["b.py"]
    loose = "x: dict[str, Any] = {}\ny: dict[str, int] = {}\n"
    assert loose_dicts({"theory/a.py": loose, "discovery/files/b.py": loose}) == ["theory/a.py:1"]
    assert lines_of_code('"""Says what."""\n\n# why\nx = (\n    1\n)\n\ndef f():\n    """What."""\n    return x\n') == 5


if __name__ == "__main__":
    print(table())  # noqa: T201
