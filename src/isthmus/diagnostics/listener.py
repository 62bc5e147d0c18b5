"""What is told of one evaluation, and to whom: a reading of every product with a weight matrix.

Who watches and tells: `recording`. Which activation a reading has: `lineage`. What listeners do: `layer_sums`,
`derivatives`, `data_flow`, `stream_costs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from isthmus.diagnostics.matrix_calls import MatrixCall
from isthmus.diagnostics.recurrences import Recurrence


@dataclass(slots=True, eq=False)
class Reading:
    """What one call of a weight matrix saw and did on a batch.

    Attributes:
        index: number of the call in this evaluation, from 0.
        name: where the weight sits in the module; "#2" for its second call, and so on.
        call: input, matrix, bias.
        enters: the tensor with respect to which Jacobians are taken: the input of the call.
        z: the output of the call.
        source: index of the reading whose activation enters here, with the same numbers; None if something else does.
        twin: index of the first reading with the very same input, None if there is none.
        before: what the activation function was applied to: z, or z normalised.
        after: the last tensor that is a function of z alone, once an activation function was among these functions.
        functions: the activation functions in between.
        is_normalised: whether a normalisation stands between z and the activation function.
        is_homogeneous: whether scaling z by a positive number scales the activation by it.
        is_consumed: whether another layer took a function of z, so that the activation is settled.
        is_overwritten: whether something was written over the input since the call.
        is_told: whether the listener has heard that it is closed; later layers may still be linked to it.
        stream: what counts as the activation in place of `after`: the stream of a leaky network.
    """

    index: int
    name: str
    call: MatrixCall
    enters: Tensor
    z: Tensor
    source: int | None = None
    twin: int | None = None
    before: Tensor | None = None
    after: Tensor | None = None
    functions: tuple[str, ...] = ()
    is_normalised: bool = False
    is_homogeneous: bool = True
    is_consumed: bool = False
    is_overwritten: bool = False
    is_told: bool = False
    stream: Tensor | None = None

    @property
    def is_bent(self) -> bool:
        """Whether an activation function follows."""
        return bool(self.functions)

    @property
    def activation(self) -> Tensor:
        """A = sigma(z); z itself where no activation function follows."""
        if self.stream is not None:
            return self.stream
        return self.after if self.is_bent and self.after is not None else self.z


class Listener:
    """Hears what a `Recorder` sees; every method does nothing unless overridden."""

    def entering(self, call: MatrixCall) -> Tensor | None:
        """Before a call: another tensor to use in place of its input, or None."""

    def produced(self, z: Tensor) -> Tensor | None:
        """After a call: another tensor to go on with in place of z, or None."""

    def called(self, reading: Reading) -> None:
        """Right after a call: its input and z are as they were, also where they are overwritten later."""

    def closed(self, reading: Reading) -> None:
        """When the activation of a reading is known."""

    def summed(self, ordinal: int, terms: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Before sum number `ordinal` of two tensors of one shape: other terms, or None."""

    def recurred(self, found: Mapping[int, Recurrence], hidden: int) -> None:
        """After a layer of a recurrence: its directions by the index of their readings, and how many gates it made."""

    def embedded(self, output: Tensor) -> Tensor:
        """After a lookup in a table: what to go on with."""
        return output

    def overwriting(self, targets: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Before numbers are written into tensors, and so into all that share memory with them: what from."""

    def saw(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], reading: Reading | None) -> None:
        """After any function that returns tensors; `reading` if it was a call of a weight matrix."""
