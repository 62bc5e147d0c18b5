"""`factorise`: cut a fully connected network in two halves, decoder o encoder, through k coordinates."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, walk
from isthmus.theory.spectra import spectral_gap_rank


@dataclass(frozen=True, slots=True)
class Factorisation:
    """Two halves of a network.

    Attributes:
        encoder: x -> coordinates (n, rank): centred, decorrelated on the data, by decreasing variance, sign fixed.
        decoder: coordinates -> outputs.
        rank: number of coordinates.
        layer: number of the hidden layer that was cut.
        relative_error: |decoder(encoder(x)) - f(x)|_F / |f(x) - mean|_F on the data.
    """

    encoder: FullyConnected
    decoder: FullyConnected
    rank: int
    layer: int
    relative_error: float


def factorise(
    module: nn.Module, x: Float[Tensor, "n d_in"], rank: int | None = None, *, layer: int | None = None
) -> Factorisation:
    """Cut a network at a hidden layer, through the principal subspace of its centred pre-activations.

        z_l ~ U c + mean,   c = U^T (z_l - mean) in R^k:   encoder = c(x),   decoder = layers after sigma(U c + mean)

    Exact where the pre-activations of the layer lie in a k-dimensional affine space; otherwise the relative error says
    how far off it is.

    Args:
        module: a fully connected network of depth at least 2; it is not changed.
        x: samples as rows; the subspace and the error are theirs.
        rank: number of coordinates; None takes the largest gap in the spectrum of the layer (*estimate*).
        layer: hidden layer (1..L-1) to cut; None takes the one with the least error, the first of equals.

    Returns:
        Two float64 networks with their relative error.

    Raises:
        TypeError: the module is not a `FullyConnected`.
        ShapeError: x does not fit.
        ValueError: no such layer, or rank larger than its width.

    Source: ledger section 5.1, `extract_factorization`.
    """
    if not isinstance(module, FullyConnected):
        raise TypeError(f"factorise(module, x): needs a FullyConnected, got {type(module).__name__}.")
    network = module.rewritten(*module.written_layers()).double().requires_grad_(False)
    if network.depth < 2 or (layer is not None and not 1 <= layer < network.depth):
        raise ValueError(f"factorise(layer={layer}): needs a hidden layer, 1..{network.depth - 1} in this network.")
    x = torch.as_tensor(x).double()
    if len(x) < 2:
        raise ShapeError(f"factorise(module, x): needs at least 2 rows to find a subspace, got {len(x)}.")
    with torch.no_grad():
        states = walk(network, x)
        layers = [layer] if layer is not None else list(range(1, network.depth))
        if rank is None:
            layers, rank = _narrowest(layers, [states[l - 1].preactivation for l in layers])
        cuts = [_cut(network, states[l - 1].preactivation, x, rank, l) for l in layers]
    return min(cuts, key=lambda c: c.relative_error)


def gap_of(network: FullyConnected, x: Tensor) -> int:
    """Least gap rank over the hidden layers' centred pre-activations on `x` (*estimate*)."""
    with torch.no_grad():
        states = walk(network, x)[:-1]
    return _narrowest([s.position for s in states], [s.preactivation for s in states])[1]


def joined(halves: Factorisation, *, dtype: torch.dtype = torch.float64) -> FullyConnected:
    """One network that computes decoder o encoder, whose layer of coordinates is linear."""
    first, second = halves.encoder.written_layers(), halves.decoder.written_layers()
    pairs = zip(first, second, strict=True)
    weights, biases = ([t.to(dtype) for t in [*(a or []), *(b or [])]] for a, b in pairs)
    depth = halves.encoder.depth
    linear = [*halves.encoder.linear, depth, *(l + depth for l in halves.decoder.linear)]
    return FullyConnected.from_layers(
        weights, biases, negative_slope=halves.encoder.negative_slope, linear=linear, dtype=dtype
    )


def _narrowest(layers: list[int], preactivations: list[Tensor]) -> tuple[list[int], int]:
    """The layers whose spectra have the least gap rank, and that rank."""
    ranks = [int(spectral_gap_rank(torch.linalg.svdvals(z - z.mean(0)))) for z in preactivations]
    return [l for l, r in zip(layers, ranks, strict=True) if r == min(ranks)], min(ranks)


def _cut(network: FullyConnected, z: Tensor, x: Tensor, rank: int, layer: int) -> Factorisation:
    if not 0 <= rank <= z.shape[1]:
        raise ValueError(f"factorise(rank={rank}, layer={layer}): needs 0 <= rank <= the layer's width {z.shape[1]}.")
    mean = z.mean(0)
    basis = _principal_axes(z - mean, rank)
    weights, biases = network.written_layers()
    biases = [torch.zeros(d, dtype=torch.float64) for d in network.dimensions[1:]] if biases is None else biases
    encoder = FullyConnected.from_layers(
        [*weights[: layer - 1], basis.T @ weights[layer - 1]],
        [*biases[: layer - 1], basis.T @ (biases[layer - 1] - mean)],
        negative_slope=network.negative_slope,
        linear=[l for l in network.linear if l < layer],
    )
    decoder = FullyConnected.from_layers(
        [basis, *weights[layer:]],
        [mean, *biases[layer:]],
        negative_slope=network.negative_slope,
        linear=[l - layer + 1 for l in network.linear if l >= layer],
    )
    target = network(x)
    spread = float((target - target.mean(0)).norm())
    error = float((decoder(encoder(x)) - target).norm())
    return Factorisation(encoder, decoder, rank, layer, error / spread if spread else error)


def _principal_axes(centred: Tensor, rank: int) -> Tensor:
    """Orthonormal columns by decreasing variance, each with its entry of largest magnitude positive."""
    axes = torch.linalg.svd(centred, full_matrices=False).Vh[:rank].T
    if axes.shape[1] < rank:  # fewer samples than coordinates: complete the basis
        axes = torch.linalg.qr(torch.cat([axes, torch.eye(len(axes), dtype=axes.dtype)], 1)).Q[:, :rank]
    sign = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign() if rank else axes[:1]
    return axes * sign


def merge_linear_runs(network: FullyConnected) -> FullyConnected:
    """The same function with every run of linear layers multiplied into one (*exact* up to rounding)."""
    weights, biases = network.written_layers()
    biases = [torch.zeros_like(w[:, 0]) for w in weights] if biases is None else biases
    for l in sorted(network.linear, reverse=True):
        biases[l] = biases[l] + weights[l] @ biases[l - 1]
        weights[l] = weights[l] @ weights[l - 1]
        del weights[l - 1], biases[l - 1]
    return network.rewritten(weights, biases, linear=())
