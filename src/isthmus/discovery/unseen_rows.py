"""How far off two halves are on rows that had no say in the cut. The cut itself: `factorisation`, `chains.cutting`.

The halves that are handed on are fitted to all rows; the cuts made here only measure.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.module_input import checked_input, checked_output
from isthmus.discovery.data.splitting import folds
from isthmus.discovery.factors import Factorisation
from isthmus.errors import DataWarning, outside
from isthmus.networks import FullyConnected
from isthmus.networks.copies import copied_module, on_copy
from isthmus.tasks.arrays import counted

ENOUGH = 3  # rows for each coordinate: below, a subspace passes through the rows rather than near them
EXACT = 1e-6  # an error on unseen rows below which few rows were enough
LEAST_ROWS = 3  # for a cut that leaves one of them out

M = TypeVar("M", bound=nn.Module)
_CALL = "factorise"


def told_by_unseen_rows(
    found: Factorisation[M],
    module: nn.Module,
    x: Tensor,
    heldout: Tensor | None,
    cut: Callable[[Tensor], Factorisation[M]],
) -> Factorisation[M]:
    """The halves with their error on unseen rows, and a warning where the rows are few for the rank.

    Args:
        found: the halves, fitted to all of x.
        module: what was cut.
        x: the rows.
        heldout: other rows, or None: the folds of x then are left out in turn.
        cut: rows -> halves of the same rank at the same layer.
    """
    old = copied_module(module).eval().requires_grad_(False)
    old = old.double() if isinstance(module, FullyConnected) else old
    x = checked_input(_CALL, old, x, least_rows=2)
    rows = x if heldout is None else checked_input(_CALL, old, heldout, least_rows=2)
    target = checked_output(_CALL, old, rows).double()
    with torch.no_grad():
        if heldout is not None:
            square = _distance(found, rows, target)
        elif len(rows) < LEAST_ROWS:
            square = math.nan
        else:
            masks = [torch.from_numpy(mask) for mask in folds(len(rows), seed=0)]
            square = sum(_distance(cut(rows[~mask]), rows[mask], target[mask]) for mask in masks)
        spread = float((target - target.mean(0)).norm())
        error = square**0.5 / spread if spread else square**0.5
        told = replace(found, heldout_error=error)
        _warn_of_few_rows(told, x)
        _warn_of_no_narrowing(told, x)
    return told


def _distance(halves: Factorisation[M], rows: Tensor, target: Tensor) -> float:
    output = checked_output(_CALL, nn.Sequential(halves.encoder, halves.decoder), rows)
    return float((output.double() - target).square().sum())


def _warn_of_few_rows(told: Factorisation[M], x: Tensor) -> None:
    if not told.rank or told.heldout_error <= EXACT:
        return
    num_rows = len(x) * (on_copy(told.encoder, x[:1]).numel() // told.rank)  # tokens count as rows of the subspace
    if num_rows < ENOUGH * told.rank:
        unseen = (
            "not known" if math.isnan(told.heldout_error) else f"about {told.heldout_error:.2g}"
        )  # of fewer than three rows none can be left out
        warnings.warn(
            f"factorise(rank={told.rank}): {num_rows} rows are few for {counted(told.rank, 'coordinate')}, "
            f"fewer than {ENOUGH} "
            f"for each: the cut fits the rows it was given. Its relative error is {told.relative_error:.2g} on these, "
            f"and {unseen} on rows that it has not seen. Give more rows, or a lower rank.",
            DataWarning,
            stacklevel=outside(),
        )


def _warn_of_no_narrowing(told: Factorisation[M], x: Tensor) -> None:
    """Of numbers only: a token is no number."""
    passing, entering = on_copy(told.encoder, x[:1]).numel(), x[0].numel()
    if x.is_floating_point() and passing >= entering:
        warnings.warn(
            f"factorise(rank={told.rank}): {passing} numbers pass for each sample, and {entering} go in: that is no "
            "narrowing. Give a lower rank, or another layer.",
            DataWarning,
            stacklevel=outside(),
        )
