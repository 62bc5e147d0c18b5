"""The numbers of a zarr array. What it says of itself: `zarr_heads`; an array by itself or in a group: `zarr_folders`.

The package zarr, an extra, unpacks and puts together what was checked before: it gets a head written anew and the bytes
of some chunks at a time, and never looks at the folder. Which tables are too large for memory: `large_tables`.
"""

import itertools
import json
import math
import warnings
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import DataError, DataWarning, outside
from isthmus.processes.shared_state import silenced
from isthmus.tasks.door import in_one_line
from isthmus.tasks.mapped import filled_on_disk
from isthmus.tasks.memory import check_memory
from isthmus.tasks.zarr_chunks import chunk_content, chunk_files
from isthmus.tasks.zarr_heads import read_head

_NUMBERS_AT_ONCE, _CHUNKS_AT_ONCE = 2**18, 1000  # that are put together: zarr takes a millisecond for each part
_MOST_MISSING = 100  # times as many chunks as are there
_COPIES = 3  # of a chunk: packed, unpacked, put into its place

Region = tuple[slice, ...]


class ZarrArray:
    """An array in a folder, some rows of which are read at a time.

    Raises:
        DataError: it cannot be what it says, most of its chunks are missing, or one has no place in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._head = folder, read_head(folder)
        self.shape, self.dtype = self._head.shape, self._head.dtype
        found, number = chunk_files(folder, self._head), math.prod(self._head.grid)
        self.packed_size, self._missing = found.size, number - found.count
        if self._missing > _MOST_MISSING * found.count or (self._missing and self._head.fill is None):
            raise DataError(
                f"{folder}: {self._missing:,} of its {number:,} chunks are missing. Copy or write the array again."
            )
        check_memory(_COPIES * self._head.chunk_bytes, f"{folder}, a chunk", instead="Write it in smaller chunks")
        self._store = dict[str, Any]()

    @property
    def rows_at_once(self) -> int:
        """Of as many whole chunks as are put together at a time."""
        width, chunk = math.prod(self._head.grid[1:]), self._head.chunks[0]
        numbers = chunk * math.prod(self.shape[1:])
        most = min(_NUMBERS_AT_ONCE // max(numbers, 1), _CHUNKS_AT_ONCE // max(width, 1))
        return chunk * max(most, 1)

    def say_missing(self) -> None:
        """Say (DataWarning) that chunks are missing, and which number was taken for theirs."""
        if self._missing:
            were = "chunk is" if self._missing == 1 else "chunks are"
            warnings.warn(
                f"{self._folder}: {self._missing:,} {were} missing, of {math.prod(self._head.grid):,}; by the rules of "
                f"zarr their numbers are {self._head.fill}.",
                DataWarning,
                stacklevel=outside(),
            )

    def read(self, rows: slice | None = None) -> np.ndarray:
        """Some rows, or all.

        Raises:
            DataError: there is no memory for them, or a chunk is damaged.
        """
        first, last = (0, self.shape[0]) if rows is None else (rows.start, rows.stop)
        shape = (last - first, *self.shape[1:])
        check_memory(
            math.prod(shape) * (self.dtype.itemsize + (8 if self.dtype != np.float64 else 0)), str(self._folder)
        )
        found = np.empty(shape, self.dtype)
        for (own, *others), values in self._blocks(first, last):
            found[(slice(own.start - first, own.stop - first), *others)] = values
        return found

    def on_disk(self) -> np.ndarray:
        """All of it, as it is unpacked, in a file without a name.

        Raises:
            DataError: there is no disk for it, or a chunk is damaged.
        """
        return filled_on_disk(self._blocks(0, self.shape[0]), self.shape, self.dtype, str(self._folder))

    def _blocks(self, first: int, last: int) -> Iterator[tuple[Region, np.ndarray]]:
        """Rows in pieces, each with its place: so many whole rows at a time, or chunk by chunk where rows are long."""
        if 0 in self.shape:
            return
        step, sides = self.rows_at_once, self._head.chunks[1:]
        if step * math.prod(self.shape[1:]) <= _NUMBERS_AT_ONCE and math.prod(self._head.grid[1:]) <= _CHUNKS_AT_ONCE:
            sides = self.shape[1:]
        for start in range(first // step * step, last, step):
            own = slice(max(start, first), min(start + step, last))
            steps = (range(0, whole, side) for whole, side in zip(self.shape[1:], sides, strict=True))
            for corner in itertools.product(*steps):
                ends = (min(at + side, whole) for at, side, whole in zip(corner, sides, self.shape[1:], strict=True))
                region = (own, *map(slice, corner, ends))
                yield region, self._block(region)

    def _block(self, region: Region) -> np.ndarray:
        ranges = (range(s.start // c, -(-s.stop // c)) for s, c in zip(region, self._head.chunks, strict=True))
        keys = [self._head.key(chunk) for chunk in itertools.product(*ranges)]
        for key in keys:
            if (content := chunk_content(self._folder / key, self._head)) is not None:
                self._store[key] = self._as_buffer(content)
        try:
            with silenced():  # what zarr thinks of what it is shown
                return np.asarray(self._array[region])
        except (DataError, MemoryError):
            raise
        except Exception as reason:
            about = keys[0] if len(keys) == 1 else f"one of {keys[0]} to {keys[-1]}"
            raise DataError(
                f"{self._folder}: chunk {about} cannot be unpacked ({in_one_line(reason)}). Write the array again."
            ) from reason
        finally:
            for key in keys:
                self._store.pop(key, None)

    def _as_buffer(self, content: bytes) -> Any:  # noqa: ANN401 - of a package that may be missing
        _ = self._array  # which says what to install
        from zarr.core.buffer import default_buffer_prototype

        return default_buffer_prototype().buffer.from_bytes(content)

    @cached_property
    def _array(self) -> Any:  # noqa: ANN401
        """The array as zarr has it, of those chunks that stand in the store at the time."""
        try:
            import zarr
            from zarr.core.buffer import default_buffer_prototype
            from zarr.storage import MemoryStore
        except ImportError:
            raise DataError(
                f"{self._folder}: reading it needs the package zarr. Install isthmus[zarr], or save the array as .npy."
            ) from None
        head = json.dumps(self._head.written).encode()
        self._store[self._head.place.name] = default_buffer_prototype().buffer.from_bytes(head)
        return zarr.open_array(store=MemoryStore(self._store), mode="r", zarr_format=self._head.zarr_format)
