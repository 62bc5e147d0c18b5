"""The per-layer table against what is known: automatic differentiation, the identity, balanced networks, spectra."""

import math
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from isthmus import diagnose, rebalance, walk
from isthmus.errors import DataError, ShapeError
from isthmus.networks import FullyConnected
from tolerances import rounding


def samples(n: int = 30, d: int = 5) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def make(slope: float = 0.0, *, bias: bool = True, width: int | tuple[int, ...] = (8, 6, 7)) -> FullyConnected:
    network = FullyConnected(
        5, 3, width=width, depth=4, linear=(2,), negative_slope=slope, bias=bias, seed=0, dtype=torch.float64
    )
    with torch.no_grad():
        for b in network.biases:
            b.copy_(torch.linspace(-0.5, 0.5, len(b), dtype=torch.float64))
    return network


def identity(depth: int = 4, d: int = 5) -> FullyConnected:
    return FullyConnected.from_layers([torch.eye(d, dtype=torch.float64)] * depth)


def tangent_trace(network: FullyConnected, x: Tensor, layer: int) -> float:
    """Mean over rows of sum over outputs of the squared gradient with respect to W_l and b_l."""
    parameters = [network.weights[layer - 1], *([network.biases[layer - 1]] if network.has_bias else [])]
    total = 0.0
    for row in x:
        for output in network(row[None])[0]:
            total += sum(float(g.square().sum()) for g in torch.autograd.grad(output, parameters, retain_graph=True))
    return total / len(x)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("slope", [0.0, 0.3, -0.5])
def test_the_tangent_kernel_trace_is_the_automatic_one(slope: float, bias: bool) -> None:
    network, x = make(slope, bias=bias), samples(20)
    found = diagnose(network, x).layers["tangent_kernel_trace"].values
    expected = np.array([tangent_trace(network, x, layer) for layer in range(1, 5)])
    assert found == pytest.approx(expected, rel=rounding(size=1000))
    assert found != pytest.approx(expected - 1, rel=1e-3), "one feature fewer, the bias, is seen"


def test_spectra_are_those_of_the_states_in_root_mean_square_units() -> None:
    network, x = make(0.3), samples()
    layers = diagnose(network, x).layers
    assert layers["layer"].values.tolist() == [1, 2, 3, 4]
    with torch.no_grad():
        states = walk(network, x)
    for l, state in enumerate(states):
        for variable, values in (
            ("preactivation_singular_values", state.preactivation),
            ("activation_singular_values", state.activation),
        ):
            covariance = torch.cov(values.T, correction=0)
            square = torch.linalg.eigvalsh(covariance).flip(0)
            found = layers[variable].values[l]
            size = values.shape[1]
            allowed = rounding(size=100, condition=float(square[0]))
            assert np.abs(found[:size] ** 2 - square.numpy()).max() <= allowed
            assert np.isnan(found[size:]).all()
            uncentred = torch.linalg.svdvals(values).numpy() / len(x) ** 0.5
            assert np.abs(found[:size] - uncentred).max() > 1e-3
        weights = torch.linalg.svdvals(state.weight.detach()).numpy()
        assert layers["weight_singular_values"].values[l][: len(weights)] == pytest.approx(weights)


def test_the_identity_on_non_negative_data_has_no_defect_and_no_nonlinearity() -> None:
    x = samples().abs()
    layers = diagnose(identity(), x).layers
    assert np.abs(layers["identity_defect"].values).max() <= rounding(size=25)
    assert layers["nonlinearity_impact"].values.tolist() == [0.0] * 4
    assert diagnose(identity(), x).rank.estimate == 5
    bent = diagnose(identity(), samples()).layers["nonlinearity_impact"].values
    negative = float(samples().clamp(max=0).norm() / samples().norm())
    assert bent == pytest.approx([negative, 0.0, 0.0, 0.0], rel=rounding(size=100))


@pytest.mark.parametrize("stretch", [0.5, 3.0])
def test_the_identity_defect_of_a_stretched_identity_is_the_stretch_less_1(stretch: float) -> None:
    network = FullyConnected.from_layers([stretch * torch.eye(5, dtype=torch.float64)] * 3)
    defect = diagnose(network, samples().abs()).layers["identity_defect"].values
    assert defect == pytest.approx(abs(stretch - 1), rel=rounding(size=100))


def test_a_rotation_has_no_identity_defect_and_a_projection_counts_what_it_loses() -> None:
    rotation = torch.linalg.qr(samples(5)).Q
    turned = FullyConnected.from_layers([rotation, rotation], linear=[1])
    assert np.abs(diagnose(turned, samples()).layers["identity_defect"].values).max() <= rounding(size=50)
    projected = FullyConnected.from_layers([rotation[:2]])
    # two directions of an isotropic 5-dimensional input pass, three are lost: the defect is near sqrt(3/5)
    axes = torch.linalg.svd(samples() - samples().mean(0)).U[:, :5] * 30**0.5
    found = float(diagnose(projected, axes).layers["identity_defect"][0])
    assert found == pytest.approx(math.sqrt(3 / 5), rel=rounding(size=100))


def test_a_rebalanced_network_has_no_balance_residual() -> None:
    network = make(0.2)
    before = diagnose(network, samples()).layers["balance_residual"].values
    after = diagnose(rebalance(network), samples()).layers["balance_residual"].values
    assert np.isnan(before[-1])
    assert np.isnan(after[-1])
    assert after[:-1].max() <= 1e-12  # rebalance ends below 1e-13 in every log-scale, four of which enter
    assert before[:-1].min() > 0.01


def test_balance_residual_in_closed_form() -> None:
    w = torch.tensor([[2.0]], dtype=torch.float64)
    network = FullyConnected.from_layers([w, w / 2], [torch.ones(1), torch.zeros(1)])
    # incoming 2^2 + 1^2, outgoing 1^2: |5 - 1| over their mean 3
    found = float(diagnose(network, samples(d=1)).layers["balance_residual"][0])
    assert found == pytest.approx(4 / 3, rel=rounding())


@pytest.mark.parametrize("width", [1, 2, 40])
def test_networks_narrower_and_wider_than_their_data(width: int) -> None:
    network = make(width=width)
    found = diagnose(network, samples())
    assert found.layers.sizes["component"] == max(width, 3)
    assert found.rank.upper <= min(width, 3)
    jacobian = found.layers["jacobian_singular_values"]
    assert jacobian.notnull().sum("component").values.tolist() == [3, *(min(3, width) for _ in range(3))]


def test_the_rank_of_a_linear_network_is_that_of_its_product() -> None:
    a, b = samples(6, 2), samples(2, 5)
    network = FullyConnected.from_layers([b, a], linear=[1])
    rank = diagnose(network, samples()).rank
    assert (rank.lower, rank.estimate, rank.upper) == (2, 2, 2)


def through(values: list[float], *, noise: float = 0.0) -> FullyConnected:
    """A linear network of 9 inputs and outputs whose middle matrix, 12 x 12, has these singular values and noise."""
    first, middle, last = samples(12, 9), torch.zeros(12, 12, dtype=torch.float64), samples(12, 9).mT
    first, last = torch.linalg.qr(first).Q, torch.linalg.qr(last.mT).Q.mT
    u, v = last.mT[:, : len(values)], first[:, : len(values)]  # what enters and leaves is seen by the ends
    middle += u @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ v.mT + noise * torch.eye(12).double()
    return FullyConnected.from_layers([first, middle, last], linear=[1, 2])


def test_a_written_matrix_counts_small_values_and_noise_of_training_does_not() -> None:
    gentle, steep = [1.0, 0.2, 0.04, 0.0065], [1.0, 0.8, 0.5, 0.0065]
    found = [diagnose(through(values), samples(d=9)).rank for values in (gentle, steep)]
    assert (found[0].lower, found[0].estimate, found[0].upper) == (4, 4, 4)
    assert found[0].tolerance == 1e-9
    # truncated at 4 where the data need 3: behind the drop the truncated matrix keeps noise too
    assert (found[1].lower, found[1].estimate, found[1].upper) == (3, 3, 4)
    trained = diagnose(through(gentle, noise=1e-5), samples(d=9)).rank
    assert trained.lower < 4 < trained.upper == 9
    assert trained.estimate is None  # a fall by five from each direction to the next is no narrow place
    assert "one fewer loses much" in trained.missing


def test_rows_of_dead_neurons_do_not_make_a_matrix_a_written_one() -> None:
    network = through([1.0, 0.2, 0.04, 0.0065])
    alive = torch.zeros(12, 12, dtype=torch.float64)
    alive[:4] = torch.diag(torch.tensor([1.0, 0.2, 0.04, 0.0065], dtype=torch.float64)) @ network.weights[0][:, :4].mT
    with torch.no_grad():
        network.weights[1].copy_(alive)  # four neurons are left, and no more independent rows than these
    found = diagnose(network, samples(d=9)).rank
    assert found.lower < found.upper == 4
    assert found.estimate is None


def test_objective_and_data_loss_stand_beside_the_table() -> None:
    network, x = make(), samples()
    y = torch.ones(30, 3, dtype=torch.float64)
    with torch.no_grad():
        loss = float((network(x) - y).square().sum() / 30)
        objective = loss + 0.1 * float(network.penalty())
    attributes = diagnose(network, x, y, ridge=0.1).layers.attrs
    assert attributes["data_loss"] == pytest.approx(loss, rel=rounding(size=100))
    assert attributes["objective"] == pytest.approx(objective, rel=rounding(size=1000))
    assert "objective" not in diagnose(network, x, y).layers.attrs
    assert "data_loss" not in diagnose(network, x).layers.attrs


def test_targets_of_one_output_may_be_a_plain_column() -> None:
    network = FullyConnected(5, 1, width=4, depth=2, seed=0, dtype=torch.float64)
    y = samples(d=1)
    flat, column = (diagnose(network, samples(), t).layers.attrs["data_loss"] for t in (y[:, 0], y))
    assert flat == column


@pytest.mark.parametrize("shape", [(30, 1), (29, 3), (30,), (1, 3)])
def test_targets_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"needs y of shape \(30, 3\)"):
        diagnose(make(), samples(), torch.zeros(shape))


def test_all_weights_zero_is_rank_0_and_said() -> None:
    network = FullyConnected.from_layers([torch.zeros(4, 5), torch.zeros(3, 4)])
    found = diagnose(network, samples())
    assert (found.rank.lower, found.rank.estimate) == (0, 0)
    assert len(found.warnings) == 1
    assert "rank is 0" in found.warnings[0]
    assert diagnose(make(), samples()).warnings == ()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    x = samples()
    x[7, 2] = bad
    with pytest.raises(DataError, match="1 entries of x are NaN or infinite"):
        diagnose(make(), x)


@pytest.mark.parametrize(
    ("module", "x", "error", "message"),
    [
        (make(), samples(1), DataError, r"at least 2 rows .* \(1, 5\)"),
        (make(), samples(d=4), ShapeError, r"shape \(n, 5\)"),
        (nn.ReLU(), samples(), ValueError, "needs a module that multiplies by weight matrices"),
    ],
    ids=["one-row", "features", "module"],
)
def test_other_bad_input_is_refused(module: nn.Module, x: Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        diagnose(module, x)


def test_the_network_is_left_as_it_was() -> None:
    network = make().float()
    before = [p.detach().clone() for p in network.parameters()]
    diagnose(network, samples().float())
    assert all(torch.equal(p, q) and p.requires_grad for p, q in zip(network.parameters(), before, strict=True))
    assert network.weights[0].dtype == torch.float32


def test_a_module_without_neurons_is_a_constant_and_said_to_be() -> None:
    x = torch.randn(20, 3)
    for width in (1, 0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of a matrix without numbers
            module = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2))
        if width:
            assert diagnose(module, x).layers.sizes["layer"] == 2
            continue
        with pytest.raises(DataError, match=r"0\.weight has no neurons, so the module computes a constant"):
            diagnose(module, x)


def test_where_the_spectrum_has_no_gap_there_is_no_integer_but_shares_of_the_energy() -> None:
    """A spectrum that falls by 1.3 from value to value, then one of rank 3, of 40 neurons each."""
    u = torch.linalg.qr(samples(40, 40)).Q
    x = torch.randn(3000, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    network = nn.Sequential(nn.Linear(40, 40, bias=False), nn.Linear(40, 40, bias=False)).double()
    with torch.no_grad():
        network.get_parameter("0.weight").copy_(torch.diag(1.3 ** -torch.arange(40.0, dtype=torch.float64)))
        network.get_parameter("1.weight").copy_(u[:, :3] @ u[:3])
        network.get_parameter("1.weight")[:, 3:] = 0.0
    layers = diagnose(network, x).layers
    assert np.isnan(layers["dimension_activation"].values[0])
    assert layers["dimension_activation"].values[1] == 3
    assert "no number of directions stands out" in layers["dimension_activation"].attrs["missing"]
    assert layers["rows"].values.tolist() == [3000, 3000]
    assert layers["rank_999"].values[1] == 3
    assert layers["rank_90"].values[0] < layers["rank_99"].values[0] < layers["rank_999"].values[0] <= 40
    assert (layers["rank_entropy"] >= layers["dimension_participation"]).all()


def test_as_many_directions_as_rows_is_no_dimension() -> None:
    first = nn.Linear(40, 40)
    network = nn.Sequential(first, nn.Linear(40, 30)).double()
    layers = diagnose(network, samples(20, 40)).layers
    assert np.isnan(layers["dimension_activation"].values).all(), "19 directions of 20 rows count the rows"
    with torch.no_grad():  # the control: eight equal singular values, planted, are found from the same rows
        planted = nn.init.orthogonal_(torch.empty(40, 8, dtype=torch.float64))
        first.weight.copy_(planted @ nn.init.orthogonal_(torch.empty(8, 40, dtype=torch.float64)))
    assert (diagnose(network, samples(20, 40)).layers["dimension_activation"] == 8).any()


@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("size", [1e120, 1e160, 1e200, 1e300])
def test_activations_whose_squares_are_no_numbers_are_refused_in_words(size: float, jacobians: bool) -> None:
    """They had ended in an error of LAPACK; where squares are numbers, sizes are no matter."""
    for module in (make(), nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).double()):
        if size > 1e154:
            with pytest.raises(DataError, match="Rescale x"):
                diagnose(module, size * samples(), jacobians=jacobians)
        else:
            assert diagnose(module, size * samples(), jacobians=jacobians).rank.upper == 3
