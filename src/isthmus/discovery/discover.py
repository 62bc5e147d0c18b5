"""`discover`: the rank of a task, with evidence, from data alone."""

import os
import platform
import shutil
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from isthmus.discovery.arguments import CheckedData, checked_data, groups_of_rows, settings_from
from isthmus.discovery.assembly import assemble
from isthmus.discovery.constant import constant_discovery
from isthmus.discovery.depth_path import DepthSearch, planned_depth_evaluations
from isthmus.discovery.depth_units import DepthSettings
from isthmus.discovery.files.storage import RESULT
from isthmus.discovery.problem import Problem, pose
from isthmus.discovery.progress import ProgressListener, silent
from isthmus.discovery.result import Discovery
from isthmus.discovery.scaling import Scaling, Standardiser
from isthmus.discovery.search import Search, planned_evaluations
from isthmus.discovery.settings import NetworkKind, Settings
from isthmus.discovery.splitting import heldout_rows
from isthmus.discovery.work import Tracker, Workshop, check_same_run
from isthmus.errors import DataError
from isthmus.tasks import covariance_surrogate
from isthmus.training import Limits
from isthmus.training.losses import Loss

Array = NDArray[np.float64]
CONTROL_SEED = 5


def discover(  # noqa: PLR0913 - the arguments are a public contract
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    network: str | None = None,
    loss: str | Loss | None = None,
    depth: int | None = None,
    ridge: float | Sequence[float] | None = None,
    starts: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ordered: bool = False,
    scaling: str | Scaling = Scaling.COLUMN,
    seed: int = 0,
    limits: Limits | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: ProgressListener | None = None,
    control: bool = False,
    depth_path: bool = False,
    workers: int | None = None,
) -> Discovery:
    """How many dimensions the task x -> y needs, which ones, and how sure that is.

    Several starts are trained to minima of  data_loss + ridge * |theta|^2  along a path of ridges. At the ridge with
    the least held-out error, and at its neighbours, the middle of the best network is truncated to every rank r and
    polished; the rank is the least r whose objective is within 1 % of the full one. Held-out error through r
    coordinates and the Jacobian's spectrum are read beside it, and a verdict compares the three.

    Args:
        x: inputs (n, d_in): array, tensor or data frame of real numbers.
        y: targets (n, d_out), or class labels (n,) with loss="cross_entropy"; None: y = x, the dimension of the data.
        network: None, "connected" or "fully-connected": ReLU layers around linear ones, the stand-in for a very deep
            network; "leaky" or "resnet": a `LeakyResNet` (Lt = 8) or `ResNet` whose stream is led through r dimensions
            in its middle layer instead. Of a leaky one the readings tell cost of identity and Hamiltonian besides.
        loss: None or "squared", or "cross_entropy".
        depth: number of weight matrices; more depth prefers fewer, more curved coordinates. Default 11. Of residual
            networks the number of layers or blocks, default 16.
        ridge: one ridge or several; default 1e-2 ... 3e-4, for targets of total variance 1.
        starts: starts at each ridge, the first from the linear map, the others random. Default 2.
        sample_weight: a weight >= 0 for each row, in losses and errors, up to a common factor; the columns are scaled
            without it. Rows of weight 0 are left out.
        groups: a label per row; rows of one label are held out together.
        ordered: rows are a time series: whole blocks are held out.
        scaling: "column" gives every column variance 1, "global" keeps the relative scale of the columns.
        seed: same seed, machine and threads: same numbers.
        limits: seconds for everything; gradient evaluations for each training run.
        out: folder for the result; also keeps the work as it goes, so that the same call goes on after a stop.
        progress: hears `Progress` events.
        control: also run on Gaussian data of the same covariance, which has no rank beyond its spectrum.
        depth_path: also train each rank at several depths: the rank of a shallow and of a deep answer, and where they
            switch. Takes about as long again.
        workers: threads that train side by side; None: one for each core. The numbers do not depend on it.

    Returns:
        The rank, its verdict and evidence, encoder and decoder. Constant targets give rank 0.

    Raises:
        DataError: data that cannot be used (says which rows or columns), or `out` holds another run.
        ValueError: an unknown option.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"discover(workers={workers}): needs at least one, or None for one on each core.")
    data = checked_data(x, y, loss, sample_weight)
    groups = groups_of_rows(groups, sample_weight)
    settings = settings_from(network, depth, ridge, starts, seed, limits, ordered=ordered, scaling=Scaling(scaling))
    if depth_path and settings.network != NetworkKind.CONNECTED:
        raise ValueError(
            f"discover(depth_path=True, network={network!r}): a depth path adds linear layers to a fully connected "
            "network; leave out one of the two."
        )
    folder = Path(out) if out is not None else None
    if folder is not None and (folder / RESULT).exists():
        raise DataError(
            f"discover(out={folder}): holds a finished run; load it with isthmus.load, or give another folder."
        )
    held = heldout_rows(len(data.x), seed=seed, fraction=settings.heldout, groups=groups, ordered=ordered)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = _posed(data, held, settings)
    told = tuple(str(w.message) for w in caught)
    for text in told:
        warnings.warn(text, caught[0].category, stacklevel=2)
    if problem is None:
        result = constant_discovery(
            data.x, data.y, settings, names=(data.input_names, data.target_names), task=data.task
        )
    else:
        result = _search(
            problem, data, held, settings, folder, limits, progress or silent, told, control=control,
            depth_path=depth_path, workers=workers,
        )  # fmt: skip
    if folder is not None:
        result.save(folder)
        shutil.rmtree(folder / "work", ignore_errors=True)
    return result


def _search(  # noqa: PLR0913
    problem: Problem,
    data: CheckedData,
    held: NDArray[np.bool_],
    settings: Settings,
    folder: Path | None,
    limits: Limits | None,
    progress: ProgressListener,
    told: tuple[str, ...],
    *,
    control: bool,
    depth_path: bool,
    workers: int | None,
) -> Discovery:
    depths = DepthSettings()
    planned = planned_evaluations(settings, problem) * (1 + control)
    planned += planned_depth_evaluations(settings, problem, depths) if depth_path else 0
    tracker = Tracker(progress, planned)
    deadline = time.monotonic() + limits.seconds if limits and limits.seconds else None
    work = folder / "work" if folder else None
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
        check_same_run(
            work, {"data": problem.fingerprint(), "settings": f"{settings}{control}{depths if depth_path else ''}"}
        )
    workshop = Workshop(work, tracker, deadline=deadline, workers=workers)
    about: dict[str, object] = {
        "held_out_rows": int(held.sum()),
        "rows": len(held),
        "loss": data.loss.value,
        **_versions(),
    }
    about["data"] = data.fingerprint()
    if data.weight is not None:
        about["weighted"] = True
    findings = Search(problem, settings, workshop).run()
    path = None
    if depth_path:
        search = DepthSearch(problem, settings, depths, workshop)
        path = search.run(findings.curves[findings.ridge], findings.decision.rank)
        if workshop.out_of_time():
            told = (*told, "The time limit cut the depth path short; give more seconds for straight lines.")
    beside = _control(data, held, settings, workshop, about) if control else None
    names = (data.input_names, data.target_names)
    found = assemble(
        findings, problem, settings, names=names, task=data.task, warnings=told, extra_settings=about, control=beside
    )
    return replace(found, depth_path=path)


def _control(
    data: CheckedData, held: NDArray[np.bool_], settings: Settings, workshop: Workshop, about: dict[str, object]
) -> Discovery:
    """The same search on the Gaussian surrogate of the same covariance."""
    same = data.y is data.x
    target = None if same else data.y if data.y.ndim == 2 else np.eye(int(data.y.max()) + 1)[data.y.astype(int)]
    drawn = covariance_surrogate(data.x, CONTROL_SEED, y=target)
    y = drawn.x if drawn.y is None else drawn.y if data.loss is Loss.SQUARED else drawn.y.argmax(1).astype(np.float64)
    surrogate = replace(data, x=drawn.x, y=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same columns are constant, which was said already
        problem = _posed(surrogate, held, settings)
    assert problem is not None
    findings = Search(problem, settings, workshop, prefix="control-").run()
    names = (data.input_names, data.target_names)
    return assemble(
        findings, problem, settings, names=names, task=data.task, warnings=(), extra_settings=about, control=None
    )


def _posed(data: CheckedData, held: NDArray[np.bool_], settings: Settings) -> Problem | None:
    """The problem in standardised units; None where the targets do not vary."""
    scaling = Scaling(settings.scaling)
    inputs = Standardiser.of(data.x, scaling=scaling)
    inputs.warn_of_constants("input", data.input_names)
    if data.loss is Loss.CROSS_ENTROPY:
        if len(np.unique(data.y)) < 2:
            return None
        return pose(data.x, data.y, held, loss=data.loss, inputs=inputs, targets=None, weight=data.weight)
    targets = Standardiser.of(data.y, scaling=scaling, total=True)
    if not len(targets.kept):
        return None
    if data.y is not data.x:
        targets.warn_of_constants("target", data.target_names)
    return pose(data.x, data.y, held, loss=data.loss, inputs=inputs, targets=targets, weight=data.weight)


def _versions() -> dict[str, object]:
    from isthmus import __version__  # the package's own number; not a room

    return {
        "isthmus": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
