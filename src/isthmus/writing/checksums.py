"""Files that say of themselves whether they are still what was written: JSON, `.pt` and safetensors with a checksum.

Each holds, once and in a known place, the text  "isthmus_checksum": "isthmus-sha256:<64 digits>" ; the digits are the
SHA-256 of all bytes of the file with zeros in their place. Key and value mark a file apart from each other, so no
single flipped bit makes it look like one of an earlier version, which has neither and is read as it is.

Nothing heavy is imported: whoever only looks into a folder reads with it. States of fits: `training.checkpoint`. Files
that are covered by the checksums in a result.json: `discovery.files.storage`, `sweeps.run_files`.
"""

import hashlib
import json
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from isthmus.writing.regular import regular

KEY = "isthmus_checksum"
_KIND = "isthmus-sha256:"
_ZEROS = b"0" * 64
_UNKNOWN = f"{_KIND}{_ZEROS.decode()}"
_PLACE = re.compile(rf'"{KEY}": ?"{_KIND}([0-9a-f]{{64}})"'.encode())
_MARKS = (KEY.encode(), _KIND.encode())
_TRAILER = f'\n{{"{KEY}": "{_UNKNOWN}"}}\n'.encode()
_TAIL = 256  # bytes at the end of a file among which its checksum stands
_AT_ONCE = 1 << 20


class Damaged(ValueError):
    """The bytes are not those that were written."""


def sealed_json(content: Mapping[str, object], *, indent: int | None = 1) -> bytes:
    """The content as JSON whose last entry is its checksum.

    Raises:
        ValueError: NaN or an infinity.
    """
    text = json.dumps({**content, KEY: _UNKNOWN}, indent=indent, ensure_ascii=False, allow_nan=False)
    data = text.encode() + b"\n"
    return _filled_in(data, _in_tail(data))


def opened_json(data: bytes) -> Any:
    """What `sealed_json` wrote, without the checksum; JSON of an earlier version, which has none, as it is.

    Raises:
        Damaged: the checksum differs. ValueError: no JSON.
    """
    place = _in_tail(data)
    if place is not None and _digest(data, place) != data[place]:
        raise Damaged("its checksum differs")
    content = json.loads(data)
    if isinstance(content, dict):
        content.pop(KEY, None)
    return content


class SealedFile:
    """What torch writes an archive to: passes it on and hashes it; the checksum goes behind it.

    A write that fails is kept until `close`: an error that is raised through the writer of torch comes out of it as
    another one, without the reason.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self._error: OSError | None = None

    def write(self, data: bytes | memoryview) -> int:
        """Take some bytes."""
        self._hash.update(data)
        try:
            if self._error is None:
                self._file.write(data)
        except OSError as error:
            self._error = error
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """Write the checksum.

        Raises:
            OSError: this or an earlier write failed.
        """
        if self._error is not None:
            raise self._error
        self._hash.update(_TRAILER)
        self._file.write(_TRAILER.replace(_ZEROS, self._hash.hexdigest().encode()))
        self._file.flush()


def check_archive(path: Path) -> bool:
    """Whether a file that a `SealedFile` wrote carries its checksum; False for one of an earlier version.

    Raises:
        Damaged: the checksum differs. OSError: it cannot be read.
    """
    with regular(path).open("rb") as file:
        start = max(0, file.seek(0, 2) - _TAIL)
        file.seek(start)
        return _is_sound(file, file.read(), start)


def sealed_tensors(content: bytes) -> bytes:
    """Safetensors with their checksum among the metadata; the header in one order, whatever safetensors made of it."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    about = dict(sorted(header.pop("__metadata__", {}).items()))
    text = json.dumps({"__metadata__": {**about, KEY: _UNKNOWN}, **header}, separators=(",", ":"), ensure_ascii=False)
    encoded = text.encode()
    encoded += b" " * (-len(encoded) % 8)  # the data begin at a multiple of eight bytes
    return _filled_in(struct.pack("<Q", len(encoded)) + encoded + content[end:], _place(encoded, 8))


def check_tensors(path: Path) -> bool:
    """Whether safetensors carry the checksum of `sealed_tensors`; False for those of others or an earlier version.

    Raises:
        Damaged: the checksum differs. OSError: the file cannot be read.
    """
    with regular(path).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        # of a length that is damaged so much as there is: the checksum is found in it, and differs
        length = min(int.from_bytes(file.read(8), "little"), max(size - 8, 0))
        return _is_sound(file, file.read(length), 8)


def _place(window: bytes, start: int) -> slice | None:
    """Where in the file the digits stand, given some bytes from `start` on; None where nothing says that there are any.

    Raises:
        Damaged: something says so, but they cannot be made out.
    """
    found = list(_PLACE.finditer(window))
    if len(found) == 1:
        return slice(start + found[0].start(1), start + found[0].end(1))
    if found or any(mark in window for mark in _MARKS):
        raise Damaged("its checksum is damaged")
    return None


def _in_tail(data: bytes) -> slice | None:
    start = max(0, len(data) - _TAIL)
    return _place(data[start:], start)


def _digest(data: bytes, place: slice) -> bytes:
    zeroed = data[: place.start] + _ZEROS + data[place.stop :]
    return hashlib.sha256(zeroed).hexdigest().encode()


def _filled_in(data: bytes, place: slice | None) -> bytes:
    assert place is not None
    return data[: place.start] + _digest(data, place) + data[place.stop :]


def _is_sound(file: BinaryIO, window: bytes, start: int) -> bool:
    """Whether a file has a checksum, which then holds."""
    place = _place(window, start)
    if place is None:
        return False
    found = hashlib.sha256()
    file.seek(0)
    _add(found, file, place.start)
    digits = file.read(len(_ZEROS))
    found.update(_ZEROS)
    _add(found, file, None)
    if found.hexdigest().encode() != digits:
        raise Damaged("its checksum differs")
    return True


def _add(found: Any, file: BinaryIO, stop: int | None) -> None:
    """Hash a file on to `stop` or its end, in parts: a checkpoint may be larger than the memory that is left."""
    while part := file.read(_AT_ONCE if stop is None else min(_AT_ONCE, stop - file.tell())):
        found.update(part)
