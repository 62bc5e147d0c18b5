import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.diagnostics import leaky_path
from isthmus.errors import ShapeError
from isthmus.theory import alignment_changes, balancedness_slope
from leaky_networks import RIDGE, random_leaky, random_path, small_data, trained
from shape_checks import own_shape_checks
from theorem_checks import SEEDS, assert_close

pytestmark = pytest.mark.theorem("LEAKY-17")


def alignments(activations: torch.Tensor, momenta: torch.Tensor) -> torch.Tensor:
    return (activations * momenta).sum((1, 2))


@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, bias=st.booleans(), smoothing=st.sampled_from([0.0, 0.2]))
def test_alignment_changes_by_the_biases_alone_at_any_weights(seed: int, bias: bool, smoothing: float) -> None:
    path = random_path(random_leaky(seed, bias=bias, smoothing=smoothing), seed)
    along = alignments(path.activations, path.momenta)

    def predicted(eps: float, with_bias: bool = bias) -> torch.Tensor:
        return alignment_changes(
            path.activations, path.momenta, path.weights, path.steps, bias=with_bias, smoothing=eps
        )

    size = float(along.abs().max())
    assert_close(along.diff(), predicted(smoothing), relative=0, absolute=1e-12 * size)
    if smoothing:
        with pytest.raises(AssertionError):  # the term of the smoothed relu forgotten
            assert_close(along.diff(), predicted(0.0), relative=0, absolute=1e-12 * size)
    if bias:
        with pytest.raises(AssertionError):
            assert_close(along.diff(), predicted(smoothing, False), relative=0, absolute=1e-12 * size)


def test_at_a_critical_point_the_changes_are_the_squared_biases() -> None:
    network, _ = trained()
    path = leaky_path(network, *small_data(), ridge=RIDGE)
    args = (path.activations, path.momenta, path.weights, path.steps)
    of_biases = alignment_changes(*args, smoothing=0.1) - alignment_changes(*args, bias=False, smoothing=0.1)
    squares = path.steps * path.weights[..., -1].square().sum(-1) / 3.0
    assert_close(of_biases, squares, relative=1e-6)
    with pytest.raises(AssertionError):  # without 1 / Lt
        assert_close(of_biases, 3 * squares, relative=1e-6)


@settings(deadline=None, max_examples=20)
@given(slope=st.floats(0.5, 3.0), seed=SEEDS)
def test_the_slope_is_read_off_weights_made_for_it(slope: float, seed: int) -> None:
    depth, Lt = 7, 2.0
    rho = torch.rand(depth, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.1
    rho = rho / rho.sum()
    b = torch.linspace(0.1, 0.9, depth, dtype=torch.float64)
    integral = (rho * b**2).cumsum(0) - rho * b**2 / 2
    rest = 5.0 + slope * Lt * (integral - integral[0]) - b**2
    weights = torch.stack([rest.sqrt(), b], -1)[:, None, :]
    assert_close(balancedness_slope(weights, rho, effective_depth=Lt), slope, relative=1e-9)
    with pytest.raises(AssertionError):
        assert_close(balancedness_slope(weights, rho, effective_depth=2 * Lt), slope, relative=1e-9)
    assert math.isnan(balancedness_slope(weights * torch.tensor([1.0, 0.0]), rho, effective_depth=Lt))


@settings(deadline=None, max_examples=20)
@given(slope=st.floats(0.5, 3.0), seed=SEEDS)
def test_the_slope_counts_the_alignment_that_it_is_given(slope: float, seed: int) -> None:
    depth, Lt = 7, 2.0
    rho = torch.full((depth,), 1 / depth, dtype=torch.float64)
    alignment = torch.rand(depth, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.1
    integral = Lt**2 * (alignment.cumsum(0) - alignment / 2)
    b = torch.full((depth,), 0.3, dtype=torch.float64)
    weights = torch.stack([(5.0 + slope * (integral - integral[0]) - b**2).sqrt(), b], -1)[:, None, :]
    found = balancedness_slope(weights, rho, effective_depth=Lt, alignment=alignment)
    assert_close(found, slope, relative=1e-9)
    with pytest.raises(AssertionError):
        assert_close(balancedness_slope(weights, rho, effective_depth=Lt), slope, relative=1e-9)
    with own_shape_checks(), pytest.raises(ShapeError, match="one alignment for each of the 7 layers"):
        balancedness_slope(weights, rho, effective_depth=Lt, alignment=alignment[1:])


def test_at_a_minimum_of_a_smoothed_net_the_slope_is_nearer_to_2_with_the_term_of_the_smoothing() -> None:
    network, _ = trained()
    path = leaky_path(network, *small_data(), ridge=RIDGE)
    alignment = alignment_changes(path.activations, path.momenta, path.weights, path.steps, smoothing=0.1)
    corrected, of_biases = (
        balancedness_slope(path.weights, path.steps, effective_depth=network.effective_depth, alignment=a)
        for a in (alignment, None)
    )
    assert abs(corrected - 2) < abs(of_biases - 2)
