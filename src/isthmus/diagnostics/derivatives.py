"""Jacobians by the input of every layer, and traces of tangent kernels.

For any module by automatic differentiation, where a kink has torch's derivative, 0 for the ReLU. Of fully connected
networks in closed form: `layer_jacobians`. By the network's input only: `networks.jacobians`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from isthmus.diagnostics.listener import Listener, Reading
from isthmus.diagnostics.matrix_calls import MatrixCall, memories_of, memory_of
from isthmus.diagnostics.movement import Movement

EXACT_OUTPUTS = 128  # up to here every output is differentiated; above, random combinations of them
PROJECTIONS = 64


class GradientsStop(RuntimeError):
    """No derivative comes out of a module, or none arrives at its inputs: the message says why."""


@dataclass(slots=True, eq=False)
class Derivatives:
    """What derivatives at some points say, by layer.

    Attributes:
        spectra: singular values of df/da_{l-1} by point, (points, r), one tensor per layer.
        spectra_errors: half the difference between the values of the two halves of a sketch; empty if exact.
        traces: |df/dW_l|^2 + |df/db_l|^2 by point, one tensor per layer.
        trace_errors: standard error of the mean over projections of the mean trace; empty if exact.
        by_input: singular values of df/dx along the movement of the inputs by point, (points, r).
        num_projections: how many random combinations of the outputs; 0 if all outputs were differentiated.
        is_reached: whether any derivative by an input is other than 0, along the movement or not.
    """

    spectra: list[Tensor] = field(default_factory=list[Tensor])
    spectra_errors: list[Tensor] = field(default_factory=list[Tensor])
    traces: list[Tensor] = field(default_factory=list[Tensor])
    trace_errors: list[float] = field(default_factory=list[float])
    by_input: Tensor = field(default_factory=lambda: torch.zeros(0, 0))
    num_projections: int = 0
    is_reached: bool = True


@dataclass(slots=True, eq=False)
class Tap:
    """Where derivatives of one layer are taken."""

    call: MatrixCall
    entering: GradientEdge
    leaving: GradientEdge
    x: Tensor


class Taps(Listener):
    """Makes every layer's input and output a place where derivatives can be taken."""

    def __init__(self) -> None:
        self.taps: list[Tap] = []
        self.tables: list[Tensor] = []
        self._by_place: dict[int, list[Tap]] = {}  # in memory, of what entered

    def entering(self, call: MatrixCall) -> Tensor | None:
        """A leaf in place of an input that depends on nothing differentiable."""
        return None if call.x.requires_grad else call.x.detach().requires_grad_()

    def embedded(self, output: Tensor) -> Tensor:
        """A leaf in place of what a lookup returned."""
        self.tables.append(output.detach().requires_grad_())
        return self.tables[-1].clone()

    def called(self, reading: Reading) -> None:
        """Note where the input and z are in the graph, before anything overwrites them.

        Raises:
            GradientsStop: they are in none.
        """
        if not (reading.enters.requires_grad and reading.z.requires_grad):
            raise GradientsStop(f"layer {reading.name} is computed without gradients (no_grad, inference_mode)")
        entering, leaving = get_gradient_edge(reading.enters), get_gradient_edge(reading.z)
        self.taps.append(Tap(reading.call, entering, leaving, reading.enters.detach()))
        self._by_place.setdefault(memory_of(reading.enters), []).append(self.taps[-1])

    def overwriting(self, targets: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """Keep what entered layers before, of which the gradients by their matrices are made."""
        del inputs
        for tap in (tap for place in memories_of(targets) for tap in self._by_place.pop(place, ())):
            tap.x = tap.x.clone()
            tap.call = replace(tap.call, x=tap.x)


def sample_axes(shapes: list[tuple[torch.Size, torch.Size]], sizes: tuple[int, int]) -> list[int | None]:
    """Which axis counts samples, from the shapes that a tensor has for two numbers of samples; None if none does."""
    out: list[int | None] = []
    for few, many in shapes:
        found = [i for i, (a, b) in enumerate(zip(few, many, strict=True)) if a * sizes[1] == b * sizes[0] and a != b]
        out.append(found[0] if len(few) == len(many) and found else None)
    return out


def projections(num_outputs: int, seed: int = 0) -> Tensor | None:
    """Random combinations of the outputs, (PROJECTIONS, num_outputs), of variance 1/PROJECTIONS; None if not needed."""
    if num_outputs <= EXACT_OUTPUTS:
        return None
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(PROJECTIONS, num_outputs, generator=generator, dtype=torch.float64) / PROJECTIONS**0.5


def derivatives_at(
    output: Tensor, leaves: list[Tensor], taps: Taps, axes: list[int | None], *, points: int, movement: Movement
) -> Derivatives:
    """Derivatives of the outputs of a batch of points, whose forward pass was watched by `taps`.

    Args:
        output: (points, ...), or with several rows for each point.
        leaves: the floating-point inputs; those of lookup tables are added.
        taps: what heard the forward pass.
        axes: which axis of every layer's input counts samples.
        points: how many points these are.
        movement: of the inputs over all rows.

    Returns:
        The derivatives of these points; NaN for layers without an axis of samples.

    Raises:
        GradientsStop: the output has none.
    """
    if not output.requires_grad:
        raise GradientsStop("its output is detached")
    flat = output.reshape(points, -1)
    mix = projections(flat.shape[1])
    mixed = flat if mix is None else flat @ mix.mT.to(flat)
    leaves = [*leaves, *taps.tables]
    edges = [e for tap in taps.taps for e in (tap.entering, tap.leaving)]
    rows: list[list[Tensor]] = [[] for _ in taps.taps]
    squares: list[list[Tensor]] = [[] for _ in taps.taps]
    whole: list[Tensor] = []
    own = [_own_axis(tap, axis, points) for tap, axis in zip(taps.taps, axes, strict=True)]
    tangents = [_Tangent(tap, axis, points) for tap, axis in zip(taps.taps, own, strict=True)]
    for column in range(mixed.shape[1]):
        found = _gradients(mixed[:, column].sum(), edges, leaves)
        for i, tangent in enumerate(tangents):
            if tangent.axis is not None:
                rows[i].append(tangent.row(found[2 * i]))
                squares[i].append(tangent.square(found[2 * i + 1]))
        by_leaf = [
            (leaf.new_zeros(leaf.shape) if g is None else g).reshape(points, -1)
            for leaf, g in zip(leaves, found[len(edges) :], strict=True)
            if len(leaf) == points
        ]
        whole.append(torch.cat(by_leaf, 1) if by_leaf else flat.new_zeros(points, 0))
    by_input = torch.stack(whole, 1).detach()
    out = _collected(rows, squares, movement.along(by_input), 0 if mix is None else len(mix))
    out.is_reached = bool(by_input.any())
    return out


def _own_axis(tap: Tap, axis: int | None, points: int) -> int | None:
    """The axis of samples, unless only some of these samples came here, as an expert takes those chosen for it."""
    return None if axis is None or tap.x.shape[axis] % points else axis


def _gradients(value: Tensor, edges: list[GradientEdge], leaves: list[Tensor]) -> Sequence[Tensor | None]:
    places = [*edges, *map(get_gradient_edge, leaves)]
    try:
        return torch.autograd.grad(value, places, retain_graph=True, allow_unused=True, materialize_grads=False)
    except RuntimeError as error:  # a function without a derivative, or one whose result was overwritten
        raise GradientsStop(f"it cannot be differentiated ({' '.join(str(error).split())[:120]})") from error


class _Tangent:
    """Regroups the gradients of one layer by sample."""

    def __init__(self, tap: Tap, axis: int | None, points: int) -> None:
        self.tap, self.axis, self.points = tap, axis, points
        if axis is None:
            return
        self.inputs = _by_sample(
            tap.call.rows_in().detach(), tap.call.x.shape, axis, points, tap.call.convolution is not None
        )
        tokens, width = self.inputs.shape[1:]
        height = len(tap.call.matrix)
        # |G^T A|^2 as <G G^T, A A^T> where there are fewer tokens than entries of the matrix
        is_cheaper = tokens * (width + height) < width * height and not self._groups
        self.gram = self.inputs @ self.inputs.mT if is_cheaper else None

    @property
    def _groups(self) -> int:
        """Groups of a grouped convolution, else 0."""
        convolution = self.tap.call.convolution
        return convolution.groups if convolution is not None and convolution.groups > 1 else 0

    def row(self, gradient: Tensor | None) -> Tensor:
        """One row of the Jacobian at every point, (points, features of the sample)."""
        gradient = torch.zeros_like(self.tap.x) if gradient is None else gradient
        return gradient.movedim(self.axis or 0, 0).reshape(self.points, -1)

    def square(self, gradient: Tensor | None) -> Tensor:
        """|df/dW|^2 + |df/db|^2 at every point."""
        if gradient is None:
            return self.inputs.new_zeros(self.points)
        call = self.tap.call
        rows = call.rows_out(gradient)
        by_sample = _by_sample(rows, gradient.shape, self.axis or 0, self.points, call.convolution is not None)
        if self.gram is not None:
            total = ((by_sample @ by_sample.mT) * self.gram).sum((1, 2))
        else:
            total = self._weight_gradient(by_sample).square().sum((1, 2))
        return total if call.bias is None else total + by_sample.sum(1).square().sum(1)

    def _weight_gradient(self, by_sample: Tensor) -> Tensor:
        gradient, groups = by_sample.mT @ self.inputs, self._groups
        if not groups:
            return gradient
        block = gradient.new_ones(gradient.shape[-2] // groups, gradient.shape[-1] // groups)
        return gradient * torch.block_diag(*[block] * groups)


def _by_sample(rows: Tensor, shape: torch.Size, axis: int, points: int, is_convolution: bool) -> Tensor:
    """Rows grouped by sample, (points, tokens, features)."""
    if is_convolution or axis == 0:
        return rows.reshape(points, -1, rows.shape[-1])
    return rows.reshape(*shape[:-1], rows.shape[-1]).movedim(axis, 0).reshape(points, -1, rows.shape[-1])


def _collected(
    rows: list[list[Tensor]], squares: list[list[Tensor]], whole: Tensor, num_projections: int
) -> Derivatives:
    out = Derivatives(num_projections=num_projections)
    for row, square in zip(rows, squares, strict=True):
        jacobian = torch.stack(row, 1).detach() if row else torch.full((1, 1, 1), math.nan)
        out.spectra.append(_singular_values(jacobian))
        by_output = torch.stack(square, 1).detach() if square else torch.full((1, 1), math.nan)
        out.traces.append(by_output.sum(1).double())
        if num_projections:
            halves = [_singular_values(part * 2**0.5) for part in jacobian.chunk(2, 1)]
            out.spectra_errors.append((halves[0] - halves[-1]).abs() / 2)  # one of a layer without an axis of samples
            error = by_output.mean(0).std() * num_projections**0.5 if by_output.shape[1] > 1 else math.nan
            out.trace_errors.append(float(error))
    out.by_input = _singular_values(whole)
    return out


def _singular_values(jacobians: Tensor) -> Tensor:
    if not bool(torch.isfinite(jacobians).all()):
        return jacobians.new_full((len(jacobians), 1), math.nan).double()
    return torch.linalg.svdvals(jacobians.double())


def joined(parts: list[Derivatives]) -> Derivatives:
    """The derivatives of several batches of points as one."""
    first = parts[0]
    layers = range(len(first.spectra))
    errors = [sum(p.trace_errors[i] ** 2 for p in parts) ** 0.5 / len(parts) for i in layers if first.trace_errors]
    return Derivatives(
        spectra=[_side_by_side([p.spectra[i] for p in parts]) for i in layers],
        spectra_errors=[_side_by_side([p.spectra_errors[i] for p in parts]) for i in layers if first.spectra_errors],
        traces=[torch.cat([p.traces[i] for p in parts]) for i in layers],
        trace_errors=errors,
        by_input=torch.cat([p.by_input for p in parts]),
        num_projections=first.num_projections,
        is_reached=any(p.is_reached for p in parts),
    )


def _side_by_side(spectra: list[Tensor]) -> Tensor:
    """Those of all points; NaN for a layer that did not have a row for every sample each time."""
    is_known = len({spectrum.shape[1] for spectrum in spectra}) == 1
    return torch.cat(spectra) if is_known else spectra[0].new_full((1, 1), math.nan)
