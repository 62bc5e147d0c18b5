"""Which tensors are functions of what one matrix gave, and of nothing else: its activation is one of them.

Which functions count, by their names: `matrix_calls`. Who sees them run: `recording`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.matrix_calls import (
    ACTIVATIONS,
    ARITHMETIC,
    COPIES,
    HOMOGENEOUS,
    NORMALISATIONS,
    REGROUPINGS,
    SCALINGS,
    memories_of,
    memory_of,
)
from isthmus.diagnostics.module_names import Names

OPEN = 4  # readings whose activation is still looked for: query, key and value, or a gate beside its value


@dataclass(slots=True, eq=False)
class Derived:
    """A function of z alone.

    Attributes:
        reading: whose z.
        tensor: its value, kept alive: tensors are known by their identity.
        place: of the value in memory.
        before: what the first activation function was applied to; z or z normalised where there is none yet.
        functions: the activation functions between z and this.
        is_normalised: whether a normalisation is among the functions.
        is_homogeneous: whether scaling z by a positive number scales this by it.
        is_same: whether these are the numbers of z, however they are grouped.
    """

    reading: Reading
    tensor: Tensor
    place: int
    before: Tensor
    functions: tuple[str, ...] = ()
    is_normalised: bool = False
    is_homogeneous: bool = True
    is_same: bool = True


class Lineage:
    """Follows every z, settles its activation, and tells a listener once that is known.

    The activation is what the next matrix takes, if it is a function of z alone; else what is last combined with
    anything else; else the last function of z. Before it lies an activation function: otherwise it is z itself.

    Args:
        names: hears which module computed an activation.
        listener: hears of readings that are closed.
    """

    def __init__(self, names: Names, listener: Listener) -> None:
        self._names, self._listener = names, listener
        self._open: list[Reading] = []
        self._steps: dict[int, Derived] = {}  # by id of a tensor that the step keeps alive
        self._inputs: dict[int, int] = {}  # where in memory inputs lie, by index of the reading
        self._combined: dict[int, Derived] = {}  # by index of the reading: the last that went into something else

    def begin(self, reading: Reading) -> None:
        """Link a reading to those before it, and follow its z."""
        self._link(reading)
        if len(self._open) == OPEN:
            self._close(self._open[0])
        self._open.append(reading)
        self._inputs[reading.index] = memory_of(reading.call.x)
        self._keep(Derived(reading, reading.z, memory_of(reading.z), reading.z))

    def end(self) -> None:
        """Close what is still open."""
        while self._open:
            self._close(self._open[0])

    def next_step(self, name: str, args: Sequence[object], tensors: Sequence[Tensor]) -> Derived | None:
        """What a function is about to make of z, with the value before it; None where it takes or does other things."""
        first = next((a for a in args if isinstance(a, Tensor)), None)
        step = self._steps.get(id(first)) if first is not None else None
        if step is None or step.reading.is_consumed:
            return None
        if name in ACTIVATIONS:
            is_homogeneous = step.is_homogeneous and name in HOMOGENEOUS
            return replace(step, functions=(*step.functions, name), is_homogeneous=is_homogeneous, is_same=False)
        if name in NORMALISATIONS and not step.functions:
            return replace(step, is_normalised=True, is_homogeneous=False, is_same=False)
        if name not in REGROUPINGS and name not in ARITHMETIC:
            return None
        own = [s for t in tensors if (s := self._steps.get(id(t))) is not None and s.reading is step.reading]
        if len(own) + sum(t.numel() == 1 and id(t) not in self._steps for t in tensors) < len(tensors):
            return None
        if len(own) > 1:
            lead = max(own, key=lambda one: (len(one.functions), one.is_normalised))
            return replace(lead, is_homogeneous=False, is_same=False)
        is_same = name in REGROUPINGS or name in COPIES
        is_homogeneous = step.is_homogeneous and (is_same or name in SCALINGS)
        return replace(step, is_homogeneous=is_homogeneous, is_same=step.is_same and is_same)

    def went_on(self, step: Derived, name: str, given: Tensor, out: Tensor) -> None:
        """After that function: follow what it gave, unless it has another number of entries, or features elsewhere."""
        reading = step.reading
        z, is_convolution = reading.z, reading.call.convolution is not None
        if out.numel() != z.numel() or (out.shape != z.shape and (is_convolution or out.shape[-1:] != z.shape[-1:])):
            return
        if name in NORMALISATIONS:
            step.before = out
        if name in ACTIVATIONS:
            self._names.note_activation(reading.name)
        # dropout that is at work changes numbers; in evaluation mode it hands on what it was given
        step.tensor, step.place = out, memory_of(out)
        step.is_same &= "dropout" not in name or step.place == memory_of(given)
        self._keep(step)

    def combined(self, tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """After any other function: what went into something as large was an activation, and no intermediate result.

        The squares of an activation that a normalisation written by hand takes the mean of are none, say.
        """
        most = max((out.numel() for out in outputs if out.is_floating_point()), default=0)
        for tensor in tensors:
            step = self._steps.get(id(tensor))
            if step is not None and step.functions and most >= tensor.numel():
                self._combined[step.reading.index] = step

    def overwriting(self, targets: Sequence[Tensor], step: Derived | None) -> None:
        """Before tensors are overwritten, by a function of the z of `step` or anything else: keep what is still needed.

        Readings of whose z something else is made in place are closed; what shares memory with a target is followed no
        longer, and no later call has the same input as one before. The step is applied to what was kept.
        """
        places = memories_of(targets)
        for reading in [*self._open]:
            reading.is_overwritten |= self._inputs[reading.index] in places
            own = [s for s in self._steps.values() if s.reading is reading]
            if not any(s.place in places for s in own):
                continue
            if step is None or reading is not step.reading:
                self._close(reading)
            else:
                self._save(step, own, places)

    def _save(self, step: Derived, own: Sequence[Derived], places: set[int]) -> None:
        """Copy z and what the activation is applied to, as far as it is overwritten."""
        copies: dict[int, Tensor] = {}

        def saved(tensor: Tensor) -> Tensor:
            if memory_of(tensor) not in places:
                return tensor
            if id(tensor) not in copies:
                copies[id(tensor)] = tensor.detach().clone()
            return copies[id(tensor)]

        reading = step.reading
        reading.z = saved(reading.z)
        for s in (step, *own):
            s.before = saved(s.before)
            if s is not step and s.place in places:
                del self._steps[id(s.tensor)]
        last = self._combined.get(reading.index)
        if last is not None and last.place in places:
            del self._combined[reading.index]

    def _keep(self, step: Derived) -> None:
        self._steps.pop(id(step.tensor), None)  # what comes last stands last
        self._steps[id(step.tensor)] = step

    def _link(self, reading: Reading) -> None:
        x = reading.call.x
        for other in self._open:
            is_same = other.call.x is x and not other.is_overwritten
            if is_same and other.call.convolution == reading.call.convolution and reading.twin is None:
                reading.twin = other.index if other.twin is None else other.twin
        step = self._steps.get(id(x))
        if step is None:
            return
        source = step.reading
        if not source.is_consumed:
            self._settle(source, step if step.functions else None)
            source.is_consumed = True
            self._tell_settled()
        if x is source.activation or (step.is_same and not source.is_bent):
            reading.source = source.index

    def _settle(self, reading: Reading, step: Derived | None) -> None:
        """The activation is the value of a step, or where that is open what is known by now."""
        if step is None:
            bent = [s for s in self._steps.values() if s.reading is reading and s.functions]
            step = self._combined.get(reading.index) or (bent[-1] if bent else None)
        if step is None:  # none was followed by an activation function; the last may have normalised
            own = [s for s in self._steps.values() if s.reading is reading and s.is_normalised]
            reading.is_normalised = bool(own)
            reading.before = own[-1].before if own else reading.z
            return
        reading.after, reading.before, reading.functions = step.tensor, step.before, step.functions
        reading.is_normalised, reading.is_homogeneous = step.is_normalised, step.is_homogeneous

    def _close(self, reading: Reading) -> None:
        self._open.remove(reading)
        self._tell(reading)
        self._steps = {key: s for key, s in self._steps.items() if s.reading is not reading}
        self._combined.pop(reading.index, None)

    def _tell_settled(self) -> None:
        """Tell of what is settled, in order and at once: z and the activation are still in the caches."""
        for reading in self._open:
            if not reading.is_consumed:
                return
            self._tell(reading)

    def _tell(self, reading: Reading) -> None:
        if reading.is_told:
            return
        if not reading.is_consumed:
            self._settle(reading, None)
        reading.is_told = True
        self._listener.closed(reading)
