"""One diagnosis in progress: the evaluable copy, its structure from two samples, the batches.

`open_session` finds a way to evaluate the module, `sums` streams all data, `derivatives` looks at points.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from isthmus.diagnostics.budget import Budget, budget_for, give_back
from isthmus.diagnostics.data_flow import Provenance, hollow
from isthmus.diagnostics.derivatives import (
    EXACT_OUTPUTS,
    PROJECTIONS,
    Derivatives,
    GradientsStop,
    Taps,
    derivatives_at,
    joined,
)
from isthmus.diagnostics.derivatives import sample_axes as axes_of
from isthmus.diagnostics.evaluation import checked_answer, evaluate, record
from isthmus.diagnostics.layer_jacobians import derivatives_of_layers
from isthmus.diagnostics.layer_sums import LayerSums, SumOverData
from isthmus.diagnostics.listener import Listener
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.movement import Movement
from isthmus.diagnostics.replica import Replica, float64_copy, lent
from isthmus.diagnostics.samples import Samples, row_ranges
from isthmus.errors import DataError, IsthmusError
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import whole_numbers
from isthmus.networks.kinds import of_class
from isthmus.theory.spread_rows import spread_rows
from isthmus.training.steps.live_bytes import LiveBytes
from isthmus.training.threads import threads_of_torch

POINTS = 64  # data points at which Jacobians are taken, at most
FEW_POINTS = 8
_CLOSED_FORMS: dict[type[nn.Module], Callable[[Any, Tensor, Movement], Derivatives]] = {
    FullyConnected: derivatives_of_layers
}
LARGE = 1e10  # samples times parameters above which batches run in the module's own precision
MOST_PASSES, DEAR = 10, 1e10  # passes over the data, and multiplications, beyond which derivatives are left out
AT_ONCE = "Which layers run depends on the data: all rows were given at once."
DECOMPOSING = 3e9  # multiplications spent on singular values of Jacobians beyond the few points


@dataclass(slots=True, eq=False)
class DiagnosisSession:
    """What is known after the module was run on two samples.

    Attributes:
        exact: what derivatives are taken of, in float64 where the module can be copied.
        streamed: what all data pass through.
        samples: the data.
        structure: what came from what.
        output: the answer for two samples, without its numbers.
        axes: which axis of every layer's input counts samples.
        size: how many samples the structure was found with.
        fixed_size: whether the module takes batches of that size only.
        doubts: why what is read of single rows may not hold, and what else the module returns, in sentences.
    """

    exact: Replica
    streamed: Replica
    samples: Samples
    names: Names
    structure: Provenance
    output: Tensor
    axes: list[int | None]
    size: int
    fixed_size: bool
    doubts: tuple[str, ...] = ()

    @property
    def precision(self) -> str:
        """In which types it computes, in words."""
        exact, streamed = self.exact.dtype, self.streamed.dtype
        return f"derivatives in {exact}, activations in {streamed}, sums in {torch.float64}".replace("torch.", "")

    @property
    def num_outputs(self) -> int:
        """Numbers per sample that come out; of tokens those that are no padding in every sample."""
        return self.samples.numbers_in(self.output, self.size)

    @property
    def _in_closed_form(self) -> Callable[[Any, Tensor, Movement], Derivatives] | None:
        return of_class(_CLOSED_FORMS, self.exact.module, None)

    def budget(self, memory: int | None) -> Budget:
        """Batches that keep within so many bytes."""
        scale = 8 / max(self.output.element_size(), 1)
        per_sample = int(self.structure.total_bytes * scale) // self.size
        readings = self.structure.readings
        found = budget_for(
            self.exact.module, readings, per_sample=per_sample, num_outputs=self.num_outputs, memory=memory,
            samples_seen=self.size, num_samples=self.samples.num, blocks=self.structure.blocks(),
        )  # fmt: skip
        if self.fixed_size:
            return found.with_batches_of(self.samples.num)
        return found.with_batches_up_to(self.samples.num, self.num_points())

    def live_bytes(self) -> tuple[int, int]:
        """What a forward pass holds at once: of any samples, and for each; all tensors where it cannot be watched."""
        most: list[int] = []
        if not self.fixed_size:
            for rows in (torch.tensor([0, 1]), torch.tensor([0, 1, 0])):
                give_back(self.structure.total_bytes)
                part = self.samples.at(rows, self.streamed.dtype, self.streamed.device)
                with torch.no_grad(), suppress(Exception), LiveBytes() as live:  # some tensors have no storage
                    record(self.streamed, self.names, part, Listener())
                    most.append(live.most)
        give_back(self.structure.total_bytes)
        if len(most) < 2:
            return 0, self.structure.total_bytes // self.size
        for_each = max(most[1] - most[0], 0)
        return max(most[0] - 2 * for_each, 0), for_each

    def num_points(self) -> int:
        """Points at which derivatives are taken: all 64, or fewer where that would cost more than the data pass."""
        if self._in_closed_form is not None:
            return min(POINTS, self.samples.num)
        if self.fixed_size:
            return self.samples.num
        rows = self.num_outputs if self.num_outputs <= EXACT_OUTPUTS else PROJECTIONS
        work = sum(
            rows * width * min(rows, width)
            for width in (r.enters.numel() // self.size for r in self.structure.readings)
        )
        affordable = min(int(DECOMPOSING / max(work, 1)), max(2048, 2 * self.samples.num) // max(rows, 1))
        return min(self.samples.num, max(FEW_POINTS, min(POINTS, affordable)))

    def are_dear(self) -> bool:
        """Whether derivatives cost more than ten passes over the data, and more than a moment."""
        if self._in_closed_form is not None or self.fixed_size:
            return False
        rows = self.num_outputs if self.num_outputs <= EXACT_OUTPUTS else PROJECTIONS
        backward = 2 * rows * self.num_points()
        products = sum(r.z.numel() * r.call.matrix.shape[1] for r in self.structure.readings) // self.size
        return backward > MOST_PASSES * self.samples.num and backward * products > DEAR

    def batches(self, size: int) -> Iterator[tuple[int, Samples]]:
        """All data in order: the number of the first row, and the rows."""
        for start, end in row_ranges(self.samples.num, size):
            yield start, self.samples.at(slice(start, end), self.streamed.dtype, self.streamed.device)

    def sums(self, size: int, heard: Callable[[Tensor, int], None]) -> list[LayerSums]:
        """All data once, without gradients; `heard` gets every batch of outputs with the number of its first row."""
        listener = SumOverData(self.samples.num, self.axes, self.structure.blocks())
        names = Names(self.streamed.module)
        with torch.no_grad(), threads_of_torch():
            for start, part in self.batches(size):
                if start:
                    give_back()
                heard(self.passed(part, names, listener, start=start, argument="x"), start)
        return listener.layers

    def passed(self, part: Samples, names: Names, listener: SumOverData, *, start: int, argument: str) -> Tensor:
        """The answer for a batch, which the listener hears.

        Raises:
            DataError: it fails, or is not finite; `start` is the number of its first row, `argument` what data came as.
        """
        listener.begin(part)
        where = f"diagnose(module, {argument})"
        return checked_answer(self.streamed, names, part, listener, where=where, start=start)

    def derivatives(self, num_points: int, size: int) -> Derivatives:
        """Derivatives at points spread evenly over the data."""
        rows, movement = spread_rows(self.samples.num, num_points), Movement.of(self.samples)
        if self._in_closed_form is not None:
            points = self.samples.at(rows, torch.float64, self.exact.device)
            with torch.no_grad():
                return self._in_closed_form(self.exact.module, points.positional[0], movement)
        parts: list[Derivatives] = []
        for part in rows.split(size):
            give_back()
            parts.append(self._derivatives_at(part, movement))
        found = joined(parts)
        if not found.is_reached and self._varies(rows):
            raise GradientsStop("derivatives by its inputs are 0 everywhere (detach, or steps), but its outputs vary")
        return found

    def _varies(self, rows: Tensor) -> bool:
        """Whether the answers for some rows differ."""
        with torch.no_grad():
            part = self.samples.at(rows, self.exact.dtype, self.exact.device)
            output = part.without_padding(self.exact(part).double())
            spread = (output - output.mean(0)).norm()
        return bool(spread > torch.finfo(torch.float32).eps * output.norm())

    def _derivatives_at(self, rows: Tensor, movement: Movement) -> Derivatives:
        points = self.samples.at(rows, self.exact.dtype, self.exact.device)
        leaves = [t.requires_grad_() for t in points.floats()]
        with torch.enable_grad():
            # a module may overwrite its input in place, which a leaf forbids
            positional = tuple(t.clone() if t.requires_grad else t for t in points.positional)
            named = {k: t.clone() if t.requires_grad else t for k, t in points.named.items()}
            taps = Taps()
            output = evaluate(self.exact, self.names, replace(points, positional=positional, named=named), taps)
            output, real = points.without_padding(output), self.samples.real_tokens
            if real is not None and output.shape[:2] == (points.num, real.shape[1]):
                output = output[:, real.any(0).to(output.device)]  # what all samples pad is no output
            return derivatives_at(output, leaves, taps, self.axes, points=points.num, movement=movement)


@contextmanager
def open_session(
    module: nn.Module, samples: Samples, *, exact: bool = True, at_once: bool = False
) -> Generator[DiagnosisSession]:
    """Finds how the module can be evaluated, and evaluates it on two samples; unless `exact`, without a float64 copy.

    With `at_once` on all samples, which then always come together: which layers run depends on them.

    Raises:
        DataError: the module fails on the data. ValueError: it has no product with a weight matrix.
    """
    with ExitStack() as stack:
        copy = float64_copy(module) if exact else None
        attempts: list[Callable[[], Replica]] = [] if copy is None else [lambda: copy]
        attempts.append(lambda: stack.enter_context(lent(module)))
        session, error = _first_that_works(attempts, samples, [samples.num] if at_once else [2, samples.num])
        if session is None:
            raise DataError(
                f"diagnose(module, x): running {type(module).__name__} on the first rows of x failed: "
                f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{whole_numbers(samples.tensors)}"
                f"{_of_one_size(error)}"
            ) from error
        if not session.structure.readings:
            raise ValueError(
                f"diagnose(module, x): needs a module that multiplies by weight matrices; none was seen while "
                f"{type(module).__name__} ran. Pass the original module, not a scripted or quantised one."
            )
        large = samples.num * sum(p.numel() for p in module.parameters()) > LARGE
        if large and session.exact.module is not module and not session.fixed_size:
            session.streamed = stack.enter_context(lent(module))
        if at_once:
            session.doubts = (AT_ONCE, *session.doubts)
        session.streamed.calls[:] = session.exact.calls[:] = [r.name for r in session.structure.readings]
        yield session


def _first_that_works(
    attempts: list[Callable[[], Replica]], samples: Samples, sizes: list[int]
) -> tuple[DiagnosisSession | None, BaseException | None]:
    error: BaseException | None = None
    opened: list[Replica] = []
    for size in dict.fromkeys(sizes):
        for i, attempt in enumerate(attempts):
            if i == len(opened):
                opened.append(attempt())
            try:
                return _looked_at(opened[i], samples, size), None
            except IsthmusError:
                raise
            except Exception as found:  # noqa: BLE001 - any error of a foreign module is reported in one line
                error = error if i == 0 and error is not None else found
    return None, error


def _looked_at(replica: Replica, samples: Samples, size: int) -> DiagnosisSession:
    names = Names(replica.module)
    part = samples.at(slice(0, size), replica.dtype, replica.device)
    with torch.no_grad():
        structure = Provenance(replica.module, [*part.positional, *part.named.values()])
        output = record(replica, names, part, structure)
        structure.end(output)
        fixed_size, doubts = size != 2, tuple(replica.noted)
        replica.check_rows(output, size, len(output) / size if output.ndim else 0.0)
        axes: list[int | None] = [0 if r.enters.shape[0] % size == 0 else None for r in structure.readings]
        if not fixed_size:
            more = samples.at(torch.tensor([0, 1, 0]), replica.dtype, replica.device)
            again = Provenance(replica.module, [*more.positional, *more.named.values()])
            give_back(structure.total_bytes)
            other = record(replica, names, more, again)
            replica.check_rows(other, 3, len(output) / size)
            doubts = (*replica.doubts(output, other), *doubts)
            if [r.name for r in structure.readings] != [r.name for r in again.readings]:
                raise _OneSize("which layers run depends on the data")
            shapes = [(r.enters.shape, s.enters.shape) for r, s in zip(structure.readings, again.readings, strict=True)]
            axes = axes_of(shapes, (2, 3))
        output = hollow(output)
    return DiagnosisSession(replica, replica, samples, names, structure, output, axes, size, fixed_size, doubts)


class _OneSize(RuntimeError):
    """A module that does otherwise with another number of rows: it is given all of them at once."""


def _of_one_size(error: BaseException | None) -> str:
    """What to do with a program that was exported for one number of rows."""
    is_guard = "Guard failed" in str(error)
    return " It was exported for one number of rows: export it with dynamic_shapes." if is_guard else ""
