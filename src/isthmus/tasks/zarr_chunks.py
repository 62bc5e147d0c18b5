"""The files of the chunks of a zarr array: how many are there, and how large one unpacks. Their numbers: `zarr_arrays`.

A chunk is handed to its codec only if its own head, or its unpacking piece by piece, names the size that it must have:
a few kilobytes could name two gigabytes.
"""

import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import DataError
from isthmus.tasks.zarr_heads import Head
from isthmus.writing.regular import NotAFile, regular

_NUMBER = re.compile("0|[1-9][0-9]{0,18}")
_AT_ONCE = 2**20  # bytes that are unpacked to be counted
_SLACK = 2**16  # that a chunk which cannot be packed may take beyond twice its numbers
_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class ChunkFiles:
    """The files of an array that are there.

    Attributes:
        count: of them.
        size: of all of them in bytes.
    """

    count: int
    size: int


def chunk_files(folder: Path, head: Head) -> ChunkFiles:
    """Those that belong to the array; nothing is opened.

    Raises:
        DataError: one is a folder, a pipe or a device, or a link out of the array.
    """
    start = folder / head.prefix[0] if head.prefix and head.separator == "/" else folder
    if not start.exists():
        return ChunkFiles(0, 0)
    levels = list(head.grid) if head.separator == "/" else [0]
    sizes = [_size(entry, folder) for entry in _entries(start, folder, head, levels)]
    return ChunkFiles(len(sizes), sum(sizes))


def _entries(place: Path, folder: Path, head: Head, levels: Sequence[int]) -> Iterator[os.DirEntry[str]]:
    if place != folder and place.is_symlink():
        raise DataError(f"{place}: is a link to a folder. Put a copy there.")
    with os.scandir(place) as entries:
        for entry in entries:
            if len(levels) > 1:
                if _is_below(entry.name, levels[0]):
                    yield from _entries(Path(entry.path), folder, head, levels[1:])
            elif head.separator == "/":
                if _is_below(entry.name, levels[0]):
                    yield entry
            elif _is_key(entry.name, head):
                yield entry


def _is_below(name: str, end: int) -> bool:
    return _NUMBER.fullmatch(name) is not None and int(name) < end


def _is_key(name: str, head: Head) -> bool:
    parts = name.split(".")
    own = tuple(parts[: len(head.prefix)]) == head.prefix and len(parts) == len(head.prefix) + len(head.grid)
    return own and all(map(_is_below, parts[len(head.prefix) :], head.grid))


def _size(entry: os.DirEntry[str], folder: Path) -> int:
    if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{entry.path}: is a link out of the array. Put a copy there, or take it out.")
    if not entry.is_file():
        raise DataError(f"{entry.path}: is no file, where a chunk of the array should be. Take it out.")
    return entry.stat().st_size


def chunk_content(place: Path, head: Head) -> bytes | None:
    """The bytes of a chunk, which unpack to as many as it must have; None where there is no such file.

    Raises:
        DataError: they do not.
    """
    size, packing = head.chunk_bytes, head.packing
    try:
        with regular(place).open("rb") as stream:
            content = stream.read(2 * size + _SLACK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotAFile as error:
        raise DataError(f"{place}: {error}, where a chunk of the array should be. Take it out.") from error
    body = content[: len(content) - packing.outside]
    if len(content) < packing.outside or (found := _SIZES[packing.name](body, size)) is None:
        raise DataError(f"{place}: is damaged, or not packed as the array says. Write the array again.")
    if found != size:
        raise DataError(f"{place}: unpacks to {found} bytes, and a chunk has {size}. Write the array again.")
    return content


def _blosc(body: bytes, _size: int) -> int | None:
    if len(body) < 16:  # noqa: PLR2004 - the length of its head
        return None
    _, _, flags, type_size, size, block, packed = struct.unpack_from("<BBBBIII", body)
    # what the library itself asks for before it goes over bytes that may be anything
    is_sound = packed == len(body) and type_size and (block or not size)
    return size if is_sound and (not flags & 2 or size + 16 == packed) else None


def _lz4(body: bytes, _size: int) -> int | None:
    return struct.unpack_from("<I", body)[0] if len(body) >= 4 else None  # noqa: PLR2004


def _zstd(body: bytes, _size: int) -> int | None:
    """The size in the head of its frame; nobody leaves it out who packs what lies in memory."""
    if body[:4] != _ZSTD:
        return None
    body = body.ljust(18, b"\0")  # the longest head
    about = body[4]
    is_single, width = about >> 5 & 1, (about >> 5 & 1, 2, 4, 8)[about >> 6]
    start = 5 + (not is_single) + (0, 1, 2, 4)[about & 3]
    if not width:
        return None
    return int.from_bytes(body[start : start + width], "little") + (256 if width == 2 else 0)  # noqa: PLR2004


def _inflated(wbits: int) -> Callable[[bytes, int], int | None]:
    def size_of(body: bytes, size: int) -> int | None:
        """Counted, as no head says it; no further than to what is too much."""
        packed, count = zlib.decompressobj(wbits), 0
        while not packed.eof and count <= size:
            try:
                found = len(packed.decompress(body, _AT_ONCE))
            except zlib.error:
                return None
            body, count = packed.unconsumed_tail, count + found
            if not found and not body:
                return None
        return count if count > size or not packed.unused_data else None

    return size_of


_SIZES: dict[str, Callable[[bytes, int], int | None]] = {
    "": lambda body, _size: len(body),
    "blosc": _blosc,
    "gzip": _inflated(31),
    "lz4": _lz4,
    "zlib": _inflated(15),
    "zstd": _zstd,
}
