import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from torch import Tensor

from isthmus.theory import block_cost, resnet_cost
from theorem_checks import assert_at_most, assert_close

pytestmark = pytest.mark.theorem("RES-09")
VALUES = torch.tensor([30.0, 1.0, 0.5, 0.5, 1e-8, 0.0], dtype=torch.float64)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(lam=st.floats(1e-6, 1e3), depth=st.sampled_from([1, 2, 8, 300]))
def test_the_two_closed_forms_are_instances(lam: float, depth: int) -> None:
    one = block_cost(VALUES, lambda t: lam * depth * t.square(), depth=depth)
    assert_close(one, resnet_cost(VALUES, residual_weight=lam, depth=depth, block_depth=1))
    two = block_cost(VALUES, lambda t: lam * t, depth=depth)
    assert_close(two, resnet_cost(VALUES, residual_weight=lam, depth=depth, block_depth=2))
    with pytest.raises(AssertionError):  # a block without the factor L
        assert_close(2 * one, two)


@pytest.mark.parametrize("lam", [1e-250, 1e-200, 1e-20, 1.0, 1e20, 1e200])
@pytest.mark.parametrize("depth", [1, 7, 1000])
def test_the_closed_forms_at_every_size(lam: float, depth: int) -> None:
    """(1 + alpha)^(-L) underflowed where sigma / f' is large: 65 orders of magnitude too much at 1e200 by 1e-200."""
    sizes = torch.tensor([1e-200, 1e-100, 1.0, 1e100, 1e200], dtype=torch.float64)
    one = torch.stack([block_cost(size[None], lambda t: lam * depth * t.square(), depth=depth) for size in sizes])
    two = torch.stack([block_cost(size[None], lambda t: lam * t, depth=depth) for size in sizes])
    for found, block_depth in ((one, 1), (two, 2)):
        for cost, size in zip(found, sizes, strict=True):
            wanted = resnet_cost(size[None], residual_weight=lam, depth=depth, block_depth=block_depth)
            if 1e-300 < float(wanted) < 1e300:
                assert_close(cost, wanted, relative=1e-11)


def test_another_convex_cost_against_a_search() -> None:
    def block(t: Tensor) -> Tensor:
        return torch.expm1(t) + t.pow(4)

    def energy(alpha: float) -> float:
        return 3.0 * (1 + alpha) ** -5 + 5 * float(block(torch.tensor(alpha, dtype=torch.float64)))

    found = float(block_cost(torch.tensor([3.0], dtype=torch.float64), block, depth=5))
    searched = minimize_scalar(energy, bounds=(0, 3), method="bounded", options={"xatol": 1e-12})
    assert_close(found, float(getattr(searched, "fun")), relative=1e-10)  # noqa: B009 - scipy's result has no type
    assert_at_most(found, min(energy(a / 100) for a in range(300)))


@pytest.mark.parametrize("block", [lambda t: t.sqrt(), lambda t: t + 1, lambda t: -t, lambda t: t ** (2 / 3)])  # pyright: ignore
def test_costs_outside_the_theorem_are_refused(block: object) -> None:
    with pytest.raises(ValueError, match="needs f convex and rising"):
        block_cost(VALUES, block, depth=3)  # pyright: ignore[reportArgumentType]
