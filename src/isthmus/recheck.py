"""Checks certificates of ranks from nothing but their numbers: `python -m isthmus.recheck WITNESSES.json | RUN_DIR`.

Written apart from the rest of the library on purpose (numpy and json; safetensors for the weights of a run folder): a
mistake there is not repeated here. One file on purpose too, though a long one: who doubts a certificate can copy it,
read it from top to bottom and run it where isthmus is not installed.

WITNESSES.json holds a list of objects, each with a `kind`, the `claim` and the numbers that prove it; a run folder
holds them in its result.json. One line per witness; exit code 1 when one of them does not prove its claim. On the
command line: `isthmus verify RUN_DIR`.
"""

import hashlib
import json
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

EPS = float(np.finfo(np.float64).eps)
# products are taken in the widest numbers that the machine has: 1e-19 on x86, 2e-16 elsewhere
Wide = np.longdouble
WIDE_EPS = np.finfo(Wide).eps
Witness = Mapping[str, Any]
MOST = 2**16  # points at which a path is looked at


class Refused(Exception):  # noqa: N818 - a verdict, not a failure of the program
    """The numbers do not prove the claim."""


@dataclass(frozen=True)
class Layer:
    """x -> sigma(W x + b), sigma(t) = t for t >= 0 and slope * t below; slope 1 where no activation follows."""

    weight: np.ndarray
    bias: np.ndarray
    slope: float


@dataclass(frozen=True)
class Checked:
    """One witness: what it claims, and why it was refused (None: it proves its claim)."""

    kind: str
    claim: object
    refusal: str | None

    def __str__(self) -> str:
        """One line."""
        return f"{self.kind}: proves {self.claim}" if self.refusal is None else f"{self.kind}: REFUSED: {self.refusal}"


def need(holds: bool, why: str) -> None:
    """Refuse unless `holds`."""
    if not holds:
        raise Refused(why)


def array(witness: Witness, name: str, ndim: int) -> np.ndarray:
    """The finite numbers under `name`."""
    values = np.array(witness[name], dtype=np.float64)
    need(values.ndim == ndim and bool(np.isfinite(values).all()), f"{name} is no finite array of {ndim} dimensions")
    return values


def layers_of(witness: Witness) -> list[Layer]:
    """The layers of a fully connected network; `linear` numbers the hidden ones (from 1) without activation."""
    weights, biases = ([np.array(m, dtype=np.float64) for m in witness[name]] for name in ("weights", "biases"))
    slope, linear = float(witness["negative_slope"]), {*witness.get("linear", ()), len(weights)}
    need(abs(slope) <= 1, "the activation stretches")
    layers = [
        Layer(w, b, 1.0 if l in linear else slope) for l, (w, b) in enumerate(zip(weights, biases, strict=True), 1)
    ]
    for before, after in zip(layers[:-1], layers[1:], strict=True):
        need(before.weight.shape[0] == after.weight.shape[1], "the widths of two layers do not fit")
    return layers


def forward(layers: Sequence[Layer], x: np.ndarray) -> np.ndarray:
    """Values of a network at the rows of x."""
    for layer in layers:
        z = x @ layer.weight.T + layer.bias
        x = np.where(z >= 0, z, layer.slope * z)
    return x


def jacobian(layers: Sequence[Layer], x: np.ndarray) -> np.ndarray:
    """Jacobian of a network at x by the chain rule; the derivative at 0 is 1."""
    product = None  # an identity of many inputs would fill the memory
    for layer in layers:
        z = layer.weight @ x + layer.bias
        factor = np.where(z >= 0, 1.0, layer.slope)
        product = factor[:, None] * (layer.weight if product is None else layer.weight @ product)
        x = factor * z
    return np.eye(len(x)) if product is None else product


def enclosed_jacobian(
    layers: Sequence[Layer], x: np.ndarray, *, rows: Sequence[int], columns: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """These entries of the Jacobian at x, and a bound on the rounding error of each; refuses uncertain patterns.

    The usual bound: a sum of n products has an error of at most (n + 2) eps times the sum of their magnitudes.
    """
    point, point_error = x.astype(Wide), np.zeros(len(x), dtype=Wide)
    product, error = np.eye(1, dtype=Wide), np.zeros((1, 1), dtype=Wide)
    for number, layer in enumerate(layers, 1):
        weight, size = layer.weight.astype(Wide), np.abs(layer.weight).astype(Wide)
        rounding = (weight.shape[1] + 4) * WIDE_EPS
        kept = rows if number == len(layers) else slice(None)
        if number == 1:
            product, error = weight[:, columns][kept], (rounding * size)[:, columns][kept]
        else:
            error = size[kept] @ error + rounding * (size[kept] @ np.abs(product))
            product = weight[kept] @ product
        point_error = size @ point_error + rounding * (size @ np.abs(point) + np.abs(layer.bias))
        point = weight @ point + layer.bias
        if layer.slope != 1.0:
            clear = (np.abs(point) > point_error) | ~np.any(layer.weight, axis=1)
            need(bool(clear.all()), f"x sits on a kink of layer {number}, to rounding")
            factor = np.where(point >= 0, 1.0, layer.slope).astype(Wide)
            product, error = factor[:, None] * product, np.abs(factor)[:, None] * (error + WIDE_EPS * np.abs(product))
            point, point_error = factor * point, np.abs(factor) * (point_error + WIDE_EPS * np.abs(point))
    return product, error


def chain_of(witness: Witness) -> list[Layer]:
    """The layers of the network of a witness, or of its encoder and then its decoder."""
    if "encoder" in witness:
        return [*layers_of(witness["encoder"]), *layers_of(witness["decoder"])]
    return layers_of(witness)


def jacobian_rank(witness: Witness) -> None:
    """A minor of the Jacobian at one point that no rounding can make singular."""
    rows, columns = witness["rows"], witness["columns"]
    need(len(set(rows)) == len(rows) and len(set(columns)) == len(columns), "the minor is not k x k")
    minor = enclosed_jacobian(chain_of(witness), array(witness, "x", 1), rows=rows, columns=columns)
    need_regular(witness, *minor)


def gradient_span(witness: Witness) -> None:
    """Gradients, each of one output at one point, with a minor that no rounding can make singular.

    f = h(A x) needs as many rows of A: all gradients are combinations of them.
    """
    chain, columns = chain_of(witness), witness["columns"]
    parts = [
        enclosed_jacobian(chain, x, rows=[row], columns=columns)
        for x, row in zip(array(witness, "points", 2), witness["rows"], strict=True)
    ]
    need_regular(witness, *(np.concatenate([part[i] for part in parts]) for i in (0, 1)))


def tangent_span(witness: Witness) -> None:
    """Tangents, each at one point along one input, with a minor that no rounding can make singular.

    f = B g(x) + c needs as many columns of B: all tangents are combinations of them.
    """
    chain, rows = chain_of(witness), witness["rows"]
    parts = [
        enclosed_jacobian(chain, x, rows=rows, columns=[column])
        for x, column in zip(array(witness, "points", 2), witness["columns"], strict=True)
    ]
    need_regular(witness, *(np.concatenate([part[i] for part in parts], axis=1) for i in (0, 1)))


def need_regular(witness: Witness, minor: np.ndarray, doubt: np.ndarray) -> None:
    """Refuse a matrix of which the rounding, at most `doubt` in each entry, could make a singular one.

    M + D is regular for all |D| <= E, entry by entry, when some X has | |I - X M| + |X| E |_inf < 1.
    """
    k = int(witness["claim"])
    need(minor.shape == (k, k) and k >= 1, "the minor is not k x k")
    for axis in (1, 0):  # units do not matter: rows and columns of one size
        largest = np.abs(minor).max(axis=axis, keepdims=True)
        need(bool((largest > 0).all()), "the minor is rounding: a row or column of it is zero")
        minor, doubt = minor / largest, doubt / largest
    try:
        inverse = np.linalg.inv(minor.astype(np.float64)).astype(Wide)
    except np.linalg.LinAlgError:
        raise Refused("the minor is rounding: it is singular") from None
    doubt = doubt + (k + 4) * WIDE_EPS * np.abs(minor)
    defect = np.abs(np.eye(k) - inverse @ minor) + np.abs(inverse) @ doubt
    need(float(defect.sum(axis=1).max()) < 1, f"the minor is rounding: defect {float(defect.sum(axis=1).max()):.2e}")


def factorisation(witness: Witness) -> None:
    """Two networks that meet in as many coordinates as are claimed; those named in `linear` have no activation."""
    k = int(witness["claim"])
    encoder, decoder = (layers_of(witness[half]) for half in ("encoder", "decoder"))
    for half in witness.get("linear", ()):
        layers = {"encoder": encoder, "decoder": decoder}[half]
        need(all(layer.slope == 1.0 for layer in layers), f"the {half} is not linear")
    for name, width in (("encoder", encoder[-1].weight.shape[0]), ("decoder", decoder[0].weight.shape[1])):
        need(width == k, f"the {name} has {width} coordinates, not {k}")


def distance_to_path(point: np.ndarray, corners: np.ndarray) -> float:
    """Least distance from a point to the segments between successive corners."""
    nearest = float(np.linalg.norm(corners[0] - point))
    for start, end in zip(corners[:-1], corners[1:], strict=True):
        along = end - start
        square = float(along @ along)
        share = min(1.0, max(0.0, float((point - start) @ along) / square)) if square > 0 else 0.0
        nearest = min(nearest, float(np.linalg.norm(start + share * along - point)))
    return nearest


def betweenness(witness: Witness) -> None:
    """Each of three values keeps its distance from a path that joins the two others."""
    need(int(witness["claim"]) == 2, "betweenness proves rank 2")
    values = array(witness, "values", 2)
    paths = [np.array(path, dtype=np.float64) for path in witness["paths"]]
    need(len(values) == len(paths) == 3, "needs three values and three paths")
    size = max(float(np.abs(part).max()) for part in (values, *paths))
    for i, path in enumerate(paths):
        one, two = (values[j] for j in range(3) if j != i)
        miss = min(
            max(float(np.abs(path[0] - one).max()), float(np.abs(path[-1] - two).max())),
            max(float(np.abs(path[0] - two).max()), float(np.abs(path[-1] - one).max())),
        )
        need(miss <= 1e-9 * size, f"path {i + 1} does not join the other two values: it misses by {miss:.2e}")
        distance = distance_to_path(values[i], path)
        need(distance > 1e-9 * size, f"path {i + 1} meets value {i + 1}: distance {distance:.2e}")
        recorded = float(witness["distances"][i])
        need(abs(distance - recorded) <= 1e-9 * size, f"distance {i + 1} is {distance:.6g}, recorded {recorded:.6g}")


def borsuk_ulam(witness: Witness) -> None:
    """Antipodes on a grid of the circle differ by more than the map can change between grid points."""
    need(int(witness["claim"]) == 2, "a grid of the circle proves rank 2")
    angles, values, antipodes = array(witness, "angles", 1), array(witness, "values", 2), array(witness, "antipodes", 2)
    need(len(angles) == len(values) == len(antipodes) >= 1, "needs a value and an antipode per angle")
    # u and -u are one: on the half circle the largest gap between neighbours, halved, is how far a point can be
    half = np.sort(angles % np.pi)
    gap = float(np.diff(np.append(half, half[0] + np.pi)).max())
    spacing, lipschitz = float(witness["spacing"]), float(witness["lipschitz"])
    need(spacing >= gap / 2 * (1 - 1e-12), f"the grid leaves gaps of {gap:.3g}, the spacing says {spacing:.3g}")
    turn = np.append(half[1:], half[0] + np.pi) - half
    order = np.argsort(angles % np.pi)
    flipped = (angles % (2 * np.pi)) >= np.pi
    here = np.where(flipped[:, None], antipodes, values)[order]
    there = np.where(flipped[:, None], values, antipodes)[order]
    onward, back = np.vstack([here[1:], there[:1]]), np.vstack([there[1:], here[:1]])
    steps = np.maximum(np.linalg.norm(onward - here, axis=1), np.linalg.norm(back - there, axis=1))
    need(bool((steps <= lipschitz * turn * (1 + 1e-9)).all()), "the values change faster than the Lipschitz constant")
    least = float(np.linalg.norm(values - antipodes, axis=1).min())
    need(least > 2 * lipschitz * spacing, f"antipodes come within {least:.3g} of {2 * lipschitz * spacing:.3g}")


def sphere_grid(k: int, cells: int) -> np.ndarray:
    """The centres of cells^k squares on each face of the cube [-1, 1]^(k+1), pushed radially onto the sphere.

    The push shortens every path outside the ball, so a point of the sphere is at most half the diagonal of a square,
    sqrt(k) / cells, along the sphere from one of them.
    """
    ticks = (np.arange(cells) + 0.5) * (2 / cells) - 1
    face = np.stack(np.meshgrid(*[ticks] * k, indexing="ij"), -1).reshape(-1, k)
    faces = [np.insert(face, axis, side, axis=1) for axis in range(k + 1) for side in (-1.0, 1.0)]
    points = np.vstack(faces)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def borsuk_ulam_sphere(witness: Witness) -> None:
    """A network on the unit sphere S^k, asked at every point of a grid, with the product of its norms for Lipschitz."""
    rank, cells = int(witness["claim"]), int(witness["cells"])
    k = rank - 1
    layers = layers_of(witness)
    need(k >= 1 and cells >= 1 and layers[0].weight.shape[1] == k + 1, "the network does not live on the sphere S^k")
    lipschitz = float(np.prod([np.linalg.norm(layer.weight, 2) for layer in layers]))
    threshold = 2 * lipschitz * np.sqrt(k) / cells
    points = sphere_grid(k, cells)
    here, there = (forward(layers, sign * points) for sign in (1.0, -1.0))
    least = float(np.linalg.norm(here - there, axis=1).min())
    need(least > threshold * (1 + 1e-9), f"antipodes come within {least:.3g} of {threshold:.3g}")
    for name, value in (("least", least), ("threshold", threshold)):
        recorded = float(witness[name])
        need(abs(recorded - value) <= 1e-9 * value, f"{name} is {value:.9g}, recorded {recorded:.9g}")


def scaled_chain(witness: Witness) -> list[Layer]:
    """The layers of the network of a witness, its outputs in units of the `scales`."""
    *others, last = chain_of(witness)
    scales = array(witness, "scales", 1)
    need(bool((scales > 0).all()), "a scale is not positive")
    return [*others, Layer(last.weight / scales[:, None], last.bias / scales, last.slope)]


def reach(layers: Sequence[Layer], directions: np.ndarray, points: np.ndarray) -> tuple[float, float]:
    """How far values can move per unit along `directions` (columns), and how far rounding moves those at points.

    Layers without activation between them are multiplied before norms are taken, and what that rounds is added.
    """
    product, doubt, slope = directions, 0.0, 1.0
    size = float(np.linalg.norm(points, axis=1).max())
    moved = 8 * EPS * size  # that of the points themselves
    for layer in layers:
        total, unit = float(np.linalg.norm(layer.weight)), (max(layer.weight.shape) + 8) * EPS
        moved = total * moved + unit * (total * size + float(np.linalg.norm(layer.bias)))
        size = total * size + float(np.linalg.norm(layer.bias))
        doubt = total * (doubt + unit * float(np.linalg.norm(product)))
        product = layer.weight @ product
        if layer.slope != 1.0:
            slope *= float(np.linalg.norm(product, 2)) + doubt
            product, doubt = np.eye(len(product)), 0.0
    return slope * (float(np.linalg.norm(product, 2)) + doubt) * (1 + 1e-9), 1.01 * moved


def betweenness_network(witness: Witness) -> None:
    """Of three points, each value of the network keeps its distance from those on the way between the two others.

    A network into one dimension would meet it there: the middle one of three numbers lies between the others.
    """
    need(int(witness["claim"]) == 2, "betweenness proves rank 2")
    x, cells, layers = array(witness, "x", 2), int(witness["cells"]), scaled_chain(witness)
    need(len(x) == 3 and 1 <= cells <= MOST, "needs three points and a number of cells")
    shares = (np.arange(cells) + 0.5)[:, None] / cells
    for i in range(3):
        one, two = (x[j] for j in range(3) if j != i)
        path = one + shares * (two - one)
        slope, moved = reach(layers, (two - one)[:, None], x)
        least = float(np.linalg.norm(forward(layers, path) - forward(layers, x[i : i + 1]), axis=1).min())
        threshold = slope / (2 * cells) + 2 * moved
        need(
            least > threshold, f"the path past point {i + 1} comes within {least:.3g} of its value, of {threshold:.3g}"
        )


def along(
    layers: Sequence[Layer], centre: np.ndarray, half: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """c, h, e (rows) with f(centre + t half) = c + t h up to e, entry by entry, for each t in [-1, 1]; sound.

    Of a neuron whose sign may change on a row, the chord of the activation is kept and its distance goes to e. `error`
    is that of the points themselves.
    """
    for layer in layers:
        size, unit = np.abs(layer.weight).T, (layer.weight.shape[1] + 8) * EPS
        error = error @ size * (1 + unit) + unit * ((np.abs(centre) + np.abs(half)) @ size + np.abs(layer.bias))
        centre, half = centre @ layer.weight.T + layer.bias, half @ layer.weight.T
        if layer.slope != 1.0:
            low, high = centre - np.abs(half) - error, centre + np.abs(half) + error
            mixed = (low < 0) & (high > 0)
            width = np.where(mixed, high - low, 1.0)
            chord = np.where(mixed, (high - layer.slope * low) / width, np.where(high <= 0, layer.slope, 1.0))
            above = np.where(mixed, (1 - layer.slope) * high * -low / width, 0.0) / 2  # half of the most
            error = np.abs(chord) * error + above + 8 * EPS * (np.abs(centre) + np.abs(half) + error + above)
            centre, half = chord * centre + above, chord * half
    return centre, half, 1.25 * error


def tripoint_network(witness: Witness) -> None:
    """Three points of three classes; on the way between two of them the third class never leads as at its own point.

    So it is around a tripoint, where three classes meet. A network into one dimension would meet the value of the
    middle point on that way. Ways are looked at between successive `shares` of them.
    """
    need(int(witness["claim"]) == 2, "three classes prove rank 2")
    x, classes, layers = array(witness, "x", 2), [int(c) for c in witness["classes"]], chain_of(witness)
    need(len(x) == len(classes) == len({*classes}) == len(witness["shares"]) == 3, "needs three points and classes")
    need(min(classes) >= 0 and max(classes) < len(layers[-1].weight), "there is no such class")
    value, _, error = along(layers, x, np.zeros_like(x), np.zeros_like(x))
    for i, own in enumerate(classes):
        lead_here = float(value[i, own] - error[i, own] - np.delete(value[i] + error[i], own).max())
        need(lead_here > 0, f"point {i + 1} is not surely of class {own}")
        shares = np.array(witness["shares"][i], dtype=np.float64)
        rising = bool((np.diff(shares) >= 0).all()) and shares[0] == 0 and shares[-1] == 1
        need(shares.ndim == 1 and 2 <= len(shares) <= MOST and bool(rising), "shares do not rise from 0 to 1")
        one, two = (x[j] for j in range(3) if j != i)
        middle, width = (shares[1:] + shares[:-1])[:, None] / 2, np.diff(shares)[:, None] / 2 * (1 + 1e-9) + EPS
        rounding = np.broadcast_to(8 * EPS * (np.abs(one) + np.abs(two)), (len(middle), len(one)))
        c, h, e = along(layers, one + middle * (two - one), width * (two - one), rounding)
        lead = c[:, [own]] - c + np.abs(h - h[:, [own]]) + e + e[:, [own]]
        most = float(np.delete(lead, own, axis=1).min(axis=1).max())
        need(most < lead_here, f"on the way past point {i + 1} its class may lead by {most:.3g}, not less than there")


def antipodal_sphere(witness: Witness) -> None:
    """Antipodes of a sphere in the inputs, its centre and axes given, that never share a value (Borsuk and Ulam)."""
    k, cells = int(witness["claim"]) - 1, int(witness["cells"])
    centre, axes, layers = array(witness, "centre", 1), array(witness, "axes", 2), scaled_chain(witness)
    need(k >= 1 and axes.shape == (k + 1, len(centre)), "the sphere has not k + 1 axes")
    need(cells >= 1 and 2 * (k + 1) * cells**k <= 4 * MOST, "needs a number of cells")
    points = sphere_grid(k, cells) @ axes
    slope, moved = reach(layers, axes.T, centre + np.vstack([points, -points]))
    here, there = (forward(layers, centre + sign * points) for sign in (1.0, -1.0))
    least, threshold = float(np.linalg.norm(here - there, axis=1).min()), 2 * slope * k**0.5 / cells + 2 * moved
    need(least > threshold, f"antipodes come within {least:.3g} of {threshold:.3g}")


def spanning_tree(witness: Witness) -> None:
    """A map that is flat on the hull of its points cannot visit values whose spanning tree is long in one line."""
    need(int(witness["claim"]) == 2, "a spanning tree proves rank 2")
    x, values, lipschitz = array(witness, "x", 2), array(witness, "values", 2), float(witness["lipschitz"])
    need(len(x) == len(values) >= 2, "needs a value per point, and two of them")
    apart = np.linalg.norm(x[:, None] - x[None], axis=2)
    change = np.linalg.norm(values[:, None] - values[None], axis=2)
    need(0 < lipschitz < np.inf, "the Lipschitz constant is no positive number")
    need(bool((change <= lipschitz * apart * (1 + 1e-9)).all()), "the values change faster than the Lipschitz constant")
    length, most = tree_length(change), lipschitz * float(apart.max())
    need(length > most * (1 + 1e-9), f"the tree is {length:.6g} long, no more than {most:.6g}")


def tree_length(apart: np.ndarray) -> float:
    """Length of the shortest tree through all points, from their distances (Prim: always the nearest outside it)."""
    outside, nearest, length = set(range(1, len(apart))), apart[0].copy(), 0.0
    while outside:
        new = min(outside, key=lambda i: nearest[i])
        outside.remove(new)
        length += float(nearest[new])
        nearest = np.minimum(nearest, apart[new])
    return length


def spanning_tree_network(witness: Witness) -> None:
    """A network too flat to pass by its values in one line; distances of inputs are taken in `units`."""
    need(int(witness["claim"]) == 2, "a spanning tree proves rank 2")
    x, units, layers = array(witness, "x", 2), array(witness, "units", 1), scaled_chain(witness)
    need(len(x) >= 2 and bool((units > 0).all()), "needs two points and positive units")
    slope, moved = reach(layers, np.diag(units), x)
    values = forward(layers, x)
    length = tree_length(np.linalg.norm(values[:, None] - values[None], axis=2)) - 2 * len(x) * moved
    most = slope * float(np.linalg.norm((x[:, None] - x[None]) / units, axis=2).max()) * (1 + 1e-9)
    need(length > most, f"the tree is {length:.6g} long, no more than {most:.6g}")


def near_identity(witness: Witness) -> None:
    """Theorem 6: orthonormal frames, the residual of each layer, and the bound on their sum."""
    k = int(witness["claim"])
    weights, biases, incoming, outgoing = (
        [np.array(m, dtype=np.float64) for m in witness[name]] for name in ("weights", "biases", "incoming", "outgoing")
    )
    depth = len(weights)
    need(len(biases) == len(incoming) == len(outgoing) == depth, "needs a bias and two frames per layer")
    check_frames(incoming, outgoing, k, shared=not witness["two_sequences"])
    residuals = [
        float(np.square(w - u @ v.T).sum() + np.square(b).sum())
        for w, b, u, v in zip(weights, biases, outgoing, incoming, strict=True)
    ]
    for l, residual in enumerate(residuals):
        recorded = float(witness["residuals"][l])
        close = abs(residual - recorded) <= 1e-10 * max(1, residual)
        need(close, f"residual {l + 1} is {residual:.6g}, not {recorded:.6g}")
    penalty = sum(float(np.square(w).sum() + np.square(b).sum()) for w, b in zip(weights, biases, strict=True))
    found = jacobian(layers_of(witness), array(witness, "x", 1)) @ incoming[0]
    bound = penalty - k * depth - 2 * float(np.log(np.linalg.svd(found, compute_uv=False)[:k]).sum())
    slack, total = 1e-9 * max(1.0, penalty), sum(residuals)
    need(abs(bound - float(witness["bound"])) <= slack, f"the bound is {bound:.9g}, recorded {witness['bound']:.9g}")
    need(total <= bound + slack, f"the residuals sum to {total:.6g}, more than {bound:.6g}")


def check_frames(incoming: Sequence[np.ndarray], outgoing: Sequence[np.ndarray], k: int, *, shared: bool) -> None:
    """Refuse frames whose k columns are not orthonormal, or where a layer should leave in the frame of the next."""
    for name, frames in (("V", incoming), ("U", outgoing)):
        for l, frame in enumerate(frames):
            defect = float(np.abs(frame.T @ frame - np.eye(k)).max()) if frame.shape[1] == k else np.inf
            need(defect <= 1e-10, f"{name} of layer {l + 1} is not orthonormal: off by {defect:.2e}")
    for l, (out, entering) in enumerate(zip(outgoing[:-1], incoming[1:], strict=True)):
        need(not shared or np.array_equal(out, entering), f"layers {l + 1} and {l + 2} do not share a frame")


SPANS = {"encoder": "gradient_span", "decoder": "tangent_span"}
CHECKS: dict[str, Callable[[Witness], None]] = {
    "jacobian_rank": jacobian_rank,
    "gradient_span": gradient_span,
    "tangent_span": tangent_span,
    "factorisation": factorisation,
    "antipodal_sphere": antipodal_sphere,
    "betweenness": betweenness,
    "betweenness_network": betweenness_network,
    "borsuk_ulam": borsuk_ulam,
    "borsuk_ulam_sphere": borsuk_ulam_sphere,
    "near_identity": near_identity,
    "spanning_tree": spanning_tree,
    "spanning_tree_network": spanning_tree_network,
    "tripoint_network": tripoint_network,
}


def check(witness: Witness) -> Checked:
    """Whether a witness proves its claim."""
    kind = str(witness.get("kind"))
    try:
        need(kind in CHECKS, f"unknown kind; known are {', '.join(CHECKS)}")
        CHECKS[kind](witness)
    except (Refused, KeyError, ValueError, IndexError, TypeError, OverflowError) as error:
        return Checked(kind, witness.get("claim"), f"{type(error).__name__}: {error}")
    return Checked(kind, witness.get("claim"), None)


def check_run(folder: Path) -> list[Checked]:
    """Every certificate of a run folder, and last whether together they prove the interval that its result states.

    Raises:
        OSError, ValueError, KeyError, TypeError: the folder is no finished run, or a file of it is damaged.
    """
    result = _result(folder / "result.json")
    name = "weights.safetensors"
    weights = _content(folder / name)
    if hashlib.sha256(weights).hexdigest() != result["checksums"][name]:
        raise ValueError(f"{name} is damaged or of another run: its checksum differs")
    halves = _halves(weights, result["architectures"])
    interval = result["interval"]
    checked = [check({**witness, **halves}) for witness in interval["evidence"]["certificates"]]
    proved = [(c.kind, int(str(c.claim))) for c in checked if c.refusal is None]
    witnesses = zip(interval["evidence"]["certificates"], checked, strict=True)
    halved = [w for w, c in witnesses if c.refusal is None and c.kind == "factorisation"]
    linear = {half for w in halved for half in w.get("linear", ())}
    # spans bound the rank of a map with a linear half; of two curved halves the Jacobian at one point does
    useless = {"factorisation", *(kind for half, kind in SPANS.items() if half not in linear)}
    lower = max((claim for kind, claim in proved if kind not in useless), default=0)
    upper = min((claim for kind, claim in proved if kind == "factorisation"), default=None)
    holds = lower >= int(interval["lower"]) and upper is not None and upper <= int(interval["upper"])
    why = None if holds else f"the certificates prove {lower} to {'nothing' if upper is None else upper}"
    return [*checked, Checked("interval", f"{interval['lower']} to {interval['upper']}", why)]


def _content(path: Path) -> bytes:
    """The bytes of a regular file of its folder: a pipe would be waited for, a device read until memory is gone.

    Raises:
        OSError, ValueError: there is none.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path.name} is no regular file")
    if path.resolve().parent != path.parent.resolve():
        raise ValueError(f"{path.name} is a link out of its folder")
    return path.read_bytes()


def _parsed(data: bytes) -> Any:  # noqa: ANN401 - whatever the JSON holds
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def _result(path: Path) -> Mapping[str, Any]:
    data = _content(path)
    end = data[-256:]
    seal = re.search(rb'"isthmus_checksum": "isthmus-sha256:([0-9a-f]{64})"', end)
    if seal is not None:  # of all bytes, with zeros in place of its digits
        start = len(data) - len(end) + seal.start(1)
        zeroed = data[:start] + b"0" * 64 + data[start + 64 :]
        if hashlib.sha256(zeroed).hexdigest().encode() != seal[1]:
            raise ValueError(f"{path.name} is damaged: its checksum differs")
    elif b"isthmus_checksum" in end or b"isthmus-sha256" in end:
        raise ValueError(f"{path.name} is damaged: its checksum cannot be made out")
    result = _parsed(data)
    if not isinstance(result, dict):
        raise ValueError(f"{path.name} holds no object")
    return result


def _halves(data: bytes, architectures: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(data)
    except SafetensorError as error:
        raise ValueError(f"its weights are no safetensors ({error})") from None
    found: dict[str, dict[str, object]] = {}
    for half in ("encoder", "decoder"):
        about = architectures[half]
        weights = [tensors[f"{half}.weights.{l}"] for l in range(len(about["dimensions"]) - 1)]
        biases = [tensors.get(f"{half}.biases.{l}", np.zeros(len(w))) for l, w in enumerate(weights)]
        found[half] = {
            "weights": weights,
            "biases": biases,
            "negative_slope": about["negative_slope"],
            "linear": about["linear"],
        }
    return found


def main(path: str) -> int:
    """Print one line per witness; 1 where something is refused or nothing is claimed."""
    place = Path(path)
    checked = check_run(place) if place.is_dir() else [check(witness) for witness in _parsed(_content(place))]
    for line in checked:
        sys.stdout.write(f"{line}\n")
    return 1 if not checked or any(line.refusal is not None for line in checked) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
