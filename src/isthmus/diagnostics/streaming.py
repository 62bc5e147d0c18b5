"""A diagnosis by forward passes alone, over data that come batch by batch and need not fit in memory.

With derivatives, of data in memory: `diagnose`. What is summed: `layer_sums`.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch

from isthmus.diagnostics.budget import Budget, give_back, streaming_budget
from isthmus.diagnostics.kept_sums import KeptSums
from isthmus.diagnostics.layer_sums import LayerSums, SumOverData
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.narrow_places import CutPlan, plan_cuts
from isthmus.diagnostics.rank import NO_LAYER, UpperBound, upper_bound
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import DiagnosisSession
from isthmus.errors import CheckpointError, DataError
from isthmus.tasks.arrays import counted
from isthmus.theory import RankEstimate
from isthmus.training.limits import Limits
from isthmus.training.threads import threads_of_torch

LEAST = 2  # rows, by which a module is looked at
# read ahead of the passes, for cuts: 32 rows that judge, and as many that choose directions as are enough
AHEAD, AHEAD_BYTES = 160, 64 * 2**20
HEARD_EVERY = 5.0  # seconds between two sentences of progress


@dataclass(frozen=True, slots=True)
class Stream:
    """Data that come batch by batch.

    Attributes:
        first: the first batch, or as many as have two rows, by which the module is looked at.
        others: the batches after it, once.
        few: rows by which it is cut; the first batches together where these are small.
        total: samples in all; None where nobody knows.
    """

    first: Samples
    others: Iterator[Samples]
    few: Samples
    total: int | None = None

    @classmethod
    def of_samples(cls, samples: Samples) -> "Stream":
        """Data in memory as one batch, which is cut as memory asks."""
        return cls(samples, iter(()), samples, samples.num)

    @classmethod
    def of_batches(cls, batches: Iterable[object], limits: Limits) -> "Stream":
        """What a DataLoader or any iterable of batches gives: tensors, tuples, dicts; of a list only its first entry.

        A list is what a DataLoader makes of (input, target): the target has no part in a forward pass.

        Raises:
            DataError: no batch comes, there are fewer than 2 rows, or the loader fails.
        """
        found = _batches(batches)
        first = next(found, None)
        if first is None:
            raise DataError("diagnose(module, data): the loader gave no batch. Is its data set empty?")
        while first.num < LEAST and (after := next(found, None)) is not None:
            first = first.with_rows(after)
        if first.num < LEAST:
            raise DataError(f"diagnose(module, data): needs at least {LEAST} rows of finite numbers, got one.")
        # what a limit may leave unread is not read ahead
        wanted = first.num if limits.seconds is not None else min(limits.rows or AHEAD, AHEAD)
        few, ahead = first, list[Samples]()
        while few.num < wanted and few.num_bytes < AHEAD_BYTES and (after := next(found, None)) is not None:
            ahead.append(after)
            if not few.is_like(after):
                break
            few = few.with_rows(after)
        return cls(first, chain(ahead, found), few)


def is_stream(x: object) -> bool:
    """Whether data come batch by batch: an iterable that is no array, tensor, tuple, list or mapping of them."""
    # what tokenizers of transformers give is a mapping, and no dict
    is_whole = isinstance(x, torch.Tensor | tuple | list | Mapping) or hasattr(x, "shape")
    return isinstance(x, Iterable) and not is_whole


def _batches(batches: Iterable[object]) -> Iterator[Samples]:
    """Each batch as samples; what a foreign loader raises in one line, with how far it came."""
    number = rows = 0
    found: Iterator[object] | None = None
    while True:
        try:
            found = iter(batches) if found is None else found
            batch = next(found)
        except StopIteration:
            return
        except Exception as error:
            raise DataError(
                f"diagnose(module, data): the loader failed behind {number:,} batches ({counted(rows, 'row')})"
                f": {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            ) from error
        part = Samples.of(batch[0] if isinstance(batch, list) and batch else batch, least=1)
        number, rows = number + 1, rows + part.num
        yield part


@dataclass(slots=True, eq=False)
class Streamed:
    """What forward passes over a stream have shown.

    Attributes:
        layers: the sums over the data.
        num: samples that were seen.
        ended: why the end came before that of the data; empty where it did not.
        cost: what was announced.
        plan: where memory allows cuts.
        num_outputs: numbers that come out for a sample, of the batch in which these are most; padding left out.
    """

    layers: list[LayerSums]
    num: int
    ended: str
    cost: str
    plan: CutPlan
    num_outputs: int


def streamed(
    session: DiagnosisSession,
    stream: Stream,
    limits: Limits,
    *,
    progress: Callable[[str], None],
    checkpoint: Path | None = None,
) -> Streamed:
    """All batches once, without gradients, up to a limit of rows or seconds.

    Args:
        session: the module, looked at.
        stream: the data.
        limits: of memory, rows and seconds.
        progress: hears what it will cost, and every few seconds how far it came.
        checkpoint: a file in which the sums are kept, and from which they are gone on with; None: nowhere.

    Raises:
        DataError: the module fails on a batch or returns NaN; `limits.memory` is too small. CheckpointError: the
            checkpoint is damaged or another's.
    """
    structure = session.structure
    budget = streaming_budget(
        structure.readings, live=session.live_bytes(), memory=limits.memory, samples_seen=session.size,
        total=stream.total, blocks=structure.blocks(), is_masked=stream.first.real_tokens is not None,
    )  # fmt: skip
    plan = plan_cuts(session, stream.few, budget)
    cost = _announcement(budget, plan, stream, len(structure.readings))
    progress(cost)
    kept = None if checkpoint is None else KeptSums(checkpoint, session.streamed.module, stream.total)
    with torch.no_grad(), threads_of_torch():
        passes = _Passes(session, SumOverData(stream.total, session.axes, structure.blocks()), kept)
        ended = passes.over(_parts(session, stream, budget), limits, progress)
    give_back()  # what the last batch left free is announced for the decompositions again: they took 280 MiB of 241
    return Streamed(
        passes.listener.layers, passes.num, ended, cost, plan, max(passes.most_outputs, session.num_outputs)
    )


class _Passes:
    """Batches through a module, from where sums that were kept have come to."""

    def __init__(self, session: DiagnosisSession, listener: SumOverData, kept: KeptSums | None) -> None:
        self._session, self.listener, self._kept = session, listener, kept
        self._names = Names(session.streamed.module)
        self.num, self.most_outputs = (0, 0) if kept is None else (kept.num, kept.most_outputs)

    def over(self, parts: Iterator[Samples], limits: Limits, progress: Callable[[str], None]) -> str:
        """Pass them, up to a limit of rows or seconds; returns where that ended them, or nothing.

        Raises:
            CheckpointError: what was kept is not of these data, or of more rows than may be read.
        """
        most = math.inf if limits.rows is None else limits.rows
        if self.num > most:
            raise CheckpointError(f"diagnose(limits=Limits(rows={most})): the checkpoint holds {self.num:,} rows.")
        ended, begin = "", time.monotonic()
        heard = begin
        for part in parts if self._kept is None else self._behind(parts, self._kept, progress):
            new = part.first(int(min(part.num, most - self.num)))
            if new.num:
                self._pass(new)
            seconds = time.monotonic() - begin
            if new.num < part.num:
                ended = f"at the limit of {limits.rows:,} rows"
            elif limits.seconds is not None and seconds >= limits.seconds:
                ended = f"at the limit of {limits.seconds:g} seconds"
            if ended:
                break
            if self._kept is not None and self._kept.is_due():
                self._write(self._kept)
            if begin + seconds - heard >= HEARD_EVERY:
                progress(f"diagnose: {self.num:,} rows in {seconds:.0f} s")
                heard = begin + seconds
        if self._kept is not None:
            self._kept.end()
            self._write(self._kept)
        return ended

    def _pass(self, part: Samples) -> None:
        if self._kept is not None:
            self._kept.note(part)
        output = self._session.passed(part, self._names, self.listener, start=self.num, argument="data")
        self.most_outputs = max(self.most_outputs, part.numbers_in(output, part.num))
        self.num += part.num

    def _behind(self, parts: Iterator[Samples], kept: KeptSums, progress: Callable[[str], None]) -> Iterator[Samples]:
        """What is left of the batches behind the rows that are in the sums."""
        if kept.num:
            progress(f"diagnose: goes on behind {kept.num:,} rows, which {kept.path} holds.")
        for part in parts:
            if kept.num and not self.listener.layers:
                again = part.at(slice(0, part.num), None, self._session.streamed.device)
                self._session.passed(again, self._names, self.listener, start=0, argument="data")
                kept.restore(self.listener)
            if (new := kept.unseen(part)).num:
                yield new

    def _write(self, kept: KeptSums) -> None:
        kept.write(self.listener, num=self.num, most_outputs=self.most_outputs)


def _parts(session: DiagnosisSession, stream: Stream, budget: Budget) -> Iterator[Samples]:
    """The batches, cut where they are larger than memory allows, where and in what type the module takes them."""
    replica = session.streamed
    for place, batch in enumerate(_all(stream)):
        size = batch.num if session.fixed_size else min(budget.batch, stream.first.num)
        for start in range(0, batch.num, size):
            if place or start:
                give_back()
            yield batch.at(slice(start, min(start + size, batch.num)), replica.dtype, replica.device)


def _all(stream: Stream) -> Iterator[Samples]:
    yield stream.first
    yield from stream.others


def _announcement(budget: Budget, plan: CutPlan, stream: Stream, layers: int) -> str:
    known = "samples as they come" if stream.total is None else f"{stream.total:,} samples"
    size = min(budget.batch, stream.first.num)
    peak = (budget.fixed + max(size * budget.per_sample, plan.needs, budget.closing)) / 2**20
    return (
        f"diagnose: {counted(layers, 'layer')} on {known}, at most {size:,} at a time, by forward passes alone: "
        f"no Jacobians; at "
        f"most {peak:,.1f} MiB of working memory."
    )


def rank_without_jacobians(
    session: DiagnosisSession, found: Streamed, gaps: list[int | None], *, num_inputs: int | None
) -> RankEstimate:
    """What spectra suggest: the least gap of the layers through which all of a sample passes at once.

    Between nothing and what the matrices allow, before a cut has judged it. No estimate where no such layer has a gap,
    or only beyond what the matrices allow: what these allow, or the size of the output, is no reading.
    """
    cuts = session.structure.cuts()
    upper: UpperBound = upper_bound(
        found.layers, cuts, num_samples=found.num, num_inputs=num_inputs, num_outputs=found.num_outputs
    )
    # rows that are tokens or pixels count what a token or a pixel shows, which is no rank of samples
    of_samples = {i for i in cuts if found.layers[i].rows == found.num}
    known = [gap for i, gap in enumerate(gaps) if gap is not None and i in of_samples and gap <= upper.rank]
    return RankEstimate(
        estimate=min(known, default=None),
        missing="" if known else NO_LAYER,
        lower=0,
        upper=upper.rank,
        lower_reason="no Jacobian was taken, so nothing is known from below",
        upper_reason=upper.reason,
        tolerance=0.0,
        evidence={"activation_gaps": gaps},
    )
