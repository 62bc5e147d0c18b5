"""Weights of samples count up to a common factor, however large or small; what is no number is refused."""

import pytest
import torch

from isthmus import FullyConnected, Limits, fit
from isthmus.training.fit import checked_data
from isthmus.training.losses import SQUARED

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
WEIGHTS = torch.arange(20, dtype=torch.float64) % 4


def shares(weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    network = FullyConnected(3, 3, width=4, depth=2, seed=0, dtype=dtype)
    found = checked_data(network, X, X, SQUARED, weights)[1].weight
    assert found is not None
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [1e39, 5e307, 1e-46, 5e-324])
def test_weights_count_up_to_a_common_factor(factor: float, dtype: torch.dtype) -> None:
    expected = (WEIGHTS / WEIGHTS.sum()).to(dtype)
    assert torch.allclose(shares(WEIGHTS * factor, dtype), expected, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert torch.equal(shares(WEIGHTS, dtype), expected)


def test_a_fit_with_large_weights_is_that_with_small_ones() -> None:
    ends = [
        fit(
            FullyConnected(3, 3, width=4, depth=2, seed=0), X, X, ridge=0.01,
            sample_weight=WEIGHTS * factor, limits=Limits(evaluations=30),
        ).objective
        for factor in (1.0, 2.0**130, 2.0**-200)
    ]  # fmt: skip
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_weight_that_is_no_number_is_refused_with_what_to_do(bad: float) -> None:
    weights = WEIGHTS.clone()
    weights[[3, 5]] = bad
    with pytest.raises(ValueError, match="2 of 20 weights are NaN or infinite, the first in row 4. Leave those"):
        shares(weights, torch.float32)


@pytest.mark.parametrize(
    ("weights", "words"),
    [(WEIGHTS - 1, r"got -.* in row \d+\."), (WEIGHTS * 0, "got 0 in all rows"), (WEIGHTS[:19], "20, got 19")],
    ids=["negative", "zero", "few"],
)
def test_weights_that_are_none_are_refused(weights: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        shares(weights, torch.float64)
