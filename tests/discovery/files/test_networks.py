"""One network through a file, and files that are refused."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from isthmus.discovery.files.networks import read_network, write_network
from isthmus.errors import DataError
from isthmus.networks import FullyConnected


def network() -> FullyConnected:
    return FullyConnected(3, 2, width=(5, 4), depth=3, linear=(2,), negative_slope=0.1, seed=0, dtype=torch.float64)


def test_a_network_comes_back_bit_for_bit(tmp_path: Path) -> None:
    write_network(tmp_path / "n.safetensors", network())
    found = read_network(tmp_path / "n.safetensors")
    assert (found.linear, found.negative_slope, found.dimensions) == (frozenset({2}), 0.1, (3, 5, 4, 2))
    x = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(found(x), network()(x))
    plain = FullyConnected.from_layers(*network().written_layers())
    assert not torch.equal(found(x), plain(x))  # the weights alone do not say it


def test_files_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.safetensors").write_text("weights")
    save_file(network().state_dict(), tmp_path / "bare.safetensors")
    bold = {"isthmus": json.dumps({"class": "Unheard"})}
    save_file(network().state_dict(), tmp_path / "unknown.safetensors", metadata=bold)
    described = {"class": "FullyConnected", "dimensions": [3, 2], "negative_slope": 0, "linear": [], "bias": True}
    save_file(network().state_dict(), tmp_path / "other.safetensors", metadata={"isthmus": json.dumps(described)})
    for name, message in (
        ("none", "no such file"), ("text", "cannot be read as safetensors"), ("bare", "does not say which network"),
        ("other", "do not fit its description"),
        ("unknown", r"'Unheard' is no kind of network here. Import the module.*entry point isthmus\.kinds"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=message):
            read_network(tmp_path / f"{name}.safetensors")
