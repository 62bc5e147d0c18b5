"""Where a classifier answers which class on a plane through the data, exactly, as a table for `plots.decision_regions`.

The pieces of a network: `networks.slice_cells`. Which output wins where: `networks.class_regions`.
"""

from collections.abc import Sequence

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, class_regions, slice_cells
from isthmus.networks.chain import UnreadableModule, read_chain
from isthmus.networks.departures import departure
from isthmus.networks.stage_kinds import relu_slope
from isthmus.theory.home import at_home

MARGIN = 0.25  # of the spread of the samples, around them
ROUNDING = 1e-9  # what is closer than this share of the whole is one point, or one direction


@at_home
def class_slice(
    module: nn.Module,
    x: Float[Tensor, "n d_in"],
    *,
    plane: tuple[Float[Tensor, " d_in"], Float[Tensor, "2 d_in"]] | None = None,
    class_names: Sequence[str] | None = None,
) -> xr.Dataset:
    """The regions of a plane where each output of a classifier is the largest, and where three of them meet.

        x(u, v) = origin + u basis_1 + v basis_2;   class of (u, v) = argmax_c f_c(x(u, v))

        table = class_slice(network, x)
        isthmus.plots.decision_regions(table)

    Args:
        module: a `FullyConnected`, or linear layers with ReLU or one leaky ReLU in between; it is not changed.
        x: samples as rows; the part of the plane that is looked at holds all of them, projected.
        plane: origin and basis; by default the mean and the first two principal components of x, and with two columns
            the columns themselves.
        class_names: one per output; "class 0", .. unless given.

    Returns:
        `vertices` of the convex pieces (dimensions "piece", "vertex", "component", padded with NaN), `label` of each,
        `class_name`, `tripoints`, each of which certifies a bottleneck rank of 2 at least, and `points`, the samples
        that lie on the plane.

    Raises:
        ValueError: a module that is not piecewise affine in this way, fewer than two outputs, a basis of rank below 2.
        ShapeError: x does not have two dimensions, or as many rows and columns as are needed; names that do not fit.

    Accuracy: *exact* up to rounding, in float64. Source: Jacot 2023a, section 5. Test: diagnostics/test_class_slices.
    """
    if x.ndim != 2 or x.shape[1] < 2 or len(x) < 3:
        raise ShapeError(f"class_slice(module, x): needs 3 rows and 2 columns at least; got shape {tuple(x.shape)}.")
    network = _piecewise_affine(module, x)
    names = [f"class {c}" for c in range(network.dimensions[-1])] if class_names is None else [*class_names]
    if len(names) != network.dimensions[-1]:
        raise ShapeError(
            f"class_slice(class_names=...): needs one name for each of the {network.dimensions[-1]} outputs; got "
            f"{len(names)}."
        )
    rows = x.detach().double()
    origin, basis = _plane_of(rows) if plane is None else (part.detach().double() for part in plane)
    if int(torch.linalg.matrix_rank(basis, rtol=ROUNDING)) < 2:
        raise ValueError("class_slice(plane=...): needs two independent directions. Choose others, or other samples.")
    at = (rows - origin) @ torch.linalg.pinv(basis)
    low, high = at.min(0).values, at.max(0).values
    margin = MARGIN * (high - low)
    (u0, v0), (u1, v1) = (low - margin).tolist(), (high + margin).tolist()
    found = class_regions(slice_cells(network, origin, basis, lower=(u0, v0), upper=(u1, v1)))
    off = torch.linalg.vector_norm(rows - origin - at @ basis, dim=1)
    on_plane = off <= ROUNDING * torch.linalg.vector_norm(rows - origin, dim=1).max()
    return xr.Dataset(
        {
            "vertices": (("piece", "vertex", "component"), pad_sequence([*found.polygons], True, torch.nan).numpy()),
            "label": ("piece", found.labels.numpy()),
            "class_name": ("class", names),
            "tripoints": (("tripoint", "component"), found.tripoints.numpy()),
            "points": (("sample", "component"), at[on_plane].numpy()),
        }
    )


def _piecewise_affine(module: nn.Module, x: Tensor) -> FullyConnected:
    """The module as a network of ours.

    Raises:
        ValueError: it has a step that is neither a linear layer nor a ReLU between two of them.
    """
    if isinstance(module, FullyConnected) and not departure(module, FullyConnected):
        return module
    kind = type(module).__name__
    try:
        stages = read_chain(module, x)
    except UnreadableModule as error:
        raise ValueError(f"class_slice(module, x): {kind} cannot be taken apart: {error}.") from error
    bends = [relu_slope(stage.module) for stage in stages]
    layers = [stage.module for stage in stages if isinstance(stage.module, nn.Linear)]
    odd = [s.name for s, bend in zip(stages, bends, strict=True) if bend is None and type(s.module) is not nn.Linear]
    # two bends in a row, or one at either end: anything but the hidden layer of a network of ours
    odd += [s.name for s, before, bend in zip(stages, [0.0, *bends], bends, strict=False) if None not in {before, bend}]
    slopes = {bend for bend in bends if bend is not None}
    if odd or len(slopes) > 1 or not layers or bends[-1] is not None:
        what = f"{odd[0]!r} is something else" if odd else f"it has {len(layers)} layers, slopes {sorted(slopes)}"
        raise ValueError(
            f"class_slice(module, x): needs linear layers with ReLU or one leaky ReLU in between; of {kind} {what}."
        )
    weights = [layer.weight.detach().double() for layer in layers]
    own = [dict(layer.named_parameters()).get("bias") for layer in layers]
    biases = [w.new_zeros(len(w)) if b is None else b.detach().double() for w, b in zip(weights, own, strict=True)]
    ends = [i for i, bend in enumerate(bends) if bend is None]
    linear = [number for number, i in enumerate(ends[:-1], 1) if bends[i + 1] is None]
    return FullyConnected.from_layers(weights, biases, negative_slope=slopes.pop() if slopes else 0.0, linear=linear)


def _plane_of(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The two columns themselves, or the mean and the first two principal components."""
    if rows.shape[1] == 2:
        return rows.new_zeros(2), torch.eye(2, dtype=rows.dtype)
    centre = rows.mean(0)
    s, vh = torch.linalg.svd(rows - centre, full_matrices=False)[1:]
    return centre, vh[:2] * (s[:2, None] > 1e-12 * s[0])  # a direction in which nothing varies is none
