"""Adam and L-BFGS on many networks at once: the arithmetic of `solvers`, row by row, and each row stops on its own.

The settings are those of the solvers for one network. What they work on: `batched.batch_step`.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from isthmus.training.batched.batch_step import BatchedStep
from isthmus.training.checkpoint import State
from isthmus.training.ending import default_tolerance
from isthmus.training.fit_result import StopReason
from isthmus.training.solvers.line_search import Point, wolfe_steps
from isthmus.training.solvers.solver import LBFGS, Adam

Search = Generator[float, tuple[float, float], Point | None]


@dataclass(slots=True)
class Member:
    """One network of a batch while a solver runs.

    Attributes:
        index: which network of the call.
        reason: why the solver ended; `STEPS_MADE` also while it runs.
        done: whether it ended.
        value: objective.
        evaluations: gradient evaluations of this solver.
        history: (evaluations before and in this solver, objective) after each iteration.
        before: evaluations of earlier solvers.
        looked: what the prospect of the solver was last asked with.
    """

    index: int
    before: int = 0
    reason: StopReason = StopReason.STEPS_MADE
    done: bool = False
    value: float = math.nan
    evaluations: int = 0
    count: int = 0
    failures: int = 0
    past: list[float] = field(default_factory=list[float])
    looked: State = field(default_factory=dict)
    history: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    search: Search | None = None
    length: float = 0.0
    tried: float = math.nan
    settling: Point | None = None

    def restart(self) -> None:
        """Before another solver: what the last one used is spent."""
        self.before += self.evaluations
        self.reason, self.done, self.evaluations = StopReason.STEPS_MADE, False, 0
        self.count, self.failures, self.past, self.looked = 0, 0, [], {}

    def end(self, reason: StopReason) -> None:
        """The solver has nothing left to do for this network."""
        self.done, self.reason, self.search, self.length = True, reason, None, 0.0

    def note(self) -> None:
        """Remember the objective after an iteration."""
        self.history.append((self.before + self.evaluations, self.value))


def run_adam(settings: Adam, step: BatchedStep, members: list[Member]) -> None:
    """All steps of Adam on every row; a row that diverges stays where it was."""
    first, second = torch.zeros_like(step.theta), torch.zeros_like(step.theta)
    for t in range(1, settings.steps + 1):
        values = step().tolist()
        for member, value in zip(members, values, strict=True):
            if member.done:
                continue
            member.value, member.evaluations = value, t
            member.note()
            if not math.isfinite(value):
                member.end(StopReason.DIVERGED)
        rate = settings.rate_at(t)
        first.lerp_(step.gradient, 0.1)
        second.mul_(0.999).addcmul_(step.gradient, step.gradient, value=0.001)
        scale = (second / (1 - 0.999**t)).sqrt_().add_(1e-8)
        step.theta.addcdiv_(first, scale, value=-rate / (1 - 0.9**t))
        if settings.moves and t % settings.move_every == 0:
            step.rebalance()
    for member in members:
        member.done = True


class BatchedLBFGS:
    """L-BFGS on every row, each with its own line search; evaluations are shared.

    All rows are evaluated together, each at the trial of its own search. Rows that have ended are left out as soon as
    they are half of all.
    """

    def __init__(self, settings: LBFGS, step: BatchedStep, members: list[Member]) -> None:
        self.settings, self.step, self.members = settings, step, members
        size, m = len(members), settings.history
        self.pairs = step.theta.new_zeros(size, 2 * m, step.theta.shape[1])
        self.gram = np.zeros((size, 2 * m, 2 * m))
        for member, value in zip(members, step().tolist(), strict=True):
            member.value, member.evaluations, member.past = value, 1, [value]
        self.gradient, self.origin = step.gradient.clone(), step.theta.clone()
        self.direction = torch.zeros_like(step.theta)
        self._aim(list(range(size)))

    def run(self, end: Tensor) -> None:
        """Until every row has ended; row i of `end` receives the parameters of the member with index i."""
        while True:
            running = [b for b, member in enumerate(self.members) if not member.done]
            if len(running) <= len(self.members) // 2:
                for b, member in enumerate(self.members):
                    if member.done:
                        end[member.index] = self.origin[b]
                if not running:
                    return
                self._keep(running)
            self._tick()

    def _keep(self, rows: list[int]) -> None:
        chosen = torch.tensor(rows)
        self.step.theta.copy_(self.origin)
        self.step = self.step.some(chosen)
        self.members = [self.members[b] for b in rows]
        self.pairs, self.gram = self.pairs[chosen], self.gram[rows]
        self.gradient, self.origin, self.direction = (
            tensor[chosen] for tensor in (self.gradient, self.origin, self.direction)
        )

    def _tick(self) -> None:
        """One evaluation of all rows, and what follows from it for each."""
        step, device = self.step, self.origin.device
        lengths = torch.tensor([m.length for m in self.members], dtype=self.origin.dtype, device=device)
        torch.addcmul(self.origin, self.direction, lengths[:, None], out=step.theta)
        values, slopes = step().tolist(), (step.gradient * self.direction).sum(1).tolist()
        arrived: list[int] = []
        lost: list[int] = []
        for b, member in enumerate(self.members):
            if member.done:
                continue
            member.evaluations += 1
            if member.settling is not None:
                arrived.append(b)
            elif member.search is None:
                lost.append(b)  # evaluated again where it was, after a failed search
                member.value = values[b]
            elif self._searched(member, values[b], slopes[b]):
                arrived.append(b)
        self._arrive(arrived)
        self.gradient[lost] = step.gradient[lost]
        for b in arrived + lost:
            self.members[b].note()
        self._aim([b for b in arrived + lost if not self.members[b].done])

    def _searched(self, member: Member, value: float, slope: float) -> bool:
        """Tell the search of a row what was found; True if its point is the one that was just evaluated."""
        assert member.search is not None
        member.tried = member.length
        try:
            member.length = member.search.send((value, slope))
            return False
        except StopIteration as end:
            member.search = None
            member.settling = end.value
        if member.settling is None:
            member.length = 0.0
            member.failures += 1
            if member.failures > 1 or member.count == 0:
                member.reason = StopReason.PLATEAU  # ends after one more evaluation, as the solver for one network
            member.count = 0
            return False
        member.length = member.settling.step
        return member.tried == member.settling.step

    def _arrive(self, rows: list[int]) -> None:
        """Rows whose search has ended: remember the pair, move on, judge."""
        if not rows:
            return
        step, theta = self.step, self.step.theta
        moved, change = theta - self.origin, step.gradient - self.gradient
        curvature, length = (moved * change).sum(1).tolist(), moved.square().sum(1).tolist()
        kept = [b for b in rows if curvature[b] > 1e-10 * length[b]]
        self._remember(kept, moved, change)
        self.origin[rows], self.gradient[rows] = theta[rows], step.gradient[rows]
        force, size = step.gradient.norm(dim=1).tolist(), theta.norm(dim=1).tolist()
        ridges = step.ridges[:, 0].tolist()
        for b in rows:
            member = self.members[b]
            assert member.settling is not None
            member.value, member.settling, member.failures, member.length = member.settling.value, None, 0, 0.0
            pull = 2 * ridges[b] * size[b]
            self._judge(member, force[b] / pull if pull else math.nan)

    def _judge(self, member: Member, stationarity: float) -> None:
        settings, past = self.settings, member.past
        past.append(member.value)
        if len(past) > settings.window:
            past.pop(0)
            if past[0] - past[-1] <= settings.plateau * abs(past[-1]):
                member.end(StopReason.PLATEAU)
        if stationarity <= (settings.tolerance or default_tolerance(self.origin.dtype)):
            member.end(StopReason.CONVERGED)
        elif member.evaluations >= settings.evaluations or self._lacks_prospect(member):
            member.end(member.reason or StopReason.LIMIT)

    def _lacks_prospect(self, member: Member) -> bool:
        member.looked |= {"evaluations": member.evaluations, "value": member.value}
        return self.settings.prospect.looks_at(member.looked, allowed=self.settings.evaluations)

    def _remember(self, rows: list[int], moved: Tensor, change: Tensor) -> None:
        if not rows:
            return
        m = self.settings.history
        slots = [self.members[b].count % m for b in rows]
        self.pairs[rows, slots], self.pairs[rows, [m + i for i in slots]] = moved[rows], change[rows]
        products = torch.bmm(self.pairs, torch.stack([moved, change], 2)).double().cpu().numpy()
        for b, i in zip(rows, slots, strict=True):
            for column, row in ((0, i), (1, m + i)):
                self.gram[b, row] = self.gram[b, :, row] = products[b, :, column]
            self.members[b].count += 1

    def _aim(self, rows: list[int]) -> None:
        """New directions and searches for some rows; rows that cannot go on end."""
        for b in [b for b in rows if self.members[b].reason is StopReason.PLATEAU]:
            self.members[b].end(StopReason.PLATEAU)
        rows = [b for b in rows if not self.members[b].done]
        if not rows:
            return
        found = self._directions()
        slopes = (found * self.gradient).sum(1).tolist()
        for b in [b for b in rows if not slopes[b] < 0]:
            self.members[b].count = 0
            found[b] = -self.gradient[b]
            slopes[b] = -float(torch.dot(self.gradient[b], self.gradient[b]))
        self.direction[rows] = found[rows]
        sums = found.abs().sum(1).tolist()
        eps = torch.finfo(found.dtype).eps
        for b in rows:
            member, slope = self.members[b], slopes[b]
            if slope == 0 or not math.isfinite(slope) or not math.isfinite(member.value):
                member.end(StopReason.CONVERGED if slope == 0 else StopReason.DIVERGED)
                continue
            first = 1.0 if member.count else min(1.0, 1.0 / sums[b])
            noise = 4 * eps * abs(member.value)
            member.search = wolfe_steps(value=member.value, slope=slope, step=first, noise=noise)
            member.length = next(member.search)

    def _directions(self) -> Tensor:
        """As `LBFGS._direction`, for all rows: the two loops run over the age of the pairs."""
        m, size = self.settings.history, len(self.members)
        counts = np.array([member.count for member in self.members])
        kept = np.minimum(counts, m)
        if not kept.any():
            return -self.gradient
        gram, every = self.gram, np.arange(size)
        inner = torch.bmm(self.pairs, self.gradient[:, :, None])[:, :, 0].double().cpu().numpy()
        c, of_gradient = np.zeros((size, 2 * m)), np.full(size, -1.0)
        alphas = np.zeros((size, m))

        def quotient(row: np.ndarray, i: np.ndarray) -> np.ndarray:
            """(pair i of `row` . current vector) / (curvature of pair i), 0 where a row has no pair of this age."""
            top = np.einsum("bj,bj->b", gram[every, row], c) + of_gradient * inner[every, row]
            below = gram[every, i, m + i]
            return np.divide(top, below, out=np.zeros(size), where=exists)

        for age in range(int(kept.max())):
            exists, i = age < kept, (counts - 1 - age) % m
            alphas[:, age] = quotient(i, i)
            c[every, m + i] -= alphas[:, age]
        newest, has = (counts - 1) % m, kept > 0
        curvature, square = gram[every, newest, m + newest], gram[every, m + newest, m + newest]
        scale = np.divide(curvature, square, out=np.ones(size), where=has)
        c, of_gradient = c * scale[:, None], of_gradient * scale
        for age in range(int(kept.max()) - 1, -1, -1):
            exists, i = age < kept, (counts - 1 - age) % m
            c[every, i] += np.where(exists, alphas[:, age] - quotient(m + i, i), 0.0)
        weights = torch.from_numpy(np.column_stack([c, of_gradient])).to(self.gradient)
        part = torch.bmm(weights[:, None, :-1], self.pairs)[:, 0]
        return part.addcmul_(self.gradient, weights[:, -1:])
