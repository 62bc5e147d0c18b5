"""The numbers of the table that follow from sums over the data: spectra, dimensions, identity defect, balance.

One function per number; the sums themselves: `layer_sums`; what needs derivatives: `derivatives`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isthmus.diagnostics.covariance_factor import Factor
from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.theory.spectra import spectral_gap_rank


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of the centred covariances of one layer.

    Attributes:
        entering: of what its matrix multiplies.
        before: of z.
        after: of the activation; that of z where no activation function follows.
    """

    entering: Factor
    before: Factor
    after: Factor


def factors_of(layers: Sequence[LayerSums]) -> Iterator[Factors]:
    """The factors of one layer after the other, kept no longer than later ones need them.

    One object where layers share an input, or one's activation is another's input: it is decomposed at once then.
    """
    found: dict[int, Factors] = {}
    last = {needed: index for index, layer in enumerate(layers) if (needed := _needed(layer)) is not None}
    sources = {layer.source for layer in layers if layer.entered is None and layer.twin is None}
    for index, layer in enumerate(layers):
        entering = _entering(layer, found) if layer.rows else Factor(layer.weight.new_zeros(1, layer.matrix.shape[1]))
        # z = a W^T + b: what is known of the input gives that of z
        before = layer.left.factor() if layer.left is not None else entering.through(layer.matrix)
        is_own = layer.is_bent and layer.answered is not None
        factors = Factors(entering, before, layer.answered.factor() if is_own and layer.answered else before)
        if index in sources:
            factors.after.decompose()
        found = {i: f for i, f in [*found.items(), (index, factors)] if last.get(i, -1) > index}
        yield factors


def _needed(layer: LayerSums) -> int | None:
    """The layer whose factors say what enters here, where this one has no moments of its own."""
    return (layer.source if layer.twin is None else layer.twin) if layer.entered is None else None


def _entering(layer: LayerSums, found: Mapping[int, Factors]) -> Factor:
    if layer.entered is not None:
        return layer.entered.factor()
    if layer.twin is not None:
        return found[layer.twin].entering
    assert layer.source is not None
    return found[layer.source].after


def spectrum(factor: Factor, layer: LayerSums) -> Tensor:
    """Singular values of centred activations of a layer over sqrt(n), falling.

    As many values as a matrix of all rows has, zeros where the factor is smaller.
    """
    found = factor.values
    number = min(layer.rows, len(layer.matrix))
    return torch.cat([found, found.new_zeros(max(number - len(found), 0))])[:number]


def nonlinearity(layer: LayerSums) -> float:
    """|z - a|_F / |z|_F over all data, 0 for z = 0 and where no activation function follows."""
    return math.sqrt(layer.lost / layer.size) if layer.size else 0.0


def identity_defect(layer: LayerSums, entering: Factor) -> float:
    """Root mean square of s_i - 1 over the singular values of W on the principal subspace of its centred input."""
    entering.decompose()  # first: it needs axes, and values come along
    k = int(spectral_gap_rank(entering.values))
    if k == 0:
        return math.nan
    on_subspace = entering.on_leading(layer.matrix, k)
    missing = k - len(on_subspace)  # a layer narrower than the subspace loses directions: they count as s = 0
    return float((((on_subspace - 1).square().sum() + missing) / k).sqrt())


def balance_residuals(layers: Sequence[LayerSums]) -> list[float]:
    """Largest | |W_l[i, :]|^2 + b_l[i]^2 - |W_{l+1}[:, i]|^2 | relative to the mean; NaN without a homogeneous link."""
    following = {after.source: after for after in reversed(layers) if after.source is not None}
    out: list[float] = []
    for index, layer in enumerate(layers):
        after = following.get(index)
        out.append(math.nan if after is None or not layer.is_homogeneous else _imbalance(layer, after))
    return out


def _imbalance(layer: LayerSums, after: LayerSums) -> float:
    incoming = layer.weight.square().sum(1) + (layer.bias.square() if layer.bias is not None else 0.0)
    outgoing = after.weight.square().reshape(len(after.weight), len(incoming), -1).sum((0, 2))
    scale = float((incoming + outgoing).mean()) / 2
    return float((incoming - outgoing).abs().max()) / scale if scale else 0.0
