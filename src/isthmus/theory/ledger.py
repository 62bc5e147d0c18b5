"""Every bound, kernel and cost of docs/theorems.md that can be had of one network or function, as one table.

What a network is, in numbers: `network_facts`. The functions, one by one: the rest of this room. What needs targets
(momenta, Hamiltonians): `diagnostics.leaky_diagnosis`; what needs paths or spheres in the domain: `topology`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd
from torch import Tensor

from isthmus.theory.inputs import check_tensor
from isthmus.theory.ledger_costs import COSTS
from isthmus.theory.ledger_entries import Entry
from isthmus.theory.ledger_jacobians import OF_JACOBIANS
from isthmus.theory.ledger_layers import OF_LAYERS
from isthmus.theory.network_facts import NetworkFacts, known_facts


@dataclass(frozen=True, slots=True)
class NeedsMore:
    """A certificate that needs more than a network and samples."""

    id: str
    name: str
    kind: str
    of: str
    reason: str


_NEED_MORE = (
    NeedsMore("FC-06", "betweenness_certificate", "lower", "bottleneck rank", "needs three points with paths between"),
    NeedsMore("FC-07", "borsuk_ulam_certificate", "lower", "bottleneck rank", "needs a sphere in the domain"),
    NeedsMore("FC-45", "class_regions", "lower", "bottleneck rank", "needs a slice: isthmus.networks.class_regions"),
    NeedsMore("LEAKY-12", "hamiltonian", "exact", "-", "needs targets and the ridge: isthmus.leaky_diagnosis"),
    NeedsMore("LEAKY-15", "path_length_bounds", "lower", "-", "needs targets and the ridge: isthmus.leaky_diagnosis"),
)


def certificates(network: Callable[..., object], x: Tensor) -> pd.DataFrame:
    """Every bound and kernel of the ledger that applies to a network at some samples; those that do not, with why.

    Args:
        network: a network of this library, an `nn.Sequential` of linear layers and relus, or any other module or
            function of rows of tensors: of these only f(x) and Jf(x) are known, so what rests on layers does not apply.
        x: samples as rows; any of the domain, each more can only better a lower bound. Samples so near to a kink that
            float64 cannot tell its side are passed over; what is of all samples together is then an estimate, of the
            others alone, and its reason names their rows.

    Returns:
        One row per statement: id of docs/theorems.md, name of the function here, value, kind (exact, lower, upper,
        estimate), of (what it says something of), applies, reason (why it does not apply, or is an estimate only). A
        value that does not apply is NaN. Rows of Jacobians are bounds where their rounding is proved, as of networks of
        this library; of other functions they are estimates.

    Raises:
        ValueError, TypeError, ShapeError: as `networks.jacobians` of this network. ValueError: no sample.

    Accuracy: that of each function. Networks are read in float64, other modules in their own precision.
    Source: docs/theorems.md. Test: theory/test_ledger.

    >>> table = theory.certificates(lambda x: x[:, :1] + x[:, 1:], [[0, 1], [2, 3]])
    >>> table["id"][0], float(table["value"][0]), table["kind"][0]
    ('FC-01', 1.0, 'estimate')
    """
    check_tensor("certificates", "x", x, least_ndim=2)
    if not x.numel():
        raise ValueError(f"certificates: needs a sample; got none, shape {tuple(x.shape)}. Pass rows of the domain.")
    found = known_facts(network, x)
    table = _table([*OF_JACOBIANS, *OF_LAYERS], found)
    rest = pd.DataFrame(
        [(e.id, e.name, float("nan"), e.kind, e.of, False, e.reason) for e in _NEED_MORE], columns=table.columns
    )
    return pd.concat([table, rest], ignore_index=True)


def costs(network: Callable[..., object]) -> pd.DataFrame:
    """Every norm and closed-form cost of the ledger that applies to a network; those that do not, with why.

    Args:
        network: as for `certificates`; of the cost of a mere function nothing is known, so nothing applies.

    Returns:
        A table as that of `certificates`. Costs are in the units of the network's own penalty.

    Accuracy: that of each function. Source: docs/theorems.md. Test: theory/test_ledger.

    >>> bool(theory.costs(lambda x: x)["applies"].any())
    False
    """
    return _table(COSTS, known_facts(network, None))


def _table(entries: Iterable[Entry], found: NetworkFacts) -> pd.DataFrame:
    rows = [entry.row(found) for entry in entries]
    return pd.DataFrame(rows, columns=["id", "name", "value", "kind", "of", "applies", "reason"])
