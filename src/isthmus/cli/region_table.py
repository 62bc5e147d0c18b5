"""What `isthmus region` measures on a slice, its picture and its table. The exact pieces: `networks`."""

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.table import Table
from torch import Tensor

from isthmus.cli.region_model import Model
from isthmus.cli.region_slice import Plane
from isthmus.cli.terminal import terminal
from isthmus.errors import DataError
from isthmus.networks import ClassRegions, SliceCells, class_regions, slice_cells
from isthmus.plots import regions
from isthmus.plots.style import axes_or_new, own_settings
from isthmus.tasks.arrays import counted
from isthmus.theory import schatten_lower_bound
from isthmus.writing.atomic import atomic_path

_RELATIVE = 1e-9  # of the largest singular value on the slice, below which one counts as rounding
_DPI = 160


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
    schatten = float(schatten_lower_bound(cells.jacobians, depth=model.network.depth))
    return Measured(
        cells, ranks, values.amax(1), witness, schatten, class_regions(cells) if by_class else None, where.what
    )


@own_settings()
def draw(found: Measured, model: Model, where: Plane, out: Path) -> None:
    """Write the picture of the slice."""
    ax = axes_or_new(None)
    if found.classes is None:
        names = {int(rank): f"rank {int(rank)}" for rank in found.ranks.unique()}
        regions(
            [p.numpy() for p in found.cells.polygons],
            found.ranks.numpy(),
            ax,
            names=names,
            ordered=True,
            shades=found.gains.numpy(),
            points=where.points,
            axis_names=where.axis_names,
        )
    else:
        regions(
            [polygon.numpy() for polygon in found.classes.polygons],
            found.classes.labels.numpy(),
            ax,
            names=dict(enumerate(model.output_names)),
            tripoints=found.classes.tripoints.numpy(),
            points=where.points,
            axis_names=where.axis_names,
        )
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.set_size_inches(6.0, 4.2)
    with atomic_path(out) as temporary:
        figure.savefig(temporary, dpi=_DPI)


def print_measured(found: Measured, model: Model, out: Path) -> None:
    """The numbers as a small table on the terminal."""
    cells, network = found.cells, model.network
    rank = int(found.ranks.max())
    lines = [
        ("network", model.what),
        ("slice", f"{found.what}: {counted(len(cells.polygons), 'piece')}"),
        ("Jacobian rank", f"{rank} (exact on the slice), at x = {_point(found.witness)}"),
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
            ("", f"{', '.join(names[c] for c in met)} at x = {_point(cells.points(point[None])[0])}")
            for point, met in list(zip(found.classes.tripoints, found.classes.tripoint_classes, strict=True))[:5]
        ]
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in lines:
        table.add_row(label, text)
    console = terminal()
    console.print(table)
    console.print(f"Picture: {out}", soft_wrap=True, markup=False)


def _point(x: Tensor, *, shown: int = 6) -> str:
    listed = ", ".join(f"{float(value):.4g}" for value in x[:shown])
    return f"({listed}{', ...' if len(x) > shown else ''})"
