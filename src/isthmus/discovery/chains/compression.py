"""`compress`: the same function with fewer and narrower layers, within a tolerance measured on held-out samples.

The search: `chains.compression_search`. How a module is taken apart: `networks.chain`. Files: `files`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.batch_norms import without_batch_norms
from isthmus.discovery.chains.compression_search import Change, CompressionSearch, error_against, error_of
from isthmus.discovery.chains.module_input import checked_input, checked_output
from isthmus.discovery.chains.running_cost import flops, median_seconds, num_parameters
from isthmus.discovery.chains.sites import has_sites, refusals
from isthmus.discovery.chains.weighted_layers import numbers
from isthmus.discovery.data.splitting import heldout_rows
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import module_argument
from isthmus.networks.chain import UnreadableModule, as_module, read_chain
from isthmus.networks.export_noise import copied_module
from isthmus.networks.stage_kinds import Stage

# rows that the search fits and judges on; the error that is reported is that of all held-out rows
MOST_FITTING, MOST_JUDGING, TIMED = 8192, 2048, 1024
LEAST_ROWS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Compression:
    """A network made smaller, what that cost, and what was left alone.

    Attributes:
        module: the new network, in eval mode, without gradients; a copy of the old one where nothing could be saved.
        relative_error: |new(x) - old(x)|_F / |old(x) - mean|_F on the held-out samples (*exact* there).
        speedup: median seconds of a forward pass before over after, measured in turn.
        seconds_before: median seconds of a forward pass on at most 1024 samples.
        seconds_after: the same of the new network.
        flops_before: operations of matrix products and convolutions for one sample.
        flops_after: the same of the new network.
        parameters_before: number of parameters.
        parameters_after: the same of the new network.
        changes: the moves that were kept, in order.
        refused: (name of a layer, reason) for what was left alone; what is particular to the layer in brackets.
        was_tried: whether the structure allowed anything to be tried.
    """

    module: nn.Module
    relative_error: float
    speedup: float
    seconds_before: float
    seconds_after: float
    flops_before: int
    flops_after: int
    parameters_before: int
    parameters_after: int
    changes: tuple[Change, ...]
    refused: tuple[tuple[str, str], ...]
    was_tried: bool

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing was saved; `refused` says why."""
        return not self.changes


class _Told(NamedTuple):
    """What a compression says of itself."""

    changes: tuple[Change, ...]
    refused: tuple[tuple[str, str], ...]
    was_tried: bool


def compress(module: nn.Module, x: Tensor, *, tolerance: float, heldout: Tensor | None = None) -> Compression:
    """The network with fewer neurons and layers, as long as its output stays within a tolerance on held-out samples.

        minimise parameters   subject to   |new(x) - old(x)|_F <= tolerance |old(x) - mean|_F

    Greedy (*heuristic*): dead, constant and parallel neurons go (exact moves); then, whichever saves most comes first:
    neurons are dropped by pivoted QR and the next layer is refitted by least squares, linear maps go through their
    principal subspace, near-linear layers are merged into the next. Batch norms are folded. Each move is kept
    only if the error on held-out samples stays allowed. In a residual sum x + F(x) the stream keeps its width and F is
    made smaller inside. Attention, layer norm, shortcuts with layers of their own and whatever else couples features
    are left as they are, and nothing is moved through them.

    Args:
        module: takes one tensor with samples first and gives one; it is not changed, and is looked at in eval mode.
        x: samples as the module takes them, at least 5; numbers are cast to its floating-point type.
        tolerance: largest relative error, > 0.
        heldout: samples on which the error is measured; by default a fifth of x, chosen with seed 0.

    Returns:
        The new network (a `FullyConnected` if one came, else a `Sequential`), its error, operations and measured speed,
        the moves, and the reasons for what was left alone.

    Raises:
        ValueError: `tolerance` is not positive and finite.
        ShapeError: fewer than 5 samples.
        DataError: NaN in the samples, or the module fails on them; says with what.

    Accuracy: the error is measured in the module's own type. Source: ours (merging); pivoted QR and
    reduced-rank regression elsewhere. Test: discovery/chains/test_compression.
    """
    if not 0 < tolerance < math.inf:
        raise ValueError(
            f"compress(tolerance={tolerance}): needs a finite tolerance > 0, relative to the output's spread."
        )
    module_argument(module, "compress(module, x)")
    x = checked_input("compress", module, x, least_rows=LEAST_ROWS)
    if heldout is None:
        mask = torch.from_numpy(heldout_rows(len(x), seed=0))
        x, heldout = x[~mask], x[mask]
    else:
        heldout = checked_input("compress", module, heldout, least_rows=1)
    old = copied_module(module).eval().requires_grad_(False)
    target = checked_output("compress", old, heldout)
    try:
        chain = read_chain(old, x)
    except UnreadableModule as error:
        return _measured(old, old, heldout, target, _Told((), ((_name(module), f"left as it is: {error}"),), False))
    chain, norms = without_batch_norms(chain)
    search = _searched(chain, x, heldout, target, tolerance)
    new = _finished(search, old, heldout, target, tolerance)
    changes = tuple(search.changes)
    if norms:
        saved = sum(num_parameters(old.get_submodule(name)) for name in norms if _has(old, name))
        changes = (
            Change("batch norm folded into its neighbour", (norms[0], norms[-1]), saved, search.error(chain)),
            *changes,
        )
    too_costly = [(site.partition(": ")[0], _cost(site, e, tolerance)) for site, e in search.refused.items()]
    refused = (*refusals(chain), *too_costly)
    told = _Told(changes, refused, has_sites(chain))
    return _measured(old, new if changes else old, heldout, target, told)


def _searched(chain: list[Stage], x: Tensor, heldout: Tensor, target: Tensor, tolerance: float) -> CompressionSearch:
    judged = error_against(target[:MOST_JUDGING], heldout[:MOST_JUDGING])
    search = CompressionSearch(chain, x[:MOST_FITTING], judged, tolerance)
    search.run()
    return search


def _finished(
    search: CompressionSearch, old: nn.Module, heldout: Tensor, target: Tensor, tolerance: float
) -> nn.Module:
    """The network of the search, with the last moves taken back while all held-out rows disagree with those judged."""
    while True:
        new = as_module(search.stages)
        if isinstance(old, FullyConnected):
            new = _as_network(new, old)
        if not search.changes or error_of(new, target, heldout) <= tolerance:
            return new
        search.undo()


def _as_network(module: nn.Module, old: FullyConnected) -> FullyConnected:
    """A chain of linear layers and the activation of `old` as a network of ours."""
    parts = list(module.children())
    layers = [part for part in parts if isinstance(part, nn.Linear)]
    pairs = [numbers(layer) for layer in layers]
    biases = [b.to(layer.weight) for (_, b), layer in zip(pairs, layers, strict=True)]
    has_bias = old.has_bias or any("bias" in dict(layer.named_parameters()) for layer in layers)
    ends = [i for i, part in enumerate(parts) if isinstance(part, nn.Linear)]
    linear = [number for number, i in enumerate(ends[:-1], 1) if isinstance(parts[i + 1], nn.Linear)]
    network = old.rewritten([layer.weight for layer in layers], biases if has_bias else None, linear=linear)
    return network.eval().requires_grad_(False)


def _measured(old: nn.Module, new: nn.Module, heldout: Tensor, target: Tensor, told: _Told) -> Compression:
    before, after = median_seconds((old, new), heldout[:TIMED])
    return Compression(
        module=new,
        relative_error=error_of(new, target, heldout),
        speedup=before / after,
        seconds_before=before,
        seconds_after=after,
        flops_before=flops(old, heldout),
        flops_after=flops(new, heldout),
        parameters_before=num_parameters(old),
        parameters_after=num_parameters(new),
        changes=told.changes,
        refused=told.refused,
        was_tried=told.was_tried,
    )


def _cost(site: str, error: float, tolerance: float) -> str:
    return (
        f"{site.partition(': ')[2]}: the least saving already costs more than {tolerance:.4g} (an error of {error:.4g})"
    )


def _name(module: nn.Module) -> str:
    return type(module).__name__


def _has(module: nn.Module, name: str) -> bool:
    return name in dict(module.named_modules())
