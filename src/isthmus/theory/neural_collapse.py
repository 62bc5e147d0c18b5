"""How far the features of classes have collapsed onto the corners of a simplex, and what that says of spectra.

What trains a network to it: `training`. Which features of a network are measured: `diagnostics.forensics`.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import Real, check_tensor


@dataclass(frozen=True, slots=True)
class NeuralCollapse:
    """Measures of neural collapse, all 0 where it is complete (Papyan, Han and Donoho 2020).

    Attributes:
        variation: trace of the covariance within classes over that between their means.
        weighted_variation: trace of S_W S_B^+ over the number of classes (NC1 of the source).
        simplex_distance: |M M^T / |M M^T| - (I - 1 1^T / K) / sqrt(K - 1)|_F, M the centred means as rows (NC2).
        alignment_distance: the same of W M^T, W the last matrix with centred rows (NC3); NaN without W.
    """

    variation: float
    weighted_variation: float
    simplex_distance: float
    alignment_distance: float


def neural_collapse(
    features: Float[Tensor, "n d"], classes: Int[Tensor, " n"], *, weight: Float[Tensor, "k d"] | None = None
) -> NeuralCollapse:
    """Neural collapse of the features of a layer (*exact* on the rows given).

    Args:
        features: rows of the layer, usually what enters the last matrix.
        classes: numbers 0 .. K - 1, each at least once.
        weight: the last matrix, one row per class; without bias.

    Raises:
        TypeError, ValueError: features that are no finite floating-point numbers; fewer than two classes.
        ShapeError: rows and classes differ in number.

    Accuracy: that of a pseudo-inverse of the covariance between classes, rank K - 1. Test: theory/test_neural_collapse.
    """
    call = "neural_collapse"
    features = check_tensor(call, "features", features, least_ndim=2)
    if len(classes) != len(features):
        raise ShapeError(f"{call}: needs one class per row; got {len(classes)} of {len(features)} rows.")
    number = int(classes.max()) + 1 if len(classes) else 0
    counts = torch.bincount(classes, minlength=number)
    if number < 2 or bool((counts == 0).any()):
        raise ValueError(
            f"{call}: needs rows of at least two classes, numbered 0, 1, ..; got counts {counts.tolist()}."
        )
    means = features.new_zeros(number, features.shape[1]).index_add_(0, classes, features) / counts[:, None]
    centred = means - means.mean(0)
    residuals = features - means[classes]
    within, between = residuals.mT @ residuals / len(features), centred.mT @ centred / number
    inverse = torch.linalg.pinv(between, hermitian=True)
    return NeuralCollapse(
        variation=float(within.trace() / between.trace().clamp_min(1e-300)),
        weighted_variation=float((within @ inverse).trace()) / number,
        simplex_distance=_from_simplex(centred @ centred.mT),
        alignment_distance=math.nan if weight is None else _from_simplex((weight - weight.mean(0)) @ centred.mT),
    )


def class_rank_bound(
    weight: Float[Tensor, "m d"],
    gradient: Float[Tensor, "m d"],
    *,
    class_gradients: Float[Tensor, "k m"],
    class_means: Float[Tensor, "k d"],
    ridge: Real,
) -> float:
    """Bound on what a matrix has beyond one direction for each class when training has ended (*upper bound*).

        sqrt(sum_{i > K} s_i(W)^2)  <=  (|G - D^T M|_F + |G + 2 ridge W|_F) / (2 ridge)

    At a stationary point of loss + ridge |W|^2 the matrix is -G / (2 ridge), G = mean of delta a^T, delta the gradient
    of a row's loss by W a. With the mean of its class M_c in place of a, G becomes D^T M of rank K. What is left is at
    most rms |delta| rms |a - M_c|: it vanishes where the classes have collapsed.

    Args:
        weight: W.
        gradient: G, of the mean loss by W.
        class_gradients: D, sum over the rows of each class of delta over the number of all rows.
        class_means: M, the mean of what enters by class.
        ridge: coefficient of |W|_F^2, > 0.

    Raises:
        ValueError: `ridge` is not positive.

    Source: ours, after Zangrando et al. 2024 (neural rank collapse). Test: theory/test_neural_collapse.
    """
    if not ridge > 0:
        raise ValueError(f"class_rank_bound(ridge={ridge}): needs a ridge > 0; without one nothing is bounded.")
    spread = torch.linalg.matrix_norm(gradient - class_gradients.mT @ class_means)
    return float((spread + torch.linalg.matrix_norm(gradient + 2 * ridge * weight)) / (2 * ridge))


def _from_simplex(products: Tensor) -> float:
    """Distance of normalised products from those of a simplex."""
    number = len(products)
    ideal = torch.eye(number, dtype=products.dtype, device=products.device) - 1 / number
    size = torch.linalg.matrix_norm(products).clamp_min(1e-300)
    return float(torch.linalg.matrix_norm(products / size - ideal / math.sqrt(number - 1)))
