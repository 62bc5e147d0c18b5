import pytest
from hypothesis import given, settings

from isthmus.networks import rebalance
from isthmus.theory import shallow_path_norm
from theorem_checks import SEEDS, assert_at_most, assert_close, random_network

pytestmark = pytest.mark.theorem("FC-11")


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS)
def test_rebalancing_reaches_the_path_norm(seed: int) -> None:
    network = random_network(seed, [3, 7, 2])
    w1, w2 = (w.detach() for w in network.weights)
    b1, b2 = (b.detach() for b in network.biases)
    norm = shallow_path_norm(w1, w2, bias=b1, output_bias=b2)
    assert_close(rebalance(network).penalty().detach(), norm)
    assert_at_most(norm, network.penalty().detach())
    with pytest.raises(AssertionError):  # the biases of the neurons belong to the paths
        assert_close(rebalance(network).penalty().detach(), shallow_path_norm(w1, w2, output_bias=b2))
