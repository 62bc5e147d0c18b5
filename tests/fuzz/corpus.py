"""Small good files of every kind, made by code, and their parts, from which mutants are made."""

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save

import discoveries
from isthmus.discovery.files.netcdf import write_tables

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)).round(3)
Y = X[:, :1] * 2
KINDS = ["owl", "cat", "eel", "cat"] * 6


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def npz(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def text_table(separator: str = ",") -> bytes:
    lines = [separator.join(["a", "b b", '"c, d"', "kind", "on"])]
    lines += [
        separator.join([f"{x[0]}", f"{x[1]:.2e}", f"{x[2]}", kind, "True" if x[0] > 0 else "False"])
        for x, kind in zip(X, KINDS, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def parquet(table: pa.Table | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    if table is None:
        frame = pd.DataFrame({"a": X[:, 0], "b": np.arange(24), "kind": KINDS, "on": X[:, 1] > 0})
        table = pa.Table.from_pandas(frame)
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


IMAGES, LABELS = RNG.integers(0, 255, (12, 4, 4)), np.arange(12) % 3


@cache
def run_folder(parent: Path) -> Path:
    """A finished run."""
    folder = parent / "run"
    discoveries.discovery().save(folder)
    return folder


@cache
def netcdf(parent: Path) -> bytes:
    table = discoveries.discovery().scree
    write_tables(parent / "scree.nc", {"scree": table})
    return (parent / "scree.nc").read_bytes()


def arrays() -> list[bytes]:
    """Files .npy."""
    return [npy(X), npy(X.astype(np.float32)), npy((8 * X).astype(np.int8)), npy(np.asfortranarray(X)), npy(X > 0),
            npy(X.reshape(6, 4, 3)), npy(X[:, 0]), npy(np.array(KINDS))]  # fmt: skip


def archives() -> list[bytes]:
    """Files .npz."""
    both = {"x": npy(X), "y": npy(Y)}
    return [
        *(npz(both, method) for method in METHODS),
        npz({"x": npy(X), "y": npy(np.array(KINDS))}),
        npz({"x": npy(X.reshape(24, 3, 1))}),
    ]  # fmt: skip


def tables() -> list[bytes]:
    """Files .parquet."""
    odd = pa.table({"a": pa.array(X[:, 0]), "l": pa.array([[1, 2]] * 24), "s": pa.array([{"u": 1}] * 24),
                    "b": pa.array([b"x"] * 24), "d": pa.array(KINDS).dictionary_encode()})  # fmt: skip
    return [parquet(), parquet(compression="zstd"), parquet(row_group_size=7, compression="none"), parquet(odd)]


def texts() -> list[bytes]:
    """Files .csv."""
    return [text_table(), b"1,2\n3,4\n5,6\n7,9\n", b"\xef\xbb\xbfa;b\n1;2\n", b",a,b\n0,1,2\n1,3,5\n2,4,4\n"]


def settings() -> list[bytes]:
    """JSON of ours."""
    content = {"format": "isthmus discovery", "rank": 3, "settings": {"seed": 0, "ridges": [1e-2, 1e-3]},
               "a": {"$array": [1.0, {"$float": "nan"}], "dtype": "float64", "shape": [2]}}  # fmt: skip
    return [json.dumps(content).encode(), b"[1, 2.5e3, null, true]"]


PLAN = b"""[task]
name = "teacher"
rank = 2
[grid]
"network.depth" = [4, 8]
"fit.ridge" = [1e-2, 1e-3]
[record]
arrays = false
"""


def tensors() -> list[bytes]:
    """Files .safetensors."""
    return [save({"w": X.astype(np.float32), "b": X[0]}), save({"w": X}, {"note": "x" * 40})]


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


Maker = Callable[[], list[bytes]]
