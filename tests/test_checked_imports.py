"""The type checks of the tests see what is wrong, and the library under test is imported with them."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
import torch
from jaxtyping import TypeCheckError

from checked_imports import CheckingFinder, built, check_package, has_shapes, resolved_hints
from isthmus import theory
from isthmus.theory import linear_costs
from shape_checks import own_shape_checks

PACKAGE = "checked_on_import"
SOURCE = """
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

if TYPE_CHECKING:
    from fractions import Fraction


def count(x: int) -> int:
    return x


def count_wrongly(x: int) -> int:
    return str(x)


def product(left: Float[Tensor, "n k"], right: Float[Tensor, "k m"]) -> Float[Tensor, "n m"]:
    return left @ right


def product_turned(left: Float[Tensor, "n k"], right: Float[Tensor, "k m"]) -> Float[Tensor, "n m"]:
    return (left @ right).mT


def either(x: Float[Tensor, "n"] | None, y: list[Float[Tensor, "n"]]) -> None: ...


def adder(step: int) -> Callable[[int], int]:
    def add(x: int) -> int:
        return x + step

    return add


def subtracter(step: int) -> Callable[[int], int]:
    def subtract(x: int) -> int:
        return x - step

    return subtract


def scaler(factor: float) -> Callable[[Tensor], Tensor]:
    def scale(x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        return factor * x

    return scale


def rows(x: Float[Tensor, "n d"]) -> Iterator[Float[Tensor, "d"]]:
    yield from x


@dataclass(frozen=True, slots=True)
class Pair:
    first: int
    second: "Pair | None" = None

    @classmethod
    def of(cls, first: int) -> "Pair":
        return cls(first) if first else None

    @property
    def sum(self) -> int:
        def inner(x: int) -> int:
            return x

        return inner(0.5)


def unknown_here(x: "Fraction", y: int, *, z: "zip[int]" = ()) -> int:
    return y
"""
QUOTED = """
from dataclasses import dataclass
from jaxtyping import Float as Real
from torch import Tensor


@dataclass
class Row:
    numbers: "Real[Tensor, 'd']"


def first(rows: "list[Real[Tensor, 'n d']] | Real[Tensor, 'n d']") -> Tensor:
    return rows[0]


def plain(x: int) -> int:
    return x
"""
X = torch.ones(2, 3)


def imported(folder: Path, *, types: bool) -> Iterator[ModuleType]:
    finder = CheckingFinder(PACKAGE, types=types)
    sys.modules.pop(PACKAGE, None)
    (folder / f"{PACKAGE}.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, finder)
    yield __import__(PACKAGE)
    sys.meta_path.remove(finder)
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A module written for this test, imported as the library is by the slow tests."""
    yield from imported(tmp_path_factory.mktemp("package"), types=True)


@pytest.fixture(scope="module")
def shapes_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The same module as the fast tests import the library."""
    yield from imported(tmp_path_factory.mktemp("package"), types=False)


def test_what_fits_passes(module: ModuleType) -> None:
    assert module.count(3) == 3
    assert torch.equal(module.product(X, X.mT), X @ X.mT)
    assert module.Pair(1, module.Pair(2)) == module.Pair(1, module.Pair.of(2))
    assert [len(row) for row in module.rows(X)] == [3, 3]
    assert module.unknown_here(object(), 1) == 1
    module.either(None, [X[0], X[1]])


WRONG = {
    "argument": lambda m: m.count(3.0),
    "keyword": lambda m: m.count(x="3"),
    "result": lambda m: m.count_wrongly(3),
    "axes": lambda m: m.product(X[0], X.mT),
    "sizes of two arguments": lambda m: m.product(X, X),
    "sizes of the result": lambda m: m.product_turned(X, torch.ones(3, 4)),
    "sizes in a list": lambda m: m.either(X[0], [X[:, 0]]),
    "kind of number": lambda m: m.product(X.int(), X.mT.int()),
    "field": lambda m: m.Pair("1"),
    "quoted name": lambda m: m.Pair(1, 2),
    "result of a method": lambda m: m.Pair.of(0),
    "function in a property": lambda m: m.Pair(1).sum,
    "argument beside an unknown name": lambda m: m.unknown_here(1, "1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_seen(module: ModuleType, case: str) -> None:
    with pytest.raises(TypeCheckError):
        WRONG[case](module)


SHAPES = ("axes", "sizes of two arguments", "sizes of the result", "sizes in a list", "kind of number")


@pytest.mark.parametrize("case", WRONG)
def test_the_fast_tests_see_wrong_shapes(shapes_alone: ModuleType, case: str) -> None:
    if case in SHAPES:
        with pytest.raises(TypeCheckError):
            WRONG[case](shapes_alone)
    else:  # the control: of types alone they leave the affair to the type checker
        with suppress(AttributeError, TypeError):
            WRONG[case](shapes_alone)


def test_fields_and_functions_with_quoted_shapes_are_checked_in_the_fast_tests(tmp_path: Path) -> None:
    (tmp_path / "quoted_shapes.py").write_text(QUOTED)
    sys.path.insert(0, str(tmp_path))
    finder = CheckingFinder("quoted_shapes", types=False)
    sys.meta_path.insert(0, finder)
    try:
        made = __import__("quoted_shapes")
        made.Row(X[0])
        for wrong in (lambda: made.Row(X), lambda: made.first(X[0])):
            with pytest.raises(TypeCheckError):
                wrong()
        assert not hasattr(made.plain, "__wrapped__")
    finally:
        sys.meta_path.remove(finder)
        sys.path.remove(str(tmp_path))
        del sys.modules["quoted_shapes"]


def test_every_function_of_the_library_that_has_shapes_is_checked() -> None:
    unchecked = list[str]()
    for name in list(sys.modules):
        if name.partition(".")[0] == "isthmus":
            for function in functions_of(sys.modules[name]):
                if not hasattr(function, "__wrapped__") and any(map(has_shapes, resolved_hints(function).values())):
                    unchecked.append(f"{name}.{function.__qualname__}")
    assert unchecked == []


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """Those that the module defines, and the methods of its classes."""
    for thing in vars(module).values():
        members = vars(thing).values() if inspect.isclass(thing) else [thing]
        for member in members:
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(inner, FunctionType) and inner.__module__ == module.__name__:
                yield inner


def test_sizes_are_forgotten_from_call_to_call_also_after_an_error(module: ModuleType) -> None:
    for size in (2, 3, 4):
        assert module.product(torch.ones(size, size + 1), torch.ones(size + 1, 1)).shape == (size, 1)
        with pytest.raises(TypeCheckError):
            module.product(torch.ones(size, size), torch.ones(size + 1, 1))


def test_the_library_is_checked_and_can_be_run_as_by_its_users() -> None:
    with pytest.raises(TypeCheckError, match="linear_cost"):  # of its own file: the room looks at arguments before
        linear_costs.linear_cost(torch.eye(2), depth="2")  # pyright: ignore[reportArgumentType]
    with own_shape_checks(), pytest.raises(TypeError, match="linear_cost") as told:
        theory.linear_cost(torch.eye(2), depth="2")  # pyright: ignore[reportArgumentType]
    assert not isinstance(told.value, TypeCheckError)


def test_each_of_the_functions_that_one_definition_makes_is_checked(module: ModuleType) -> None:
    for step in range(20):
        add = module.adder(step)
        assert add(1) == 1 + step, "of its own"
        with pytest.raises(TypeCheckError, match="add"):
            add(0.5)
        scale = module.scaler(float(step))
        assert torch.equal(scale(X), step * X), "of its own"
        with pytest.raises(TypeCheckError):
            scale(X[0])


def test_one_definition_is_built_into_one_checker(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    count = list[str]()

    def counting(function: FunctionType) -> object:
        count.append(function.__name__)
        return built(function)

    monkeypatch.setattr("checked_imports.built", counting)
    for step in range(20):
        assert module.subtracter(step)(1) == 1 - step
    assert count == ["subtracter", "subtract"]


def test_a_function_keeps_its_name_signature_and_source(module: ModuleType) -> None:
    assert module.count.__name__ == "count"
    assert str(inspect.signature(module.count)) == "(x: int) -> int"
    assert inspect.getsource(module.count) == "def count(x: int) -> int:\n    return x\n"


def test_it_is_too_late_for_what_is_imported() -> None:
    with pytest.raises(RuntimeError, match="imported already"):
        check_package("isthmus")
