"""What a zarr array (format 2 or 3) says of itself: checked, and written anew for zarr. Its chunks: `zarr_chunks`.

Packages offer codecs under names that a file may ask for, pickle among them. Those read here are in two short lists;
zarr is shown none of the file's own words, but numbers, types and names from these.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

import numpy as np

from isthmus.errors import DataError
from isthmus.tasks.door import file_inside, read_json
from isthmus.tasks.names import quoted, shown

HEADS = ("zarr.json", ".zarray")  # of an array, by format; the first may be of a group
_ATTRIBUTES = ".zattrs"
_LARGEST_SIDE, _MOST_DIMENSIONS = 2**62, 32
_KINDS = {
    "bool": "?", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2",
    "uint32": "u4", "uint64": "u8", "float16": "f2", "float32": "f4", "float64": "f8",
}  # fmt: skip
_OLD_KINDS = re.compile(r"\|[biu]1|[<>](?:[iu][248]|f[248])")
# what packs the bytes of a chunk, with settings that say how to write, for which nothing is looked up in reading
_PACKERS: dict[str, dict[str, object]] = {
    "blosc": {"typesize": 1, "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0},
    "gzip": {"level": 5},
    "zstd": {"level": 0, "checksum": False},
}
_OLD_PACKERS = ("blosc", "gzip", "lz4", "zlib", "zstd")
_CHECKED = "crc32c"
_CHECK_BYTES = 4
_KNOWN = {
    "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
    "attributes", "storage_transformers", "dimension_names", "consolidated_metadata",
}  # fmt: skip
_NUMBERS_BY_NAME = ("NaN", "Infinity", "-Infinity")
_PACKED_NUMBERS = ("scale_factor", "add_offset")  # attributes by which others turn what is stored into numbers


@dataclass(frozen=True, slots=True)
class Packing:
    """How the bytes of a chunk are packed.

    Attributes:
        name: what packs them; empty where nothing does.
        outside: bytes of a checksum that stands behind what is packed.
    """

    name: str = ""
    outside: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of an array before any of its chunks is looked at.

    Attributes:
        place: of the file that says it.
        shape: of the array.
        chunks: shape of a chunk, also of those at the edge.
        dtype: of the numbers, in the order of bytes of this machine.
        fill: the number that stands where a chunk is missing, as JSON has it; None where it says none.
        separator: between the numbers of a chunk in the name of its file.
        prefix: what stands before them.
        packing: of a chunk.
        written: the same as zarr takes it.
    """

    place: Path
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype
    fill: int | float | str | None
    separator: str
    prefix: tuple[str, ...]
    packing: Packing
    written: dict[str, object]

    @property
    def zarr_format(self) -> Literal[2, 3]:
        """Which of the two it is of."""
        return 3 if self.place.name == HEADS[0] else 2

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of chunks along each side."""
        return tuple(-(-side // chunk) for side, chunk in zip(self.shape, self.chunks, strict=True))

    @property
    def chunk_bytes(self) -> int:
        """Of a chunk that is unpacked."""
        return math.prod(self.chunks) * self.dtype.itemsize

    def key(self, chunk: Sequence[int]) -> str:
        """The path of its file within the array."""
        return self.separator.join((*self.prefix, *map(str, chunk)))


def read_head(folder: Path) -> Head:
    """What an array says of itself.

    Raises:
        DataError: there is no array, it cannot be what it says, holds no numbers, or asks for a codec that is not read.
    """
    name = next((name for name in HEADS if (folder / name).exists()), None)
    if name is None:
        raise DataError(f"{folder}: holds no {' or '.join(HEADS)}, so it is no zarr array. Check the path.")
    place = file_inside(folder, name)
    told = _mapping(read_json(place), str(place))
    if name == HEADS[1]:
        attributes = read_json(file_inside(folder, _ATTRIBUTES)) if (folder / _ATTRIBUTES).exists() else {}
        head = _head_2(told, place)
    else:
        attributes = told.get("attributes", {})
        head = _head_3(told, place)
    packed = [name for name in _PACKED_NUMBERS if name in _mapping(attributes, str(place))]
    if packed:
        raise DataError(f"{place}: its numbers are to be changed by {packed[0]}. Save them as they are meant.")
    return head


def _head_2(told: Mapping[str, object], place: Path) -> Head:
    where = str(place)
    shape, chunks = _checked_sides(told.get("shape"), told.get("chunks"), where)
    dtype, order = told.get("dtype"), told.get("order")
    if told.get("zarr_format") != 2:  # noqa: PLR2004 - of the format
        raise _wrong(where, "zarr_format", told.get("zarr_format"))
    if not isinstance(dtype, str) or not _OLD_KINDS.fullmatch(dtype):
        raise _no_numbers(where, dtype)
    if order not in ("C", "F"):
        raise _wrong(where, "order", order)
    if told.get("filters"):
        raise DataError(f"{where}: uses filters, {shown(told['filters'])}, and none is read. Write it without.")
    packer = told.get("compressor")
    name = "" if packer is None else _mapping(packer, where).get("id")
    if name != "" and name not in _OLD_PACKERS:
        raise _unread(where, name, _OLD_PACKERS)
    fill, separator = _fill(told, where), _separator(told.get("dimension_separator", "."), where)
    written: dict[str, object] = {
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "order": order, "filters": None,
        "compressor": {"id": name} if name else None, "fill_value": 0 if fill is None else fill,
        "dimension_separator": separator,
    }  # fmt: skip
    return Head(
        place, shape, chunks, np.dtype(dtype).newbyteorder("="), fill, separator, (), Packing(str(name)), written
    )


def _head_3(told: Mapping[str, object], place: Path) -> Head:
    where = str(place)
    if told.get("zarr_format") != 3 or told.get("node_type") != "array":  # noqa: PLR2004 - of the format
        raise _wrong(where, "zarr_format, node_type", [told.get("zarr_format"), told.get("node_type")])
    for key in told.keys() - _KNOWN:
        extra = told[key]
        if not isinstance(extra, Mapping) or extra.get("must_understand") is not False:
            raise DataError(f"{where}: asks for {quoted(key)}, which is not known here. Write it without.")
    if told.get("storage_transformers"):
        raise DataError(f"{where}: uses storage transformers, and none is read. Write it without.")
    grid, sides = _named(told.get("chunk_grid"), where)
    if grid != "regular":
        raise _wrong(where, "chunk_grid", grid)
    shape, chunks = _checked_sides(told.get("shape"), sides.get("chunk_shape"), where)
    kind = told.get("data_type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _no_numbers(where, kind)
    encoding, words = _named(told.get("chunk_key_encoding"), where)
    if encoding not in ("default", "v2"):
        raise _wrong(where, "chunk_key_encoding", encoding)
    separator = _separator(words.get("separator", "/" if encoding == "default" else "."), where)
    codecs, packing = _codecs(told.get("codecs"), len(shape), where)
    fill = _fill(told, where)
    written: dict[str, object] = {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": kind,
        "chunk_grid": {"name": grid, "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}},
        "fill_value": 0 if fill is None else fill, "codecs": codecs, "attributes": {},
    }  # fmt: skip
    prefix = ("c",) if encoding == "default" else ()
    return Head(place, shape, chunks, np.dtype(_KINDS[kind]), fill, separator, prefix, packing, written)


def _codecs(told: object, dimensions: int, where: str) -> tuple[list[dict[str, object]], Packing]:
    """The steps by which a chunk became a file: turned, bytes, packed, with a checksum."""
    written, turned, packing, is_bytes = list[dict[str, object]](), 0, Packing(), False
    for step in told if isinstance(told, list) else ():
        name, words = _named(step, where)
        found: dict[str, object] = {"name": name}
        if name == "transpose" and not is_bytes and not turned:
            order = words.get("order")
            if not isinstance(order, list) or sorted(map(str, order)) != sorted(map(str, range(dimensions))):
                raise _wrong(where, "transpose", order)
            found["configuration"], turned = {"order": [int(str(side)) for side in order]}, 1
        elif name == "bytes" and not is_bytes:
            endian, is_bytes = words.get("endian", "little"), True
            if endian not in ("little", "big"):
                raise _wrong(where, "endian", endian)
            found["configuration"] = {"endian": endian}
        elif name in _PACKERS and is_bytes and not packing.name and not packing.outside:
            found["configuration"], packing = _PACKERS[name], replace(packing, name=name)
        elif name == _CHECKED and is_bytes and not packing.outside:
            packing = replace(packing, outside=_CHECK_BYTES)
        elif name == "sharding_indexed":
            raise DataError(f"{where}: is written in shards, which are not read. Write it in chunks alone.")
        elif name in ("transpose", "bytes", _CHECKED, *_PACKERS):
            raise DataError(f"{where}: its codecs stand in an order that is not read, or twice. Write it with fewer.")
        else:
            raise _unread(where, name, ("transpose", "bytes", *_PACKERS, _CHECKED))
        written.append(found)
    if not is_bytes:
        raise _wrong(where, "codecs", told)
    return written, packing


def _checked_sides(shape: object, chunks: object, where: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape, and that of a chunk."""
    found, of_chunk = _sides(shape, "shape", where, least=0), _sides(chunks, "chunks", where, least=1)
    if not found:
        raise DataError(f"{where}: holds a single value. Save an array with rows.")
    if len(found) != len(of_chunk):
        raise _wrong(where, "chunks", chunks)
    return found, of_chunk


def _sides(told: object, what: str, where: str, *, least: int) -> tuple[int, ...]:
    if not isinstance(told, list) or len(told) > _MOST_DIMENSIONS:
        raise _wrong(where, what, told)
    if not all(type(side) is int and least <= side <= _LARGEST_SIDE for side in told):
        raise _wrong(where, what, told)
    return tuple(cast(list[int], told))


def _fill(told: Mapping[str, object], where: str) -> int | float | str | None:
    fill = told.get("fill_value")
    if fill is not None and not isinstance(fill, int | float) and fill not in _NUMBERS_BY_NAME:
        raise _wrong(where, "fill_value", fill)
    return cast("int | float | str | None", fill)


def _separator(told: object, where: str) -> str:
    if told not in ("/", "."):
        raise _wrong(where, "separator", told)
    return str(told)


def _named(told: object, where: str) -> tuple[str, Mapping[str, object]]:
    """What has a name and settings; the name alone where it needs none."""
    if isinstance(told, str):
        return told, {}
    found = _mapping(told, where)
    return str(found.get("name")), _mapping(found.get("configuration", {}), where)


def _mapping(told: object, where: str) -> Mapping[str, object]:
    if not isinstance(told, dict):
        raise _wrong(where, "JSON", told)
    return cast("dict[str, object]", told)


def _wrong(where: str, what: str, told: object) -> DataError:
    return DataError(f"{where}: cannot be read (it says {what} {shown(told)}). Write the array again.")


def _no_numbers(where: str, kind: object) -> DataError:
    return DataError(f"{where}: holds {shown(kind)}, which is not read as numbers. Save an array of numbers.")


def _unread(where: str, name: object, read: Sequence[str]) -> DataError:
    return DataError(f"{where}: uses the codec {quoted(name)}, which is not read. Write it with {', '.join(read)}.")
