"""Modules that are not ours: what they share and hold is theirs after a fit, and what has no minimum is refused."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from isthmus import FullyConnected, Limits, fit
from isthmus.errors import DataError, ShapeError

torch.manual_seed(0)
X, Y = torch.randn(40, 5), torch.randn(40, 3)
FEW = Limits(evaluations=30)


def module() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))


def test_gradients_of_the_caller_stay() -> None:
    """A later backward() of theirs would have added to ours."""
    for gradient in (None, 7.0):
        network = module()
        for parameter in network.parameters():
            parameter.grad = None if gradient is None else torch.full_like(parameter, gradient)
        fit(network, X, Y, ridge=1e-2, limits=FEW)
        for parameter in network.parameters():
            if gradient is None:
                assert parameter.grad is None
            else:
                assert parameter.grad is not None
                assert bool((parameter.grad == gradient).all())


@pytest.mark.parametrize("stopped", [False, True])
def test_whoever_shares_the_weights_follows(stopped: bool) -> None:
    network = module()
    begun = copy.deepcopy(network)
    kept = [(parameter, parameter.data, parameter.data_ptr()) for parameter in network.parameters()]

    def stop(_: object) -> bool:
        raise KeyboardInterrupt

    if stopped:
        with pytest.raises(KeyboardInterrupt):
            fit(network, X, Y, ridge=1e-2, limits=FEW, callback=stop)
    else:
        fit(network, X, Y, ridge=1e-2, limits=FEW)
    for (parameter, own, place), first in zip(kept, begun.parameters(), strict=True):
        assert parameter.data_ptr() == place
        assert torch.equal(own, parameter.detach())
        assert not torch.equal(own, first.detach()), "control: it was trained"


def test_what_gives_something_else_each_time_is_refused() -> None:
    """The noise of dropout was reported as the objective, and the caller's random numbers were used up."""
    network = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    state = torch.get_rng_state()
    with pytest.raises(DataError, match=r"gives something else each time .* Call network\.eval\(\) first"):
        fit(network.train(), X, Y, ridge=1e-2, limits=FEW)
    found = fit(network.eval(), X, Y, ridge=1e-2, limits=FEW)
    assert not network.training
    assert torch.equal(torch.get_rng_state(), state)
    own = float((network(X) - Y).detach().square().sum(1).mean())
    assert found.data_loss == pytest.approx(own, rel=1e-5)


class Normalised(nn.Module):
    """Batch norm, whose outputs in training are a function of the rows together."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x)).relu())


def test_to_look_for_it_moves_no_running_average() -> None:
    network = Normalised().eval()
    before = network.norm.running_mean.clone()  # type: ignore[union-attr] # pyright: ignore
    fit(network, X, Y, ridge=1e-2, limits=FEW)
    assert torch.equal(network.norm.running_mean, before)  # type: ignore[arg-type] # pyright: ignore
    fit(network.train(), X, Y, ridge=1e-2, limits=Limits(evaluations=1))
    assert network.training


def test_half_precision_is_trained_like_any_other() -> None:
    network = nn.Linear(5, 3).bfloat16()
    found = fit(network, X, Y, ridge=1e-2, limits=FEW)
    assert found.objective < float(Y.square().sum(1).mean())
    assert next(network.parameters()).dtype is torch.bfloat16


def test_networks_of_ours_may_be_held_in_one_piece() -> None:
    """Their storages are not promised: of the largest a copy beside would double the memory."""
    network = FullyConnected(5, 3, width=8, depth=3, seed=0)
    fit(network, X, Y, ridge=1e-2, limits=FEW)
    assert all(parameter.grad is None for parameter in network.parameters())


class Answer(nn.Module):
    """A linear map of five numbers to three, and what is made of what it gives."""

    def __init__(self, make: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.linear, self.make = nn.Linear(5, 3), make

    def forward(self, x: Tensor) -> object:
        return self.make(self.linear(x))


UNFIT: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "tuple": (lambda z: (z, z), DataError, "gives a tuple, and one tensor is needed"),
    "nothing": (lambda z: None, DataError, "gives a NoneType"),
    "whole": (lambda z: (z > 0).long(), DataError, "numbers of torch.int64; real ones are needed"),
    "complex": (lambda z: torch.complex(z, z), DataError, "numbers of torch.complex64"),
    "detached": (lambda z: z.detach(), DataError, "no gradient leads from the outputs"),
    "fails": (lambda z: z @ z, DataError, r"running Answer on x of shape \(40, 5\) failed: RuntimeError: mat1 and"),
    "few rows": (lambda z: z[:5], ShapeError, r"shape \(5, 3\) for 40 rows of x; .* needs \(40, 3\)\."),
    "one number": (lambda z: z.mean(), ShapeError, r"gives shape \(\) for 40 rows"),
    "no columns": (lambda z: z[:, 0], ShapeError, r"gives shape \(40,\)"),
    "few columns": (lambda z: z[:, :2], ShapeError, r"'squared' needs \(40, 3\)\."),
}


@pytest.mark.parametrize("name", UNFIT)
def test_answers_that_are_not_what_the_targets_need_are_refused(name: str) -> None:
    """They ended in errors of torch from the middle of a step; what has no gradient had been trained by the ridge."""
    make, error, words = UNFIT[name]
    with pytest.raises(error, match=words):
        fit(Answer(make), X, Y, ridge=1e-2, limits=FEW)


def test_one_column_of_targets_is_not_spread_over_several_outputs() -> None:
    with pytest.raises(ShapeError, match=r"y of shape \(40, 1\) the loss 'squared' needs \(40, 1\)"):
        fit(module(), X, Y[:, :1], ridge=1e-2, limits=FEW)
    with pytest.raises(ShapeError, match=r"'gaussian' needs \(40, 6\)"):
        fit(module(), X, Y, ridge=1e-2, loss="gaussian", limits=FEW)
    with pytest.raises(ShapeError, match=r"'cross_entropy' needs \(40, 4\), or more scores"):
        fit(module(), X, torch.arange(40) % 4, ridge=1e-2, loss="cross_entropy", limits=FEW)
    fit(module(), X, torch.arange(40) % 2, ridge=1e-2, loss="cross_entropy", limits=FEW)  # a class without rows
    fit(module(), X[:, None].expand(40, 2, 5), Y[:, None].expand(40, 2, 3), ridge=1e-2, limits=FEW)  # tokens
