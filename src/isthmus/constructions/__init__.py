"""Networks with weights written down, each with the facts it realises and its id in docs/theorems.md.

All take arrays of numpy and lists for tensors. Moves that rewrite a network: `networks`. Closed-form
costs: `theory`. Weights found by training: `training`.
"""

from inspect import isfunction

from isthmus.constructions.bijections import RankedNetwork, between_bijections
from isthmus.constructions.composition import IdentityComposition, compose_with_identity, merged_composition
from isthmus.constructions.examples import (
    DivergentRepresentation,
    XCross,
    divergent_representation_example,
    x_cross_example,
)
from isthmus.constructions.linear import PositivePath, balanced_linear_network, completely_positive_path
from isthmus.constructions.max_affine import (
    lattice_network,
    lattice_sets,
    max_affine_network,
    shallow_lattice_network,
)
from isthmus.constructions.piecewise_linear import (
    RankOneInterpolation,
    piecewise_linear_network,
    rank_one_interpolator,
)
from isthmus.constructions.residual import ResidualComposition, best_embedding_scale, residual_composition
from isthmus.constructions.residual_shallow import shallow_residual_composition
from isthmus.constructions.sums import ParallelSum, leaky_from_relu, parallel_sum
from isthmus.theory.bridge import bridged

__all__ = [
    "DivergentRepresentation",
    "IdentityComposition",
    "ParallelSum",
    "PositivePath",
    "RankOneInterpolation",
    "RankedNetwork",
    "ResidualComposition",
    "XCross",
    "balanced_linear_network",
    "best_embedding_scale",
    "between_bijections",
    "completely_positive_path",
    "compose_with_identity",
    "divergent_representation_example",
    "lattice_network",
    "lattice_sets",
    "leaky_from_relu",
    "max_affine_network",
    "merged_composition",
    "parallel_sum",
    "piecewise_linear_network",
    "rank_one_interpolator",
    "residual_composition",
    "shallow_lattice_network",
    "shallow_residual_composition",
    "x_cross_example",
]

globals().update(
    {name: bridged(found) for name, found in list(globals().items()) if name in __all__ and isfunction(found)}
)
