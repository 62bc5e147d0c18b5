"""The checkpoint of a fit whose parameters are split: each process writes its part, the first one says which count.

    NAME.parts.pt          which generation counts, of how many processes; written last
    NAME.<g>.<rank>.pt     what that process held; of the generation that counts, and for a moment of the next one

`remove_checkpoint` removes both, once the result of the fit is safe.

No process holds more than its part, and any number of processes may go on. One file for all: `fit_checkpoint`.
"""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from isthmus.errors import DamagedCheckpoint
from isthmus.training.checkpoint import State, load_state, save_state
from isthmus.training.sharded.coordinates import MEMORY, Split
from isthmus.training.sharded.team import Team
from isthmus.training.sharded.vector import SplitVector, plain

_VECTOR, _PIECES = "split vector", "split pieces"


class CheckpointParts:
    """A file for each process of the team that a vector is split by, and one that says which of them count.

    Args:
        path: the file that says so; the parts lie beside it.
        split: of the vectors.
    """

    def __init__(self, path: Path, split: Split) -> None:
        self.path, self._split, self._generation = path, split, 0

    def head(self) -> State | None:
        """What the file says that names the parts."""
        head = self._split.team.told_by_first(lambda: load_state(self.path, renamed=True))
        if head is not None:
            self._generation = head["generation"]
        return head

    def rest(self, head: State, start: str) -> State:  # noqa: ARG002 - parts are told from others by their marks
        """What this process is to hold, from the parts of all that wrote them."""
        return self._split.team.together_own(lambda: self._joined(head))

    def write(self, state: State) -> None:
        """Write the parts of a new generation, then that it counts; only then those before it go."""
        team = self._split.team
        if "run" in state:
            team.check_in_step(torch.tensor(state["run"]["history"][-1], dtype=torch.float64))
        self._generation += 1
        part = {name: packed(state[name]) for name in ("theta", "run") if name in state}
        part["mark"] = self._mark(state, team.rank)
        team.together(lambda: save_state(self._part(team.rank), part))
        head: State = {name: state[name] for name in ("stamp", "ended", "seconds") if name in state}
        head |= {"generation": self._generation, "processes": team.size}
        team.told_by_first(lambda: save_state(self.path, head))
        team.told_by_first(lambda: _remove_parts(self.path, but=self._generation))

    def _joined(self, head: State) -> State:
        size = head["processes"]
        theirs = [Split(self._split.size, Team(rank, size)) for rank in range(size)]
        needed = [split for split in theirs if set(split.pieces) & set(self._split.pieces)]
        return put_together([self._read(head, split) for split in needed], needed, self._split)

    def _read(self, head: State, split: Split) -> State:
        rank, mark = split.team.rank, self._mark(head, split.team.rank)
        state = load_state(self._part(rank), renamed=True)
        if state is None or state.get("mark", mark) != mark:  # not noted by versions without a checksum
            fault = "is missing" if state is None else "is another one"
            raise DamagedCheckpoint(
                f"checkpoint {self.path}: the part of process {rank} of {split.team.size} {fault}; "
                "delete the checkpoint to start over."
            )
        return {name: state[name] for name in ("theta", "run") if name in state}

    def _part(self, rank: int) -> Path:
        return self.path.with_name(f"{self.path.stem}.{self._generation}.{rank}{self.path.suffix}")

    def _mark(self, state: State, rank: int) -> str:
        """By which a part is known: parts that were swapped fit together just as well."""
        return f"{state['stamp']} {self._generation} {rank}"


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
        whole = torch.cat([value[_VECTOR] for value in values]).to(wanted.team.device)
        return SplitVector.of(whole[wanted.own.start - start : wanted.own.stop - start].clone(), wanted)
    if _PIECES in first:
        start = held[0].pieces.start
        pieces = torch.cat([value[_PIECES] for value in values]).to(wanted.team.device)
        return pieces[wanted.pieces.start - start : wanted.pieces.stop - start]
    return {key: put_together([value[key] for value in values], held, wanted) for key in first}
