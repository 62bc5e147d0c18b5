"""Every function and dataclass of the library checks its annotations, shapes included, while the tests run.

The import hook of jaxtyping would do the same, but checks all arguments a second time beside the result, binds the
signature on every call and builds two checkers for each function at import: more than half of the time of the tests.
Here a function gets one checker, on its first call, and shapes are remembered only where annotations have some. A
function within another is made anew each time that this is called, and a checker takes a millisecond to build: it takes
over the checker of the first that its definition made.

Types are the affair of `make check` too, which reads every line, so `make test` checks those functions alone that have
shapes: with the others it takes a quarter longer. With `CHECK_TYPES=1` in the environment, as in `.ci/run`, in the slow
tests and on other processors, all are checked. Who gives other types than these, to see them refused or a double taken,
says so: `pytest.mark.other_types`.
"""

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, get_args, get_type_hints

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError, config, jaxtyped

DECORATOR = "__checked__"
SETTINGS = BeartypeConf(violation_type=TypeCheckError)
CHECKED = "__beartype_func"  # the argument in which a checker of beartype keeps its function
_first: dict[tuple[str, str, CodeType], tuple[Callable[..., object], bool]] = {}  # of functions within others


def has_shapes(hint: object) -> bool:
    return (inspect.isclass(hint) and issubclass(hint, AbstractArray)) or any(map(has_shapes, get_args(hint)))


def resolved_hints(function: FunctionType) -> dict[str, object]:
    """Its annotations, quoted ones looked up; what only type checkers understand is left out."""
    hints: dict[str, object] = dict(function.__annotations__)
    for name in [name for name, hint in hints.items() if isinstance(hint, str)]:
        quoted = SimpleNamespace(__annotations__={name: hints[name]})
        try:
            hints |= get_type_hints(quoted, function.__globals__, include_extras=True)
        except (NameError, TypeError):  # imported for type checkers only; zip[...]
            del hints[name]
    return hints


def built(function: FunctionType) -> tuple[Callable[..., object], bool]:
    """The function between a check of its arguments and one of its result, and whether these have shapes."""
    function.__annotations__ = hints = resolved_hints(function)
    return beartype(conf=SETTINGS)(function), any(map(has_shapes, hints.values()))


def taken_over(checking: Callable[..., object], function: FunctionType | None) -> Callable[..., object]:
    """The same checks around another function of the same definition."""
    assert isinstance(checking, FunctionType)
    other = FunctionType(checking.__code__, checking.__globals__, checking.__name__, checking.__defaults__)
    other.__kwdefaults__ = {**(checking.__kwdefaults__ or {}), CHECKED: function}
    return other


def checker(function: FunctionType) -> Callable[..., object]:
    """What checks a function; equal names of axes are equal sizes."""
    definition = (function.__module__, function.__qualname__, function.__code__)
    if definition in _first:
        template, shaped = _first[definition]
        checking = taken_over(template, function)
    else:
        checking, shaped = built(function)
        if "<locals>" in function.__qualname__ and CHECKED in (getattr(checking, "__kwdefaults__", None) or {}):
            _first[definition] = taken_over(checking, None), shaped  # what the first one holds is not kept alive
    if not shaped:
        return checking

    def call(*args: Any, **kwargs: Any) -> object:
        with jaxtyped("context"):
            return checking(*args, **kwargs)

    return call


def checked_function(function: FunctionType) -> Callable[..., object]:
    ready: Callable[..., object] | None = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> object:
        nonlocal ready
        if config.jaxtyping_disable:
            return function(*args, **kwargs)
        if ready is None:
            ready = checker(function)
        return ready(*args, **kwargs)

    return call


def checked(thing: Any) -> Any:
    """A function that checks its annotations; a class whose written `__init__` does (dataclasses write theirs)."""
    if isinstance(thing, FunctionType):
        return checked_function(thing) if thing.__annotations__ else thing
    own = vars(thing).get("__init__")
    if "__dataclass_fields__" in vars(thing) and isinstance(own, FunctionType) and not hasattr(own, "__wrapped__"):
        thing.__init__ = checked(own)
    return thing


def names_of_shapes(source: str) -> frozenset[str]:
    """What a module imports from jaxtyping, by the names that it uses, and its own names for such annotations."""
    imports = re.findall(r"^from jaxtyping import (.+)$", source, re.MULTILINE)
    names = {alias.split()[-1] for line in imports for alias in line.split(",")}
    for name, value in re.findall(r"^(\w+) = (.+)$", source, re.MULTILINE):  # Points = Float[np.ndarray, "n d"]
        if any(f"{known}[" in value for known in names):
            names.add(name)
    return frozenset(names)


def names_in(package: str) -> frozenset[str]:
    """Those of all modules of a package: what one defines others import."""
    spec = PathFinder.find_spec(package)
    folders = (spec and spec.submodule_search_locations) or ()
    files = [path for folder in folders for path in Path(folder).rglob("*.py")]
    texts = [text for path in files if "jaxtyping" in (text := path.read_text(encoding="utf-8"))]
    return frozenset[str]().union(*map(names_of_shapes, texts))


def mentions(node: ast.FunctionDef | ast.ClassDef, names: frozenset[str]) -> bool:
    """Whether annotations of a function, or of a class's fields, hold one of the names."""
    if isinstance(node, ast.ClassDef):
        hints: list[ast.expr | None] = [field.annotation for field in node.body if isinstance(field, ast.AnnAssign)]
    else:
        taken = node.args
        arguments = (*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg)
        hints = [node.returns, *(argument.annotation for argument in arguments if argument is not None)]
    words = [word for hint in hints if hint is not None for word in ast.walk(hint)]
    named = {word.id for word in words if isinstance(word, ast.Name)}
    named |= {word.attr for word in words if isinstance(word, ast.Attribute)}
    for word in words:
        if isinstance(word, ast.Constant) and isinstance(word.value, str):  # quoted
            named |= set(re.findall(r"\w+", word.value))
    return not named.isdisjoint(names)


def decorate(statements: Sequence[ast.AST], names: frozenset[str] | None = None) -> None:
    """Functions at every depth get the decorator innermost, classes outermost; given names, those that mention one."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (names is None or mentions(node, names)):
            name = ast.copy_location(ast.Name(DECORATOR, ast.Load()), node)
            node.decorator_list.insert(0 if isinstance(node, ast.ClassDef) else len(node.decorator_list), name)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, ())
            decorate(inner if isinstance(inner, list) else (), names)


class CheckingLoader(SourceFileLoader):
    """Compiles a file with its functions and classes decorated; their bytecode is neither read nor kept."""

    names: frozenset[str] | None = None  # of shapes; None: whatever its annotations are

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        source = decode_source(self.get_data(path))
        names = None if self.names is None else self.names | names_of_shapes(source)
        if names is not None and names.isdisjoint(re.findall(r"\w+", source)):
            return super().get_code(fullname)
        tree = ast.parse(source, path)
        decorate(tree.body, names)
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[DECORATOR] = checked
        super().exec_module(module)


class CheckingFinder(MetaPathFinder):
    """Finds the modules of one package as Python does, for `CheckingLoader`."""

    def __init__(self, package: str, *, types: bool = True) -> None:
        self.package, self.names = package, None if types else names_in(package)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = CheckingLoader(spec.loader.name, spec.loader.path)
            spec.loader.names = self.names
        return spec


def check_package(package: str, *, types: bool = True) -> None:
    """From now on; too late for a package that was imported before. Without `types`, where there are shapes alone."""
    if package in sys.modules:
        raise RuntimeError(f"check_package({package!r}): it is imported already, so its functions go unchecked.")
    sys.meta_path.insert(0, CheckingFinder(package, types=types))
