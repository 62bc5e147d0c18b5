"""Any module in two halves: exact at the rank of the layer, wrong below it, and refused where something passes by."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isthmus
from foreign_modules import Branching, Images, Residual, attention, nested, samples, seeded
from isthmus.discovery.chains.row_factor import row_factor
from isthmus.errors import DataError, DataWarning, ShapeError
from isthmus.networks import FullyConnected
from tolerances import rounding

RANK, DOUBLE = 3, torch.float64


def narrow(activation: type[nn.Module] = nn.GELU) -> nn.Sequential:
    """6-12-10-4 in a nested form, whose second matrix has rank `RANK`."""
    inner = nn.Sequential(nn.Linear(12, 10), activation(), nn.Dropout(0.5))
    module = nn.Sequential(nn.Linear(6, 12), activation(), inner, nn.Linear(10, 4)).to(DOUBLE)
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(samples(*parameter.shape, seed=i, dtype=DOUBLE) / parameter.shape[-1] ** 0.5)
        layer = inner[0]
        assert isinstance(layer, nn.Linear)
        u, s, vh = torch.linalg.svd(layer.weight, full_matrices=False)
        layer.weight.copy_(u[:, :RANK] * s[:RANK] @ vh[:RANK])
    return module.eval()


def relative_error(new: Tensor, old: Tensor) -> float:
    return float(torch.linalg.norm(new - old) / torch.linalg.norm(old - old.mean(dim=0)))


@pytest.mark.parametrize("layer", ["2.0", 2, None])
def test_exact_through_the_rank_of_a_layer_and_not_below(layer: str | int | None) -> None:
    module, x = narrow(), samples(80, 6, dtype=DOUBLE)
    halves = isthmus.factorise(module, x, RANK, layer=layer)
    with torch.no_grad():
        coordinates = halves.encoder(x)
        error = relative_error(halves.decoder(coordinates), module(x))
    assert halves.layer == "2.0"
    assert coordinates.shape == (80, RANK)
    assert halves.relative_error == pytest.approx(error, rel=1e-9, abs=rounding(size=80))
    assert halves.relative_error <= rounding(size=80, condition=10.0)
    assert isthmus.factorise(module, x, RANK - 1, layer="2.0").relative_error > 1e-3


class ByName(nn.Module):
    """Takes its input by name alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, *, x: Tensor) -> Tensor:
        return self.layer(x)


@pytest.mark.other_types
@pytest.mark.parametrize("x", [torch.ones(9, 3), {"x": torch.ones(9, 3)}])
def test_a_module_that_takes_its_input_by_name_is_refused_with_a_remedy(x: Any) -> None:
    for call in (isthmus.factorise, partial(isthmus.compress, tolerance=0.1)):
        with pytest.raises(DataError, match="ByName takes its inputs by name alone. Wrap it"):
            call(ByName(), x)


def test_coordinates_are_centred_decorrelated_and_ordered() -> None:
    module, x = narrow(), samples(80, 6, dtype=DOUBLE)
    with torch.no_grad():
        c = isthmus.factorise(module, x, RANK, layer="2.0").encoder(x)
    covariance = c.T @ c
    assert float(c.mean(0).abs().max()) <= rounding(size=80)
    off = covariance - torch.diag(covariance.diag())
    assert float(off.abs().max()) <= rounding(size=80, condition=float(covariance.max()))
    assert covariance.diag().tolist() == sorted(covariance.diag().tolist(), reverse=True)


def test_it_agrees_with_the_cut_of_our_own_networks() -> None:
    network = FullyConnected(6, 4, width=(9, 8, 7), depth=4, seed=5, dtype=DOUBLE)
    x = samples(60, 6, dtype=DOUBLE)
    layers: list[nn.Module] = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=DOUBLE)
        layer.weight, layer.bias = nn.Parameter(weight.detach().clone()), nn.Parameter(bias.detach().clone())
        layers += [layer, nn.ReLU()]
    for number in (1, 2, 3):
        own = isthmus.factorise(network, x, 2, layer=number)
        other = isthmus.factorise(nn.Sequential(*layers[:-1]), x, 2, layer=number)
        assert other.relative_error == pytest.approx(own.relative_error, rel=1e-9)
        with torch.no_grad():
            assert torch.allclose(own.encoder(x), other.encoder(x), rtol=1e-9, atol=1e-9)


def test_images_and_tokens_are_cut_in_their_own_type() -> None:
    images = isthmus.factorise(seeded(Images), samples(80, 1, 8, 8), layer="fc1")
    assert images.relative_error < 1e-4
    with pytest.warns(DataWarning, match="20 numbers pass for each sample, and 20 go in: that is no narrowing"):
        tokens = isthmus.factorise(seeded(attention), samples(30, 4, 5), 5, layer="0")
    with torch.no_grad():
        assert tokens.encoder(samples(30, 4, 5)).shape == (30, 4, 5)
    assert tokens.relative_error < 1e-5
    assert {p.dtype for p in [*images.encoder.parameters(), *tokens.decoder.parameters()]} == {torch.float32}


@pytest.mark.parametrize(
    ("module", "x", "rank", "layer", "error", "message"),
    [
        (seeded(Residual), samples(20, 5), 2, "blocks.0.first", ValueError, "'blocks.0' has a skip connection"),
        (seeded(attention), samples(20, 4, 5), 2, "1.layers.0.linear1", ValueError, "'1' has .*attention"),
        (seeded(Residual), samples(20, 5), 2, "leave", ValueError, "it is the output"),
        (seeded(Residual), samples(20, 5), 2, "gone", ValueError, "no linear layer of this name.*1 'enter'"),
        (seeded(Residual), samples(20, 5), 2, 2, ValueError, "no such layer"),
        (seeded(Branching), samples(20, 5), 2, None, ValueError, "cannot be taken apart"),
        (nn.Linear(5, 2), samples(20, 5), 1, None, ValueError, "needs a hidden linear layer"),
        (seeded(Residual), samples(20, 5), 9, "enter", ValueError, "needs 1 <= rank <= the layer's width 8"),
        (seeded(Residual), samples(1, 5), 1, None, ShapeError, "at least 2 samples"),
        (seeded(Residual), samples(20, 4), 1, None, DataError, "running Residual on x of shape"),
    ],
)
def test_what_cannot_be_cut_is_refused(  # noqa: PLR0913
    module: nn.Module, x: Tensor, rank: int, layer: str | int | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        isthmus.factorise(module, x, rank, layer=layer)


def test_the_factor_of_rows_is_that_of_all_of_them_at_once() -> None:
    rows = samples(50, 4, dtype=DOUBLE) + 7
    found = row_factor(rows.split(13))
    centred = rows - rows.mean(0)
    assert found.count == 50
    assert torch.allclose(found.mean, rows.mean(0), atol=rounding(size=50))
    assert torch.allclose(found.centred.T @ found.centred, centred.T @ centred, atol=rounding(size=50, condition=50.0))
    assert torch.allclose(found.raw.T @ found.raw, rows.T @ rows, atol=rounding(size=50, condition=5000.0))


@pytest.mark.other_types
@pytest.mark.parametrize("arguments", [{"rank": 2.0}, {"rank": "2"}, {"layer": 1.0}, {"layer": [1]}, {"rank": [1]}])
def test_numbers_that_are_not_whole_are_refused_in_words(arguments: dict[str, Any]) -> None:
    x = samples(40, 5)
    for module in (seeded(nested), FullyConnected(5, 2, width=6, depth=3, seed=0)):
        with pytest.raises(ValueError, match=r"factorise\((rank|layer)=\.\.\.\): needs a whole number"):
            isthmus.factorise(module, x, **arguments)
    assert isthmus.factorise(seeded(nested), x, np.int32(2), layer=np.int64(1)).rank == 2  # pyright: ignore[reportCallIssue, reportArgumentType]


class Remembering(nn.Module):
    """Makes a table at its first call, as rotary embeddings and masks do."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.first, self.last = kind, nn.Linear(6, 12), nn.Linear(12, 4)
        self.table: Tensor | None = None
        self.tables: dict[int, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x))
        table = self.tables.get(12) if self.kind == "a dict" else self.table
        known = table is not None and (
            (self.kind != "dtype" or table.dtype == hidden.dtype)
            and (self.kind != "shape" or table.shape[-1] >= hidden.shape[-1])
            and (self.kind != "device" or table.device == hidden.device)
            and (self.kind != "a dict" or bool(table[0] == 1))
        )
        if not known:
            table = torch.cos(torch.arange(12, dtype=hidden.dtype, device=hidden.device))
            self.table = self.tables[12] = table
        assert table is not None
        return self.last(hidden * table)


@pytest.mark.parametrize("kind", ["once", "dtype", "shape", "device", "a dict"])
def test_a_module_that_remembers_its_calls_is_cut_as_one_that_was_called(kind: str) -> None:
    """What it kept while it was traced was read by the next call: an error of the tracer."""
    cold, warm = (seeded(lambda: Remembering(kind)) for _ in range(2))
    x = samples(100, 6)
    warm(x[:3])
    found, wanted = (isthmus.factorise(module, x, 2) for module in (cold, warm))
    assert (found.layer, found.relative_error) == (wanted.layer, wanted.relative_error)
    assert cold.table is None
    assert cold.tables == {}
