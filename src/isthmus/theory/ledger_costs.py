"""Rows of the ledger's table of costs: norms of a network, and the closed forms where it is linear or shallow."""

from collections.abc import Callable

import torch
from torch import Tensor

from isthmus.theory.enclosures import enclosed_product, enclosed_singular_values
from isthmus.theory.jacobian_bounds import resnet_jacobian_lower_bound
from isthmus.theory.ledger_entries import Entry, Need, needs_blocks, needs_layers, needs_stream
from isthmus.theory.ledger_jacobians import layers_of
from isthmus.theory.linear_costs import (
    diagonal_linear_cost,
    linear_cost_expansion,
    shallow_path_norm,
)
from isthmus.theory.network_facts import NetworkFacts, ResidualBlocks
from isthmus.theory.residual_costs import resnet_cost
from isthmus.theory.spectra import power_sum

EXACT = 1e-9  # relative difference up to which a number is exact, though singular values are known to rounding only


def _values(found: NetworkFacts) -> tuple[Tensor, Tensor]:
    """Singular values of the map of a chain of linear layers: what is certainly there, and what can be.

    Those beyond the narrowest layer are 0.
    """
    product, error = enclosed_product(found.chain)
    values = enclosed_singular_values(product, error=error)
    return values.lower, values.upper[: min(min(weight.shape) for weight in found.chain)]


def _certain(found: NetworkFacts) -> Tensor:
    return _values(found)[0]


def _between(of: Callable[[NetworkFacts, Tensor], Tensor]) -> Need:
    """Why the cost is an estimate: what rounding leaves of the singular values makes a difference to it."""

    def unsure(found: NetworkFacts) -> str:
        low, high = (float(of(found, values)) for values in _values(found))
        if abs(high - low) <= EXACT * max(abs(low), abs(high)):
            return ""
        return f"singular values of the product that may be rounding count as 0; with them it is up to {high:.6g}"

    return unsure


def _rank_is_known(found: NetworkFacts) -> str:
    low, high = (int((values > 0).sum()) for values in _values(found))
    return "" if low == high else f"rounding of the product hides whether its rank is {low} or up to {high}"


def _linear(found: NetworkFacts) -> str:
    layers = layers_of(found)
    if not layers.linear:
        return "needs a linear network; of others certificates(network, x) bounds it"
    biased = any(b is not None and bool(b.any()) for b in layers.biases)
    return "needs a network without biases" if biased else ""


def _diagonal(found: NetworkFacts) -> str:
    weights = layers_of(found).weights
    return "" if all(torch.equal(w, w.diagonal().diag()) for w in weights) else "needs diagonal matrices"


def _shallow(found: NetworkFacts) -> str:
    return "" if layers_of(found).depth == 2 and not layers_of(found).linear else "needs one hidden layer, activated"


def _path_norm(found: NetworkFacts) -> Tensor:
    (incoming, outgoing), (bias, output_bias) = layers_of(found).weights, layers_of(found).biases
    return shallow_path_norm(incoming, outgoing, bias=bias, output_bias=output_bias)


def _expansion(order: int) -> "Entry":
    name = ("rank", "2 log |A|_+", "half |log_+ A^T A|^2")[order]

    def term(found: NetworkFacts) -> Tensor:
        values = _certain(found)
        return linear_cost_expansion(values.diag(), rank=int((values > 0).sum()))[order]

    return Entry("FC-27", "linear_cost_expansion", "exact", f"R{order} of the map, {name}", term,
                 (needs_layers, _linear), unsure=_rank_is_known)  # fmt: skip


def _norm(found: NetworkFacts, values: Tensor) -> Tensor:
    depth = layers_of(found).depth
    return depth * power_sum(values, values > 0, 2 / depth)


def _diagonal_norm(found: NetworkFacts) -> Tensor:
    """By logarithms, which neither overflow nor underflow."""
    layers = layers_of(found)
    logs = torch.stack([weight.diagonal().abs().log() for weight in layers.weights]).sum(0)
    return diagonal_linear_cost(torch.exp(2 / layers.depth * logs), depth=2) / 2 * layers.depth


def _blocks(found: NetworkFacts) -> ResidualBlocks:
    assert found.blocks is not None
    return found.blocks


def _linear_blocks(found: NetworkFacts) -> str:
    return "" if _blocks(found).linear else "needs a linear network; certificates(network, x) bounds it"


def _at_this_depth(found: NetworkFacts, values: Tensor) -> Tensor:
    of = _blocks(found)
    return resnet_cost(values, residual_weight=of.residual_weight, depth=of.depth, block_depth=of.block_depth)


def _at_every_depth(found: NetworkFacts) -> Tensor:
    (product, error), of = enclosed_product(found.chain), _blocks(found)
    return resnet_jacobian_lower_bound(
        product[None], residual_weight=of.residual_weight, block_depth=of.block_depth, error=error
    )


def _has_blocks(found: NetworkFacts) -> str:
    return "" if _blocks(found).depth else "needs a residual block"


def _leaky_penalty(found: NetworkFacts) -> float:
    assert found.stream is not None
    return found.stream.penalty


COSTS = (
    Entry("FC-12", "penalty", "upper", "R(f; L), activated where this is",
          lambda found: layers_of(found).penalty, (needs_layers,)),
    Entry("FC-09", "linear_cost", "exact", "least norm of linear networks of this depth",
          lambda found: _norm(found, _certain(found)), (needs_layers, _linear), unsure=_between(_norm)),
    Entry("FC-10", "diagonal_linear_cost", "exact", "least norm with diagonal matrices", _diagonal_norm,
          (needs_layers, _linear, _diagonal)),
    Entry("FC-11", "shallow_path_norm", "upper", "R(f; 2)", _path_norm, (needs_layers, _shallow)),
    *(_expansion(order) for order in range(3)),
    Entry("RES-02", "penalty", "upper", "least cost of f", lambda found: _blocks(found).penalty, (needs_blocks,)),
    Entry("RES-03", "resnet_cost", "exact", "least cost of f at this depth",
          lambda found: _at_this_depth(found, _certain(found)), (needs_blocks, _linear_blocks, _has_blocks),
          unsure=_between(_at_this_depth)),
    Entry("RES-05", "resnet_cost", "lower", "least cost of f at every depth", _at_every_depth,
          (needs_blocks, _linear_blocks)),
    Entry("LEAKY-01", "penalty", "upper", "least norm of f at this effective depth", _leaky_penalty, (needs_stream,)),
)  # fmt: skip
