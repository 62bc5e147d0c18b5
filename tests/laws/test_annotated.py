"""Every public function of `theory` answers whatever it is given, or refuses it in a sentence that names the function.

No other errors, no warnings, no number that is none. What each of them computes: tests/theorems.
"""

import inspect
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from isthmus import theory
from isthmus.theory.bridge import bridged

DRAWN = 25  # of the odd arguments of each function in the default tier
Calls = Mapping[str, Mapping[str, Any]]


@pytest.fixture(autouse=True)
def _as_users_run_it() -> Iterator[None]:
    """The run-time type checker of the tests would speak first: users do not have it."""
    jaxtyping.config.update("jaxtyping_disable", True)
    torch.set_warn_always(True)  # pyright: ignore[reportUnknownMemberType]
    yield
    torch.set_warn_always(False)  # pyright: ignore[reportUnknownMemberType]
    jaxtyping.config.update("jaxtyping_disable", False)


def r(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(i * n for i, n in enumerate(shape, 1)))
    return torch.rand(*shape, dtype=torch.float64, generator=generator) + 0.1


def good_calls() -> Calls:
    """Arguments that every function takes, with a value for each that has a default."""
    weights, gates, s = [r(3, 2), r(3, 3), r(2, 3)], [torch.ones(4, 3).double()] * 2, torch.tensor([2, 1, 0.5]).double()
    chain: Any = {"weights": weights, "derivatives": gates}
    prefix, suffix = theory.prefix_jacobians(**chain), theory.suffix_jacobians(**chain)
    layers = ([r(4, 2), r(4, 3), r(4, 3)], suffix)
    J, pair = r(4, 2, 3), {"activation": r(5, 3), "momentum": r(5, 3)}
    stream = {"activations": r(4, 5, 3), "momenta": r(4, 5, 3), "weights": r(3, 3, 4), "smoothing": 0.1}
    steps, leak = torch.full((3,), 1 / 3).double(), {"effective_depth": 2.0}
    resnet = {"residual_weight": 0.1, "depth": 3, "block_depth": 2}
    bound = {"depth": 3, "error": 1e-12}
    at_one = {"weights": weights, "biases": [r(3), None, r(2)], "derivatives": [g[0] for g in gates], "rank": 2}
    square = torch.tensor([[1, 0], [0, 1], [-1, 0], [0, -1]]).double()
    energies = [theory.relaxed_energies(r(5, 3), r(5, 3), gamma=0.1, effective_depth=2.0)] * 3
    return {
        "activation_norm_bound": {"log_pseudo_determinants": r(4), "rank": 2, "excess": 1.0, "tangent_scale": 3.0},
        "alignment_changes": stream | {"steps": steps},
        "antipodal_loop_certificate": {"corners": square, "tolerance": 1e-9},
        "balancedness_slope": {"weights": r(3, 3, 4), "steps": steps, "alignment": r(3)} | leak,
        "betweenness_certificate": {"values": square[:3], "paths": [square[1:3], square[[0, 2]], square[:2]]},
        "block_cost": {"singular_values": s, "block": lambda t: t**2, "depth": 3},
        "borsuk_ulam_certificate": {"values": r(9, 2), "antipodes": -r(9, 2), "sphere_dimension": 1, "lipschitz": 0.1,
                                    "spacing": 0.1},
        "bottleneck_certificate": at_one,
        "bottleneck_cost_upper_bound": {"encoder_penalty": 3.0, "decoder_penalty": 4.0, "rank": 2, "depth": 9,
                                        "encoder_depth": 2, "decoder_depth": 2},
        "bottleneck_rank_upper_bound": {"weights": weights},
        "certificates": {"network": torch.sin, "x": r(4, 3)},
        "cost_of_identity": {"activation": r(5, 3), "gamma": 0.1},
        "costs": {"network": torch.sin},
        "covariance_coefficients": {"activation": r(2, 9) - 0.5},
        "critical_weights": pair | leak | {"smoothing": 0.1},
        "curvature_lower_bound": {"jacobians": J, "negative_slope": 0.1} | bound,
        "depth_window": {"rank": 2, "constant": 3.0, "rank1_constant": 30.0, "rank1_stretch": 4.0},
        "diagonal_linear_cost": {"vector": r(3), "depth": 3},
        "diameter": {"points": r(5, 2)},
        "enclosed_singular_values": {"matrix": r(3, 2), "error": 1e-12, "num_factors": 2},
        "energy_split": {"activation": r(3, 5), "velocity": r(3, 5)} | leak,
        "features": {"activation": r(5, 3), "smoothing": 0.1},
        "hamiltonian": pair | leak | {"smoothing": 0.1},
        "hamiltonian_profile": stream | leak,
        "idempotency_defect": {"jacobians": r(4, 3, 3)},
        "jacobian_rank_lower_bound": {"jacobians": J, "tolerance": 1e-6},
        "kernel_alignment": {"left": r(5, 2), "right": r(5, 3)},
        "kernel_ridge": {"x": r(5, 2), "y": r(5, 3), "ridge": 0.1, "bandwidth": 1.0},
        "large_singular_value_bound": {"penalty": 9.0, "threshold": 0.5, "depth": 3},
        "largest_stable_step": {"kernel": theory.tangent_kernel(layers)},
        "last_matrix_lower_bound": {"jacobians": J, "last_matrix": r(2, 3)} | bound,
        "layer_gamma": {"features_of_layer": r(5, 3), "relative": 1e-3},
        "layer_jacobian_bound": {"jacobians": [r(4, 3, 2), J]},
        "least_norm_weights": {"activation": r(3, 5), "velocity": r(3, 5)} | leak,
        "linear_cost": {"matrix": r(3, 2), "depth": 3, "rank": 2},
        "linear_cost_expansion": {"matrix": r(3, 2), "rank": 2},
        "linear_path_cost": {"singular_values": s, "depth": 3},
        "log_pseudo_determinant": {"matrix": r(3, 2), "rank": 2},
        "negative_energy_fraction": {"activation": r(5, 3) - 0.5},
        "neuron_addition_margin": {"activation": r(2, 5), "added": r(2, 2)},
        "nonlinearity_impact": {"preactivation": r(5, 3), "activation": r(5, 3)},
        "nonplanarity_bound": {"jacobians": J, "rank": 2, "gap": 1e-6, "sweeps": 20, "error": 1e-12},
        "numerical_rank": {"matrix": r(3, 2)},
        "optimal_linear_factors": {"matrix": r(3, 2), "depth": 3, "width": 4, "rank": 2},
        "optimal_resnet_factors": {"matrix": r(3, 2), "width": 4} | resnet,
        "participation_ratio": {"singular_values": s},
        "path_length_bounds": {"energies": energies, "steps": steps} | leak,
        "piecewise_jacobian": chain,
        "plateau_slope": {"depths": torch.tensor([2, 3, 4]), "penalties": r(3)},
        "pontryagin_hamiltonian": pair | leak | {"weight": r(3, 4), "smoothing": 0.1},
        "prefix_jacobians": chain,
        "rank1_cost_lower_bound": {"x": r(5, 2), "y": r(5, 3), "depth": 3},
        "rank1_stretch": {"x": r(5, 2), "y": r(5, 3)},
        "rank_from_hamiltonian": {"hamiltonians": -r(3)} | leak,
        "rank_one_descent": {"aligned": 0.5, "orthogonal": 0.3, "step": 0.01, "num_steps": 5},
        "regularity_lower_bound": {"jacobians": J, "rank": 2} | bound,
        "relaxed_energies": pair | leak | {"gamma": 0.1, "smoothing": 0.1},
        "relaxed_norm": {"m": r(5, 3), "s": r(5, 2), "gamma": 0.1},
        "representation_tail_bound": {"activation_bounds": r(4), "certificate_bound": 2.0, "depth": 9, "fraction": 0.5},
        "resnet_cost": {"singular_values": s} | resnet,
        "resnet_cost_gradient": {"singular_values": s} | resnet,
        "resnet_growth": {"singular_values": s} | resnet,
        "resnet_jacobian_lower_bound": {"jacobians": J, "error": 1e-12} | resnet,
        "scale_criticality": {"activation": r(5, 3)},
        "schatten_lower_bound": {"jacobians": J} | bound,
        "segment_kernel_bound": {"jacobians": J, "displacements": r(4, 3), "negative_slope": 0.1} | bound,
        "shallow_path_norm": {"incoming": r(4, 2), "outgoing": r(3, 4), "bias": r(4), "output_bias": r(3)},
        "sharpness": {"kernel": theory.tangent_kernel(layers)},
        "spanning_tree_certificate": {"x": r(5, 2), "values": r(5, 3), "lipschitz": 0.1},
        "spanning_tree_length": {"points": r(5, 2)},
        "spectral_gap_profile": {"representations": [r(5, 3), r(5, 4)], "rank": 1},
        "spectral_gap_rank": {"singular_values": s, "floor": 0.01},
        "spectral_gap_ratios": {"representation": r(5, 3), "rank": 1},
        "spectral_penalty": {"matrix": r(3, 2), "rank": 2} | resnet,
        "spectral_penalty_prox": {"matrix": r(3, 2), "step": 0.1} | resnet,
        "stable_rank_nuclear": {"matrix": r(3, 2)},
        "suffix_jacobians": chain,
        "switch_depth": {"loss": (2.0, 1.0), "constant": (0.0, 1.0), "rank": (1, 2), "ridge": 0.1},
        "tangent_kernel": {"left": layers, "right": layers},
        "tangent_kernel_by_layer": {"left": layers, "right": layers},
        "tangent_kernel_curvature": {"prefix": [torch.eye(2).double().expand(4, 2, 2), *prefix][:3], "suffix": suffix},
        "tangent_kernel_trace": {"layers": layers},
        "tangent_kernel_trace_by_layer": {"layers": layers},
        "tangent_restriction": {"jacobians": J, "tangents": torch.linalg.qr(r(4, 3, 2)).Q},
        "trailing_singular_value_bound": {"singular_values": s[:1], "penalty": 9.0, "depth": 3},
        "travelling_salesman_bounds": {"points": r(5, 2)},
        "two_point_bound": {"jacobian_x": r(2, 3), "jacobian_y": r(2, 3), "prefix_norm": 2.0, "suffix_norm": 2.0}
        | bound,
        "two_sequence_certificate": at_one,
        "velocity": pair | {"smoothing": 0.1},
    }  # fmt: skip


ODD: Sequence[Any] = (
    None, "abc", "3", b"a", {"a": 1}, {1.0}, range(3), object(), [], [[]], [[1.0], [1.0, 2.0]], [1.0, [1.0]], 1j,
    0, -1, 2, 2.5, math.nan, math.inf, -math.inf, 1e308, 5e-324, 10**18, 10**400, True, Fraction(1, 3), np.int64(3),
    np.float32(0.5), np.float64(math.nan), np.bool_(True), np.array(2), np.array([]), np.array([0, 1]), [1, 2],  # noqa: NPY002
    [math.nan], [1j], ["a"], [10**400], torch.tensor(2), torch.tensor(2.0), torch.zeros(0), np.array([1, "a"], object),
)  # fmt: skip


def odd_tensors(good: Tensor) -> Iterator[Any]:
    """What somebody could pass in the place of a tensor."""
    d = good.double().contiguous()
    a, shape = d.numpy(), tuple(d.shape)
    for value in (math.nan, math.inf):
        bad = d.clone()
        bad.view(-1)[0] = value
        yield from (bad, bad.numpy(), bad.tolist())
    yield from (torch.zeros((0,) * d.ndim).double(), d[:0], d[..., :0], d[:1], d[None], d[0], torch.cat([d, d[:1]]))
    yield from (torch.cat([d, d[..., :1]], -1), d * 1e308, d * 5e-324, 0 * d, 0 * d + 1, -d, 1e308 + 0 * d)
    yield from (d.float(), d.half(), d.bfloat16(), d.long(), d.bool(), d.to(torch.complex128), d.to_sparse())
    yield from (d.clone().requires_grad_(), d.to("meta"), [*d], [*a], a[::-1], a.astype(">f8"), a.astype(np.longdouble))
    yield from (a.astype(np.float16), a.astype(int), a * 1j, (a * 1j).tolist(), a.astype(object), a > 0.5)
    yield from (np.ma.masked_array(a, a > 0.5), pd.DataFrame(a.reshape(len(a), -1)), tuple(a.tolist()))
    fills: Any = [("a", None), ("1.5", None), (None, object), (10**400, object), ("2020-01-01", "datetime64[D]")]
    yield from (np.full(shape, fill, kind) for fill, kind in fills)
    yield np.full(shape, 10**400, object).tolist()


def odd(good: Any) -> Iterator[Any]:
    """What somebody could pass in the place of an argument: odd ones whole, and lists with one entry odd."""
    yield from ODD
    if isinstance(good, Tensor):
        yield from odd_tensors(good)
    elif isinstance(good, list | tuple):
        yield from (type(good)(good[:-1]), [*good, good[-1]], good[::-1], (x for x in good))  # pyright: ignore[reportUnknownArgumentType]
        for place in (0, len(good) - 1):  # pyright: ignore[reportUnknownArgumentType]
            yield from ([*good[:place], one, *good[place + 1 :]] for one in odd(good[place]))
    elif callable(good):
        yield from (lambda t: 1.0, lambda t: t * math.nan, lambda t: None)  # noqa: ARG005


def numbers_of(found: Any) -> Iterator[Any]:
    if isinstance(found, list | tuple):
        for entry in found:  # pyright: ignore[reportUnknownVariableType]
            yield from numbers_of(entry)
    elif isinstance(found, Tensor | float):
        yield found


def assert_answers_or_refuses(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    try:
        found = function(**arguments)
    except (TypeError, ValueError) as error:
        text = str(error)
        assert text.endswith("."), text
        assert ": needs" in text or ": " in text, text
        assert "needs" in text or function.__name__ in text, text
        return
    for number in numbers_of(found):
        kept = torch.as_tensor(number)
        assert kept.is_complex() is False
        if function.__name__ != "balancedness_slope":  # NaN where all biases vanish
            assert not bool(kept.double().isnan().any()), f"{function.__name__} gave {kept}"


def cases(name: str) -> list[dict[str, Any]]:
    good = dict(good_calls()[name])
    made = [good | {argument: value} for argument in good for value in odd(good[argument])]
    too_long = {"num_steps", "depth", "width"}  # a number of things that are all made
    return [case for case in made if not any(is_whole(case.get(one)) for one in too_long)]


def is_whole(value: object) -> bool:
    return isinstance(value, int) and 10**6 < value <= 2**53


def test_there_is_a_call_of_every_public_function() -> None:
    assert set(good_calls()) == {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}


@pytest.mark.parametrize("name", good_calls())
def test_arguments_are_answered_or_refused_in_words(name: str) -> None:
    every = cases(name)
    for case in random.Random(0).sample(every, min(DRAWN, len(every))):
        assert_answers_or_refuses(getattr(theory, name), case)


@pytest.mark.slow
@pytest.mark.parametrize("name", good_calls())
def test_all_odd_arguments_are_answered_or_refused_in_words(name: str) -> None:
    for case in cases(name):
        assert_answers_or_refuses(getattr(theory, name), case)


def test_the_law_fails_on_a_function_that_asks_nothing() -> None:
    def careless(matrix: Any, depth: Any) -> Tensor:
        return (matrix.square() ** depth).sum().log() * 0

    for value in (torch.tensor(0.0), "abc", torch.full((2,), math.nan)):
        with pytest.raises((AssertionError, AttributeError)):
            assert_answers_or_refuses(careless, {"matrix": value, "depth": 2})


def test_tensors_of_two_precisions_and_lists_of_arrays_are_taken_together() -> None:
    m, s = r(5, 3), r(5, 2)
    expected = float(theory.relaxed_norm(m, s, gamma=0.1))
    assert float(theory.relaxed_norm(m.float(), s, gamma=0.1)) == pytest.approx(expected, rel=1e-5)
    halves = theory.numerical_rank(torch.eye(3).half())
    assert int(halves) == 3
    weights: Any = torch.stack([torch.eye(2), torch.eye(2)])
    assert theory.bottleneck_rank_upper_bound(weights) == 2
    frame: Any = pd.DataFrame({"a": [3.0, 0.0], "b": [0.0, 4.0]})
    assert float(theory.linear_cost(frame, depth=1)) == pytest.approx(25)
    with pytest.raises(TypeError, match="missing"):
        theory.linear_cost(m)  # pyright: ignore[reportCallIssue]
    assert bridged(theory.linear_cost)(m, depth=1) == theory.linear_cost(m, depth=1)
