"""One row of the ledger's table: what it needs of a network, and how its number is made.

The rows: `ledger_jacobians`, `ledger_layers`, `ledger_costs`. Their table: `ledger`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.theory.enclosures import enclosed_singular_values
from isthmus.theory.network_facts import NetworkFacts

Need = Callable[[NetworkFacts], str]
"""Why a statement does not apply; empty if it does."""
Row = tuple[str, str, float, str, str, bool, str]
BEYOND = "float64 cannot hold what it is computed from"
UNPROVED = "the rounding of these Jacobians is not proved"


def _never(_found: NetworkFacts) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement about a network.

    Attributes:
        id: in docs/theorems.md.
        name: of the function in `isthmus.theory`.
        kind: exact, lower, upper or estimate.
        of: what the value is a bound on.
        value: the number.
        needs: what must hold, in the order in which it is asked.
        by_jacobians: whether the value is a bound only where the rounding of the Jacobians is proved.
        unsure: why the value is an estimate here, empty where it is what `kind` says.
        over_samples: whether it is of all samples together, so that it is an estimate where some were passed over.
    """

    id: str
    name: str
    kind: str
    of: str
    value: Callable[[NetworkFacts], Tensor | float]
    needs: tuple[Need, ...] = ()
    by_jacobians: bool = False
    unsure: Need = _never
    over_samples: bool = False

    def row(self, found: NetworkFacts) -> Row:
        """The row for one network; a number that cannot be had leaves its reason."""
        reason = next((why for need in self.needs if (why := need(found))), "")
        value = math.nan
        if not reason:
            try:
                value = float(self.value(found))
                reason = BEYOND if math.isnan(value) else ""
            except ValueError as error:
                reason = str(error)
        if reason:
            return self.id, self.name, value, self.kind, self.of, False, reason
        doubt = UNPROVED if self.by_jacobians and found.error is None else self.unsure(found)
        doubt = doubt or (found.told_passed_over if self.over_samples else "")
        return self.id, self.name, value, "estimate" if doubt else self.kind, self.of, True, doubt


def _unread(found: NetworkFacts, needs: str) -> str:
    return f"{needs} that computes what its weights say; it has {found.departure}" if found.departure else needs


def needs_layers(found: NetworkFacts) -> str:
    """Only of fully connected networks."""
    return "" if found.layers else _unread(found, "needs the layers of a fully connected network")


def needs_chain(found: NetworkFacts) -> str:
    """Of everything whose layers are known."""
    return "" if found.chain else _unread(found, "needs a network whose layers are known")


def needs_blocks(found: NetworkFacts) -> str:
    """Only of residual networks."""
    return "" if found.blocks else _unread(found, "needs a residual network")


def needs_stream(found: NetworkFacts) -> str:
    """Only of leaky residual networks."""
    return "" if found.stream else _unread(found, "needs a leaky residual network")


def needs_rank(found: NetworkFacts) -> str:
    """Not of what is constant as far as the samples show."""
    return "" if certain_rank(found) else "no Jacobian is certainly different from 0"


def jacobians_of(found: NetworkFacts) -> Tensor:
    """Jf(x), which all facts at samples hold."""
    assert found.jacobians is not None
    return found.jacobians


def certain_values(found: NetworkFacts) -> Tensor:
    """What of the singular values of each Jacobian is certainly there, (n, r)."""
    factors = len(found.chain) or 1
    return enclosed_singular_values(jacobians_of(found), error=found.error, num_factors=factors).lower


def certain_rank(found: NetworkFacts) -> int:
    """The largest number of certain singular values of one Jacobian."""
    values = certain_values(found)
    return int((values > 0).sum(-1).max()) if values.numel() else 0


def witness(found: NetworkFacts) -> int:
    """The sample of this rank whose last singular value is largest."""
    k = certain_rank(found)
    return int(certain_values(found)[:, k - 1].argmax())


def of_full_rank(found: NetworkFacts) -> Tensor:
    """The samples whose Jacobians have this rank: numbers of rows."""
    return torch.nonzero((certain_values(found) > 0).sum(-1) == certain_rank(found))[:, 0]
