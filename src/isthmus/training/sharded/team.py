"""Processes that train one network together: who owns which rows, and sums that do not depend on how many they are.

Every sum over samples is a fold over leaves, runs of rows whose number depends on the number of rows alone, in the
order of one fixed binary tree. So one process and many compute the same bits. Starting a team: `process_group`; the
objective over a team: `row_step`; why it is done so: docs/notes/distributed.md.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._pytree import tree_map_only

from isthmus.errors import DataError, IsthmusError, ProcessLost

T = TypeVar("T")
ROWS_OF_LEAF = 1024  # about: few enough for many processes, enough for a matrix product to be worth its call
LEAST_LEAVES, MOST_LEAVES = 4, 1024


@dataclass(frozen=True, slots=True)
class Leaves:
    """Rows 0..rows-1 cut into runs of nearly equal length.

    Attributes:
        rows: number of rows, of all processes together.
    """

    rows: int

    @property
    def count(self) -> int:
        """A power of two from 4 to 1024 that leaves about 1024 rows to each, or one row each where there are fewer."""
        wanted = 1 << max(self.rows // ROWS_OF_LEAF, 1).bit_length() - 1
        return min(max(wanted, LEAST_LEAVES), MOST_LEAVES, self.rows)

    def start(self, leaf: int) -> int:
        """The first row of a leaf."""
        return self.rows * leaf // self.count


@dataclass(frozen=True, slots=True)
class Team:
    """The processes of one training, as one of them sees it; alone unless it is told otherwise.

    Attributes:
        rank: number of this process.
        size: how many there are.
        device: where tensors have to lie that are sent.
        timeout: seconds after which a silent process counts as lost; only for the error that says so.
        first_to_ask: True for the first process that calls it.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")
    timeout: float = 0.0
    first_to_ask: Callable[[], bool] = field(default=lambda: True)

    def speaks(self) -> bool:
        """Whether no process asked this before: the one that says to the user why all of them end."""
        try:
            return self.first_to_ask()
        except RuntimeError:  # the store is gone, and with it whoever started the processes
            return True

    def leaves(self, leaves: Leaves) -> range:
        """The leaves of this process: a run of them, from the row `start(first)` to the row `start(last + 1)`.

        Raises:
            DataError: there are fewer leaves than processes.
        """
        if leaves.count < self.size:
            raise DataError(
                f"fit: {leaves.rows} rows make {leaves.count} parts, too few for {self.size} processes. Start fewer."
            )
        return range(leaves.count * self.rank // self.size, leaves.count * (self.rank + 1) // self.size)

    def rows(self, total: int) -> slice:
        """The rows, of `total`, that belong to this process."""
        leaves = Leaves(total)
        own = self.leaves(leaves)
        return slice(leaves.start(own.start), leaves.start(own.stop))

    def fold(
        self, leaves: Leaves, leaf: Callable[[int], Tensor], combine: Callable[[Tensor, Tensor], Tensor], like: Tensor
    ) -> Tensor:
        """Combine the values of all leaves along the binary tree; every process gets the same bits.

        Args:
            leaves: how the rows are cut.
            leaf: the value of a leaf of this process, a new tensor.
            combine: two neighbouring values to one; it may overwrite them.
            like: a tensor of the shape and kind of every value.
        """

        def owner(i: int) -> int:
            return ((i + 1) * self.size - 1) // leaves.count

        def value(low: int, high: int) -> Tensor | None:
            """That of the leaves low..high-1 for the owner of the first, None for the others."""
            if high - low == 1:
                return leaf(low) if owner(low) == self.rank else None
            if not owner(low) <= self.rank <= owner(high - 1):
                return None
            middle = (low + high) // 2
            left, right = value(low, middle), value(middle, high)
            receiver, sender = owner(low), owner(middle)
            if right is not None and sender != receiver:
                message = right.contiguous().to(self.device)
                self._call(lambda: dist.send(message, receiver))
            if left is None:
                return None
            if right is None:
                right = torch.empty_like(like, device=self.device)
                self._call(lambda: dist.recv(right, sender))
            return combine(left, right.to(left.device))

        found = value(0, leaves.count)
        return self.shared(torch.empty_like(like) if found is None else found)

    def shared(self, tensor: Tensor) -> Tensor:
        """The tensor of the first process, for all; it may be the same object."""
        if self.size == 1:
            return tensor
        whole = tensor.contiguous().to(self.device)
        self._call(lambda: dist.broadcast(whole, 0))
        return whole.to(tensor.device)

    def gathered(self, mine: Tensor, places: range, count: int) -> Tensor:
        """Rows that lie in different processes as one tensor (count, ...), the same in all.

        Each place is zero in all processes but one, so that an all-reduce adds nothing but zeros: exact in any order.

        Args:
            mine: (len(places), ...) the rows of this process.
            places: where they go.
            count: rows of the result.
        """
        whole = torch.zeros(count, *mine.shape[1:], dtype=mine.dtype, device=self.device)
        whole[places.start : places.stop] = mine.to(self.device)
        if self.size > 1:
            self._call(lambda: dist.all_reduce(whole))
        return whole.to(mine.device)

    def agreed(self, *mine: bool) -> tuple[bool, ...]:
        """Each claim, as true for all as soon as it is for one."""
        if self.size == 1:
            return mine
        claims = torch.tensor(mine, dtype=torch.int32, device=self.device)
        self._call(lambda: dist.all_reduce(claims, op=dist.ReduceOp.MAX))
        return tuple(bool(claim) for claim in claims.tolist())

    def told_by_first(self, act: Callable[[], T]) -> T:
        """What `act` returns in the first process, which alone does it; an error of ours there is raised by all."""
        box: list[Any] = [_outcome(act) if self.rank == 0 else None]
        if self.size > 1:
            self._call(lambda: dist.broadcast_object_list(box, 0, device=self.device))
        told = _unpacked(box[0])
        # tensors that came from the CUDA device of another process are wanted on this one
        return tree_map_only(Tensor, lambda t: t.to(self.device) if t.is_cuda else t, told)

    def together(self, act: Callable[[], T]) -> list[T]:
        """What `act` returns in each process, in their order; an error of ours in one of them is raised by all."""
        everybody: list[Any] = [_outcome(act)]
        if self.size > 1:
            mine, everybody = everybody[0], [None] * self.size
            self._call(lambda: dist.all_gather_object(everybody, mine))
        return [_unpacked(outcome) for outcome in everybody]

    def together_own(self, act: Callable[[], T]) -> T:
        """What `act` returns in this process; an error of ours in one process is raised by all."""
        own: list[T] = []
        self.together(lambda: own.append(act()))
        return own[0]

    def check_in_step(self, theta: Tensor) -> None:
        """Raise unless all processes hold the same parameters.

        Raises:
            ProcessLost: they do not; only machines that round differently can bring this about.
        """
        if self.size == 1:
            return
        digests = self.together(lambda: hashlib.sha256(theta.detach().cpu().numpy().tobytes()).hexdigest())
        if len(set(digests)) > 1:
            raise ProcessLost(
                "fit: the processes no longer hold the same parameters. Use machines of one kind and one version of "
                "torch, and the same number of threads."
            )

    def _call(self, message: Callable[[], object]) -> None:
        try:
            message()
        except (RuntimeError, ValueError) as error:  # what torch raises for a closed connection, and for silence
            raise ProcessLost(
                f"fit: process {self.rank} of {self.size} lost another one (it died, or was silent for "
                f"{self.timeout:g} s). Start the same command again with --resume."
            ) from error


def _outcome(act: Callable[[], Any]) -> tuple[Any, IsthmusError | OSError | None]:
    try:
        return act(), None
    except (IsthmusError, OSError) as error:
        return None, error


def _unpacked(outcome: tuple[Any, IsthmusError | OSError | None]) -> Any:
    value, error = outcome
    if error is not None:
        raise error
    return value
