"""The checkpoint of a fit whose parameters are split: each process writes its part, the first one says which count.

    NAME.parts.pt          which generation counts, of how many processes; written last
    NAME.<g>.<rank>.pt     what that process held; of the generation that counts, and for a moment of the next one

`remove_checkpoint` removes both, once the result of the fit is safe.

No process holds more than its part, and any number of processes may go on. One file for all: `fitting`, `checkpoint`.
"""

import glob
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from isthmus.errors import CheckpointError, DamagedCheckpoint
from isthmus.training.checkpoint import load_state, save_state
from isthmus.training.ended import Ended, digest_of_start, is_end_of
from isthmus.training.fit_result import FitResult
from isthmus.training.fitting import CHECKPOINT_SECONDS, FitEvent, FitState, Fitting
from isthmus.training.limits import Clock
from isthmus.training.sharded.coordinates import MEMORY
from isthmus.training.sharded.team import Team
from isthmus.training.sharded.vector import Split, SplitVector, plain

_VECTOR, _PIECES = "split vector", "split pieces"


def run_with_checkpoint(fitting: Fitting, split: Split, path: Path | None) -> FitResult:
    """Run a fit of split parameters; with a path, from its checkpoint on, and with its state saved every few seconds.

    Args:
        fitting: of a `LayerwiseStep`, without a checkpoint of its own.
        split: of its vectors.
        path: the file that says which parts count; the parts lie beside it.

    Raises:
        CheckpointError: a checkpoint of another fit, or a damaged one (`DamagedCheckpoint`).
    """
    if path is None:
        return fitting.run()
    kept = _Kept(fitting, split, path)
    kept.restore()
    fitting.callback, fitting.at_end = kept, kept.save_end
    return fitting.run()


class _Kept:
    """Hears every iteration, and saves when it is time."""

    def __init__(self, fitting: Fitting, split: Split, path: Path) -> None:
        self._fitting, self._split, self._path = fitting, split, path
        self._told, self._saved_at, self._generation = fitting.callback, time.monotonic(), 0
        self._start = digest_of_start(fitting.step.theta)

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
        fitting = self._fitting
        run = {name: getattr(fitting.run_state, name) for name in FitState.__slots__}
        reached = [fitting.run_state.evaluations(), run["history"][-1][1]]
        self._split.team.check_in_step(torch.tensor(reached, dtype=torch.float64))
        self._write({"run": packed(run)}, {"seconds": fitting.clock.seconds()})

    def save_end(self, ended: Ended) -> None:
        """Keep the end until the caller has it on disk; of a fit of moments only in the place of what is there."""
        fitting, team = self._fitting, self._split.team
        if team.told_by_first(lambda: fitting.clock.seconds() > CHECKPOINT_SECONDS or self._path.exists()):
            ended["starts"] = [self._start, digest_of_start(fitting.run_state.initial)]
            self._write({}, {"ended": ended, "seconds": ended["seconds"]})

    def _write(self, part: Mapping[str, Any], head: Mapping[str, Any]) -> None:
        fitting, team = self._fitting, self._split.team
        self._generation += 1
        new, mark = self._part(self._generation, team.rank), self._mark(self._generation, team.rank)
        team.together(lambda: save_state(new, {"theta": packed(fitting.step.theta), "mark": mark, **part}))
        about = {"stamp": fitting.stamp, "generation": self._generation, "processes": team.size, **head}
        team.told_by_first(lambda: save_state(self._path, about))
        team.told_by_first(lambda: _remove_parts(self._path, but=self._generation))
        self._saved_at = time.monotonic()

    def restore(self) -> None:
        """Go on from the checkpoint, if there is one."""
        fitting, team = self._fitting, self._split.team
        head = team.told_by_first(lambda: load_state(self._path, renamed=True))
        if head is None:
            return
        ended: Ended | None = head.get("ended")
        if ended is not None and not is_end_of(head, stamp=fitting.stamp, call=fitting.call, start=self._start):
            self._generation = head["generation"]  # of another call: whoever made that has its result
            return
        if head["stamp"] != fitting.stamp:
            raise CheckpointError(
                f"checkpoint {self._path}: belongs to another fit (data, ridge or solvers); give another file."
            )
        self._generation, before = head["generation"], head["processes"]
        state = team.together_own(lambda: self._joined(before))
        fitting.step.theta.copy_(state["theta"])
        fitting.ended = ended
        fitting.run_state = fitting.run_state if ended else FitState(**state["run"])
        fitting.clock = Clock(head["seconds"])

    def _joined(self, processes: int) -> Mapping[str, Any]:
        """What this process is to hold, from the parts of so many."""
        theirs = [Split(self._split.size, Team(rank, processes)) for rank in range(processes)]
        needed = [split for split in theirs if set(split.pieces) & set(self._split.pieces)]
        return put_together([self._read(split) for split in needed], needed, self._split)

    def _read(self, split: Split) -> Mapping[str, Any]:
        rank, mark = split.team.rank, self._mark(self._generation, split.team.rank)
        state = load_state(self._part(self._generation, rank), renamed=True)
        if state is None or state.get("mark", mark) != mark:  # not noted by versions without a checksum
            fault = "is missing" if state is None else "is another one"
            raise DamagedCheckpoint(
                f"checkpoint {self._path}: the part of process {rank} of {split.team.size} {fault}; "
                "delete the checkpoint to start over."
            )
        return {name: state[name] for name in ("theta", "run") if name in state}

    def _mark(self, generation: int, rank: int) -> str:
        """By which a part is known: parts that were swapped fit together just as well."""
        return f"{self._fitting.stamp} {generation} {rank}"


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint and, of split parameters, its parts; for whoever has the result of the fit on disk."""
    path.unlink(missing_ok=True)
    _remove_parts(path, but=None)


def _remove_parts(path: Path, *, but: int | None) -> None:
    """Remove the parts of all generations but the one that counts."""
    for part in path.parent.glob(f"{glob.escape(path.stem)}.*.*{path.suffix}"):
        generation = part.name.removeprefix(f"{path.stem}.").partition(".")[0]
        if generation.isdecimal() and generation != str(but):
            part.unlink(missing_ok=True)


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
