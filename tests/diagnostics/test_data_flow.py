"""Which layers everything passes through, also where tensors are filled in place: a certified rank is none too low."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from diagnostics.architectures import numbers
from isthmus import diagnose

Way = Callable[[nn.Linear, Tensor], Tensor]


def beside(layer: nn.Linear, x: Tensor) -> Tensor:
    return torch.cat([layer(x), x[:, 2:]], 1)


def by_items(layer: nn.Linear, x: Tensor) -> Tensor:
    out = torch.zeros(len(x), 8, dtype=x.dtype)
    out[:, :2] = layer(x)
    out[:, 2:] = x[:, 2:]
    return out


def by_copies_into_views(layer: nn.Linear, x: Tensor) -> Tensor:
    out = torch.zeros(len(x), 8, dtype=x.dtype)
    out[:, 2:].copy_(x[:, 2:])
    out.narrow(1, 0, 2).copy_(layer(x))
    return out


def by_a_flat_view(layer: nn.Linear, x: Tensor) -> Tensor:
    out = torch.zeros(len(x), 8, dtype=x.dtype)
    out.view(-1).index_copy_(0, torch.arange(out.numel()), beside(layer, x).flatten())
    return out


def by_a_list(layer: nn.Linear, x: Tensor) -> Tensor:
    out = torch.zeros(len(x), 8, dtype=x.dtype)
    torch._foreach_add_([out], [beside(layer, x)])  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return out


def behind_the_layer(layer: nn.Linear, x: Tensor) -> Tensor:
    out = functional.pad(layer(x), (0, 6))
    out[:, 2:] += x[:, 2:]
    return out


def by_another_tensor(layer: nn.Linear, x: Tensor) -> Tensor:
    out = functional.pad(layer(x), (0, 6))
    out.data = beside(layer, x).detach()
    return out


def by_out(layer: nn.Linear, x: Tensor) -> Tensor:
    out = torch.zeros(len(x), 8, dtype=x.dtype)
    with torch.no_grad():
        layer(x)
        torch.add(beside(layer, x), 0.0, out=out)
    return out


def by_a_second_input(layer: nn.Linear, x: Tensor) -> Tensor:
    """The sum that addmm adds is no bias."""
    narrow = layer(x)
    return torch.addmm(x, narrow, layer.weight)


def by_a_matrix_of_the_input(layer: nn.Linear, x: Tensor) -> Tensor:
    """A layer of one neuron, whose matrix hangs on the data too."""
    return functional.linear(functional.linear(x, layer.weight[:1]), x.mean(0)[:, None])


class Through(nn.Module):
    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.layer = nn.Linear(8, 2).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.way(self.layer, x)


WAYS: tuple[Way, ...] = (
    beside, by_items, by_copies_into_views, by_a_flat_view, by_a_list, behind_the_layer, by_another_tensor, by_out,
    by_a_second_input, by_a_matrix_of_the_input,
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("jacobians", [None, False])
def test_what_goes_round_a_layer_is_no_less_for_being_written_in_place(way: Way, jacobians: bool | None) -> None:
    assert diagnose(Through(way), numbers(40, 8).double(), jacobians=jacobians).rank.upper == 8


def all_of_it(layer: nn.Linear, x: Tensor) -> Tensor:
    """Nothing else is written: the layer cuts all the same."""
    out = torch.zeros(len(x), 8, dtype=x.dtype)
    out[:, :2] = layer(x)
    out.view(-1).mul_(2.0)
    return out.relu_()


def turned(layer: nn.Linear, x: Tensor) -> Tensor:
    return (torch.ones(8, 2, dtype=x.dtype) @ layer(x).T).T


@pytest.mark.parametrize("way", [all_of_it, turned])
def test_what_all_goes_through_a_layer_is_bounded_by_it(way: Way) -> None:
    assert diagnose(Through(way), numbers(40, 8).double()).rank.upper == 2


def test_where_no_way_from_the_input_is_seen_no_layer_bounds_the_rank() -> None:
    """NumPy writes into memory that torch has made: no function of torch is seen."""

    def unseen(layer: nn.Linear, x: Tensor) -> Tensor:
        out = torch.zeros(len(x), 8, dtype=x.dtype)
        layer(x)
        out.detach().numpy()[:] = x.detach().numpy()
        return out

    assert diagnose(Through(unseen), numbers(40, 8).double(), jacobians=False).rank.upper == 8
