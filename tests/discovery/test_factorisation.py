"""Cutting a network in two halves: exact where the middle has the rank, and its error in closed form where not."""

import pytest
import torch
from torch import nn

from isthmus.discovery.factorisation import Factorisation, factorise, gap_of, joined
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from isthmus.networks.folding import merge_linear_runs
from tolerances import rounding

RANK, D_IN, D_OUT, NUM_SAMPLES = 3, 6, 4, 50


def samples(d: int = D_IN) -> torch.Tensor:
    return torch.randn(NUM_SAMPLES, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def through_rank(*, slope: float = 0.0, bias: bool = True) -> FullyConnected:
    """ReLU, linear, linear, ReLU layers; the matrix between the first two has rank `RANK`, singular values 1."""
    network = FullyConnected(
        D_IN, D_OUT, width=(10, 8, 8, 10), depth=5, linear=(2, 3), negative_slope=slope, bias=bias, seed=1,
        dtype=torch.float64,
    )  # fmt: skip
    with torch.no_grad():
        u, _, vh = torch.linalg.svd(network.weights[1])
        network.weights[1].copy_(u[:, :RANK] @ vh[:RANK])
        for l, b in enumerate(network.biases):
            b.copy_(torch.linspace(-0.5, 0.5, len(b), dtype=torch.float64) * (l + 1))
    return network


def isometric() -> tuple[FullyConnected, torch.Tensor]:
    """x -> Q (A x + b) with Q orthogonal, and the singular values of the centred A x + b on the samples."""
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((5, D_IN), (5,)))
    q = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64)).Q
    z = samples() @ a.T + b
    network = FullyConnected.from_layers([a, q], [b, torch.zeros(5, dtype=torch.float64)], linear=[1])
    return network, torch.linalg.svdvals(z - z.mean(0))


def apply(halves: Factorisation, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return halves.decoder(halves.encoder(x))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("slope", [0.0, 0.3, -0.4])
@pytest.mark.parametrize("layer", [2, 3])
def test_exact_through_the_rank_of_the_middle_and_not_below(layer: int, slope: float, bias: bool) -> None:
    network, x = through_rank(slope=slope, bias=bias), samples()
    halves = factorise(network, x, RANK, layer=layer)
    allowed = rounding(size=40, condition=float(network(x).detach().abs().max()) + 1)
    assert halves.relative_error <= allowed
    assert float((apply(halves, x) - network(x)).detach().abs().max()) <= allowed
    assert halves.encoder.dimensions[-1] == halves.decoder.dimensions[0] == halves.rank == RANK
    assert halves.layer == layer
    assert factorise(network, x, RANK - 1, layer=layer).relative_error > 1e6 * allowed


def test_off_the_data_it_is_exact_too_where_the_layer_is_linear() -> None:
    network, x = through_rank(), samples()
    elsewhere = 3 * samples().flip(0) + 1
    gap = apply(factorise(network, x, RANK, layer=2), elsewhere) - network(elsewhere).detach()
    assert float(gap.abs().max()) <= rounding(size=40, condition=float(network(elsewhere).detach().abs().max()) + 1)


def test_without_a_rank_the_gap_of_the_narrowest_layer_is_taken() -> None:
    network, x = through_rank(), samples()
    halves = factorise(network, x)
    assert halves.rank == gap_of(network, x) == RANK
    assert halves.layer in {2, 3, 4}, "all three are exact, and rounding decides between them"
    assert halves.relative_error <= rounding(size=40, condition=10.0)


@pytest.mark.parametrize("rank", range(6))
def test_the_error_is_what_is_left_of_the_spectrum(rank: int) -> None:
    network, s = isometric()
    error = factorise(network, samples(), rank, layer=1).relative_error
    exact = float(s[rank:].norm() / s.norm())
    assert error == pytest.approx(exact, rel=rounding(size=100), abs=rounding(size=100))
    if rank < 4:
        assert error != pytest.approx(float(s[rank + 1 :].norm() / s.norm()), rel=1e-3)


def test_coordinates_are_centred_decorrelated_ordered_and_sign_fixed() -> None:
    network, s = isometric()
    halves = factorise(network, samples(), 4, layer=1)
    with torch.no_grad():
        c = halves.encoder(samples())
    covariance = c.T @ c
    allowed = rounding(size=NUM_SAMPLES, condition=float(s[0]) ** 2)
    assert float(c.mean(0).abs().max()) <= allowed
    assert float((covariance - torch.diag(s[:4] ** 2)).abs().max()) <= allowed
    axes = halves.decoder.weights[0].detach()
    assert (axes.gather(0, axes.abs().argmax(0, keepdim=True)) > 0).all()
    rotation = torch.linalg.qr(samples(4)[:4]).Q
    assert float(((c @ rotation).T @ (c @ rotation) - torch.diag(s[:4] ** 2)).abs().max()) > 1e6 * allowed


def test_fewer_samples_than_coordinates_still_give_a_basis() -> None:
    network, _ = isometric()
    halves = factorise(network, samples()[:3], 5, layer=1)
    axes = halves.decoder.weights[0].detach()
    assert float((axes.T @ axes - torch.eye(5, dtype=torch.float64)).abs().max()) <= rounding(size=25)
    assert halves.relative_error <= rounding(size=100)


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("layer", [1, 2, 3, 4])
def test_joined_computes_decoder_after_encoder(layer: int, slope: float) -> None:
    network, x = through_rank(slope=slope), samples()
    halves = factorise(network, x, 2, layer=layer)
    one = joined(halves.encoder, halves.decoder)
    assert one.depth == network.depth + 1
    assert one.dimensions[layer] == 2
    with torch.no_grad():
        assert torch.equal(one(x), apply(halves, x))
    assert joined(halves.encoder, halves.decoder, dtype=torch.float32).weights[0].dtype == torch.float32
    nonlinear = one.rewritten(*one.written_layers(), linear=one.linear - {layer})
    with torch.no_grad():
        assert not torch.equal(nonlinear(x), apply(halves, x)), "the coordinates pass no activation"


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("linear", [(), (1,), (2, 3), (1, 2, 4), (1, 2, 3, 4)])
def test_merging_linear_runs_keeps_the_function(linear: tuple[int, ...], bias: bool) -> None:
    network = FullyConnected(
        D_IN, D_OUT, width=(7, 5, 9, 6), depth=5, linear=linear, negative_slope=0.2, bias=bias, seed=3,
        dtype=torch.float64,
    )  # fmt: skip
    with torch.no_grad():
        for b in network.biases:
            b.copy_(torch.linspace(-1, 1, len(b), dtype=torch.float64))
        merged, x = merge_linear_runs(network), samples()
        expected = network(x)
        assert merged.depth == network.depth - len(linear)
        assert merged.linear == frozenset()
        assert float((merged(x) - expected).abs().max()) <= rounding(size=50, condition=float(expected.abs().max()) + 1)
        activated = network.rewritten(*network.written_layers(), linear=())
        if linear:
            assert float((activated(x) - expected).abs().max()) > 1e-3


def test_the_network_is_left_as_it_was() -> None:
    network = through_rank()
    before = [p.detach().clone() for p in network.parameters()]
    factorise(network, samples(), 2)
    assert all(torch.equal(p, q) for p, q in zip(network.parameters(), before, strict=True))


@pytest.mark.parametrize(
    ("module", "x", "rank", "layer", "error", "message"),
    [
        (through_rank(), samples(), 1, "layer 2", ValueError, r"have numbers, 1\.\.4"),
        (through_rank(), samples(), 1, 0, ValueError, r"a hidden layer, 1\.\.4"),
        (through_rank(), samples(), 1, 5, ValueError, r"a hidden layer, 1\.\.4"),
        (FullyConnected(D_IN, 2, width=1, depth=1, seed=0), samples(), 1, None, ValueError, "needs a hidden layer"),
        (through_rank(), samples(), 9, 2, ValueError, "the layer's width 8"),
        (through_rank(), samples(), -1, 2, ValueError, "needs 0 <= rank"),
        (through_rank(), samples()[:1], 1, None, ShapeError, "at least 2 rows"),
        (through_rank(), samples(5), 1, None, ShapeError, r"shape \(n, 6\)"),
    ],
    ids=["name", "layer-0", "layer-L", "depth-1", "rank-above", "rank-below", "one-row", "features"],
)
def test_bad_input_is_refused(  # noqa: PLR0913
    module: nn.Module, x: torch.Tensor, rank: int, layer: int | str | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        factorise(module, x, rank, layer=layer)
