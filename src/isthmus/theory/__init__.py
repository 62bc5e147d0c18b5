"""Pure mathematics of the bottleneck rank: tensors in, tensors out, one function for each row of docs/theorems.md.

Arrays of numpy and lists of numbers are taken for tensors, and several depths at once: `linear_cost(A, depth=[2, 9])`.
No module, file or hidden randomness here. Networks that attain the costs: `constructions`. Training: `training`.
"""

from inspect import isfunction

from isthmus.theory.bottleneck import (
    BottleneckCertificate,
    activation_norm_bound,
    bottleneck_certificate,
    representation_tail_bound,
    two_sequence_certificate,
)
from isthmus.theory.bridge import bridged
from isthmus.theory.depth_ranges import (
    DepthWindow,
    PlateauSlope,
    bottleneck_cost_upper_bound,
    depth_window,
    plateau_slope,
    switch_depth,
)
from isthmus.theory.enclosures import (
    EnclosedValues,
    enclosed_singular_values,
)
from isthmus.theory.estimate import (
    RankEstimate,
    Verdict,
)
from isthmus.theory.jacobian_bounds import (
    last_matrix_lower_bound,
    regularity_lower_bound,
    resnet_jacobian_lower_bound,
    schatten_lower_bound,
    two_point_bound,
)
from isthmus.theory.kernel_baseline import (
    KernelRidge,
    kernel_ridge,
)
from isthmus.theory.leaky import (
    HamiltonianProfile,
    alignment_changes,
    balancedness_slope,
    critical_weights,
    hamiltonian_profile,
    pontryagin_hamiltonian,
    rank_from_hamiltonian,
    velocity,
)
from isthmus.theory.leaky_bounds import (
    PathLengthBounds,
    RelaxedEnergies,
    layer_gamma,
    path_length_bounds,
    relaxed_energies,
)
from isthmus.theory.leaky_stability import (
    EnergySplit,
    covariance_coefficients,
    energy_split,
    least_norm_weights,
    negative_energy_fraction,
    neuron_addition_margin,
    scale_criticality,
)
from isthmus.theory.ledger import (
    certificates,
    costs,
)
from isthmus.theory.linear_costs import (
    LinearCostExpansion,
    diagonal_linear_cost,
    linear_cost,
    linear_cost_expansion,
    linear_path_cost,
    optimal_linear_factors,
    shallow_path_norm,
)
from isthmus.theory.linearisation import (
    bottleneck_rank_upper_bound,
    layer_jacobian_bound,
    piecewise_jacobian,
    prefix_jacobians,
    suffix_jacobians,
)
from isthmus.theory.narrow_kernels import (
    narrow_kernel_bound,
    rank1_kernel_bound,
)
from isthmus.theory.nonplanarity import (
    NonplanarityBound,
    nonplanarity_bound,
)
from isthmus.theory.norm_bounds import (
    SpectralGapBound,
    large_singular_value_bound,
    spectral_gap_bound,
    trailing_singular_value_bound,
)
from isthmus.theory.representation_costs import (
    cost_of_identity,
    features,
    hamiltonian,
    relaxed_norm,
)
from isthmus.theory.representations import (
    SpectralGapProfile,
    idempotency_defect,
    kernel_alignment,
    nonlinearity_impact,
    rank_one_descent,
    spectral_gap_profile,
    spectral_gap_ratios,
)
from isthmus.theory.residual_costs import (
    block_cost,
    resnet_cost,
    resnet_cost_gradient,
    resnet_growth,
)
from isthmus.theory.residual_factors import (
    ResnetFactors,
    optimal_resnet_factors,
)
from isthmus.theory.spectra import (
    JacobianRank,
    jacobian_rank_lower_bound,
    log_pseudo_determinant,
    numerical_rank,
    participation_ratio,
    spectral_gap_rank,
    stable_rank_nuclear,
    tangent_restriction,
)
from isthmus.theory.spectral_penalties import (
    spectral_penalty,
    spectral_penalty_prox,
)
from isthmus.theory.tangent_kernels import (
    curvature_lower_bound,
    largest_stable_step,
    segment_kernel_bound,
    sharpness,
    tangent_kernel,
    tangent_kernel_by_layer,
    tangent_kernel_curvature,
    tangent_kernel_trace,
    tangent_kernel_trace_by_layer,
)
from isthmus.theory.topology import (
    RankCertificate,
    antipodal_loop_certificate,
    betweenness_certificate,
    borsuk_ulam_certificate,
    spanning_tree_certificate,
)
from isthmus.theory.travelling_salesman import (
    diameter,
    partial_path_bounds,
    rank1_cost_lower_bound,
    rank1_stretch,
    spanning_tree_length,
    travelling_salesman_bounds,
)

__all__ = [
    "BottleneckCertificate",
    "DepthWindow",
    "EnclosedValues",
    "EnergySplit",
    "HamiltonianProfile",
    "JacobianRank",
    "KernelRidge",
    "LinearCostExpansion",
    "NonplanarityBound",
    "PathLengthBounds",
    "PlateauSlope",
    "RankCertificate",
    "RankEstimate",
    "RelaxedEnergies",
    "ResnetFactors",
    "SpectralGapBound",
    "SpectralGapProfile",
    "Verdict",
    "activation_norm_bound",
    "alignment_changes",
    "antipodal_loop_certificate",
    "balancedness_slope",
    "betweenness_certificate",
    "block_cost",
    "borsuk_ulam_certificate",
    "bottleneck_certificate",
    "bottleneck_cost_upper_bound",
    "bottleneck_rank_upper_bound",
    "certificates",
    "cost_of_identity",
    "costs",
    "covariance_coefficients",
    "critical_weights",
    "curvature_lower_bound",
    "depth_window",
    "diagonal_linear_cost",
    "diameter",
    "enclosed_singular_values",
    "energy_split",
    "features",
    "hamiltonian",
    "hamiltonian_profile",
    "idempotency_defect",
    "jacobian_rank_lower_bound",
    "kernel_alignment",
    "kernel_ridge",
    "large_singular_value_bound",
    "largest_stable_step",
    "layer_gamma",
    "layer_jacobian_bound",
    "least_norm_weights",
    "linear_cost",
    "linear_cost_expansion",
    "linear_path_cost",
    "log_pseudo_determinant",
    "narrow_kernel_bound",
    "negative_energy_fraction",
    "neuron_addition_margin",
    "nonlinearity_impact",
    "nonplanarity_bound",
    "numerical_rank",
    "optimal_linear_factors",
    "optimal_resnet_factors",
    "partial_path_bounds",
    "participation_ratio",
    "path_length_bounds",
    "piecewise_jacobian",
    "plateau_slope",
    "pontryagin_hamiltonian",
    "prefix_jacobians",
    "rank1_cost_lower_bound",
    "rank1_kernel_bound",
    "rank1_stretch",
    "rank_from_hamiltonian",
    "rank_one_descent",
    "regularity_lower_bound",
    "relaxed_energies",
    "relaxed_norm",
    "representation_tail_bound",
    "resnet_cost",
    "resnet_cost_gradient",
    "resnet_growth",
    "resnet_jacobian_lower_bound",
    "scale_criticality",
    "last_matrix_lower_bound",
    "schatten_lower_bound",
    "segment_kernel_bound",
    "shallow_path_norm",
    "sharpness",
    "spanning_tree_certificate",
    "spanning_tree_length",
    "spectral_gap_bound",
    "spectral_gap_rank",
    "spectral_gap_profile",
    "spectral_gap_ratios",
    "spectral_penalty",
    "spectral_penalty_prox",
    "stable_rank_nuclear",
    "suffix_jacobians",
    "switch_depth",
    "tangent_kernel",
    "tangent_kernel_by_layer",
    "tangent_kernel_curvature",
    "tangent_kernel_trace",
    "tangent_kernel_trace_by_layer",
    "tangent_restriction",
    "trailing_singular_value_bound",
    "travelling_salesman_bounds",
    "two_point_bound",
    "two_sequence_certificate",
    "velocity",
]

globals().update(
    {name: bridged(found) for name, found in list(globals().items()) if name in __all__ and isfunction(found)}
)


def __dir__() -> list[str]:
    return __all__
