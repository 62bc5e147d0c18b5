"""The numbers of the table that follow from sums over the data: spectra, dimensions, identity defect, balance.

One function per number; the sums themselves: `layer_sums`; what needs derivatives: `derivatives`.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from isthmus.diagnostics.layer_sums import LayerSums
from isthmus.theory.spectra import spectral_gap_rank


def entering_factors(layers: Sequence[LayerSums]) -> list[Tensor]:
    """F of the centred input of every layer, F^T F = covariance; shared where layers share their input."""
    factors: list[Tensor] = []
    for layer in layers:
        if layer.entered is not None:
            factors.append(layer.entered.factor())
        elif layer.twin is not None:
            factors.append(factors[layer.twin])
        else:
            assert layer.source is not None
            factors.append(_leaving(layers[layer.source], factors[layer.source]))
    return factors


def _leaving(layer: LayerSums, entering: Tensor) -> Tensor:
    if layer.is_bent and layer.answered is not None:
        return layer.answered.factor()
    return layer.left.factor() if layer.left is not None else entering @ layer.weight.mT


def preactivation_spectrum(layer: LayerSums, entering: Tensor) -> Tensor:
    """Singular values of the centred z over sqrt(n), falling; from those of the input, as z = a W^T + b."""
    factor = layer.left.factor() if layer.left is not None else entering @ layer.weight.mT
    return _values(factor, layer)


def activation_spectrum(layer: LayerSums, entering: Tensor) -> Tensor:
    """Singular values of the centred a over sqrt(n), falling."""
    if not layer.is_bent or layer.answered is None:
        return preactivation_spectrum(layer, entering)
    return _values(layer.answered.factor(), layer)


def _values(factor: Tensor, layer: LayerSums) -> Tensor:
    """As many values as a matrix of all rows has, zeros where the factor is smaller."""
    found = torch.linalg.svdvals(factor)
    number = min(layer.rows, len(layer.weight))
    return torch.cat([found, found.new_zeros(max(number - len(found), 0))])[:number]


def nonlinearity(layer: LayerSums) -> float:
    """|z - a|_F / |z|_F over all data, 0 for z = 0 and where no activation function follows."""
    return math.sqrt(layer.lost / layer.size) if layer.size else 0.0


def identity_defect(layer: LayerSums, entering: Tensor) -> float:
    """Root mean square of s_i - 1 over the singular values of W on the principal subspace of its centred input."""
    _, s, vh = torch.linalg.svd(entering, full_matrices=False)
    k = int(spectral_gap_rank(s))
    if k == 0:
        return math.nan
    on_subspace = torch.linalg.svdvals(layer.weight @ vh[:k].mT)
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
