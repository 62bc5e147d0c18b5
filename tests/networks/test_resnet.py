import pytest
import torch

from isthmus.errors import ShapeError
from isthmus.networks import ResNet, walk
from tolerances import closed_form, rounding


def data(n: int = 6, d: int = 3) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.theorem("RES-10")
@pytest.mark.parametrize("block_depth", [1, 2])
def test_blocks_add_to_the_stream(block_depth: int) -> None:
    network = ResNet(3, 2, width=4, inner_width=5, depth=3, block_depth=block_depth, seed=1, dtype=torch.float64)
    with torch.no_grad():
        for bias in network.biases:
            bias.uniform_(generator=torch.Generator().manual_seed(2))
    x = data()
    b = list(network.biases)
    stream = x @ network.embedding.T + b[0]
    for l in range(3):
        if block_depth == 1:
            stream = stream + (stream @ network.block_weights[l].T + b[1 + l]).relu()
        else:
            inner = (stream @ network.block_weights[2 * l].T + b[1 + 2 * l]).relu()
            stream = stream + inner @ network.block_weights[2 * l + 1].T + b[2 + 2 * l]
    expected = stream @ network.unembedding.T + b[-1]
    assert float((network(x) - expected).detach().abs().max()) <= rounding(size=30)
    states = walk(network, x)
    assert len(states) == 2 + 3 * block_depth
    assert float((states[-2].activation - stream).detach().abs().max()) <= rounding(size=30)


@pytest.mark.theorem("RES-01", "RES-02")
@pytest.mark.parametrize("block_depth", [1, 2])
def test_a_linear_network_is_the_product_of_identity_plus_blocks(block_depth: int) -> None:
    network = ResNet(3, 2, width=4, depth=2, block_depth=block_depth, linear=True, seed=1, dtype=torch.float64)
    w, eye = list(network.block_weights), torch.eye(4, dtype=torch.float64)
    blocks = w if block_depth == 1 else [w[1] @ w[0], w[3] @ w[2]]
    product = network.unembedding @ (eye + blocks[1]) @ (eye + blocks[0]) @ network.embedding
    assert float((network(data()) - data() @ product.T).detach().abs().max()) <= rounding(size=30)
    assert len(network.biases) == 0


@pytest.mark.parametrize(("block_depth", "factor"), [(1, 0.3 * 2), (2, 0.15)])
def test_the_penalty_weighs_the_blocks_and_leaves_the_biases_free(block_depth: int, factor: float) -> None:
    network = ResNet(3, 2, width=4, depth=2, block_depth=block_depth, residual_weight=0.3, seed=1, dtype=torch.float64)
    with torch.no_grad():
        for bias in network.biases:
            bias.fill_(7.0)
    ends = (network.embedding.square().sum() + network.unembedding.square().sum()) / 2
    blocks = sum(float(w.detach().square().sum()) for w in network.block_weights)
    expected = float(ends.detach()) + factor * blocks
    assert abs(float(network.penalty().detach()) - expected) <= closed_form(expected)


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="needs 1 or 2 weight matrices per block"):
        ResNet(2, 2, width=3, depth=1, block_depth=3)
    with pytest.raises(ValueError, match="needs a finite lambda > 0"):
        ResNet(2, 2, width=3, depth=1, block_depth=1, residual_weight=0.0)
    with pytest.raises(ValueError, match="needs every dimension >= 1"):
        ResNet(2, 2, width=0, depth=1, block_depth=1)
    with pytest.raises(ValueError, match="needs depth >= 0"):
        ResNet(2, 2, width=2, depth=-1, block_depth=1)
    with pytest.raises(ShapeError, match="2 matrices per block"):
        ResNet.from_layers([torch.eye(2)] * 3, block_depth=2)
    with pytest.raises(ShapeError, match="the same inner width"):
        ResNet.from_layers([torch.eye(2), torch.ones(2, 3), torch.eye(2)], block_depth=1)
    with pytest.raises(ShapeError, match=r"needs x of shape \(n, 2\)"):
        ResNet(2, 2, width=2, depth=1, block_depth=1)(torch.ones(3, 1))
