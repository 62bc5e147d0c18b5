"""What can be saved at a site of a chain: neurons dropped, a map narrowed, a layer merged; each for a size to choose.

Where: `chains.sites`. How small, and in which order: `chains.compression_search`. Exact moves: `chains.exact_moves`.
"""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from isthmus.discovery.chains import convolution_moves
from isthmus.discovery.chains.row_factor import row_factor
from isthmus.discovery.chains.rows import row_batches
from isthmus.discovery.chains.sites import MovePlan, Site, SiteKind, no_move
from isthmus.discovery.chains.weighted_layers import (
    by_input,
    is_unpadded,
    kept_features,
    kept_outputs,
    mixed_inputs,
    numbers,
    weighted,
    with_numbers,
)
from isthmus.networks.chain import linear_layer
from isthmus.networks.stage_kinds import Stage, is_convolution


def plan(site: Site, stages: Sequence[Stage], x: Tensor) -> MovePlan:
    """What can be saved at a site, read off samples `x` at the input of the chain."""
    return PLANS[site.kind](site, stages, x)


def _pruned(site: Site, stages: Sequence[Stage], x: Tensor) -> MovePlan:
    """Hidden neurons dropped in the order of a pivoted QR of a diag|w_out|, the rest refitted to replace them.

    a ~ mean + X^T (a_S - mean_S),   X = argmin |R - R_S X|:   the next layer takes a_S through X.
    Behind zero padding a constant cannot be moved into the bias, and the fit goes through the origin.
    """
    first, last = weighted(stages[site.first]), weighted(stages[site.last])
    width = len(first.weight)
    if width < 2:
        return no_move()
    factor = row_factor(row_batches(stages[: site.last], x, width, channels_first=is_convolution(first)))
    has_offset = is_unpadded(last)
    rows = factor.centred if has_offset else factor.raw
    order = _importance(rows, by_input(last, width))

    def build(size: int) -> list[Stage]:
        keep = order[:size].sort().values
        mixing = _refit(rows, keep)
        offset = factor.mean - factor.mean[keep] @ mixing if has_offset else torch.zeros_like(factor.mean)
        return [
            Stage(stages[site.first].name, kept_outputs(first, keep)),
            *(kept_features(stage, keep, width) for stage in stages[site.first + 1 : site.last]),
            Stage(stages[site.last].name, mixed_inputs(last, mixing, offset)),
        ]

    return MovePlan(range(1, width), build)


def _narrowed(site: Site, stages: Sequence[Stage], x: Tensor) -> MovePlan:
    """A run of linear layers as one of rank k: its outputs projected on their k principal axes.

    z = W a + b ~ Q Q^T W a + b + (I - Q Q^T) W mean,   Q the first k right singular vectors of R W^T
    """
    layers = [weighted(stages[l]) for l in range(site.first, site.last + 1)]
    weight, bias = numbers(layers[0])
    for layer in layers[1:]:
        outer, shift = numbers(layer)
        weight, bias = outer @ weight, outer @ bias + shift
    d_out, d_in = weight.shape
    full, present = min(d_out, d_in), sum(layer.weight.numel() for layer in layers)
    sizes = [k for k in range(1, full + 1) if _cost(k, d_in, d_out) < present]
    if not sizes:
        return no_move()
    factor = row_factor(row_batches(stages[: site.first], x, d_in, channels_first=False))  # it multiplies the last axis
    axes = torch.linalg.svd(factor.centred @ weight.T, full_matrices=False).Vh.T
    names = (stages[site.first].name, stages[site.last].name)

    def build(size: int) -> list[Stage]:
        if _cost(size, d_in, d_out) == d_in * d_out:
            return [Stage(names[-1], with_numbers(layers[-1], weight, bias))]
        q = axes[:, :size]
        moved = weight @ factor.mean
        inner = linear_layer((q.T @ weight).to(layers[0].weight), None)
        return [Stage(names[0], inner), Stage(names[1], with_numbers(layers[-1], q, bias + moved - q @ (q.T @ moved)))]

    return MovePlan([k for k in sizes if k <= axes.shape[1] or k == full], build)


def _merged(site: Site, stages: Sequence[Stage], x: Tensor) -> MovePlan:
    """A layer whose activation is replaced, neuron by neuron, by the best line on the data, and multiplied away.

    sigma(z) ~ g z + c,   g = cov(z, sigma(z)) / var(z):   W_2 (g (W_1 a + b_1) + c) + b_2
    """
    first, last = weighted(stages[site.first]), weighted(stages[site.last])
    (inner, inner_bias), (outer, outer_bias) = numbers(first), numbers(last)
    if outer.shape[0] * inner.shape[1] >= inner.numel() + outer.numel():
        return no_move()
    width = len(inner)
    pairs = zip(
        row_batches(stages[: site.first + 1], x, width, channels_first=False),
        row_batches(stages[: site.first + 2], x, width, channels_first=False),
        strict=True,
    )
    gain, offset = _lines(pairs, width)
    weight = (outer * gain) @ inner
    bias = outer @ (gain * inner_bias + offset) + outer_bias
    merged = Stage(stages[site.last].name, with_numbers(last, weight, bias))
    return MovePlan((width,), lambda _: [merged])


def _importance(rows: Tensor, outgoing: Tensor) -> Tensor:
    """Neurons by what is left of them, as the next layer sees them, once the ones before are known."""
    seen = rows * outgoing.movedim(1, 0).flatten(1).norm(dim=1)
    pivots = np.asarray(scipy.linalg.qr(seen.numpy(), mode="r", pivoting=True)[-1], dtype=np.int64)
    return torch.from_numpy(pivots)


def _refit(rows: Tensor, keep: Tensor) -> Tensor:
    """X (k, d) with rows ~ rows[:, keep] X, of least norm; the kept neurons stand for themselves."""
    eps = torch.finfo(torch.float64).eps * max(rows.shape)
    solution, *_ = cast(tuple[np.ndarray, ...], scipy.linalg.lstsq(rows[:, keep].numpy(), rows.numpy(), cond=eps))
    mixing = torch.from_numpy(solution)
    mixing[:, keep] = torch.eye(len(keep), dtype=torch.float64)
    return mixing


def _lines(pairs: "zip[tuple[Tensor, Tensor]]", width: int) -> tuple[Tensor, Tensor]:
    """Slope and offset of the least-squares line through (z, sigma(z)), neuron by neuron."""
    sums = torch.zeros(5, width, dtype=torch.float64)
    shift: tuple[Tensor, Tensor] | None = None
    for z, s in pairs:
        shift = (z.mean(0), s.mean(0)) if shift is None else shift  # near the means nothing cancels
        u, v = z - shift[0], s - shift[1]
        sums += torch.stack([torch.full_like(u[0], len(u)), u.sum(0), v.sum(0), (u * u).sum(0), (u * v).sum(0)])
    assert shift is not None
    n, u, v, uu, uv = sums
    variance = uu - u * u / n
    slope = torch.where(variance > 0, (uv - u * v / n) / torch.where(variance > 0, variance, 1.0), 0.0)
    return slope, shift[1] + v / n - slope * (shift[0] + u / n)


def _cost(rank: int, d_in: int, d_out: int) -> int:
    return min(rank * (d_in + d_out), d_in * d_out)


PLANS: dict[SiteKind, Callable[[Site, Sequence[Stage], Tensor], MovePlan]] = {
    SiteKind.PRUNE: _pruned,
    SiteKind.NARROW: _narrowed,
    SiteKind.MERGE: _merged,
    SiteKind.BEHIND: convolution_moves.behind,
    SiteKind.BEFORE: convolution_moves.before,
    SiteKind.BY_AXIS: convolution_moves.by_axis,
}
