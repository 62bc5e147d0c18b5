"""One law of size: what is free of scale, or of one degree in it, stays so as far as the numbers of a type reach.

Squares of 1e-200 vanish in float64, those of 1e-23 in float32; a collapsed layer has such activations. Bounds over all
scales: `test_bounds`.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from isthmus import theory
from theorem_checks import assert_close, normal

A, B, J = normal(0, 6, 3), normal(1, 6, 3), normal(2, 4, 3, 2)
LOOP = torch.tensor([[1, 0], [0.3, 1], [-1, 0.2], [0, -1]], dtype=torch.float64)
PATHS = [[[0, 1], [0, 0.1], [-1, 0]], [[1, 0], [0, 0.1], [-1, 0]], [[1, 0], [0, 0.1], [0, 1]]]
ENDS = torch.tensor([[1, 0], [0, 1], [-1, 0]], dtype=torch.float64)


def betweenness(ends: Tensor) -> object:
    size = ends.abs().max()
    paths = [torch.tensor(path, dtype=torch.float64).to(ends) * size for path in PATHS]
    return theory.betweenness_certificate(ends, paths).rank


# what is computed of one tensor, and its degree in the size of it
OF_ONE: dict[str, tuple[Callable[[Tensor], object], Tensor, int]] = {
    "kernel_alignment of both": (lambda a: theory.kernel_alignment(a, a[:, [1, 0, 2]] + a), A, 0),
    "kernel_alignment of one": (lambda a: theory.kernel_alignment(a, B.to(a)), A, 0),
    "nonlinearity_impact": (lambda a: theory.nonlinearity_impact(a, a.relu()), A, 0),
    "stable_rank_nuclear": (theory.stable_rank_nuclear, A, 0),
    "numerical_rank": (lambda a: theory.numerical_rank(a).double(), A, 0),
    "jacobian_rank_lower_bound": (lambda j: theory.jacobian_rank_lower_bound(j, tolerance=0.3).rank, J, 0),
    "negative_energy_fraction": (theory.negative_energy_fraction, A, 0),
    "spectral_gap_ratios": (lambda a: theory.spectral_gap_ratios(a, rank=1)[0], A, 0),
    "spectral_gap_bound": (lambda a: theory.spectral_gap_bound(a, a[:, :2], weight_norms=2 * torch.ones(3)), A, 0),
    "cost_of_identity": (lambda a: theory.cost_of_identity(a, bias=False), A.abs(), 0),
    "energy_split": (lambda a: theory.energy_split(a, 2 * a, effective_depth=3, bias=False).lagrangian, A.abs(), 0),
    "covariance_coefficients": (lambda a: theory.covariance_coefficients(a[:2]), A, 0),
    "betweenness_certificate": (betweenness, ENDS, 0),
    "antipodal_loop_certificate": (lambda c: theory.antipodal_loop_certificate(c).rank, LOOP, 0),
    "distance of antipodes": (lambda c: theory.antipodal_loop_certificate(c).measured, LOOP, 1),
    "spectral_gap_rank": (lambda a: theory.spectral_gap_rank(torch.linalg.svdvals(a)).double(), A, 0),
    "participation_ratio": (lambda a: theory.participation_ratio(torch.linalg.svdvals(a)), A, 0),
    "enclosed_singular_values": (lambda a: theory.enclosed_singular_values(a).values, A, 1),
    "linear_cost": (lambda a: theory.linear_cost(a, depth=2), A, 1),
    "diagonal_linear_cost": (lambda a: theory.diagonal_linear_cost(a[0], depth=2), A, 1),
    "features": (lambda a: theory.features(a, bias=False), A, 1),
    "diameter": (theory.diameter, A, 1),
    "spanning_tree_length": (theory.spanning_tree_length, A, 1),
    "partial_path_bounds": (theory.partial_path_bounds, A, 1),
    "narrow_kernel_bound by codes": (
        lambda a: theory.narrow_kernel_bound(a[:, 0], B.to(a), weights=torch.ones(2)), A.abs(), 0,
    ),
    "rank1_kernel_bound of both": (
        lambda a: theory.rank1_kernel_bound(a, a, weights=a.abs().amax(0), lipschitz=3), A, 0,
    ),
    "travelling_salesman_bounds": (lambda a: theory.travelling_salesman_bounds(a)[0], A, 1),
    "travelling_salesman_bounds of many": (lambda a: theory.travelling_salesman_bounds(a)[1], normal(3, 20, 2), 1),
    "rank1_stretch by outputs": (lambda a: theory.rank1_stretch(B.to(a), a), A, 1),
    "rank1_stretch by inputs": (lambda a: theory.rank1_stretch(a, B.to(a)), A, -1),
    "spanning_tree_certificate": (
        lambda a: theory.spanning_tree_certificate(a, A[:, :1].to(a), lipschitz=1 / float(a.abs().max())).rank, A, 0,
    ),
    "shallow_path_norm": (lambda a: theory.shallow_path_norm(a, B.mT.to(a)), A, 1),
}  # fmt: skip
EXPONENTS = {torch.float64: (-1000, -600, -300, 300, 600, 1000), torch.float32: (-110, -70, -40, 40, 70, 110)}


def resized(values: Tensor, by: int) -> Tensor:
    """Times 2^by, in two steps: 2^by itself may be no number."""
    return values * 2.0 ** (by // 2) * 2.0 ** (by - by // 2)


def relative_error(name: str, dtype: torch.dtype, by: int) -> float:
    """Of the number at a size of 2^by, against that at size 1."""
    function, at_one, degree = OF_ONE[name]
    at_one = at_one.to(dtype)
    expected = torch.as_tensor(function(at_one), dtype=torch.float64)
    found = torch.as_tensor(function(resized(at_one, by)), dtype=torch.float64)
    found = resized(found, -by * degree)
    error = float((found - expected).abs().max() / expected.abs().max())
    return math.inf if math.isnan(error) else error


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize("dtype", EXPONENTS)
def test_nothing_depends_on_the_size_but_by_its_degree(name: str, dtype: torch.dtype) -> None:
    allowed = 1000 * torch.finfo(dtype).eps
    assert {by: error for by in EXPONENTS[dtype] if (error := relative_error(name, dtype, by)) > allowed} == {}


def test_squares_as_they_stand_break_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the formulas before, which read 0 or NaN off a small layer, in float32 at 1e-12 already."""

    def alignment(a: Tensor, b: Tensor) -> Tensor:
        a, b = a - a.mean(0), b - b.mean(0)
        sizes = torch.linalg.matrix_norm(a.mT @ a) * torch.linalg.matrix_norm(b.mT @ b)
        return (a.mT @ b).square().sum() / torch.where(sizes > 0, sizes, 1.0)

    monkeypatch.setattr(theory, "kernel_alignment", alignment)
    assert relative_error("kernel_alignment of both", torch.float32, -40) > 0.9
    assert relative_error("kernel_alignment of both", torch.float64, 600) > 0.9


@pytest.mark.parametrize("by", [-1000, -70, -20, 0, 20, 200, 1000])
@pytest.mark.parametrize("seed", range(40))
def test_a_constant_beside_a_layer_of_any_size_costs_what_it_costs(by: int, seed: int) -> None:
    """With a bias nothing is free of scale: rank A, less q / (1 + q) where 1 is in the span of A, q = 1^T K^+ 1."""
    apart = normal(seed, *A.shape).abs()
    together = torch.cat([apart, torch.ones(6, 1).double()], 1)
    q = float((torch.linalg.pinv(together) @ torch.ones(6).double()).square().sum())
    share = 1 / (1 + math.ldexp(1, 2 * by) / q) if by < 500 else 0.0
    at = [resized(part, by) for part in (apart, together)]
    assert float(theory.cost_of_identity(at[0])) == pytest.approx(3, rel=1e-12)
    assert float(theory.cost_of_identity(at[1])) == pytest.approx(4 - share, rel=1e-12)
    split = theory.energy_split(at[1], at[1], effective_depth=2)
    assert split.coupling == pytest.approx(4 - share, rel=1e-12)
    weights = theory.least_norm_weights(at[1], 0 * at[1], effective_depth=1)
    assert float(weights.square().sum()) == pytest.approx(4 - share, rel=1e-12)
    falls = 1 / (math.ldexp(1, -by) + math.ldexp(1, by) / q)  # 1^T K^+ 1 times the size of the last neuron
    assert float(theory.scale_criticality(at[1])[-1]) == pytest.approx(falls, rel=1e-9)


def test_float32_values_certify_nothing_by_their_own_rounding() -> None:
    """Antipodes that agree on the way, as far as float32 can say so: a default of 1e-9 certified 99 % of them."""
    certified = 0
    for seed in range(200):
        v, ends = normal(seed, 3), normal(seed + 1000, 2, 3)
        t = 0.1 + 0.8 * (seed / 200)
        corners = torch.stack([ends[0] + t * v, ends[1] - (1 - t) * v, *ends])
        assert theory.antipodal_loop_certificate(corners).rank == 0
        certified += theory.antipodal_loop_certificate(corners.float()).rank
    assert certified == 0


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("centre", [1.0, 1e9, 1e-30])
@pytest.mark.parametrize("shape", [(2, 1), (3, 1), (6, 2), (20, 3)])
def test_samples_that_hardly_differ_cost_their_rank(shape: tuple[int, int], centre: float, spread: float) -> None:
    """A constant that is nearly in the span of such a layer had cost 299,080 for 1, or was said to be impossible."""
    A = centre * (2 + spread * torch.sin(normal(3, *shape)))
    width, relative = shape[1], 1e-12 / spread
    for bias in (False, True):
        assert float(theory.cost_of_identity(A, bias=bias)) == pytest.approx(width, rel=relative)
        weights = theory.least_norm_weights(A, 0 * A, effective_depth=1, bias=bias)
        assert float(weights.square().sum()) == pytest.approx(width, rel=relative)
    split = theory.energy_split(A, A, effective_depth=2)
    assert split.coupling == pytest.approx(width, rel=relative)


def test_edges_beyond_the_range_of_squares_make_no_path_longer() -> None:
    """(.9 2^-537)^2 is rounded up to the least number there is."""
    short = 0.9 * 2.0**-537
    assert theory.partial_path_bounds(torch.tensor([[0.0], [short], [0.75]], dtype=torch.float64))[1] <= short
    assert theory.partial_path_bounds(torch.tensor([[0.0], [1e-140], [0.75]], dtype=torch.float64))[1] == pytest.approx(
        1e-140, rel=1e-12
    )


@pytest.mark.parametrize("shift", [0.0, 1e4, 1e8, 1e12])
def test_slopes_of_a_kernel_regression_do_not_depend_on_where_it_lies(shift: float) -> None:
    x = torch.arange(16, dtype=torch.float64).reshape(8, 2) / 8 + shift
    usual, moved = (theory.kernel_ridge(at, x - shift, ridge=1e-3, bandwidth=1) for at in (x - shift, x))
    found = moved.jacobian(x)
    assert_close(found, usual.jacobian(x - shift), relative=1e-12)
