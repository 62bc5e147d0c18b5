"""A request of `isthmus fit` carried out by the processes of a team; the first one writes the files and speaks.

The options: `fit`. The rows of each process: `shard_data`. The training: `training.sharded.distributed`.
"""

import os
import shlex
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path

import torch
import typer

from isthmus.cli.fit import FitRequest
from isthmus.cli.interrupts import ExitCode, noted_interrupts
from isthmus.cli.progress_bar import shown_progress
from isthmus.cli.run_folder import (
    RESULT,
    WORK,
    FolderState,
    check_free,
    check_writable,
    chosen_folder,
    clear,
    state_of,
    tidy,
)
from isthmus.cli.shard_data import ShardData, read_shard
from isthmus.cli.shared_options import words_of
from isthmus.cli.terminal import Notes, terminal
from isthmus.cli.voice import tell, voice
from isthmus.discovery.files.json_values import plain
from isthmus.discovery.files.networks import write_network
from isthmus.discovery.work.unit import Progress, ProgressListener, silent
from isthmus.errors import DamagedCheckpoint, DataError, IsthmusError, ProcessLost
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import check_fits
from isthmus.tasks.memory import check_memory
from isthmus.training import FitResult, Limits, Outcome
from isthmus.training.fitting import FitEvent
from isthmus.training.sharded.checkpoint_parts import remove_checkpoint
from isthmus.training.sharded.distributed import fit_shards
from isthmus.training.sharded.layer_shares import brought_together
from isthmus.training.sharded.process_group import peak_memory, process_group
from isthmus.training.sharded.team import Team
from isthmus.writing.atomic import write_bytes
from isthmus.writing.checksums import opened_json, sealed_json
from isthmus.writing.folder_lock import only_writer
from isthmus.writing.regular import NotAFile, contents
from isthmus.writing.shown import harmless
from isthmus.writing.staying import made_folder

_BYTES_OF_LAYER = 5_000  # as an object, however narrow
_MOST_SAID = 8  # processes whose memory stands in the line
NETWORK, CHECKPOINT, PARTS = "network.safetensors", "fit.pt", "fit.parts.pt"


def run_fit(
    request: FitRequest,
    *,
    out: Path | None,
    resume: Path | None,
    replace: bool,
    timeout: float,
    device: str | None = None,
) -> int:
    """Carry out `request`; returns the exit code of this process.

    Raises:
        DataError: options or data that cannot be used.
        OSError: a file cannot be written.
        typer.Exit: one of these in one of several processes, or a lost one, after one of them said so.
    """
    # signals are only noted until the end: torchrun sends them to those who are about to say that another one died
    patient = "RANK" in os.environ
    group = process_group(timeout=timeout, device=device)
    with noted_interrupts(patient=patient) as came, group as team, ExitStack() as held:
        try:
            check_fits(request.ridge, f"--ridge {request.ridge:g}", _dtype(request), squared=True)
            folder = team.told_by_first(lambda: _folder(request, out, resume, replace=replace))
            shard = _shard(request, team)  # what is wrong with the data is said before what stands in the folder
            team.told_by_first(lambda: _taken(folder, held, resumed=resume is not None, replace=replace))
            if team.told_by_first(lambda: state_of(folder)) is FolderState.FINISHED:
                return _say_finished(team, folder, request)
            return _train(request, folder, shard, team, came)
        except (IsthmusError, OSError) as error:
            if team.size == 1:
                raise
            # what all processes find out is said by the first, what only some do by whoever comes first
            if _speaks(team, error):
                typer.echo(harmless(f"isthmus: {' '.join(str(error).split())}"), err=True)
            raise typer.Exit(ExitCode.BAD_INPUT) from error  # not returned: there is nobody left to meet at the end


def _speaks(team: Team, error: Exception) -> bool:
    shared = isinstance(error, IsthmusError) and not isinstance(error, ProcessLost)
    return team.rank == 0 if shared else team.speaks()


def _folder(request: FitRequest, out: Path | None, resume: Path | None, *, replace: bool) -> Path:
    folder = chosen_folder(request.default_folder, out, resume, replace=replace)
    check_writable(folder)
    return folder


def _taken(folder: Path, held: ExitStack, *, resumed: bool, replace: bool) -> None:
    """Keep every other process out of the folder until `held` ends, and make room in it."""
    held.enter_context(only_writer(folder))
    check_free(folder, resumed=resumed, replace=replace)
    tidy(folder)
    if replace:
        clear(folder)


def _checkpoint(request: FitRequest, folder: Path) -> Path:
    """Where the state is saved, unless there is one of the other kind already."""
    mine, other = (PARTS, CHECKPOINT) if request.split_parameters else (CHECKPOINT, PARTS)
    if (folder / WORK / other).exists():
        raise DataError(
            f"{folder}: was started {'without' if request.split_parameters else 'with'} --split-parameters. "
            "Go on as it was started, or start over with --replace."
        )
    return folder / WORK / mine


def _check_size(request: FitRequest, shard: ShardData) -> None:
    """Refuse a network that is larger than the memory there is, before any of it is made."""
    hidden = max(request.depth - 2, 0) * (request.width + 1) * request.width
    outer = (shard.x.shape[1] + 1) * request.width + (request.width + 1) * shard.num_outputs
    size = request.depth * _BYTES_OF_LAYER + 4 * (hidden + outer)
    check_memory(size, f"--depth {request.depth} --width {request.width}")


def _dtype(request: FitRequest) -> torch.dtype:
    return torch.float64 if request.dtype == "float64" else torch.float32


def _shard(request: FitRequest, team: Team) -> ShardData:
    return read_shard(
        request.data, target=request.target, classes=request.classes, autoencode=request.autoencode,
        dtype=_dtype(request), team=team, loss=request.loss, seed=request.seed,
    )  # fmt: skip


def _train(request: FitRequest, folder: Path, shard: ShardData, team: Team, came: Callable[[], bool]) -> int:
    checkpoint = team.told_by_first(lambda: _checkpoint(request, folder))
    _check_size(request, shard)
    team.told_by_first(lambda: made_folder(folder / WORK))
    with _shown_by_first(team) as listener:

        def hear(event: FitEvent) -> bool:
            listener(_progress(event))
            return came()

        try:
            result = _fitted(request, shard, team, checkpoint, hear)
        except DamagedCheckpoint as error:
            team.told_by_first(lambda: remove_checkpoint(checkpoint))
            if team.rank == 0:
                Notes()(f"{str(error).partition(';')[0]}. The fit starts over.")
            result = _fitted(request, shard, team, checkpoint, hear)
    if result.outcome is Outcome.INTERRUPTED:
        text = f"isthmus: interrupted. Go on with the same command and {shlex.join(words_of({'resume': folder}))}"
        _say(team, text, on_stderr=voice().as_json)
        return ExitCode.INTERRUPTED
    assert isinstance(result.network, FullyConnected)
    whole = brought_together(result.network, team)
    described = _described(result, shard, team)
    team.told_by_first(lambda: _write(folder, request, shard, whole, described))
    tell(folder=folder, **described)
    _say(team, _summary(described, folder))
    return _code(result.outcome, team)


def _fitted(
    request: FitRequest, shard: ShardData, team: Team, checkpoint: Path, hear: Callable[[FitEvent], bool]
) -> FitResult:
    network = FullyConnected(
        shard.x.shape[1], shard.num_outputs, width=request.width, depth=request.depth, negative_slope=request.slope,
        linear=request.linear_layers, seed=request.seed, dtype=shard.x.dtype,
    ).to(team.device)  # fmt: skip
    return fit_shards(
        network, shard.x.to(team.device), shard.y.to(team.device), total=shard.total, team=team,
        ridge=request.ridge, loss=shard.loss, limits=Limits(evaluations=request.evaluations),
        checkpoint=checkpoint, callback=hear, split_parameters=request.split_parameters,
    )  # fmt: skip


def _shown_by_first(team: Team) -> AbstractContextManager[ProgressListener]:
    return shown_progress(terminal(stderr=True)) if team.rank == 0 else nullcontext(silent)


def _progress(event: FitEvent) -> Progress:
    return Progress(
        "training", min(1.0, event.evaluations / event.total), step=event.evaluations, total_steps=event.total,
        objective=event.objective, seconds_left=event.seconds_left,
    )  # fmt: skip


def _write(
    folder: Path, request: FitRequest, shard: ShardData, network: FullyConnected | None, described: dict[str, object]
) -> None:
    """The files of a finished fit; result.json comes last: while it is missing, the folder is no result."""
    assert network is not None
    write_network(folder / NETWORK, shard.in_user_units(network))
    content = {
        "format": "isthmus fit", "format_version": 1, "request": asdict(request),
        "inputs": list(shard.inputs), "outputs": list(shard.outputs), **described,
    }  # fmt: skip
    sealed = plain(content)
    assert isinstance(sealed, dict)
    write_bytes(folder / RESULT, sealed_json(sealed))
    shutil.rmtree(folder / WORK, ignore_errors=True)  # only now: it holds the fit while nothing else does


def _described(result: FitResult, shard: ShardData, team: Team) -> dict[str, object]:
    """What the terminal and result.json say; all processes have to ask together."""
    return {
        "objective": result.objective, "data_loss": result.data_loss, "penalty": result.penalty,
        "outcome": result.outcome.name, "stationarity": result.stationarity, "rank": result.rank,
        "gradient_evaluations": result.gradient_evaluations, "seconds": result.seconds, "rows": shard.total,
        "processes": team.size, "peak_memory": team.together(lambda: peak_memory(team.device)),
        "history": {"evaluation": result.history.evaluation.values, "objective": result.history.objective.values},
    }  # fmt: skip


def _summary(described: dict[str, object], folder: Path) -> str:
    """One line: how the fit ended and where its network lies."""
    outcome = Outcome[str(described["outcome"])].value
    memory = described["peak_memory"]
    assert isinstance(memory, list)
    most = ", ".join(f"{peak / 2**20:.0f}" for peak in memory[:_MOST_SAID]) + ", ..." * (len(memory) > _MOST_SAID)
    processes = "1 process" if described["processes"] == 1 else f"{described['processes']} processes"
    return (
        f"objective {described['objective']:.10g} after {described['gradient_evaluations']} gradients on "
        f"{described['rows']} rows in {processes} of at most {most} MiB; {outcome}. Network: {folder / NETWORK}"
    )


def stored_result(folder: Path, request: FitRequest) -> dict[str, object]:
    """What result.json of a finished fit says.

    Raises:
        DataError: it is damaged, or of another request.
    """
    try:
        content = opened_json(contents(folder / RESULT))
        asked = content["request"]
    except (NotAFile, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{folder / RESULT}: is damaged ({error}). Start over with --replace.") from error
    if {"loss": None, **asked} != asdict(request):  # runs from before it could be chosen
        raise DataError(f"{folder}: holds another run. Give another folder with --out.")
    return content


def _say_finished(team: Team, folder: Path, request: FitRequest) -> int:
    """Say the result that stands in the folder, if it is the one that was asked for."""
    described = team.told_by_first(lambda: stored_result(folder, request))
    # of a kill just before it was removed
    team.told_by_first(lambda: shutil.rmtree(folder / WORK, ignore_errors=True))
    tell(folder=folder, **described)
    _say(team, _summary(described, folder))
    return _code(Outcome[str(described["outcome"])], team)


def _code(outcome: Outcome, team: Team) -> ExitCode:
    """How a finished fit ends; of several processes a launcher takes every code but 0 for a crash, and starts anew."""
    converged = outcome in {Outcome.CONVERGED, Outcome.PLATEAU}
    return ExitCode.DONE if converged or team.size > 1 else ExitCode.DOUBTFUL


def _say(team: Team, text: str, *, on_stderr: bool = False) -> None:
    if team.rank == 0:
        terminal(stderr=on_stderr, always=on_stderr).print(text, soft_wrap=True)
