import pytest
import torch

from isthmus.networks import (
    FullyConnected,
    balance_linear_runs,
    balanced_factors,
    caratheodory_prune,
    delete_dead_neurons,
    fold_constant_neurons,
    merge_parallel_neurons,
)
from isthmus.networks.caratheodory import conic_combination
from isthmus.networks.folding import merge_linear_runs, with_linear_run
from tolerances import closed_form, rounding


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_dead_layer_keeps_one_silent_neuron() -> None:
    network = FullyConnected.from_layers([random(3, 2), torch.zeros(4, 3), random(1, 4)])
    after = delete_dead_neurons(network)
    assert after.dimensions == (2, 1, 1, 1)
    assert float(after.penalty().detach()) == 0.0


def test_neurons_dead_on_the_data_go_only_when_the_data_are_given() -> None:
    network = FullyConnected.from_layers([torch.tensor([[1.0], [-1.0]]), torch.ones(1, 2)])
    x = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    assert delete_dead_neurons(network).dimensions == (1, 2, 1)
    assert delete_dead_neurons(network, x).dimensions == (1, 1, 1)


def test_merging_without_balancing_would_raise_the_penalty() -> None:
    # rows (.01) and (10) are parallel; keeping the first with outgoing weight 1 + 1000 * 1 costs a million
    network = FullyConnected.from_layers([torch.tensor([[0.01], [10.0]], dtype=torch.float64), torch.ones(1, 2)])
    after = merge_parallel_neurons(network)
    assert after.dimensions == (1, 1, 1)
    assert abs(float(after.penalty().detach()) - 2 * 10.01) <= closed_form(20.02)


def test_antiparallel_neurons_merge_only_in_a_linear_layer() -> None:
    weights = [torch.tensor([[1.0], [-2.0]]), torch.ones(1, 2)]
    assert merge_parallel_neurons(FullyConnected.from_layers(weights)).dimensions == (1, 2, 1)
    assert merge_parallel_neurons(FullyConnected.from_layers(weights, linear=[1])).dimensions == (1, 1, 1)


def assert_is_conic_combination(atoms: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> None:
    assert float((atoms @ (before - after)).abs().max()) <= rounding(size=atoms.shape[1], condition=10)
    assert float(after.min()) >= 0
    assert float(after.sum()) <= float(before.sum()) + rounding(size=atoms.shape[1])
    assert int((after > 0).sum()) <= int(torch.linalg.matrix_rank(atoms, rtol=rounding(size=atoms.shape[1])))


@pytest.mark.parametrize("seed", range(5))
def test_a_conic_combination_needs_no_more_atoms_than_dimensions(seed: int) -> None:
    atoms, before = random(6, 30, seed=seed), random(30, seed=seed + 9).abs()
    assert_is_conic_combination(atoms, before, conic_combination(atoms, before))
    with pytest.raises(AssertionError):
        assert_is_conic_combination(atoms, before, before)  # 30 atoms in 6 dimensions
    least_squares = torch.linalg.pinv(atoms) @ (atoms @ before)  # not conic
    with pytest.raises(AssertionError):
        assert_is_conic_combination(atoms, before, least_squares)


def test_wide_layers_shrink_to_samples_times_outputs() -> None:
    network = FullyConnected(3, 2, width=40, depth=2, seed=3, dtype=torch.float64)
    x = random(6, 3, seed=4)
    after = caratheodory_prune(network, x)
    assert after.dimensions[1] <= 12
    assert float((after(x) - network(x)).detach().abs().max()) <= rounding(size=40, condition=10)
    assert after.penalty() < network.penalty()


def test_a_constant_is_folded_only_where_a_bias_is_cheaper() -> None:
    # 4 made by a balanced neuron costs 2 * 4, as a bias 16
    network = FullyConnected.from_layers(
        [torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0, 1.0]])], [torch.tensor([2.0, 0.0]), torch.zeros(1)]
    )
    assert fold_constant_neurons(network).dimensions == (1, 2, 1)
    folded = fold_constant_neurons(network, allow_rise=True)
    assert folded.dimensions == (1, 1, 1)
    assert abs(float((folded.penalty() - network.penalty()).detach()) - (16 - 8)) <= closed_form(16)
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    assert torch.equal(folded(x), network(x))


def test_linear_runs_reach_the_cost_of_their_product() -> None:
    network = FullyConnected(4, 3, width=5, depth=4, linear=(1, 2, 3), seed=0, bias=False, dtype=torch.float64)
    product = network.weights[3] @ network.weights[2] @ network.weights[1] @ network.weights[0]
    cost = 4 * torch.linalg.svdvals(product.detach()).pow(0.5).sum()
    after = balance_linear_runs(network)
    assert after.dimensions == (4, 3, 3, 3, 3)
    assert abs(float((after.penalty() - cost).detach())) <= closed_form(float(cost))


@pytest.mark.theorem("FC-09")
@pytest.mark.parametrize("depth", [1, 2, 7])
def test_balanced_factors_multiply_to_the_matrix_at_its_cost(depth: int) -> None:
    matrix = (
        random(5, 3, seed=1) @ torch.diag(torch.tensor([1.0, 1e-3, 0.0], dtype=torch.float64)) @ random(3, 4, seed=2)
    )
    factors = balanced_factors(matrix, depth)
    product = torch.linalg.multi_dot([*factors[::-1], torch.eye(4, dtype=torch.float64)])
    assert float((product - matrix).abs().max()) <= closed_form()
    s = torch.linalg.svdvals(matrix)[:2]

    def assert_cost(power: float) -> None:
        cost = float(depth * s.pow(power).sum())
        assert abs(float(sum(w.square().sum() for w in factors)) - cost) <= closed_form(cost)

    assert_cost(2 / depth)
    with pytest.raises(AssertionError):
        assert_cost(1 / depth)


@pytest.mark.parametrize("middle", [1, 2, 4])
def test_a_run_of_linear_layers_is_written_anew_at_its_place(middle: int) -> None:
    """Layers 2 and 3 of 4 hidden ones are linear, with biases, and the run has rank 2."""
    weights = [random(5, 3), random(2, 5, seed=1), random(4, 2, seed=2), random(6, 4, seed=3), random(2, 6, seed=4)]
    biases = [random(len(w), seed=10 + i) for i, w in enumerate(weights)]
    network, x = FullyConnected.from_layers(weights, biases, linear=(2, 3)), random(20, 3, seed=5)
    after = with_linear_run(network, rank=2, middle=middle)
    assert after.dimensions == (3, 5, *[2] * middle, 6, 2)
    assert sorted(after.linear) == list(range(2, 2 + middle))
    assert float((after(x) - network(x)).detach().abs().max()) <= rounding(condition=1e3)
    product = weights[3] @ weights[2] @ weights[1]
    run = [w.detach() for w in after.weights][1:-1]
    cost = (middle + 1) * float((torch.linalg.svdvals(product)[:2] ** (2 / (middle + 1))).sum())
    assert sum(float(w.square().sum()) for w in run) == pytest.approx(cost, rel=1e-12)
    merged = merge_linear_runs(network)
    assert (merged.dimensions, merged.linear) == ((3, 5, 6, 2), frozenset())
    assert float((merged(x) - network(x)).detach().abs().max()) <= rounding(condition=1e3)


def test_a_leaky_neuron_without_inputs_is_dead_only_without_a_bias() -> None:
    """sigma(1) and sigma(-1) are constants other than 0 at a slope of .3; of a ReLU the second is dead too."""
    weights = [torch.cat([random(2, 3), torch.zeros(3, 3).double()]), random(2, 5, seed=1)]
    biases, x = [torch.tensor([0.1, 0.2, 0.0, 1.0, -1.0]).double(), torch.zeros(2).double()], random(9, 3, seed=2)
    for slope, width in ((0.3, 4), (0.0, 3)):
        network = FullyConnected.from_layers(weights, biases, negative_slope=slope)
        after = delete_dead_neurons(network)
        assert after.dimensions == (3, width, 2)
        assert float((after(x) - network(x)).detach().abs().max()) <= rounding(size=5)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_rank_of_balanced_factors_does_not_see_the_scale(scale: float) -> None:
    matrix = scale * random(4, 2) @ random(2, 5, seed=1)
    factors = balanced_factors(matrix, 3)
    assert [tuple(f.shape) for f in factors] == [(2, 5), (2, 2), (4, 2)]
    assert float((factors[2] @ factors[1] @ factors[0] - matrix).abs().max()) <= rounding(size=5) * scale * 10
