"""Which networks on the way down are proved to keep a tolerance, on samples without a say: one after the other.

The way down: `compression_search`, `polishing`. The bound: `error_bounds`. What becomes of them: `compression`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from torch import nn

from isthmus.discovery.chains.compression_search import Change, CompressionSearch
from isthmus.discovery.chains.error_bounds import RowErrors
from isthmus.discovery.chains.running_cost import num_parameters
from isthmus.networks.stage_kinds import Stage


class Attempt(NamedTuple):
    """Steps that are to be tested, and the moves that led there, at least one."""

    stages: list[Stage]
    changes: tuple[Change, ...]


class Proved(NamedTuple):
    """Steps that were proved to keep the tolerance, the moves up to them, and their errors."""

    stages: list[Stage]
    changes: tuple[Change, ...]
    errors: RowErrors


def attempts(search: CompressionSearch) -> list[Attempt]:
    """The network after each move of a search."""
    return [Attempt(stages, tuple(search.changes[:i])) for i, stages in enumerate(search.history) if i]


def proved(
    tried: Sequence[Attempt],
    start: tuple[list[Stage], Sequence[str], nn.Module],
    reported: Callable[[Sequence[Stage]], RowErrors],
    tolerance: float,
) -> list[Proved]:
    """The networks from the first on, as long as the bound on the error keeps to the tolerance.

    Args:
        tried: in the order in which they are tested: so many tests need no correction.
        start: the steps before any move, the names of batch norms folded into them, and the module itself.
        reported: the errors of steps on samples without a say.
        tolerance: of the bound.
    """
    (stages, norms, old), known = start, dict[Change, float]()
    first = reported(stages)
    if first.bound > tolerance:
        return []
    folded: tuple[Change, ...] = ()
    if norms:
        saved = sum(num_parameters(old.get_submodule(name)) for name in norms if _has(old, name))
        what = "batch norm folded into its neighbour"
        folded = (Change(what, (norms[0], norms[-1]), saved, first.relative_error),)
    found = [Proved(stages, folded, first)] if norms else []
    for attempt in tried:
        errors = reported(attempt.stages)
        if errors.bound > tolerance:
            break
        known[attempt.changes[-1]] = errors.relative_error
        changes = [
            replace(change, relative_error=known.get(change, change.relative_error)) for change in attempt.changes
        ]
        found.append(Proved(attempt.stages, (*folded, *changes), errors))
    return found


def _has(module: nn.Module, name: str) -> bool:
    return name in dict(module.named_modules())
