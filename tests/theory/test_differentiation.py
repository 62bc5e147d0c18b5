"""Jacobians of strangers' functions: right or refused, and everything is left as it was."""

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from isthmus.networks import jacobians
from isthmus.theory import certificates
from isthmus.theory.differentiation import function_values
from isthmus.theory.undisturbed import chance_kept
from theorem_checks import assert_close, normal

Function = Callable[[Tensor], Tensor]
X = normal(0, 8, 3)

DEPENDING: dict[str, Function] = {
    "all rows": lambda x: x - x.mean(0),
    "rows before": lambda x: x.cumsum(0),
    "rows after": lambda x: x.flip(0).cumsum(0).flip(0),
    "the row before": lambda x: torch.cat([x[:1], x[1:] * x[:-1]]),
    "the first row": lambda x: x * x[:1],
    "the last row": lambda x: x * x[-1:],
    "pairs": lambda x: x.reshape(len(x) // 2, 2, 3).cumsum(1).reshape(x.shape) if len(x) > 6 else x,
    "halves": lambda x: x + x.roll(len(x) // 2, 0),
    "the largest row": lambda x: x / x.norm(dim=1).max(),
    "the place of a row": lambda x: x * torch.arange(len(x))[:, None],
    "the number of rows": lambda x: x * len(x),
    "a deviation, which of one row is 0": lambda x: x / x.std(0, correction=0),
    "chance": lambda x: x + torch.rand_like(x),
}


@pytest.mark.parametrize("num", [2, 3, 7, 8])
@pytest.mark.parametrize("on", DEPENDING)
def test_rows_that_depend_on_others_are_refused(on: str, num: int) -> None:
    """Only the first half of the rows was looked at without the others: what hangs on rows before passed."""
    if on == "pairs" and num != 8:
        return
    with pytest.raises(ValueError, match="whose rows stand alone"):
        jacobians(DEPENDING[on], X[:num])


def _without_gradients(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x.square()


def _in_inference_mode(x: Tensor) -> Tensor:
    with torch.inference_mode():
        return x.square()


DETACHED: dict[str, Function] = {
    "detach": lambda x: x.detach() ** 2,
    "data": lambda x: x.data.exp(),
    "numpy": lambda x: torch.from_numpy(x.detach().numpy() ** 2),
    "numpy itself": lambda x: torch.from_numpy(x.numpy() ** 2),
    "lists": lambda x: torch.tensor([[sum(row)] for row in x.tolist()]).double(),
    "no_grad": _without_gradients,
    "inference_mode": _in_inference_mode,
    "argmax": lambda x: x.argmax(1).double(),
    "rounding to whole numbers": lambda x: (3 * x).long().double(),
    "one output of two": lambda x: torch.stack([x.sum(1), x.detach().sum(1)], 1),
    "more outputs than inputs": lambda x: torch.cat([x, x.detach() ** 2], 1),
    "all of more outputs": lambda x: torch.cat([x.detach(), x.detach() ** 2], 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", DETACHED)
def test_what_has_no_derivatives_is_no_function_of_derivative_zero(how: str, dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match="that torch can differentiate"):
        jacobians(DETACHED[how], X.to(dtype))
    with pytest.raises(TypeError, match="that torch can differentiate"):
        certificates(DETACHED[how], X.to(dtype))


FLAT: dict[str, Function] = {
    "a constant": lambda x: torch.ones(len(x), 2).to(x),
    "a constant with gradients": lambda x: 0 * x + 1,
    "a square": lambda x: x.square(),
    "a cube": lambda x: x**3,
    "a fifth power": lambda x: torch.cat([x, x], 1) ** 5,
    "a relu at its kink": lambda x: x.relu(),
    "a size at its kink": lambda x: torch.cat([x.abs(), x.abs()], 1),
    "a sign": lambda x: x.sign(),
    "one kink after another": lambda x: (x.relu() - 1e-3).relu(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FLAT)
def test_a_derivative_that_is_zero_is_zero(name: str, dtype: torch.dtype) -> None:
    zero = torch.zeros(4, 3, dtype=dtype)
    assert not jacobians(FLAT[name], zero).any()
    assert not jacobians(lambda x: FLAT[name](x - 2), zero + 2).any()
    assert not jacobians(lambda x: x[:, :1].relu().expand(-1, 5), -1 - X.to(dtype).abs()).any()
    assert not jacobians(lambda x: (x > 0).to(x) * 1e-30 * 0, X.to(dtype)).any()


IN_PLACE: dict[str, Function] = {
    "relu": nn.ReLU(inplace=True),
    "relu and more outputs": nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 5).double()),
    "product": lambda x: x.mul_(2),
    "entry": lambda x: x.index_fill_(1, torch.tensor([0]), 3.0),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_functions_that_overwrite_their_input_do_not_overwrite_the_samples(name: str) -> None:
    x, function = X.clone(), IN_PLACE[name]
    rows = [torch.autograd.functional.jacobian(lambda row: function(row[None].clone())[0], row) for row in X]  # pyright: ignore
    assert_close(jacobians(function, x), torch.stack(rows))
    assert torch.equal(x, X)
    certificates(function, x)
    assert torch.equal(x, X)


def test_an_operation_without_a_rule_for_tangents_is_differentiated_backward() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:  # type: ignore[override]
            return 2 * x

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> Tensor:  # type: ignore[override]
            return 2 * gradient

    def function(x: Tensor) -> Tensor:
        doubled = Doubled.apply(x)
        assert isinstance(doubled, Tensor)
        return torch.cat([doubled, x], 1)

    eye = torch.eye(3).double()
    assert torch.equal(jacobians(function, X), torch.cat([2 * eye, eye]).expand(8, 6, 3))


class Restless(nn.Module):
    """Counts, draws, changes its mode and collects gradients, and its rows stand alone."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.scale = nn.Parameter(torch.ones(()).double())
        self.inner = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 4)).double().eval()

    def forward(self, x: Tensor) -> Tensor:
        self.count = self.count + 1
        self.train(not self.training)
        self.inner.eval()
        torch.rand(1)
        random.random()  # noqa: S311 - as strangers do
        np.random.rand()  # noqa: NPY002
        if torch.is_grad_enabled() and x.requires_grad:
            (self.scale**2).backward()
        return self.inner(x) * self.scale


def state_of(*modules: nn.Module) -> list[object]:
    """All that a call must leave as it was."""
    found: list[object] = [torch.get_rng_state().tolist(), str(np.random.get_state())]  # noqa: NPY002
    for module in modules:
        found += [part.training for part in module.modules()]
        found += [(id(t), t.tolist()) for t in (*module.parameters(), *module.buffers())]
        found += [p.grad if p.grad is None else (id(p.grad), p.grad.tolist()) for p in module.parameters()]
        found += [p.requires_grad for p in module.parameters()]
    return found


@pytest.mark.parametrize("reached", ["as it is", "by a method", "by a name", "by a name within"])
@pytest.mark.parametrize("graded", [False, True])
def test_modules_and_chance_are_left_as_they_were(reached: str, graded: bool) -> None:
    module = Restless()
    if graded:
        module.scale.grad = torch.full((), 3.0).double()
    functions: dict[str, Function] = {
        "as it is": module,
        "by a method": module.forward,
        "by a name": lambda x: module(x),
        "by a name within": nn.Sequential(module),
    }
    before = state_of(module)
    for call in (jacobians, certificates, function_values):
        call(functions[reached], X)
        assert state_of(module) == before
    module(X)
    assert state_of(module) != before


def test_the_random_numbers_of_python_are_kept() -> None:
    """Apart from the rest: the checks of types in tests draw from them."""
    before = random.getstate()
    with chance_kept():
        random.random()  # noqa: S311 - as strangers do
        assert random.getstate() != before
    assert random.getstate() == before


def test_a_module_that_is_refused_is_left_as_it_was() -> None:
    for module in (nn.BatchNorm1d(3).double(), nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).double()):
        before = state_of(module)
        for function in (
            module,
            module.forward,
            partial(nn.Module.__call__, module),
            lambda x, module=module: module(x),
        ):
            with pytest.raises(ValueError, match="Call .eval()"):
                jacobians(function, X)
            assert state_of(module) == before
