"""The rank of a network on its data: Jacobian at a witness from below, a layer that cuts the network from above."""

from collections.abc import Sequence

import torch
from torch import Tensor

from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.theory import RankEstimate
from isthmus.theory.spectra import spectral_gap_rank

ROUNDING = 1e-9  # a singular value of a float64 Jacobian above this share of the largest is no rounding


def rank_of(  # noqa: PLR0913 - the evidence, and the bound with its reason
    by_input: Tensor, activation_gaps: Sequence[int], *, upper: int, upper_reason: str, num_projections: int = 0
) -> RankEstimate:
    """The gap of the median Jacobian spectrum, between what a witness and what the matrices allow.

    Args:
        by_input: singular values of df/dx, (points, r).
        activation_gaps: gap integers of the centred activations, for the evidence.
        upper: *upper bound* from the structure.
        upper_reason: what gives it.
        num_projections: how many random combinations of the outputs were differentiated, 0 for all outputs.

    Returns:
        The estimate with its interval; the lower end holds up to the tolerance stated. Evidence "jacobian_gap"; of a
        sketch also "jacobian_most", the most that it can show: a gap as large as that is no estimate but a lower bound.
    """
    s = by_input if by_input.numel() else by_input.new_zeros(1, 1)
    median = s.median(0).values
    gap = int(spectral_gap_rank(median))
    # trained networks keep tiny extra directions: what counts is above the middle of the gap
    edge = torch.cat([median, median.new_zeros(1)])[[gap - 1, gap]].clamp_min(ROUNDING * float(s.max()))
    tolerance = float(edge.log().mean().exp() / s.max()) if gap else ROUNDING
    counts = (s > tolerance * s.max()).sum(1)
    lower, witness = (int(counts.max()), int(counts.argmax())) if gap else (0, 0)
    upper = max(upper, lower)
    evidence: dict[str, object] = {"jacobian_gap": gap, "activation_gaps": list(activation_gaps)}
    if num_projections:
        evidence["jacobian_most"] = num_projections
    return RankEstimate(
        estimate=min(max(gap, lower), upper),
        lower=lower,
        upper=upper,
        lower_reason=f"singular values of the Jacobian at witness point {witness} (of {len(s)} spread over the data)",
        upper_reason=upper_reason,
        tolerance=tolerance,
        evidence=evidence,
    )


def upper_bound(
    layers: Sequence[LayerSums], cuts: Sequence[int], *, num_samples: int, num_inputs: int | None, num_outputs: int
) -> tuple[int, str]:
    """The narrowest place through which everything passes (*upper bound*), and its name.

    Args:
        layers: all layers.
        cuts: indices of those through which everything passes.
        num_samples: a layer with more rows than samples (tokens, pixels) bounds nothing by its matrix alone.
        num_inputs: numbers per sample that enter, None for tokens.
        num_outputs: numbers per sample that come out.
    """
    found = [(num_outputs, "number of outputs")]
    if num_inputs is not None:
        found.append((num_inputs, "number of inputs"))
    found += [
        (int(torch.linalg.matrix_rank(layers[i].weight)), "numerical rank of the narrowest weight matrix")
        for i in cuts
        if layers[i].rows == num_samples and layers[i].weight.numel()
    ]
    return min(found, key=lambda pair: pair[0])
