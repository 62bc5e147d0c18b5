"""When a listener hears of a layer: as soon as it is settled, in the order of the layers, once."""

import torch
from torch import Tensor, nn

from diagnostics.architectures import numbers
from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.replica import lent
from isthmus.diagnostics.samples import Samples


class _Events(Listener):
    def __init__(self) -> None:
        self.events, self.bent = list[tuple[str, int]](), dict[int, bool]()

    def called(self, reading: Reading) -> None:
        self.events.append(("called", reading.index))

    def closed(self, reading: Reading) -> None:
        self.events.append(("closed", reading.index))
        self.bent[reading.index] = reading.is_bent


class _Late(nn.Module):
    """The activation of the first layer is taken after the second and the third have run."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        z = self.first(x)
        out = self.third(torch.relu(self.second(x)))
        return out + torch.relu(z)


def heard(module: nn.Module) -> _Events:
    events = _Events()
    with torch.no_grad(), lent(module) as replica:
        record(replica, Names(module), Samples.of(numbers(5, 4)), events)
    return events


def test_a_layer_of_a_chain_is_told_before_the_next_one() -> None:
    """While its activation is still in the caches; the last one at the end."""
    found = heard(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)))
    assert found.events == [
        ("called", 0), ("closed", 0), ("called", 1), ("closed", 1), ("called", 2), ("closed", 2)
    ]  # fmt: skip
    assert found.bent == {0: True, 1: True, 2: False}


def test_a_layer_waits_for_those_before_it() -> None:
    found = heard(_Late())
    assert [index for kind, index in found.events if kind == "closed"] == [0, 1, 2]
    assert found.events[:3] == [("called", 0), ("called", 1), ("called", 2)]
    assert found.bent == {0: True, 1: True, 2: False}
