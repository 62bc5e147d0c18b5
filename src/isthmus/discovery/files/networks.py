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

from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.networks.departures import departure, refuse
from isthmus.networks.kinds import GROUP, class_named, kinds
from isthmus.networks.network import Network
from isthmus.writing.atomic import write_bytes
from isthmus.writing.checksums import Damaged, check_tensors, sealed_tensors

METADATA = "isthmus"
NOT_TENSORS_ALONE = (".pt2", ".pt", ".pth", ".bin", ".ckpt", ".onnx")  # whose layers no file of ours describes


def architecture(network: object) -> dict[str, object]:
    """What rebuilds `network` apart from its numbers, in terms of JSON.

    Raises:
        TypeError: the network is of no registered class, or has a waist. ValueError: it has hooks, which no file keeps.
    """
    if not isinstance(network, Network) or type(network) is not class_named(type(network).__name__):
        known = ", ".join(kind.network.__name__ for kind in kinds())
        raise TypeError(f"save: needs a network of one of the classes {known}; got {type(network).__name__}.")
    refuse("save", network, departure(network, type(network)))
    return network.description()


def tensors_of(networks: Mapping[str, object]) -> dict[str, Tensor]:
    """Every parameter under "<network>.<parameter>", as tensors that share no memory."""
    found: dict[str, Tensor] = {}
    for name, network in networks.items():
        assert isinstance(network, Network)
        for key, tensor in network.state_dict().items():
            found[f"{name}.{key}"] = tensor.detach().cpu().clone().contiguous()
    return found


def network_from(description: Mapping[str, Any], name: str, tensors: Mapping[str, Tensor]) -> Network:
    """The network that `architecture` and `tensors_of` described.

    Raises:
        DataError: no kind of network is called so. ValueError: the tensors do not fit the dimensions.
    """
    found = class_named(description["class"])
    if found is None:
        raise DataError(
            f"{str(description['class'])[:80]!r} is no kind of network here. Import the module that registers it, or "
            f"have its package announce it by the entry point {GROUP}."
        )
    own = {key.removeprefix(f"{name}."): tensor for key, tensor in tensors.items() if key.startswith(f"{name}.")}
    return found.from_description(description, own, name)


def write_network(path: str | os.PathLike[str], network: Network) -> None:
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
    if (suffix := Path(path).suffix.lower()) in NOT_TENSORS_ALONE:
        raise DataError(
            f"{path}: is {suffix}; needs the weights of a fully connected network. Give a folder that discover wrote, "
            "or the network.safetensors that fit wrote; isthmus diagnose opens other networks."
        )
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
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DataError(f"{path}: its tensors do not fit its description ({' '.join(str(error).split())}).") from error
    if not isinstance(network, FullyConnected):
        raise DataError(f"{path}: holds a {type(network).__name__}; needs fully connected ones. Give the run's folder.")
    return network
