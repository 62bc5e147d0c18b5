import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.networks import FullyConnected, jacobians
from isthmus.theory import kernel_alignment, linear_cost, optimal_linear_factors, schatten_lower_bound
from theorem_checks import ACTIVE, SEEDS, assert_at_most, assert_close, chain, folded, normal, with_spectrum

pytestmark = pytest.mark.theorem("FC-33")


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_rotations_shifts_and_scales_do_not_matter(seed: int) -> None:
    points, rotation = normal(seed, 20, 4), torch.linalg.qr(normal(seed + 1, 6, 6)).Q[:4]
    assert_close(kernel_alignment(points, 3 * points @ rotation + normal(seed + 2, 6)), 1.0)
    other = kernel_alignment(points, normal(seed + 3, 20, 4))
    assert_at_most(other, 1.0)
    with pytest.raises(AssertionError):
        assert_close(other, 1.0)


def test_one_column_each_has_the_square_of_the_correlation() -> None:
    """0, 1, 2, 5 and 1, 0, 3, 2 centred have squares 14 and 5 and the product 4."""
    left, right = (torch.tensor(v, dtype=torch.float64)[:, None] for v in ([0, 1, 2, 5], [1, 0, 3, 2]))
    assert_close(kernel_alignment(left, right), 16 / 70)
    with pytest.raises(AssertionError):
        assert_close(kernel_alignment(left, right).sqrt(), 16 / 70)


def test_two_columns_against_a_number_worked_out_by_hand() -> None:
    """Both are centred; |A^T B|^2 = 2^2 + 1^2, |A^T A|^2 = 10, |B^T B|^2 = 4."""
    left = torch.tensor([[1.0, 0], [0, 1], [-1, -1]], dtype=torch.float64)
    right = torch.tensor([[1.0], [0], [-1]], dtype=torch.float64)
    assert_close(kernel_alignment(left, right), 5 / (10 * 4) ** 0.5)


def test_a_constant_representation_aligns_with_nothing() -> None:
    assert_close(kernel_alignment(normal(0, 5, 2), torch.ones(5, 3, dtype=torch.float64)), 0.0)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, depth=st.integers(2, 9))
def test_the_cost_splits_at_every_layer_of_an_optimal_network(seed: int, depth: int) -> None:
    """R(A; L) = R(B; l) + R(C; L - l) where A = C B is cut behind layer l of the optimum, and <= at any other cut."""
    A = with_spectrum(seed, [3.0, 1.0, 0.2], 5, 4)
    factors, whole = optimal_linear_factors(A, depth=depth), linear_cost(A, depth=depth)
    for l in range(1, depth):
        before, behind = chain(factors[:l]), chain(factors[l:])
        assert_close(linear_cost(before, depth=l) + linear_cost(behind, depth=depth - l), whole, relative=1e-9)
        stretched = torch.diag(torch.linspace(0.5, 2, len(before))).double()
        one = linear_cost(stretched @ before, depth=l)
        other = linear_cost(behind @ torch.linalg.inv(stretched), depth=depth - l)
        assert_at_most(whole, one + other)
        with pytest.raises(AssertionError):
            assert_close(one + other, whole, relative=1e-6)


def test_aligned_layers_of_an_optimal_network_have_the_kernels_of_the_straight_path() -> None:
    """The kernel of layer l is that of A^(l/L), whatever rotation its neurons are written in."""
    A, x = with_spectrum(3, [2.0, 0.5], 4, 3), normal(4, 30, 3)
    half = chain(optimal_linear_factors(A, depth=4)[:2])
    _, s, V = torch.linalg.svd(A, full_matrices=False)
    root = torch.diag(s.clamp_min(0).sqrt()) @ V
    assert_close(kernel_alignment(x @ half.mT, x @ root.mT), 1.0, relative=1e-7)
    with pytest.raises(AssertionError):
        assert_close(kernel_alignment(x @ half.mT, x @ A.mT), 1.0, relative=1e-7)


@pytest.mark.parametrize("depth", [3, 6])
def test_the_cost_of_a_folded_map_splits_at_every_layer_too(depth: int) -> None:
    """The geodesic identity of a nonlinear map: both parts, and the whole, cost what their Jacobians ask for."""
    network = folded(2, [3.0, 0.4, 1.5], depth)
    weights, _ = network.written_layers()
    x = ACTIVE * torch.ones(1, 3, dtype=torch.float64)
    whole = schatten_lower_bound(jacobians(network, x).detach(), depth=depth)
    assert_close(whole, network.penalty().detach(), relative=1e-9)
    for l in range(1, depth):
        before, behind = FullyConnected.from_layers(weights[:l]), FullyConnected.from_layers(weights[l:])
        z = before(x).detach()
        assert_close(behind(z.relu()).detach(), network(x).detach())
        one = schatten_lower_bound(jacobians(before, x).detach(), depth=l)
        other = schatten_lower_bound(jacobians(behind, z).detach(), depth=depth - l)
        assert_close(one, before.penalty().detach(), relative=1e-9)
        assert_close(one + other, whole, relative=1e-9)
        uneven = schatten_lower_bound(
            (torch.diag(torch.tensor([2.0, 1, 1])).double() @ jacobians(before, x)).detach(), depth=l
        )
        rest = schatten_lower_bound(
            (jacobians(behind, z) @ torch.diag(torch.tensor([0.5, 1, 1])).double()).detach(), depth=depth - l
        )
        assert_at_most(whole, uneven + rest)
        with pytest.raises(AssertionError):  # another representation in the middle costs more
            assert_close(uneven + rest, whole, relative=1e-3)
