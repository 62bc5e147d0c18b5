"""Every public function that takes numbers takes tensors, arrays and lists alike: `theory` and `constructions`.

Which argument is of which kind stands in the signatures. Odd arguments: `test_annotated`.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from isthmus import constructions, theory
from isthmus.theory.annotated import is_tensor, members
from public_calls import Calls, construction_calls, theory_calls

ROOMS: dict[ModuleType, Callable[[], Calls]] = {theory: theory_calls, constructions: construction_calls}
EVERY = [(room, name) for room, calls in ROOMS.items() for name in calls()]
everywhere = pytest.mark.parametrize(("room", "name"), EVERY, ids=[name for _, name in EVERY])


@pytest.fixture(autouse=True)
def _as_users_run_it() -> Iterator[None]:
    """The run-time type checker of the tests would speak first: users do not have it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def as_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, list | tuple):
        made = [as_arrays(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
        return np.array(made) if all(isinstance(entry, np.number) for entry in made) else type(value)(made)
    return np.array(value)[()] if isinstance(value, int | float) and not isinstance(value, bool) else value


def as_lists(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    return [as_lists(entry) for entry in value] if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType]


def parts(found: Any) -> list[Any]:
    """All numbers of a result, in networks and records too."""
    if isinstance(found, Tensor):
        return [found.detach().tolist()]
    if isinstance(found, pd.DataFrame):
        return [found.to_csv()]
    if isinstance(found, nn.Module):
        return parts([*found.parameters()])
    if is_dataclass(found):
        return parts([getattr(found, field.name) for field in fields(found)])
    return [part for entry in found for part in parts(entry)] if isinstance(found, list | tuple) else [found]  # pyright: ignore[reportUnknownVariableType]


def takes_numbers(room: ModuleType, name: str) -> bool:
    """Whether an annotation names tensors or numbers, in lists too."""

    def holds(annotation: Any) -> bool:
        inner = getattr(annotation, "__args__", ())
        return any(is_tensor(kind) or kind in (int, float) for kind in members(annotation)) or any(map(holds, inner))

    return any(holds(one.annotation) for one in inspect.signature(getattr(room, name)).parameters.values())


@everywhere
def test_arrays_and_lists_give_what_tensors_give(room: ModuleType, name: str) -> None:
    function, given = getattr(room, name), ROOMS[room]()[name]
    expected = parts(function(**given))
    for turned in (as_arrays, as_lists):
        found = parts(function(**{key: turned(value) for key, value in given.items()}))
        assert [repr(part) for part in found] == [repr(part) for part in expected], turned.__name__
    assert given or not takes_numbers(room, name)


@pytest.mark.parametrize("room", ROOMS)
def test_there_is_a_call_of_every_function_and_a_value_of_every_kind_of_argument(room: ModuleType) -> None:
    functions = {name for name in room.__all__ if inspect.isfunction(getattr(room, name))}
    assert functions == set(ROOMS[room]())
    for name in functions:
        tensors = {
            key for key, one in inspect.signature(getattr(room, name)).parameters.items()
            if any(is_tensor(kind) for kind in members(one.annotation))
        }  # fmt: skip
        either = {"x", "box", "shift", "error", "biases"}  # one of several, or none
        assert tensors - either <= set(ROOMS[room]()[name]), name


def test_whole_numbers_of_an_array_stay_whole_and_truth_is_no_depth() -> None:
    pair: Any = np.array([1, 2])
    assert theory.switch_depth(loss=(2, 1), constant=(0, 0), rank=pair, ridge=0.5) == 2
    with pytest.raises(TypeError, match=r"needs rank\[0\] as an int; got 1.0"):
        theory.switch_depth(loss=(2, 1), constant=(0, 0), rank=pair * 1.0, ridge=0.5)
    for truth in (np.array([True, True]), [True, True], torch.tensor([True, True])):
        with pytest.raises(TypeError, match="needs depth as an int; got True"):
            theory.linear_cost(torch.eye(2), depth=truth)  # pyright: ignore[reportArgumentType]


def test_masked_entries_and_other_kinds_of_values_are_refused_in_words() -> None:
    masked: Any = np.ma.masked_array([2.0, 1.0], [False, True])
    with pytest.raises(ValueError, match=r"needs (finite )?loss.*nan"):
        theory.switch_depth(loss=masked, constant=(0, 0), rank=(1, 2), ridge=0.5)
    with pytest.raises(TypeError, match="between_bijections: needs matrix as a torch tensor; got dict"):
        constructions.between_bijections({})  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="merged_composition: needs outer as a FullyConnected; got Linear"):
        constructions.merged_composition(construction_calls()["merged_composition"]["inner"], nn.Linear(2, 2))  # pyright: ignore[reportArgumentType]
