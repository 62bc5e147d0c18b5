"""Every public function of the theory room shows itself in an example that runs and gives what it says."""

import doctest
import inspect
from collections.abc import Iterator

import pytest
import torch

from isthmus import theory
from shape_checks import own_shape_checks

FUNCTIONS = sorted(name for name in theory.__all__ if inspect.isfunction(getattr(theory, name)))


@pytest.fixture(autouse=True)
def _as_users_run_it() -> Iterator[None]:
    """The run-time type checker of the tests knows nothing of lists of numbers: users do not have it."""
    with own_shape_checks():
        yield


def failures(text: str, name: str) -> str:
    """What the examples of a docstring give instead of what they say; they are to be there."""
    found = doctest.DocTestParser().get_doctest(text, {"theory": theory, "torch": torch}, name, None, None)
    assert found.examples, f"{name} has no example"
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(found, out=told.append)
    return "".join(told)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example_that_runs(name: str) -> None:
    text = inspect.getdoc(getattr(theory, name)) or ""
    assert f"theory.{name}(" in text
    assert failures(text, name) == ""


def test_a_wrong_example_and_a_missing_one_are_seen() -> None:
    text = inspect.getdoc(theory.numerical_rank) or ""
    assert "Got:\n    1" in failures(text.removesuffix("1") + "2", "numerical_rank")
    with pytest.raises(AssertionError, match="nothing has no example"):
        failures("No example.", "nothing")


def test_the_room_lists_functions_and_records_only() -> None:
    listed = dir(theory)
    assert listed == sorted(set(listed))
    assert not [name for name in listed if inspect.ismodule(getattr(theory, name))]
    assert set(FUNCTIONS) < set(listed)
