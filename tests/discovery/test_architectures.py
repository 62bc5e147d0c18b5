"""What stands for the decided rank where the network of that rank could not be used."""

import pytest

from isthmus.discovery.architectures import architecture_of
from isthmus.discovery.settings import NetworkKind, Settings

CURVE = {r: {"rank": r, "objective": 1.0 / r} for r in (2, 3, 5)}
STARTS = [{"objective": 0.3}, {"objective": 0.1}]


@pytest.mark.parametrize(("rank", "stands"), [(3, 3), (4, 3), (9, 5), (1, 2)], ids=["itself", "gap", "above", "below"])
def test_the_next_lower_rank_stands_for_one_that_diverged(rank: int, stands: int) -> None:
    shown = architecture_of(Settings()).shown(STARTS, CURVE, rank)
    assert shown["rank"] == stands


@pytest.mark.parametrize("kind", [NetworkKind.LEAKY, NetworkKind.RESNET])
def test_a_residual_network_is_shown_free_of_waists(kind: NetworkKind) -> None:
    assert architecture_of(Settings(network=kind)).shown(STARTS, CURVE, 3) is STARTS[1]
