"""The arguments of `discover`, checked and made one record. What they mean: `discover`. What is done: `request`."""

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike

from isthmus.discovery.choices import ROWS_ENOUGH, ROWS_FOR_EACH
from isthmus.discovery.data.checking import CheckedData, checked_data, with_powers
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.scaling import Scaling
from isthmus.discovery.files.storage import RESULT
from isthmus.discovery.halves import MODE, RANK_KINDS, RankKind, Side, rank_kind
from isthmus.discovery.kinds import family_class, kind_of
from isthmus.discovery.remedies.remedy import Effort
from isthmus.discovery.request import Request
from isthmus.discovery.settings import CONNECTED, Settings, start_kinds, with_sides
from isthmus.discovery.work.unit import ProgressListener, silent
from isthmus.errors import DataError
from isthmus.networks.arguments import check_fits, seed_argument
from isthmus.networks.devices import CPU, device_argument
from isthmus.processes.pool import executor_argument
from isthmus.tasks.foreign import check_row_labels
from isthmus.tasks.input_columns import InputColumn
from isthmus.tasks.memory import check_memory
from isthmus.tasks.weights_and_labels import groups_of_rows
from isthmus.training import Limits
from isthmus.training.limits import limits_argument
from isthmus.training.losses import Loss

# the least that one takes, so that what can never fit is refused before a list is made of it: a layer of 24 x 24 as an
# object with its gradient and the 20 pairs of L-BFGS, a start as a name and a future
BYTES_OF_LAYER, BYTES_OF_START = 200_000, 2_000
MOST = 2**62  # a count that is compared as a float
LEAST_ROWS = 20  # that are searched


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """The arguments of `discover` besides the data, under its names."""

    encoder: str | None = None
    decoder: str | None = None
    log: str | Sequence[str] | None = None
    units: object = None
    ranks: bool = False
    network: str | None = None
    loss: str | Loss | None = None
    depth: int | None = None
    ridge: float | Sequence[float] | None = None
    starts: int | None = None
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None
    ordered: bool = False
    scaling: str | Scaling = Scaling.AUTO
    effort: str | Effort = Effort.DEFAULT
    rows: int | None = None
    seed: int = 0
    limits: Limits | None = None
    out: str | os.PathLike[str] | None = None
    progress: ProgressListener | None = None
    control: bool = False
    depth_path: bool = False
    workers: int | None = None
    executor: Executor | str | None = None
    device: torch.device | str | None = None
    columns: Sequence[InputColumn] | None = None

    def _check_plain(self) -> None:
        """Refuse what is no count, no function and neither True nor False before it is taken for one.

        Raises:
            ValueError: says which argument. TypeError: `progress` cannot be called.
        """
        if self.workers is not None and not (_is_whole(self.workers) and self.workers >= 1):
            raise ValueError(
                f"discover(workers={str(self.workers)[:40]}): needs a whole number of at least one, or None for one on "
                "each core."
            )
        for name in ("ranks", "ordered", "control", "depth_path"):
            if not isinstance(value := getattr(self, name), bool | np.bool_):
                raise ValueError(f"discover({name}={str(value)[:40]!r}): needs True or False.")
        _check_names(self.log, self.columns)
        if self.progress is not None and not callable(self.progress):
            raise TypeError(
                f"discover(progress={str(self.progress)[:40]!r}): needs a function that takes a Progress, or None."
            )

    def request(self, x: object, y: object) -> Request:
        """What is to be done with these data.

        Raises:
            DataError: data that cannot be used, or `out` holds another run.
            ValueError: an unknown option.
        """
        began, network = time.monotonic(), self.network
        self._check_plain()
        check_row_labels(x, {"y": y, "sample_weight": self.sample_weight, "groups": self.groups})
        data = with_powers(checked_data(x, y, self.loss, self.sample_weight, self.columns), self.log, self.units)
        groups, scaling = groups_of_rows(self.groups, self.sample_weight), Scaling(self.scaling)
        settings = base_settings(network, self.seed, ordered=self.ordered, scaling=scaling)
        settings = adapted_settings(
            settings, depth=self.depth, ridge=self.ridge, starts=self.starts, limits=self.limits
        )  # fmt: skip
        settings = with_halves(
            settings, data, encoder=self.encoder, decoder=self.decoder, starts=self.starts, depth_path=self.depth_path
        )
        if self.ranks and settings.network != CONNECTED:
            raise ValueError(
                f"discover(ranks=True, network={network!r}): needs a fully connected network; leave out one."
            )
        if self.depth_path and settings.network != CONNECTED:
            raise ValueError(
                f"discover(depth_path=True, network={network!r}): a depth path adds linear layers to a fully connected "
                "network; leave out one of the two."
            )
        folder = _folder(self.out)
        if folder is not None and (folder / RESULT).exists():
            raise DataError(
                f"discover(out={folder}): holds a finished run; load it with isthmus.load, or give another folder."
            )
        sample = Sample.of(data, settings, groups=groups, most=rows_argument(self.rows, data.x.shape[1]))
        return Request(
            sample=sample, settings=settings, folder=folder, seconds=self.limits.seconds if self.limits else None,
            progress=self.progress or silent, control=self.control, depth_path=self.depth_path, workers=self.workers,
            beside=ranks_beside(settings.rank_kind, data) if self.ranks else (), starts=self.starts,
            effort=Effort(self.effort), rescale=scaling is Scaling.AUTO, began=began,
            executor=executor_argument(self.executor, "discover"),
            device=device_argument(self.device, f"discover(device={str(self.device)!r})") or CPU,
        )  # fmt: skip


def _check_names(log: object, columns: object) -> None:
    """Refuse what names no columns."""
    if log is not None and not (isinstance(log, Iterable) and all(isinstance(name, str) for name in log)):
        raise ValueError(f"discover(log={str(log)[:40]}): needs 'all', or names of columns.")
    are_columns = isinstance(columns, Iterable) and all(isinstance(one, InputColumn) for one in columns)
    if columns is not None and not are_columns:
        raise ValueError("discover(columns=...): needs an isthmus.tasks.InputColumn for each column of x, or None.")


def _folder(out: str | os.PathLike[str] | None) -> Path | None:
    """The folder of a run.

    Raises:
        ValueError: an empty name, which would be the folder where Python runs.
    """
    if out is None:
        return None
    if not os.fspath(out):
        raise ValueError("discover(out=''): needs the name of a folder, or None to keep nothing. '.' is this folder.")
    return Path(out)


def with_halves(
    settings: Settings,
    data: CheckedData,
    *,
    encoder: str | None,
    decoder: str | None,
    starts: int | None = None,
    depth_path: bool = False,
) -> Settings:
    """The settings with the halves that a caller means; of one target of which nothing was said, a linear encoder.

        f = identity o f: the bottleneck rank of one target is 1 whatever it depends on

    `starts` are those that were asked for, None for the usual ones of these halves.

    Raises:
        ValueError: no such halves, or linear ones where an option needs curved ones.
    """
    rank_kind(encoder or Side.CURVED, decoder or Side.CURVED)
    residual = f"network={settings.network!r}" if settings.network != CONNECTED else None
    curved_only = residual or ("depth_path=True" if depth_path else None)
    if curved_only and Side.LINEAR in {encoder, decoder}:
        half = "encoder" if encoder == Side.LINEAR else "decoder"
        raise ValueError(f"discover({half}='linear', {curved_only}): needs curved halves; leave out one of the two.")
    if encoder is decoder is None and not curved_only and data.num_targets == 1:
        encoder = Side.LINEAR
    return with_sides(settings, rank_kind(encoder or Side.CURVED, decoder or Side.CURVED), starts)


def ranks_beside(kind: RankKind, data: CheckedData) -> tuple[RankKind, ...]:
    """The other ranks that a task has: of one output, modes say nothing; a mean and a spread are two."""
    one = data.num_targets is not None and data.num_targets * data.loss.per_target == 1
    return tuple(k for k in RANK_KINDS.values() if k is not kind and not (k is MODE and one))


def base_settings(network: str | None, seed: int, *, ordered: bool, scaling: Scaling) -> Settings:
    """The defaults of a kind of network.

    Raises:
        ValueError: there is no such kind, or the seed is no whole number in range.
    """
    seed = seed_argument(seed, "discover(seed=...)")
    first = Scaling.COLUMN if scaling is Scaling.AUTO else scaling
    return Settings(seed=seed, ordered=ordered, scaling=first.value, network=kind_of(network))


def adapted_settings(
    settings: Settings,
    *,
    depth: int | None,
    ridge: float | Sequence[float] | None,
    starts: int | None,
    limits: Limits | None,
) -> Settings:
    """The settings with what the caller chose.

    Raises:
        ValueError: counts that are no whole numbers or too small, ridges that are not positive.
        DataError: more starts or layers than the memory can hold.
    """
    for name, count in (("depth", depth), ("starts", starts)):
        if count is not None and not _is_whole(count):
            raise ValueError(f"discover({name}={str(count)[:40]}): needs a whole number, or None for the default.")
    limits = limits_argument(limits, "discover", heeds=("seconds", "evaluations"))
    if ridge is not None:
        settings = replace(settings, ridges=_ridges(ridge))
    if starts is not None and starts < 1:
        raise ValueError(f"discover(starts={starts}): needs at least one start.")
    if starts is not None:
        check_memory(min(starts, MOST) * BYTES_OF_START, f"discover(starts={str(starts)[:40]})", instead="Take fewer")
        settings = replace(settings, starts=start_kinds(settings.rank_kind, starts))
    kind = family_class(settings.network)
    settings = kind.adapted(settings, depth)
    layers = kind.num_layers(settings)
    what = "discover: the default depth" if depth is None else f"discover(depth={str(depth)[:40]})"
    check_memory(min(layers, MOST) * BYTES_OF_LAYER, what, instead="Take a smaller depth")
    return settings if limits.evaluations is None else settings.scaled_to(limits.evaluations)


def _is_whole(count: object) -> bool:
    """Whether it counts something: True and False do not."""
    return not isinstance(count, bool) and isinstance(count, Integral)


def _ridges(ridge: float | Sequence[float]) -> tuple[float, ...]:
    """The ridges, largest first."""
    try:
        is_one = not isinstance(ridge, Iterable) or getattr(ridge, "ndim", 1) == 0  # of arrays, one number
        ridges = (float(ridge),) if is_one else tuple(map(float, ridge))  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        ridges = ()
    if not ridges or isinstance(ridge, str | bool | np.bool_) or not all(0 < value < float("inf") for value in ridges):
        raise ValueError(
            f"discover(ridge={str(ridge)[:60]!r}): needs positive ridges: one number, or several in a list."
        )
    for value in ridges:
        check_fits(value, f"discover(ridge={value:g})", torch.float32, squared=True, chosen=False)
    if len({f"{value:g}" for value in ridges}) < len({*ridges}):  # by which units of work know each other
        raise ValueError(
            f"discover(ridge={str(ridge)[:60]!r}): needs ridges that differ in their first six digits: leave out one."
        )
    return tuple(sorted({*ridges}, reverse=True))


def rows_argument(rows: int | None, num_columns: int) -> int:
    """How many rows are searched at most.

    Raises:
        ValueError: no whole number of at least 20.
    """
    if rows is None:
        return max(ROWS_ENOUGH, ROWS_FOR_EACH * num_columns)
    if not _is_whole(rows) or rows < LEAST_ROWS:
        raise ValueError(f"discover(rows={str(rows)[:40]}): needs a whole number of at least {LEAST_ROWS}, or None.")
    return int(rows)
