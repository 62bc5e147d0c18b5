import pytest
import torch

from isthmus.networks import rebalance
from isthmus.theory import (
    activation_norm_bound,
    log_pseudo_determinant,
    piecewise_jacobian,
    representation_tail_bound,
    suffix_jacobians,
    tangent_kernel_trace,
    two_sequence_certificate,
)
from theorem_checks import assert_at_most, assert_close, linearised, normal, random_network

pytestmark = pytest.mark.theorem("FC-40")


def assert_tail(tails: list[float], bound: float, fraction: float) -> None:
    within = sum(tail <= bound for tail in tails)
    assert_at_most((1 - fraction) * len(tails), within)


@pytest.mark.dear(1)
@pytest.mark.parametrize("fraction", [0.3, 0.6])
def test_most_layers_are_nearly_of_rank_k(fraction: float) -> None:
    checked = 0
    for seed in range(40):
        # a layer of width 2 gives every Jacobian rank 2 at most
        network = rebalance(random_network(seed, [3, 4, 2, 4, 3], bias=0.3), tolerance=1e-9)
        net = linearised(network, normal(seed, 12, 3))
        jacobians = piecewise_jacobian(net.weights, net.derivatives)
        regular = torch.linalg.svdvals(jacobians)[:, 1] > 1e-3
        if int(regular.sum()) < 2:
            continue
        depth, excess = 4, net.penalty - 2 * 4
        patterns = [d[regular] for d in net.derivatives]
        activations = [a[regular] for a in net.activations]
        traces = tangent_kernel_trace((activations, suffix_jacobians(net.weights, patterns)))
        bounds = activation_norm_bound(
            log_pseudo_determinant(jacobians[regular], rank=2),
            rank=2,
            excess=excess,
            tangent_scale=float(traces.max()) / depth,
        )
        certificate = two_sequence_certificate(net.weights, net.biases, [p[0] for p in patterns], rank=2)
        bound = representation_tail_bound(bounds, certificate_bound=certificate.bound, depth=depth, fraction=fraction)
        layers = zip(activations, net.weights, net.biases, strict=True)
        values = [torch.linalg.svdvals(a @ w.mT + b) for a, w, b in layers]
        tails = [float(s[2]) / len(activations[0]) ** 0.5 if len(s) > 2 else 0.0 for s in values]
        assert_tail(tails, float(bound), fraction)
        checked += 1
    assert checked >= 5


def test_the_formula_and_a_control() -> None:
    bound = representation_tail_bound(torch.tensor([1.0, 3.0]), certificate_bound=4.0, depth=2, fraction=0.5)
    assert_close(bound, 4.0)
    with pytest.raises(AssertionError):
        assert_tail([5.0, 5.0, 5.0], float(bound), 0.5)
