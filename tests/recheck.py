"""Checks saved witnesses of certificates from nothing but their numbers: `python recheck.py WITNESSES.json`.

Written apart from the library on purpose (numpy and json only): a mistake there is not repeated here. The file holds a
list of objects, each with a `kind`, the `claim` and the numbers that prove it. One line per witness; exit code 1 when
one of them does not prove its claim.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

EPS = float(np.finfo(np.float64).eps)
Witness = Mapping[str, Any]


class Refused(Exception):
    """The numbers do not prove the claim."""


def need(holds: bool, why: str) -> None:
    if not holds:
        raise Refused(why)


def array(witness: Witness, name: str, ndim: int) -> np.ndarray:
    values = np.array(witness[name], dtype=np.float64)
    need(values.ndim == ndim and bool(np.isfinite(values).all()), f"{name} is no finite array of {ndim} dimensions")
    return values


def jacobian(weights: list[np.ndarray], biases: list[np.ndarray], slope: float, x: np.ndarray) -> np.ndarray:
    """Jacobian of a fully connected network at x by the chain rule; the derivative at 0 is 1."""
    product = np.eye(len(x))
    a = x
    for l, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = w @ a + b
        product = w @ product
        if l + 1 < len(weights):
            factor = np.where(z >= 0, 1.0, slope)
            product, a = factor[:, None] * product, factor * z
    return product


def forward(weights: list[np.ndarray], biases: list[np.ndarray], slope: float, x: np.ndarray) -> np.ndarray:
    """Values of a fully connected network at the rows of x."""
    for l, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = x @ w.T + b
        x = np.where(z >= 0, z, slope * z) if l + 1 < len(weights) else z
    return x


def jacobian_rank(witness: Witness) -> None:
    """A minor of the Jacobian at one point that is not zero, beyond every rounding of its expansion."""
    k = int(witness["claim"])
    weights, biases = ([np.array(m, dtype=np.float64) for m in witness[name]] for name in ("weights", "biases"))
    found = jacobian(weights, biases, float(witness["negative_slope"]), array(witness, "x", 1))
    rows, columns = witness["rows"], witness["columns"]
    need(len(set(rows)) == len(set(columns)) == len(rows) == len(columns) == k >= 1, "the minor is not k x k")
    minor = found[np.ix_(rows, columns)]
    # Gauss with complete pivoting: the least pivot against the rounding that the elimination may have left
    rest, size = minor.copy(), float(np.abs(found).max())
    for step in range(k):
        i, j = np.unravel_index(np.abs(rest).argmax(), rest.shape)
        pivot = rest[i, j]
        need(abs(pivot) > 1e4 * k * EPS * size, f"pivot {step + 1} of the minor is rounding: {pivot:.2e}")
        rest = np.delete(np.delete(rest - np.outer(rest[:, j], rest[i]) / pivot, i, 0), j, 1)


def distance_to_path(point: np.ndarray, corners: np.ndarray) -> float:
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
    weights, biases = ([np.array(m, dtype=np.float64) for m in witness[name]] for name in ("weights", "biases"))
    slope = float(witness["negative_slope"])
    need(k >= 1 and cells >= 1 and weights[0].shape[1] == k + 1, "the network does not live on the sphere S^k")
    need(abs(slope) <= 1, "the activation stretches")
    lipschitz = float(np.prod([np.linalg.norm(w, 2) for w in weights]))
    threshold = 2 * lipschitz * np.sqrt(k) / cells
    points = sphere_grid(k, cells)
    here, there = (forward(weights, biases, slope, sign * points) for sign in (1.0, -1.0))
    least = float(np.linalg.norm(here - there, axis=1).min())
    need(least > threshold * (1 + 1e-9), f"antipodes come within {least:.3g} of {threshold:.3g}")
    for name, value in (("least", least), ("threshold", threshold)):
        recorded = float(witness[name])
        need(abs(recorded - value) <= 1e-9 * value, f"{name} is {value:.9g}, recorded {recorded:.9g}")


def spanning_tree(witness: Witness) -> None:
    """A map that is flat on the hull of its points cannot visit values whose spanning tree is long in one line."""
    need(int(witness["claim"]) == 2, "a spanning tree proves rank 2")
    x, values, lipschitz = array(witness, "x", 2), array(witness, "values", 2), float(witness["lipschitz"])
    need(len(x) == len(values) >= 2, "needs a value per point, and two of them")
    apart = np.linalg.norm(x[:, None] - x[None], axis=2)
    change = np.linalg.norm(values[:, None] - values[None], axis=2)
    need(0 < lipschitz < np.inf, "the Lipschitz constant is no positive number")
    need(bool((change <= lipschitz * apart * (1 + 1e-9)).all()), "the values change faster than the Lipschitz constant")
    # Prim: always the nearest value that is not yet in the tree
    outside, nearest, length = set(range(1, len(x))), change[0].copy(), 0.0
    while outside:
        new = min(outside, key=lambda i: nearest[i])
        outside.remove(new)
        length += float(nearest[new])
        nearest = np.minimum(nearest, change[new])
    reach = lipschitz * float(apart.max())
    need(length > reach * (1 + 1e-9), f"the tree is {length:.6g} long, no more than {reach:.6g}")


def near_identity(witness: Witness) -> None:
    """Theorem 6: orthonormal frames, the residual of each layer, and the bound on their sum."""
    k = int(witness["claim"])
    weights, biases, incoming, outgoing = (
        [np.array(m, dtype=np.float64) for m in witness[name]] for name in ("weights", "biases", "incoming", "outgoing")
    )
    depth = len(weights)
    need(len(biases) == len(incoming) == len(outgoing) == depth, "needs a bias and two frames per layer")
    for name, frames in (("V", incoming), ("U", outgoing)):
        for l, frame in enumerate(frames):
            defect = float(np.abs(frame.T @ frame - np.eye(k)).max()) if frame.shape[1] == k else np.inf
            need(defect <= 1e-10, f"{name} of layer {l + 1} is not orthonormal: off by {defect:.2e}")
    if not witness["two_sequences"]:
        for l in range(depth - 1):
            need(np.array_equal(outgoing[l], incoming[l + 1]), f"layers {l + 1} and {l + 2} do not share a frame")
    total = 0.0
    for l, (w, b, u, v) in enumerate(zip(weights, biases, outgoing, incoming, strict=True)):
        residual = float(np.square(w - u @ v.T).sum() + np.square(b).sum())
        recorded = float(witness["residuals"][l])
        need(
            abs(residual - recorded) <= 1e-10 * max(1, residual),
            f"residual {l + 1} is {residual:.6g}, not {recorded:.6g}",
        )
        total += residual
    penalty = sum(float(np.square(w).sum() + np.square(b).sum()) for w, b in zip(weights, biases, strict=True))
    found = jacobian(weights, biases, float(witness["negative_slope"]), array(witness, "x", 1)) @ incoming[0]
    bound = penalty - k * depth - 2 * float(np.log(np.linalg.svd(found, compute_uv=False)[:k]).sum())
    slack = 1e-9 * max(1.0, penalty)
    need(abs(bound - float(witness["bound"])) <= slack, f"the bound is {bound:.9g}, recorded {witness['bound']:.9g}")
    need(total <= bound + slack, f"the residuals sum to {total:.6g}, more than {bound:.6g}")


CHECKS: dict[str, Callable[[Witness], None]] = {
    "jacobian_rank": jacobian_rank,
    "betweenness": betweenness,
    "borsuk_ulam": borsuk_ulam,
    "borsuk_ulam_sphere": borsuk_ulam_sphere,
    "near_identity": near_identity,
    "spanning_tree": spanning_tree,
}


def main(path: str) -> int:
    witnesses = json.loads(Path(path).read_text(encoding="utf-8"))
    refused = 0
    for witness in witnesses:
        kind = str(witness.get("kind"))
        try:
            need(kind in CHECKS, f"unknown kind; known are {', '.join(CHECKS)}")
            CHECKS[kind](witness)
        except (Refused, KeyError, ValueError, IndexError, TypeError) as error:
            refused += 1
            sys.stdout.write(f"{kind}: REFUSED: {type(error).__name__}: {error}\n")
        else:
            sys.stdout.write(f"{kind}: proves {witness['claim']}\n")
    return 1 if refused or not witnesses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
