"""The exact moves of `networks` (dead, constant, parallel neurons) on the stretches of a chain that are ReLU networks.

Moves that cost something: `chains.compression_moves`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.rows import drawn, row_batches
from isthmus.discovery.chains.weighted_layers import numbers, weighted, with_numbers
from isthmus.networks import FullyConnected, delete_dead_neurons, fold_constant_neurons, merge_parallel_neurons
from isthmus.networks.stage_kinds import Stage, relu_slope

MOST_ROWS = 8192


def stretches(stages: Sequence[Stage]) -> list[tuple[int, int]]:
    """(first, last) linear layers of the longest stretches that are ReLU networks of one slope, of depth 2 at least."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(stages):
        end = _end(stages, start)
        if end is not None and end > start:
            found.append((start, end))
        start = start + 1 if end is None else end + 1
    return found


def without_redundant_neurons(stages: Sequence[Stage], span: tuple[int, int], x: Tensor) -> list[Stage]:
    """The steps of a stretch without neurons that are dead or constant on the data, or parallel (*exact* on the data).

    Args:
        stages: of the whole chain.
        span: as `stretches` gives it.
        x: samples at the input of the chain; at most 8192 rows at the stretch are looked at.

    Returns:
        The steps that replace those of the stretch.
    """
    first, last = span
    places = [l for l in range(first, last + 1) if isinstance(stages[l].module, nn.Linear)]
    layers = [weighted(stages[l]) for l in places]
    pairs = [numbers(layer) for layer in layers]
    linear = [i for i, l in enumerate(places[:-1], 1) if l + 1 == places[i]]
    network = FullyConnected.from_layers(
        [w for w, _ in pairs], [b for _, b in pairs], negative_slope=_slope_of(stages, span) or 0.0, linear=linear
    )
    batches = row_batches(stages[:first], x, network.dimensions[0], channels_first=False)
    rows = drawn(torch.cat(list(batches)), MOST_ROWS)
    network = fold_constant_neurons(delete_dead_neurons(network, rows), rows, allow_rise=True)
    network = merge_parallel_neurons(network, relative=8 * torch.finfo(layers[0].weight.dtype).eps)
    weights, biases = network.written_layers()
    replaced = list(stages[first : last + 1])
    for place, layer, weight, bias in zip(places, layers, weights, biases or (), strict=True):
        replaced[place - first] = Stage(stages[place].name, with_numbers(layer, weight, bias))
    return replaced


def _slope_of(stages: Sequence[Stage], span: tuple[int, int]) -> float | None:
    return next((s for stage in stages[span[0] : span[1]] if (s := relu_slope(stage.module)) is not None), None)


def _end(stages: Sequence[Stage], start: int) -> int | None:
    """The last linear layer of the stretch that begins at `start`, or None."""
    if not isinstance(stages[start].module, nn.Linear):
        return None
    end, slope = start, None
    for place in range(start + 1, len(stages)):
        module, own = stages[place].module, relu_slope(stages[place].module)
        if isinstance(module, nn.Linear) and module.in_features == weighted(stages[end]).weight.shape[0]:
            end = place
        elif own is None or isinstance(stages[place - 1].module, nn.ReLU | nn.LeakyReLU) or slope not in {None, own}:
            return end
        slope = own if own is not None else slope
    return end
