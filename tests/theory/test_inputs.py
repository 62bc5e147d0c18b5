"""Every public function refuses bad input before any work, in words that say what to do."""

import inspect
from collections.abc import Callable, Iterator

import jaxtyping
import numpy as np
import pytest
import torch
from torch import Tensor

from isthmus import networks, theory
from isthmus.errors import ShapeError

Call = Callable[[Tensor], object]
MATRIX = torch.eye(3, dtype=torch.float64)
BATCH = MATRIX.expand(2, 3, 3)
SPECTRUM = torch.ones(3, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _as_users_run_it() -> Iterator[None]:
    """The run-time type checker of the tests would speak first: users do not have it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


TAKES_MATRIX: dict[str, Call] = {
    "linear_cost": lambda m: theory.linear_cost(m, depth=2),
    "linear_cost_expansion": theory.linear_cost_expansion,
    "optimal_linear_factors": lambda m: theory.optimal_linear_factors(m, depth=2),
    "optimal_resnet_factors": lambda m: theory.optimal_resnet_factors(m, residual_weight=1, depth=2, block_depth=1),
    "spectral_penalty": lambda m: theory.spectral_penalty(m, residual_weight=1, block_depth=1),
    "spectral_penalty_prox": lambda m: theory.spectral_penalty_prox(m, step=1, residual_weight=1, block_depth=2),
    "log_pseudo_determinant": lambda m: theory.log_pseudo_determinant(m, rank=1),
    "stable_rank_nuclear": theory.stable_rank_nuclear,
    "numerical_rank": theory.numerical_rank,
    "cost_of_identity": theory.cost_of_identity,
    "relaxed_norm": lambda m: theory.relaxed_norm(m, m, gamma=1),
    "hamiltonian": lambda m: theory.hamiltonian(m, m, effective_depth=1),
    "travelling_salesman_bounds": theory.travelling_salesman_bounds,
    "spanning_tree_length": theory.spanning_tree_length,
    "diameter": theory.diameter,
    "kernel_ridge": lambda m: theory.kernel_ridge(m, m, ridge=1, bandwidth=1),
    "nonlinearity_impact": lambda m: theory.nonlinearity_impact(m, m),
    "kernel_alignment": lambda m: theory.kernel_alignment(m, m),
    "spectral_gap_ratios": lambda m: theory.spectral_gap_ratios(m, rank=1),
    "shallow_path_norm": lambda m: theory.shallow_path_norm(m, m),
    "betweenness_certificate": lambda m: theory.betweenness_certificate(m, [m, m, m]),
    "antipodal_loop_certificate": theory.antipodal_loop_certificate,
    "two_point_bound": lambda m: theory.two_point_bound(m, m, depth=2, prefix_norm=1, suffix_norm=1),
    "bottleneck_rank_upper_bound": lambda m: theory.bottleneck_rank_upper_bound([m]),
    "bottleneck_certificate": lambda m: theory.bottleneck_certificate([m], [None], [], rank=1),
    "two_sequence_certificate": lambda m: theory.two_sequence_certificate([m], [None], [], rank=1),
}
TAKES_JACOBIANS: dict[str, Call] = {
    "schatten_lower_bound": lambda j: theory.schatten_lower_bound(j, depth=2),
    "regularity_lower_bound": lambda j: theory.regularity_lower_bound(j, rank=1, depth=2),
    "resnet_jacobian_lower_bound": lambda j: theory.resnet_jacobian_lower_bound(j, residual_weight=1, block_depth=1),
    "jacobian_rank_lower_bound": lambda j: theory.jacobian_rank_lower_bound(j, tolerance=0.1),
    "nonplanarity_bound": lambda j: theory.nonplanarity_bound(j, rank=1),
    "idempotency_defect": theory.idempotency_defect,
    "curvature_lower_bound": lambda j: theory.curvature_lower_bound(j, depth=2),
    "tangent_restriction": lambda j: theory.tangent_restriction(j, j),
    "layer_jacobian_bound": lambda j: theory.layer_jacobian_bound([j]),
}
TAKES_SPECTRUM: dict[str, Call] = {
    "resnet_cost": lambda s: theory.resnet_cost(s, residual_weight=1, block_depth=1),
    "resnet_growth": lambda s: theory.resnet_growth(s, residual_weight=1, block_depth=1),
    "resnet_cost_gradient": lambda s: theory.resnet_cost_gradient(s, residual_weight=1, block_depth=2),
    "block_cost": lambda s: theory.block_cost(s, lambda t: t, depth=2),
    "linear_path_cost": lambda s: theory.linear_path_cost(s, depth=2),
    "diagonal_linear_cost": lambda s: theory.diagonal_linear_cost(s, depth=2),
    "spectral_gap_rank": theory.spectral_gap_rank,
    "participation_ratio": theory.participation_ratio,
    "trailing_singular_value_bound": lambda s: theory.trailing_singular_value_bound(s, penalty=9, depth=2),
    "activation_norm_bound": lambda s: theory.activation_norm_bound(s, rank=1, excess=0, tangent_scale=1),
    "representation_tail_bound": lambda s: theory.representation_tail_bound(
        s, certificate_bound=1, depth=2, fraction=0.5
    ),
}
CALLS = [
    *((name, call, MATRIX) for name, call in TAKES_MATRIX.items()),
    *((name, call, BATCH) for name, call in TAKES_JACOBIANS.items()),
    *((name, call, SPECTRUM) for name, call in TAKES_SPECTRUM.items()),
]
everywhere = pytest.mark.parametrize(("name", "call", "good"), CALLS, ids=[name for name, *_ in CALLS])


@everywhere
def test_complex_and_integer_tensors_are_refused(name: str, call: Call, good: Tensor) -> None:
    for dtype in (torch.complex128, torch.int64):
        with pytest.raises(TypeError, match=rf"^{name}[:(].* real floating-point numbers; got {dtype}"):
            call(good.to(dtype))


@everywhere
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_refused(name: str, call: Call, good: Tensor, bad: float) -> None:
    spoiled = good.clone()
    spoiled.view(-1)[1] = bad
    with pytest.raises(ValueError, match=rf"^{name}[:(].*needs finite"):
        call(spoiled)


@everywhere
def test_too_few_dimensions_are_refused(name: str, call: Call, good: Tensor) -> None:
    with pytest.raises(ShapeError, match=rf"^{name}[:(].*dimensions; got shape"):
        call(good[(0,) * max(good.ndim - 1, 1)] if good.ndim > 1 else good[0])


@everywhere
def test_what_is_no_array_is_refused(name: str, call: Call, good: Tensor) -> None:
    with pytest.raises(TypeError, match=r"needs .* as a torch tensor; got dict"):
        call({"matrix": good})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("depth", [0, -3])
def test_depths_below_one_are_refused(depth: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: theory.linear_cost(MATRIX, depth=depth),
        lambda: theory.optimal_linear_factors(MATRIX, depth=depth),
        lambda: theory.diagonal_linear_cost(SPECTRUM, depth=depth),
        lambda: theory.linear_path_cost(SPECTRUM, depth=depth),
        lambda: theory.resnet_cost(SPECTRUM, residual_weight=1.0, depth=depth, block_depth=2),
        lambda: theory.block_cost(SPECTRUM, lambda t: t, depth=depth),
        lambda: theory.optimal_resnet_factors(MATRIX, residual_weight=1.0, depth=depth, block_depth=1),
        lambda: theory.spectral_penalty_prox(MATRIX, step=1, residual_weight=1, depth=depth, block_depth=1),
        lambda: theory.schatten_lower_bound(BATCH, depth=depth),
        lambda: theory.regularity_lower_bound(BATCH, rank=1, depth=depth),
        lambda: theory.two_point_bound(MATRIX, MATRIX, depth=depth, prefix_norm=1, suffix_norm=1),
        lambda: theory.rank1_cost_lower_bound(MATRIX, MATRIX, depth=depth),
        lambda: theory.curvature_lower_bound(BATCH, depth=depth),
        lambda: theory.large_singular_value_bound(penalty=1, threshold=1, depth=depth),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"needs depth >= 1; got depth={depth}"):
            call()


@pytest.mark.parametrize("depth", [2.0, True, "3"])
def test_depths_that_are_no_integers_are_refused(depth: object) -> None:
    with pytest.raises(TypeError, match="needs depth as an int"):
        theory.linear_cost(MATRIX, depth=depth)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_weights_tolerances_and_steps_must_be_positive(value: float) -> None:
    calls: dict[str, Callable[[], object]] = {
        "residual_weight": lambda: theory.resnet_cost(SPECTRUM, residual_weight=value, block_depth=1),
        "tolerance": lambda: theory.jacobian_rank_lower_bound(BATCH, tolerance=value),
        "gamma": lambda: theory.relaxed_norm(MATRIX, MATRIX, gamma=value),
        "step": lambda: theory.spectral_penalty_prox(MATRIX, step=value, residual_weight=1, block_depth=1),
        "effective_depth": lambda: theory.hamiltonian(MATRIX, MATRIX, effective_depth=value),
        "ridge": lambda: theory.kernel_ridge(MATRIX, MATRIX, ridge=value, bandwidth=1),
        "threshold": lambda: theory.large_singular_value_bound(penalty=1, threshold=value, depth=2),
        "lipschitz": lambda: theory.spanning_tree_certificate(MATRIX, MATRIX, lipschitz=value),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"needs finite {name} > 0; got {name}="):
            call()
    with pytest.raises(ValueError, match="needs finite gamma > 0"):
        theory.cost_of_identity(MATRIX, gamma=value)


@pytest.mark.parametrize("rank", [4, -1])
def test_ranks_larger_than_the_matrix_are_refused(rank: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: theory.linear_cost(MATRIX, depth=2, rank=rank),
        lambda: theory.linear_cost_expansion(MATRIX, rank=rank),
        lambda: theory.optimal_linear_factors(MATRIX, depth=2, rank=rank),
        lambda: theory.log_pseudo_determinant(MATRIX, rank=rank),
        lambda: theory.regularity_lower_bound(BATCH, rank=rank, depth=2),
        lambda: theory.nonplanarity_bound(BATCH, rank=rank),
        lambda: theory.bottleneck_certificate([MATRIX], [None], [], rank=rank),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"<= rank <= 3, .* got rank={rank}"):
            call()


def test_a_matrix_is_no_list_of_singular_values() -> None:
    functions = {name: getattr(theory, name) for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}
    takers = {name for name, one in functions.items() if "singular_values" in inspect.signature(one).parameters}
    assert takers <= set(TAKES_SPECTRUM)
    for name in takers:
        with pytest.raises(ValueError, match=rf"{name}: needs singular_values that fall .*svdvals"):
            TAKES_SPECTRUM[name](torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64))
        TAKES_SPECTRUM[name](torch.tensor([[2.0, 1.0], [3.0, 0.5]], dtype=torch.float64))  # two spectra
        TAKES_SPECTRUM[name](torch.tensor([1.0, 2.0], dtype=torch.float64))  # one, in any order


def test_an_array_of_two_axes_is_a_matrix_even_where_its_rows_fall() -> None:
    matrix = np.array([[3.0, 1.0], [2.0, 0.5]])
    for name in (
        "resnet_cost",
        "block_cost",
        "linear_path_cost",
        "participation_ratio",
        "trailing_singular_value_bound",
    ):
        call: Callable[[object], object] = TAKES_SPECTRUM[name]  # pyright: ignore[reportAssignmentType]
        for given in (matrix, matrix.tolist()):
            with pytest.raises(ValueError, match=rf"{name}: .*of one map; got a matrix of shape \(2, 2\)"):
                call(given)
        call(matrix[0])
        call(torch.tensor(matrix))  # two spectra


def test_negative_singular_values_are_refused() -> None:
    costs = ("resnet_cost", "resnet_growth", "resnet_cost_gradient", "block_cost")
    for name in (*costs, "trailing_singular_value_bound", "spectral_gap_rank", "participation_ratio"):
        with pytest.raises(ValueError, match=rf"{name}: needs singular_values >= 0; got -1"):
            TAKES_SPECTRUM[name](torch.tensor([1.0, -1.0]))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_read_off_networks_must_be_finite_and_norms_not_negative(value: float) -> None:
    def cost(penalty: float) -> float:
        return theory.bottleneck_cost_upper_bound(penalty, 1.0, rank=1, depth=3, encoder_depth=1, decoder_depth=1)

    calls: dict[str, Callable[[], object]] = {
        "encoder_penalty": lambda: cost(value),
        "constant": lambda: theory.depth_window(rank=2, constant=value, rank1_constant=1, rank1_stretch=2),
        "aligned": lambda: theory.rank_one_descent(value, 1.0, step=0.1, num_steps=2),
        "orthogonal": lambda: theory.rank_one_descent(1.0, value, step=0.1, num_steps=2),
    }
    may_be_negative: dict[str, Callable[[], object]] = {
        "rank1_constant": lambda: theory.depth_window(rank=2, constant=1, rank1_constant=value, rank1_stretch=2),
        "loss": lambda: theory.switch_depth(loss=(value, 1.0), constant=(1.0, 1.0), rank=(1, 2), ridge=0.1),
        "excess": lambda: theory.activation_norm_bound(SPECTRUM, rank=1, excess=value, tangent_scale=1),
    }
    for name, call in calls.items() if value < 0 else {**calls, **may_be_negative}.items():
        with pytest.raises(ValueError, match=rf"needs .*{name}( >= 0)?; got .*{value}"):
            call()
    for call in may_be_negative.values() if value < 0 else ():
        call()
    with pytest.raises(TypeError, match="needs aligned as a real number; got None"):
        theory.rank_one_descent(None, 1.0, step=0.1, num_steps=2)  # pyright: ignore[reportArgumentType]


def test_bounds_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="needs activation_bounds >= 0; got -1"):
        theory.representation_tail_bound(-SPECTRUM, certificate_bound=1, depth=2, fraction=0.5)
    with pytest.raises(ValueError, match=r"kernel_ridge: needs a ridge above the rounding of K, 3 samples"):
        theory.kernel_ridge(0 * MATRIX, MATRIX, ridge=1e-20, bandwidth=1)


@pytest.mark.parametrize("path", [torch.zeros(2, 1).double(), torch.zeros(0, 3).double()], ids=["width", "no point"])
def test_paths_of_other_outputs_and_paths_without_points_are_refused(path: Tensor) -> None:
    with pytest.raises(ShapeError, match=r"needs paths\[1\] as values of f, shape \(m, 3\), m >= 1"):
        theory.betweenness_certificate(MATRIX, [MATRIX, path, MATRIX])


@pytest.mark.parametrize("block_depth", [0, 3, "two"])
def test_other_block_depths_are_refused(block_depth: object) -> None:
    with pytest.raises((ValueError, TypeError), match="needs block_depth (1 or 2|as an int; got 'two')"):
        theory.resnet_cost(SPECTRUM, residual_weight=1, block_depth=block_depth)  # pyright: ignore[reportArgumentType]


def test_layers_that_do_not_fit_are_refused() -> None:
    wide, pattern = torch.ones(2, 4, dtype=torch.float64), torch.ones(2, 3, dtype=torch.float64)
    with pytest.raises(ShapeError, match="needs weights that chain"):
        theory.piecewise_jacobian([MATRIX, wide], [pattern])
    with pytest.raises(ShapeError, match="L - 1 derivatives"):
        theory.piecewise_jacobian([MATRIX, MATRIX], [])
    with pytest.raises(ShapeError, match="needs derivatives of width 3"):
        theory.suffix_jacobians([MATRIX, MATRIX], [wide])
    with pytest.raises(ValueError, match=r"needs derivatives in \[-1, 1\]"):
        theory.prefix_jacobians([MATRIX, MATRIX], [2 * pattern])
    with pytest.raises(ValueError, match="needs one bias per layer"):
        theory.bottleneck_certificate([MATRIX], [], [], rank=1)
    with pytest.raises(ShapeError, match="lists of one length"):
        theory.tangent_kernel_trace(([MATRIX], []))
    with pytest.raises(ShapeError, match="same samples"):
        theory.relaxed_norm(MATRIX, wide, gamma=1)


def test_every_exported_name_is_there_once() -> None:
    assert len(set(theory.__all__)) == len(theory.__all__)
    assert all(hasattr(theory, name) for name in theory.__all__)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: theory.balancedness_slope(torch.zeros(0, 1, 2), torch.zeros(0), effective_depth=1),
            "at least one layer",
        ),
        (
            lambda: theory.block_cost(torch.ones(1), lambda t: t.detach(), depth=2),
            "it detaches",
        ),
        (lambda: theory.features(torch.ones(1, 2), smoothing=-1), "features.*smoothing"),
        (lambda: networks.rebalance("a"), "rebalance: needs a network; got str"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(call: Callable[[], object], told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        call()
