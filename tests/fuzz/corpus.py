"""Small good files of every kind, made by code, and their parts, from which mutants are made."""

import gzip
import io
import json
import struct
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import xarray as xr
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import save

import discoveries
from isthmus.discovery.files.netcdf import write_table
from isthmus.discovery.files.networks import write_network
from isthmus.sweeps import sweep
from isthmus.writing.checksums import KEY
from sweep_plans import write_plan

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
def netcdf(parent: Path) -> list[bytes]:
    found = discoveries.discovery()
    odd = xr.Dataset(
        {"large": ("a", np.array([2**40, 1])), "none": ("b", np.zeros(0))}, {"name": ("a", np.array(["x", "y"]))}
    )
    for name, table in (("scree", found.scree), ("runs", found.runs), ("layers", found.diagnosis.layers), ("odd", odd)):
        write_table(parent / f"{name}.nc", table)
    return [(parent / f"{name}.nc").read_bytes() for name in ("scree", "runs", "layers", "odd")]


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
    """Files .safetensors without a network."""
    return [save({"w": X.astype(np.float32), "b": X[0]}), save({"w": X}, {"note": "x" * 40})]


@cache
def network(parent: Path) -> bytes:
    """Safetensors that say which network they are of, without a checksum: a mutant is to be looked into."""
    write_network(parent / "network.safetensors", discoveries.networks()[0])
    with safe_open(parent / "network.safetensors", framework="np") as file:
        about = {name: value for name, value in file.metadata().items() if name != KEY}
        return save({name: file.get_tensor(name) for name in file.keys()}, about)  # noqa: SIM118 - no mapping


SHARDS = {"one.safetensors": {"weight": X.astype(np.float32)}, "two.safetensors": {"bias": X[:, 0].astype(np.float32)}}


def sharded() -> list[bytes]:
    """The index of several files of safetensors, and the first of them."""
    listed = {name: file for file, parts in SHARDS.items() for name in parts}
    index = {"metadata": {"total_size": 384}, "weight_map": listed}
    return [json.dumps(index, indent=2).encode(), json.dumps({"weight_map": listed}).encode(),
            save(SHARDS["one.safetensors"], {"format": "pt"})]  # fmt: skip


def made_network() -> torch.nn.Module:
    """What the files of `sharded` belong to."""
    return torch.nn.Linear(3, 24)


def state_dicts() -> list[bytes]:
    """Files of torch.save."""
    state = {"weight": torch.from_numpy(X), "steps": torch.arange(4)}
    contents: list[Any] = [state, {"epoch": 3, "model": state}, {"a": {"ema": state}, "b": state}]
    return [_saved(content) for content in contents] + [_saved(state, _use_new_zipfile_serialization=False)]


def _saved(content: object, **options: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, **options)
    return stream.getvalue()


def guessed() -> list[bytes]:
    """Tables of which something is guessed: separators, decimal commas, encodings, comments, units, missing cells."""
    plain = text_table().decode()
    numbers = [f"{x:.3f};1.234,{i};{KINDS[i]}".replace("0.", "0,") for i, x in enumerate(X[:, 0])]
    continental = "\n".join(["a;größe;kind", *numbers])
    return [
        continental.encode("cp1252"), continental.encode("utf-16"), continental.encode(), plain.encode("utf-16-be"),
        b"# made by hand\n# a b c\n" + b"\n".join(b"%.3f %.3f %.3f" % tuple(x) for x in X),
        b"a,b,kind\nm/s,kg,-\n" + b"\n".join(b"%.2f,%d,cat" % (x[0], i) for i, x in enumerate(X)),
        b"% note\na|b\n" + b"".join(b"%.2e|%s\n" % (x[0], b"NA" if i % 5 else b"") for i, x in enumerate(X)),
        b"a\tb\n" + b"".join(b"1'234.%d\t1 000\n" % i for i in range(9)),
    ]  # fmt: skip


def sheets() -> list[bytes]:
    """Files .xlsx."""
    frame = pd.DataFrame({"a": X[:, 0], "b": np.arange(24), "kind": KINDS, "on": X[:, 1] > 0})
    dated = frame.assign(day=pd.date_range("2020-01-01", periods=24), empty=None)
    found: list[bytes] = []
    for tables, above in (({"one": frame}, 0), ({"one": frame, "two": dated}, 0), ({"d": dated}, 2)):
        stream = io.BytesIO()
        with pd.ExcelWriter(stream, engine="openpyxl") as writer:
            for name, table in tables.items():
                table.to_excel(writer, sheet_name=name, index=False, startrow=above)
        found.append(stream.getvalue())
    return found


def pictures() -> list[bytes]:
    """Pictures, each in another format or of other pixels."""
    grey = IMAGES[0].astype(np.uint8)
    colour = np.stack([grey, grey.T, grey[::-1]], axis=-1)
    tags = Image.Exif()
    tags[0x0112], tags[0x010E] = 6, "a note"
    kinds: list[tuple[np.ndarray, str, dict[str, Any]]] = [
        (grey, "PNG", {"exif": tags}), (colour, "PNG", {"compress_level": 0}), (grey * np.uint16(200), "PNG", {}),
        (grey, "TIFF", {}), (grey * np.float32(0.3), "TIFF", {"exif": tags}), (colour, "JPEG", {"exif": tags}),
        (colour, "TIFF", {"compression": "tiff_lzw"}), (grey, "TIFF", {"compression": "tiff_adobe_deflate"}),
        (colour, "BMP", {}), (grey, "GIF", {}),
        (grey, "GIF", {"save_all": True, "append_images": [Image.fromarray(grey.T)]}),
    ]  # fmt: skip
    found: list[bytes] = []
    for array, form, options in kinds:
        stream = io.BytesIO()
        Image.fromarray(array).save(stream, form, **options)
        found.append(stream.getvalue())
    return found


def units_toml() -> list[bytes]:
    """Units of columns, as TOML."""
    return [
        b'[columns]\nU = {m = 1, s = -1}\nD = "m"\nrho = "kg/m^3"\nC = 1\n"mu 2" = "Pa s"\n',
        b'[columns]\nU = {m = "1/2", s = -0.5}\nD = "W m-2 K-1"\nE = "m^(1/2)*(kg s)**2"\n',
    ]


def units_csv() -> list[bytes]:
    """Units of columns, as CSV."""
    return [b"column,unit\nU,m/s\nD,m\nrho,kg/m^3\nC,1\nF,kN\n", b"column,m,kg,s\nU,1,,-1\nD,1,0,0\nnu,1/2,,-1.5\n"]


@cache
def sweep_run(parent: Path) -> Path:
    """The folder of a finished run of a sweep."""
    sweep(write_plan(parent, "seed = [0]"), out=parent / "sweep", workers=0)
    return next((parent / "sweep").glob("runs/*/*/result.json")).parent


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


@cache
def zarr_folder(parent: Path) -> Path:
    """Arrays of zarr, each packed otherwise."""
    import zarr  # an extra, without which there is no such reader to fuzz
    from numcodecs import LZ4, Blosc, Zlib
    from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

    turned: dict[str, Any] = {"filters": [TransposeCodec(order=(1, 0))], "compressors": None}
    ways: list[dict[str, Any]] = [
        {"compressors": ZstdCodec()}, {"compressors": [BloscCodec(cname="lz4"), Crc32cCodec()]}, turned,
        {"compressors": GzipCodec()}, *({"compressors": BloscCodec(cname=name)} for name in ("zstd", "zlib")),
        *({"compressors": packer, "zarr_format": 2} for packer in (LZ4(), Zlib(), Blosc(cname="blosclz"), None)),
    ]  # fmt: skip
    for number, way in enumerate(ways):
        made = zarr.create_array(parent / "zarr" / str(number), shape=X.shape, chunks=(8, 3), dtype="f8", **way)
        made[...] = X
    return parent / "zarr"


def zarr_parts(parent: Path) -> list[bytes]:
    """The files of these arrays, each behind its number."""
    return [bytes([number]) + file.read_bytes() for number, file in enumerate(zarr_files(zarr_folder(parent)))]


def zarr_files(folder: Path) -> list[Path]:
    """Heads, and one chunk for each."""
    return sorted(
        file for file in folder.rglob("*") if file.is_file() and file.name in {"zarr.json", ".zarray", "0", "0.0"}
    )
