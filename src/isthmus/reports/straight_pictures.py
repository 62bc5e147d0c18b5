"""The pictures of a linear half with their words: loadings, spectrum, outputs against combinations of the inputs.

Drawing itself: `plots.combinations`. The sentences and the table beside them: `straight_words`.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from isthmus import plots
from isthmus.discovery import Discovery
from isthmus.discovery.evidence.straight_halves import outputs_of, targets_of
from isthmus.discovery.groups.group_words import made_dimensionless
from isthmus.discovery.halves import INDEX
from isthmus.plots.combinations import has_profile
from isthmus.plots.images import are_pixels
from isthmus.plots.style import LOOKS
from isthmus.reports.meaning import first_maps
from isthmus.reports.picture import Picture
from isthmus.tasks.arrays import counted

_MOST_TARGETS, _MOST_CURVES = 3, 4
_CHOICE = "Their span is what the data determine; the rotation is chosen so that each uses few columns."


def straight_pictures(
    found: Discovery, half: xr.Dataset, x: ArrayLike | None = None, y: ArrayLike | None = None
) -> list[Picture]:
    """Loadings; with samples also the spectrum of several, and for combinations the outputs against them."""
    pictures = [_loadings(half)]
    if half.sizes.get("component", 0) > 1:
        pictures.append(_spectrum(found, half))
    if x is None or found.kind != INDEX.name:
        return pictures
    return [*pictures, *_summaries(found, half, found.in_order(x), y)]


def _loadings(half: xr.Dataset) -> Picture:
    index, count = half.attrs["kind"] == INDEX.name, half.sizes["direction"]
    columns = counted(half.sizes["column"], "input" if index else "output")
    units = "in standardised columns" if half.attrs["standardised"] else "in your units"
    what = "combination of the inputs" if index else "mode of the outputs"
    choice = f" {_CHOICE}" if count > 1 else ""
    if "cone" in half:
        barred = not (are_pixels(half["column"]) or has_profile(half))
        angles = "Whiskers, and the angles in the table" if barred else "Angles in the table"
        choice += f" {angles}: trainings on halves of the rows."
    if are_pixels(half["column"]):
        return Picture(
            "loading_maps",
            f"What each {what} is made of: its loadings over the pixels, {units}, blue where positive and orange where "
            f"negative; their squares sum to 1.{choice}{first_maps(count)}",
            f"{columns}, one picture of them for each of {counted(count, 'direction')}.",
            lambda: plots.loading_maps(half),
        )
    if has_profile(half):
        return Picture(
            "loading_profiles",
            f"What each {what} is made of: its loadings over the columns in their order, {units}; their squares sum to "
            f"1.{choice}{_first(count)}",
            f"{columns}, one line for each of {counted(count, 'direction')}.",
            lambda: plots.loading_profiles(half),
        )
    return Picture(
        "loadings",
        f"What each {what} is made of: its loadings, {units}, to the right where positive, to the left and hatched "
        f"where negative; their squares sum to 1.{choice}",
        f"{columns} by {counted(count, 'direction')}, one bar for each loading.",
        lambda: plots.loadings(half),
    )


def _first(count: int) -> str:
    return f" The first {len(LOOKS)} of {count}." if count > len(LOOKS) else ""


def _spectrum(found: Discovery, half: xr.Dataset) -> Picture:
    index, columns = half.attrs["kind"] == INDEX.name, half.sizes["column"]
    if index:
        caption = (
            "Eigenvalues of the gradient covariance of the map that was found, in standardised inputs: how strongly it "
            "varies along each direction, the strongest first."
        )
    else:
        caption = "Singular values of all tangents of the map that was found: how far it moves along each direction."
    return Picture(
        "direction_spectrum",
        f"{caption} Behind the rank it does not move by construction; what another direction would bring is seen in "
        "the held-out error.",
        f"{counted(half.sizes['component'], 'value')} of at most {columns}, with the rank marked.",
        lambda: plots.direction_spectrum(half, columns=columns),
    )


def _summaries(found: Discovery, half: xr.Dataset, x: NDArray[np.float64], y: ArrayLike | None) -> Iterator[Picture]:
    """One combination: a curve for each target; two: a plane; more: the first two, and the curves of the first."""
    targets = targets_of(found, x, y)
    count = half.sizes["direction"]
    many = len(found.target_names) > 1 and not found.loss.classes
    for target in _most_moved(half, found):
        table = _with_target(found, half, x, targets, target)
        suffix = f"_target_{target + 1}" if many else ""
        if count == 1:
            yield _curve(table, 1, suffix)
        else:
            yield _plane(table, suffix)
    if count > 2:
        for direction in range(1, min(count, _MOST_CURVES) + 1):
            strongest = int(_slopes(half, found)[direction - 1].argmax())
            target = 0 if found.loss.classes else strongest
            table = _with_target(found, half, x, targets, target)
            yield _curve(table, direction, f"_target_{target + 1}" if many else "", alone=many)


def _most_moved(half: xr.Dataset, found: Discovery) -> list[int]:
    """The targets that are drawn: all where they are few, else those of the largest slopes; classes are one."""
    if found.loss.classes:
        return [0]
    weight = half["share"].values @ _slopes(half, found)
    return sorted(np.argsort(-weight, kind="stable")[:_MOST_TARGETS].tolist())


def _slopes(half: xr.Dataset, found: Discovery) -> NDArray[np.float64]:
    """The share of each target in the squared slopes along each direction, all its outputs together."""
    slopes = half["slope"].transpose("direction", "output").values
    return slopes.reshape(len(slopes), found.loss.per_target, -1).sum(1)


def _with_target(
    found: Discovery, half: xr.Dataset, x: NDArray[np.float64], targets: NDArray[np.float64] | None, target: int
) -> xr.Dataset:
    """The table with one target, measured or, where none were given, predicted."""
    predicted = "" if targets is not None else "predicted "
    values = targets
    if values is None:
        values = np.asarray(found.loss.means(outputs_of(found, found.inputs_of(x))))
    if found.loss.classes:
        labels = values[:, 0] if targets is not None else values.argmax(1)
        names = [f"{predicted}{name}" for name in found.target_names]
        return half.assign(label=("sample", labels)).assign(class_name=("class", names))
    return half.assign(target=("sample", values[:, target])).assign_coords(
        target_name=f"{predicted}{_name(found, target)}"
    )


def _name(found: Discovery, target: int) -> str:
    """Of a target as the network has it: made a pure number, and its logarithm taken, where it was."""
    name = found.target_names[target] if found.target_names else f"y{target}"
    if (powers := found.powers) is None:
        return name
    if powers.target_exponents is not None:
        name = made_dimensionless(name, found.input_names, powers.target_exponents[target])
    return f"log {name}" if powers.target_logs[target] else name


def _curve(table: xr.Dataset, direction: int, suffix: str, *, alone: bool = False) -> Picture:
    what = "The class" if "label" in table else "The output"
    which = " that moves most along it" if alone else ""
    whole = table.sizes["direction"] == 1
    rest = (
        " The spread around a curve is what the inputs do not explain."
        if whole and "label" not in table
        else ""
        if whole
        else " The spread is what the other combinations do, and noise."
    )
    return Picture(
        f"summary_{direction}{suffix}",
        f"{what}{which} against combination {direction} of the inputs.{rest}",
        f"Scatter of {table.sizes['sample']} samples over combination {direction}.",
        lambda: plots.summary_curve(table, direction=direction),
    )


def _plane(table: xr.Dataset, suffix: str) -> Picture:
    whole = table.sizes["direction"] == 2
    looks = "colours and markers are classes" if "label" in table else "the colour is the output"
    rest = (
        "If two combinations are all that matters, colours change from place to place, and neighbours agree but for "
        "noise."
        if whole
        else "The first two of the combinations; what the others do is seen as scatter."
    )
    return Picture(
        f"summary_1_2{suffix}",
        f"Every sample in combinations 1 and 2 of the inputs; {looks}. {rest}",
        f"Scatter of {table.sizes['sample']} samples in two combinations of the inputs.",
        lambda: plots.summary_plane(table),
    )
