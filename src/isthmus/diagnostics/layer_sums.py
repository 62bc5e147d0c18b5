"""What is summed over the data while batches pass: one `LayerSums` per call of a weight matrix.

The accumulators: `moments`. What is read off the sums: `readings`. Derivatives: `derivatives`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.diagnostics.budget import HOLES, give_back, unfolded_bytes
from isthmus.diagnostics.data_flow import IMAGES, ResidualBlock
from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.matrix_calls import Convolution, MatrixCall
from isthmus.diagnostics.moments import SOME_ROWS, Moments, SomeRows, moments_for, moments_of, state_of
from isthmus.diagnostics.recurrences import Recurrence
from isthmus.diagnostics.samples import Samples
from isthmus.training.checkpoint import State


@dataclass(slots=True, eq=False)
class StateSums:
    """The hidden states of one layer of a recurrence, in one direction of time, on all data.

    Attributes:
        hidden: the matrix that takes them back, (gates * width, size), float64.
        gates: how many parts it has.
        states: moments of the states of all steps.
        rows: how many states were seen.
    """

    hidden: Tensor
    gates: int
    states: Moments
    rows: int = 0


@dataclass(slots=True, eq=False)
class StreamSums:
    """The residual stream behind one block, on all data.

    Attributes:
        block: its number, from 1.
        position: the share of the blocks that it ends.
        left: moments of the stream, tokens and pixels as rows.
        rows: how many were seen.
    """

    block: int
    position: float
    left: Moments
    rows: int = 0


@dataclass(slots=True, eq=False)
class LayerSums:
    """One call of a weight matrix on all data.

    Attributes:
        name: where the weight sits.
        matrix: W, (d_out, d_in), in the type in which the module keeps it.
        bias: b, or None.
        convolution: geometry, or None.
        source: index of the layer whose activation enters, or None.
        twin: index of the first layer with the same input, or None.
        is_bent: whether an activation function follows.
        is_homogeneous: whether scaling z by a positive number scales the activation by it.
        functions: the activation functions that follow.
        rows: rows seen: samples, or samples times tokens or pixels.
        entered: moments of the input; None where those of another layer serve.
        left: moments of z, only where they do not follow from those of the input.
        answered: moments of the activation; None where it is z, or another layer's input.
        lost: sum of |before - after|^2 over the data.
        size: sum of |before|^2.
        recurrent: what the states of a recurrence do whose input matrix this is; None for anything else.
        stream: the residual stream behind the block of which this is the last layer; None for anything else.
    """

    name: str
    matrix: Tensor
    bias: Tensor | None
    convolution: Convolution | None
    source: int | None
    twin: int | None
    is_bent: bool = False
    is_homogeneous: bool = True
    functions: tuple[str, ...] = ()
    rows: int = 0
    entered: Moments | None = None
    left: Moments | None = None
    answered: Moments | None = None
    lost: float = 0.0
    size: float = 0.0
    recurrent: StateSums | None = None
    stream: StreamSums | None = None

    @property
    def weight(self) -> Tensor:
        """W in float64, made anew each time: of large networks all of them would fill the memory."""
        return self.matrix.double()


class SumOverData(Listener):
    """Adds every reading to the sums of its layer.

    Args:
        num_samples: how many samples will come in all; None where nobody knows.
        axes: which axis of every layer's input counts samples.
        blocks: residual blocks, behind which the stream is looked at.
    """

    def __init__(
        self, num_samples: int | None, axes: Sequence[int | None] = (), blocks: Sequence[ResidualBlock] = ()
    ) -> None:
        self._blocks = {block.ordinal: (k, block) for k, block in enumerate(blocks, 1)}
        self._summed: tuple[int, ResidualBlock] | None = None
        self.num_samples, self.axes, self.batch = num_samples, axes, 0
        self.layers: list[LayerSums] = []
        self._real: Tensor | None = None
        self._passed = 0  # bytes of rows and columns since what they left free was given back

    def begin(self, part: Samples) -> None:
        """Before a batch: how many samples it has, and which of their tokens are no padding."""
        self.batch, self._real = part.num, part.real_tokens

    def called(self, reading: Reading) -> None:
        """Count rows; take moments of the input where nobody else does, and of z where they cannot be derived."""
        layer = self._layer(reading)
        call = reading.call
        rows_out = call.rows_out(reading.z.detach())
        expected, real = self._expected(rows_out), self._real_rows(reading, len(rows_out))
        rows_out = rows_out if real is None else rows_out[real]
        layer.rows += len(rows_out)
        if not len(rows_out):  # an expert that no sample was sent to
            return
        if layer.twin is None and not self._has_inputs_of_source(layer):
            layer.entered = layer.entered or _input_moments(reading, expected)
            _add_inputs(layer.entered, call, len(rows_out), real)
        if reading.call.convolution is not None:
            layer.left = layer.left or moments_for(expected, rows_out.shape[1])
            layer.left.add(rows_out)
        self._give_back(reading)

    def _give_back(self, reading: Reading) -> None:
        """Rows in float64, columns of convolutions: what lies between keeps the allocator from using them again.

        How much of them it kept hung on where the system had put its heap: 79 to 161 MiB of the same passes.
        """
        is_exact = reading.z.dtype is torch.float64  # convolutions unfold nothing in float32
        self._passed += 8 * reading.z.numel() + (unfolded_bytes(reading) if is_exact else 0)
        if self._passed >= HOLES:
            give_back()
            self._passed = 0

    def closed(self, reading: Reading) -> None:
        """Take moments of the activation and the sums of what the activation function takes away."""
        layer = self.layers[reading.index]
        layer.is_bent, layer.is_homogeneous = reading.is_bent, reading.is_homogeneous
        layer.functions = reading.functions
        if not reading.is_bent or reading.before is None or reading.after is None or not len(reading.z):
            return
        before, after = reading.before.detach(), reading.after.detach().reshape(reading.before.shape)
        rows = reading.call.rows_out(reading.activation.detach().reshape(reading.z.shape))
        expected, real = self._expected(rows), self._real_rows(reading, len(rows))
        if real is not None:
            before, after = (reading.call.rows_out(t.reshape(reading.z.shape))[real] for t in (before, after))
            rows = rows[real]
        layer.size += float(torch.linalg.vector_norm(before)) ** 2
        layer.lost += float(torch.linalg.vector_norm(before - after)) ** 2
        layer.answered = layer.answered or moments_for(expected, rows.shape[1])
        layer.answered.add(rows)

    def summed(self, ordinal: int, terms: tuple[Tensor, Tensor]) -> None:
        """Before the sum of a stream with its branch: what comes next is the stream behind the block."""
        del terms
        self._summed = self._blocks.get(ordinal)

    def saw(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], reading: Reading | None) -> None:
        """Take moments of the stream right behind a block."""
        del inputs, reading
        (k, block), self._summed = self._summed or (0, None), None
        if block is None or not outputs or not outputs[0].numel():
            return
        rows, layer = rows_of_stream(outputs[0].detach(), self._real), self.layers[max(block.layers)]
        if layer.stream is None:
            layer.stream = StreamSums(k, k / len(self._blocks), moments_for(self._expected(rows), rows.shape[1]))
        layer.stream.left.add(rows)
        layer.stream.rows += len(rows)

    def recurred(self, found: Mapping[int, Recurrence], hidden: int) -> None:
        """Take moments of hidden states."""
        del hidden
        for index, part in found.items():
            layer, rows = self.layers[index], part.states.detach().reshape(-1, part.states.shape[-1])
            if self._real is not None and len(rows) == self._real.numel():
                rows = rows[self._real.reshape(-1).nonzero()[:, 0]]
            if not len(rows):
                continue
            if layer.recurrent is None:
                moments = moments_for(self._expected(rows), rows.shape[1])
                layer.recurrent = StateSums(part.hidden.detach().double(), part.gates, moments)
            layer.recurrent.states.add(rows)
            layer.recurrent.rows += len(rows)

    def state(self) -> list[State]:
        """The sums so far, as plain Python and tensors, which are not copied; `restore` takes them back."""
        return [
            {
                "rows": layer.rows, "lost": layer.lost, "size": layer.size,
                "moments": [state_of(part) for part in (layer.entered, layer.left, layer.answered)],
                "states": layer.recurrent and [layer.recurrent.rows, state_of(layer.recurrent.states)],
                "stream": layer.stream and [layer.stream.rows, state_of(layer.stream.left)],
            }
            for layer in self.layers
        ]  # fmt: skip

    def forget(self) -> None:
        """Let go of all moments: what `restore` gives comes in their place."""
        for layer in self.layers:
            layer.entered = layer.left = layer.answered = None
            for part, name in ((layer.recurrent, "states"), (layer.stream, "left")):
                if part is not None:
                    delattr(part, name)

    def restore(self, state: Sequence[State]) -> None:
        """Take the sums of an earlier listener in the place of its own; layers are known from a batch it has heard."""
        for layer, own in zip(self.layers, state, strict=True):
            device = layer.matrix.device
            layer.rows, layer.lost, layer.size = own["rows"], own["lost"], own["size"]
            layer.entered, layer.left, layer.answered = (moments_of(part, device) for part in own["moments"])
            if layer.recurrent is not None and (states := moments_of(own["states"][1], device)) is not None:
                layer.recurrent.rows, layer.recurrent.states = own["states"][0], states
            if layer.stream is not None and (left := moments_of(own["stream"][1], device)) is not None:
                layer.stream.rows, layer.stream.left = own["stream"][0], left

    def _expected(self, rows: Tensor) -> int | None:
        """How many rows will come in all, if this batch is like the others."""
        return None if self.num_samples is None else len(rows) * self.num_samples // max(self.batch, 1)

    def _real_rows(self, reading: Reading, count: int) -> Tensor | None:
        """Which rows are tokens, and no padding; None for all."""
        if self._real is None or count != self._real.numel() or reading.call.convolution is not None:
            return None
        tokens_first = reading.index < len(self.axes) and self.axes[reading.index] == 1
        return (self._real.mT if tokens_first else self._real).reshape(-1).nonzero()[:, 0]

    def _has_inputs_of_source(self, layer: LayerSums) -> bool:
        """Whether the moments of another layer's activation are those of this layer's input."""
        if layer.source is None or layer.convolution is not None:
            return False
        source = self.layers[layer.source]
        return source.convolution is None and len(source.matrix) == layer.matrix.shape[1]

    def _layer(self, reading: Reading) -> LayerSums:
        if reading.index == len(self.layers):
            call = reading.call
            matrix, bias = call.matrix.detach(), None if call.bias is None else call.bias.detach().double()
            self.layers.append(LayerSums(reading.name, matrix, bias, call.convolution, reading.source, reading.twin))
        return self.layers[reading.index]


def rows_of_stream(tensor: Tensor, real: Tensor | None) -> Tensor:
    """Samples and tokens that are no padding as rows, features last; channels are the features of images."""
    return rows_of_tokens(tensor.movedim(1, -1) if tensor.ndim > IMAGES else tensor, real)


def rows_of_tokens(tensor: Tensor, real: Tensor | None) -> Tensor:
    """The same, features last as they come; tokens may come before samples."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    if real is None or len(rows) != real.numel():
        return rows
    tokens_first = tensor.ndim == IMAGES and tensor.shape[:2] == real.mT.shape != real.shape
    return rows[(real.mT if tokens_first else real).reshape(-1)]


def _input_moments(reading: Reading, expected: int | None) -> Moments:
    if reading.call.convolution is not None:
        return SomeRows(expected, SOME_ROWS)
    return moments_for(expected, reading.call.matrix.shape[1])


def _add_inputs(moments: Moments, call: MatrixCall, count: int, real: Tensor | None) -> None:
    if isinstance(moments, SomeRows):
        wanted = moments.wanted(count, call.x.device)
        moments.keep(call.some_rows_in(wanted if real is None else real[wanted]).detach())
    else:
        rows = call.rows_in().detach()
        moments.add(rows if real is None else rows[real])
