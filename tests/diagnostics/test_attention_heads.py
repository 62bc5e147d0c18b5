"""Heads of attention: found in the modules of torch and of transformers by their own names, planted ranks read."""

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isthmus
from foreign_modules import samples
from isthmus.diagnostics.attention_heads import heads_of
from isthmus.reports import report
from isthmus.reports.tables import block_table, head_table

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None
needs_transformers = pytest.mark.skipif(not HAS_TRANSFORMERS, reason="transformers is not installed")
SMALL: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 16, "intermediate_size": 24}
NAMES = {
    "gpt2": "transformer.h.{}.attn.c_proj",
    "bert": "encoder.layer.{}.attention.output.dense",
    "vit": "vit.layers.{}.attention.o_proj",
    "llama": "model.layers.{}.self_attn.o_proj",
}


class Attention(nn.Module):
    """Self-attention with a layer for each part, by any names, as timm, transformers and diffusers have it."""

    def __init__(self, names: tuple[str, str, str, str], heads: int, size: int) -> None:
        super().__init__()
        self.names, self.num_heads = names, heads
        for name in names:
            self.add_module(name, nn.Linear(heads * size, heads * size))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value, out = (self.get_submodule(name) for name in self.names)
        q, k, v = (part(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (query, key, value))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return out(mixed.transpose(1, 2).flatten(2))


def foreign(kind: str) -> nn.Module:
    """A small network of transformers, random."""
    import transformers as t

    make: dict[str, Callable[[], nn.Module]] = {
        "gpt2": lambda: t.GPT2LMHeadModel(
            t.GPT2Config(n_layer=2, n_embd=16, n_head=4, vocab_size=13, n_positions=8, bos_token_id=0, eos_token_id=0)
        ),
        "bert": lambda: t.BertModel(t.BertConfig(**SMALL, vocab_size=13, max_position_embeddings=8)),
        "vit": lambda: t.ViTForImageClassification(
            t.ViTConfig(**SMALL, image_size=8, patch_size=4, num_channels=1)
        ),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**SMALL, num_key_value_heads=2, vocab_size=13)),
    }  # fmt: skip
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return make[kind]().eval()


def of_rank(weight: Tensor, rank: int) -> None:
    """Make a part of a weight one of this rank, in place."""
    with torch.no_grad():
        u, s, vh = torch.linalg.svd(weight, full_matrices=False)
        weight.copy_(u[:, :rank] * s[:rank] @ vh[:rank])


@needs_transformers
@pytest.mark.parametrize("kind", NAMES)
def test_heads_of_transformers_stand_in_the_row_of_their_projection(kind: str) -> None:
    module = foreign(kind)
    tokens = torch.randint(0, 13, (12, 8), generator=torch.Generator().manual_seed(0))
    data = {"pixel_values": samples(12, 1, 8, 8)} if kind == "vit" else {"input_ids": tokens}
    table = isthmus.diagnose(module, data, jacobians=False).layers
    rows = table["name"].values.tolist()
    has_heads = [row for row, ranks in zip(rows, table["qk_rank"].values, strict=True) if np.isfinite(ranks).all()]
    assert has_heads == [NAMES[kind].format(i) for i in range(2)]
    assert table.sizes["head"] == 4
    assert table["qk_rank"].sel(layer=rows.index(has_heads[0]) + 1).values.tolist() == [4.0] * 4
    assert table["within"].values[rows.index(has_heads[1])] == NAMES[kind].partition("{}")[0] + "1"


@needs_transformers
def test_planted_ranks_of_single_heads_are_read_exactly() -> None:
    module = foreign("gpt2")
    attention = module.get_submodule("transformer.h.1.attn")
    packed, out = attention.get_parameter("c_attn.weight"), attention.get_parameter("c_proj.weight")
    of_rank(packed[:, 4:8], 2)  # query of head 2: (d, 3 d), and heads are columns
    of_rank(packed[:, 16 + 8 : 16 + 12], 1)  # key of head 3
    of_rank(out[12:16], 3)  # output of head 4: rows are heads
    tokens = torch.randint(0, 13, (12, 8), generator=torch.Generator().manual_seed(0))
    table = isthmus.diagnose(module, tokens, jacobians=False).layers
    place = table["name"].values.tolist().index("transformer.h.1.attn.c_proj")
    assert table["qk_rank"].values[place].tolist() == [4, 2, 1, 4]
    assert table["ov_rank"].values[place].tolist() == [4, 4, 4, 3]


def test_an_encoder_of_torch_has_heads_packed_and_apart() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        packed = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        apart = nn.MultiheadAttention(8, 2, kdim=6, vdim=5, batch_first=True)
    of_rank(packed.self_attn.in_proj_weight[8:12], 2)
    found = isthmus.diagnose(packed.eval(), samples(20, 5, 8)).layers
    place = found["name"].values.tolist().index("self_attn.out_proj")
    assert found["qk_rank"].values[place].tolist() == [2, 4]
    assert found["ov_rank"].values[place].tolist() == [4, 4]
    [heads] = heads_of(apart).values()
    assert (tuple(heads.key.shape), tuple(heads.value.shape)) == ((2, 4, 6), (2, 4, 5))


@pytest.mark.parametrize(
    "names", [("q_proj", "k_proj", "v_proj", "out_proj"), ("q_lin", "k_lin", "v_lin", "out_lin"), ("q", "k", "v", "o")]
)
def test_spectra_are_those_of_the_products(names: tuple[str, str, str, str]) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Attention(names, 2, 3).double()
    found = isthmus.diagnose(module, samples(20, 5, 6, dtype=torch.float64)).layers
    query, key, value, out = (module.get_parameter(f"{name}.weight").detach() for name in names)
    row = found["name"].values.tolist().index(names[3])
    for head, part in enumerate((slice(0, 3), slice(3, 6))):
        pairs = {"qk": query[part].T @ key[part], "ov": out[:, part] @ value[part]}
        nuclear = 0.0
        for name, product in pairs.items():
            wanted = torch.linalg.svdvals(product)[:3]
            assert np.allclose(found[f"{name}_singular_values"].values[row, head], wanted, rtol=1e-12, atol=1e-13)
            nuclear += float(wanted.sum())
        squares = sum(float(m.square().sum()) for m in (query[part], key[part], value[part], out[:, part])) / 2
        assert np.isclose(found["balance_gap"].values[row, head], squares - nuclear)
        assert np.isclose(found["balance_gap_share"].values[row, head], 1 - nuclear / squares)


def attention_of(kind: str) -> nn.Module:
    """An attention of transformers that packs query, key and value in a way of its own, causal, without biases."""
    import transformers as t

    many = kind.endswith("many keys")
    if kind.startswith("bigcode"):
        of = t.GPTBigCodeConfig(vocab_size=13, n_positions=8, n_embd=12, n_layer=1, n_head=3, multi_query=not many)
        model: nn.Module = t.GPTBigCodeForCausalLM(of)
    else:
        model = t.GPT2LMHeadModel(t.GPT2Config(vocab_size=13, n_positions=8, n_embd=12, n_layer=1, n_head=3))
    found = model.get_submodule("transformer.h.0.attn").eval()
    with torch.no_grad():
        for name, parameter in found.named_parameters():
            parameter.zero_() if name.endswith("bias") else parameter.normal_()
    return found


@needs_transformers
@pytest.mark.parametrize("kind", ["gpt2", "bigcode, many keys", "bigcode, one key"])
def test_the_heads_that_are_read_compute_what_the_attention_does(kind: str) -> None:
    """Names are the same, and the rows of query, key and value stand in three orders."""
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        module, x = attention_of(kind), samples(2, 5, 12)
        [heads] = heads_of(module).values()
        with torch.no_grad():
            wanted = module(x)[0]
    q, k, v = (torch.einsum("btd,hsd->bhts", x, part) for part in (heads.query, heads.key, heads.value))
    mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    found = torch.einsum("bhts,hds->btd", mixed, heads.out)
    assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


@needs_transformers
@pytest.mark.parametrize("way", [{"multi_query": True}, {"multi_query": False}, {"new_decoder_architecture": True}])
def test_heads_of_falcon_are_those_that_it_takes_apart_itself(way: dict[str, Any]) -> None:
    """Its rotations by position are left out, so its own splitting is asked; groups that share a key are not read."""
    import transformers as t

    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        options: dict[str, Any] = {"new_decoder_architecture": False, "num_kv_heads": 3, "bias": False, **way}
        shape: dict[str, Any] = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 1}
        of = t.FalconConfig(vocab_size=13, **shape, **options)
        module: Any = t.FalconForCausalLM(of).get_submodule("transformer.h.0.self_attention").eval()
    found = heads_of(module)
    if "new_decoder_architecture" in way:
        assert found == {}
        return
    [heads] = found.values()
    rows = module.query_key_value.weight.detach().mT[None]  # what each input gives: (1, d, features)
    parts = zip(module._split_heads(rows), (heads.query, heads.key, heads.value), strict=True)
    assert all(torch.equal(own[0].permute(1, 2, 0).expand(3, -1, -1), part) for own, part in parts)


def test_what_is_no_attention_or_does_not_fit_has_no_heads() -> None:
    odd = Attention(("q", "k", "v", "o"), 2, 3)
    odd.num_heads = 4  # of six features
    assert heads_of(odd) == {}
    assert heads_of(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))) == {}


@pytest.mark.slow
def test_blocks_and_heads_have_tables_of_their_own(tmp_path: Path) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    found = isthmus.diagnose(module, samples(20, 5, 8), jacobians=False)
    blocks, heads = block_table(found), head_table(found)
    assert blocks is not None
    assert heads is not None
    assert [row[:2] for row in blocks.rows] == [("layers.0", "6"), ("layers.1", "6")]
    assert [row[:2] for row in heads.rows] == [
        (f"layers.{i}.self_attn.out_proj", f"{h}") for i in (0, 1) for h in (1, 2)
    ]
    page = tmp_path / "page.html"
    report(found, page)
    text = page.read_text()
    assert "Heads of attention" in text
    assert "What the layers of every block range over" in text
    plain = isthmus.diagnose(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)), samples(20, 3))
    assert block_table(plain) is head_table(plain) is None
