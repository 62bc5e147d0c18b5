"""Sequences of plain layers as (description in JSON, named tensors), and back: what safetensors can hold whole.

Networks of ours: `files.networks`. Whatever has a step that is no plain layer is exported as a program: `files.export`.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from isthmus.discovery.files.networks import METADATA, architecture, network_from
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.networks.departures import departure
from isthmus.networks.stage_kinds import BATCH_NORMS, CHANNELWISE, ELEMENTWISE
from isthmus.writing.checksums import check_tensors

# numbers that make a layer, by its kind: what is not listed is made without arguments
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "Linear": ("in_features", "out_features"),
    "Conv2d": ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups"),
    "LeakyReLU": ("negative_slope",),
    "GELU": ("approximate",),
    "ELU": ("alpha",),
    "CELU": ("alpha",),
    "Softplus": ("beta", "threshold"),
    "Hardtanh": ("min_val", "max_val"),
    "MaxPool2d": ("kernel_size", "stride", "padding", "dilation", "ceil_mode"),
    "AvgPool2d": ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"),
    "AdaptiveAvgPool2d": ("output_size",),
    "AdaptiveMaxPool2d": ("output_size",),
    "Flatten": ("start_dim", "end_dim"),
    "LayerNorm": ("normalized_shape", "eps"),
    "BatchNorm1d": ("num_features", "eps", "affine", "track_running_stats"),
    "BatchNorm2d": ("num_features", "eps", "affine", "track_running_stats"),
}
_KINDS: Mapping[str, Callable[..., nn.Module]] = {
    k.__name__: k for k in (nn.Linear, nn.Conv2d, nn.Flatten, nn.LayerNorm, *BATCH_NORMS, *ELEMENTWISE, *CHANNELWISE)
}
_WEIGHTED = ("Linear", "Conv2d")


def description_of(module: nn.Module) -> dict[str, object] | None:
    """What rebuilds the module apart from its numbers, in JSON; None where it is no sequence of plain layers."""
    if isinstance(module, FullyConnected):
        return architecture(module)
    if type(module) is not nn.Sequential or departure(module, nn.Sequential):
        return None
    layers = [_layer_description(layer) for layer in module]
    return None if None in layers else {"class": "Sequential", "layers": layers}


def described_module(description: Mapping[str, Any], tensors: Mapping[str, Tensor], where: str) -> nn.Module:
    """The sequence that `description_of` described, in eval mode.

    Raises:
        DataError: an unknown layer, or tensors that do not fit the description.
    """
    try:
        if description["class"] != "Sequential":
            raise ValueError(f"unknown class {description['class']!r}")
        module = nn.Sequential(*(_layer(entry, f"{i}", tensors) for i, entry in enumerate(description["layers"])))
        kinds = {t.dtype for t in tensors.values() if t.is_floating_point()}
        module = module.to(kinds.pop()) if len(kinds) == 1 else module
        module.load_state_dict(dict(tensors))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        detail = " ".join(str(error).split())[:200]
        raise DataError(f"{where}: its tensors do not fit its description ({detail}).") from error
    return module.eval()


def description_of_file(path: Path) -> dict[str, Any] | None:
    """What safetensors written by isthmus say about their network; None where they say nothing.

    Raises:
        DataError: no safetensors, or a description that is damaged.
    """
    try:
        check_tensors(path)
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(METADATA)
        value = None if text is None else json.loads(text)
    except (SafetensorError, OSError, ValueError) as error:
        detail = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: cannot be read as safetensors ({detail}).") from error
    return value if isinstance(value, dict) else None


def _layer_description(layer: nn.Module) -> dict[str, object] | None:
    if isinstance(layer, FullyConnected):
        return architecture(layer)
    kind = type(layer).__name__
    if _KINDS.get(kind) is not type(layer) or getattr(layer, "padding_mode", "zeros") != "zeros":
        return None
    found: dict[str, object] = {name: getattr(layer, name) for name in _ARGUMENTS.get(kind, ())}
    if kind in _WEIGHTED:
        found["bias"] = "bias" in dict(layer.named_parameters())
    return {"class": kind, **found}


def _layer(entry: Mapping[str, Any], name: str, tensors: Mapping[str, Tensor]) -> nn.Module:
    if entry["class"] == "FullyConnected":
        return network_from(entry, name, tensors)
    kind = entry["class"]
    if kind not in _KINDS or set(entry) - {"class", "bias"} != set(_ARGUMENTS.get(kind, ())):
        raise ValueError(f"unknown layer {dict(entry)}")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items() if key != "class"}
    # nothing is allocated for sizes that the tensors do not have
    with torch.device("meta"):
        expected = {key: t.shape for key, t in _KINDS[kind](**given).state_dict().items()}
    stored = {key.removeprefix(f"{name}."): t.shape for key, t in tensors.items() if key.startswith(f"{name}.")}
    if expected != stored:
        raise ValueError(f"layer {name} needs {expected}, got {stored}")
    return _KINDS[kind](**given)
