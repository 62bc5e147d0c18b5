"""A fully connected network at given points as plain tensors: weights and activation derivatives, and their products.

    J a_l(x) = D_l W_l ... D_1 W_1   (prefix),      J_l(x) = df/dz_l = W_L D_{L-1} ... W_{l+1} D_l   (suffix)

Here the derivatives are given; reading them off a network is `networks.walk`.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory.inputs import check_same_length, check_tensor

Layers = tuple[Sequence[Tensor], Sequence[Tensor]]
"""(activations a_0..a_{L-1}, each (n, n_l); suffix Jacobians J_1..J_L, each (n, d_out, n_l)) of one batch."""


def checked_batch(call: str, layers: Layers) -> Layers:
    """The layers, with the one Jacobian of a network of depth 1, which is the identity everywhere, for each sample."""
    activations, jacobians = layers
    if check_same_length(call, activations=activations, suffix_jacobians=jacobians) == 1 and len(jacobians[0]) == 1:
        jacobians = [jacobians[0].expand(len(activations[0]), *jacobians[0].shape[1:])]
    for l, (activation, jacobian) in enumerate(zip(activations, jacobians, strict=True), 1):
        check_tensor(call, f"activations[{l - 1}]", activation, ndim=2)
        check_tensor(call, f"suffix_jacobians[{l - 1}]", jacobian, ndim=3)
        if len(activation) != len(jacobian):
            raise ShapeError(
                f"{call}: needs one batch in all layers; got {len(activation)} activations and {len(jacobian)} "
                f"Jacobians at layer {l}. Evaluate both on the same samples."
            )
    if len({jacobian.shape[1] for jacobian in jacobians}) > 1:
        raise ShapeError(
            f"{call}: needs one number of outputs; got {[j.shape[1] for j in jacobians]} in the Jacobians."
        )
    return activations, jacobians


def check_layers(call: str, weights: Sequence[Tensor], derivatives: Sequence[Tensor], *, ndim: int) -> None:
    """Raise unless L weight matrices chain, and L - 1 derivative patterns in [-1, 1] fit between them."""
    if not weights or len(derivatives) != len(weights) - 1:
        raise ShapeError(
            f"{call}: needs L >= 1 weights and L - 1 derivatives, none after the last layer; got {len(weights)} and "
            f"{len(derivatives)}. Drop the derivative of the output layer."
        )
    for l, weight in enumerate(weights, 1):
        check_tensor(call, f"weights[{l - 1}]", weight, ndim=2)
        if l > 1 and weight.shape[1] != weights[l - 2].shape[0]:
            raise ShapeError(
                f"{call}: needs weights that chain; got {tuple(weight.shape)} after {tuple(weights[l - 2].shape)} "
                f"at layer {l}. List them first layer first."
            )
    for l, (pattern, weight) in enumerate(zip(derivatives, weights, strict=False), 1):
        check_tensor(call, f"derivatives[{l - 1}]", pattern, ndim=ndim)
        if pattern.shape[-1] != weight.shape[0]:
            raise ShapeError(
                f"{call}: needs derivatives of width {weight.shape[0]} at layer {l}; got shape {tuple(pattern.shape)}. "
                "Give one entry per neuron."
            )
        if pattern.numel() and float(pattern.detach().abs().max()) > 1:
            raise ValueError(
                f"{call}: needs derivatives in [-1, 1]; got {float(pattern.detach().abs().max()):.3g} at layer {l}. "
                "Rescale the activation and put its slope into the weights."
            )


def prefix_jacobians(weights: Sequence[Tensor], derivatives: Sequence[Float[Tensor, "n _"]]) -> list[Tensor]:
    """Jacobians of the activations, J a_l(x) = D_l W_l ... D_1 W_1 for l = 0..L-1 (*exact*).

    Args:
        weights: W_1, ..., W_L, shapes (n_l, n_{l-1}).
        derivatives: L - 1 patterns sigma'(z_l), one row per sample, entries in [-1, 1].

    Returns:
        L tensors (n, n_l, d_in), the first the identity. For L = 1 the batch has one element.

    Raises:
        ShapeError: lists or layers that do not fit. ValueError: derivatives beyond [-1, 1], NaN or infinity.

    Accuracy: rounding of the products. Source: Jacot 2023a, section 2. Test: FC-35.

    >>> [j.flatten().tolist() for j in theory.prefix_jacobians([[[2.0]], [[3.0]]], [[[1.0]]])]
    [[1.0], [2.0]]
    """
    check_layers("prefix_jacobians", weights, derivatives, ndim=2)
    num = len(derivatives[0]) if derivatives else 1
    d_in = weights[0].shape[1]
    products = [torch.eye(d_in, dtype=weights[0].dtype, device=weights[0].device).expand(num, d_in, d_in)]
    for weight, pattern in zip(weights, derivatives, strict=False):
        products.append(pattern[:, :, None] * (weight @ products[-1]))
    return products


def suffix_jacobians(weights: Sequence[Tensor], derivatives: Sequence[Float[Tensor, "n _"]]) -> list[Tensor]:
    """Jacobians of the output by each preactivation, J_l(x) = W_L D_{L-1} ... W_{l+1} D_l for l = 1..L (*exact*).

    Args:
        weights: W_1, ..., W_L, shapes (n_l, n_{l-1}).
        derivatives: L - 1 patterns sigma'(z_l), one row per sample, entries in [-1, 1].

    Returns:
        L tensors (n, d_out, n_l), the last the identity. For L = 1 the batch has one element.

    Raises:
        ShapeError: lists or layers that do not fit. ValueError: derivatives beyond [-1, 1], NaN or infinity.

    Accuracy: rounding of the products. Source: Jacot 2023b, section 4. Test: FC-38.

    >>> [j.flatten().tolist() for j in theory.suffix_jacobians([[[2.0]], [[3.0]]], [[[1.0]]])]
    [[3.0], [1.0]]
    """
    check_layers("suffix_jacobians", weights, derivatives, ndim=2)
    num = len(derivatives[0]) if derivatives else 1
    d_out = weights[-1].shape[0]
    products = [torch.eye(d_out, dtype=weights[0].dtype, device=weights[0].device).expand(num, d_out, d_out)]
    for weight, pattern in zip(reversed(weights), reversed(derivatives), strict=False):
        # the first is W_L itself; then one product for the whole batch, (n d_out, n_l) @ (n_l, n_{l-1})
        first = len(products) == 1
        products.append(weight * pattern[:, None, :] if first else (products[-1] @ weight).mul_(pattern[:, None, :]))
    return products[::-1]


def piecewise_jacobian(
    weights: Sequence[Tensor], derivatives: Sequence[Float[Tensor, "n _"]]
) -> Float[Tensor, "n d_out d_in"]:
    """Jacobian of the network on the linear region of each sample, Jf = W_L D_{L-1} ... D_1 W_1 (*exact*).

    Args:
        weights: W_1, ..., W_L, shapes (n_l, n_{l-1}).
        derivatives: L - 1 patterns sigma'(z_l), one row per sample, entries in [-1, 1].

    Raises:
        ShapeError: lists or layers that do not fit. ValueError: derivatives beyond [-1, 1], NaN or infinity.

    Accuracy: rounding of the products. Source: Jacot 2023a, section 2. Test: FC-13.

    >>> theory.piecewise_jacobian([[[2.0]], [[3.0]]], [[[1.0], [0.0]]]).flatten().tolist()
    [6.0, 0.0]
    """
    return suffix_jacobians(weights, derivatives)[0] @ weights[0]


def layer_jacobian_bound(jacobians: Sequence[Float[Tensor, "n _ _"]]) -> Float[Tensor, " n"]:
    """Largest operator norm over a list of layers, for each sample (*exact*): the constants C1 and C2 of FC-35.

    Args:
        jacobians: as `prefix_jacobians` or `suffix_jacobians` return them.

    Raises:
        ValueError: NaN or infinity. TypeError: complex or integer tensor. ShapeError: not three dimensions.

    Accuracy: that of the SVD. Source: Jacot 2023b, Proposition 13. Test: FC-35.

    >>> theory.layer_jacobian_bound([[[[2.0]]], [[[3.0]]]]).tolist()
    [3.0]
    """
    for l, jacobian in enumerate(jacobians):
        check_tensor("layer_jacobian_bound", f"jacobians[{l}]", jacobian, ndim=3)
    if not len(jacobians):
        raise ShapeError("layer_jacobian_bound: needs at least one layer; got an empty list.")
    norms = [torch.linalg.svdvals(j)[:, 0] if j.shape[1] and j.shape[2] else j.new_zeros(len(j)) for j in jacobians]
    return torch.stack(norms).amax(0)


def bottleneck_rank_upper_bound(weights: Sequence[Tensor]) -> int:
    """Least inner dimension of a network: *upper bound* on the bottleneck rank of the function it computes.

        min over l of rank W_l   (and so of all widths, d_in and d_out)

    A set of finitely many points always has bottleneck rank <= 1; this bound speaks of all inputs.

    Args:
        weights: W_1, ..., W_L, shapes (n_l, n_{l-1}). Ranks count singular values above the rounding of the SVD, so
            the bound is that of the network without them, an *estimate*: as it stands in floating point a matrix has
            full rank, and layers behind may raise what is dropped (diag(1, 2^-60) before diag(1, 2^60) counts 1, and is
            the identity). Certain is `narrowest_width`; `certificates` says which of them it gives.

    Raises:
        ShapeError: weights that do not chain. ValueError: NaN or infinity. TypeError: complex or integer tensors.

    Source: Jacot 2023a, Definition 2. Test: FC-02.

    >>> theory.bottleneck_rank_upper_bound([[[1, 2], [2, 4]], [[1, 0], [0, 1]]])
    1
    """
    for l, weight in enumerate(weights, 1):
        check_tensor("bottleneck_rank_upper_bound", f"weights[{l - 1}]", weight, ndim=2)
    patterns = [weight.new_ones(len(weight)) for weight in weights[:-1]]
    check_layers("bottleneck_rank_upper_bound", weights, patterns, ndim=1)
    return min(_rank(weight) for weight in weights)


def narrowest_width(weights: Sequence[Tensor]) -> int:
    """Least number of rows or columns of a weight matrix that are not zero: no rounding is in this *upper bound*."""
    return min(int((weight != 0).any(axis).sum()) for weight in weights for axis in (0, 1))


def _rank(weight: Tensor) -> int:
    values = torch.linalg.svdvals(weight)
    return int((values > max(weight.shape) * torch.finfo(weight.dtype).eps * values[:1]).sum())
