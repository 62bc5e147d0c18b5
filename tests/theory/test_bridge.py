"""Arrays and lists are taken for tensors, several depths for one after the other."""

from collections.abc import Callable

import jaxtyping
import numpy as np
import pytest
import torch

from isthmus import theory
from theorem_checks import normal

A = normal(0, 4, 3)
J = normal(1, 5, 4, 3)
CALLS: dict[str, Callable[..., object]] = {
    "matrix": lambda a: theory.linear_cost(a, depth=5),
    "entries of a batch": lambda a: theory.log_pseudo_determinant(a, rank=2),
    "pair": lambda a: theory.relaxed_norm(a, a, gamma=0.1),
    "points": theory.travelling_salesman_bounds,
    "list of weights": lambda a: theory.bottleneck_rank_upper_bound([a]),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_and_lists_give_what_tensors_give(name: str) -> None:
    expected = CALLS[name](A)
    for given in (A.numpy(), A.tolist()):
        found = CALLS[name](given)
        assert torch.equal(torch.as_tensor(found), torch.as_tensor(expected))
    single = CALLS[name](A.numpy().astype(np.float32))
    assert float(torch.as_tensor(single).max()) == pytest.approx(float(torch.as_tensor(expected).max()), rel=1e-5)


def test_layers_are_lists_of_arrays() -> None:
    a, j = normal(2, 4, 3), normal(3, 4, 2, 2)
    expected = theory.tangent_kernel(([a], [j]))
    assert torch.equal(theory.tangent_kernel(([a.numpy()], [j.numpy()])), expected)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("depth", [np.int64(3), np.int32(3), np.array(3)])
def test_integers_of_numpy_are_integers(depth: int) -> None:
    assert torch.equal(theory.linear_cost(A, depth=depth), theory.linear_cost(A, depth=3))
    values, lam = np.array([2.0, 1.0]), np.float64(0.1)
    found = theory.resnet_cost(values, residual_weight=lam, depth=depth, block_depth=np.int64(2))  # pyright: ignore[reportArgumentType]
    expected = theory.resnet_cost(torch.tensor([2.0, 1.0]).double(), residual_weight=0.1, depth=3, block_depth=2)
    assert torch.equal(found, expected)


def test_several_depths_come_one_after_the_other() -> None:
    depths = np.arange(1, 100)
    found = theory.linear_cost(A, depth=depths)  # pyright: ignore[reportArgumentType]
    assert found.tolist() == [float(theory.linear_cost(A, depth=int(depth))) for depth in depths]
    batch = theory.linear_cost(J, depth=[1, 4])  # pyright: ignore[reportArgumentType]
    assert batch.shape == (2, 5)
    counts = theory.large_singular_value_bound(penalty=9, threshold=1, depth=torch.tensor([1, 3]))  # pyright: ignore[reportArgumentType]
    assert torch.as_tensor(counts).tolist() == pytest.approx([9, 3])
    factors = theory.optimal_linear_factors(A, depth=[1, 2])  # pyright: ignore[reportArgumentType]
    assert [len(one) for one in factors] == [1, 2]
    jaxtyping.config.update("jaxtyping_disable", True)  # the run-time type checker would speak first
    try:
        with pytest.raises(TypeError, match="needs depth as an int; got 2.5"):
            theory.linear_cost(A, depth=[1, 2.5])  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="needs depth >= 1; got depth=0"):
            theory.linear_cost(A, depth=np.arange(3))  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError, match="real floating-point numbers; got torch.complex128"):
            theory.linear_cost(A.numpy() * 1j, depth=2)  # pyright: ignore[reportArgumentType]
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_lists_of_whole_numbers_are_matrices_and_pairs_of_numbers_stay_pairs() -> None:
    assert float(theory.linear_cost([[3, 0], [0, 4]], depth=1)) == pytest.approx(25)  # pyright: ignore[reportArgumentType]
    assert theory.switch_depth(loss=(2, 1), constant=(0, 0), rank=(1, 2), ridge=np.float64(0.5)) == 2
    assert theory.travelling_salesman_bounds([[0, 0], [3, 4]]) == (5, 5)  # pyright: ignore[reportArgumentType]


def test_the_room_shows_its_functions_and_types_only() -> None:
    assert sorted(dir(theory)) == sorted(theory.__all__)
    assert theory.linear_cost.__doc__ is not None
    assert theory.linear_cost.__module__ == "isthmus.theory.linear_costs"


@pytest.mark.parametrize(
    ("dtype", "told"), [(torch.float32, "float32.*Give float64"), (torch.float64, "float64.*Rescale")]
)
def test_what_overflows_is_said_of_the_numbers_that_were_given(dtype: torch.dtype, told: str) -> None:
    size = 1e24 if dtype is torch.float32 else 1e200
    with pytest.raises(ValueError, match=told):
        theory.curvature_lower_bound(torch.tensor([[[size]]], dtype=dtype), depth=10)
