"""Flipped bits, and everything of a value as bytes: what tests of damaged files share."""

import random
import struct
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import torch
import xarray as xr


@contextmanager
def flipped(path: Path, bit: int) -> Generator[None]:
    """The file with one bit the other way round."""
    content = path.read_bytes()
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)
    try:
        yield
    finally:
        path.write_bytes(content)


def some_bits(path: Path, count: int, *, seed: int) -> Iterator[int]:
    """Half of them anywhere in the file, half in its first and last 300 bytes, where marks and checksums stand."""
    draw, size = random.Random(f"{seed} {path.name}"), path.stat().st_size
    ends = [*range(min(300, size)), *range(max(0, size - 300), size)]
    for number in range(count):
        byte = draw.randrange(size) if number % 2 else draw.choice(ends)
        yield 8 * byte + draw.randrange(8)


def bits(value: object) -> str:
    """The value as text that differs wherever a bit of it does."""
    if isinstance(value, torch.nn.Module):
        return f"{value!r} {bits(value.state_dict())}"
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.detach().numpy().tobytes().hex()}"
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return f"{array.dtype} {array.shape} {array.tolist() if array.dtype == object else array.tobytes().hex()}"
    if isinstance(value, xr.Dataset):
        return bits({str(name): (v.dims, v.values, v.attrs) for name, v in value.variables.items()} | {"": value.attrs})
    if is_dataclass(value) and not isinstance(value, type):
        return bits({f.name: getattr(value, f.name) for f in fields(value)})
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {bits(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(bits, value))})"
    return struct.pack("d", value).hex() if isinstance(value, float) else repr(value)
