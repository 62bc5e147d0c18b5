import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import bottleneck_cost_upper_bound, linear_cost
from theorem_checks import SEEDS, assert_at_most, assert_close, chain, normal, squared_norm

pytestmark = pytest.mark.theorem("FC-25")


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, identities=st.integers(0, 20))
def test_identity_layers_cost_their_rank_each(seed: int, identities: int) -> None:
    encoder, decoder = [normal(seed, 4, 5), normal(seed + 1, 2, 4)], [normal(seed + 2, 3, 2)]
    whole = [*encoder, *[torch.eye(2, dtype=torch.float64)] * identities, *decoder]
    depth = len(whole)

    def bound(rank: int) -> float:
        return bottleneck_cost_upper_bound(
            squared_norm(encoder), squared_norm(decoder), rank=rank, depth=depth, encoder_depth=2, decoder_depth=1
        )

    assert_close(bound(2), squared_norm(whole))
    assert_at_most(linear_cost(chain(whole), depth=depth), bound(2))
    if identities:
        with pytest.raises(AssertionError):
            assert_close(bound(1), squared_norm(whole))


def test_encoders_of_little_or_no_norm_are_fine() -> None:
    """The norm of a half may be anything from 0: 7 layers, 2 + 1 of them halves, on 3 dimensions."""
    cost = bottleneck_cost_upper_bound(0.0, 0.25, rank=3, depth=7, encoder_depth=2, decoder_depth=1)
    assert_close(cost, 12.25)
    assert cost >= 12.25
    with pytest.raises(ValueError, match="needs depth >= 3"):
        bottleneck_cost_upper_bound(0.0, 0.25, rank=3, depth=2, encoder_depth=2, decoder_depth=1)
