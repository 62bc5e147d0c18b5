"""A module that is lent is left as it was, to the last version of its tensors: what waits for a gradient goes on."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from diagnostics.architectures import numbers
from isthmus import Monitor, diagnose, forensics
from isthmus.diagnostics import representation_path


class Masked(nn.Module):
    """Buffers that gradients are made of, one that counts, one of stride 0, one twice; it cannot be copied."""

    mask: Tensor
    count: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)
        self.register_buffer("mask", torch.rand(6))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("scale", torch.tensor(0.5).expand(6))
        self.register_buffer("again", self.mask)

    def __deepcopy__(self, memo: object) -> "Masked":
        raise RuntimeError("no copies")

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)
        return self.last(torch.relu(self.norm(self.first(x)) * self.mask * self.scale)) * self.get_buffer("again").sum()


def made() -> Masked:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Masked()
    module.norm.eval()
    module.first.weight.requires_grad_(False)
    return module


X = numbers(40, 6)
CALLS: dict[str, Callable[[nn.Module], object]] = {
    "forward passes": lambda module: diagnose(module, X, jacobians=False),
    "derivatives": lambda module: diagnose(module, X),
    "monitor": lambda module: Monitor(module, X).record(0),
    "forensics": lambda module: forensics(module, X, torch.zeros(40, 3)),
    "path": lambda module: representation_path(module, X),
}


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers(remove_duplicate=False))}


@pytest.mark.parametrize("call", CALLS)
def test_no_tensor_of_the_module_is_written_into(call: str) -> None:
    module = made()
    loss = module(X).square().sum()
    before = {name: (id(t), t._version, t.clone()) for name, t in tensors_of(module).items()}  # noqa: SLF001
    CALLS[call](module)
    after = tensors_of(module)
    assert [n for n, (key, v, _) in before.items() if (id(after[n]), after[n]._version) != (key, v)] == []  # noqa: SLF001
    assert [name for name, (_, _, value) in before.items() if not torch.equal(after[name], value)] == []
    loss.backward()
    frozen = {name for name, p in module.named_parameters() if not p.requires_grad}
    assert {name for name, p in module.named_parameters() if p.grad is None} == frozen == {"first.weight"}


@pytest.mark.parametrize("call", ["forward passes", "monitor"])
@pytest.mark.parametrize("flag", [True, False])
def test_a_module_made_in_inference_mode_is_read(call: str, flag: bool) -> None:
    with torch.inference_mode():
        module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).requires_grad_(flag)
    CALLS[call](module)
    assert all(p.requires_grad is flag for p in module.parameters())


def test_what_a_module_puts_in_the_place_of_a_buffer_and_what_it_notes_of_it_agree() -> None:
    """A cache that grows with the data; its length is noted elsewhere."""

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.length = nn.Linear(6, 3), 2
            self.register_buffer("cache", torch.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            if len(x) > self.length:
                self.length = len(x)
                self.register_buffer("cache", torch.ones(len(x)))
            return self.layer(x) * self.get_buffer("cache")[: len(x), None]

    module = Cached()
    diagnose(module, X, jacobians=False)
    assert module(X).shape == (40, 3)
    assert len(module.get_buffer("cache")) == module.length
