"""What all suites of `index_rank` measure of one case. The cases: `index_cases`, `known_cases`."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from measured import inverse_regression
from measured.local_regression import local_linear
from measured.spans import Array, distance

Search = Callable[..., Any]  # `isthmus.discover`, or what stands in for it
Row = dict[str, Any]
MOMENTS = {
    "sir": inverse_regression.sir,
    "save": inverse_regression.save,
    "directional": inverse_regression.directional,
    "phd": inverse_regression.hessian,
}


def searched(search: Search, x: object, y: object, **settings: Any) -> tuple[Any, Row]:
    """What a search finds, with its rank, verdict and seconds of processor time."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = search(x, y, **settings)
    seconds = time.process_time() - began
    return found, {
        "found": found.rank, "verdict": found.verdict.name, "seconds": seconds, "detail": "; ".join(found.reasons),
    }  # fmt: skip


def classical(x: Array, y: Array, truth: Array, *, local: bool = True) -> Row:
    """Distances of the spans of the classical methods, which are told the dimension; local fits are the slow ones."""
    began, k = time.process_time(), len(truth)
    spans = {name: method(x, y, k) for name, method in MOMENTS.items()}
    spans |= local_linear(x, y, k) if local else {}
    row: Row = {name: distance(span, truth) for name, span in spans.items()}
    return row | {"classical_seconds": time.process_time() - began}


def against(truth: Array, found: Any, row: Row, *, rank: int | None = None) -> Row:
    """The row with what is true beside: the rank, whether it is right, the distance of the spans."""
    k = len(truth) if rank is None else rank
    return row | {"truth": k, "right": int(found.rank == k), "distance": distance(rows_of(found), truth)}


def rows_of(found: Any) -> Array:
    """Directions of a search in the units of its inputs, (rank, d_in), also of rank 0."""
    return np.asarray(found.directions, dtype=np.float64)
