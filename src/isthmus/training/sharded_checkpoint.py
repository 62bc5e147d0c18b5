"""The checkpoint of a fit whose parameters are split: each process writes its part, the first one says which count.

    NAME.parts.pt          which generation counts, of how many processes; written last
    NAME.<g>.<rank>.pt     what that process held; of the generation that counts, and for a moment of the next one

No process holds more than its part, and any number of processes may go on. One file for all: `fitting`, `checkpoint`.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from isthmus.errors import DataError
from isthmus.training.checkpoint import load_state, save_state
from isthmus.training.coordinates import MEMORY
from isthmus.training.fitting import CHECKPOINT_SECONDS, FitEvent, Fitting, Run
from isthmus.training.limits import Clock
from isthmus.training.result import FitResult, Outcome
from isthmus.training.sharded_vector import Split, SplitVector, plain
from isthmus.training.team import Team

_VECTOR, _PIECES = "split vector", "split pieces"


def run_with_checkpoint(fitting: Fitting, split: Split, path: Path | None) -> FitResult:
    """Run a fit of split parameters; with a path, from its checkpoint on, and with its state saved every few seconds.

    Args:
        fitting: of a `LayerwiseStep`, without a checkpoint of its own.
        split: of its vectors.
        path: the file that says which parts count; the parts lie beside it.

    Raises:
        DataError: a checkpoint of another fit, or a damaged one.
    """
    if path is None:
        return fitting.run()
    kept = _Kept(fitting, split, path)
    kept.restore()
    fitting.callback = kept
    result = fitting.run()
    if result.outcome not in {Outcome.INTERRUPTED, Outcome.TIME_LIMIT}:
        kept.remove()
    return result


class _Kept:
    """Hears every iteration, and saves when it is time."""

    def __init__(self, fitting: Fitting, split: Split, path: Path) -> None:
        self._fitting, self._split, self._path = fitting, split, path
        self._told, self._saved_at, self._generation = fitting.callback, time.monotonic(), 0

    def __call__(self, event: FitEvent) -> bool:
        fitting = self._fitting
        seconds = fitting.limits.seconds
        due, stop, late = self._split.team.agreed(
            time.monotonic() - self._saved_at > CHECKPOINT_SECONDS,
            bool(self._told and self._told(event)),
            bool(seconds is not None and fitting.clock.seconds() > seconds),
        )
        if due or stop or late:
            self._save()
        return stop

    def _part(self, generation: int, rank: int) -> Path:
        return self._path.with_name(f"{self._path.stem}.{generation}.{rank}{self._path.suffix}")

    def _save(self) -> None:
        fitting, team = self._fitting, self._split.team
        run = {name: getattr(fitting.run_state, name) for name in Run.__slots__}
        team.check_in_step(torch.tensor([fitting.run_state.evaluations(), run["history"][-1][1]], dtype=torch.float64))
        part = {"theta": packed(fitting.step.theta), "run": packed(run)}
        self._generation += 1
        new = self._part(self._generation, team.rank)
        team.together(lambda: save_state(new, part))
        head = {"stamp": fitting.stamp, "generation": self._generation, "processes": team.size}
        team.told_by_first(lambda: save_state(self._path, head | {"seconds": fitting.clock.seconds()}))
        team.told_by_first(self._remove_others)
        self._saved_at = time.monotonic()

    def restore(self) -> None:
        """Go on from the checkpoint, if there is one."""
        fitting, team = self._fitting, self._split.team
        head = team.told_by_first(lambda: load_state(self._path))
        if head is None:
            return
        if head["stamp"] != fitting.stamp:
            raise DataError(
                f"checkpoint {self._path}: belongs to another fit (data, ridge or solvers); give another file."
            )
        self._generation, before = head["generation"], head["processes"]
        state = team.together_own(lambda: self._joined(before))
        fitting.step.theta.copy_(state["theta"])
        fitting.run_state = Run(**state["run"])
        fitting.clock = Clock(head["seconds"])

    def _joined(self, processes: int) -> Mapping[str, Any]:
        """What this process is to hold, from the parts of so many."""
        theirs = [Split(self._split.size, Team(rank, processes)) for rank in range(processes)]
        needed = [split for split in theirs if set(split.pieces) & set(self._split.pieces)]
        return put_together([self._read(split) for split in needed], needed, self._split)

    def _read(self, split: Split) -> Mapping[str, Any]:
        state = load_state(self._part(self._generation, split.team.rank))
        if state is None:
            raise DataError(
                f"checkpoint {self._path}: the part of process {split.team.rank} of {split.team.size} is missing; "
                "delete the checkpoint to start over."
            )
        return state

    def remove(self) -> None:
        """Remove the checkpoint and its parts: a finished fit leaves nothing to go on from."""

        def act() -> None:
            self._path.unlink(missing_ok=True)
            self._generation = -1
            self._remove_others()

        self._split.team.told_by_first(act)

    def _remove_others(self) -> None:
        """Remove the parts of all generations but the one that counts."""
        mark = f".{self._generation}."
        for path in self._path.parent.glob(f"{self._path.stem}.*.*{self._path.suffix}"):
            if not path.name.removeprefix(self._path.stem).startswith(mark):
                path.unlink(missing_ok=True)


def packed(value: Any, name: str = "") -> Any:
    """A state in plain tensors, its split ones marked as such."""
    if isinstance(value, SplitVector):
        return {_VECTOR: plain(value)}
    if name == MEMORY:
        return {_PIECES: value}
    if isinstance(value, dict):
        return {key: packed(inner, key) for key, inner in value.items()}
    return tuple(packed(inner) for inner in value) if isinstance(value, tuple) else value


def put_together(values: Sequence[Any], held: Sequence[Split], wanted: Split) -> Any:
    """What `packed` made of a state in several processes, as the state of one with other coordinates.

    Args:
        values: packed states, of processes that follow one another.
        held: which coordinates each of them held.
        wanted: those of this process, among them.
    """
    first = values[0]
    if isinstance(first, tuple):
        return tuple(put_together(inner, held, wanted) for inner in zip(*values, strict=True))
    if not isinstance(first, dict):
        return first
    if _VECTOR in first:
        start = held[0].own.start
        whole = torch.cat([value[_VECTOR] for value in values])
        return SplitVector.of(whole[wanted.own.start - start : wanted.own.stop - start].clone(), wanted)
    if _PIECES in first:
        start = held[0].pieces.start
        return torch.cat([value[_PIECES] for value in values])[wanted.pieces.start - start : wanted.pieces.stop - start]
    return {key: put_together([value[key] for value in values], held, wanted) for key in first}
