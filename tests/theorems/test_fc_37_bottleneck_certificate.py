import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import (
    BottleneckCertificate,
    bottleneck_certificate,
    log_pseudo_determinant,
    numerical_rank,
    piecewise_jacobian,
    two_sequence_certificate,
)
from theorem_checks import SEEDS, Linearised, assert_at_most, assert_close, linearised, normal, random_network

pytestmark = pytest.mark.theorem("FC-37")
SIZES = st.lists(st.integers(2, 6), min_size=2, max_size=6)


def assert_bound_holds(found: BottleneckCertificate) -> None:
    assert_at_most(found.residuals.sum(), found.bound, slack=1e-10)


def assert_consistent(found: BottleneckCertificate, net: Linearised, rank: int) -> None:
    """Bound, residuals and frames as the statement writes them, by a second route."""
    jacobian = piecewise_jacobian(net.weights, net.derivatives)[:1]
    logarithm = float(log_pseudo_determinant(jacobian, rank=rank)[0])
    excess = net.penalty - rank * len(net.weights)
    assert_close(found.bound, excess - 2 * logarithm, relative=0, absolute=1e-8)
    for frame in (*found.incoming, *found.outgoing):
        assert_close(frame.mT @ frame, torch.eye(rank, dtype=torch.float64), absolute=1e-12)
    layers = zip(net.weights, net.biases, found.outgoing, found.incoming, strict=True)
    residuals = [(w - u @ v.mT).square().sum() + b.square().sum() for w, b, u, v in layers]
    assert_close(found.residuals, torch.stack(residuals))


def sampled(seed: int, sizes: list[int], slope: float) -> tuple[Linearised, int]:
    net = linearised(random_network(seed, sizes, slope=slope), normal(seed, 1, sizes[0]))
    values = torch.linalg.svdvals(piecewise_jacobian(net.weights, net.derivatives)[0])
    return net, int((values > 1e-4).sum())


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, sizes=SIZES, slope=st.sampled_from([0.0, 0.3, 0.9]))
def test_one_sequence_bounds_the_distance_from_isometries(seed: int, sizes: list[int], slope: float) -> None:
    net, full_rank = sampled(seed, sizes, slope)
    for rank in range(1, full_rank + 1):
        found = bottleneck_certificate(net.weights, net.biases, net.point(0), rank=rank)
        assert_consistent(found, net, rank)
        assert_bound_holds(found)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, sizes=SIZES, slope=st.sampled_from([0.0, 0.3, -0.3, -0.8]))
def test_two_sequences_serve_negative_slopes_too(seed: int, sizes: list[int], slope: float) -> None:
    net, full_rank = sampled(seed, sizes, slope)
    for rank in range(1, full_rank + 1):
        found = two_sequence_certificate(net.weights, net.biases, net.point(0), rank=rank)
        assert_consistent(found, net, rank)
        assert_bound_holds(found)


def polar_frames(net: Linearised, rank: int) -> list[Tensor]:
    """The frames of the printed proof, V_l = polar(D_l W_l V_{l-1}), whatever the slope."""
    jacobian = piecewise_jacobian(net.weights, net.derivatives)[0]
    frames = [torch.linalg.svd(jacobian).Vh[:rank].mT]
    for weight, pattern in zip(net.weights, [*net.point(0), torch.ones(len(net.weights[-1]))], strict=True):
        left, _, right = torch.linalg.svd(pattern[:, None] * (weight @ frames[-1]), full_matrices=False)
        frames.append(left @ right)
    return frames


def test_one_sequence_breaks_at_a_negative_slope() -> None:
    def bound_at(seed: int) -> BottleneckCertificate:
        net, _ = sampled(seed, [4, 4, 4, 4], -0.8)
        honest = two_sequence_certificate(net.weights, net.biases, net.point(0), rank=4)
        frames = polar_frames(net, 4)
        layers = zip(net.weights, net.biases, frames[1:], frames[:-1], strict=True)
        residuals = torch.stack([(w - u @ v.mT).square().sum() + b.square().sum() for w, b, u, v in layers])
        return BottleneckCertificate(residuals, honest.bound, honest.excess, tuple(frames[:-1]), tuple(frames[1:]))

    broken = 0
    for seed in range(10):
        try:
            assert_bound_holds(bound_at(seed))
        except AssertionError:
            broken += 1
    assert broken >= 5  # 549 of 600 random networks in the trials


def test_orthonormal_layers_leave_nothing() -> None:
    weights = [torch.linalg.qr(normal(i, 5, 5)).Q for i in range(6)]
    found = bottleneck_certificate(weights, [None] * 6, [torch.ones(5, dtype=torch.float64)] * 5, rank=5)
    assert_close(found.bound, 0.0, absolute=1e-11)
    assert_close(found.residuals, torch.zeros(6), absolute=1e-12)
    with pytest.raises(AssertionError):
        assert_close(found.bound + 2 * 0.1, 0.0, absolute=1e-11)


def test_most_layers_are_near_identities_of_k_dimensions() -> None:
    net, _ = sampled(3, [4, 4, 4, 4, 4], 0.3)
    found = bottleneck_certificate(net.weights, net.biases, net.point(0), rank=2)
    within = int((found.residuals <= found.residual_bound(fraction=0.5)).sum())
    assert within >= 0.5 * len(net.weights)


def test_bad_points_and_patterns_are_refused() -> None:
    net, _ = sampled(0, [3, 4, 3], -0.5)
    with pytest.raises(ValueError, match="Use two_sequence_certificate"):
        bottleneck_certificate(net.weights, net.biases, [-0.5 * torch.ones(4, dtype=torch.float64)], rank=1)
    with pytest.raises(ValueError, match=r"needs rank <= rank Jf\(x\)"):
        bottleneck_certificate(net.weights, net.biases, [torch.zeros(4, dtype=torch.float64)], rank=1)
    assert int(numerical_rank(torch.zeros(3, 3))) == 0


def test_one_layer_that_holds_the_whole_excess_needs_the_whole_share() -> None:
    """Markov's inequality is sharp: the bias of one layer out of six is the whole bound."""
    weights = [torch.linalg.qr(normal(i, 5, 5)).Q for i in range(6)]
    bias = torch.nn.functional.normalize(normal(9, 5), dim=0)
    found = bottleneck_certificate(
        weights, [None, None, bias, None, None, None], [torch.ones(5, dtype=torch.float64)] * 5, rank=5
    )
    assert_close(found.bound, 1.0, relative=1e-11)
    assert_close(found.residual_bound(fraction=1 / 6), 1.0, relative=1e-11)
    for fraction, within in ((0.16, 6), (0.17, 5), (0.9, 5)):
        below = int((found.residuals <= found.residual_bound(fraction=fraction)).sum())
        assert below == within
        assert below >= (1 - fraction) * 6
    with pytest.raises(AssertionError):  # half the share: five layers are not within it for p < 1/6
        assert int((found.residuals <= found.residual_bound(fraction=0.16) / 2).sum()) >= (1 - 0.16) * 6
