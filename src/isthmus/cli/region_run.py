"""What `isthmus region` does: the plane of --slice, what is exact on it, picture and table.

The network: `region_model`; its exact pieces: `networks`. How they are drawn: `plots`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isthmus.cli.region_model import Model
from isthmus.cli.terminal import labelled, print_place, terminal
from isthmus.cli.voice import tell
from isthmus.errors import DataError
from isthmus.networks import ClassRegions, SliceCells, class_regions, enclosed_jacobians, slice_cells
from isthmus.networks.segments import in_float64
from isthmus.plots import regions
from isthmus.plots.style import axes_or_new, own_settings
from isthmus.tasks.arrays import counted
from isthmus.tasks.names import names_in, number_in, shown
from isthmus.theory import schatten_lower_bound
from isthmus.writing.atomic import atomic_path

_RELATIVE = 1e-9  # of the largest singular value on the slice, below which one counts as rounding
_DPI = 160
_MARGIN = 0.25  # of the box that is drawn, around the rows


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """x(u, v) = origin + u basis_1 + v basis_2 for (u, v) in a box.

    Attributes:
        origin: shape (d_in,).
        basis: two rows.
        lower: least u and v.
        upper: largest u and v.
        points: (u, v) of the rows that lie on the plane by their making; none for a plane of two columns.
        axis_names: what u and v are.
        what: the plane in words.
    """

    origin: np.ndarray
    basis: np.ndarray
    lower: tuple[float, float]
    upper: tuple[float, float]
    points: np.ndarray
    axis_names: tuple[str, str]
    what: str


def plane(model: Model, through: str, at: int | None) -> Plane:
    """The plane that the options name.

    Raises:
        DataError: neither three rows nor two columns, rows or columns that are not there, rows on one line.
    """
    parts = [*names_in(through)]
    if len(parts) == 3 and all(part.isdecimal() for part in parts):
        if at is not None:
            raise DataError("--at: fixes the inputs that a slice of two columns leaves; three rows leave none.")
        return _through_rows(model.rows, parts)
    if len(parts) == 2:
        return _of_columns(model, parts, at)
    raise DataError(f"--slice {through}: needs three row numbers, as in 1,2,3, or two input columns.")


def _through_rows(rows: np.ndarray, named: list[str]) -> Plane:
    numbers = [number_in(part) or 0 for part in named]
    for part, number in zip(named, numbers, strict=True):
        if not 1 <= number <= len(rows):
            raise DataError(f"--slice: has no row {shown(part)}; rows are numbered 1 to {len(rows)}.")
    first, second, third = rows[[number - 1 for number in numbers]]
    along, across = second - first, third - first
    length = float(np.linalg.norm(along))
    across = across - along * (float(along @ across) / length**2 if length > 0 else 0.0)
    if not length > 0 or float(np.linalg.norm(across)) <= 1e-9 * float(np.linalg.norm(third - first)):
        raise DataError(f"--slice: rows {numbers[0]}, {numbers[1]} and {numbers[2]} lie on one line. Choose others.")
    basis = np.stack([along / length, across / np.linalg.norm(across)])
    points = np.stack([first - first, second - first, third - first]) @ basis.T
    lower, upper = _box(points)
    listed = ", ".join(map(str, numbers))
    return Plane(
        first, basis, lower, upper, points,
        (f"distance from row {numbers[0]} towards row {numbers[1]}", f"distance towards row {numbers[2]}"),
        f"the plane through rows {listed}",
    )  # fmt: skip


def _of_columns(model: Model, names: list[str], at: int | None) -> Plane:
    if names[0] == names[1]:
        raise DataError(f"--slice: names column {names[0]!r} twice. Give two different columns.")
    for name in names:
        if name not in model.input_names:
            listed = ", ".join(map(shown, model.input_names[:20]))
            raise DataError(f"--slice: there is no input column {name!r}. The inputs are {listed}.")
    if at is not None and at > len(model.rows):
        raise DataError(f"--at {at}: rows are numbered 1 to {len(model.rows)}.")
    places = [model.input_names.index(name) for name in names]
    values = model.rows[:, places]
    if (values.min(0) == values.max(0)).any():
        raise DataError(f"--slice: column {names[int((values.min(0) == values.max(0)).argmax())]!r} does not vary.")
    origin = model.rows.mean(0) if at is None else model.rows[at - 1].copy()
    origin[places] = 0.0
    lower, upper = _box(values)
    # rows are marked only where the plane passes through them
    on_plane = np.abs(np.delete(model.rows - origin, places, axis=1)).max(axis=1, initial=0.0) == 0
    fixed = "their means" if at is None else f"row {at}"
    first, second = (model.said(place) for place in places)
    what = f"columns {names[0]} and {names[1]}" + (f", the others at {fixed}" if model.rows.shape[1] > 2 else "")
    return Plane(origin, np.eye(model.rows.shape[1])[places], lower, upper, values[on_plane], (first, second), what)


def _box(points: np.ndarray) -> tuple[tuple[float, float], tuple[float, float]]:
    low, high = points.min(0), points.max(0)
    margin = _MARGIN * (high - low)
    (u0, v0), (u1, v1) = (low - margin).tolist(), (high + margin).tolist()
    return (u0, v0), (u1, v1)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The slice of a network.

    Attributes:
        cells: its affine pieces.
        ranks: rank of the Jacobian in each.
        gains: its largest singular value in each.
        witness: a point in the units of the data where the largest rank is attained.
        schatten: lower bound on the norm of every network of that depth that computes the same function.
        classes: the argmax regions, where classes were asked for.
        what: the slice in words.
    """

    cells: SliceCells
    ranks: Tensor
    gains: Tensor
    witness: Tensor
    schatten: float
    classes: ClassRegions | None
    what: str


def measure(model: Model, where: Plane, *, by_class: bool) -> Measured:
    """The exact pieces of a network on a plane, and what follows from them.

    Raises:
        DataError: classes of a network with one output.
    """
    if by_class and len(model.output_names) < 2:
        raise DataError("--colour class: the network has one output. Colour by rank.")
    cells = slice_cells(
        model.network, torch.from_numpy(where.origin), torch.from_numpy(where.basis), lower=where.lower,
        upper=where.upper,
    )  # fmt: skip
    values = torch.linalg.svdvals(cells.jacobians)
    ranks = (values > _RELATIVE * values.max()).sum(1)  # strict: the zero map has rank 0
    witness = cells.jacobian_rank(relative=_RELATIVE)[1]
    inside = enclosed_jacobians(in_float64(model.network).cpu(), cells.points(cells.centroids))
    schatten = float(schatten_lower_bound(inside.values, depth=model.network.depth, error=inside.error))
    return Measured(
        cells, ranks, values.amax(1), witness, schatten, class_regions(cells) if by_class else None, where.what
    )


@own_settings()
def draw(found: Measured, model: Model, where: Plane, out: Path) -> None:
    """Write the picture of the slice."""
    ax = axes_or_new(None)
    classes = found.classes
    if classes is None:
        polygons, labels, shades, tripoints = found.cells.polygons, found.ranks, found.gains.numpy(), None
        names = {int(rank): f"rank {int(rank)}" for rank in found.ranks.unique()}
    else:
        polygons, labels, shades, tripoints = classes.polygons, classes.labels, None, classes.tripoints.numpy()
        names = dict(enumerate(model.output_names))
    regions(
        [polygon.numpy() for polygon in polygons], labels.numpy(), ax, names=names, shades=shades, tripoints=tripoints,
        points=where.points, axis_names=where.axis_names,
    )  # fmt: skip
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.set_size_inches(6.0, 4.2)
    with atomic_path(out) as temporary:
        figure.savefig(temporary, dpi=_DPI, format=out.suffix.lower().removeprefix(".") or "png")  # a stream has none


def print_measured(found: Measured, model: Model, out: Path) -> None:
    """The numbers as a small table on the terminal."""
    cells, network = found.cells, model.network
    rank = int(found.ranks.max())
    lines = [
        ("network", model.what),
        ("slice", f"{found.what}: {counted(len(cells.polygons), 'piece')}"),
        ("Jacobian rank", f"{rank} (exact on the slice), at x = {_point(model.in_units(found.witness))}"),
        ("norm at depth", f"at least {found.schatten:.6g} at depth {network.depth} (Schatten bound); it is "
                          f"{float(network.penalty().detach()):.6g} here"),
        ("Jacobian norm", f"{cells.jacobian_norm():.6g} (exact, all directions)"),
        ("Lipschitz", f"{cells.lipschitz_constant():.6g} (exact, along the slice)"),
    ]  # fmt: skip
    if found.classes is not None:
        names = model.output_names
        pairs = ", ".join(f"{names[c]} - {names[d]}" for c, d in sorted(found.classes.adjacent))
        lines.append(("classes met", ", ".join(names[int(c)] for c in found.classes.labels.unique())))
        lines.append(("neighbours", pairs or "none"))
        num = len(found.classes.tripoints)
        proves = ": the classifier needs 2 dimensions at least" if num else " on this slice"
        lines.append(("tripoints", f"{num}{proves}"))
        lines += [
            ("", f"{', '.join(names[c] for c in met)} at x = {_point(model.in_units(cells.points(point[None])[0]))}")
            for point, met in list(zip(found.classes.tripoints, found.classes.tripoint_classes, strict=True))[:5]
        ]
    tell(
        picture=out, rank=rank, pieces=len(cells.polygons), norm_bound=found.schatten, slice=found.what,
        jacobian_norm=cells.jacobian_norm(), lipschitz_constant=cells.lipschitz_constant(),
        witness=model.in_units(found.witness), **_tripoints(found, model),
    )  # fmt: skip
    console = terminal()
    console.print(labelled(lines))
    print_place(console, "Picture", out)


def _tripoints(found: Measured, model: Model) -> dict[str, object]:
    """Where three classes meet, in the units of the data, which they are, and where on the slice; or none are known."""
    if found.classes is None:
        return {"tripoints": None}
    at = found.classes.tripoints
    return {
        "tripoints": [model.in_units(point) for point in found.cells.points(at)] if len(at) else [],
        "tripoint_classes": [[model.output_names[c] for c in met] for met in found.classes.tripoint_classes],
        "tripoints_on_slice": at,
    }


def _point(x: Tensor, *, shown: int = 6) -> str:
    listed = ", ".join(f"{float(value):.4g}" for value in x[:shown])
    return f"({listed}{', ...' if len(x) > shown else ''})"
