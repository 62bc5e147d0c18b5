"""What a linear half says: combinations of the inputs, or modes of the outputs, in a basis that people can read.

The halves themselves: `Discovery.encoder`, `Discovery.decoder`. As text: `straight_terms`. Pictures:
`plots.combinations`; the page: `reports`.
"""

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from isthmus.discovery.combinations import IDLE
from isthmus.discovery.data.new_rows import targets_in_order
from isthmus.discovery.data.scaling import CONSTANT, Scaling, Standardiser
from isthmus.discovery.evidence.interpretation import drawn_rows
from isthmus.discovery.groups.varimax import signed, varimax
from isthmus.discovery.halves import INDEX, MODE
from isthmus.discovery.result import Discovery
from isthmus.errors import DataError, ShapeError
from isthmus.networks import FullyConnected, jacobians
from isthmus.tasks.arrays import as_samples, check_same_length
from isthmus.tasks.input_columns import pixel_coordinate

LEADING = ("gradient_direction", "gradient_share", "gradient_angle", "least_loss_angle")
_DEPENDENT = 1e-10  # relative singular value below which rows of a half depend on each other
Array = NDArray[np.float64]
Variables = dict[str, tuple[str | tuple[str, ...], Array]]  # dimensions and values by name


def straight_half(found: Discovery, x: ArrayLike | None = None, y: ArrayLike | None = None) -> xr.Dataset | None:
    """The linear half of a discovery, rotated so that each direction uses few columns; None where both are curved.

        index rank:  f = h o A,      c = V (x - mean) / s,    V V^T = 1,  the row space of V is that of A diag(s)
        mode rank:   f = B o g + c,  (f - mean) / s = V^T c,  V V^T = 1,  the row space of V is that of (B / s)^T

    Data determine the span of the rows of V; the rotation is `varimax`, a choice, and directions stand in the order of
    `share`. Where a discovery recorded its `combinations`, V is theirs and so is the order. Without these and without
    rows, s = 1: the user's units, and varimax alone orders them. Where logarithms were taken, x and f are what they
    became.

    Args:
        found: any discovery.
        x: samples (n, d_in) in the user's units; slopes are taken at most at 1000 of them (seeded choice).
        y: their targets, by whose spread outputs are divided; of autoencoders the samples. None: one number for all.

    Returns:
        Dimensions "direction" (1, 2, ...), "column" (inputs, or outputs of modes): `loading` (V), `takes_part`: whether
        a column's loading is 0.05 or more in any direction of the span, `is_logged`, `source`: the column of the table
        that it is a value of, whose values take part together, or its own name; with `x` also `coefficient` of
        each column in the user's units (V / s, of modes V s), `value` ("sample", "direction": c), `share` of the
        squared slopes (of modes: of the variance) along each direction, by "component" `spectrum`: the eigenvalues of
        the gradient covariance of f in standardised columns, of modes the singular values of all tangents, and of
        combinations by "output" `slope`: the share of each in the squared slopes along a direction. Where trainings
        on halves of the rows were recorded, `low` and `high` of each loading and the `cone` of each direction. By
        "leading", of what a search recorded in `Discovery.combinations`: `gradient_direction` ("column"),
        `gradient_share`, `gradient_angle`, `least_loss_angle`. Of arrays of pictures `pixel`, see `interpret`.
        Attributes: `kind`, `standardised`. All are *estimates* of the task and *exact* for the returned map, but for
        the rows drawn.

    Raises:
        ShapeError: `x` or `y` has other columns or rows than the discovery.

    Source: Li 1991; Constantine 2015 (gradient covariance); Kaiser 1958. Test: discovery/evidence/test_straight_halves.
    """
    if found.kind not in {INDEX.name, MODE.name} or found.encoder.dimensions[-1] == 0:
        return None
    if x is None:
        return _table(found, _loading(found, 1.0), {}, standardised=_recorded(found) is not None)
    samples = found.in_order(x)
    half = _combinations if found.kind == INDEX.name else _modes
    return half(found, found.inputs_of(samples), targets_of(found, samples, y))


def straight_halves(
    found: Discovery, x: ArrayLike | None = None, y: ArrayLike | None = None
) -> list[tuple[Discovery, xr.Dataset]]:
    """The linear halves of a discovery and of the other ranks of its task, each with whose it is."""
    pairs = [(one, straight_half(one, x, y)) for one in (found, *found.others.values()) if one.rank]
    return [(one, half) for one, half in pairs if half is not None]


def targets_of(found: Discovery, x: Array, y: ArrayLike | None) -> Array | None:
    """Targets (n, d_out) as the network has them, of autoencoders what the samples x become; None where there are none.

    Of classes their numbers (n, 1).

    Raises:
        DataError: a class that the discovery does not know, numbers that are not finite, or other rows than `x`.
        ShapeError: another number of targets.
    """
    if found.task == "autoencoding":
        return found.inputs_of(x)
    if y is None:
        return None
    y = targets_in_order(y, found.target_names)
    targets = _class_numbers(y, found.target_names)[:, None] if found.loss.classes else as_samples(y, "y")
    check_same_length(len(x), len(targets))
    if not found.loss.classes and targets.shape[1] != len(found.target_names):
        raise ShapeError(f"y: needs the {len(found.target_names)} targets of the run, got {targets.shape[1]} columns.")
    return targets if found.powers is None or found.loss.classes else found.powers.targets(x, targets)


def _class_numbers(y: ArrayLike, names: Sequence[str]) -> Array:
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:  # one 0/1 column per class, of which empty ones were left out
        columns = [str(name) for name in getattr(y, "columns", range(values.shape[1]))]
        labels = [columns[i] for i in values.argmax(1)]
        if not set(labels) <= set(names) and values.shape[1] == len(names):
            return values.argmax(1).astype(np.float64)
    else:
        labels = [str(label) for label in values.reshape(-1).tolist()]
    numbers = {name: float(number) for number, name in enumerate(names)}
    if unknown := next((label for label in labels if label not in numbers), None):
        raise DataError(f"y: the class {unknown!r} is not one of the run's.")
    return np.array([numbers[label] for label in labels])


def _recorded(found: Discovery) -> xr.Dataset | None:
    """The combinations that the search itself recorded, with their scatter."""
    return found.combinations if found.kind == INDEX.name else None


def _loading(found: Discovery, scale: Array | float) -> Array | None:
    """V, of the linear half with its columns in these units."""
    if (recorded := _recorded(found)) is not None:
        return recorded["loading"].transpose("combination", "input").values
    return _readable(_matrix(found.encoder) * scale if found.kind == INDEX.name else _matrix(found.decoder).T * scale)


def _combinations(found: Discovery, x: Array, y: Array | None) -> xr.Dataset | None:
    rows = _matrix(found.encoder)
    mean, scale = _moments(x, rows.shape[1])
    scaled = rows * scale
    loading = _loading(found, scale)
    if loading is None:
        return None
    # slopes along the combinations: those of the decoder, through the matrix that leads to its coordinates
    turn = torch.from_numpy(scaled @ loading.T)
    points = torch.from_numpy(x[drawn_rows(len(x))])
    with torch.no_grad():
        slopes = jacobians(found.decoder, found.encoder(points)) @ turn
    slopes = (slopes * torch.from_numpy(_output_weights(found, x, y))[:, None]).numpy()
    if found.loss.unseen:  # scores of classes count up to a common shift
        slopes = slopes - slopes.mean(1, keepdims=True)
    squares = np.square(slopes).mean(0)  # (output, direction)
    covariance = np.einsum("nqi,nqj->ij", slopes, slopes) / len(slopes)
    coefficient = loading @ np.linalg.pinv(scaled) @ rows  # V / s, and exactly in the span of the encoder
    table: Variables = {
        "coefficient": (("direction", "column"), coefficient),
        "value": (("sample", "direction"), (x - mean) @ coefficient.T),
        "share": ("direction", _shares(squares.sum(0))),
        "slope": (("direction", "output"), _shares(squares.T)),
        "spectrum": ("component", np.asarray(np.linalg.eigvalsh(covariance)[::-1].clip(0.0), dtype=np.float64)),
    }
    return _table(found, loading, table, standardised=True)


def _modes(found: Discovery, x: Array, y: Array | None) -> xr.Dataset | None:
    columns = _matrix(found.decoder)
    standardised = y is not None and found.loss.standardised
    scale = np.ones(len(columns))
    if y is not None and standardised:
        scale = found.loss.output_units(*_moments(y, y.shape[1]))[1]
    loading = _loading(found, _inverse(scale))
    if loading is None:
        return None
    turn = loading @ (columns * _inverse(scale)[:, None])  # from coordinates to scores
    points = torch.from_numpy(x)
    with torch.no_grad():
        values = found.encoder(points).numpy() @ turn.T
    tangents = torch.from_numpy(turn) @ jacobians(found.encoder, points[drawn_rows(len(x))])
    tangents = tangents * torch.from_numpy(_moments(x, x.shape[1])[1])
    table: Variables = {
        "coefficient": (("direction", "column"), loading * scale),
        "value": (("sample", "direction"), values - values.mean(0)),
        "share": ("direction", _shares(values.var(0))),
        "spectrum": ("component", MODE.spectrum(tangents).numpy()[: len(loading)]),
    }
    return _table(found, loading, table, standardised=standardised)


def _table(found: Discovery, loading: Array | None, more: Variables, *, standardised: bool) -> xr.Dataset | None:
    """What is known of the directions, in the order in which they were recorded or else of their share."""
    if loading is None:
        return None
    index, width = found.kind == INDEX.name, loading.shape[1]
    names = (found.input_names if index else found.loss.output_names(found.target_names)) or tuple(
        f"{'yx'[index]}{i}" for i in range(width)
    )
    logged = () if found.powers is None else found.powers.coordinates.is_logged if index else found.powers.target_logs
    sources = sources_of(found, names)
    pixels = pixel_coordinate(found.columns, "column") if tuple(names) == found.input_names else {}
    half = xr.Dataset(
        {
            "loading": (("direction", "column"), loading),
            "takes_part": ("column", _taking_part(loading, sources)),
            "source": ("column", sources),
            "is_logged": ("column", np.resize(np.array(logged or [False]), width)),
            **more,
        },
        coords={"column": list(names), **pixels},
        attrs={"kind": found.kind, "standardised": int(standardised)},
    )
    if (recorded := _recorded(found)) is not None and "cone" in recorded:
        renamed = {"loading_low": "low", "loading_high": "high", "cone": "cone"}
        for name, short in renamed.items():
            half[short] = (("direction", "column")[: recorded[name].ndim], recorded[name].values)
    if recorded is not None:
        for name in LEADING:
            if name in recorded:
                half[name] = (("leading", "column")[: recorded[name].ndim], recorded[name].values)
    if "share" in half and recorded is None:
        half = half.isel(direction=np.argsort(-half["share"].values, kind="stable"))
    return half.assign_coords(direction=np.arange(1, len(loading) + 1))


def sources_of(found: Discovery, names: Sequence[str]) -> list[str]:
    """Of each column that of the table which it is a value of, or itself."""
    known = {column.name: column.source for column in found.columns or ()}
    return [known.get(name, name) for name in names]


def _taking_part(loading: Array, sources: Sequence[str]) -> NDArray[np.bool_]:
    """Whether the largest loading of any unit vector of the span is not small, values of one column taken together."""
    of = np.array(sources)
    largest = {name: np.linalg.norm(loading[:, of == name], 2) for name in dict.fromkeys(sources)}
    return np.array([largest[name] >= IDLE for name in sources])


def _matrix(half: FullyConnected) -> Array:
    """The matrix of a linear half."""
    product = half.weights[0].detach()
    for weight in list(half.weights)[1:]:
        product = weight.detach() @ product
    return product.double().numpy()


def _readable(rows: Array) -> Array | None:
    """Orthonormal rows of the span, sparse and signed; None where all are zero."""
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    count = int((values > _DEPENDENT * values[0]).sum()) if len(values) else 0
    if count == 0:
        return None
    return varimax(basis[:count]) if count > 1 else signed(basis[:1])


def _moments(values: Array, width: int) -> tuple[Array, Array]:
    """Mean and standard deviation of columns, 0 for constant ones."""
    of = Standardiser.of(values)
    scale = np.zeros(width)
    scale[of.kept] = of.scale
    return of.mean, scale


def _inverse(scale: Array) -> Array:
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)


def _output_weights(found: Discovery, x: Array, y: Array | None) -> Array:
    """What outputs are multiplied by: 1 over the spread of each target where they count alike, else one number."""
    if not found.loss.standardised:
        return np.ones(found.decoder.dimensions[-1])
    targets = np.asarray(found.loss.means(outputs_of(found, x)), dtype=np.float64) if y is None else y
    mean, scale = _moments(targets, targets.shape[1])
    if y is None or found.settings.get("scaling") != Scaling.COLUMN.value:
        total = float(np.sqrt(np.square(scale).sum()))
        scale = np.full(len(scale), total if total > CONSTANT else 1.0)
    return _inverse(found.loss.output_units(mean, scale)[1])


def outputs_of(found: Discovery, x: Array) -> Array:
    """What the network gives at inputs as it takes them."""
    with torch.no_grad():
        return found.decoder(found.encoder(torch.from_numpy(x))).numpy()


def _shares(squares: Array) -> Array:
    """Over the sum of the last axis, 0 where that is 0."""
    total = squares.sum(-1, keepdims=True)
    return np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)
