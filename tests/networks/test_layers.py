"""`walk` of modules that are not ours: what is read is what was computed, whatever happens to it afterwards."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import isthmus
from foreign_modules import samples, seeded
from isthmus.errors import ShapeError

X = samples(30, 6)


class OutputFirst(nn.Module):
    """Registers its layers from the last to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.act, self.enter = nn.Linear(16, 2), nn.Tanh(), nn.Linear(6, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.act(self.enter(x)))


class Overwriting(nn.Module):
    """Numbers that were computed are overwritten by a function, a residual sum or a number that is written."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.first, self.second, self.act, self.how = nn.Linear(6, 6), nn.Linear(6, 6), nn.ReLU(), how

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if self.how == "relu_":
            F.relu_(h)
        elif self.how == "sum":
            h = self.act(h)
            h += x
        else:
            h = self.act(h)
            h[:, 0] = 7.0
        return self.second(h)


def activated(z: Tensor, _: Tensor) -> Tensor:
    return z.relu()


# a module and what its first layer's activation is, from its preactivation and x
CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[Tensor, Tensor], Tensor]]] = {
    "plain": (lambda: nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6)), activated),
    "in place": (lambda: nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 6)), activated),
    "two in place": (
        lambda: nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Hardtanh(-9, 0.5, True), nn.Linear(6, 6)),
        lambda z, _: z.relu().clamp(max=0.5),
    ),
    "a function": (lambda: Overwriting("relu_"), lambda z, _: z),
    "a sum": (lambda: Overwriting("sum"), activated),
    "an entry": (lambda: Overwriting("entry"), activated),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_is_not_overwritten(case: str) -> None:
    make, activation = CASES[case]
    module = seeded(make)
    wanted = module(X.clone())
    first, last = isthmus.walk(module, X)
    z = F.linear(X, first.weight, first.bias)
    torch.testing.assert_close(first.preactivation, z)
    torch.testing.assert_close(first.activation, activation(z, X))
    torch.testing.assert_close(last.activation, wanted)
    assert float(first.preactivation.detach().min()) < 0


@pytest.mark.parametrize("case", CASES)
def test_gradients_pass_through_what_is_read(case: str) -> None:
    module = seeded(CASES[case][0])
    first, last = isthmus.walk(module, X)
    by_z, by_weight = torch.autograd.grad(last.activation.square().sum(), [first.preactivation, first.weight])
    torch.testing.assert_close(by_z.T @ X, by_weight)


def test_the_first_layer_is_the_one_that_is_called_first() -> None:
    module = seeded(OutputFirst)
    assert [state.name for state in isthmus.walk(module, X)] == ["enter", "out"]
    with pytest.raises(ShapeError, match=r"needs x of shape \(n, 6\)"):
        isthmus.walk(module, samples(30, 16))


def test_what_enters_the_first_layer_are_rows() -> None:
    inside = nn.Unflatten(1, (2, 3))
    assert len(isthmus.walk(nn.Sequential(inside, nn.Flatten(), nn.Linear(6, 2)), X)) == 1
    with pytest.raises(ShapeError, match=r"takes rows of 3 features.*enters it has shape \(30, 2, 3\)"):
        isthmus.walk(nn.Sequential(inside, nn.Linear(3, 2)), X)


def test_hooks_are_gone_afterwards() -> None:
    module = seeded(OutputFirst)
    isthmus.walk(module, X)
    held = [vars(part)[name] for part in module.modules() for name in ("_forward_hooks", "_forward_pre_hooks")]
    assert not any(held)
