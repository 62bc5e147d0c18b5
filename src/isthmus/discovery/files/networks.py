"""Networks of ours as (plain description, named tensors), the form in which they are stored.

A single network as a file: here. A whole discovery: `files.storage`. Other formats (exported programs, ONNX) belong to
the command that exports.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from isthmus.discovery.files.streams import STREAMS, Stream, stream_architecture, stream_from
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.writing.atomic import write_bytes
from isthmus.writing.checksums import Damaged, check_tensors, sealed_tensors

METADATA = "isthmus"


def architecture(network: object) -> dict[str, object]:
    """What rebuilds `network` apart from its numbers, in terms of JSON.

    Raises:
        TypeError: the network is of another class.
    """
    if isinstance(network, Stream):
        return stream_architecture(network)
    if type(network) is not FullyConnected:
        raise TypeError(f"save: needs FullyConnected networks, LeakyResNet or ResNet; got {type(network).__name__}.")
    return {
        "class": "FullyConnected",
        "dimensions": list(network.dimensions),
        "negative_slope": network.negative_slope,
        "linear": sorted(network.linear),
        "bias": network.has_bias,
    }


def tensors_of(networks: Mapping[str, object]) -> dict[str, Tensor]:
    """Every parameter under "<network>.<parameter>", as tensors that share no memory."""
    found: dict[str, Tensor] = {}
    for name, network in networks.items():
        assert isinstance(network, FullyConnected | Stream)
        for key, tensor in network.state_dict().items():
            found[f"{name}.{key}"] = tensor.detach().cpu().clone().contiguous()
    return found


def network_from(description: Mapping[str, Any], name: str, tensors: Mapping[str, Tensor]) -> FullyConnected | Stream:
    """The network that `architecture` and `tensors_of` described.

    Raises:
        ValueError: the class is unknown, or the tensors do not fit the dimensions.
    """
    own = {key.removeprefix(f"{name}."): tensor for key, tensor in tensors.items() if key.startswith(f"{name}.")}
    if description["class"] in STREAMS:
        return stream_from(description, name, own)
    if description["class"] != "FullyConnected":
        raise ValueError(f"unknown network class {description['class']!r}")
    dimensions, linear = description["dimensions"], description["linear"]
    # before anything is allocated: dimensions that the stored tensors do not have
    shapes = [tuple(own[f"weights.{l}"].shape) for l in range(len(dimensions) - 1)]
    if shapes != list(zip(dimensions[1:], dimensions[:-1], strict=True)):
        raise ValueError(f"{name}: weights of shapes {shapes} do not fit dimensions {dimensions}")
    network = FullyConnected(
        dimensions[0],
        dimensions[-1],
        width=dimensions[1:-1],
        depth=len(dimensions) - 1,
        negative_slope=float(description["negative_slope"]),
        linear=linear,
        bias=bool(description["bias"]),
        seed=0,
        dtype=own["weights.0"].dtype,
    )
    network.load_state_dict(own)
    return network


def write_network(path: str | os.PathLike[str], network: FullyConnected | Stream) -> None:
    """Write one network as safetensors that say, in their metadata, how to rebuild it.

    Raises:
        TypeError: the network is of another class.
        OSError: the file cannot be written.
    """
    metadata = {METADATA: json.dumps(architecture(network))}
    write_bytes(path, sealed_tensors(save(tensors_of({"network": network}), metadata=metadata)))


def read_network(path: str | os.PathLike[str]) -> FullyConnected:
    """The network that `write_network` wrote; nothing is unpickled.

    Raises:
        DataError: no such file, not safetensors, or safetensors that do not say how to rebuild a network.
    """
    try:
        check_tensors(Path(path))
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Give a folder that discover wrote, or safetensors.") from None
    except Damaged as error:
        raise DataError(f"{path}: is damaged ({error}). Write it again, or take a copy.") from error
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: cannot be read as safetensors ({' '.join(str(error).split())[:200]}).") from error
    if METADATA not in metadata:
        raise DataError(f"{path}: does not say which network it holds. Give the folder of the run, or save it again.")
    try:
        network = network_from(json.loads(metadata[METADATA]), "network", tensors)
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DataError(f"{path}: its tensors do not fit its description ({' '.join(str(error).split())}).") from error
    if not isinstance(network, FullyConnected):
        raise DataError(f"{path}: holds a {type(network).__name__}; needs fully connected ones. Give the run's folder.")
    return network
