"""What came from what in one evaluation: which layers cut the network in two, and where branches rejoin a stream.

Structure only, from two samples; the numbers of a residual stream: `stream_costs`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.matrix_calls import memories_of, memory_of
from isthmus.diagnostics.recurrences import Recurrence

IMAGES = 3  # axes above which channels come second


@dataclass(frozen=True, slots=True)
class ResidualBlock:
    """A sum A + F(A) in which F holds weight matrices.

    Attributes:
        ordinal: number of the sum among the sums of two tensors of one shape.
        branch: which of its two terms is F(A), 0 or 1.
        layers: indices of the calls of weight matrices inside F.
        shape: of the sum, for the samples that were seen.
    """

    ordinal: int
    branch: int
    layers: tuple[int, ...]
    shape: torch.Size = torch.Size()

    @property
    def features(self) -> int:
        """Numbers of one token or pixel: of images the channels, which come second."""
        return self.shape[1] if len(self.shape) > IMAGES else self.shape[-1]


class Provenance(Listener):
    """The graph of one evaluation, by the functions that ran; of tensors it keeps the shapes.

    Args:
        module: whose parameters and buffers count as constants.
        inputs: the tensors that enter.

    A node is what a tensor holds at one time: where it is filled in place, what is read of it afterwards, or of any
    other view of its memory, comes from what was written too.
    """

    def __init__(self, module: nn.Module, inputs: Iterable[Tensor]) -> None:
        self.parents: list[tuple[int, ...]] = []
        self.layers: list[int] = []  # node of z, by index of the reading
        self.readings: list[Reading] = []
        self.total_bytes = 0
        self._node = WeakTensorKeyDictionary()
        self._written: dict[int, int] = {}  # node of the last writing, by place in memory
        self._matrices: list[tuple[int, ...]] = []  # nodes of weight and bias, by index of the reading
        self._constants = memories_of([*module.parameters(), *module.buffers()])
        self._parameters: dict[int, list[str]] = {}
        for name, parameter in module.named_parameters(remove_duplicate=False):
            self._parameters.setdefault(memory_of(parameter), []).append(name)
        self._used: dict[int, list[str]] = {}  # names of a parameter, by its node
        self._sums: list[tuple[int, torch.Size, int, int]] = []
        self.inputs = {self._new(t, ()) for t in inputs}
        self.unknown: set[int] = set()
        self._end = -1
        self._blocks: list[ResidualBlock] | None = None

    def closed(self, reading: Reading) -> None:
        """Keep what is known of a layer, without its tensors."""
        self.readings[reading.index] = _without_numbers(reading)

    def summed(self, ordinal: int, terms: tuple[Tensor, Tensor]) -> None:
        """Note the two terms of a sum."""
        self._sums.append((ordinal, terms[0].shape, self._of(terms[0]), self._of(terms[1])))

    def recurred(self, found: Mapping[int, Recurrence], hidden: int) -> None:
        """Count the gates that a recurrence computes inside."""
        self.total_bytes += hidden * next(iter(found.values())).states.element_size()

    def overwriting(self, targets: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Add a node for what the targets and their views hold from now on: what they held, and what is written."""
        node = self._add(tuple({self._of(t) for t in (*targets, *inputs)}))
        self._node.update((t, node) for t in targets)  # x.data = other lies elsewhere afterwards
        for place in memories_of(targets):
            self._written[place] = node

    def saw(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], reading: Reading | None) -> None:
        """Add a node for every output."""
        nodes = [self._of(t) for t in inputs]
        parents = tuple({*nodes})
        for output in outputs:
            if output.is_meta:  # made here, of a reading that is closed at the end
                continue
            node = self._new(output, parents)
            self.total_bytes += output.numel() * output.element_size()
            if reading is not None:
                self.layers.append(node)
                self.readings.append(reading)
                self._matrices.append(tuple(nodes[1:]))

    def ancestors(self, node: int, *, without: int | None = None) -> set[int]:
        """All nodes from which `node` came, itself included, on paths that avoid the node `without`."""
        found, stack = set[int](), [node]
        while stack:
            current = stack.pop()
            if current in found or current == without:
                continue
            found.add(current)
            stack.extend(self.parents[current])
        return found

    def end(self, output: Tensor) -> None:
        """Note what the evaluation gave."""
        self._end = self._of(output)

    def cuts(self) -> list[int]:
        """Indices of the layers through which everything passes on its way from the inputs to the output (*exact*).

        Of layers whose matrix is made of the parameters alone; none where no way from the inputs was seen at all.
        """
        outside = self.inputs | self.unknown
        if not self.ancestors(self._end) & outside:
            return []
        return [
            i for i, node in enumerate(self.layers)
            if not self.ancestors(self._end, without=node) & outside
            and not any(self.ancestors(matrix) & outside for matrix in self._matrices[i])
        ]  # fmt: skip

    def in_layers(self) -> set[str]:
        """Names of the parameters of which the matrices and biases of the layers are made."""
        nodes = {node for parts in self._matrices for matrix in parts for node in self.ancestors(matrix)}
        return {name for node in nodes for name in self._used.get(node, ())}

    def in_functions(self) -> set[str]:
        """Names of the parameters that any function has taken."""
        return {name for names in self._used.values() for name in names}

    def blocks(self) -> list[ResidualBlock]:
        """The residual blocks in the order of their sums: one term of the sum is an ancestor of the other."""
        if self._blocks is None:
            self._blocks = self._found_blocks()
        return self._blocks

    def _found_blocks(self) -> list[ResidualBlock]:
        out: list[ResidualBlock] = []
        for ordinal, shape, *terms in self._sums:
            for branch in (0, 1):
                stream, end = terms[1 - branch], terms[branch]
                above = self.ancestors(end)
                if stream == end or stream not in above:
                    continue
                before = self.ancestors(stream)
                inside = [
                    i for i, n in enumerate(self.layers)
                    if n in above and n not in before and stream in self.ancestors(n)
                ]  # fmt: skip
                if inside:
                    out.append(ResidualBlock(ordinal, branch, tuple(inside), shape))
        return out

    def _of(self, tensor: Tensor) -> int:
        place = memory_of(tensor)
        node: int | None = self._node.get(tensor)
        if node is None:
            node = self._new(tensor, ())
            if place in self._parameters:
                self._used[node] = self._parameters[place]
            elif place not in self._constants and tensor.numel() > 1:
                self.unknown.add(node)  # made where no function was seen: it may depend on the inputs
            written = self._written.get(place)
            return node if written is None else self._new(tensor, (node, written))
        written = self._written.get(place, -1)
        return node if node >= written else self._new(tensor, (node, written))

    def _new(self, tensor: Tensor, parents: tuple[int, ...]) -> int:
        self._node[tensor] = node = self._add(parents)
        return node

    def _add(self, parents: tuple[int, ...]) -> int:
        self.parents.append(parents)
        return len(self.parents) - 1


def hollow(tensor: Tensor) -> Tensor:
    """A tensor of the same shape and type without numbers."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def _without_numbers(reading: Reading) -> Reading:
    """The same, its tensors hollow."""
    call = replace(reading.call, x=hollow(reading.call.x), matrix=hollow(reading.call.matrix))
    empty = replace(reading, call=call, enters=hollow(reading.enters), z=hollow(reading.z))
    empty.before = empty.after = empty.stream = None
    return empty
