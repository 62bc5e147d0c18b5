import pytest
from torch import Tensor

from isthmus import FullyConnected, rebalance
from theorem_checks import assert_close, normal, random_network

pytestmark = pytest.mark.theorem("LEAKY-18")


def sides(network: FullyConnected, *, bias: bool = True) -> list[tuple[Tensor, Tensor]]:
    """Squared norms of what comes into each hidden neuron, biases included, and of what goes out."""
    incoming = [
        w.detach().square().sum(1) + (b.detach().square() if bias else 0)
        for w, b in zip(network.weights, network.biases, strict=True)
    ]
    outgoing = [w.detach().square().sum(0) for w in network.weights]
    return list(zip(incoming[:-1], outgoing[1:], strict=True))


def assert_balanced(network: FullyConnected, *, bias: bool = True) -> None:
    for incoming, outgoing in sides(network, bias=bias):
        assert_close(incoming, outgoing, relative=1e-9)


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_where_the_penalty_is_least_what_comes_in_is_what_goes_out(slope: float) -> None:
    network = random_network(0, (4, 7, 6, 3), slope=slope)
    balanced = rebalance(network)
    assert isinstance(balanced, FullyConnected)
    x = normal(1, 9, 4)
    assert_close(balanced(x).detach(), network(x).detach())
    assert_balanced(balanced)
    with pytest.raises(AssertionError):  # the bias belongs to what comes in
        assert_balanced(balanced, bias=False)
    with pytest.raises(AssertionError):
        assert_balanced(network)
