"""Networks with weights written down, each with the facts it realises and its ledger id.

Moves that rewrite a network: `networks`. Closed-form costs: `theory`. Weights found by training: `training`.
"""

from isthmus.constructions.composition import IdentityComposition, compose_with_identity, merged_composition
from isthmus.constructions.sums import ParallelSum, leaky_from_relu, parallel_sum

__all__ = [
    "IdentityComposition",
    "ParallelSum",
    "compose_with_identity",
    "leaky_from_relu",
    "merged_composition",
    "parallel_sum",
]
