"""Rows of the ledger's table of costs: norms of a network, and the closed forms where it is linear or shallow."""

import torch
from torch import Tensor

from isthmus.theory.ledger_entries import Entry, needs_blocks, needs_layers, needs_stream
from isthmus.theory.ledger_jacobians import layers_of
from isthmus.theory.linear_costs import (
    diagonal_linear_cost,
    linear_cost,
    linear_cost_expansion,
    shallow_path_norm,
)
from isthmus.theory.network_facts import NetworkFacts, ResidualBlocks
from isthmus.theory.residual_costs import resnet_cost


def _product(found: NetworkFacts) -> Tensor:
    product, *others = layers_of(found).weights
    for weight in others:
        product = weight @ product
    return product


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
    return Entry("FC-27", "linear_cost_expansion", "exact", f"R{order} of the map, {name}",
                 lambda found: linear_cost_expansion(_product(found))[order], (needs_layers, _linear))  # fmt: skip


def _blocks(found: NetworkFacts) -> ResidualBlocks:
    assert found.blocks is not None
    return found.blocks


def _linear_blocks(found: NetworkFacts) -> str:
    return "" if _blocks(found).matrix is not None else "needs a linear network; certificates(network, x) bounds it"


def _of_blocks(found: NetworkFacts, depth: int | None) -> Tensor:
    blocks = _blocks(found)
    assert blocks.matrix is not None
    values = torch.linalg.svdvals(blocks.matrix)
    return resnet_cost(values, residual_weight=blocks.residual_weight, depth=depth, block_depth=blocks.block_depth)


def _has_blocks(found: NetworkFacts) -> str:
    return "" if _blocks(found).depth else "needs a residual block"


def _leaky_penalty(found: NetworkFacts) -> float:
    assert found.stream is not None
    return found.stream.penalty


COSTS = (
    Entry("FC-12", "penalty", "upper", "R(f; L)", lambda found: layers_of(found).penalty, (needs_layers,)),
    Entry("FC-09", "linear_cost", "exact", "R(f; L)",
          lambda found: linear_cost(_product(found), depth=layers_of(found).depth), (needs_layers, _linear)),
    Entry("FC-10", "diagonal_linear_cost", "exact", "least norm with diagonal matrices",
          lambda found: diagonal_linear_cost(_product(found).diagonal(), depth=layers_of(found).depth),
          (needs_layers, _linear, _diagonal)),
    Entry("FC-11", "shallow_path_norm", "upper", "R(f; 2)", _path_norm, (needs_layers, _shallow)),
    *(_expansion(order) for order in range(3)),
    Entry("RES-02", "penalty", "upper", "least cost of f", lambda found: _blocks(found).penalty, (needs_blocks,)),
    Entry("RES-03", "resnet_cost", "exact", "least cost of f at this depth",
          lambda found: _of_blocks(found, _blocks(found).depth), (needs_blocks, _linear_blocks, _has_blocks)),
    Entry("RES-05", "resnet_cost", "lower", "least cost of f at every depth", lambda found: _of_blocks(found, None),
          (needs_blocks, _linear_blocks)),
    Entry("LEAKY-01", "penalty", "upper", "least norm of f at this effective depth", _leaky_penalty, (needs_stream,)),
)  # fmt: skip
