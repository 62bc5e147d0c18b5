"""What the coordinates of an encoder mean: the error each saves, the inputs it follows, the variables it resembles.

The coordinates themselves: `Discovery.transform`. Pictures: `plots.interpretation`.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import torch
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from isthmus.discovery.data.new_rows import applied
from isthmus.discovery.data.scaling import CONSTANT, Scaling
from isthmus.discovery.factors import Factorisation
from isthmus.discovery.result import Discovery
from isthmus.errors import DataError, ShapeError
from isthmus.networks import FullyConnected, jacobians
from isthmus.tasks.arrays import as_samples, check_rows, check_same_length, column_names, counted, in_parts
from isthmus.tasks.foreign import check_row_labels
from isthmus.tasks.input_columns import pixel_coordinate
from isthmus.theory.home import at_home

ROWS = 1000  # rows at most for Jacobians and pairs of distances, drawn with a fixed seed
AT_ONCE = 2**24  # numbers in Jacobians that are held together: 128 MiB
Array = NDArray[np.float64]


Transform = Callable[[Array], ArrayLike]


def interpret(
    found: Discovery,
    x: ArrayLike,
    *,
    candidates: Mapping[str, ArrayLike] | pd.DataFrame | None = None,
    transforms: Mapping[str, Transform] | None = None,
) -> xr.Dataset:
    """What each coordinate of a discovery means, on given samples.

        error_saved_c = mean |D (f(x) - h(z with z_c at its mean))|^2 / total variance of D f(x),   f = h o g, z = g(x)
        attribution_cj = mean over rows of |dz_c / dx_j| * std(x_j) / std(z_c)
        distance_correlation_cv = dCov(z_c, v) / sqrt(dCov(z_c, z_c) dCov(v, v))

    D divides each output by its standard deviation where the discovery counted every target column alike, or outputs
    are means and log variances; else it is 1, with scaling="global" and where the loss takes targets as they are, as of
    classes.

    Args:
        found: of rank at least 1.
        x: samples (n, d_in) in the user's units; Jacobians and distances use at most 1000 of them (seeded choice).
        candidates: variables (n,) or (n, k) by name that a coordinate may stand for; a data frame has its columns.
        transforms: maps of samples (n, d_in) by name under which the task may be invariant, such as a permutation of
            the columns or a change of sign.

    Returns:
        Dimensions "coordinate" (1, 2, ...), "input" and, where asked for, "candidate" and "transform": `error_saved`
        (relative to the outputs' variance), `order` (1 for the coordinate that saves most on these samples; they stand
        in the order of the training rows), `attribution` (no units, 1 where the coordinate is that input),
        `distance_correlation` (0 independent, 1 a similarity map), `symmetry_defect` (0 invariant). Of
        arrays of pictures (n, height, width) also what each input is, `pixel`: "row 2 column 5". All are *estimates*.

    Raises:
        ValueError: the rank is 0.
        ShapeError: `x` has other columns than the discovery, or transformed samples another shape than the samples.
        DataError: values that are not finite, rows that all have the same coordinates, or a candidate of another length
            than `x`.

    Warns:
        DataWarning: fewer than 20 rows.

    Source: distance correlation of Szekely, Rizzo and Bakirov (2007), in its biased form. Test:
    discovery/test_interpretation.

    >>> isthmus.interpret(found, x).sizes["input"]
    4
    """
    _check_arguments(found, x, candidates, transforms)
    if found.rank < 1:
        raise ValueError("interpret(found): a discovery of rank 0 has no coordinates; nothing is to be said of them.")
    samples = found.in_order(x)
    coordinates = found.transform(samples)
    if (np.ptp(coordinates, axis=0) <= CONSTANT * np.abs(coordinates).max(axis=0)).all():
        raise DataError(
            f"x: has {counted(len(samples), 'row')}, and the coordinates do not vary: nothing can be said of what they "
            "mean. Pass rows that differ."
        )
    check_rows(len(samples), what="what coordinates mean needs")
    one_unit = found.settings.get("scaling") != Scaling.COLUMN.value and found.loss.per_target == 1
    alike = found.loss.standardised and not one_unit
    saved = errors_saved(found.decoder, coordinates, columns_alike=alike)
    # a rank that only one reading gives may exceed the coordinates of the network found
    numbers = np.arange(1, coordinates.shape[1] + 1)
    order = np.empty(len(numbers), dtype=np.int64)
    order[np.argsort(-saved, kind="stable")] = numbers
    table = xr.Dataset(
        {
            "error_saved": ("coordinate", saved),
            "order": ("coordinate", order),
            "attribution": (("coordinate", "input"), attributions(found.encoder, found.inputs_of(samples))),
        },
        coords={
            "coordinate": numbers,
            "input": list(found.input_names),
            **pixel_coordinate(found.columns, "input"),
        },
    )
    if candidates is not None and len(candidates):
        names = column_names(candidates)  # two may have one
        columns = [_correlations(names[i], values, coordinates) for i, (_, values) in enumerate(candidates.items())]
        table = table.assign_coords(candidate=names)
        table["distance_correlation"] = (("coordinate", "candidate"), np.stack(columns, 1))
    if transforms:
        defects = [symmetry_defect(found.encoder, transform, samples) for transform in transforms.values()]
        table = table.assign_coords(transform=list(transforms)).assign(symmetry_defect=("transform", defects))
    return table


def _check_arguments(found: object, x: object, candidates: object, transforms: object) -> None:
    """Refuse what is nothing of its kind, and candidates whose rows are those of `x` in another order."""
    if not isinstance(found, Discovery):
        raise TypeError(f"interpret(found): needs what discover returned, got {type(found).__name__}.")
    if candidates is not None and not isinstance(candidates, Mapping | pd.DataFrame):
        raise TypeError(f"interpret(candidates=...): needs variables by name, got {type(candidates).__name__}.")
    if candidates is not None:
        check_row_labels(x, {str(name): values for name, values in candidates.items()})
    if transforms is not None and not (isinstance(transforms, Mapping) and all(map(callable, transforms.values()))):
        raise TypeError("interpret(transforms=...): needs functions of samples by name, as {'mirrored': lambda x: -x}.")


def errors_saved(decoder: FullyConnected, coordinates: Array, *, columns_alike: bool = False) -> Array:
    """How much worse the outputs become when a coordinate is held at its mean, over their total variance (rank,).

    With `columns_alike` every output that varies counts the same, whatever its units.
    """
    with torch.no_grad():
        outputs = torch.from_numpy(applied(decoder, coordinates))
        unit = torch.from_numpy(_powers_of_two(outputs.numpy(), each=columns_alike))
        outputs = outputs / unit
        variances = (outputs - outputs.mean(0)).square().mean(0)
        varying = variances.sqrt() > CONSTANT * outputs.abs().amax(0)
        weights = varying / torch.where(varying, variances, 1.0) if columns_alike else torch.ones_like(variances)
        total = float((weights * variances).sum())
        saved: list[float] = []
        for c in range(coordinates.shape[1]):
            held = coordinates.copy()
            held[:, c] = coordinates[:, c].mean()
            worse = torch.from_numpy(applied(decoder, held)) / unit - outputs
            saved.append(float((worse.square() @ weights).mean()) / (total or 1.0))
    return np.array(saved)


def _powers_of_two(values: Array, *, each: bool) -> Array:
    """Near the largest size of each column, or of all: squares of what is divided by them neither overflow nor vanish.

    They round nothing.
    """
    sizes = [np.abs(part).max(axis=0, initial=0.0) for part in in_parts(values)]
    size = np.max(sizes, axis=0) if each else np.full(values.shape[1], np.max(sizes, initial=0.0))
    return np.where(size > 0, np.ldexp(1.0, np.frexp(size)[1] - 1), 1.0)


def by_error_saved(halves: Factorisation[FullyConnected], x: torch.Tensor) -> Factorisation[FullyConnected]:
    """The same halves with the coordinate that saves most error on the rows `x` first; what each is stays as it was."""
    with torch.no_grad():
        saved = errors_saved(halves.decoder, halves.encoder(x.double()).numpy())
    order = torch.from_numpy(np.argsort(-saved, kind="stable"))
    encoder, decoder = halves.encoder, halves.decoder
    weights, biases = encoder.written_layers()
    ends = None if biases is None else [*biases[:-1], biases[-1][order]]
    first, *others = decoder.written_layers()[0]
    return dataclasses.replace(
        halves,
        encoder=encoder.rewritten([*weights[:-1], weights[-1][order]], ends),
        decoder=decoder.rewritten([first[:, order], *others], decoder.written_layers()[1]),
    )


def attributions(encoder: FullyConnected, x: Array) -> Array:
    """Mean size of the derivatives, times the spread of the input over that of the coordinate (rank, d_in)."""
    rows, coordinates = torch.from_numpy(x[drawn_rows(len(x))]), applied(encoder, x)
    of_inputs, of_coordinates = (_powers_of_two(values, each=True) for values in (x, coordinates))
    mean = sum(part.sum(0) for part in in_parts(x)) / len(x)
    variance = sum(np.square((part - mean) / of_inputs).sum(0) for part in in_parts(x)) / len(x)
    spread = (coordinates / of_coordinates).std(0) * of_coordinates
    at_once = max(1, AT_ONCE // (max(encoder.dimensions[1:]) * encoder.dimensions[0]))
    slopes = torch.stack([jacobians(encoder, part).abs().sum(0) for part in rows.split(at_once)]).sum(0) / len(rows)
    return slopes.numpy() * (np.sqrt(variance) * of_inputs) / np.where(spread > 0, spread, 1.0)[:, None]


def distance_correlation(a: ArrayLike, b: ArrayLike) -> float:
    """Distance correlation of two variables (n,) or (n, k), between 0 and 1: 0 only for independent ones in the limit.

        dCov(a, b) = mean_ij A_ij B_ij,   A the doubly centred matrix of distances |a_i - a_j|

    Raises:
        DataError: values that are not finite, or two lengths.

    Accuracy: biased upwards by about 1 / n for independent variables. Memory: n^2.
    """
    first, second = as_samples(a, "a"), as_samples(b, "b")
    check_same_length(len(first), len(second), name="a, b")
    p, q = _centred(first), _centred(second)
    scale = float(np.sqrt((p * p).mean() * (q * q).mean()))
    return float(np.sqrt(max((p * q).mean(), 0.0) / scale)) if scale > 0 else 0.0


@at_home
def symmetry_defect(encoder: FullyConnected, transform: Transform, x: ArrayLike) -> float:
    """How far the coordinates are from invariant under a transformation of the inputs (*estimate*).

        mean |g(T x) - g(x)|^2 / (2 * total variance of g(x)):   0 invariant, 1 as different as two unrelated rows

    Args:
        encoder: g, that of a discovery or a factorisation.
        transform: T, from samples (n, d_in) to samples of the same shape.
        x: samples in the encoder's units.

    Returns:
        The defect >= 0, without units; 0 where the encoder is constant.

    Raises:
        ShapeError: the transformed samples have another shape.

    >>> isthmus.symmetry_defect(found.encoder, lambda rows: rows, torch.from_numpy(x))  # nothing is transformed
    0.0
    """
    samples = as_samples(x, "x")
    moved = np.asarray(transform(samples.copy()), dtype=np.float64)
    if moved.shape != samples.shape:
        raise ShapeError(
            f"symmetry_defect(encoder, transform, x): needs transformed samples of shape {samples.shape}, got "
            f"{moved.shape}."
        )
    with torch.no_grad():
        before, after = encoder(torch.from_numpy(samples)), encoder(torch.from_numpy(moved))
    variance = float((before - before.mean(0)).square().sum(1).mean())
    change = float((after - before).square().sum(1).mean())
    return change / (2 * variance) if variance > 0 else 0.0


def _correlations(name: str, values: ArrayLike, coordinates: Array) -> Array:
    """Distance correlation of one candidate with each coordinate."""
    variable = as_samples(values, name)
    if len(variable) != len(coordinates):
        raise DataError(
            f"interpret(candidates=...): {name!r} has {counted(len(variable), 'row')}, x has {len(coordinates)}. Pass "
            "one for each row of x."
        )
    rows = drawn_rows(len(coordinates))
    return np.array([distance_correlation(z[rows], variable[rows]) for z in coordinates.T])


def _centred(values: Array) -> Array:
    """Distances between the rows, minus the means of their row and column, plus the mean of all."""
    from scipy.spatial.distance import pdist, squareform  # as long to import as our own modules

    size = np.abs(values).max()  # whose squares may overflow or vanish; the correlation knows no units
    d = squareform(pdist(values / size if size > 0 else values))
    return d - d.mean(0) - d.mean(1)[:, None] + d.mean()


def drawn_rows(count: int) -> NDArray[np.int64]:
    """Numbers of at most 1000 rows, ascending: the same choice wherever a table is too long."""
    return np.sort(np.random.default_rng(0).permutation(count)[:ROWS])
