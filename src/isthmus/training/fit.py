"""`fit`: run a schedule of solvers to a minimum of the penalised objective, and say how it ended."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from isthmus.errors import DataError, ShapeError
from isthmus.networks import FullyConnected
from isthmus.training.checkpoint import load_state, save_state
from isthmus.training.ending import finish
from isthmus.training.leaky_step import LeakyStep
from isthmus.training.limits import Clock, Limits
from isthmus.training.losses import DataLoss, Loss
from isthmus.training.moves import middle_rank
from isthmus.training.result import FitResult
from isthmus.training.schedule import Schedule, cheaper, default_schedule
from isthmus.training.solvers import Solver, State
from isthmus.training.steps import Step, step_of

CHECKPOINT_SECONDS = 5.0
RESCUE_RIDGE = 0.1  # the second attempt warms up with a tenth of the ridge: what collapses at full ridge survives there


@dataclass(slots=True)
class FitEvent:
    """What a callback sees after every iteration; returning True from the callback ends the fit, state saved.

    Attributes:
        network: being trained; read only.
        evaluations: gradient evaluations so far.
        total: about how many there will be.
        objective: at the last evaluation.
    """

    network: nn.Module
    evaluations: int
    total: int
    objective: float


@dataclass(slots=True)
class Run:
    """Everything of a running fit that a checkpoint holds, besides theta."""

    initial: Tensor
    attempt: int = 0
    phase: int = 0
    state: State | None = None
    before: int = 0  # evaluations of finished phases
    steps: int = 0
    history: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    rejected: tuple[Tensor, float] | None = None  # end of a collapsed first attempt

    def evaluations(self) -> int:
        """Gradient evaluations so far."""
        return self.before + (self.state["evaluations"] if self.state else 0)


def fit(  # noqa: PLR0913 - the arguments are a public contract
    network: nn.Module,
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    ridge: float,
    loss: str | Loss = Loss.SQUARED,
    solver: Solver | Schedule | None = None,
    sample_weight: ArrayLike | Tensor | None = None,
    seed: int | None = None,
    limits: Limits | None = None,
    checkpoint: str | Path | None = None,
    callback: Callable[[FitEvent], bool | None] | None = None,
) -> FitResult:
    """Train a network to a minimum of `data_loss + ridge * network.penalty()`, in place.

        data_loss = sum_i w_i |f(x_i) - y_i|^2   (w_i = 1/n unless given),  or the mean cross-entropy of logits

    Args:
        network: any module; `FullyConnected` has a step written by hand. Its parameters are changed.
        x: inputs (n, d_in), in the network's precision after conversion.
        y: targets (n, d_out), or class numbers (n,) for cross-entropy.
        ridge: total coefficient of the penalty, >= 0 (the paper's lambda / L for fully connected networks).
        loss: "squared" or "cross_entropy".
        solver: a solver or a tuple of them, run one after the other; see `training.schedule` for the default.
        sample_weight: non-negative weights (n,); normalised to sum 1.
        seed: new initial weights of a `FullyConnected`; None keeps the weights that it has.
        limits: seconds and gradient evaluations.
        checkpoint: a file that is written every few seconds; if it is there already, the fit goes on from it, bit for
            bit as if it had not stopped.
        callback: called after every iteration; returning True ends the fit with its state saved.

    Returns:
        The network with objective, stationarity and the reason why it ended. A network that collapsed or diverged is
        tried once more from the same start with a gentler warm-up; what is returned is the better end.

    Raises:
        ShapeError: x and y of different length, or not matching the network.
        ValueError: ridge < 0, an unknown loss, negative weights.
    """
    kind = Loss(loss) if loss in {l.value for l in Loss} else loss
    if not isinstance(kind, Loss):
        raise ValueError(f"fit(loss={loss!r}): needs one of {', '.join(repr(l.value) for l in Loss)}.")
    if not ridge >= 0:
        raise ValueError(f"fit(ridge={ridge}): needs a ridge >= 0.")
    if seed is not None:
        _reseed(network, seed)
    step = step_of(network, *_tensors(network, x, y, kind, sample_weight), ridge)
    schedule = solver if isinstance(solver, tuple) else (solver,) if solver else None
    chosen = schedule or default_schedule(network, evaluations=limits.evaluations if limits else None, ridge=ridge)
    with torch.no_grad():
        return _Fitting(step, chosen, limits or Limits(), Path(checkpoint) if checkpoint else None, callback).run()


class _Fitting:
    """One call of `fit`: the loop over phases, the clock, the checkpoint."""

    def __init__(
        self,
        step: Step,
        schedule: Schedule,
        limits: Limits,
        path: Path | None,
        callback: Callable[[FitEvent], bool | None] | None,
    ) -> None:
        self.step, self.schedule, self.limits, self.path, self.callback = step, schedule, limits, path, callback
        self.ridge = step.ridge
        self.total = sum(s.iterations() for s in schedule)
        self.stamp = _stamp(step, schedule)
        saved = load_state(path) if path else None
        if saved and saved["stamp"] != self.stamp:
            raise DataError(f"checkpoint {path}: belongs to another fit (data, ridge or solvers); give another file.")
        self.clock = Clock(saved["seconds"] if saved else 0.0)
        self.saved_at = time.monotonic()
        self.run_state = Run(step.theta.clone())
        if saved:
            step.theta.copy_(saved["theta"])
            for name, buffer in step.network.named_buffers():  # a solver may have moved what is no parameter
                buffer.copy_(saved["buffers"][name])
            if isinstance(step, LeakyStep):
                step.refresh()
            self.run_state = Run(**saved["run"])

    def run(self) -> FitResult:
        """Run all phases, once more from the start if they ended in a collapse, and report."""
        run = self.run_state
        reason = self._phases()
        if reason in {"", "converged", "plateau", "limit", "diverged"} and run.attempt == 0 and self._is_lost(reason):
            end = float("inf") if reason == "diverged" else self.step()
            run.rejected = (self.step.theta.clone(), end)
            self.step.theta.copy_(run.initial)
            run.attempt, run.phase, run.state, run.before = 1, 0, None, run.evaluations()
            reason = self._phases()
        # saved before the two attempts are compared: the checkpoint goes on from the parameters of this one
        if self.path and reason in {"interrupted", "time"}:
            self._save()
        elif self.path:
            self.path.unlink(missing_ok=True)  # a finished fit leaves nothing to go on from
        self.step.ridge = self.ridge  # a second attempt may have stopped in its gentler warm-up
        if run.rejected is not None and not self.step() < run.rejected[1]:
            self.step.theta.copy_(run.rejected[0])
        network = self.step.network
        return finish(
            self.step,
            reason=reason,
            evaluations=run.evaluations(),
            steps=run.steps,
            seconds=self.clock.seconds(),
            history=run.history,
            lost=self._is_lost(reason),
            rank=middle_rank(network) if isinstance(network, FullyConnected) else None,
        )

    def _phases(self) -> str:
        run = self.run_state
        schedule = cheaper(self.schedule, rate=1 / 3) if run.attempt else self.schedule
        reason = ""
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
            reason = run.state["reason"]
            run.before += run.state["evaluations"]
            run.state, run.phase = None, run.phase + 1
            if reason == "diverged":
                return reason
        self.step.ridge = self.ridge
        return reason

    def _after_iteration(self, run: Run) -> str:
        assert run.state is not None
        evaluations, value = run.evaluations(), run.state["value"]
        run.history.append((evaluations, value))
        if self.path and time.monotonic() - self.saved_at > CHECKPOINT_SECONDS:
            self._save()
        event = FitEvent(self.step.network, evaluations, self.total * (1 + run.attempt), value)
        if self.callback and self.callback(event):
            return "interrupted"
        if self.limits.seconds is not None and self.clock.seconds() > self.limits.seconds:
            return "time"
        if self.limits.evaluations is not None and evaluations >= self.limits.evaluations:
            return "limit"
        return ""

    def _save(self) -> None:
        assert self.path is not None
        run = {name: getattr(self.run_state, name) for name in Run.__slots__}
        buffers = dict(self.step.network.named_buffers())
        state: dict[str, Any] = {"theta": self.step.theta, "buffers": buffers, "run": run, "stamp": self.stamp}
        save_state(self.path, state | {"seconds": self.clock.seconds()})
        self.saved_at = time.monotonic()

    def _is_lost(self, reason: str) -> bool:
        """Whether the network diverged or computes a constant although its targets vary."""
        if reason == "diverged" or not bool(torch.isfinite(self.step.theta).all()):
            return True
        outputs = self.step.outputs()
        spread = float((outputs - outputs.mean(0)).square().sum(1).mean())
        return spread <= 1e-6 * _target_spread(self.step.data)


def _stamp(step: Step, schedule: Schedule) -> str:
    """What a checkpoint belongs to: data, ridge and the kinds of the solvers."""
    kinds = " ".join(type(solver).__name__ for solver in schedule)
    digest = hashlib.sha256(f"{step.ridge} {step.data.loss.value} {kinds}".encode())
    for tensor in (step.x, step.data.y, step.data.weight):
        if tensor is not None:
            digest.update(f"{tuple(tensor.shape)}".encode() + tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _target_spread(data: DataLoss) -> float:
    if data.loss is Loss.CROSS_ENTROPY:
        return 1.0 if len(data.y.unique()) > 1 else 0.0
    # strictly negative for constant targets, for which the constant network is the answer and not a collapse
    spread = float((data.y - data.y.mean(0)).square().sum(1).mean())
    return spread if spread > 0 else -1.0


def _tensors(
    network: nn.Module, x: ArrayLike | Tensor, y: ArrayLike | Tensor, loss: Loss, weight: ArrayLike | Tensor | None
) -> tuple[Tensor, DataLoss]:
    dtype = next(network.parameters()).dtype
    inputs = torch.as_tensor(x).to(dtype).contiguous()
    targets = torch.as_tensor(y)
    targets = targets.to(dtype) if loss is Loss.SQUARED else targets.long().reshape(-1)
    targets = targets[:, None] if loss is Loss.SQUARED and targets.ndim == 1 else targets.contiguous()
    if len(inputs) != len(targets) or len(inputs) == 0:
        raise ShapeError(f"fit(network, x, y): needs as many rows in x as in y, got {len(inputs)} and {len(targets)}.")
    # one column of y would be spread silently over all outputs
    outputs = network.dimensions[-1] if isinstance(network, FullyConnected) else getattr(network, "d_out", None)
    if outputs is not None and loss is Loss.SQUARED and targets.shape[1] != outputs:
        raise ShapeError(f"fit(network, x, y): the network has {outputs} outputs, y has {targets.shape[1]} columns.")
    if weight is None:
        return inputs, DataLoss(loss, targets)
    weights = torch.as_tensor(weight).to(dtype).reshape(-1)
    if len(weights) != len(inputs) or not bool((weights >= 0).all()) or not float(weights.sum()) > 0:
        raise ValueError("fit(sample_weight=...): needs one non-negative weight per row, not all zero.")
    return inputs, DataLoss(loss, targets, weights / weights.sum())


def _reseed(network: nn.Module, seed: int) -> None:
    if not isinstance(network, FullyConnected):
        raise ValueError(
            "fit(seed=...): new initial weights need a FullyConnected; seed other networks when making them."
        )
    d = network.dimensions
    fresh = FullyConnected(
        d[0], d[-1], width=d[1:-1], depth=network.depth, negative_slope=network.negative_slope, linear=network.linear,
        bias=network.has_bias, seed=seed, dtype=network.weights[0].dtype,
    )  # fmt: skip
    with torch.no_grad():
        for mine, theirs in zip(network.parameters(), fresh.parameters(), strict=True):
            mine.copy_(theirs)
