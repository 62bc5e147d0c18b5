"""Derivatives count where inputs move: directions in which no row goes certify no rank, nor do units of the inputs."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from isthmus import FullyConnected, diagnose
from isthmus.diagnostics.movement import Movement
from isthmus.diagnostics.samples import Samples
from isthmus.theory import RankEstimate

MOVES = 3  # directions in which the rows move


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sequential(d_in: int, d_out: int, activation: Callable[[], nn.Module]) -> nn.Module:
    """As torch draws it: nothing has been forgotten of directions in which no row goes."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Linear(d_in, 32), activation(), nn.Linear(32, 32), activation(), nn.Linear(32, d_out)
        ).double()


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "tanh": lambda: sequential(12, 8, nn.Tanh),
    "gelu": lambda: sequential(12, 5, nn.GELU),
    "relu": lambda: sequential(12, 8, nn.ReLU),
    "fully connected": lambda: FullyConnected(12, 8, width=32, depth=3, seed=0, dtype=torch.float64),
    "of one layer": lambda: FullyConnected(12, 8, width=8, depth=1, seed=0, dtype=torch.float64),
}


def rank_on(network: nn.Module, x: Tensor | tuple[Tensor, ...]) -> RankEstimate:
    return diagnose(network, x, jacobians=True).rank


@pytest.mark.parametrize("noise", [0.0, 1e-5])
@pytest.mark.parametrize("kind", NETWORKS)
def test_no_rank_is_certified_by_directions_that_rows_do_not_take(kind: str, noise: float) -> None:
    network, span = NETWORKS[kind](), normal(MOVES, 12, seed=1)
    x = normal(400, MOVES) @ span + 7.0 + noise * normal(400, 12, seed=2)
    found = rank_on(network, x)
    assert found.lower <= MOVES
    if not noise:
        assert (found.upper, found.upper_reason) == (MOVES, "directions in which the inputs vary")
    filled = rank_on(network, normal(400, 12) + 7.0)  # the control: rows that go everywhere
    assert filled.lower == min(8 if kind != "gelu" else 5, 12)


@pytest.mark.parametrize("kind", NETWORKS)
def test_columns_that_hardly_move_and_constant_ones_certify_nothing(kind: str) -> None:
    x = normal(300, 12)
    x[:, 2:] *= 1e-9
    x[:, 5] = 1e3
    assert rank_on(NETWORKS[kind](), x).lower <= 2


def test_units_and_coordinates_of_the_inputs_change_nothing() -> None:
    """A first layer that undoes a change of coordinates computes the same of the changed rows."""
    x, change = normal(200, 12), normal(12, 12, seed=3) @ torch.diag(torch.logspace(-4, 4, 12, dtype=torch.float64))
    plain = NETWORKS["tanh"]()
    first = nn.Linear(12, 12, bias=False).double()
    undone = nn.Sequential(first, plain)
    with torch.no_grad():
        first.weight.copy_(torch.linalg.inv(change).mT)
    assert rank_on(plain, x).lower == rank_on(undone, x @ change).lower == 8


def of_covariance(x: Tensor, jacobian: Tensor) -> np.ndarray:
    """Singular values of J times the centred rows, by numpy."""
    centred = x.numpy() - x.numpy().mean(0)
    return np.linalg.svd(jacobian.numpy() @ centred.T / len(x) ** 0.5, compute_uv=False)


@pytest.mark.parametrize(("n", "d"), [(50, 7), (7, 50), (150, 1100), (2, 3)], ids=str)
def test_the_movement_is_a_factor_of_the_covariance(n: int, d: int) -> None:
    x, jacobian = normal(n, d), normal(4, d, seed=1)
    movement = Movement.of(Samples.of(x))
    found = torch.linalg.svdvals(movement.along(jacobian[None])[0]).numpy()
    expected = of_covariance(x, jacobian)
    size = min(len(found), len(expected))
    assert np.allclose(found[:size], expected[:size], rtol=1e-10, atol=1e-12 * expected[0])
    assert (movement.most(), movement.rank()) == ((n - 1, None) if n <= d else (None, d))


def test_the_movement_of_several_inputs_is_theirs_together_and_of_tokens_none() -> None:
    x, y, jacobian = normal(60, 3), normal(60, 2, 2, seed=1), normal(1, 4, 7, seed=2)
    together = Movement.of(Samples.of((x, y))).along(jacobian)[0]
    expected = of_covariance(torch.cat([x, y.flatten(1)], 1), jacobian[0])
    assert np.allclose(torch.linalg.svdvals(together), expected)
    tokens = Movement.of(Samples.of(torch.arange(12).reshape(4, 3)))
    assert tokens.along(jacobian) is jacobian
    assert (tokens.most(), tokens.rank()) == (None, None)


def test_what_few_rows_cannot_show_is_said() -> None:
    """Ten rows differ in nine directions: a network through 20 dimensions shows nine of them, or more."""
    network = sequential(40, 30, nn.Tanh)
    few, many = rank_on(network, normal(10, 40)), rank_on(network, normal(400, 40))
    assert few.is_at_least
    assert (few.lower, few.upper) == (9, 30)
    assert many.lower == 30


def linear(d_in: int, d_out: int, dtype: torch.dtype = torch.float64) -> nn.Linear:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return nn.Linear(d_in, d_out).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_directions_that_rows_take_are_never_called_rounding(dtype: torch.dtype) -> None:
    """Of many rows, half precision and columns of sizes far apart few directions had been told, by a share of one."""
    for n, sizes in ((50, (1.0, 1.0)), (1000, (1.0, 1.0)), (20_000, (1.0, 0.01)), (2000, (1.0, 1e-7))):
        x = (normal(n, 6) * torch.tensor([*sizes, 1.0, 1.0, 1.0, 1.0], dtype=torch.float64)).to(dtype)
        close = x.clone()
        close[:, 1] = (x[:, 0].double() + 0.01 * normal(n, seed=9)).to(dtype)
        assert rank_on(linear(6, 6), close).upper == 6, "two columns that are close are two"
        found = rank_on(linear(6, 6), x)
        assert (found.upper, found.upper_reason) != (found.lower, "directions in which the inputs vary")
        assert found.upper == 6


class Cast(nn.Module):
    """Takes whole numbers beside numbers, and adds what a layer makes of each."""

    def __init__(self) -> None:
        super().__init__()
        self.of_others, self.of_numbers = linear(5, 4), linear(1, 4)

    def forward(self, x: Tensor, others: Tensor) -> Tensor:
        return self.of_numbers(x) + self.of_others(others.double())


@pytest.mark.parametrize("constant", [False, True])
def test_whole_numbers_beside_numbers_leave_the_directions_open(constant: bool) -> None:
    x, others = normal(300, 1), torch.randint(0, 2, (300, 5), generator=torch.Generator().manual_seed(3))
    x = torch.ones_like(x) if constant else x
    for data in ((x, others), {"x": x, "others": others}):
        found = diagnose(Cast(), data, jacobians=True)
        assert (found.rank.upper, found.rank.upper_reason) == (4, "number of outputs")
        assert not any("derivatives by its inputs are 0" in text for text in found.warnings)


class Uncopied(nn.Module):
    """Is evaluated in its own precision, since it cannot be copied."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.layers = nn.Sequential(linear(6, 8, dtype), nn.Tanh(), linear(8, 3, dtype))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)

    def __deepcopy__(self, memo: dict[int, object]) -> "Uncopied":
        raise TypeError("one of a kind")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_modules_that_keep_their_own_precision_are_read_too(dtype: torch.dtype) -> None:
    found = diagnose(Uncopied(dtype), 1000 * normal(200, 6).to(dtype), jacobians=True)
    assert found.rank.upper == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_rounding_of_the_inputs_certifies_no_direction(dtype: torch.dtype) -> None:
    """Of 20 columns whose sizes fall without a gap one is made of two others: in float32 up to 1e-8 of these."""
    x = normal(3000, 20) * 0.42 ** torch.arange(20, dtype=torch.float64)
    x[:, 19] = x[:, 0] + x[:, 1]
    with torch.no_grad():
        layer = linear(20, 20)
        layer.weight.copy_(torch.eye(20))
    found = rank_on(layer, x.to(dtype))
    assert found.lower <= 19
    assert found.upper == 19


class SomeTokens(nn.Module):
    """An expert that takes the tokens chosen for it, in a module of many outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.expert = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        chosen = x[..., 0] > 0
        out = torch.zeros_like(x)
        out[chosen] = self.expert(x[chosen])
        return x + out


def test_an_expert_in_a_module_of_many_outputs_is_read() -> None:
    found = diagnose(SomeTokens().double(), normal(30, 20, 8), jacobians=True)
    assert found.layers.sizes["layer"] == 1
