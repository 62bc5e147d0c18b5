"""Pure mathematics of the bottleneck rank: tensors in, tensors out, one function per ledger statement.

No module, file or hidden randomness here. Networks that attain the costs: `constructions`. Training: `training`.
"""

from isthmus.theory.estimate import (
    RankEstimate,
    Verdict,
)
from isthmus.theory.linear_cost import (
    LinearCostExpansion,
    diagonal_linear_cost,
    linear_cost,
    linear_cost_expansion,
    linear_path_cost,
    optimal_linear_factors,
    shallow_path_norm,
)
from isthmus.theory.spectra import (
    JacobianRank,
    jacobian_rank_lower_bound,
    log_pseudo_determinant,
    numerical_rank,
    spectral_gap_rank,
    stable_rank_nuclear,
    tangent_restriction,
)

__all__ = [
    "JacobianRank",
    "LinearCostExpansion",
    "RankEstimate",
    "Verdict",
    "diagonal_linear_cost",
    "jacobian_rank_lower_bound",
    "linear_cost",
    "linear_cost_expansion",
    "linear_path_cost",
    "log_pseudo_determinant",
    "numerical_rank",
    "optimal_linear_factors",
    "shallow_path_norm",
    "spectral_gap_rank",
    "stable_rank_nuclear",
    "tangent_restriction",
]
