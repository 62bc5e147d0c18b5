"""Encoder layers of torch written out compute what they did, with masks too; what cannot be written out is known."""

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from foreign_modules import samples
from isthmus.networks.stage_kinds import InnerChain, Stage
from isthmus.networks.unfolded import UnfoldedAttention, UnfoldedEncoderLayer, refolded

DOUBLE = torch.float64


def layer(**settings: Any) -> nn.TransformerEncoderLayer:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.TransformerEncoderLayer(8, 2, 12, **settings).double().eval()


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_layer_written_out_computes_the_same(batch_first: bool, norm_first: bool) -> None:
    old = layer(batch_first=batch_first, norm_first=norm_first, activation="gelu")
    new, x = UnfoldedEncoderLayer(old), samples(5, 5, 8, dtype=DOUBLE)
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=DOUBLE)
    padding = torch.arange(5) >= torch.tensor([5, 4, 3, 2, 1])[:, None]
    for mask in (None, causal, causal < 0):
        for padded in (None, padding):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch would have both masks of one type
                wanted = old(x, src_mask=mask, src_key_padding_mask=padded)
            found = new(x, src_mask=mask, src_key_padding_mask=padded, is_causal=mask is not None)
            assert torch.allclose(found, wanted, atol=1e-12)


def test_what_cannot_be_written_out_is_known() -> None:
    assert UnfoldedEncoderLayer.unfolds(layer(activation=nn.SiLU()))
    assert not UnfoldedEncoderLayer.unfolds(layer(activation=functional.mish))
    assert not UnfoldedAttention.unfolds(nn.MultiheadAttention(8, 2, add_bias_kv=True))
    assert not UnfoldedAttention.unfolds(nn.MultiheadAttention(8, 2, kdim=4))
    without = nn.MultiheadAttention(8, 2, bias=False, batch_first=True).double().eval()
    x = samples(3, 4, 8, dtype=DOUBLE)
    assert torch.allclose(UnfoldedAttention(without)(x), without(x, x, x)[0], atol=1e-12)


@pytest.mark.parametrize("settings", [{"activation": nn.GELU()}, {"norm_first": True, "batch_first": True}])
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_written_out_is_put_together_again(bias: bool, settings: dict[str, Any]) -> None:
    old, x = layer(bias=bias, **settings), samples(5, 4, 8, dtype=DOUBLE)
    new = refolded(nn.Sequential(UnfoldedEncoderLayer(old))).get_submodule("0")
    assert isinstance(new, nn.TransformerEncoderLayer)
    assert torch.allclose(new(x), old(x), atol=1e-12)
    assert new.state_dict().keys() == old.state_dict().keys()


def test_narrower_inside_it_is_put_together_and_in_two_factors_it_stays() -> None:
    old = layer()
    narrow, split, gone = (UnfoldedEncoderLayer(old) for _ in range(3))
    narrow.feed = InnerChain([Stage("", nn.Linear(8, 5)), Stage("", nn.ReLU()), Stage("", nn.Linear(5, 8))]).double()
    split.self_attn.set_submodule("query", nn.Sequential(nn.Linear(8, 2, bias=False), nn.Linear(2, 8)).double())
    gone.feed = InnerChain([])
    found = narrow.folded()
    assert found is not None
    assert found.linear1.out_features == 5
    x = samples(5, 4, 8, dtype=DOUBLE)
    assert torch.allclose(found(x), narrow(x), atol=1e-12)
    assert split.folded() is None
    assert gone.folded() is None
