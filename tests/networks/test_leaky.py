import pytest
import torch

import isthmus
from isthmus.errors import ShapeError
from isthmus.networks import LeakyResNet, releaked, retimed, walk
from isthmus.networks.leaky_steps import step_sizes
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.steps.leaky_step import LeakyStep
from theorem_checks import assert_close, normal

SETTINGS = [("euler", True), ("euler", False), ("exponential", True), ("exponential", False)]


def leaky(scheme: str = "euler", bias: bool = True, maps: str = "fixed", steps: str = "irregular") -> LeakyResNet:
    network = LeakyResNet(
        3, 2, width=5, depth=7, effective_depth=2.5, steps=steps, maps=maps, bias=bias, scheme=scheme, seed=1,
        dtype=torch.float64,
    )  # fmt: skip
    if bias:
        with torch.no_grad():
            network.weights[:, :, -1] = normal(4, 7, 5)
    return network


@pytest.mark.parametrize(("scheme", "bias"), SETTINGS)
def test_every_layer_forgets_and_adds(scheme: str, bias: bool) -> None:
    network, x, Lt = leaky(scheme, bias), normal(0, 6, 3), 2.5
    a, W = x @ network.embedding.mT, network.weights
    for l, rho in enumerate(step_sizes("irregular", 7)):
        S = torch.cat([a.relu(), torch.ones(6, 1, dtype=torch.float64)], 1) if bias else a.relu()
        kept = 1 - rho * Lt if scheme == "euler" else torch.exp(-rho * Lt)
        a = kept * a + (1 - kept) / Lt * S @ W[l].mT
    assert_close(network(x).detach(), (a @ network.unembedding.mT).detach())
    states = walk(network, x)
    assert [s.position for s in states] == list(range(1, 10))
    assert_close(states[-2].activation.detach(), a.detach())
    other = leaky("exponential" if scheme == "euler" else "euler", bias)
    with pytest.raises(AssertionError):
        assert_close(other(x).detach(), (a @ network.unembedding.mT).detach())


@pytest.mark.parametrize("maps", ["fixed", "learned"])
def test_the_penalty_weighs_layers_by_their_steps_and_learned_maps_by_a_half(maps: str) -> None:
    network = leaky(maps=maps)
    rho = step_sizes("irregular", 7)
    expected = sum(float(r * w.detach().square().sum()) for r, w in zip(rho, network.weights, strict=True)) / 5
    expected += 5 / 2 if maps == "learned" else 0.0  # semi-orthogonal: |E|^2 + |U|^2 = 3 + 2
    assert_close(network.penalty().detach(), expected)
    assert len([p for p in network.parameters() if p.requires_grad]) == (3 if maps == "learned" else 1)
    with pytest.raises(AssertionError):  # all layers alike
        assert_close(leaky(maps=maps, steps="equidistant").penalty().detach(), expected)


def test_the_smoothed_relu_tends_to_the_relu() -> None:
    network, x = leaky(), normal(0, 6, 3)
    exact = network(x).detach()
    gaps: list[float] = []
    for eps in (1e-1, 1e-2, 1e-3):
        network.smoothing.fill_(eps)
        gaps.append(float((network(x).detach() - exact).abs().max()))
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2] > 0


@pytest.mark.slow
def test_it_trains_in_float32_and_keeps_fixed_maps() -> None:
    network = isthmus.LeakyResNet(3, 2, width=5, depth=7, effective_depth=2.5, seed=1)
    E = network.embedding.detach().clone()
    x = normal(0, 20, 3).float()
    result = isthmus.fit(network, x, x[:, :2], ridge=1e-2, limits=isthmus.Limits(evaluations=200))
    assert result.data_loss < 0.5
    assert torch.equal(E, network.embedding)


def test_bad_input_is_refused_in_words() -> None:
    def made(**changes: object) -> LeakyResNet:
        arguments = {"width": 4, "depth": 4, "effective_depth": 2.0} | changes
        return LeakyResNet(3, 2, **arguments)  # pyright: ignore[reportArgumentType]

    assert made().depth == 4
    for changes, message in (
        ({"width": 2}, "needs width >= 3"),
        ({"depth": 0}, "needs depth >= 1"),
        ({"effective_depth": -1.0}, "needs finite effective_depth >= 0"),
        ({"effective_depth": float("nan")}, "needs finite effective_depth >= 0"),
        ({"effective_depth": 4.1}, r"needs rho Lt <= 1 in every layer; got 1.02 with depth 4"),
        ({"steps": "learned"}, "'equidistant', 'irregular', 'adaptive' or a tensor of 4 steps"),
        ({"steps": torch.tensor([0.5, 0.5, 0.5, 0.5])}, "needs sum 1; got 2"),
        ({"steps": torch.tensor([0.5, 0.5, 0.5, -0.5])}, "needs positive steps"),
        ({"steps": torch.tensor([0.5, 0.5])}, "needs 4 steps, one per layer"),
        ({"maps": "free"}, "needs one of 'fixed', 'learned'"),
        ({"scheme": "heun"}, "needs one of 'euler', 'exponential'"),
    ):
        with pytest.raises(ValueError, match=message):
            made(**changes)
    assert made(effective_depth=8.0, scheme="exponential").depth == 4
    with pytest.raises(ShapeError, match=r"needs x of shape \(n, 3\)"):
        made()(torch.ones(2, 4))


def test_weights_lie_row_by_row_as_those_that_are_read_back_do() -> None:
    made = (leaky(maps="learned"), isthmus.ResNet(3, 2, width=5, depth=3, block_depth=2, residual_weight=1.0, seed=0),
            isthmus.FullyConnected(3, 2, width=5, depth=3, seed=0))  # fmt: skip
    for network in made:
        assert all(parameter.is_contiguous() for parameter in network.parameters())


def ends(**changes: object) -> LeakyResNet:
    arguments = {"width": 5, "depth": 4, "bias": True, "seed": 3, "dtype": torch.float64} | changes
    network = LeakyResNet(3, 2, **arguments)  # pyright: ignore[reportArgumentType]
    with torch.no_grad():
        network.weights.copy_(normal(1, *network.weights.shape))
    return network


@pytest.mark.parametrize("scheme", ["euler", "exponential"])
def test_without_a_leak_it_is_a_plain_resnet(scheme: str) -> None:
    network, x = ends(effective_depth=0, scheme=scheme), normal(2, 6, 3)
    E, U, W = (p.detach() for p in (network.embedding, network.unembedding, network.weights))
    stream = x @ E.mT
    for w in W:
        stream = stream + (stream.relu() @ w[:, :5].mT + w[:, 5]) / 4
    assert_close(network(x).detach(), stream @ U.mT)
    assert_close(network.penalty().detach(), W.square().sum() / 8)
    assert_close(network.as_fully_connected()(x).detach(), network(x).detach(), relative=1e-11)
    drawn = LeakyResNet(3, 2, width=50, depth=4, effective_depth=0, seed=0, dtype=torch.float64)
    assert float(drawn.weights[..., :50].detach().square().mean()) == pytest.approx(1 / 200, rel=0.05)


def test_a_layer_that_leaks_all_is_fully_connected() -> None:
    """rho Lt = 1 in each of 7 layers, where 1 / 7 is rounded: A_l = rho_l sigma(A_{l-1}) W_l^T and nothing else."""
    network, x = ends(effective_depth=7, depth=7), normal(2, 6, 3)
    W, b = network.weights.detach()[..., :5] / 7, network.weights.detach()[..., 5] / 7
    # the first layer acts on relu(E x), so that a layer with the identity stands in front
    layers = [network.embedding.detach(), *W, network.unembedding.detach()]
    zeros = [torch.zeros(len(layers[0])).double(), *b, torch.zeros(2).double()]
    same = isthmus.FullyConnected.from_layers(layers, zeros, linear=(8,))
    assert_close(network(x).detach(), same(x).detach(), relative=1e-10)
    unequal = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    assert ends(effective_depth=2, depth=3, steps=unequal).depth == 3  # one layer without a skip


@pytest.mark.parametrize(("effective_depth", "scheme"), [(0.0, "euler"), (0.0, "exponential"), (4.0, "euler")])
def test_both_ends_are_trained_by_hand_as_by_autograd(effective_depth: float, scheme: str) -> None:
    network, x, y = ends(effective_depth=effective_depth, scheme=scheme), normal(4, 30, 3), normal(5, 30, 2)
    step = LeakyStep(network, x, DataLoss(SQUARED, y), 0.1)
    value = step()
    objective = (network(x) - y).square().sum(1).mean() + 0.1 * network.penalty()
    (gradient,) = torch.autograd.grad(objective, [network.weights])
    assert value == pytest.approx(float(objective.detach()), rel=1e-12)
    assert_close(step.gradient, gradient.reshape(-1), relative=1e-11)
    result = isthmus.fit(network, x, y, ridge=0.05, limits=isthmus.Limits(evaluations=400))
    assert result.objective < 0.9 * float(objective.detach())
    assert result.stationarity < 0.3
    found = isthmus.diagnose(network, x, y, ridge=0.05)
    assert ("hamiltonian" in found.layers) == (effective_depth > 0)
    if not effective_depth:
        with pytest.raises(ValueError, match="needs a network that leaks"):
            isthmus.leaky_diagnosis(network, x, y, ridge=0.05)
        with pytest.raises(ValueError, match="effective_depth of the network > 0"):
            isthmus.effective_depth(network, x, y, ridge=0.05)


def test_moves_that_need_a_leak_say_so() -> None:
    plain = ends(effective_depth=0.0, scheme="exponential")
    with pytest.raises(ValueError, match="retimed: needs a network that leaks"):
        retimed(plain)
    leaking, factor = releaked(ends(effective_depth=0.0, bias=False), 1.5)  # from a ResNet to a leaky one
    x = normal(2, 6, 3)
    assert_close(leaking(x).detach(), factor * ends(effective_depth=0.0, bias=False)(x).detach(), relative=1e-11)
    with pytest.raises(ValueError, match="needs rho Lt < 1"):
        releaked(ends(effective_depth=2.0), 4.0)
