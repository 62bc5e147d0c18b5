"""Inputs by name: masks keep padding out of the statistics, labels are no input, and a loss is no answer."""

from collections import OrderedDict, UserDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn

import isthmus
from foreign_modules import samples
from isthmus.errors import DataError

DOUBLE = torch.float64
SPECTRA = ("preactivation_singular_values", "activation_singular_values", "nonlinearity_impact", "rows")


class ByToken(nn.Module):
    """The same layers for every token; flat: tokens of all samples as one axis, as GPT-2 multiplies."""

    def __init__(self, *, flat: bool) -> None:
        super().__init__()
        self.flat = flat
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.layers = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 3)).double()

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.layers(x.flatten(0, 1)).unflatten(0, x.shape[:2]) if self.flat else self.layers(x)


class Encoder(nn.Module):
    """An encoder of torch with a mask that marks padding; inside, tokens come before samples."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True).double()

    def forward(self, x: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        return self.layer(x, src_key_padding_mask=src_key_padding_mask)


class Answer(NamedTuple):
    loss: Tensor
    logits: Tensor


class WithLoss(nn.Module):
    """Gives a loss before its answer, as modules of transformers do that are given labels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Answer | Tensor:
        out = self.layer(x)
        return Answer(out.square().mean(), out) if labels is None else out.sum()


def assert_same(found: xr.Dataset, wanted: xr.Dataset, *, lost: float = 0.0) -> None:
    """Equal spectra, but for values that are both below `lost`, as those are that squares lose.

    The sign that rounding gives the square of a value that is 0 decides whether it comes out as 0 or as 1e-8, and that
    hangs on the processor.
    """
    for name in SPECTRA:
        one, other = (np.where(table[name] < lost, 0.0, table[name]) for table in (found, wanted))
        assert np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True), name


def real(n: int, tokens: int) -> Tensor:
    """A mask with 1 to all tokens of each sample."""
    lengths = torch.arange(n) % tokens + 1
    return torch.arange(tokens) < lengths[:, None]


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("jacobians", [False, None])
def test_padding_is_left_out_of_the_statistics(flat: bool, jacobians: bool | None) -> None:
    x, mask = samples(30, 5, 4, dtype=DOUBLE), real(30, 5)
    x[~mask] = 50.0
    found = isthmus.diagnose(ByToken(flat=flat), {"x": x, "attention_mask": mask.long()}, jacobians=jacobians).layers
    alone = isthmus.diagnose(ByToken(flat=flat).layers, x[mask], jacobians=False).layers
    assert_same(found.isel(component=slice(0, 9)), alone)


def test_a_mask_of_padding_reaches_layers_that_see_tokens_first() -> None:
    x, mask = samples(30, 5, 4, dtype=DOUBLE), real(30, 5)
    tables: list[xr.Dataset] = []
    for filling in (0.0, 20.0):
        x[~mask] = filling
        found = isthmus.diagnose(Encoder(), {"x": x, "src_key_padding_mask": ~mask}, jacobians=False)
        tables.append(found.layers)
        assert found.layers["rows"].values.tolist() == [int(mask.sum())] * 6
        assert found.cuts is None or float(found.cuts["lost"].max()) < 1
    assert_same(*tables)


class Blocks(nn.Module):
    """Numbers of every token through two layers of attention that hide padding."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        self.batch_first = batch_first
        with torch.random.fork_rng():
            torch.manual_seed(0)
            layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=batch_first, dropout=0.0)
            self.layers, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(4, 5)

    def forward(self, x: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        """(n, tokens, 5)."""
        out = self.layers(x if self.batch_first else x.mT.movedim(2, 0), src_key_padding_mask=src_key_padding_mask)
        return self.head(out if self.batch_first else out.transpose(0, 1))


@pytest.mark.dear(1)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("lengths", ["the same", "several"])
def test_padding_moves_no_column_whatever_stands_in_it(batch_first: bool, lengths: str) -> None:
    """Jacobians, tangent kernels and costs of the stream had moved by up to a quarter."""
    mask = real(30, 6) if lengths == "several" else (torch.arange(6) < 4).expand(30, 6)
    first, second = (samples(30, 6, 4, dtype=DOUBLE).masked_fill(~mask[..., None], value) for value in (0.3, 20.0))
    tables: list[xr.Dataset] = []
    for x in (first, second):
        found = isthmus.diagnose(
            Blocks(batch_first=batch_first), {"x": x, "src_key_padding_mask": ~mask}, jacobians=True
        )
        tables.append(found.layers)
        assert found.rank.upper <= int(mask.any(0).sum()) * 4
    assert {"jacobian_singular_values", "tangent_kernel_trace", "cost_of_identity", "kinetic_energy"} <= {*tables[0]}
    for name in tables[0].data_vars:
        assert np.allclose(tables[0][name], tables[1][name], rtol=1e-7, atol=1e-9, equal_nan=True), name


def test_outputs_of_padding_are_none() -> None:
    x, mask = samples(30, 6, 4, dtype=DOUBLE), (torch.arange(6) < 4).expand(30, 6)
    found = isthmus.diagnose(ByToken(flat=False), {"x": x, "attention_mask": mask}, jacobians=False)
    assert (found.rank.upper, found.rank.upper_reason) == (4 * 3, "number of outputs")
    parts = iter([{"x": x[:, :3], "attention_mask": mask[:, :3]}, {"x": x, "attention_mask": mask}])
    assert isthmus.diagnose(ByToken(flat=False), parts).rank.upper == 4 * 3  # not that of the first batch


def test_labels_are_no_input_and_a_loss_is_no_answer() -> None:
    x = samples(30, 4)
    found = isthmus.diagnose(WithLoss(), {"x": x, "labels": torch.zeros(30)})
    assert found.rank.upper == 3


class Several(nn.Module):
    """Two answers in a tuple, and numbers of rows."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__()
        self.layer, self.other, self.alone = nn.Linear(4, 3), nn.Linear(4, 2), alone

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor] | Tensor:
        """(n, 3), and (n, 2)."""
        return self.layer(x) if self.alone else (self.layer(x), self.other(x))


@pytest.mark.parametrize("jacobians", [True, False])
def test_which_of_several_answers_is_read_is_said(jacobians: bool) -> None:
    x = samples(30, 4)
    said = isthmus.diagnose(Several(alone=False), x, jacobians=jacobians).warnings
    assert said[0].startswith("Several returns 2 tensors of numbers: the first, (3,) for every row, is read.")
    assert isthmus.diagnose(Several(alone=True), x, jacobians=jacobians).warnings == ()
    assert isthmus.diagnose(WithLoss(), x, jacobians=jacobians).warnings == ()  # a loss is no answer


class Causal(nn.Module):
    """An encoder that takes torch's own masks."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, dropout=0.0)
            self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).double()

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None) -> Tensor:
        """(n, tokens, 4)."""
        return self.layers(src, mask=mask, src_key_padding_mask=src_key_padding_mask)


class Built(nn.Module):
    """The same, that makes the mask of the future itself."""

    def __init__(self, inner: Causal) -> None:
        super().__init__()
        self.layers = inner.layers

    def forward(self, src: Tensor) -> Tensor:
        """(n, tokens, 4)."""
        mask = nn.Transformer.generate_square_subsequent_mask(src.shape[1], dtype=src.dtype)
        return self.layers(src, mask=mask)


@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("kind", [torch.bool, DOUBLE])
def test_a_mask_of_what_tokens_may_see_belongs_to_no_row(jacobians: bool, kind: torch.dtype) -> None:
    x = samples(30, 8, 4, dtype=DOUBLE)
    future = torch.ones(8, 8, dtype=torch.bool).triu(1)
    mask = future if kind is torch.bool else torch.zeros(8, 8, dtype=kind).masked_fill(future, -torch.inf)
    module = Causal()
    found = isthmus.diagnose(module, {"src": x, "mask": mask}, jacobians=jacobians)
    assert_same(found.layers, isthmus.diagnose(Built(module), x, jacobians=jacobians).layers)
    assert found.rank.upper == 8 * 4
    parts = iter([{"src": part, "mask": mask} for part in x.split(10)])
    assert_same(isthmus.diagnose(module, parts).layers, found.layers.isel(component=slice(0, 6)), lost=3e-8)


def test_padding_that_is_added_as_minus_infinity_is_padding() -> None:
    x, mask = samples(30, 6, 4, dtype=DOUBLE), real(30, 6)
    added = torch.zeros(30, 6, dtype=DOUBLE).masked_fill(~mask, -torch.inf)
    one, other = (
        isthmus.diagnose(Causal(), {"src": x, "src_key_padding_mask": m}, jacobians=True) for m in (~mask, added)
    )
    assert_same(one.layers, other.layers)
    assert other.layers["rows"].values.tolist() == [int(mask.sum())] * 6
    with pytest.raises(DataError, match="NaN or infinite"):
        isthmus.diagnose(Causal(), {"src": x, "src_key_padding_mask": added * torch.nan})


def test_a_diagnosis_on_another_device_leaves_the_module_where_it_is() -> None:
    module, x = WithLoss(), samples(30, 4)
    assert isthmus.diagnose(module, x, device="cpu").rank.upper == 3
    with pytest.raises(ValueError, match="needs cpu, cuda"):
        isthmus.diagnose(module, x, device="meta")
    assert next(module.parameters()).device.type == "cpu"


@pytest.mark.parametrize("kind", [dict, UserDict, MappingProxyType, OrderedDict])
def test_inputs_by_name_come_in_any_mapping(kind: Callable[[dict[str, Tensor]], Mapping[str, Tensor]]) -> None:
    """What tokenizers give is no dict."""
    module, x = ByToken(flat=False), samples(30, 5, 4, dtype=DOUBLE)
    given = {"x": x, "attention_mask": torch.ones(30, 5)}
    expected, found = isthmus.diagnose(module, given), isthmus.diagnose(module, kind(given))
    assert found.layers.identical(expected.layers)
    records = isthmus.Monitor(module, kind(given)).record(0)
    assert [layer.name for layer in records] == ["layers.0", "layers.2"]
