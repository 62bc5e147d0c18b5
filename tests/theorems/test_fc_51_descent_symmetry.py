import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import rank_one_descent
from theorem_checks import SEEDS, assert_close, normal

pytestmark = pytest.mark.theorem("FC-51")


def descent(v: Tensor, w: Tensor, step: float, num_steps: int) -> tuple[Tensor, Tensor]:
    """(a^2, b^2) and losses along gradient descent on |v v^T - w w^T|_F^2, by automatic differentiation."""
    statistics, losses = list[Tensor](), list[Tensor]()
    for _ in range(num_steps):
        v = v.detach().requires_grad_()
        loss = (torch.outer(v, v) - torch.outer(w, w)).square().sum()
        (gradient,) = torch.autograd.grad(loss, v)
        v = (v - step * gradient).detach()
        a = w @ v
        statistics.append(torch.stack([a.square(), (v - a * w).square().sum()]))
        losses.append((torch.outer(v, v) - torch.outer(w, w)).square().sum())
    return torch.stack(statistics), torch.stack(losses)


@settings(deadline=None, max_examples=15)
@given(seed=SEEDS, step=st.floats(0.005, 0.05))
def test_two_statistics_determine_all_losses(seed: int, step: float) -> None:
    w = torch.nn.functional.normalize(normal(seed, 6), dim=0)
    v = 0.3 * normal(seed + 1, 6)
    a2 = float((w @ v) ** 2)
    found = rank_one_descent(a2, float(v @ v) - a2, step=step, num_steps=12)
    expected, losses = descent(v, w, step, 12)
    assert_close(found, expected, relative=1e-11)
    r = found.sum(1)
    assert_close(r.square() - 2 * found[:, 0] + 1, losses, relative=1e-11)
    with pytest.raises(AssertionError):  # one of the two alone does not
        assert_close(r.square() - 2 * r + 1, losses, relative=1e-11)
