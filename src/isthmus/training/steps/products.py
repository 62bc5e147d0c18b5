"""By which library a step multiplies its matrices: `torch.mm`, or oneDNN where a short measurement found it faster.

A choice decides the last bits of a result. So it is made once for each shape on a machine and noted for each fit, whose
checkpoint keeps it: a fit that goes on elsewhere goes on with it, whatever a measurement would say there.
"""

import hashlib
import os
import platform
import threading
import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from filelock import FileLock
from torch import Tensor

from isthmus.errors import CheckpointError, DataWarning, outside
from isthmus.networks.devices import CPU
from isthmus.training.checkpoint import load_twice, save_twice
from isthmus.writing.staying import made_folder

FEWEST = 2_000_000  # multiplications; below, oneDNN was slower at every shape: a call of it takes some 30 us longer
MOST = 20_000_000  # multiplications that are measured, about 0.6 ms; of larger products a part stands for the whole
ROUNDS = 5
MARGIN = 0.85  # of the time of torch.mm: what is nearly a tie must not be decided by noise


class Shape(NamedTuple):
    """A product (rows, inner) times (inner, columns), how both lie in memory, and the threads that compute it."""

    rows: int
    inner: int
    columns: int
    left_turned: bool
    right_turned: bool
    threads: int

    def __str__(self) -> str:
        """What a checkpoint calls it."""
        turned = f"{'T' if self.left_turned else 'N'}{'T' if self.right_turned else 'N'}"
        return f"{self.rows}x{self.inner}x{self.columns} {turned} {self.threads}"


@dataclass(slots=True)
class ProductChoice:
    """Whether oneDNN computes the products of a shape; asked at every product, for it may be changed."""

    by_onednn: bool


class Products:
    """The choices of one fit.

    Args:
        measuring: whether oneDNN may be chosen at all; not where several processes have to compute the same bits.
    """

    def __init__(self, *, measuring: bool = True) -> None:
        self._measuring = measuring and torch.backends.mkldnn.is_available()
        self._choices: dict[str, ProductChoice] = {}

    def choice(self, left: Tensor, right: Tensor) -> ProductChoice:
        """The one for left @ right; measured where it is not known: some milliseconds."""
        if not self._measuring or left.dtype != torch.float32 or left.device.type != "cpu":
            return ProductChoice(
                by_onednn=False
            )  # oneDNN multiplies no float64, and torch.mm itself calls it for bfloat16
        shape = measured_shape(left, right)
        if shape.rows * shape.inner * shape.columns < FEWEST:
            return ProductChoice(by_onednn=False)
        if str(shape) not in self._choices:
            self._choices[str(shape)] = ProductChoice(onednn_is_faster(shape))
        return self._choices[str(shape)]

    def chosen(self) -> dict[str, bool]:
        """All choices by shape, for a checkpoint."""
        return {shape: choice.by_onednn for shape, choice in self._choices.items()}

    def adopt(self, chosen: Mapping[str, bool]) -> None:
        """Take over the choices of a checkpoint, also where others were made already."""
        for shape, by_onednn in chosen.items():
            self._choices.setdefault(shape, ProductChoice(by_onednn)).by_onednn = by_onednn


def product(left: Tensor, right: Tensor, out: Tensor, choice: ProductChoice) -> Tensor:
    """The product left @ right, written to `out`."""
    if choice.by_onednn:
        return out.copy_(_onednn(left, right.t()))
    return torch.mm(left, right, out=out)


def added(
    start: Tensor, left: Tensor, right: Tensor, *, beta: float, alpha: float, out: Tensor, choice: ProductChoice
) -> Tensor:
    """The sum beta * start + alpha * left @ right, written to `out`, which may be `start`."""
    if choice.by_onednn:
        return torch.mul(start, beta, out=out).add_(_onednn(left, right.t()), alpha=alpha)
    return torch.addmm(start, left, right, beta=beta, alpha=alpha, out=out)


def activated(
    x: Tensor, weight_t: Tensor, bias: Tensor | None, *, slope: float | None, out: Tensor, choice: ProductChoice
) -> Tensor:
    """sigma(x W^T + b), written to `out`; without an activation where `slope` is None. The bias must be contiguous."""
    if choice.by_onednn:
        name = "none" if slope is None else "relu" if slope == 0.0 else "leaky_relu"
        return out.copy_(_onednn(x, weight_t.t(), bias, name, [slope] if slope else []))
    torch.mm(x, weight_t, out=out)
    if bias is not None:
        out.add_(bias)  # faster than addmm, which first writes the bias into every row
    if slope == 0.0:
        out.relu_()
    elif slope is not None:
        torch.nn.functional.leaky_relu_(out, slope)
    return out


def measured_shape(left: Tensor, right: Tensor) -> Shape:
    """The shape that stands for left @ right in a measurement: its largest side cut where it is large."""
    sides = [left.shape[0], left.shape[1], right.shape[1]]
    others = max(sorted(sides)[0] * sorted(sides)[1], 1)
    sides[sides.index(max(sides))] = min(max(sides), max(MOST // others, sorted(sides)[1]))
    rows, inner, columns = sides
    return Shape(rows, inner, columns, _is_turned(left), _is_turned(right), torch.get_num_threads())


def onednn_is_faster(shape: Shape) -> bool:
    """Whether oneDNN computes products of a shape in at most 0.85 of the time of torch.mm; measured once a machine.

    On a busy one two measurements may disagree, and the last bits of what is trained with them.
    """
    with _MEASURING:  # in threads too: else each would measure, and they might disagree
        if str(shape) not in _KNOWN:
            with ExitStack() as locks:
                for path in set(_SHARED):  # another process may have measured it meanwhile
                    locks.enter_context(_alone(path))
                    _KNOWN.update(_kept_in(path))
                if str(shape) not in _KNOWN:
                    _KNOWN[str(shape)] = _of_this_machine(shape)
                for path in _KEPT:
                    save_twice(path, {"products": _KNOWN})
        return _KNOWN[str(shape)]


def machine_file() -> Path | None:
    """What was measured on this machine, for all processes of its user; None where nothing may be kept.

    In the folder that `ISTHMUS_CACHE` names, none where that is empty, else in the user's cache.
    """
    named = os.environ.get("ISTHMUS_CACHE")
    if named == "":
        return None
    try:
        folder = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isthmus"
        made_folder(folder)
    except (OSError, RuntimeError):  # no home, or none that can be written
        return None
    return folder / f"products-{_machine()}.pt"


@contextmanager
def kept_choices(path: Path | None, *, shared: bool = False) -> Generator[None]:
    """Keep what is measured meanwhile in a file, and take over what is there: for work that many fits share.

    It is written before the first product of a shape is computed, so that a run that is killed and goes on in another
    process computes the bits that it would have computed. None keeps nothing.

    Args:
        path: of the file.
        shared: whether other processes keep theirs there at the same time: whoever measures first decides for all.
    """
    if path is None:
        yield
        return
    with _MEASURING, _alone(path) if shared else nullcontext():
        kept = _kept_in(path)
        _KNOWN.update(kept)
        if not shared or kept != _KNOWN or not path.exists():
            save_twice(path, {"products": _KNOWN})
        _KEPT.append(path)
        _SHARED.extend([path] if shared else [])
    try:
        yield
    finally:
        with _MEASURING:
            _KEPT.remove(path)
            if shared:
                _SHARED.remove(path)
                _KNOWN.update(_kept_in(path))


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """No other process reads and writes the file meanwhile, where the system knows locks."""
    lock = FileLock(path.with_suffix(".lock"))
    with suppress(OSError, NotImplementedError):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _kept_in(path: Path) -> Mapping[str, bool]:
    try:
        saved = load_twice(path)
    except CheckpointError as error:
        reason = str(error).partition(";")[0]
        text = f"{reason}. Products are measured again; work that goes on from here may differ in the last bits."
        warnings.warn(text, DataWarning, stacklevel=outside())
        return {}
    return saved["products"] if saved else {}


def _of_this_machine(shape: Shape) -> bool:
    """What the first process here measured; of other shapes nothing is taken over, for folders may say otherwise."""
    path = machine_file()
    if path is None:
        return _measured(shape)
    with _alone(path):
        kept = dict(_kept_in(path))
        if str(shape) not in kept:
            kept[str(shape)] = _measured(shape)
            with suppress(OSError, CheckpointError):  # it only spares the next process a measurement
                save_twice(path, {"products": kept})
    return kept[str(shape)]


@cache
def _machine() -> str:
    """Processor and build of torch, in 16 hexadecimal digits: a home may be shared by machines of several kinds."""
    models: list[str] = []
    with suppress(OSError):  # systems without this file name the processor by `platform`
        models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    parts = (*models[:1], platform.machine(), platform.processor(), torch.backends.cpu.get_cpu_capability())
    return hashlib.sha256("|".join((*parts, torch.__version__, torch.__config__.show())).encode()).hexdigest()[:16]


_MEASURING = threading.Lock()
_KNOWN: dict[str, bool] = {}
_KEPT: list[Path] = []
_SHARED: list[Path] = []  # those of `_KEPT` that other processes write too


def _measured(shape: Shape) -> bool:
    ones = partial(torch.ones, dtype=torch.float32, device=CPU)
    left = ones(shape.inner, shape.rows).t() if shape.left_turned else ones(shape.rows, shape.inner)
    right = ones(shape.columns, shape.inner).t() if shape.right_turned else ones(shape.inner, shape.columns)
    out = ones(shape.rows, shape.columns)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    try:
        for _ in range(ROUNDS):  # in turns: what else runs on the machine slows both alike
            for by_onednn, taken in seconds.items():
                began = time.perf_counter()
                product(left, right, out, ProductChoice(by_onednn))
                taken.append(time.perf_counter() - began)
    except (RuntimeError, AttributeError):  # a torch that was built without these products
        return False
    return min(seconds[True]) <= MARGIN * min(seconds[False])


def _is_turned(matrix: Tensor) -> bool:
    return matrix.stride(1) != 1 and matrix.stride(0) == 1


def _onednn(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none", numbers: list[float] | None = None
) -> Tensor:
    """sigma(x weight^T + bias), a new tensor."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, numbers or [], "")
