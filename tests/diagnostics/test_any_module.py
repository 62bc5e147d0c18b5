"""What is read off foreign modules against direct computation: spectra, activations, derivatives, gates, budget."""

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from closeness import relative
from diagnostics.architectures import ARCHITECTURES, BasicBlock, Branches, Functional, LeNet, encoder, numbers
from isthmus import FullyConnected, LeakyResNet, Limits, diagnose
from isthmus.diagnostics import leaky_diagnosis
from isthmus.diagnostics.derivatives import PROJECTIONS
from isthmus.errors import DataError, ShapeError
from leaky_networks import RIDGE, small_data, trained
from tolerances import rounding


def as_sequential(network: FullyConnected) -> nn.Sequential:
    parts: list[nn.Module] = []
    for l, weight in enumerate(network.weights, 1):
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        layer.weight.data, layer.bias.data = weight.detach().clone(), network.biases[l - 1].detach().clone()
        parts += [layer, nn.ReLU()] if network.is_activated(l) else [layer]
    return nn.Sequential(*parts)


def trace_by_gradients(module: nn.Module, x: Tensor, parameters: Sequence[Tensor | None]) -> float:
    """Mean over samples of the squared gradients of all outputs by some parameters."""
    total, given = 0.0, [p for p in parameters if p is not None]
    for row in x:
        for output in module(row[None]).flatten():
            total += sum(float(g.square().sum()) for g in torch.autograd.grad(output, given, retain_graph=True))
    return total / len(x)


def test_a_sequential_reads_as_the_same_fully_connected_network() -> None:
    network = FullyConnected(5, 3, width=(8, 6, 7), depth=4, linear=(2,), seed=0, dtype=torch.float64)
    for b in network.biases:
        b.data += 0.1
    x = numbers(40, 5).double()
    expected, found = diagnose(network, x), diagnose(as_sequential(network), x)
    for name, values in expected.layers.data_vars.items():
        np.testing.assert_allclose(found.layers[name].values, values.values, rtol=rounding(size=1000), atol=1e-14)
    assert (found.rank.lower, found.rank.estimate, found.rank.upper) == (
        expected.rank.lower, expected.rank.estimate, expected.rank.upper,
    )  # fmt: skip


ACTIVATIONS = (
    torch.relu, functional.gelu, functional.silu, torch.tanh, functional.relu_, lambda z: z * torch.sigmoid(z),
    lambda z: 0.5 * z * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * torch.pow(z, 3)))),
)  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_activation_is_found_however_it_is_written(activation: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    module, x = Functional(activation).double(), numbers(30, 5).double()
    z = module.layers[0](x).detach()
    a = activation(z.clone())
    layers = diagnose(module, x).layers
    impact = float((z - a).norm() / z.norm())
    assert float(layers["nonlinearity_impact"][0]) == pytest.approx(impact, rel=rounding(size=100))
    assert impact > 0.01
    spectrum = torch.linalg.svdvals(a - a.mean(0)) / 30**0.5
    assert relative(torch.from_numpy(layers["activation_singular_values"].values[0]), spectrum) <= rounding(size=100)


def test_what_is_no_activation_of_the_layer_is_not_taken_for_one() -> None:
    """A product with another layer, and a sum that an in-place activation then overwrites."""
    torch.manual_seed(0)
    gated = diagnose(ARCHITECTURES["gated"].make(), numbers(12, 5)).layers["nonlinearity_impact"].values
    assert gated[0] > 0.1
    assert gated[1:].tolist() == [0.0, 0.0]
    block = BasicBlock(3, 3, 1).double()
    layers = diagnose(nn.Sequential(block, nn.Flatten()), numbers(6, 3, 4, 4).double()).layers
    assert layers["nonlinearity_impact"].values[0] > 0.1
    assert layers["nonlinearity_impact"].values[1] == 0.0


def test_a_convolution_reads_as_its_matrix_on_patches() -> None:
    torch.manual_seed(0)
    module, x = LeNet().double(), numbers(6, 1, 12, 12).double()
    layers = diagnose(module, x).layers
    weight = torch.linalg.svdvals(module.conv2.weight.detach().reshape(4, -1)).numpy()
    assert layers["weight_singular_values"].values[1][:4] == pytest.approx(weight)
    with torch.no_grad():
        entering = functional.max_pool2d(module.conv1(x).relu(), 2)
        z = module.conv2(entering).movedim(1, -1).reshape(-1, 4)
    spectrum = torch.linalg.svdvals(z - z.mean(0)) / len(z) ** 0.5
    found = torch.from_numpy(layers["preactivation_singular_values"].values[1][:4])
    assert relative(found, spectrum) <= rounding(size=1000)
    for index, layer in enumerate((module.conv1, module.conv2, module.fc1)):
        expected = trace_by_gradients(module, x, [layer.weight, layer.bias])
        assert float(layers["tangent_kernel_trace"][index]) == pytest.approx(expected, rel=rounding(size=10_000))
    jacobians = torch.func.vmap(torch.func.jacrev(lambda row: module(row[None])[0].flatten()))(x)
    median = torch.linalg.svdvals(jacobians.flatten(2)).quantile(0.5, 0).detach()
    found = torch.from_numpy(layers["jacobian_singular_values"].values[0][:3])
    assert relative(found, median) <= rounding(size=1000)


@pytest.mark.parametrize("make", [
    lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=2, stride=2, padding=1), nn.Flatten(), nn.Linear(36, 2)),
    lambda: nn.Sequential(nn.Conv2d(4, 2, (2, 3), dilation=(2, 1), padding="same"), nn.Flatten(), nn.Linear(50, 2)),
], ids=["grouped", "dilated"])  # fmt: skip
def test_groups_strides_and_dilations_keep_the_trace(make: Callable[[], nn.Sequential]) -> None:
    torch.manual_seed(0)
    module, x = make().double(), numbers(4, 4, 5, 5).double()
    expected = trace_by_gradients(module, x, list(module[0].parameters()))
    found = float(diagnose(module, x).layers["tangent_kernel_trace"][0])
    assert found == pytest.approx(expected, rel=rounding(size=10_000))


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_is_taken_apart_without_a_change(batch_first: bool) -> None:
    torch.manual_seed(0)
    module = encoder(norm_first=True, batch_first=batch_first).double().eval()
    x = numbers(3, 3, 8).double()  # as many tokens as samples: shapes alone cannot tell them apart
    layers = diagnose(module if batch_first else SequenceFirst(module), x).layers
    by_row = dict(zip([str(n).split("module.")[-1] for n in layers["name"].values],
                      layers["tangent_kernel_trace"].values, strict=True))  # fmt: skip
    attention = module.get_submodule("layers.0.self_attn")
    assert isinstance(attention, nn.MultiheadAttention)
    packed = sum(by_row[f"layers.0.self_attn.in_proj_weight[{i}]"] for i in range(3))
    whole = module if batch_first else SequenceFirst(module)
    expected = trace_by_gradients(whole, x, [attention.in_proj_weight, attention.in_proj_bias])
    assert packed == pytest.approx(expected, rel=rounding(size=10_000))
    expected = trace_by_gradients(whole, x, list(attention.out_proj.parameters()))
    assert by_row["layers.0.self_attn.out_proj"] == pytest.approx(expected, rel=rounding(size=10_000))


class SequenceFirst(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x.transpose(0, 1)).transpose(0, 1)


def test_batches_do_not_change_the_table_and_the_budget_is_announced(logged: list[str]) -> None:
    torch.manual_seed(0)
    module, x = LeNet(), numbers(40, 1, 12, 12)
    told: list[str] = []
    whole = diagnose(module, x).layers
    parts = diagnose(module, x, limits=Limits(memory=1_500_000), progress=told.append).layers
    assert told == [parts.attrs["cost"]]
    assert any(told[0] in line for line in logged)
    assert "in batches of 40, " in whole.attrs["cost"], "no more than there are samples"
    assert parts.attrs["cost"] != whole.attrs["cost"]
    for name, values in whole.data_vars.items():
        np.testing.assert_allclose(parts[name].values, values.values, rtol=1e-9, atol=1e-12)
    with pytest.raises(DataError, match=r"memory=1000.* needs at least .* MiB .* Raise limits.memory"):
        diagnose(module, x, limits=Limits(memory=1000))


def test_a_sketch_has_the_right_trace_within_its_error_and_the_right_rank() -> None:
    torch.manual_seed(0)
    last = nn.Linear(3, 300, dtype=torch.float64)
    module, x = nn.Sequential(nn.Linear(6, 3).double(), last), numbers(50, 6).double()
    found = diagnose(module, x)
    layers = found.layers
    exact = float(last.weight.detach().square().sum()) * float(x.square().sum(1).mean() + 1)
    error = float(layers["tangent_kernel_trace_error"][0])
    assert 0 < error < 0.2 * exact
    assert abs(float(layers["tangent_kernel_trace"][0]) - exact) <= 4 * error
    assert (found.rank.lower, found.rank.estimate, found.rank.upper) == (3, 3, 3)
    values = layers["jacobian_singular_values"].values[1][:3]
    truth = torch.linalg.svdvals(last.weight.detach()).numpy()
    assert values == pytest.approx(truth, rel=4 * (3 / PROJECTIONS) ** 0.5)
    assert float(layers["jacobian_singular_value_errors"][1, 0]) > 0


def test_only_a_layer_that_cuts_the_network_bounds_its_rank() -> None:
    class Skip(nn.Module):
        def __init__(self, *, around: bool) -> None:
            super().__init__()
            self.down, self.up, self.around = nn.Linear(5, 2), nn.Linear(2, 5), around

        def forward(self, x: Tensor) -> Tensor:
            out = self.up(torch.tanh(self.down(x)))
            return x + out if self.around else out

    torch.manual_seed(0)
    assert diagnose(Skip(around=False), numbers(20, 5)).rank.upper == 2
    rank = diagnose(Skip(around=True), numbers(20, 5)).rank
    assert (rank.lower, rank.upper) == (5, 5)


def gated_objective(module: Branches, gate: float, block: int, x: Tensor, y: Tensor, ridge: float) -> float:
    """Data loss plus the penalty of a block, both with a gate on that block."""
    a = module.into(x)
    for i, part in enumerate(module.blocks):
        a = a + (gate if i == block else 1.0) * part(a)
    penalty = sum(
        float(p.square().sum()) for i in (1, 3) for p in module.get_submodule(f"blocks.{block}.{i}").parameters()
    )
    return float((module.out(a) - y).square().sum() / len(x)) + ridge * gate * penalty


def test_the_hamiltonian_of_a_block_is_the_derivative_by_its_gate() -> None:
    torch.manual_seed(0)
    module, x, y = Branches().double(), numbers(20, 5).double(), numbers(20, 2, seed=1).double()
    layers = diagnose(module, x, y, ridge=0.3).layers
    assert layers["block"].values[[2, 4]].tolist() == [1, 2]
    assert np.isnan(layers["block"].values[[0, 1, 3, 5]]).all()
    with torch.no_grad():
        for block, row in enumerate((2, 4)):
            h = 1e-5
            up, down = (gated_objective(module, 1 + s, block, x, y, 0.3) for s in (h, -h))
            expected = -(up - down) / (2 * h) / 0.3
            assert float(layers["hamiltonian"][row]) == pytest.approx(expected, rel=1e-7)
    assert float(layers["cost_of_identity"][2]) > 0
    assert "hamiltonian" not in diagnose(module, x).layers


@pytest.mark.slow
def test_residual_streams_of_transformers_and_resnets_are_found() -> None:
    torch.manual_seed(0)
    for name, last in (("gpt2", "mlp.c_proj"), ("resnet", "1.conv2"), ("transformer-post-norm", "linear2")):
        architecture = ARCHITECTURES[name]
        layers = diagnose(architecture.make(), architecture.data()).layers
        rows = layers["block"].notnull().values
        names = [str(n) for n in layers["name"].values[rows]]
        assert names[-1].endswith(last)
        assert bool((layers["cost_of_identity"].values[rows] > 0).all())


@pytest.mark.slow
def test_a_leaky_network_has_its_energies_beside_the_table() -> None:
    network, _ = trained()
    x, y = small_data()
    layers = diagnose(network, x, y, ridge=RIDGE).layers
    expected = leaky_diagnosis(network, x, y, ridge=RIDGE)
    for name in ("position", "hamiltonian", "rank_from_hamiltonian", "cost_of_identity", "kinetic_energy"):
        values = layers[name].values
        assert np.isnan(values[[0, -1]]).all()
        np.testing.assert_array_equal(values[1:-1], expected[name].values)
    alone = diagnose(network, x).layers
    np.testing.assert_allclose(alone["cost_of_identity"].values[1:-1], expected["cost_of_identity"].values, rtol=1e-6)
    assert "hamiltonian" not in alone
    far = LeakyResNet(3, 3, width=5, depth=4, effective_depth=3.0, seed=0)
    assert any("far from critical" in sentence for sentence in diagnose(far, x, y, ridge=RIDGE).warnings)


def test_cross_entropy_is_taken_for_classes() -> None:
    torch.manual_seed(0)
    module, x, y = nn.Linear(5, 3).double(), numbers(20, 5).double(), torch.arange(20) % 3
    found = diagnose(module, x, y, ridge=0.1).layers.attrs
    assert found["data_loss"] == pytest.approx(float(functional.cross_entropy(module(x), y).detach()))
    penalty = sum(float(p.detach().square().sum()) for p in module.parameters())
    assert found["objective"] == pytest.approx(found["data_loss"] + 0.1 * penalty)
    with pytest.raises(ShapeError, match=r"needs y of shape \(20, 3\)"):
        diagnose(module, x, y[:19])


class Failing(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        raise RuntimeError(f"cannot take {tuple(input.shape)}\nat all")


@pytest.mark.parametrize(("module", "x", "error", "message"), [
    (Failing(5, 3), numbers(6, 5), DataError, "running Failing on the first rows of x failed: RuntimeError: cannot"),
    (nn.Linear(4, 3), numbers(6, 5), DataError, "running Linear on the first rows of x failed: RuntimeError"),
    (nn.Linear(5, 3), torch.ones(6, 5, dtype=torch.int64), DataError, "running Linear .* failed"),
    (nn.Linear(5, 3), numbers(6, 5).to(torch.complex64), DataError, "needs real numbers"),
    (nn.Linear(5, 3), (numbers(6, 5), numbers(7, 5)), ShapeError, "one number of rows"),
    (nn.Linear(5, 3), numbers(1, 5), DataError, "at least 2 rows"),
    (nn.Embedding(5, 3), torch.arange(5), ValueError, "needs a module that multiplies by weight matrices"),
], ids=["own-error", "features", "integers", "complex", "lengths", "one", "no-matrix"])  # fmt: skip
def test_bad_input_is_one_clear_line(
    module: nn.Module, x: Tensor | tuple[Tensor, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        diagnose(module, x)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_finite_are_named() -> None:
    last = nn.Linear(3, 2)
    module = nn.Sequential(nn.Linear(5, 3), last)
    last.weight.data[0, 0] = math.nan
    with pytest.raises(DataError, match="returned NaN or infinity for finite data"):
        diagnose(module, numbers(6, 5))


def test_an_exported_program_of_one_size_is_read_whole() -> None:
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(5, 4), nn.GELU(), nn.Linear(4, 2)), numbers(7, 5)
    program = torch.export.export(copy.deepcopy(module).eval(), (x,))
    found, expected = diagnose(program, x).layers, diagnose(module, x).layers
    for name in ("activation_singular_values", "nonlinearity_impact", "jacobian_singular_values"):
        np.testing.assert_allclose(found[name].values, expected[name].values, rtol=1e-4)
