"""`forensics`: what a checkpoint tells of its own training, from its weights and data alone.

Formulas of classes: `theory.neural_collapse`. What every layer does on data: `diagnose`.
"""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage] - of one and more axes

from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.module_names import Names
from isthmus.diagnostics.objective import LossOverData
from isthmus.diagnostics.replica import undisturbed
from isthmus.diagnostics.samples import Inputs, Samples, row_ranges
from isthmus.diagnostics.session import DiagnosisSession, open_session
from isthmus.errors import DataError, ShapeError
from isthmus.networks.arguments import AnyModule, module_argument, tensor_argument
from isthmus.networks.devices import with_gradients
from isthmus.networks.network import penalised, penalty_of
from isthmus.tasks.foreign import check_row_labels
from isthmus.theory.neural_collapse import NeuralCollapse, class_rank_bound, neural_collapse
from isthmus.training.losses import Loss, loss_argument

LossOf: TypeAlias = Callable[[Tensor, Tensor], Tensor]
STATIONARY = 0.5
_PART = 4  # of the rows that memory allows at once: gradients are kept beside them


@dataclass(frozen=True, slots=True)
class Forensics:
    """What weights and data tell of the training that made a network.

    Attributes:
        parameters: dimension "parameter" (coordinate "name"): size, gradient, |.| of weights and of the gradient of the
            loss; ridge, the one at which the gradient and that of the penalty cancel best (*estimate*); residual, what
            they then leave over the latter, 0 at a stationary point. Of matrices on classes also tail, root of the sum
            of squares of the singular values beyond the number of classes, and tail_bound (see `class_rank_bound`).
        ridge: coefficient of the sum of squares on which all matrices agree best; an optimiser's weight decay is twice
            it. 0 or below: none was at work.
        residual: what it leaves in all matrices over the gradient of the penalty. Where it is large the training had
            not ended, or its loss, data or penalty were others, and `ridge` says nothing.
        loss: of the data.
        collapse: of what enters the last matrix; None where targets are no classes.
        is_frozen: whether batch norms used their running statistics; else those of all rows, or there is none.
    """

    parameters: xr.Dataset
    ridge: float
    residual: float
    loss: float
    collapse: NeuralCollapse | None
    is_frozen: bool = False

    @property
    def is_stationary(self) -> bool:
        """Whether a penalty explains the weights (*heuristic*: where Adam ends it leaves .05 to .33)."""
        return self.ridge > 0 and self.residual <= STATIONARY


@with_gradients
def forensics(module: AnyModule, x: Inputs, y: Tensor, *, loss: str | Loss | LossOf | None = None) -> Forensics:
    """The ridge that a network was trained with, whether training had ended, and how far its classes have collapsed.

    Where loss + ridge * penalty is stationary, each parameter W has  dloss/dW + ridge dpenalty/dW = 0:

        ridge = -<dloss/dW, dpenalty/dW> / |dpenalty/dW|^2,   dpenalty/dW = 2 W unless the module has its own penalty()

    Args:
        module: or exported program, at the end of its training; in evaluation mode, and left as it was. Batch norms
            normalise all rows as one batch, as where all were trained on at once, or by their running statistics, as
            where these were frozen: whichever leaves the smaller residual (the latter where no such batch fits).
        x: the samples that it was trained on, as `diagnose` takes them.
        y: their targets; whole numbers are classes.
        loss: of the training, by name or as an object, in the house's units: summed over outputs, averaged over
            samples; or a function of (outputs, targets) that averages over its rows, as torch.nn.functional.mse_loss,
            in whose units the ridge then is. None: squared error, or cross-entropy for whole numbers.

    Returns:
        One row per parameter that the penalty counts, and what they agree on.

    Raises:
        TypeError, DataError, ShapeError, ValueError: as for `diagnose`.

    Accuracy: gradients in float64 where the module can be copied. Weights before a normalisation hardly change the loss
        with their length: they show a ridge below that of the others, and go on turning, at a large residual.
        Test: diagnostics/test_forensics.

    >>> type(isthmus.forensics(network, torch.from_numpy(x), torch.from_numpy(y))).__name__
    'Forensics'
    """
    network = module_argument(module, "forensics(module, x, y)")
    check_row_labels(x, {"y": y}, in_order=False)
    samples, y = Samples.of(x), tensor_argument(y, "forensics(module, x, y): y")
    if len(y) != samples.num:
        raise ShapeError(f"forensics(module, x, y): needs one row of y per row of x, {samples.num}; got {len(y)}.")
    counted = penalised(network)
    classes = y if y.ndim == 1 and not y.dtype.is_floating_point else None
    if classes is not None and int(classes.min()) < 0:
        raise DataError(
            f"forensics(module, x, y): needs classes from 0 on, got {int(classes.min())}. Leave out rows without one."
        )
    with undisturbed(network), open_session(network, samples) as session:
        return _found(session, _part_of(loss, y, samples.num), counted, classes)


def _part_of(loss: str | Loss | LossOf | None, y: Tensor, num: int) -> Callable[[Tensor, int], Tensor]:
    """What rows from a number on contribute to the mean loss."""
    if loss is None or isinstance(loss, str | Loss):
        return LossOverData(y, num, None if loss is None else loss_argument(loss, "forensics")).part

    def part(output: Tensor, start: int) -> Tensor:
        wanted = y[start : start + len(output)].to(output.device)
        wanted = wanted.to(output.dtype) if wanted.dtype.is_floating_point else wanted
        try:
            return loss(output, wanted) * (len(output) / num)
        except Exception as error:
            detail = " ".join(str(error).split())[:200]
            raise DataError(
                f"forensics(loss=...): the loss failed on outputs of shape {tuple(output.shape)} and targets of shape "
                f"{tuple(wanted.shape)} ({type(error).__name__}: {detail}). Give targets as it takes them."
            ) from error

    return part


def _found(
    session: DiagnosisSession, part: Callable[[Tensor, int], Tensor], counted: frozenset[str], classes: Tensor | None
) -> Forensics:
    num, budget = session.samples.num, session.budget(None)
    size = num if session.fixed_size else max(2, budget.batch // _PART)
    norms = [n for n in session.exact.module.modules() if isinstance(n, _BatchNorm) and n.running_mean is not None]
    found = _read(session, part, counted, classes, size=size)
    if not norms:
        return found
    found = replace(found, is_frozen=True)
    if max(2, budget.batch) < num:
        return found
    with _statistics_of_rows(norms):
        trained = _read(session, part, counted, classes, size=num)
    return found if found.residual <= trained.residual else trained


@contextmanager
def _statistics_of_rows(norms: Sequence[_BatchNorm]) -> Generator[None]:
    """Batch norms use the statistics of their batch; the running ones do not move."""
    before = [(norm, norm.training, norm.momentum) for norm in norms]
    try:
        for norm in norms:
            norm.training, norm.momentum = True, 0.0
        yield
    finally:
        for norm, mode, momentum in before:
            norm.training, norm.momentum = mode, momentum


def _read(
    session: DiagnosisSession, part: Callable[[Tensor, int], Tensor], counted: frozenset[str], classes: Tensor | None,
    *, size: int,
) -> Forensics:  # fmt: skip
    network = session.exact.module
    named = {name: p for name, p in network.named_parameters() if name in counted and p.dtype.is_floating_point}
    for p in named.values():
        p.requires_grad_(True)
    with torch.enable_grad():
        pulls = torch.autograd.grad(penalty_of(network, counted), list(named.values()), materialize_grads=True)
    last = session.structure.readings[-1].name
    seen = _Rows(None if classes is None else classes.to(session.exact.device).long(), last)
    total, gradients = _gradients(session, part, list(named.values()), seen, size)
    pairs = dict(zip(named, zip(gradients, pulls, strict=True), strict=True))
    matrices = {name: pair for name, pair in pairs.items() if pair[0].ndim >= 2} or pairs
    ridge, residual = _ridge(list(matrices.values()))
    columns: dict[str, list[float]] = {"size": [float(p.detach().norm()) for p in named.values()]}
    columns["gradient"] = [float(g.norm()) for g in gradients]
    columns["ridge"], columns["residual"] = (
        [*values] for values in zip(*(_ridge([p]) for p in pairs.values()), strict=True)
    )
    if classes is not None and ridge > 0:
        tails = [seen.tail(name, p.detach(), pairs[name], ridge) for name, p in named.items()]
        columns["tail"], columns["tail_bound"] = ([*values] for values in zip(*tails, strict=True))
    table = xr.Dataset(
        {name: ("parameter", np.array(values)) for name, values in columns.items()},
        coords={"name": ("parameter", [*named])},
    )
    return Forensics(table, ridge, residual, total, seen.collapse())


def _gradients(
    session: DiagnosisSession, part: Callable[[Tensor, int], Tensor], parameters: list[nn.Parameter], seen: "_Rows",
    size: int,
) -> tuple[float, list[Tensor]]:  # fmt: skip
    """The loss of all data and its gradient, batch by batch."""
    replica, samples = session.exact, session.samples
    total, gradients = 0.0, [torch.zeros_like(p) for p in parameters]
    for start, end in row_ranges(samples.num, size):
        rows = samples.at(slice(start, end), replica.dtype, replica.device)
        with torch.enable_grad():
            seen.begin(start, rows.num)
            output = record(replica, Names(replica.module), rows, seen)
            value = part(output, start)
            places = [*map(get_gradient_edge, parameters), *seen.given]
            found = cast("tuple[Tensor | None, ...]", torch.autograd.grad(value, places, allow_unused=True))
        total += float(value.detach())
        for whole, new in zip(gradients, found, strict=False):
            if new is not None:
                whole += new.detach()
        seen.heard(found[len(parameters) :])
    return total, gradients


def _ridge(pairs: Sequence[tuple[Tensor, Tensor]]) -> tuple[float, float]:
    """The multiple of the penalty's gradient that cancels the loss's best, and what it leaves over that."""
    square = sum(float(pull.square().sum()) for _, pull in pairs)
    if not square:
        return math.nan, math.nan
    ridge = -sum(float((g * pull).sum()) for g, pull in pairs) / square
    left = sum(float((g + ridge * pull).square().sum()) for g, pull in pairs)
    return ridge, math.inf if not ridge else (left / square) ** 0.5 / abs(ridge)


@dataclass(slots=True, eq=False)
class _Layer:
    """One matrix whose rows are samples: sums by class of what enters, and of the gradients by what it gives."""

    entering: Tensor
    gradients: Tensor
    rows: list[Tensor] = field(default_factory=list[Tensor])


class _Rows(Listener):
    """Hears what enters every matrix that sees one row per sample, with classes; of the last all of it."""

    def __init__(self, classes: Tensor | None, last: str) -> None:
        self.classes, self.last = classes, last
        self.counts = None if classes is None else torch.bincount(classes)
        self.layers: dict[str, _Layer] = {}
        self.given: list[GradientEdge] = []  # where in the graph is what each matrix gave for the rows of now
        self._own = classes
        self._names: list[str] = []
        self._weight: Tensor | None = None

    def begin(self, start: int, num: int) -> None:
        """Before a batch."""
        self._own = None if self.classes is None else self.classes[start : start + num]
        self._names.clear()
        self.given.clear()

    def called(self, reading: Reading) -> None:
        """Add a batch of what enters to the sums of its class."""
        x, z = reading.call.x.detach(), reading.z
        if self._own is None or reading.call.convolution is not None or x.ndim != 2 or len(x) != len(self._own):
            return
        number = int(self.counts.shape[0]) if self.counts is not None else 0
        fresh = _Layer(x.new_zeros(number, x.shape[1]), x.new_zeros(number, z.shape[1]))
        layer = self.layers.setdefault(reading.name, fresh)
        layer.entering.index_add_(0, self._own, x)
        if reading.name == self.last:
            layer.rows.append(x)
            self._weight = reading.call.matrix.detach()
        self._names.append(reading.name)
        self.given.append(get_gradient_edge(z))  # the tensor itself may be overwritten, as by a ReLU in place

    def heard(self, gradients: Sequence[Tensor | None]) -> None:
        """Add the gradients of the mean loss by what the matrices of this batch gave."""
        for name, gradient in zip(self._names, gradients, strict=True):
            assert self._own is not None
            if gradient is not None:
                self.layers[name].gradients.index_add_(0, self._own, gradient)

    def tail(self, name: str, weight: Tensor, pair: tuple[Tensor, Tensor], ridge: float) -> tuple[float, float]:
        """What a matrix has beyond the number of classes, and its bound; NaN where its rows are no samples."""
        layer, (gradient, pull) = self.layers.get(name.removesuffix(".weight")), pair
        is_plain = (
            weight.ndim == 2
            and torch.equal(pull, 2 * weight)
            and f"{name.removesuffix('.weight')}#2" not in self.layers
        )
        if layer is None or self.counts is None or not is_plain:
            return math.nan, math.nan
        means = layer.entering / self.counts.clamp_min(1)[:, None]
        bound = class_rank_bound(weight, gradient, class_gradients=layer.gradients, class_means=means, ridge=ridge)
        return float(torch.linalg.svdvals(weight)[len(means) :].norm()), bound

    def collapse(self) -> NeuralCollapse | None:
        """Of what enters the last matrix; None without classes, or where one has no row."""
        if self.classes is None or self.counts is None or self._weight is None:
            return None
        if len(self.counts) < 2 or bool((self.counts == 0).any()):
            return None
        own = self._weight if len(self._weight) == len(self.counts) else None
        return neural_collapse(torch.cat(self.layers[self.last].rows), self.classes, weight=own)
