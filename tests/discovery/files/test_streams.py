"""Descriptions of sizes that the stored tensors do not have: refused before anything of that size is made."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from isthmus.discovery.files.module_description import described_module, description_of
from isthmus.discovery.files.networks import architecture, network_from, tensors_of
from isthmus.errors import DataError
from isthmus.networks import FullyConnected, LeakyResNet, ResNet

LARGE = 200_000  # numbers: far above those of the networks here, far below what hurts


class Largest(TorchDispatchMode):
    """The most numbers that any tensor had that was made meanwhile; nothing above `LARGE` is made."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        sizes = [a for a in args[:1] if isinstance(a, list) and all(isinstance(s, int) for s in a)]
        device = (kwargs or {}).get("device")
        if sizes and "meta" not in str(device):
            assert torch.Size(sizes[0]).numel() < LARGE, f"{func} made {sizes[0]}"
        return func(*args, **(kwargs or {}))


NETWORKS = [
    FullyConnected(3, 2, width=5, depth=3, seed=0),
    LeakyResNet(3, 2, width=5, depth=3, effective_depth=2.0, seed=0),
    ResNet(3, 2, width=5, depth=2, block_depth=1, seed=0),
    ResNet(3, 2, width=5, depth=2, block_depth=2, inner_width=4, seed=0),
]
LAYERS = [
    nn.Linear(3, 2), nn.Conv2d(3, 4, 3), nn.LayerNorm(3), nn.BatchNorm1d(3), nn.BatchNorm2d(3),
]  # fmt: skip


def enlarged(description: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The description with each whole number in turn a million times as large."""
    found: list[dict[str, Any]] = []
    for key, value in description.items():
        if isinstance(value, bool) or not isinstance(value, int | list | tuple):
            continue
        values = [value] if isinstance(value, int) else list(value)
        for i in range(len(values)):
            larger = [v * 10**6 if i == j else v for j, v in enumerate(values)]
            found.append({**description, key: larger[0] if isinstance(value, int) else larger})
    return found


def refused(read: Callable[[], object]) -> bool:
    """Whether it is; without a tensor of the size that was said."""
    with Largest():
        try:
            read()
        except (DataError, ValueError, RuntimeError, KeyError, IndexError):
            return True
    return False


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
def test_a_network_of_a_size_that_is_not_stored_is_never_made(network: nn.Module) -> None:
    description, tensors = architecture(network), tensors_of({"network": network})
    assert not refused(lambda: network_from(description, "network", tensors))
    for larger in enlarged(description):
        unused = larger.get("block_depth") == 1 and larger["inner_width"] != description["inner_width"]
        assert refused(lambda larger=larger: network_from(larger, "network", tensors)) or unused, larger


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_a_layer_of_a_size_that_is_not_stored_is_never_made(layer: nn.Module) -> None:
    module = nn.Sequential(layer)
    description = description_of(module)
    assert description is not None
    entry = description["layers"][0]  # pyright: ignore[reportIndexIssue] - a list, as the next line needs
    tensors: dict[str, Tensor] = dict(module.state_dict())
    sizes = ("features", "channels", "shape", "kernel")

    def read(entry: Mapping[str, Any]) -> object:
        return described_module({"class": "Sequential", "layers": [entry]}, tensors, "here")

    assert not refused(lambda: read(entry))
    tried = [e for e in enlarged(entry) if any(word in key for key in e for word in sizes if e[key] != entry[key])]
    assert tried
    for larger in tried:
        assert refused(lambda larger=larger: read(larger)), larger
