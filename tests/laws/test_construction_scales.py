"""One law of size for `constructions`: what is exact stays so for inputs and outputs from 1e-150 to 1e150.

Relative to the scale: errors are shares of the largest value. The law of `theory`: `test_scales`.
"""

import inspect
from collections.abc import Callable
from math import inf

import pytest
import torch
from torch import Tensor

from isthmus import constructions
from isthmus.errors import DataError
from isthmus.networks import FullyConnected, jacobians
from isthmus.networks.network import Network
from theorem_checks import normal

SIZES = (1e-150, 1e-100, 1e-20, 1e-8, 1.0, 1e8, 1e20, 1e100, 1e150)
EXACT = 1e-12  # of the largest value
X, W, B = normal(0, 6, 2), normal(1, 3, 2), normal(2, 3)
Case = Callable[[float, float], tuple[Tensor, Tensor]]
"""Of a size of the inputs and one of the outputs: what the network gives, and what it should."""


def of(network: Network, x: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    return network(x).detach(), expected


def relu_network(inputs: float, outputs: float) -> FullyConnected:
    """2 -> 3 -> 2, of values of these sizes, each half of the factor in one layer."""
    first, last = (outputs**0.5 / inputs**0.5 / inputs**0.5, outputs**0.5)
    return FullyConnected.from_layers([W * first, normal(3, 2, 3) * last], [B * outputs**0.5, normal(4, 2) * outputs])


def values_of(network: FullyConnected, x: Tensor) -> Tensor:
    return network(x).detach()


def curve(a: float, b: float) -> tuple[Tensor, Tensor]:
    knots, values = torch.tensor([-1.0, 0.0, 0.5, 2.0]).double() * a, normal(5, 4, 2) * b
    made = constructions.piecewise_linear_network(knots, values, left_slope=normal(6, 2) * (b / a))
    x = torch.cat([knots, (knots[1:] + knots[:-1]) / 2, knots[:1] - a])
    outside = values[:1] - normal(6, 2) * b
    return of(made, x[:, None], torch.cat([values, (values[1:] + values[:-1]) / 2, outside]))


def interpolated(depth: int) -> Case:
    def case(a: float, b: float) -> tuple[Tensor, Tensor]:
        x, y = normal(7, 5, 3) * a, normal(8, 5, 2) * b
        made = constructions.rank_one_interpolator(x, y, depth=depth, num_directions=10)
        assert made.error <= EXACT * float(y.abs().max())
        return of(made.network, x, y)

    return case


def pieces(a: float, b: float) -> tuple[Tensor, Tensor, Tensor]:
    return normal(9, 5, 2) * (b / a), normal(10, 5) * b, X * a


def max_affine(a: float, b: float) -> tuple[Tensor, Tensor]:
    slopes, offsets, x = pieces(a, b)
    return of(constructions.max_affine_network(slopes, offsets), x, (x @ slopes.mT + offsets).amax(1, keepdim=True))


def lattice(make: Callable[..., FullyConnected]) -> Case:
    def case(a: float, b: float) -> tuple[Tensor, Tensor]:
        slopes, offsets, x = pieces(a, b)
        each, sets = x @ slopes.mT + offsets, [[0, 1, 2, 3], [2, 3, 4], [0, 4]]
        expected = torch.stack([each[:, one].amin(1) for one in sets]).amax(0)
        return of(make(slopes, offsets, sets), x, expected[:, None])

    return case


def lattice_sets(a: float, b: float) -> tuple[Tensor, Tensor]:
    slopes, offsets, x = pieces(a, b)

    def function(p: Tensor) -> Tensor:
        return (p @ slopes.mT + offsets)[:, :4].amax(1)

    sets = constructions.lattice_sets(function, slopes, offsets, normal(11, 400, 2) * a)
    made = torch.stack([(x @ slopes.mT + offsets)[:, one].amin(1) for one in sets]).amax(0)
    return made, function(x)


def bijections(a: float, b: float) -> tuple[Tensor, Tensor]:
    matrix = normal(12, 3, 1) @ normal(13, 1, 2) * b / a
    assert constructions.between_bijections(matrix).rank == 1
    made = constructions.between_bijections(matrix, depth_before=0, depth_after=0).network  # biases are of size 1
    return jacobians(made, X * a), matrix.expand(len(X), 3, 2)


def balanced(a: float, b: float) -> tuple[Tensor, Tensor]:
    matrix = normal(14, 3, 2) * (b / a)
    return of(constructions.balanced_linear_network(matrix, depth=4), X * a, X * a @ matrix.mT)


def positive_path(a: float, b: float) -> tuple[Tensor, Tensor]:
    matrix, x = torch.tensor([[1.0, 1.0], [0.0, 2.0]]).double() * b, torch.eye(2).double() * a
    return of(constructions.completely_positive_path(matrix, depth=4, x=x).network, x, x @ matrix.mT)


def composed(make: Callable[[FullyConnected, FullyConnected, Tensor], Network], *, as_inputs: bool = False) -> Case:
    """Inner values of size 1, or of that of the inputs."""

    def case(a: float, b: float) -> tuple[Tensor, Tensor]:
        middle = a if as_inputs else 1.0
        inner, outer, x = relu_network(a, middle), relu_network(middle, b), X * a
        return of(make(inner, outer, x), x, values_of(outer, values_of(inner, x)))

    return case


def beside_its_states(case: Case) -> Case:
    """Outputs smaller than the state that they cancel have the rounding of it, as documented."""

    def with_states(a: float, b: float) -> tuple[Tensor, Tensor]:
        largest = torch.full((1,), max(a, b), dtype=torch.float64)
        found, expected = (torch.cat([part.flatten(), largest]) for part in case(a, b))
        return found, expected

    return with_states


def summed(a: float, b: float) -> tuple[Tensor, Tensor]:
    one, other = relu_network(a, b), constructions.max_affine_network(normal(15, 4, 2) * (b / a), normal(16, 4) * b)
    other = FullyConnected.from_layers([*other.weights[:-1], other.weights[-1].expand(2, -1)], [*biases(other)])
    made = constructions.parallel_sum(one, other).network
    return of(made, X * a, values_of(one, X * a) + values_of(other, X * a))


def biases(network: FullyConnected) -> list[Tensor]:
    held = network.written_layers()[1]
    assert held is not None
    return [*held[:-1], held[-1].expand(2)]


def leaky(a: float, b: float) -> tuple[Tensor, Tensor]:
    network = relu_network(a, b)
    return of(constructions.leaky_from_relu(network, 0.3), X * a, values_of(network, X * a))


def kinked(a: float, b: float) -> tuple[Tensor, Tensor]:
    made = constructions.divergent_representation_example(6, alpha=b / a)
    x = normal(17, 6, 3).abs() * a
    return of(made.network, x, x + torch.tensor([0.0, 0, 1]).double() * (b / a) * (x[:, :1] - x[:, 1:2]).relu())


CASES: dict[str, Case] = {
    "balanced_linear_network": balanced,
    "between_bijections": bijections,
    "completely_positive_path": positive_path,
    "compose_with_identity": composed(lambda g, h, x: constructions.compose_with_identity(g, h, 3, x=x).network),
    "divergent_representation_example": kinked,
    "lattice_network": lattice(constructions.lattice_network),
    "lattice_sets": lattice_sets,
    "leaky_from_relu": leaky,
    "max_affine_network": max_affine,
    "merged_composition": composed(lambda g, h, _x: constructions.merged_composition(g, h)),
    "parallel_sum": summed,
    "piecewise_linear_network": curve,
    "rank_one_interpolator": interpolated(4),
    "rank_one_interpolator of depth 2": interpolated(2),
    "residual_composition": beside_its_states(
        composed(
            lambda g, h, x: constructions.residual_composition(g, h, depth=9, residual_weight=0.1, x=x).network,
            as_inputs=True,
        )
    ),
    "shallow_lattice_network": lattice(constructions.shallow_lattice_network),
    "shallow_residual_composition": composed(
        lambda g, h, x: constructions.shallow_residual_composition(g, h, depth=9, residual_weight=0.1, x=x).network
    ),
}
WITHOUT_SIZE = {"best_embedding_scale", "x_cross_example"}  # a number of lambda and widths; no argument


def error(case: Case, inputs: float, outputs: float) -> float:
    found, expected = case(inputs, outputs)
    worst = float((found - expected).abs().max() / expected.abs().max())
    return worst if worst == worst else inf


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", CASES)
def test_what_is_exact_is_exact_at_every_size(name: str) -> None:
    errors = {(a, b): error(CASES[name], a, b) for a in SIZES for b in SIZES}
    assert {sizes: found for sizes, found in errors.items() if found > EXACT} == {}


def test_every_construction_has_a_case() -> None:
    named = {name for name in constructions.__all__ if inspect.isfunction(getattr(constructions, name))}
    assert {name.split()[0] for name in CASES} | WITHOUT_SIZE == named


def test_norms_as_they_stand_break_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: squares of 1e-200 vanish, and with them a neuron."""
    monkeypatch.setattr("isthmus.constructions.piecewise_linear.lengths", lambda rows: rows.square().sum(-1).sqrt())
    assert not error(curve, 1e150, 1e-150) < 0.1


def test_slopes_that_are_no_numbers_are_refused() -> None:
    knots, values = torch.tensor([0.0, 1, 2]).double(), torch.tensor([[0.0], [1], [3]]).double()
    for a, b in ((1e160, 1e-160), (1e-160, 1e160)):
        with pytest.raises(ValueError, match="piecewise_linear_network: needs slopes between the knots that float64"):
            constructions.piecewise_linear_network(knots * a, values * b)
    with pytest.raises(ValueError, match="rank_one_interpolator: needs slopes between the knots that float64 holds"):
        constructions.rank_one_interpolator(knots[:, None] * 1e150, values * 1e-170, depth=3)
    with pytest.raises(ValueError, match="rank_one_interpolator: needs inputs, targets and slopes whose squares"):
        constructions.rank_one_interpolator(knots[:, None], (values + 1) * 1e200, depth=3)
    with pytest.raises(DataError, match="Remove contradicting rows"):
        constructions.rank_one_interpolator(0 * knots[:, None], values, depth=3)
