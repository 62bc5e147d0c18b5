import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from torch import Tensor

from isthmus.constructions import rank_one_interpolator
from isthmus.networks import FullyConnected, walk
from isthmus.networks.layers import activation_derivative
from isthmus.theory import (
    certificates,
    narrow_kernel_bound,
    partial_path_bounds,
    rank1_kernel_bound,
    suffix_jacobians,
    travelling_salesman_bounds,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("FC-43")
DEPTH = 20


def uniform(seed: int, *shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def largest_kernel(network: FullyConnected, x: Tensor, *, bias: bool = True) -> float:
    """The largest |Theta(x,x)|_op of some points, from their activations and Jacobians."""
    with torch.no_grad():
        states = walk(network, x)
        hidden = states[:-1]
        slopes = [activation_derivative(s.preactivation, network.negative_slope) for s in hidden]
        behind = suffix_jacobians([s.weight for s in states], slopes)
        entering = [x, *(s.activation for s in hidden)]
        kernels = sum(
            (a.square().sum(1) + float(bias))[:, None, None] * (J @ J.mT) for a, J in zip(entering, behind, strict=True)
        )
        assert isinstance(kernels, Tensor)
        return float(torch.linalg.eigvalsh(kernels)[:, -1].max())


def between(x: Tensor, *, count: int = 40) -> Tensor:
    """Points of all segments between samples."""
    steps = torch.linspace(0, 1, count, dtype=torch.float64)[:, None]
    return torch.cat([a + steps * (b - a) for a, b in itertools.combinations(x, 2)])


def norms(weights: Sequence[Tensor]) -> float:
    return math.prod(float(torch.linalg.matrix_norm(w.detach(), 2)) for w in weights)


@pytest.mark.parametrize("seed", range(6))
def test_partial_paths_are_no_longer_than_any_path_through_as_many_points(seed: int) -> None:
    points = normal(seed, 7, 2)
    found = partial_path_bounds(points)
    edges = np.sort(minimum_spanning_tree(cdist(points, points)).data)
    assert_close(found, torch.from_numpy(np.concatenate([[0], edges.cumsum()])))
    for count in range(2, 8):
        shortest = min(
            travelling_salesman_bounds(points[list(some)])[0] for some in itertools.combinations(range(7), count)
        )
        assert float(found[count - 1]) <= shortest
        with pytest.raises(AssertionError):  # one edge more
            assert_at_most(float(found[count - 1]) + edges.max(), shortest)
    assert partial_path_bounds(points[:0]).shape == (0,)


@pytest.mark.parametrize("k", [2, 3])
def test_rank_one_interpolators_of_more_dimensions_have_kernels_that_blow_up(k: int) -> None:
    """N = 16 .. 256 samples of the identity: the kernel of the network of rank k passes below both bounds."""
    bounds = list[float]()
    for num in (16, 32, 64, 128, 256):
        x = uniform(num + k, num, k)
        made = rank_one_interpolator(x, x, depth=DEPTH, num_directions=20)
        network, codes = made.network, x @ made.direction
        codes = codes - codes.min()
        narrow = torch.ones(DEPTH - 3, dtype=torch.float64)
        for weight in network.weights[1 : DEPTH - 2]:
            assert_close(weight.detach().flatten(), narrow[:1])
        order = codes.argsort()
        ends = x[order]
        inside = torch.cat([ends[1:] - share * ends.diff(dim=0) for share in (1e-6, 0.5)])
        kernel = largest_kernel(network, inside)
        by_codes = narrow_kernel_bound(codes, x, weights=narrow)
        steepest = float((ends.diff(dim=0).norm(dim=1) / codes[order].diff()).max())
        by_outputs = rank1_kernel_bound(x, x, weights=narrow, lipschitz=steepest)
        assert 0 < by_outputs <= by_codes <= kernel
        bounds.append(rank1_kernel_bound(x, x, weights=narrow, lipschitz=1.0))
        identity = FullyConnected.from_layers([torch.eye(k)] * DEPTH)
        kept = largest_kernel(identity, x)
    assert kept <= DEPTH * (k + 1)
    with pytest.raises(AssertionError):  # a network of rank k has another kernel at the same Lipschitz constant
        assert_at_most(bounds[-1], kept)
    with pytest.raises(AssertionError):
        assert_at_most(by_codes, kept)


@pytest.mark.parametrize(("k", "exponent"), [(2, 2.0), (3, 8 / 3)])
def test_the_exponent_of_the_number_of_samples_is_that_of_the_theorem(k: int, exponent: float) -> None:
    """Of M = L layers with C = 1 the bound is L (F_{n/2}^2 / diam)^2, which grows like n^(4 - 4/k)."""
    counts = (32, 64, 128, 256, 512)
    logs = [
        np.mean([math.log(rank1_kernel_bound(uniform(seed, n, k), uniform(seed, n, k), weights=torch.ones(9).double(),
                                             lipschitz=1.0)) for seed in range(6)]) for n in counts
    ]  # fmt: skip
    slope = np.polyfit(np.log(counts), logs, 1)[0]
    assert_close(slope, exponent, absolute=0.25)
    with pytest.raises(AssertionError):  # that of one dimension fewer
        assert_close(slope, 4 - 4 / (k - 1), absolute=0.25)


def test_scalar_linear_networks_meet_it_as_their_samples_lie_closer() -> None:
    """f(t) = 8 t through w = (2, 4, 1): the kernel is 64 t^2 sum w^-2, the bound its value at the last but one."""
    w = torch.tensor([2.0, 4.0, 1.0], dtype=torch.float64)
    network = FullyConnected.from_layers([w[:1, None], w[1:2, None], w[2:, None]])
    for num in (10, 100, 1000):
        t = torch.arange(1, num + 1, dtype=torch.float64) / num
        bound = narrow_kernel_bound(t, 8 * t[:, None], weights=w)
        assert_close(bound, 64 * float(t[-2]) ** 2 * float((w**-2).sum()), relative=1e-9)
        kernel = largest_kernel(network, t[:, None], bias=False)
        assert_close(kernel, 64 * float((w**-2).sum()))
        assert bound <= kernel
    with pytest.raises(AssertionError):  # one sum of squares too many
        assert_at_most(narrow_kernel_bound(t, 8 * t[:, None], weights=torch.cat([w, w[2:]])), kernel)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, count=st.integers(1, 5), exponent=st.floats(-3, 3), slope=st.sampled_from([0.0, 0.3, -0.7]))
def test_no_network_through_one_number_has_a_smaller_kernel(
    seed: int, count: int, exponent: float, slope: float
) -> None:
    """Of any slope: of neurons that are positive the codes are, everywhere on the hull."""
    draw = np.random.default_rng(seed)
    narrow = [torch.from_numpy(10 ** draw.uniform(-1, 1, (1, 1))) for _ in range(count)]
    into = [normal(seed, 4, 2), 10**exponent * uniform(seed + 1, 1, 4)]
    behind = [normal(seed + 2, 5, 1), normal(seed + 3, 3, 5)]
    weights = [*into, *narrow, *behind]
    x = normal(seed + 4, 6, 2)
    lift = 20 * float(into[0].norm()) * float(x.norm())  # so that codes are positive for negative slopes too
    first = normal(seed + 5, 4) + (lift if slope else 0.0)
    biases = [first, *[torch.zeros(1)] * (count + 1), normal(seed + 6, 5), torch.zeros(3)]
    network = FullyConnected.from_layers(weights, biases, negative_slope=slope)
    with torch.no_grad():
        y, codes = network(x), walk(network, x)[1].activation[:, 0]
    w = torch.cat(narrow).flatten()
    by_codes = narrow_kernel_bound(codes, y, weights=w)
    by_outputs = rank1_kernel_bound(x, y, weights=w, lipschitz=norms(weights) * (1 + 1e-12))
    by_norm = rank1_kernel_bound(
        x, y, weights=torch.full((count,), (float(w.square().sum()) / count) ** 0.5).double(),
        lipschitz=math.exp(min((float(network.penalty().detach()) - network.depth) / 2, 700)),
    )  # fmt: skip
    assert by_norm <= by_outputs * (1 + 1e-9)
    assert by_outputs <= by_codes * (1 + 1e-9)
    assert by_codes <= largest_kernel(network, between(x))


def test_errors_and_rounding_only_lower_it() -> None:
    t, y, w = torch.tensor([1.0, 2, 3]).double(), torch.tensor([[0.0], [5], [1]]).double(), torch.ones(1).double()
    assert 6.25 * (1 - 1e-10) <= narrow_kernel_bound(t, y, weights=w) <= 6.25
    assert_close(narrow_kernel_bound(t, y, weights=w, error=0.5, code_error=0.25), (0.75 * 3 / 2.5) ** 2, relative=1e-9)
    assert_close(rank1_kernel_bound(t[:, None], y, weights=w, lipschitz=1, error=0.25), (0.25 / 2) ** 2, relative=1e-9)
    assert narrow_kernel_bound(t, y, weights=w, code_error=9) == narrow_kernel_bound(t[:1], y[:1], weights=w) == 0
    assert rank1_kernel_bound(t[:2, None], y[:2], weights=w, lipschitz=1) == 0
    assert math.isfinite(narrow_kernel_bound(t, 1e300 * y, weights=1e-300 * w))
    # 1e308 + 2 * 4e307 is no number: what remains is the last piece
    assert_close(narrow_kernel_bound(t * 5e307, y, weights=w, code_error=4e307), (6 / 13) ** 2)
    far = torch.tensor([[-1.0], [0], [1]]).double() * 1.5e308
    assert rank1_kernel_bound(far, y, weights=w, lipschitz=1.0) == 0
    assert rank1_kernel_bound(t[:, None], y, weights=w, lipschitz=1.0, error=1e308) == 0


def test_what_no_such_network_has_is_refused() -> None:
    t, y, w = torch.tensor([1.0, 1]).double(), torch.tensor([[0.0], [5]]).double(), torch.ones(1).double()
    with pytest.raises(ValueError, match="codes that differ"):
        narrow_kernel_bound(t, y, weights=w)
    with pytest.raises(ValueError, match="needs codes >= 0"):
        narrow_kernel_bound(-t, y, weights=w)
    with pytest.raises(ValueError, match="weights > 0"):
        narrow_kernel_bound(t + torch.arange(2), y, weights=0 * w)
    same = torch.ones(3, 2).double()
    with pytest.raises(ValueError, match="inputs that differ"):
        rank1_kernel_bound(same, torch.arange(3).double()[:, None], weights=w, lipschitz=1)


def test_the_table_has_it_of_networks_through_one_number() -> None:
    knots, x = uniform(3, 30, 2), uniform(4, 30, 2)  # at its own samples an interpolator has kinks
    network = rank_one_interpolator(knots, knots, depth=8, num_directions=20).network
    row = certificates(network, x).set_index("name").loc["narrow_kernel_bound"]
    assert row["applies"]
    assert row["kind"] == "lower"
    with torch.no_grad():
        y, codes = network(x), walk(network, x)[0].activation[:, 0]
    expected = narrow_kernel_bound(codes, y, weights=torch.ones(5).double())
    assert 0.9 * expected < float(row["value"]) <= expected
    assert float(row["value"]) <= largest_kernel(network, between(x))
    leaky = FullyConnected(2, 2, width=1, depth=4, negative_slope=0.1, seed=0)
    for other in (FullyConnected(2, 2, width=3, depth=4, seed=0), leaky):
        row = certificates(other.double(), x).set_index("name").loc["narrow_kernel_bound"]
        assert not row["applies"]
        assert "one neuron" in row["reason"]
