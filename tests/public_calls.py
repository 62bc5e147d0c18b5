"""Arguments that every public function of `theory` and `constructions` takes, also those that have defaults."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from isthmus import theory
from isthmus.networks import FullyConnected

Calls = Mapping[str, Mapping[str, Any]]


def r(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(i * n for i, n in enumerate(shape, 1)))
    return torch.rand(*shape, dtype=torch.float64, generator=generator) + 0.1


def theory_calls() -> Calls:
    """Of `isthmus.theory`."""
    weights, gates, s = [r(3, 2), r(3, 3), r(2, 3)], [torch.ones(4, 3).double()] * 2, torch.tensor([2, 1, 0.5]).double()
    chain: Any = {"weights": weights, "derivatives": gates}
    prefix, suffix = theory.prefix_jacobians(**chain), theory.suffix_jacobians(**chain)
    layers = ([r(4, 2), r(4, 3), r(4, 3)], suffix)
    J, pair = r(4, 2, 3), {"activation": r(5, 3), "momentum": r(5, 3)}
    stream = {"activations": r(4, 5, 3), "momenta": r(4, 5, 3), "weights": r(3, 3, 4), "smoothing": 0.1}
    steps, leak = torch.full((3,), 1 / 3).double(), {"effective_depth": 2.0}
    resnet = {"residual_weight": 0.1, "depth": 3, "block_depth": 2}
    bound = {"depth": 3, "error": 1e-12}
    at_one = {"weights": weights, "biases": [r(3), None, r(2)], "derivatives": [g[0] for g in gates], "rank": 2}
    square = torch.tensor([[1, 0], [0, 1], [-1, 0], [0, -1]]).double()
    energies = [theory.relaxed_energies(r(5, 3), r(5, 3), gamma=0.1, effective_depth=2.0)] * 3
    return {
        "activation_norm_bound": {"log_pseudo_determinants": r(4), "rank": 2, "excess": 1.0, "tangent_scale": 3.0},
        "alignment_changes": stream | {"steps": steps},
        "antipodal_loop_certificate": {"corners": square, "tolerance": 1e-9},
        "balancedness_slope": {"weights": r(3, 3, 4), "steps": steps, "alignment": r(3)} | leak,
        "betweenness_certificate": {"values": square[:3], "paths": [square[1:3], square[[0, 2]], square[:2]]},
        "block_cost": {"singular_values": s, "block": lambda t: t**2, "depth": 3},
        "borsuk_ulam_certificate": {"values": r(9, 2), "antipodes": -r(9, 2), "sphere_dimension": 1, "lipschitz": 0.1,
                                    "spacing": 0.1},
        "bottleneck_certificate": at_one,
        "bottleneck_cost_upper_bound": {"encoder_penalty": 3.0, "decoder_penalty": 4.0, "rank": 2, "depth": 9,
                                        "encoder_depth": 2, "decoder_depth": 2},
        "bottleneck_rank_upper_bound": {"weights": weights},
        "certificates": {"network": torch.sin, "x": r(4, 3)},
        "cost_of_identity": {"activation": r(5, 3), "gamma": 0.1},
        "costs": {"network": torch.sin},
        "covariance_coefficients": {"activation": r(2, 9) - 0.5},
        "critical_weights": pair | leak | {"smoothing": 0.1},
        "curvature_lower_bound": {"jacobians": J, "negative_slope": 0.1} | bound,
        "depth_window": {"rank": 2, "constant": 3.0, "rank1_constant": 30.0, "rank1_stretch": 4.0},
        "diagonal_linear_cost": {"vector": r(3), "depth": 3},
        "diameter": {"points": r(5, 2)},
        "enclosed_singular_values": {"matrix": r(3, 2), "error": 1e-12, "num_factors": 2},
        "energy_split": {"activation": r(3, 5), "velocity": r(3, 5)} | leak,
        "features": {"activation": r(5, 3), "smoothing": 0.1},
        "hamiltonian": pair | leak | {"smoothing": 0.1},
        "hamiltonian_profile": stream | leak,
        "idempotency_defect": {"jacobians": r(4, 3, 3)},
        "jacobian_rank_lower_bound": {"jacobians": J, "tolerance": 1e-6},
        "kernel_alignment": {"left": r(5, 2), "right": r(5, 3)},
        "kernel_ridge": {"x": r(5, 2), "y": r(5, 3), "ridge": 0.1, "bandwidth": 1.0},
        "large_singular_value_bound": {"penalty": 9.0, "threshold": 0.5, "depth": 3},
        "largest_stable_step": {"kernel": theory.tangent_kernel(layers)},
        "last_matrix_lower_bound": {"jacobians": J, "last_matrix": r(2, 3)} | bound,
        "layer_gamma": {"features_of_layer": r(5, 3), "relative": 1e-3},
        "layer_jacobian_bound": {"jacobians": [r(4, 3, 2), J]},
        "least_norm_weights": {"activation": r(3, 5), "velocity": r(3, 5)} | leak,
        "linear_cost": {"matrix": r(3, 2), "depth": 3, "rank": 2},
        "linear_cost_expansion": {"matrix": r(3, 2), "rank": 2},
        "linear_path_cost": {"singular_values": s, "depth": 3},
        "log_pseudo_determinant": {"matrix": r(3, 2), "rank": 2},
        "narrow_kernel_bound": {"codes": r(5), "y": r(5, 3), "weights": r(2), "error": 1e-12, "code_error": 1e-12},
        "negative_energy_fraction": {"activation": r(5, 3) - 0.5},
        "neuron_addition_margin": {"activation": r(2, 5), "added": r(2, 2)},
        "nonlinearity_impact": {"preactivation": r(5, 3), "activation": r(5, 3)},
        "nonplanarity_bound": {"jacobians": J, "rank": 2, "gap": 1e-6, "sweeps": 20, "error": 1e-12},
        "numerical_rank": {"matrix": r(3, 2)},
        "optimal_linear_factors": {"matrix": r(3, 2), "depth": 3, "width": 4, "rank": 2},
        "optimal_resnet_factors": {"matrix": r(3, 2), "width": 4} | resnet,
        "partial_path_bounds": {"points": r(5, 2)},
        "participation_ratio": {"singular_values": s},
        "path_length_bounds": {"energies": energies, "steps": steps} | leak,
        "piecewise_jacobian": chain,
        "plateau_slope": {"depths": torch.tensor([2, 3, 4]), "penalties": r(3)},
        "pontryagin_hamiltonian": pair | leak | {"weight": r(3, 4), "smoothing": 0.1},
        "prefix_jacobians": chain,
        "rank1_cost_lower_bound": {"x": r(5, 2), "y": r(5, 3), "depth": 3},
        "rank1_kernel_bound": {"x": r(5, 2), "y": r(5, 3), "weights": r(2), "lipschitz": 9.0, "error": 1e-12},
        "rank1_stretch": {"x": r(5, 2), "y": r(5, 3)},
        "rank_from_hamiltonian": {"hamiltonians": -r(3)} | leak,
        "rank_one_descent": {"aligned": 0.5, "orthogonal": 0.3, "step": 0.01, "num_steps": 5},
        "regularity_lower_bound": {"jacobians": J, "rank": 2} | bound,
        "relaxed_energies": pair | leak | {"gamma": 0.1, "smoothing": 0.1},
        "relaxed_norm": {"m": r(5, 3), "s": r(5, 2), "gamma": 0.1},
        "representation_tail_bound": {"activation_bounds": r(4), "certificate_bound": 2.0, "depth": 9, "fraction": 0.5},
        "resnet_cost": {"singular_values": s} | resnet,
        "resnet_cost_gradient": {"singular_values": s} | resnet,
        "resnet_growth": {"singular_values": s} | resnet,
        "resnet_jacobian_lower_bound": {"jacobians": J, "error": 1e-12} | resnet,
        "scale_criticality": {"activation": r(5, 3)},
        "schatten_lower_bound": {"jacobians": J} | bound,
        "segment_kernel_bound": {"jacobians": J, "displacements": r(4, 3), "negative_slope": 0.1} | bound,
        "shallow_path_norm": {"incoming": r(4, 2), "outgoing": r(3, 4), "bias": r(4), "output_bias": r(3)},
        "sharpness": {"kernel": theory.tangent_kernel(layers)},
        "spanning_tree_certificate": {"x": r(5, 2), "values": r(5, 3), "lipschitz": 0.1},
        "spanning_tree_length": {"points": r(5, 2)},
        "spectral_gap_bound": {"x": r(5, 3), "y": r(5, 2), "weight_norms": 3 * r(3), "error": 1e-12},
        "spectral_gap_profile": {"representations": [r(5, 3), r(5, 4)], "rank": 1},
        "spectral_gap_rank": {"singular_values": s, "floor": 0.01},
        "spectral_gap_ratios": {"representation": r(5, 3), "rank": 1},
        "spectral_penalty": {"matrix": r(3, 2), "rank": 2} | resnet,
        "spectral_penalty_prox": {"matrix": r(3, 2), "step": 0.1} | resnet,
        "stable_rank_nuclear": {"matrix": r(3, 2)},
        "suffix_jacobians": chain,
        "switch_depth": {"loss": (2.0, 1.0), "constant": (0.0, 1.0), "rank": (1, 2), "ridge": 0.1},
        "tangent_kernel": {"left": layers, "right": layers},
        "tangent_kernel_by_layer": {"left": layers, "right": layers},
        "tangent_kernel_curvature": {"prefix": [torch.eye(2).double().expand(4, 2, 2), *prefix][:3], "suffix": suffix},
        "tangent_kernel_trace": {"layers": layers},
        "tangent_kernel_trace_by_layer": {"layers": layers},
        "tangent_restriction": {"jacobians": J, "tangents": torch.linalg.qr(r(4, 3, 2)).Q},
        "trailing_singular_value_bound": {"singular_values": s[:1], "penalty": 9.0, "depth": 3},
        "travelling_salesman_bounds": {"points": r(5, 2)},
        "two_point_bound": {"jacobian_x": r(2, 3), "jacobian_y": r(2, 3), "prefix_norm": 2.0, "suffix_norm": 2.0}
        | bound,
        "two_sequence_certificate": at_one,
        "velocity": pair | {"smoothing": 0.1},
    }  # fmt: skip


def construction_calls() -> Calls:
    """Of `isthmus.constructions`."""
    network = FullyConnected.from_layers([r(3, 2), r(2, 3)], [r(3), -r(2)])
    ends: Any = {"inner": network, "outer": network}
    pieces: Any = {"slopes": r(3, 2) - 0.5, "offsets": r(3)}
    sets, x = [[0, 1], [2]], r(4, 2)
    residual = ends | {"depth": 20, "residual_weight": 0.1, "embedding_scale": 0.3}
    return {
        "balanced_linear_network": {"matrix": r(3, 2), "depth": 3, "rank": 2},
        "best_embedding_scale": {"residual_weight": 0.1, "rank": 1, "d_in": 2, "d_out": 3},
        "between_bijections": {"matrix": r(3, 2), "depth_before": 1, "depth_after": 1, "negative_slope": 0.3,
                               "stretch": 1.5, "seed": 0},
        "completely_positive_path": {"matrix": r(3, 2), "depth": 3, "x": x, "isometry_in": torch.eye(2).double(),
                                     "isometry_out": torch.eye(3).double()},
        "compose_with_identity": ends | {"num_identities": 2, "box": (-r(2), r(2))},
        "divergent_representation_example": {"depth": 4, "alpha": 1.0, "epsilon": 0.1},
        "lattice_network": pieces | {"sets": sets},
        "lattice_sets": pieces | {"function": lambda p: (p @ (r(3, 2) - 0.5).to(p).mT + r(3).to(p)).amax(1),
                                  "points": x, "tolerance": 1e-12},
        "leaky_from_relu": {"network": network, "negative_slope": 0.3},
        "max_affine_network": pieces,
        "merged_composition": ends,
        "parallel_sum": {"first": network, "second": network},
        "piecewise_linear_network": {"knots": torch.tensor([0.0, 1.0, 3.0]).double(), "values": r(3, 2),
                                     "left_slope": r(2), "right_slope": r(2)},
        "rank_one_interpolator": {"x": r(5, 2), "y": r(5, 3), "depth": 3, "direction": r(2), "num_directions": 3,
                                  "seed": 0},
        "residual_composition": residual | {"x": x},
        "shallow_lattice_network": pieces | {"sets": sets},
        "shallow_residual_composition": residual | {"repeats": 1, "shift": r(2)},
        "x_cross_example": {},
    }  # fmt: skip
