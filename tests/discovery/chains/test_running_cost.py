"""Which of two networks is slower, from passes in turn: known where the turns tell, and by how much they spread."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from foreign_modules import samples
from isthmus.discovery.chains.running_cost import LEAST_ROUNDS, TimedPasses, flops, race

SPREAD = torch.linspace(-0.04, 0.04, 101).exp().tolist()


def turns(slower: float, *, seconds: float = 1e-2, spread: Sequence[float] = SPREAD) -> TimedPasses:
    """So many times as long, each turn off by its share."""
    return TimedPasses([seconds] * len(spread), [seconds * slower * share for share in spread])


def test_the_median_of_the_turns_lies_in_its_interval_of_95_per_cent() -> None:
    usual, least, most = turns(0.5).times_as_fast
    assert usual == pytest.approx(2)
    # 40 of 101 turns on either side: (101 - 2 sqrt(101)) / 2
    assert [least, most] == pytest.approx([2 / SPREAD[60], 2 / SPREAD[40]])
    assert turns(0.5, spread=SPREAD[:5]).times_as_fast[1:] == pytest.approx((2 / SPREAD[4], 2 / SPREAD[0]))


@pytest.mark.parametrize(
    ("found", "is_slower"),
    [
        (turns(0.8), False),
        (turns(1.0), False),
        (turns(1.02), True),  # beyond the spread of the median, .008
        (turns(1.02, seconds=1e-4), False),  # two microseconds
        (turns(1.0, spread=[0.9, 0.95, 1.0, 1.1, 1.2]), None),
        (turns(1.3, spread=[0.9, 0.95, 1.0, 1.1, 1.2]), True),
    ],
)
def test_slower_is_what_takes_longer_by_more_than_the_spread(found: TimedPasses, is_slower: bool | None) -> None:
    assert found.is_slower is is_slower


class Sleeping(nn.Module):
    """Takes its time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, size), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.weight @ self.weight).sum()


def test_a_race_goes_on_until_it_is_decided() -> None:
    found = race(Sleeping(64), Sleeping(320), samples(4, 3))
    assert found.is_slower
    assert len(found.before) == len(found.after) >= LEAST_ROUNDS
    assert found.times_as_fast[0] < 0.5


class First(nn.Module):
    """What a layer gives first."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(*([x] * 3 if isinstance(self.layer, nn.MultiheadAttention) else [x]))[0]


class Attending(nn.Module):
    """Attention of two heads without matrices of its own."""

    def forward(self, x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(heads, heads, heads)


ATTENTION = 2 * 5 * 8 * (3 * 8) + 2 * (2 * 5 * 5 * 8) + 2 * 5 * 8 * 8  # in, scores and their use, out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("make", "products"),
    [
        (lambda: nn.Linear(8, 3), 2 * 5 * 8 * 3),
        (lambda: nn.Conv1d(5, 4, 3, padding=1), 2 * 8 * 5 * 4 * 3),
        (lambda: First(nn.RNN(8, 6, batch_first=True)), 2 * 5 * 6 * (8 + 6)),
        (lambda: First(nn.GRU(8, 6, batch_first=True)), 2 * 5 * 3 * 6 * (8 + 6)),
        (lambda: First(nn.LSTM(8, 6, batch_first=True)), 2 * 5 * 4 * 6 * (8 + 6)),
        (lambda: First(nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True)),
         2 * 2 * 5 * 4 * 6 * (8 + 6) + 2 * 2 * 5 * 4 * 6 * (12 + 6)),
        (Attending, 2 * (2 * 5 * 5 * 8)),
        (lambda: First(nn.MultiheadAttention(8, 2, batch_first=True)), ATTENTION),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), ATTENTION + 2 * 2 * 5 * 8 * 16),
    ],
)  # fmt: skip
def test_operations_are_those_of_the_products_however_a_layer_is_computed(
    make: Callable[[], nn.Module], products: int, dtype: torch.dtype
) -> None:
    """Through kernels for whole layers torch counts none of an LSTM, of attention, of an encoder."""
    fast = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled
    module = make().to(dtype).eval().requires_grad_(False)
    assert flops(module, samples(4, 5, 8, dtype=dtype)) == products
    assert (
        torch.backends.mha.get_fastpath_enabled(),
        torch.backends.mkldnn.enabled,
        torch.backends.cudnn.enabled,
    ) == fast
