"""How many bytes of tensors a computation holds at once, counted while it runs. What is made of it: `sharded.row_step`.

What a kernel takes inside of one call is not seen.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode


class LiveBytes(TorchDispatchMode):
    """Inside of the block every tensor that is made counts until it is let go.

    Attributes:
        now: bytes of those that are there.
        most: the most that there were at once.
        largest: bytes of the largest one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = self.largest = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],  # noqa: ARG002 - of a foreign signature
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the call gives
        """Make the call, and count what it made; views and what was overwritten in place are there already."""
        given = {t.untyped_storage().data_ptr() for t in _tensors((args, kwargs))}
        found = func(*args, **(kwargs or {}))
        for tensor in _tensors(found):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in given | self._known:
                self._note(storage)
        return found

    def _note(self, storage: torch.UntypedStorage) -> None:
        address, size = storage.data_ptr(), storage.nbytes()
        self._known.add(address)
        self.now += size
        self.most, self.largest = max(self.most, self.now), max(self.largest, size)

        def let_go() -> None:
            self._known.discard(address)
            self.now -= size

        weakref.finalize(storage, let_go)


def _tensors(value: object) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def bytes_of_row(network: nn.Module, x: Tensor) -> int:
    """Bytes that one row more takes in a gradient by autograd (*estimate*), from one and two rows.

    The larger of what is there on the way forward, and of what is kept for the way back with gradients at three layers.

    Args:
        network: as it is to be called, without a trace of it left in there; not changed by calls.
        x: two rows at least.
    """

    def held(rows: Tensor) -> int:
        with torch.enable_grad(), LiveBytes() as live:
            outputs = network(rows.clone())
        return max(live.most, live.now + 3 * live.largest) if isinstance(outputs, Tensor) else live.most

    return max(held(x[:2]) - held(x[:1]), x.element_size())
