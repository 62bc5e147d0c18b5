"""Rows of the ledger that rest on f(x) and Jf(x) at the samples. Rows that rest on layers: `ledger_layers`."""

import torch
from torch import Tensor

from isthmus.theory.bottleneck import bottleneck_certificate, two_sequence_certificate
from isthmus.theory.enclosures import rounded_up
from isthmus.theory.jacobian_bounds import (
    last_matrix_lower_bound,
    regularity_lower_bound,
    resnet_jacobian_lower_bound,
    schatten_lower_bound,
    two_point_bound,
)
from isthmus.theory.ledger_entries import (
    Entry,
    certain_rank,
    certain_values,
    jacobians_of,
    needs_blocks,
    needs_chain,
    needs_layers,
    needs_rank,
    witness,
)
from isthmus.theory.linearisation import (
    bottleneck_rank_upper_bound,
    layer_jacobian_bound,
    narrowest_width,
    prefix_jacobians,
    suffix_jacobians,
)
from isthmus.theory.network_facts import ConnectedLayers, NetworkFacts
from isthmus.theory.nonplanarity import nonplanarity_bound
from isthmus.theory.norm_bounds import trailing_singular_value_bound
from isthmus.theory.representations import idempotency_defect
from isthmus.theory.tangent_kernels import curvature_lower_bound
from isthmus.theory.topology import spanning_tree_certificate
from isthmus.theory.travelling_salesman import rank1_cost_lower_bound

FEW, SWEEPS = 32, 200  # samples and iterations of the bound that solves a program: it is one with any


def layers_of(found: NetworkFacts) -> ConnectedLayers:
    """Of an entry that `needs_layers`."""
    assert found.layers is not None
    return found.layers


def rounding_of_layers(found: NetworkFacts) -> list[float]:
    """How far rounding can have moved what is computed in each layer from that of the true weights, at any sample."""
    layers = layers_of(found)
    size = 16 * layers.depth * max(max(weight.shape) for weight in layers.weights)
    reach = torch.ones(()).double()  # of what is computed in a layer, biases included
    moved: list[float] = []
    for weight, bias, entering in zip(layers.weights, layers.biases, layers.enters, strict=True):
        total = weight.norm() * entering.norm(dim=1).max() + (0.0 if bias is None else bias.norm())
        reach = reach * weight.norm() + total
        moved.append(size * torch.finfo(torch.float64).eps * float(reach))
    return moved


def _schatten(found: NetworkFacts) -> Tensor:
    return schatten_lower_bound(jacobians_of(found), depth=layers_of(found).depth, error=found.error)


def _regularity(found: NetworkFacts) -> Tensor:
    k, depth = certain_rank(found), layers_of(found).depth
    return regularity_lower_bound(jacobians_of(found), rank=k, depth=depth, error=found.error)


def _last_matrix(found: NetworkFacts) -> Tensor:
    layers = layers_of(found)
    return last_matrix_lower_bound(jacobians_of(found), layers.weights[-1], depth=layers.depth, error=found.error)


def _nonplanarity(found: NetworkFacts) -> float:
    J = jacobians_of(found)
    chosen = torch.linspace(0, len(J) - 1, min(FEW, len(J)), dtype=torch.float32).long()
    error = None if found.error is None else found.error[chosen]
    return nonplanarity_bound(J[chosen], rank=certain_rank(found), error=error, sweeps=SWEEPS).value


def _two_points(found: NetworkFacts) -> Tensor:
    layers, J = layers_of(found), jacobians_of(found)
    i = witness(found)
    j = int((J - J[i]).square().sum((1, 2)).argmax())
    pair = [pattern[[i, j]] for pattern in layers.derivatives]
    before = layer_jacobian_bound(prefix_jacobians(layers.weights, pair))[-1]
    behind = layer_jacobian_bound(suffix_jacobians(layers.weights, pair))[0]
    size = 16 * layers.depth * max(max(weight.shape) for weight in layers.weights)
    constants = [float(rounded_up(norm.clamp_min(1), size)) for norm in (before, behind)]
    return two_point_bound(
        J[i], J[j], depth=layers.depth, prefix_norm=constants[0], suffix_norm=constants[1],
        negative_slope=layers.negative_slope, error=None if found.error is None else float(found.error[[i, j]].max()),
    )  # fmt: skip


def _second_value(found: NetworkFacts) -> Tensor:
    layers, first = layers_of(found), certain_values(found)[:, :1]
    return trailing_singular_value_bound(first, penalty=layers.penalty, depth=layers.depth).max()


def _curvature(found: NetworkFacts) -> Tensor:
    layers = layers_of(found)
    slope = 0.0 if layers.linear else layers.negative_slope
    return curvature_lower_bound(
        jacobians_of(found), depth=layers.depth, negative_slope=slope, error=found.error
    ).max()  # fmt: skip


def _isometries(found: NetworkFacts) -> float:
    layers, i = layers_of(found), witness(found)
    of_slopes = bottleneck_certificate if layers.negative_slope >= 0 else two_sequence_certificate
    pattern = [derivative[i] for derivative in layers.derivatives]
    return of_slopes(layers.weights, layers.biases, pattern, rank=certain_rank(found)).bound


def _tree(found: NetworkFacts) -> float:
    """The values are moved towards one another by what rounding can have done to them."""
    assert found.x is not None
    assert found.values is not None
    layers = layers_of(found)
    size = 16 * layers.depth * max(max(weight.shape) for weight in layers.weights)
    norms = torch.stack([torch.linalg.matrix_norm(weight, 2) for weight in layers.weights])
    lipschitz = float(rounded_up(norms.prod(), size))
    if not lipschitz:
        return 0.0
    moved = 2 * len(found.values) * rounding_of_layers(found)[-1]
    found_rank = spanning_tree_certificate(found.x, found.values, lipschitz=lipschitz)
    certified = found_rank.measured - moved > found_rank.threshold
    return float(found_rank.rank if certified else certain_rank(found) > 0)


def _rank_one_norm(found: NetworkFacts) -> float:
    assert found.x is not None
    assert found.values is not None
    return rank1_cost_lower_bound(found.x, found.values, depth=layers_of(found).depth)


def _blocks(found: NetworkFacts) -> Tensor:
    assert found.blocks is not None
    blocks = found.blocks
    return resnet_jacobian_lower_bound(
        jacobians_of(found), residual_weight=blocks.residual_weight, depth=blocks.depth,
        block_depth=blocks.block_depth, error=found.error,
    )  # fmt: skip


def _by_widths(found: NetworkFacts) -> str:
    width = narrowest_width(found.chain)
    if bottleneck_rank_upper_bound(found.chain) == width:
        return ""
    return f"singular values of the weights below rounding count as 0; by widths alone it is {width}"


def _square(found: NetworkFacts) -> str:
    p, q = jacobians_of(found).shape[1:]
    return "" if p == q else f"needs as many outputs as inputs; there are {p} and {q}"


def _deep(found: NetworkFacts) -> str:
    return "" if layers_of(found).depth >= 2 else "needs two layers or more"


def _relu(found: NetworkFacts) -> str:
    slope = layers_of(found).negative_slope
    return "needs a ReLU network, the only one it is proved for" if slope else ""


def _samples(found: NetworkFacts) -> str:
    return "" if len(jacobians_of(found)) > 1 else "needs two samples"


def _has_blocks(found: NetworkFacts) -> str:
    assert found.blocks is not None
    return "" if found.blocks.depth else "needs a residual block"


def _curved(found: NetworkFacts) -> str:
    widths = {tuple(w.shape) for w in layers_of(found).weights}
    return "" if all(min(shape) > 0 for shape in widths) else "needs widths of 1 or more"


_NORM = "penalty of every network of this depth with these Jacobians"
OF_JACOBIANS = (
    Entry("FC-01", "jacobian_rank_lower_bound", "lower", "bottleneck rank", certain_rank, (), by_jacobians=True),
    Entry(
        "FC-02",
        "bottleneck_rank_upper_bound",
        "upper",
        "bottleneck rank",
        lambda found: bottleneck_rank_upper_bound(found.chain),
        (needs_chain,),
        unsure=_by_widths,
    ),
    Entry("FC-13", "schatten_lower_bound", "lower", _NORM, _schatten, (needs_layers,), by_jacobians=True),
    Entry(
        "FC-20",
        "trailing_singular_value_bound",
        "upper",
        "largest second singular value at the samples",
        _second_value,
        (needs_layers, needs_rank),
        by_jacobians=True,
        over_samples=True,
    ),
    Entry(
        "FC-22",
        "spanning_tree_certificate",
        "lower",
        "bottleneck rank on the hull of the samples",
        _tree,
        (needs_layers, _samples),
    ),
    Entry(
        "FC-22",
        "rank1_cost_lower_bound",
        "lower",
        "penalty of a network of rank 1 with these values",
        _rank_one_norm,
        (needs_layers, _samples),
    ),
    Entry(
        "FC-28", "regularity_lower_bound", "lower", _NORM, _regularity, (needs_layers, needs_rank), by_jacobians=True
    ),
    Entry(
        "FC-34",
        "last_matrix_lower_bound",
        "lower",
        f"{_NORM} and this last matrix",
        _last_matrix,
        (needs_layers, _deep),
        by_jacobians=True,
    ),
    Entry(
        "FC-34",
        "nonplanarity_bound",
        "lower",
        "R(f; L) - k L at every depth",
        _nonplanarity,
        (needs_rank,),
        by_jacobians=True,
    ),
    Entry(
        "FC-35",
        "two_point_bound",
        "lower",
        "penalty of this network",
        _two_points,
        (needs_layers, _relu, needs_rank, _samples, _deep),
        by_jacobians=True,
    ),
    Entry(
        "FC-37",
        "bottleneck_certificate",
        "upper",
        "squared distance of all layers from isometries of k dimensions",
        _isometries,
        (needs_layers, needs_rank),
        by_jacobians=True,
    ),
    Entry(
        "FC-42",
        "curvature_lower_bound",
        "lower",
        "norm of the mixed derivative of the tangent kernel",
        _curvature,
        (needs_layers, needs_rank, _curved),
        by_jacobians=True,
    ),
    Entry(
        "FC-46",
        "idempotency_defect",
        "exact",
        "largest |J J - J| over the samples",
        lambda found: idempotency_defect(jacobians_of(found)).max(),
        (_square,),
        over_samples=True,
    ),
    Entry(
        "RES-12",
        "resnet_jacobian_lower_bound",
        "lower",
        "cost of every such network with these Jacobians",
        _blocks,
        (needs_blocks, _has_blocks),
        by_jacobians=True,
    ),
)  # fmt: skip
