"""Settings and evidence as strict JSON, and back without loss: what JSON lacks is a one-key object with a "$".

Which files a discovery consists of: `files.storage`. Tensors of networks never pass through here.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch


def plain(value: object, where: str = "value") -> object:
    """`value` in terms of JSON: numbers exactly, tuples and lists as lists, arrays and non-finite numbers tagged.

    Args:
        value: None, bool, int, float, str, NumPy scalar, array, CPU tensor, or a sequence or mapping of these.
        where: how the error names the value.

    Raises:
        TypeError: a value of another type, or a key that is no string; says where.
    """
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        content = plain(value.ravel().tolist(), where)
        return {"$array": content, "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return plain(value.item(), where)
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, where): plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise TypeError(
        f"save: {where} is a {type(value).__name__}; needs numbers, strings, arrays, sequences or mappings."
    )


def restored(value: object) -> object:
    """The inverse of `plain`; sequences come back as tuples, tensors as arrays."""
    if isinstance(value, list):
        return tuple(restored(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        kind = np.dtype(value["dtype"])
        if kind.kind not in "biufcOU" or kind.hasobject != (kind.kind == "O"):
            raise ValueError(f"{value['dtype']!r} is no type of an array")
        # text as wide as it is: what the file says could be gigabytes for each
        return np.array(restored(value["$array"]), dtype=str if kind.kind == "U" else kind).reshape(value["shape"])
    return {key: restored(item) for key, item in value.items()}


def _key(key: object, where: str) -> str:
    if not isinstance(key, str) or key.startswith("$"):
        raise TypeError(f"save: {where} has the key {key!r}; needs keys that are strings without a leading '$'.")
    return key
