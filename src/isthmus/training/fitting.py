"""The loop of a fit: phases, limits, checkpoint, the second attempt. Arguments are checked in `fit`."""

import hashlib
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from isthmus.errors import CheckpointError
from isthmus.training.checkpoint import State
from isthmus.training.ending import finish
from isthmus.training.fit_checkpoint import Ended, FitCheckpoint, digest_of_start, is_end_of, stamp_of_call
from isthmus.training.fit_result import FitResult, StopReason
from isthmus.training.limits import Clock, Limits, seconds_left
from isthmus.training.moves import rank_shown
from isthmus.training.sharded.coordinates import placed, with_memory
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.schedule import Schedule, cheaper
from isthmus.training.solvers.solver import Settling
from isthmus.training.steps.step import Step

CHECKPOINT_SECONDS = 5.0  # between two checkpoints, and
CHECKPOINT_PAUSE = 20.0  # so many times what the last one took: the pairs of a large network are a gigabyte
RESCUE_RIDGE = 0.1  # the second attempt warms up with a tenth of the ridge: what collapses at full ridge survives there


@dataclass(slots=True)
class FitEvent:
    """What a callback sees after every iteration; returning True from the callback ends the fit, state saved.

    Attributes:
        network: being trained; read only.
        evaluations: gradient evaluations so far.
        total: about how many there will be.
        objective: at the last evaluation.
        seconds_left: an estimate; None in the first seconds.
    """

    network: nn.Module
    evaluations: int
    total: int
    objective: float
    seconds_left: float | None = None


@dataclass(slots=True)
class FitState:
    """Everything of a running fit that a checkpoint holds, besides theta."""

    initial: Tensor
    attempt: int = 0
    phase: int = 0
    state: State | None = None
    before: int = 0  # evaluations of finished phases
    steps: int = 0
    history: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    rejected: tuple[Tensor, float] | None = None  # end of a collapsed first attempt
    initial_buffers: dict[str, Tensor] = field(default_factory=dict[str, Tensor])  # a solver may move them: steps
    rejected_buffers: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    reached: str = StopReason.NOTHING_BETTER.value  # why the last solver that moved to somewhere ended there

    def evaluations(self) -> int:
        """Gradient evaluations so far."""
        return self.before + (self.state["evaluations"] if self.state else 0)


@contextmanager
def without_denormals() -> Generator[None]:
    """Numbers below 1.2e-38 (float64: 2.2e-308) are 0 in what this thread computes inside the block.

    The penalty takes weights that the data do not need towards 0 without end. Once they, or the moments of their
    gradients, are denormal, the processor computes with them in microcode.
    """
    flushed_before = not bool(torch.tensor(1e-39, dtype=torch.float32, device="cpu") * 1.0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed_before)


class Fitting:
    """One call of `fit`: the loop over phases, the clock, the checkpoint."""

    def __init__(
        self,
        step: Step,
        schedule: Schedule,
        limits: Limits,
        kept: FitCheckpoint | None,
        callback: Callable[[FitEvent], bool | None] | None,
        *,
        team: Team | None = None,
    ) -> None:
        self.team = team or Team()
        self.step, self.schedule, self.limits, self.kept, self.callback = step, schedule, limits, kept, callback
        self.ridge = step.ridge
        self.total = sum(s.iterations() for s in schedule)
        self.stamp, self.call, self.start = stamp_of(step, schedule), stamp_of_call(schedule, limits), ""
        saved = self._saved(kept) if kept else None
        self.ended: Ended | None = saved.get("ended") if saved else None
        self.clock = Clock(saved["seconds"] if saved else 0.0)
        self.next_save = time.monotonic() + CHECKPOINT_SECONDS
        self.run_state = FitState(step.theta.clone(), initial_buffers=self._buffers())
        if saved:
            step.theta.copy_(saved["theta"])
            step.products.adopt(saved.get("products", {}))  # not noted by versions that always used torch.mm
            self._put_buffers(saved.get("buffers", {}))
        if saved and self.ended is None:
            self.run_state = run = FitState(**placed(saved["run"], step.theta.device))
            run.state = with_memory(run.state, step.coordinates.own) if run.state is not None else None

    def _saved(self, kept: FitCheckpoint) -> State | None:
        """What is kept of this fit; None where there is nothing, or the end of another."""
        self.start = digest_of_start(self.step.theta)
        head = kept.head()
        if head is None:
            return None
        if "ended" in head:  # if of another call, whoever made that has its result
            if not is_end_of(head, stamp=self.stamp, call=self.call, start=self.start):
                return None
        elif head["stamp"] != self.stamp:
            raise CheckpointError(
                f"checkpoint {kept.path}: belongs to another fit (data, ridge or solvers); give another file."
            )
        return head | kept.rest(head, self.start)

    @without_denormals()
    def run(self) -> FitResult:
        """Run all phases, once more from the start if they ended in a collapse, and report."""
        ended = self.ended or self._to_the_end()
        reason = StopReason(ended["reason"])
        return finish(
            self.step,
            reason=reason,
            evaluations=ended["evaluations"],
            steps=ended["steps"],
            seconds=ended["seconds"],
            history=ended["history"],
            lost=self._is_lost(reason),
            rank=rank_shown(self.step.network),
        )

    def _to_the_end(self) -> Ended:
        run = self.run_state
        reason = self._phases()
        if not reason.is_stop and run.attempt == 0 and self._is_lost(reason):
            end = float("inf") if reason is StopReason.DIVERGED else self.step()
            run.rejected, run.rejected_buffers = (self.step.theta.clone(), end), self._buffers()
            self.step.theta.copy_(run.initial)
            self._put_buffers(run.initial_buffers)
            run.attempt, run.phase, run.state, run.before = 1, 0, None, run.evaluations()
            reason = self._phases()
        # saved before the two attempts are compared: the checkpoint goes on from the parameters of this one
        if self.kept and reason.is_stop:
            self._save(self.kept)
        self.step.ridge = self.ridge  # a second attempt may have stopped in its gentler warm-up
        self._settle()
        if run.rejected is not None and not self.step() < run.rejected[1]:
            self.step.theta.copy_(run.rejected[0])
            self._put_buffers(run.rejected_buffers)
        ended = Ended(
            call=self.call, starts=[], reason=reason.value, evaluations=run.evaluations(), steps=run.steps,
            seconds=self.clock.seconds(), history=run.history,
        )  # fmt: skip
        if self.kept and not reason.is_stop:
            self._save_end(self.kept, ended)
        return ended

    def _buffers(self) -> dict[str, Tensor]:
        return {name: buffer.clone() for name, buffer in self.step.network.named_buffers()}

    def _put_buffers(self, saved: dict[str, Tensor]) -> None:
        """A solver may have moved what is no parameter; what an older version did not keep stays."""
        for name, buffer in self.step.network.named_buffers():
            if name in saved:
                buffer.copy_(saved[name])
        self.step.refresh()

    def _settle(self) -> None:
        """Where a limit ended the fit between two minima of its solver, or in a trial, go back to what it had."""
        run = self.run_state
        solver = self.schedule[run.phase] if run.phase < len(self.schedule) else None
        if isinstance(solver, Settling) and run.state is not None:
            solver.settle(self.step, run.state)

    def _phases(self) -> StopReason:
        run = self.run_state
        schedule = cheaper(self.schedule, rate=1 / 3) if run.attempt else self.schedule
        # gone on from the very iteration that reached the limit: it was saved there, and ended before that was
        if run.state is not None and self._is_spent(run):
            return StopReason.LIMIT
        while run.phase < len(schedule):
            solver = schedule[run.phase]
            # a schedule of one phase has no warm-up that could be gentler: it must minimise the objective itself
            gentle = run.attempt and run.phase == 0 and len(schedule) > 1
            self.step.ridge = self.ridge * (RESCUE_RIDGE if gentle else 1.0)
            if run.state is None:
                run.state = solver.start(self.step)
            while not run.state["done"]:
                solver.advance(self.step, run.state)
                run.steps += 1
                if stop := self._after_iteration(run):
                    return stop
            reason = StopReason(run.state["reason"])
            if reason is not StopReason.NOTHING_BETTER:
                run.reached = reason.value
            run.before += run.state["evaluations"]
            run.state, run.phase = None, run.phase + 1
            if reason is StopReason.DIVERGED:
                return reason
        self.step.ridge = self.ridge
        return StopReason(run.reached)

    def _after_iteration(self, run: FitState) -> StopReason | None:
        assert run.state is not None
        evaluations, value = run.evaluations(), run.state["value"]
        run.history.append((evaluations, value))
        total = self._expected(run)
        left = seconds_left(self.clock.seconds(), done=evaluations, total=total, limit=self.limits.seconds)
        event = FitEvent(self.step.network, evaluations, total, value, left)
        save, stop, late = self.team.agreed(
            bool(self.kept and time.monotonic() > self.next_save),
            bool(self.callback and self.callback(event)),
            bool(self.limits.seconds is not None and self.clock.seconds() > self.limits.seconds),
        )
        if save and self.kept:
            self._save(self.kept)
        if stop:
            return StopReason.INTERRUPTED
        if late:
            return StopReason.TIME
        return StopReason.LIMIT if self._is_spent(run) else None

    def _is_spent(self, run: FitState) -> bool:
        return self.limits.evaluations is not None and run.evaluations() >= self.limits.evaluations

    def _expected(self, run: FitState) -> int:
        """About how many gradients the fit takes in the end; more once a phase knows that it takes longer."""
        assert run.state is not None
        total = max(self.total * (1 + run.attempt), run.before + run.state.get("expected", 0))
        return total if self.limits.evaluations is None else min(total, self.limits.evaluations)

    def _save(self, kept: FitCheckpoint) -> None:
        began = time.monotonic()
        run = {name: getattr(self.run_state, name) for name in FitState.__slots__}
        if run["state"] is not None:
            run["state"] = with_memory(run["state"], self.step.coordinates.whole)
        kept.write(self._described() | {"run": run, "seconds": self.clock.seconds()})
        now = time.monotonic()
        self.next_save = now + max(CHECKPOINT_SECONDS, CHECKPOINT_PAUSE * (now - began))

    def _save_end(self, kept: FitCheckpoint, ended: Ended) -> None:
        """Keep the end until the caller has it on disk; of a fit of moments only in the place of what is there."""
        if self.team.told_by_first(lambda: self.clock.seconds() > CHECKPOINT_SECONDS or kept.path.exists()):
            # both: it may have been gone on with from another network than it began with
            ended["starts"] = [self.start, digest_of_start(self.run_state.initial)]
            kept.write(self._described() | {"ended": ended, "seconds": ended["seconds"]})

    def _described(self) -> State:
        buffers = dict(self.step.network.named_buffers())
        products = self.step.products.chosen()
        return {"theta": self.step.theta, "buffers": buffers, "stamp": self.stamp, "products": products}

    def _is_lost(self, reason: StopReason) -> bool:
        """Whether the network diverged or computes a constant although its targets vary."""
        if reason is StopReason.DIVERGED or not bool(torch.isfinite(self.step.theta).all()):
            return True
        return self.step.computes_constant()


def stamp_of(step: Step, schedule: Schedule) -> str:
    """What a checkpoint belongs to: data, ridge and the kinds of the solvers."""
    kinds = " ".join(type(solver).__name__ for solver in schedule)
    digest = hashlib.sha256(f"{step.ridge} {step.data.loss.name} {kinds}".encode())
    step.identify(digest)
    return digest.hexdigest()
