"""Every public function of `theory` answers whatever it is given, or refuses it in a sentence that names the function.

No other errors, no warnings, no number that is none. What each of them computes: tests/theorems.
"""

import inspect
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from isthmus import theory
from isthmus.theory.bridge import bridged
from public_calls import r, theory_calls

ENDS = (5e-324, 1e-155, 1e155, 1e307)
DRAWN = 25  # of the odd arguments of each function in the default tier


@pytest.fixture(autouse=True)
def _as_users_run_it() -> Iterator[None]:
    """The run-time type checker of the tests would speak first: users do not have it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    torch.set_warn_always(True)  # pyright: ignore[reportUnknownMemberType]
    yield
    torch.set_warn_always(False)  # pyright: ignore[reportUnknownMemberType]
    jaxtyping.config.update("jaxtyping_disable", False)


ODD: Sequence[Any] = (
    None, "abc", "3", b"a", {"a": 1}, {1.0}, range(3), object(), [], [[]], [[1.0], [1.0, 2.0]], [1.0, [1.0]], 1j,
    0, -1, 2, 2.5, math.nan, math.inf, -math.inf, 1e308, 5e-324, 10**18, 10**400, True, Fraction(1, 3), np.int64(3),
    np.float32(0.5), np.float64(math.nan), np.bool_(True), np.array(2), np.array([]), np.array([0, 1]), [1, 2],  # noqa: NPY002
    [math.nan], [1j], ["a"], [10**400], torch.tensor(2), torch.tensor(2.0), torch.zeros(0), np.array([1, "a"], object),
)  # fmt: skip


def odd_tensors(good: Tensor) -> Iterator[Any]:
    """What somebody could pass in the place of a tensor."""
    d = good.double().contiguous()
    a, shape = d.numpy(), tuple(d.shape)
    for value in (math.nan, math.inf):
        bad = d.clone()
        bad.view(-1)[0] = value
        yield from (bad, bad.numpy(), bad.tolist())
    yield from (torch.zeros((0,) * d.ndim).double(), d[:0], d[..., :0], d[:1], d[None], d[0], torch.cat([d, d[:1]]))
    yield from (torch.cat([d, d[..., :1]], -1), d * 1e308, d * 5e-324, 0 * d, 0 * d + 1, -d, 1e308 + 0 * d)
    yield from (d.float(), d.half(), d.bfloat16(), d.long(), d.bool(), d.to(torch.complex128), d.to_sparse())
    yield from (d.clone().requires_grad_(), d.to("meta"), [*d], [*a], a[::-1], a.astype(">f8"), a.astype(np.longdouble))
    yield from (a.astype(np.float16), a.astype(int), a * 1j, (a * 1j).tolist(), a.astype(object), a > 0.5)
    yield from (np.ma.masked_array(a, a > 0.5), pd.DataFrame(a.reshape(len(a), -1)), tuple(a.tolist()))
    fills: Any = [("a", None), ("1.5", None), (None, object), (10**400, object), ("2020-01-01", "datetime64[D]")]
    yield from (np.full(shape, fill, kind) for fill, kind in fills)
    yield np.full(shape, 10**400, object).tolist()


def odd(good: Any) -> Iterator[Any]:
    """What somebody could pass in the place of an argument: odd ones whole, and lists with one entry odd."""
    yield from ODD
    if isinstance(good, Tensor):
        yield from odd_tensors(good)
    elif isinstance(good, list | tuple):
        yield from (type(good)(good[:-1]), [*good, good[-1]], good[::-1], (x for x in good))  # pyright: ignore[reportUnknownArgumentType]
        for place in (0, len(good) - 1):  # pyright: ignore[reportUnknownArgumentType]
            yield from ([*good[:place], one, *good[place + 1 :]] for one in odd(good[place]))
    elif callable(good):
        yield from (lambda t: 1.0, lambda t: t * math.nan, lambda t: None)  # noqa: ARG005


def numbers_of(found: Any) -> Iterator[Any]:
    if isinstance(found, list | tuple):
        for entry in found:  # pyright: ignore[reportUnknownVariableType]
            yield from numbers_of(entry)
    elif isinstance(found, Tensor | float):
        yield found


def assert_answers_or_refuses(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    try:
        found = function(**arguments)
    except (TypeError, ValueError) as error:
        text = str(error)
        assert text.endswith("."), text
        assert ": needs" in text or ": " in text, text
        assert "needs" in text or function.__name__ in text, text
        return
    for number in numbers_of(found):
        kept = torch.as_tensor(number)
        assert kept.is_complex() is False
        if function.__name__ != "balancedness_slope":  # NaN where all biases vanish
            assert not bool(kept.double().isnan().any()), f"{function.__name__} gave {kept}"


def cases(name: str) -> list[dict[str, Any]]:
    good = dict(theory_calls()[name])
    made = [good | {argument: value} for argument in good for value in odd(good[argument])]
    too_long = {"num_steps", "depth", "width"}  # a number of things that are all made
    return [case for case in made if not any(is_whole(case.get(one)) for one in too_long)]


def extremes(name: str) -> Iterator[dict[str, Any]]:
    """Two arguments at once at the ends of what float64 holds, at little depth."""
    good = dict(theory_calls()[name])
    at_ends = {
        key: [value * end for end in ENDS] for key, value in good.items()
        if isinstance(value, float) or (isinstance(value, Tensor) and value.is_floating_point())
    }  # fmt: skip
    if isinstance(good.get("depth"), int):
        at_ends["depth"] = [1, 2]
    for one, other in combinations(at_ends, 2):
        yield from ({**good, one: a, other: b} for a, b in product(at_ends[one], at_ends[other]))


def is_whole(value: object) -> bool:
    return isinstance(value, int) and 10**6 < value <= 2**53


def test_there_is_a_call_of_every_public_function() -> None:
    assert set(theory_calls()) == {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}


@pytest.mark.parametrize("name", theory_calls())
def test_arguments_are_answered_or_refused_in_words(name: str) -> None:
    every = cases(name)
    for case in random.Random(0).sample(every, min(DRAWN, len(every))):
        assert_answers_or_refuses(getattr(theory, name), case)


@pytest.mark.slow
@pytest.mark.parametrize("name", theory_calls())
def test_all_odd_arguments_are_answered_or_refused_in_words(name: str) -> None:
    for case in cases(name):
        assert_answers_or_refuses(getattr(theory, name), case)


@pytest.mark.parametrize("name", theory_calls())
def test_numbers_at_both_ends_of_float64_are_answered_or_refused_in_words(name: str) -> None:
    every = [*extremes(name)]
    for case in random.Random(0).sample(every, min(DRAWN, len(every))):
        assert_answers_or_refuses(getattr(theory, name), case)


@pytest.mark.slow
@pytest.mark.parametrize("name", theory_calls())
def test_all_numbers_at_both_ends_of_float64_are_answered_or_refused_in_words(name: str) -> None:
    for case in extremes(name):
        assert_answers_or_refuses(getattr(theory, name), case)


def test_the_law_fails_on_a_function_that_asks_nothing() -> None:
    def careless(matrix: Any, depth: Any) -> Tensor:
        return (matrix.square() ** depth).sum().log() * 0

    for value in (torch.tensor(0.0), "abc", torch.full((2,), math.nan)):
        with pytest.raises((AssertionError, AttributeError)):
            assert_answers_or_refuses(careless, {"matrix": value, "depth": 2})


def test_tensors_of_two_precisions_and_lists_of_arrays_are_taken_together() -> None:
    m, s = r(5, 3), r(5, 2)
    expected = float(theory.relaxed_norm(m, s, gamma=0.1))
    assert float(theory.relaxed_norm(m.float(), s, gamma=0.1)) == pytest.approx(expected, rel=1e-5)
    halves = theory.numerical_rank(torch.eye(3).half())
    assert int(halves) == 3
    weights: Any = torch.stack([torch.eye(2), torch.eye(2)])
    assert theory.bottleneck_rank_upper_bound(weights) == 2
    frame: Any = pd.DataFrame({"a": [3.0, 0.0], "b": [0.0, 4.0]})
    assert float(theory.linear_cost(frame, depth=1)) == pytest.approx(25)
    with pytest.raises(TypeError, match="missing"):
        theory.linear_cost(m)  # pyright: ignore[reportCallIssue]
    assert bridged(theory.linear_cost)(m, depth=1) == theory.linear_cost(m, depth=1)
