"""The table of all that can be said of one network: each value is that of its function, and no bound is false."""

import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from isthmus.constructions import balanced_linear_network, compose_with_identity, x_cross_example
from isthmus.networks import FullyConnected, LeakyResNet, ResNet, enclosed_jacobians, jacobians, rebalance
from isthmus.theory import (
    certificates,
    costs,
    jacobian_rank_lower_bound,
    linear_cost,
    nonlinearity_impact,
    resnet_cost,
    schatten_lower_bound,
)
from theorem_checks import assert_at_most, assert_close, normal, with_spectrum

COLUMNS = ["id", "name", "value", "kind", "of", "applies", "reason"]
X = normal(0, 40, 4)


def connected(*, depth: int = 3, slope: float = 0.0) -> FullyConnected:
    network = FullyConnected(4, 3, width=7, depth=depth, negative_slope=slope, seed=1).double()
    with torch.no_grad():
        for bias in network.biases:
            bias.add_(0.1 * normal(2, len(bias)))
    return network


def value(table: pd.DataFrame, name: str, position: int = 0) -> float:
    row = table[table["name"] == name].iloc[position]
    assert row["applies"], f"{name}: {row['reason']}"
    return float(row["value"])


def why_not(table: pd.DataFrame, name: str) -> str:
    """Why a statement does not apply; empty if it does."""
    rows = table[table["name"] == name]
    return "" if any(rows["applies"].tolist()) else str(rows.iloc[0]["reason"])


def any_applies(table: pd.DataFrame) -> bool:
    return any(table["applies"].tolist())


def assert_well_formed(table: pd.DataFrame) -> None:
    assert list(table.columns) == COLUMNS
    assert set(table["kind"]) <= {"exact", "lower", "upper", "estimate"}
    for found, applies, reason in zip(table["value"].tolist(), table["applies"].tolist(), table["reason"], strict=True):
        assert applies != math.isnan(found)
        assert applies or reason


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "relu": connected,
    "leaky relu": lambda: connected(slope=-0.3),
    "one layer": lambda: connected(depth=1),
    "residual": lambda: ResNet(4, 3, width=5, depth=3, block_depth=2, seed=0),
    "linear residual": lambda: ResNet(4, 3, width=5, depth=2, block_depth=1, linear=True, seed=0),
    "leaky": lambda: LeakyResNet(4, 3, width=5, depth=4, effective_depth=2.0, seed=0),
    "any module": lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_has_a_table_whose_bounds_enclose(name: str) -> None:
    network = NETWORKS[name]()
    table, norms = certificates(network, X), costs(network)
    assert_well_formed(table)
    assert_well_formed(norms)
    every: list[Any] = [*table.itertuples(), *norms.itertuples()]
    rows = [row for row in every[: len(table)] if row.applies]
    ranks = [(row.kind, float(row.value)) for row in rows if str(row.of).startswith("bottleneck rank")]
    above = min([3.0, *(rank for kind, rank in ranks if kind == "upper")])
    assert max(rank for kind, rank in ranks if kind != "upper") <= above
    below = [
        float(row.value) for row in rows if str(row.of).startswith(("penalty of every", "penalty of this", "cost"))
    ]
    penalty = next((float(row.value) for row in every[len(table) :] if row.applies), 0.0)
    for bound in below:
        assert_at_most(bound, penalty)
    if below:
        with pytest.raises(AssertionError):
            assert_at_most(max(below), penalty * 1e-3)


def test_values_are_those_of_the_functions() -> None:
    network = connected()
    table = certificates(network, X.numpy())  # pyright: ignore[reportArgumentType] - as the bridge takes it
    found = enclosed_jacobians(network, X)
    assert_close(value(table, "schatten_lower_bound"), schatten_lower_bound(found.values, depth=3, error=found.error))
    parameters = dict(network.named_parameters())

    def outputs(own: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(network, own, (X,)).flatten()

    J = torch.cat([j.flatten(1) for j in torch.func.jacrev(outputs)(parameters).values()], 1).detach()
    gram = J @ J.mT
    assert_close(value(table, "tangent_kernel_trace"), gram.trace() / len(X), relative=1e-10)
    assert_close(value(table, "sharpness"), 2 / len(X) * torch.linalg.eigvalsh(gram)[-1], relative=1e-10)
    with torch.no_grad():
        states = network.layer_states(X)[:-1]
    impacts = [float(nonlinearity_impact(s.preactivation, s.activation)) for s in states]
    assert_close(value(table, "nonlinearity_impact"), min(impacts))
    with pytest.raises(AssertionError):
        assert_close(value(table, "nonlinearity_impact"), max(impacts))


def test_a_bottleneck_shows_its_rank_and_balance_brings_two_bounds_more() -> None:
    inner = FullyConnected(4, 2, width=6, depth=2, seed=3).double()
    outer = FullyConnected(2, 4, width=6, depth=2, seed=4).double()
    network = compose_with_identity(inner, outer, num_identities=4, x=X).network
    before, after = certificates(network, X), certificates(rebalance(network), X)
    assert value(before, "jacobian_rank_lower_bound") == value(before, "bottleneck_rank_upper_bound") == 2
    assert value(before, "idempotency_defect") > 0
    assert "rebalance" in why_not(before, "activation_norm_bound")
    assert value(after, "activation_norm_bound") > 0
    gain = value(costs(network), "penalty") - value(costs(rebalance(network)), "penalty")
    assert gain > 0


@pytest.mark.parametrize("depth", [50, 300])
@pytest.mark.parametrize("shrinks", [0.0, 1e-9, 0.99e-6])
def test_what_balance_lacks_is_charged(shrinks: float, depth: int) -> None:
    """A chain that may count as balanced and whose norms fall all the way had larger activations than its bound."""
    sizes = [(1 - shrinks) ** ((l - (depth - 1) / 2) / 2) for l in range(depth)]
    chain = FullyConnected.from_layers(
        [torch.tensor([[size]], dtype=torch.float64) for size in sizes], [torch.zeros(1).double()] * depth
    )
    bound = value(certificates(chain, torch.ones(1, 1).double()), "activation_norm_bound")
    enters = np.cumprod([1.0, *sizes[:-1]])
    assert_at_most(float((enters**2).mean()) + 1, bound)
    if shrinks == 0:
        assert bound == pytest.approx(2, rel=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_the_penalty_bounds_from_above(seed: int) -> None:
    network = FullyConnected.from_layers([normal(seed, 5, 4), normal(seed + 50, 3, 5)])
    exact = sum(Fraction(entry) ** 2 for part in network.parameters() for entry in part.flatten().tolist())
    assert Fraction(value(costs(network), "penalty")) >= exact


def test_the_least_norm_of_linear_networks_is_not_called_that_of_activated_ones() -> None:
    """The identity of [-1, 1] costs 2 of linear networks and 2 sqrt 2 of those with a relu."""
    table = costs(FullyConnected.from_layers([torch.ones(1, 1), torch.ones(1, 1)], linear=(1,))).set_index("id")
    assert table.of["FC-09"] == "least norm of linear networks of this depth"
    assert table.of["FC-12"] == "R(f; L), activated where this is"


def test_linear_networks_have_closed_forms() -> None:
    matrix = with_spectrum(0, [2.0, 0.5], 3, 4)
    network = balanced_linear_network(matrix, depth=4)
    table = costs(network)
    assert_close(value(table, "linear_cost"), linear_cost(matrix, depth=4), relative=1e-10)
    assert_close(value(table, "penalty"), linear_cost(matrix, depth=4), relative=1e-10)
    orders = [value(table, "linear_cost_expansion", i) for i in range(3)]
    assert_close(torch.tensor(orders), torch.tensor([2.0, 0.0, 4 * math.log(2) ** 2]), absolute=1e-6)
    assert "diagonal" in why_not(table, "diagonal_linear_cost")
    diagonal = FullyConnected.from_layers([torch.diag(torch.tensor([4.0, 0.0]))] * 2, linear=[1])
    assert_close(value(costs(diagonal), "diagonal_linear_cost"), 8 * 4.0)


@pytest.mark.parametrize("part", [0.5, 2.0])
def test_residual_depth_is_worth_something_where_a_singular_value_exceeds_the_weight(part: float) -> None:
    """Blocks of two matrices cost sigma at every depth where sigma <= lam, and less the deeper where it is larger."""

    def made(lam: float) -> ResNet:
        of = {"residual_weight": lam, "linear": True, "dtype": torch.float64}
        return ResNet(4, 3, width=5, depth=2, block_depth=2, seed=0, **of)  # pyright: ignore[reportArgumentType]

    lam = part * float(torch.linalg.svdvals(jacobians(made(1.0), X[:1])[0])[0])
    residual = made(lam)
    s = torch.linalg.svdvals(jacobians(residual, X[:1])[0])
    assert_close(s[0], lam / part)
    table = costs(residual)
    here, at_every_depth = (value(table, "resnet_cost", i) for i in range(2))
    assert_close(here, resnet_cost(s, residual_weight=lam, depth=2, block_depth=2), relative=1e-10)
    assert_close(at_every_depth, resnet_cost(s, residual_weight=lam, block_depth=2), relative=1e-10)
    if part < 1:  # of sigma = 2 lam alone 3 * 2^(1/3) - 2 - (1 + log 2) = .0866 lam
        assert at_every_depth <= here - 0.08 * lam
    else:
        assert_close(at_every_depth, here)
        assert_close(here, s.sum(), relative=1e-10)


def test_of_functions_jacobians_are_estimates_and_layers_unknown() -> None:
    table = certificates(lambda x: torch.stack([x.sin().sum(1), x.sin().sum(1) ** 2], 1), X)
    first = table.iloc[0]
    assert (first["value"], first["kind"], first["applies"]) == (1.0, "estimate", True)
    assert why_not(table, "schatten_lower_bound")
    assert not any_applies(costs(lambda x: x))


def test_a_chain_of_linear_layers_and_relus_is_read_as_the_network_it_is() -> None:
    network = connected(slope=0.2)
    layers: list[nn.Module] = []
    for l, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True), 1):
        layers.append(nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64))
        layers[-1].load_state_dict({"weight": weight, "bias": bias})
        layers += [nn.LeakyReLU(0.2)] * (l < network.depth)
    same = nn.Sequential(*layers)
    pd.testing.assert_frame_equal(certificates(same, X), certificates(network, X))
    pd.testing.assert_frame_equal(costs(same), costs(network))
    for other in ([*layers, nn.ReLU()], [nn.ReLU(), *layers], [*layers[:2], nn.ReLU(), *layers[2:]]):
        assert not any_applies(costs(nn.Sequential(*other)))
    layers[1] = nn.LeakyReLU(0.3)
    assert not any_applies(costs(nn.Sequential(*layers)))


@pytest.mark.parametrize("slope", [1.0, 1.5, -1.0, -2.0, 9.5])
def test_a_slope_of_one_or_more_is_no_activation_of_the_theorems(slope: float) -> None:
    """Their proofs need |sigma'| <= 1 and a network of ours a slope below: layers are unknown, the function is not."""
    network = nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(slope), nn.Linear(5, 3)).double()
    table = certificates(network, X)
    for name in ("bottleneck_rank_upper_bound", "schatten_lower_bound", "tangent_kernel_trace", "sharpness"):
        assert "layers" in why_not(table, name)
    first = table.iloc[0]
    assert (first["value"], first["kind"]) == (3.0, "estimate")
    assert not any_applies(costs(network))
    assert any_applies(costs(nn.Sequential(network[0], nn.LeakyReLU(0.999), network[2])))


def gradients_of(network: nn.Module, x: Tensor) -> Tensor:
    """The Jacobian by all parameters that there are, (n d_out, parameters), by automatic differentiation."""
    parameters = list(network.parameters())
    outputs = network(x).flatten()
    rows = [torch.autograd.grad(out, parameters, retain_graph=True) for out in outputs]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])


def with_biases(pattern: tuple[bool, ...], slope: float) -> nn.Sequential:
    """Layers, each with a bias or without."""
    torch.manual_seed(sum(2**l for l, biased in enumerate(pattern) if biased))
    sizes = [4, *[5] * (len(pattern) - 1), 2]
    steps: list[nn.Module] = []
    for l, biased in enumerate(pattern):
        steps += [nn.Linear(sizes[l], sizes[l + 1], bias=biased), nn.LeakyReLU(slope) if slope else nn.ReLU()]
    return nn.Sequential(*steps[:-1]).double()


PATTERNS = [pattern for depth in (1, 2, 3) for pattern in itertools.product((False, True), repeat=depth)]


@pytest.mark.dear(14)
@pytest.mark.parametrize("slope", [0.0, -0.4])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_bias_counts_in_the_tangent_kernel_where_it_is_a_parameter(pattern: tuple[bool, ...], slope: float) -> None:
    """A layer without one counted as one with zeros, and the first layer spoke for all."""
    network = with_biases(pattern, slope)
    same: list[nn.Module] = [network]
    if len(set(pattern)) == 1:
        weights = [p for name, p in network.named_parameters() if name.endswith("weight")]
        biases = [p for name, p in network.named_parameters() if name.endswith("bias")]
        same.append(FullyConnected.from_layers(weights, biases or None, negative_slope=slope))
    if len(pattern) == 1:
        same.append(network[0])
    x = X[:7]
    rows = gradients_of(network, x)
    for other in same:
        table = certificates(other, x)
        assert_close(value(table, "tangent_kernel_trace"), rows.square().sum() / 7, relative=1e-10)
        assert_close(value(table, "sharpness"), 2 / 7 * torch.linalg.eigvalsh(rows @ rows.mT)[-1], relative=1e-10)
        assert ("biases of every layer" in why_not(table, "activation_norm_bound")) == (not all(pattern))


@pytest.mark.parametrize(("biased", "trace"), [((False, False), 2.0), ((True, False), 3.0), ((True, True), 4.0)])
def test_the_tangent_kernel_of_ones_is_counted_by_hand(biased: tuple[bool, bool], trace: float) -> None:
    """f = v relu(w x + b) + c at 1 for all: each parameter has the derivative 1 where b and c are 0."""
    steps = [nn.Linear(1, 1, bias=biased[0]), nn.ReLU(), nn.Linear(1, 1, bias=biased[1])]
    network = nn.Sequential(*steps).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.fill_(float(name.endswith("weight")))
    table = certificates(network, torch.ones(1, 1).double())
    assert (value(table, "tangent_kernel_trace"), value(table, "sharpness")) == (trace, 2 * trace)


def test_a_kink_certifies_nothing() -> None:
    """relu(-relu(x)) is 0 everywhere, and at 0 both slopes are taken for 1: a Jacobian of no point."""
    zero = FullyConnected.from_layers([torch.tensor([[1.0]]), torch.tensor([[-1.0]]), torch.tensor([[1.0]])])
    origin = torch.zeros(1, 1).double()
    assert jacobian_rank_lower_bound(jacobians(zero, origin), tolerance=1e-9).rank == 1
    with pytest.raises(ValueError, match="All 1 lie on kinks"):
        certificates(zero, origin)
    beside = torch.tensor([[0.0], [1e-300], [-1.0], [2.0]], dtype=torch.float64)
    assert enclosed_jacobians(zero, beside).certain.tolist() == [False, True, True, True]
    assert value(certificates(zero, beside), "jacobian_rank_lower_bound") == 0


def test_what_is_of_all_samples_is_an_estimate_where_some_lie_on_kinks() -> None:
    """Rows of zeros lie on all kinks of a network without biases: without them the sharpness is twice what it is."""
    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(3, 5, bias=False), nn.ReLU(), nn.Linear(5, 3, bias=False)).double()
    x = torch.randn(8, 3, dtype=torch.float64)
    whole = certificates(network, x).set_index("name")
    padded = torch.cat([0 * x[:2], x[2:]])
    table = certificates(network, padded).set_index("name")
    for name in ("sharpness", "tangent_kernel_trace", "spectral_gap_ratios", "nonlinearity_impact"):
        assert (whole.kind[name], whole.reason[name]) == ("exact", "")
        assert (table.kind[name], bool(table.applies[name])) == ("estimate", True)
        assert table.reason[name] == "of the 6 of 8 samples off kinks alone; on kinks lie those of rows 1, 2"
    assert table.kind["trailing_singular_value_bound"] == "estimate"
    assert table.kind["schatten_lower_bound"] == "lower"  # more samples can only better it


def test_what_is_no_number_does_not_apply() -> None:
    row = certificates(lambda z: z * 1e200, torch.randn(5, 4, dtype=torch.float64)).set_index("name")
    assert not row.applies["idempotency_defect"]
    assert "float64 cannot hold" in row.reason["idempotency_defect"]
    assert not (row.value.isna() & row.applies).any()


def test_rounding_near_a_kink_is_counted() -> None:
    """x - 1e8 + 1e8 by two layers: at x = 1e-9 rounding alone decides on which side it lies."""
    shift = torch.tensor([1e8], dtype=torch.float64)
    one = torch.ones(1, 1).double()
    network = FullyConnected.from_layers([one] * 3, [shift, -shift, 0 * shift])
    x = torch.tensor([[1e-9], [-1e-9], [1e-3], [-1e-3]], dtype=torch.float64)
    assert enclosed_jacobians(network, x).certain.tolist() == [False, False, True, True]


def test_a_rank_one_map_of_large_values_is_not_certified_by_its_rounding() -> None:
    line = FullyConnected.from_layers([torch.tensor([[0.6], [0.8]])], [torch.tensor([1e9, -1e9])])
    x = torch.linspace(0, 1e-5, 60).double()[:, None]
    assert value(certificates(line, x), "spanning_tree_certificate") == 1


def test_the_x_cross_keeps_the_gap_between_its_ranks_and_dead_networks_have_rank_zero() -> None:
    table = certificates(x_cross_example().network, normal(5, 30, 2))
    assert value(table, "jacobian_rank_lower_bound") == 1
    assert value(table, "bottleneck_rank_upper_bound") == 2
    dead = FullyConnected.from_layers([torch.zeros(3, 4)] * 1 + [torch.zeros(3, 3)] * 2)
    table = certificates(dead, X)
    assert value(table, "jacobian_rank_lower_bound") == 0
    assert why_not(table, "regularity_lower_bound")


def test_lists_and_bad_samples() -> None:
    assert_well_formed(certificates(connected(), X.tolist()))  # pyright: ignore[reportArgumentType]
    bad = X.numpy().copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="certificates: needs finite x"):
        certificates(connected(), bad)  # pyright: ignore[reportArgumentType]


def test_the_least_over_the_layers_of_a_leaky_network_is_told() -> None:
    """Worked out apart, with numpy, from a forward pass that is written out."""
    network = LeakyResNet(4, 3, width=5, depth=4, effective_depth=2.0, seed=0, dtype=torch.float64)
    W, E = network.weights.detach().numpy(), network.embedding.numpy()
    a, found = X.numpy() @ E.T, list[tuple[float, float, float]]()
    for l in range(5):
        s = np.hstack([np.maximum(a, 0), np.ones((len(a), 1))])
        gamma = 1e-4 * np.linalg.norm(s, 2) ** 2
        coi = np.trace(a.T @ np.linalg.solve(s @ s.T + gamma * np.eye(len(a)), a))
        values = np.linalg.svd(a, compute_uv=False)
        negative = np.minimum(a, 0)
        found.append((coi, values.sum() ** 2 / (values**2).sum(), (negative**2).sum() / (a**2).sum()))
        if l < 4:
            a = a + 0.25 * (s @ W[l].T - 2.0 * a)
    table = certificates(network, X)
    for name, column in zip(
        ("cost_of_identity", "stable_rank_nuclear", "negative_energy_fraction"), zip(*found, strict=True), strict=True
    ):
        assert_close(value(table, name), min(column), relative=1e-8)
        assert max(column) > 1.01 * min(column)  # so that the layer matters


def test_the_side_of_the_tangent_gram_matrix_is_that_of_samples_times_outputs() -> None:
    """2000 is allowed, whatever the number of inputs."""
    network = FullyConnected(60, 2, width=3, depth=2, seed=0).double()
    assert value(certificates(network, normal(0, 50, 60)), "sharpness") > 0
    wide = FullyConnected(2, 60, width=3, depth=2, seed=0).double()
    assert "there are 3000" in why_not(certificates(wide, normal(0, 50, 2)), "sharpness")


class Skipping(nn.Sequential):
    def forward(self, input: Tensor) -> Tensor:
        return input + super().forward(input)


class Doubled(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


def test_a_subclass_with_a_forward_of_its_own_is_no_chain_of_layers() -> None:
    """A skip around the layers has full rank whatever their weights; read as a chain it was certified as rank 1."""
    narrow = [nn.Linear(3, 1), nn.ReLU(), nn.Linear(1, 3)]
    plain = nn.Sequential(*narrow).double()
    x = normal(3, 8, 3)
    assert rows_of(certificates(plain, x), "FC-02")["value"].tolist() == [1.0]
    for other in (Skipping(*narrow).double(), nn.Sequential(Doubled(3, 3)).double(), Doubled(3, 3).double()):
        table = certificates(other, x)
        assert not rows_of(table, "FC-02")["applies"].any()
        assert set(table[table["applies"]]["kind"]) <= {"estimate", "exact"}  # FC-46 is a number of the Jacobians
        assert rows_of(table, "FC-01")["value"].tolist() == [3.0]
        assert not any(costs(other)["applies"])


def test_one_layer_and_layers_that_pass_everything_on_are_read() -> None:
    layer, last = nn.Linear(3, 64), nn.Linear(64, 2)  # wide, so that two draws of what is left out do not agree
    x = normal(4, 5, 3)
    bare = nn.Sequential(layer, nn.ReLU(), last).double()
    dressed = nn.Sequential(nn.Identity(), layer, nn.Dropout(0.5), nn.ReLU(), nn.Identity(), last).double().eval()
    pd.testing.assert_frame_equal(certificates(bare, x), certificates(dressed, x))
    assert rows_of(costs(layer), "FC-12")["value"].tolist() == pytest.approx(
        [sum(float(p.detach().square().sum()) for p in layer.parameters())]
    )
    assert rows_of(certificates(layer, x), "FC-13")["applies"].all()
    with pytest.raises(ValueError, match="rows stand alone"):
        certificates(dressed.train(), x)


@pytest.mark.slow
def test_layers_are_read_whatever_else_was_imported() -> None:
    """From `isthmus.theory` alone a chain of layers was a mere function, and its bounds estimates."""
    code = (
        "import torch; from isthmus.theory import certificates; n = torch.nn.Sequential(torch.nn.Linear(2, 2));"
        "t = certificates(n, torch.ones(1, 2)); assert t[t['id'] == 'FC-13']['applies'].all()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["network", "function"])
def test_no_sample_is_refused_in_words(kind: str) -> None:
    network = FullyConnected(3, 2, width=4, depth=3, seed=0) if kind == "network" else torch.sin
    with pytest.raises(ValueError, match="needs a sample; got none"):
        certificates(network, torch.zeros(0, 3).double())


def rows_of(table: pd.DataFrame, statement: str) -> Any:
    return table[table["id"] == statement]


def test_a_gap_needs_a_layer_of_two_neurons_and_two_samples() -> None:
    def row(width: int, num_samples: int) -> Any:
        network = FullyConnected(2, 1, width=width, depth=3, seed=0)
        table = certificates(network, normal(0, 3, 2)[:num_samples])
        return table[table["name"] == "spectral_gap_ratios"].iloc[0]

    assert row(4, 3)["applies"]
    for narrow in (row(1, 3), row(4, 1)):
        assert not narrow["applies"]
        assert "two neurons and two samples" in narrow["reason"]
