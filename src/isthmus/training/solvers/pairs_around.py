"""The memory of L-BFGS around a first guess of the inverse curvature that is an operator: pairs, and the direction.

As in `pairs`, the two loops run on inner products, so an iteration reads all kept vectors three times, and on a GPU it
waits for four lists of numbers and not for every pair. The solver: `preconditioned`.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from isthmus.training.checkpoint import State
from isthmus.training.sharded.coordinates import PRODUCTS
from isthmus.training.solvers.pairs import solved


def no_pairs() -> State:
    """The memory before the first pair; memory is taken with that."""
    return {"moved": None, "changes": None, PRODUCTS: None, "order": []}


def keep(state: State, moved: Tensor, change: Tensor, *, most: int) -> None:
    """Remember a pair (P,), in the place of the oldest of so many.

    Args:
        state: as from `no_pairs`; `order` lists the rows of `moved` and `changes` from the oldest pair to the newest,
            `products` holds s_i y_j, float64.
        moved: s, a displacement.
        change: y, that of the gradient.
        most: pairs.
    """
    if state["moved"] is None:
        state |= {"moved": moved.new_zeros(most, len(moved)), "changes": moved.new_zeros(most, len(moved))}
        state[PRODUCTS] = torch.zeros(most, most, dtype=torch.float64)
    order: list[int] = state["order"]
    slot = len(order) if len(order) < most else order.pop(0)
    order.append(slot)
    state["moved"][slot], state["changes"][slot] = moved, change
    rows = len(order)
    state[PRODUCTS][:rows, slot] = (state["moved"][:rows] @ change).double().cpu()
    state[PRODUCTS][slot, :rows] = (state["changes"][:rows] @ moved).double().cpu()


def direction(state: State, gradient: Tensor, guess: Callable[[Tensor], Tensor]) -> Tensor:
    """Minus the estimate of the inverse curvature times the gradient (P,).

    With R the upper triangle of s_i y_j, oldest first, D its diagonal and H the guess, the two-loop recursion is

        R a = S g,    q = g - Y^T a,    R^T w = D a - Y H q,    H q + S^T w

    Args:
        state: as `keep` leaves it.
        gradient: g.
        guess: H, applied once.
    """
    order = state["order"]
    if not order:
        return -guess(gradient)
    S, Y = state["moved"][: len(order)], state["changes"][: len(order)]
    upper = state[PRODUCTS][order][:, order].numpy()
    alphas = solved(upper, (S @ gradient).double().cpu().numpy()[order])
    z = guess(gradient - _combined(Y, order, torch.from_numpy(alphas)))
    right = upper.diagonal() * alphas - (Y @ z).double().cpu().numpy()[order]
    return -z.add_(_combined(S, order, torch.from_numpy(solved(upper, right, transposed=1))))


def _combined(rows: Tensor, order: list[int], weights: Tensor) -> Tensor:
    """The sum of the rows, the oldest first, times their weights."""
    placed = torch.empty_like(weights)
    placed[order] = weights
    return torch.mm(placed[None].to(rows), rows)[0]
