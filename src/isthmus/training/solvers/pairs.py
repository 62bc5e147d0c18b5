"""The memory of L-BFGS: pairs of displacements and changes of the gradient, and the direction that they give.

Rows of the memory are m + 1 displacements, m + 1 changes and the gradient; the pair that is being looked at lies in a
slot of its own until it is accepted. Where the rows lie: `coordinates`. The solver: `solvers.LBFGS`.

A vector of the length of the parameters is read from slow memory, so what an iteration costs is how often that happens:
all rows twice, once in `direction` and once in `remember`, and some ten more in the line search and here.
"""

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg.lapack import dtrtrs  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType] - compiled
from torch import Tensor

from isthmus.training.checkpoint import State
from isthmus.training.sharded.coordinates import MEMORY, Coordinates

Array = npt.NDArray[np.float64]
Pairs = State


def no_pairs(coordinates: Coordinates, gradient: Tensor, *, most: int) -> Pairs:
    """The memory before the first pair, at a gradient (P,), for at most so many pairs."""
    slots = most + 1
    state = {
        "count": 0,
        "square": 0.0,
        MEMORY: coordinates.memory(2 * slots + 1, gradient),
        "with_gradient": torch.zeros(2 * slots, dtype=torch.float64),
        "mixed": torch.zeros(slots, slots, dtype=torch.float64),
        "changes": torch.zeros(slots, slots, dtype=torch.float64),
    }
    forget(coordinates, state, gradient)
    return state


def forget(coordinates: Coordinates, state: Pairs, gradient: Tensor) -> None:
    """Go on without pairs from a point with this gradient."""
    coordinates.store(state[MEMORY], 2 * len(state["mixed"]), gradient)
    state["count"], state["square"] = 0, float(torch.dot(gradient, gradient))


def direction(coordinates: Coordinates, state: Pairs) -> tuple[Tensor, float]:
    """Minus the inverse-Hessian estimate times the gradient, (P,), and its inner product with the gradient.

    All vectors of the two-loop recursion are combinations of the kept displacements s_i, changes of the gradient y_i
    and the gradient g, so it runs on their inner products. Those that it needs are s_i y_j with j not older than i
    (`mixed`), y_i y_j (`changes`) and all rows with g (Byrd, Nocedal and Schnabel 1994).
    """
    size, count = len(state["mixed"]), state["count"]
    slots = np.arange(max(0, count - size + 1), count) % size
    weights = np.zeros(2 * size + 1)
    weights[-1] = -1.0
    with_gradient = state["with_gradient"].numpy()
    if len(slots):
        rows = slots[:, None]
        weights[slots], weights[size + slots], weights[-1] = two_loops(
            state["mixed"].numpy()[rows, slots],  # oldest first: its upper triangle is what is known
            state["changes"].numpy()[rows, slots],
            with_gradient[slots],
            with_gradient[size + slots],
        )
    slope = float(weights[:-1] @ with_gradient) + float(weights[-1]) * state["square"]
    memory: Tensor = state[MEMORY]
    return coordinates.combination(memory, torch.from_numpy(weights).to(memory)), slope


def remember(
    coordinates: Coordinates, state: Pairs, gradient: Tensor, *, theta: Tensor, origin: Tensor, slope: float, sure: bool
) -> None:
    """Keep the pair of a step, and bring the inner products up to date.

    Args:
        coordinates: where the memory lies.
        state: as from `no_pairs`.
        gradient: at the end of the step, (P,).
        theta: its end, (P,).
        origin: its beginning, (P,).
        slope: inner product of the displacement with `gradient`.
        sure: whether the line search ensures that the gradient changed along the displacement.
    """
    memory, size = state[MEMORY], len(state["mixed"])
    slot = state["count"] % size
    coordinates.store(memory, slot, theta, less=origin)
    coordinates.exchange(memory, 2 * size, gradient, size + slot)
    with_change = coordinates.products(memory, size + slot).cpu().numpy()
    with_gradient = state["with_gradient"].numpy()
    with_gradient += with_change[:-1]
    state["square"] = float(torch.dot(gradient, gradient))
    curvature = float(with_change[slot])
    if not curvature > (0.0 if sure else 1e-10 * float(coordinates.products(memory, slot)[slot])):
        return  # a kink was crossed: this pair says nothing about curvature
    state["mixed"].numpy()[:, slot] = with_change[:size]
    changes = state["changes"].numpy()
    changes[:, slot] = changes[slot] = with_change[size:-1]
    with_gradient[slot], with_gradient[size + slot] = slope, with_change[-1]
    state["count"] += 1


def two_loops(mixed: Array, changes: Array, with_s: Array, with_y: Array) -> tuple[Array, Array, float]:
    """Weights of the displacements (n,), of the changes (n,) and of the gradient in the L-BFGS direction.

    Both loops of the recursion are triangular systems with R = the upper triangle of `mixed`, D its diagonal:

        R a = -S g,    R^T w = D a + scale (Y g + Y Y^T a),    scale = s_n y_n / y_n y_n

    Args:
        mixed: s_i y_j in its upper triangle, oldest pair first, (n, n).
        changes: y_i y_j, (n, n).
        with_s: s_i g, (n,).
        with_y: y_i g, (n,).
    """
    alphas = solved(mixed, -with_s)
    scale = mixed[-1, -1] / changes[-1, -1]
    weights = solved(mixed, mixed.diagonal() * alphas + scale * (with_y + changes @ alphas), transposed=1)
    return weights, -scale * alphas, -float(scale)


def solved(upper: Array, right: Array, *, transposed: int = 0) -> Array:
    """The solution of a triangular system, by LAPACK itself: the wrappers cost more than 20 unknowns do."""
    return dtrtrs(upper, right, trans=transposed)[0]
