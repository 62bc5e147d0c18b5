"""The rank of a network on its data: Jacobian at a witness from below, a layer that cuts the network from above."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.diagnostics.gaps import standing_gap
from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.theory import RankEstimate
from isthmus.theory.spread_rows import median_over_rows

ROUNDING = 1e-9  # a singular value of a float64 Jacobian above this share of the largest is no rounding
# heuristic: written networks lose a factor of up to 7 from one singular value to the next, a trained one drops by 10
# or more where its noise begins
STEEPEST = 10.0
NO_JACOBIAN_GAP = (
    "the singular values of the Jacobian fall without a gap, and fewer are above rounding than there can be"
)
SKETCHED = "as many directions of the outputs were differentiated as the Jacobian shows"
OF_INPUTS = "directions in which the inputs vary"
NO_MORE_MOVES = "the inputs vary in no more directions from row to row than the Jacobian shows"
NO_LAYER = "no layer through which everything passes shows so few directions that stand out"


@dataclass(frozen=True, slots=True)
class UpperBound:
    """The narrowest place through which everything passes.

    Attributes:
        rank: what passes there at most (*upper bound*).
        reason: which place it is.
        is_written: whether it is a matrix with fewer independent rows than rows and columns that are not zero: such a
            matrix was written down, or truncated; what is trained has noise there.
    """

    rank: int
    reason: str
    is_written: bool = False


def rank_of(
    by_input: Tensor,
    activation_gaps: Sequence[int | None],
    *,
    upper: UpperBound,
    num_projections: int = 0,
    num_directions: int | None = None,
    rounding: float = ROUNDING,
    least: float = 0.0,
) -> RankEstimate:
    """The gap of the median Jacobian spectrum, between what a witness and what the matrices allow.

    Where a matrix of exactly so low a rank cuts the network, and as many singular values of the Jacobian are above
    rounding with no steep drop between them, all of these count, however small: nothing there is noise of training.
    Where no gap stands out (`gaps.standing_gap`), nothing is noise either: every value above rounding counts from
    below, and only where as many are all that can be is that the rank.

    Args:
        by_input: singular values of df/dx along the movement of the inputs, (points, r).
        activation_gaps: gap integers of the centred activations, None where there is no gap, for the evidence.
        upper: *upper bound* from the structure.
        num_projections: how many random combinations of the outputs were differentiated, 0 for all outputs.
        num_directions: in which rows fewer than inputs can move; None for rows enough.
        rounding: share of the largest singular value below which one is rounding.
        least: what the largest has to exceed anywhere: Jacobians up to it move no output, and count as 0.

    Returns:
        The estimate with its interval; the lower end holds up to the tolerance stated. Evidence "jacobian_gap", None
        where none stands out; of a sketch or of few rows also "jacobian_most", the most that these can show: as many
        are no estimate but a lower bound.
    """
    s = by_input if by_input.numel() else by_input.new_zeros(1, 1)
    s = s.new_zeros(s.shape) if is_rounding(s, least) else s
    median = median_over_rows(s)
    gap = standing_gap(median)
    most_shown = min((k for k in (num_projections or None, num_directions) if k is not None), default=None)
    shows_most = most_shown is not None and gap == most_shown < upper.rank
    counts_all = gap is None or _falls_gently_to_rounding(median, upper)
    tolerance = rounding if counts_all else _middle_of_gap(s, median, gap or 0, rounding)
    counts = (s > tolerance * s.max()).sum(1)
    lower, witness = (int(counts.max()), int(counts.argmax())) if gap != 0 else (0, 0)
    most = max(upper.rank, lower)
    is_missing = shows_most or (gap is None and lower < most)
    shown = NO_MORE_MOVES if most_shown == num_directions else SKETCHED
    evidence: dict[str, object] = {"jacobian_gap": gap, "activation_gaps": list(activation_gaps)}
    if most_shown is not None:
        evidence["jacobian_most"] = most_shown
    return RankEstimate(
        estimate=None if is_missing else min(max(gap or 0, lower), most),
        missing=(shown if shows_most else NO_JACOBIAN_GAP) if is_missing else "",
        lower=lower,
        upper=most,
        lower_reason=f"singular values of the Jacobian, along what the inputs vary by, at witness point {witness} (of "
        f"{len(s)} spread over the data)",
        upper_reason=upper.reason,
        tolerance=tolerance,
        evidence=evidence,
    )


def is_rounding(by_input: Tensor, least: float) -> bool:
    """Whether there are slopes, and none of any Jacobian moves an output by more than its rounding."""
    return bool(by_input.numel()) and 0 < float(by_input.max()) <= least


def _middle_of_gap(s: Tensor, median: Tensor, gap: int, rounding: float) -> float:
    """Trained networks keep tiny extra directions: what counts is above the middle of the gap."""
    if not gap:
        return rounding
    edge = torch.cat([median, median.new_zeros(1)])[[gap - 1, gap]].clamp_min(rounding * float(s.max()))
    return float(edge.log().mean().exp() / s.max())


def _falls_gently_to_rounding(median: Tensor, upper: UpperBound) -> bool:
    """Whether as many values as a written matrix lets through are above rounding, none far below the one before."""
    if not upper.is_written or not 0 < upper.rank <= len(median):
        return False
    kept = median[: upper.rank]
    return bool(kept[-1] > ROUNDING * kept[0]) and bool((kept[:-1] < STEEPEST * kept[1:]).all())


def upper_bound(
    layers: Sequence[LayerSums], cuts: Sequence[int], *, num_samples: int, num_inputs: int | None, num_outputs: int
) -> UpperBound:
    """The narrowest place through which everything passes (*upper bound*), and its name.

    Args:
        layers: all layers.
        cuts: indices of those through which everything passes.
        num_samples: a layer with more rows than samples (tokens, pixels) bounds nothing by its matrix alone.
        num_inputs: numbers per sample that enter, None for tokens.
        num_outputs: numbers per sample that come out.
    """
    found = [UpperBound(num_outputs, "number of outputs")]
    if num_inputs is not None:
        found.append(UpperBound(num_inputs, "number of inputs"))
    found += [_bound_of(layers[i].weight) for i in cuts if layers[i].rows == num_samples and layers[i].matrix.numel()]
    return min(found, key=lambda bound: (bound.rank, not bound.is_written))


def _bound_of(weight: Tensor) -> UpperBound:
    # ten times what an SVD leaves: a matrix that was written as a product of factors carries their roundings too
    rank = int(torch.linalg.matrix_rank(weight, rtol=10 * max(weight.shape) * torch.finfo(weight.dtype).eps))
    sides = [int(weight.any(axis).sum()) for axis in (0, 1)]  # dead neurons decay to rows and columns of zeros
    return UpperBound(rank, "numerical rank of the narrowest weight matrix", is_written=rank < min(sides))
