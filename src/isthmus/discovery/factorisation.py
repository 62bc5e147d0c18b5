"""`factorise`: cut a network in two halves, decoder o encoder, through k coordinates.

Networks of ours: here, in float64. Any other module: `chains.cutting`. Errors on rows without a say: `unseen_rows`.
"""

from functools import partial
from typing import Any, TypeAlias, overload

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from isthmus.diagnostics.replica import undisturbed
from isthmus.discovery.chains.cutting import cut_module
from isthmus.discovery.chains.module_input import samples_argument
from isthmus.discovery.factors import Factorisation, dimensions_of, fewest_coordinates, principal_axes
from isthmus.discovery.unseen_rows import told_by_unseen_rows
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected, walk
from isthmus.networks.arguments import AnyModule, module_argument, whole_argument
from isthmus.networks.departures import departure
from isthmus.networks.devices import made_on_cpu
from isthmus.networks.residual_rewriting import as_fully_connected, stream_departure
from isthmus.networks.residual_stream import ResidualStream
from isthmus.theory.spectra import spectral_gap_rank

Samples: TypeAlias = Tensor | DataLoader[Any] | Dataset[Any]


@overload
def factorise(
    module: FullyConnected | ResidualStream, x: Samples, rank: int | None = None, *, layer: int | str | None = None,
    heldout: Tensor | None = None,
) -> Factorisation[FullyConnected]: ...  # fmt: skip


@overload
def factorise(
    module: AnyModule, x: Samples, rank: int | None = None, *, layer: int | str | None = None,
    heldout: Tensor | None = None,
) -> Factorisation[nn.Module]: ...  # fmt: skip


@made_on_cpu
def factorise(
    module: AnyModule, x: Samples, rank: int | None = None, *, layer: int | str | None = None,
    heldout: Tensor | None = None,
) -> Factorisation[FullyConnected] | Factorisation[nn.Module]:  # fmt: skip
    """Cut a network at a layer, through the principal subspace of its centred pre-activations.

        z_l ~ U c + mean,   c = U^T (z_l - mean) in R^k:   encoder = c(x),   decoder = layers after sigma(U c + mean)

    Exact where the pre-activations of the layer lie in a k-dimensional affine space; otherwise the relative error says
    how far off it is.

    Args:
        module: a `FullyConnected` of depth at least 2; a `LeakyResNet` or `ResNet`, whose stream is cut; or any module,
            or exported program, of one tensor in and one out whose linear layers are not all bypassed by skip
            connections. Not changed.
        x: samples as rows (of a module, as it takes them; tokens and pixels count as samples of the subspace). Or a
            data set, or a DataLoader, all of whose batches are taken into memory without their targets.
        rank: number of coordinates; None takes the number of dimensions that `diagnose` reads, and cuts where samples
            pass as a whole (*estimate*). Where it reads none, and of what passes token by token or pixel by pixel, the
            fewest through which a cut loses at most 1 % of the spread of the outputs on x.
        layer: layer to cut: its number among the linear layers that can be cut (hidden layers 1..L-1 of a
            `FullyConnected`, l + 1 behind layer l = 0..L of a residual network), or its name as in `named_modules`
            (of one that runs again "name (call 2)"); None takes the one with the least error, the first of equals. The
            last linear layer is no choice where it is the output. Convolutions are cut through channels where they are
            named, or where there is no linear layer.
        heldout: rows on which `heldout_error` is that of the halves returned. Without them x is cut five times more
            with the same rank and layer, each time without another fifth of the rows (seed 0), and the error is that
            of all rows by the cut that had not seen them: fitted to fewer, so rather too large than too small.

    Returns:
        Two networks with their errors on the rows they were fitted to and on others: float64 `FullyConnected` of a
        network of ours, of any other module two `Sequential` modules of its own type in eval mode.

    Raises:
        ShapeError: x does not fit.
        DataError: the module fails on x, or gives NaN, or x has NaN.
        ValueError: no such layer, a smoothed relu, a layer that is bypassed by a skip connection (says which), a module
            that cannot be taken apart, a rank larger than the width, or numbers that are not whole.

    Warns:
        DataWarning: fewer than three rows for each coordinate; as many numbers pass as go in.

    Source: ours.

    >>> halves = isthmus.factorise(module, torch.from_numpy(x).float(), 1)
    >>> halves.rank, halves.encoder(torch.from_numpy(x).float()).shape
    (1, torch.Size([60, 1]))
    """
    module = module_argument(module, "factorise(module, x)")
    rank = None if rank is None else whole_argument(rank, "factorise(rank=...)")
    layer = layer if layer is None or isinstance(layer, str) else whole_argument(layer, "factorise(layer=...)")
    with undisturbed(module):  # loaders draw from it too
        x = samples_argument(x, "factorise(module, x): x", module)
        return _factorised(module, x, rank, layer=layer, heldout=heldout)


def _factorised(
    module: nn.Module, x: Tensor, rank: int | None, *, layer: int | str | None, heldout: Tensor | None
) -> Factorisation[FullyConnected] | Factorisation[nn.Module]:
    if isinstance(module, ResidualStream) and not stream_departure(module):
        module = as_fully_connected(module)
    if not isinstance(module, FullyConnected) or departure(module, FullyConnected):
        found = cut_module(module, x, rank, layer=layer)
        return told_by_unseen_rows(
            found, module, x, heldout, lambda rows: cut_module(module, rows, found.rank, layer=found.layer)
        )
    if rank is None:
        rank = dimensions_of(module, x, module.dimensions[-1])
    own = cut_network(module, x, rank, layer=layer)
    return told_by_unseen_rows(
        own, module, x, heldout, lambda rows: cut_network(module, rows, own.rank, layer=own.layer)
    )


def cut_network(
    module: FullyConnected, x: Tensor, rank: int | None = None, *, layer: int | str | None = None
) -> Factorisation[FullyConnected]:
    """`factorise` of a network of ours by these rows alone: for those who hold rows out themselves."""
    if isinstance(layer, str):
        raise ValueError(
            f"factorise(layer={layer!r}): the layers of a FullyConnected have numbers, 1..{module.depth - 1}."
        )
    network = module.rewritten(*module.written_layers()).double().requires_grad_(False)
    if network.depth < 2 or (layer is not None and not 1 <= layer < network.depth):
        raise ValueError(f"factorise(layer={layer}): needs a hidden layer, 1..{network.depth - 1} in this network.")
    x = x.double()
    if x.ndim < 2 or len(x) < 2:
        raise ShapeError(f"factorise(module, x): needs at least 2 rows to find a subspace, got shape {tuple(x.shape)}.")
    with torch.no_grad():
        states = walk(network, x)
        layers = [layer] if layer is not None else list(range(1, network.depth))
        pairs = {l: partial(_cut, network, states[l - 1].preactivation, x, layer=l) for l in layers}
        if rank is None:
            widths = [states[l - 1].preactivation.shape[1] for l in layers]
            rank = fewest_coordinates([lambda k, l=l: pairs[l](rank=k).relative_error for l in layers], widths)
        cuts = [pairs[l](rank=rank) for l in layers]
    return min(cuts, key=lambda c: c.relative_error)


def gap_of(network: FullyConnected, x: Tensor) -> int:
    """Least gap rank over the hidden layers' centred pre-activations on `x` (*estimate*)."""
    with torch.no_grad():
        preactivations = [s.preactivation for s in walk(network, x)[:-1]]
    return min(int(spectral_gap_rank(torch.linalg.svdvals(z - z.mean(0)))) for z in preactivations)


def joined(encoder: FullyConnected, decoder: FullyConnected, *, dtype: torch.dtype = torch.float64) -> FullyConnected:
    """One network that computes decoder o encoder, whose layer of coordinates is linear."""
    pairs = zip(encoder.written_layers(), decoder.written_layers(), strict=True)
    weights, biases = ([t.to(dtype) for t in [*(a or []), *(b or [])]] for a, b in pairs)
    linear = [*encoder.linear, encoder.depth, *(l + encoder.depth for l in decoder.linear)]
    return FullyConnected.from_layers(
        weights, biases, negative_slope=encoder.negative_slope, linear=linear, dtype=dtype
    )


def _cut(network: FullyConnected, z: Tensor, x: Tensor, *, rank: int, layer: int) -> Factorisation[FullyConnected]:
    if not 0 <= rank <= z.shape[1]:
        raise ValueError(f"factorise(rank={rank}, layer={layer}): needs 0 <= rank <= the layer's width {z.shape[1]}.")
    mean = z.mean(0)
    basis = principal_axes(z - mean, rank)
    weights, biases = network.written_layers()
    biases = [w.new_zeros(len(w)) for w in weights] if biases is None else biases
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
