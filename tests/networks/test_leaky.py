import pytest
import torch

import isthmus
from isthmus.errors import ShapeError
from isthmus.networks import LeakyResNet, walk
from isthmus.networks.leaky_steps import step_sizes
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
        ({"effective_depth": 0.0}, "needs finite effective_depth > 0"),
        ({"effective_depth": -1.0}, "needs finite effective_depth > 0"),
        ({"effective_depth": 4.0}, r"needs rho Lt < 1 in every layer; got 1 with depth 4"),
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
