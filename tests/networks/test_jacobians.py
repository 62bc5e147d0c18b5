"""Jacobians of wide networks: reduced, they have the singular values of the full ones, single and stacked."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from closeness import random
from isthmus.errors import ShapeError
from isthmus.networks import (
    FullyConnected,
    LeakyResNet,
    ReducedJacobians,
    ResNet,
    as_fully_connected,
    enclosed_jacobians,
    jacobians,
    reduced_jacobians,
    walk,
)
from shape_checks import own_shape_checks
from theorem_checks import assert_close

SIZES = [(90, 8), (7, 80), (90, 80), (90, 31), (31, 80)]
PRECISION = 1e-13  # relative to the largest singular value


def example(d_in: int, d_out: int, *, depth: int = 4) -> tuple[FullyConnected, Tensor]:
    network = FullyConnected(d_in, d_out, width=8, depth=depth, linear=(2,) if depth > 2 else (), seed=1).double()
    x = torch.randn(6, d_in, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return network, x


def assert_same_singular_values(found: Tensor, full: Tensor) -> None:
    layouts = {
        "single": lambda j: j,
        "by rows": lambda j: j.flatten(0, 1),
        "by columns": lambda j: j.movedim(0, -1).flatten(1, 2),
    }
    for name, layout in layouts.items():
        few, many = (torch.linalg.svdvals(layout(j)) for j in (found, full))
        padded = torch.zeros_like(many)
        padded[..., : few.shape[-1]] = few
        assert float((padded - many).abs().max()) <= PRECISION * float(many.max()), name


@pytest.mark.parametrize(("d_in", "d_out"), SIZES)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_reduced_jacobians_have_the_singular_values_of_the_full_ones(d_in: int, d_out: int, depth: int) -> None:
    network, x = example(d_in, d_out, depth=depth)
    full, found = jacobians(network, x), reduced_jacobians(network, x)
    assert_same_singular_values(found.values, full)
    assert restored(found).sub(full).norm() <= PRECISION * full.norm()
    with pytest.raises(AssertionError):
        assert_same_singular_values(found.values * (1 + 1e-11), full)
    # other orthonormal maps at each sample keep the single ones only
    noise = torch.Generator().manual_seed(3)
    left, right = (torch.linalg.qr(torch.randn(6, d, d, generator=noise).double()).Q for d in found.values.shape[1:])
    with pytest.raises(AssertionError, match="by"):
        assert_same_singular_values(left @ found.values @ right, full)


def restored(found: ReducedJacobians) -> Tensor:
    values = found.values if found.outputs is None else found.outputs @ found.values
    return values if found.inputs is None else values @ found.inputs.mT


def test_only_many_inputs_and_outputs_are_reduced() -> None:
    assert [tuple(reduced_jacobians(*example(*size)).values.shape[1:]) for size in SIZES] == [
        (8, 8), (8, 7), (8, 8), (31, 8), (8, 31),
    ]  # fmt: skip
    network, x = example(31, 8)
    assert torch.equal(reduced_jacobians(network, x).values, jacobians(network, x))


def test_ends_stand_for_the_outer_weights() -> None:
    network, x = example(90, 80)
    first, last = network.weights[0][:, ::2] * 3, network.weights[-1][10:] / 2
    found = reduced_jacobians(network, x, first=first, last=last)
    assert_same_singular_values(found.values, jacobians(network, x)[:, 10:, ::2] * 1.5)


@pytest.mark.parametrize("depth", [1, 3])
def test_jacobians_are_those_of_automatic_differentiation(depth: int) -> None:
    network, x = example(9, 5, depth=depth)
    for row, found in zip(x, jacobians(network, x), strict=True):
        by_autograd = torch.autograd.functional.jacobian(lambda p: network(p[None])[0], row)  # type: ignore[no-untyped-call]
        assert float((found - by_autograd).abs().max()) <= PRECISION * float(found.abs().max())


def pieces(d_in: int, d_out: int) -> torch.nn.Sequential:
    layers = (torch.nn.Linear(d_in, 9), torch.nn.Tanh(), torch.nn.Linear(9, d_out))
    return torch.nn.Sequential(*layers).double()


@pytest.mark.parametrize(("d_in", "d_out"), [(3, 7), (7, 3)])  # forward, backward
def test_any_module_or_function_has_the_jacobians_that_autograd_gives(d_in: int, d_out: int) -> None:
    x = torch.randn(2500, d_in, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for function in (pieces(d_in, d_out), lambda x: x[:, :1].sin() * torch.ones(d_out).double() + x.sum(1)[:, None]):
        found = jacobians(function, x)
        for i in (0, 1024, 2499):
            one: Tensor = torch.autograd.functional.jacobian(lambda row, f=function: f(row[None])[0], x[i])  # pyright: ignore
            assert float((found[i] - one).abs().max()) <= PRECISION
            with pytest.raises(AssertionError):
                assert float((found[i - 1] - one).abs().max()) <= PRECISION
        assert not found.requires_grad


def test_a_network_of_ours_agrees_with_differentiating_it() -> None:
    network, x = example(5, 3)
    assert float((jacobians(network.forward, x) - jacobians(network, x)).abs().max()) <= PRECISION
    for residual in (
        ResNet(5, 3, width=6, depth=2, block_depth=2, seed=0).double(),
        LeakyResNet(5, 3, width=6, depth=4, effective_depth=2.0, seed=0).double(),
    ):
        same = jacobians(as_fully_connected(residual), x)
        assert float((jacobians(residual, x) - same).abs().max()) <= PRECISION * float(same.abs().max())


def test_images_scalars_constants_and_no_samples() -> None:
    x = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert torch.equal(jacobians(lambda x: x.flatten(1) * 2, x), 2 * torch.eye(6).double().expand(4, 6, 6))
    assert torch.equal(jacobians(lambda x: x[:, 0, 0] ** 2, x)[:, 0, 0], 2 * x[:, 0, 0])
    assert torch.equal(jacobians(lambda x: torch.ones(len(x), 2), x), torch.zeros(4, 2, 6).double())
    assert jacobians(lambda x: x.flatten(1)[:, :2], x[:0]).shape == (0, 2, 6)


def test_what_cannot_be_differentiated_row_by_row_is_refused_in_words() -> None:
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with own_shape_checks(), pytest.raises(TypeError, match="a network or a function of a tensor; got list"):
        jacobians([1.0], x)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="gives a tensor of real numbers; got ndarray"):
        jacobians(lambda x: x.numpy(), x)  # pyright: ignore[reportArgumentType, reportReturnType]
    with pytest.raises(ShapeError, match="one row for each of 6 samples"):
        jacobians(lambda x: x.sum(0), x)
    with pytest.raises(ValueError, match="whose rows stand alone"):
        jacobians(lambda x: x - x.mean(0), x)
    with pytest.raises(ValueError, match="Call .eval()"):
        jacobians(torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2)).double(), x)


@pytest.mark.parametrize("double", [True, False])
def test_samples_are_taken_as_they_come_in_the_precision_of_the_network(double: bool) -> None:
    """Arrays, lists, whole numbers, and rows of another precision: each was refused by whatever met it first."""
    rows = [[1, 2, -3], [0, 1, 2]]
    network = FullyConnected(3, 2, width=4, depth=3, seed=0).to(torch.float64 if double else torch.float32)
    module = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)).to(network.weights[0].dtype)
    leaky = LeakyResNet(3, 2, width=6, depth=4, effective_depth=2.0, seed=0).to(network.weights[0].dtype)
    for function in (network, module, leaky):
        expected = jacobians(function, torch.tensor(rows, dtype=network.weights[0].dtype))
        array = np.array(rows, dtype=float)
        for given in (rows, array, np.array(rows), array.astype(np.float32), torch.tensor(rows).float()):
            found = jacobians(function, given)
            assert torch.equal(found, expected)
            assert found.dtype == network.weights[0].dtype
    assert jacobians(lambda x: x.square(), rows).dtype == torch.float64


def test_enclosures_and_reductions_take_what_jacobians_take() -> None:
    """An array was refused by `torch.eye`."""
    rows = [[1, 2, -3], [0, 1, 2]]
    for dtype in (torch.float64, torch.float32):
        network = FullyConnected(3, 2, width=4, depth=3, seed=0).to(dtype)
        expected = enclosed_jacobians(network, torch.tensor(rows, dtype=dtype))
        for given in (rows, np.array(rows), np.array(rows, dtype=np.float32), torch.tensor(rows).double()):
            found = enclosed_jacobians(network, given)
            assert torch.equal(found.values, expected.values)
            assert torch.equal(found.error, expected.error)
            assert torch.equal(reduced_jacobians(network, given).values, jacobians(network, rows))
    with pytest.raises(ValueError, match="enclosed_jacobians: needs finite x"):
        enclosed_jacobians(FullyConnected(1, 1, width=1, depth=1), [[float("nan")]])


def test_the_proved_error_goes_through_every_layer() -> None:
    """Worked out by hand, in units of eps: e_l = |W_l|_op e_{l-1} + (n + 2) |W_l|_F |P_{l-1}|_F."""
    eps, ones = torch.finfo(torch.float64).eps, torch.ones(1, 2).double()
    scalars = FullyConnected.from_layers([torch.tensor([[w]]) for w in (3.0, 5.0, 7.0)])
    # 3 * 3 = 9;  5 * 9 + 3 * 5 * 3 = 90;  7 * 90 + 3 * 7 * 15 = 945
    assert_close(enclosed_jacobians(scalars, ones[:, :1]).error[0], 1.01 * 945 * eps, relative=1e-12)
    matrices = [torch.eye(2), torch.diag(torch.tensor([2.0, 1.0])), torch.tensor([[3.0, 4.0]])]
    # 4 * 2 = 8;  2 * 8 + 4 sqrt 5 sqrt 2;  5 times that + 4 * 5 sqrt 5
    expected = 1.01 * (5 * (16 + 4 * 10**0.5) + 20 * 5**0.5) * eps
    found = enclosed_jacobians(FullyConnected.from_layers(matrices), ones)
    assert_close(found.error[0], expected, relative=1e-12)
    assert found.values.tolist() == [[[6.0, 4.0]]]


def test_the_rounding_of_a_bias_is_counted() -> None:
    """z_2 = 1 + (delta - 1) at x = 0. By hand, in eps: z_1 moves by 3, z_2 by 3.03 + 3 + 3, of which 1.01 is 9.12."""
    eps, one = torch.finfo(torch.float64).eps, torch.ones(1, 1).double()
    for delta, certain in ((6, False), (9, False), (10, True), (-6, False), (-10, True)):
        biases = [torch.ones(1), torch.tensor([delta * eps - 1], dtype=torch.float64), torch.zeros(1)]
        network = FullyConnected.from_layers([one] * 3, biases)
        assert enclosed_jacobians(network, 0 * one).certain.tolist() == [certain], delta


def deep(width: int, depth: int, slope: float, *, seed: int = 1) -> FullyConnected:
    network = FullyConnected(5, 3, width=width, depth=depth, negative_slope=slope, seed=seed, dtype=torch.float32)
    with torch.no_grad():
        for bias in network.biases:
            bias.copy_(0.1 * random(len(bias), seed=2).float())
    return network


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.9])
@pytest.mark.parametrize(("width", "depth"), [(6, 3), (10, 12), (40, 8), (40, 25)])
def test_rounding_of_deep_networks_is_enclosed(width: int, depth: int, slope: float) -> None:
    """Of float32, whose exact values are those of float64: as many bits apart as float64 is from the truth."""
    network = deep(width, depth, slope)
    exact = copy.deepcopy(network).double()
    x = random(60, 5, seed=3).float()
    found, true = enclosed_jacobians(network, x), jacobians(exact, x.double())
    same = torch.stack([
        ((mine.preactivation >= 0) == (theirs.preactivation >= 0)).all(1)
        for mine, theirs in zip(walk(network, x)[:-1], walk(exact, x.double())[:-1], strict=True)
    ]).all(0)  # fmt: skip
    assert found.certain[~same].logical_not().all()
    off = torch.linalg.matrix_norm(found.values.double() - true, 2)
    assert (off <= found.error.double())[same].all()
    loose = (found.error.double() / off)[same & (off > 0)].median()
    assert loose < 1e6, "the bound is of the size of the rounding"
    if depth <= 12:
        assert found.certain.float().mean() > 0.5


@pytest.mark.parametrize(("width", "depth"), [(10, 25), (50, 15), (64, 60)])
def test_deep_networks_have_jacobians_that_float64_proves(width: int, depth: int) -> None:
    """Products of Frobenius norms pass 1 / eps after a dozen layers: all samples had been said to lie on kinks."""
    network = deep(width, depth, 0.0).double()
    found = enclosed_jacobians(network, random(20, 5, seed=3))
    assert found.certain.all()
    assert found.error.max() < 1e-9 * torch.linalg.matrix_norm(found.values, 2).max()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_constant_neuron_on_its_kink_hides_what_hangs_on_it(sign: int) -> None:
    """Its slope does not matter, its value does: c = a + b up to rounding, and 1e12 (a + b - c) decides a sign."""
    a, b = 1e6 / 3, 1e6 / 7
    constants = torch.tensor([a, b, np.nextafter(a + b, np.inf), 0.0], dtype=torch.float64)
    passed = torch.zeros(4, 3, dtype=torch.float64)
    passed[3, 0] = 1.0
    summed = torch.tensor([[sign, sign, -sign, 0.0], [0.0, 0.0, 0.0, 1.0]]).double()
    last = torch.tensor([[-1e12, 1.0]], dtype=torch.float64)
    weights = [passed, summed, last, torch.ones(1, 1).double()]
    biases = [constants, *(torch.zeros(len(weight)).double() for weight in weights[1:])]
    found = enclosed_jacobians(FullyConnected.from_layers(weights, biases), torch.ones(1, 3).double())
    assert not found.certain.any()
    biases[1][0] = -1.0  # far from its kink nothing hangs on it
    assert enclosed_jacobians(FullyConnected.from_layers(weights, biases), torch.ones(1, 3).double()).certain.all()
