"""A file with what forward passes have summed: a diagnosis that was ended goes on from there, with the same sums.

Who passes the data: `streaming`. What is summed: `layer_sums`. How a file is written, and read again: `checkpoint`.
"""

import hashlib
import time
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from isthmus.diagnostics.layer_sums import SumOverData
from isthmus.diagnostics.samples import Samples
from isthmus.errors import CheckpointError
from isthmus.training.checkpoint import State, load_state, save_state

SECONDS = 60.0  # between two writings, or
SHARE = 20  # times what the last one took: sums of a GPT-2 are a gigabyte


class KeptSums:
    """The sums of the first rows of some data through some module, in a file.

    Args:
        path: of the file; it need not be there.
        module: whose weights the sums belong to.
        total: samples in all; None where nobody knows.

    Raises:
        CheckpointError: the file is damaged, or belongs to another module or number of samples. OSError: not readable.
    """

    def __init__(self, path: Path, module: nn.Module, total: int | None) -> None:
        self.path, self._stamp = path, _stamp(module, total)
        saved = load_state(path, renamed=True)
        if saved is not None and saved.get("stamp") != self._stamp:
            raise CheckpointError(
                f"checkpoint {path}: belongs to another diagnosis (weights or number of samples); give another file."
            )
        self.num = 0 if saved is None else int(saved["num"])
        self.most_outputs = 0 if saved is None else int(saved["most_outputs"])
        self._known: list[str] = [] if saved is None else saved["data"]
        self._read, self._digests = 0, list[_Digest]()
        self._written, self._took = time.monotonic(), 0.0

    @property
    def is_behind(self) -> bool:
        """Whether rows that are in the sums are still to be read."""
        return self._read < self.num

    def restore(self, listener: SumOverData) -> None:
        """Give the sums to a listener that has heard a batch, which they hold already."""
        listener.forget()  # before the file is read: twice in memory they would be beyond what was announced
        saved = load_state(self.path, renamed=True)
        if saved is None or saved["stamp"] != self._stamp or saved["num"] != self.num:
            raise CheckpointError(f"checkpoint {self.path}: was changed meanwhile; start again.")
        listener.restore(saved["layers"])

    def unseen(self, part: Samples) -> Samples:
        """The rows of the next batch that are not in the sums; perhaps none.

        Raises:
            CheckpointError: those that should be there are not these.
        """
        old = min(max(self.num - self._read, 0), part.num)
        self.note(part.first(old))
        if old and not self.is_behind and self._known != self._data():
            raise CheckpointError(
                f"checkpoint {self.path}: its {self.num:,} rows are not the first of these data. Give the same ones in "
                "the same order (a loader that shuffles needs a generator with a seed), or give another file."
            )
        return part.behind(old)

    def note(self, part: Samples) -> None:
        """Remember which rows were read: before the module has them, which may overwrite them."""
        if not part.num:
            return
        self._read += part.num
        tensors = part.by_rows()
        self._digests = self._digests or [hashlib.sha256() for _ in tensors]
        for digest, tensor in zip(self._digests, tensors, strict=False):
            digest.update(_bytes(tensor))

    def end(self) -> None:
        """After the last batch.

        Raises:
            CheckpointError: there were fewer rows than the sums hold.
        """
        if self.is_behind:
            raise CheckpointError(
                f"checkpoint {self.path}: holds {self.num:,} rows, and the data have {self._read:,}. Give the same "
                "ones, or give another file."
            )

    def is_due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._written >= max(SECONDS, SHARE * self._took)

    def write(self, listener: SumOverData, *, num: int, most_outputs: int) -> None:
        """Write the sums of so many rows; `most_outputs`: numbers that came out of a sample.

        Raises:
            OSError: it cannot be written.
        """
        begin = time.monotonic()
        state: State = {
            "stamp": self._stamp, "num": num, "most_outputs": most_outputs, "data": self._data(),
            "layers": listener.state(),
        }  # fmt: skip
        save_state(self.path, state)
        self._written = time.monotonic()
        self._took = self._written - begin

    def _data(self) -> list[str]:
        return [digest.hexdigest() for digest in self._digests]


class _Digest(Protocol):
    """What `hashlib` gives."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def _stamp(module: nn.Module, total: int | None) -> str:
    digest = hashlib.sha256(f"{type(module).__name__} {total}".encode())
    for name, value in module.state_dict().items():
        if isinstance(value, Tensor):
            digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
            digest.update(_bytes(value))
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
