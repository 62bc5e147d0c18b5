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
from isthmus.diagnostics.attention_heads import UNTOLD, HeadWeights, heads_of
from isthmus.diagnostics.evaluation import record
from isthmus.diagnostics.samples import Samples
from isthmus.diagnostics.session import open_session
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


def heads_within(module: nn.Module, *x: Tensor) -> HeadWeights:
    """Those of a module that is one attention."""
    with open_session(module, Samples.of(x)) as session:
        replica, part = session.exact, Samples.of(tuple(t.to(torch.float64) for t in x))
        with torch.no_grad():
            found, untold = heads_of(
                module, session.structure.readings, lambda listener: record(replica, session.names, part, listener)
            )
    assert not untold
    [one] = found.values()
    return HeadWeights.of(*one)


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
    heads = heads_within(apart.double(), *(samples(9, 5, d, dtype=torch.float64) for d in (8, 6, 5)))
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


def packed_as(kind: str, z: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value (n, heads, tokens, size) of one product, in one of the orders of the field, or another."""
    n, tokens, width = z.shape[0], z.shape[1], z.shape[2] // 3
    size = width // heads
    if kind == "blocks":
        parts = z.view(n, tokens, 3, heads, size).permute(2, 0, 3, 1, 4).unbind(0)
    elif kind == "values first":
        parts = z.view(n, tokens, 3, heads, size).permute(2, 0, 3, 1, 4).roll(-1, 0).unbind(0)
    elif kind == "by head":
        parts = z.view(n, tokens, heads, 3 * size).transpose(1, 2).split(size, -1)
    elif kind == "by entry":
        parts = [part.transpose(1, 2) for part in z.view(n, tokens, heads, size, 3).unbind(-1)]
    else:  # entries of heads in turns
        parts = z.view(n, tokens, 3, size, heads).permute(2, 0, 4, 1, 3).unbind(0)
    query, key, value = parts
    return query, key, value


class Own(nn.Module):
    """An attention of one's own, under names that say nothing of how it packs, with a head of rank 2."""

    def __init__(self, kind: str, *, mixes: bool = True, tells: bool = True) -> None:
        super().__init__()
        self.kind, self.mixes = kind, mixes
        setattr(self, "num_heads" if tells else "n", 4)
        self.first, self.second = nn.Linear(16, 48), nn.Linear(16, 16)
        rows = torch.arange(48)[None, None].expand(1, 1, -1)
        self.rows = [part[0, :, 0] for part in packed_as(kind, rows, 4)]

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = packed_as(self.kind, self.first(x), 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value) if self.mixes else query * key * value
        if self.kind == "in turns":
            return self.second(mixed.permute(0, 2, 3, 1).flatten(2))
        return self.second(mixed.transpose(1, 2).flatten(2))


def own(kind: str, **how: bool) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(5, 16), Own(kind, **how), nn.Linear(16, 3)).double()
    attention = module[1]
    assert isinstance(attention, Own)
    query = attention.rows[0][1]
    with torch.no_grad():
        weak = attention.first.weight[query].clone()
        of_rank(weak, 2)
        attention.first.weight[query] = weak
    return module


@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("kind", ["blocks", "values first", "by head", "by entry"])
def test_heads_are_those_that_a_module_computes_with_whatever_it_is_called(kind: str, jacobians: bool) -> None:
    """Names are the same, and the rows of query, key and value stand in four orders."""
    module = own(kind)
    found = isthmus.diagnose(module, samples(30, 6, 5, dtype=torch.float64), jacobians=jacobians)
    row = found.layers["name"].values.tolist().index("1.second")
    assert found.layers["qk_rank"].values[row].tolist() == [4, 2, 4, 4]
    attention = module[1]
    assert isinstance(attention, Own)
    weight, out = attention.first.weight.detach(), attention.second.weight.detach()
    for head in range(4):
        query, key, value = (weight[rows[head]] for rows in attention.rows)
        for name, product in (("qk", query.T @ key), ("ov", out[:, 4 * head : 4 * head + 4] @ value)):
            wanted = torch.linalg.svdvals(product)[:4]
            assert np.allclose(found.layers[f"{name}_singular_values"].values[row, head], wanted, atol=1e-12)
    assert not found.skipped or all("heads" not in reason for _, reason in found.skipped)


@pytest.mark.parametrize(("kind", "mixes"), [("in turns", True), ("blocks", False)])
def test_no_heads_are_told_where_no_split_gives_what_a_module_computes(kind: str, mixes: bool) -> None:
    """Entries of heads in turns, and products by entries that mix no tokens, though the modules say: four heads."""
    for tells in (True, False):
        found = isthmus.diagnose(own(kind, mixes=mixes, tells=tells), samples(30, 6, 5, dtype=torch.float64))
        assert "qk_rank" not in found.layers
        assert (("1", UNTOLD) in found.skipped) is tells


class Gated(Attention):
    """Values of each token times a gate of that token alone, by head."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value, out = (self.get_submodule(name) for name in self.names)
        q, k, v = (part(x).unflatten(-1, (self.num_heads, -1)) for part in (query, key, value))
        return out((torch.sigmoid((q * k).mean(-1, keepdim=True)) * v).flatten(2))


class Additive(Attention):
    """Scores tanh(q + k), summed: query and key meet in no product."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value, out = (self.get_submodule(name) for name in self.names)
        q, k, v = (part(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (query, key, value))
        scores = torch.tanh(q[:, :, :, None] + k[:, :, None]).sum(-1)
        return out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("kind", [Gated, Additive])
def test_products_that_are_no_attention_by_query_and_key_have_no_heads(kind: type[Attention]) -> None:
    found = isthmus.diagnose(kind(("q", "k", "v", "o"), 2, 6), samples(20, 5, 12), jacobians=False)
    assert "qk_rank" not in found.layers
    assert UNTOLD in [reason for _, reason in found.skipped]


class Wary(Attention):
    """Takes no numbers that are large, and does not say what its number of heads is."""

    @property
    def head_dim(self) -> int:
        raise RuntimeError("not set up")

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.get_submodule(name)(x) for name in self.names[:3])
        if float(value.abs().max()) > 1:
            raise ValueError("too large")
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (query, key, value))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.get_submodule(self.names[3])(mixed.transpose(1, 2).flatten(2))


def test_an_attention_that_takes_no_other_numbers_hides_no_other_heads() -> None:
    names = ("q", "k", "v", "o")
    module = nn.Sequential(Wary(names, 2, 6), Attention(names, 2, 6))
    found = isthmus.diagnose(module, 0.1 * samples(20, 5, 12), jacobians=False)
    has_heads = np.isfinite(found.layers["qk_rank"].values).all(1)
    assert [*found.layers["name"].values[has_heads]] == ["1.o"]
    assert ("0", UNTOLD) in found.skipped


class Misnamed(Attention):
    """Computes with other heads than it says."""

    def __init__(self, said: int, heads: int) -> None:
        super().__init__(("q", "k", "v", "o"), heads, 12 // heads)
        self.num_heads, self.true_heads = said, torch.tensor(heads)

    def forward(self, x: Tensor) -> Tensor:
        said, self.num_heads = self.num_heads, int(self.true_heads)
        try:
            return super().forward(x)
        finally:
            self.num_heads = said


@pytest.mark.parametrize(("said", "heads", "tokens"), [(3, 2, 5), (4, 2, 5), (2, 4, 5), (2, 2, 1)])
def test_no_heads_are_told_of_a_wrong_number_nor_where_there_is_one_token(said: int, heads: int, tokens: int) -> None:
    found = isthmus.diagnose(Misnamed(said, heads), samples(20, tokens, 12), jacobians=False)
    assert "qk_rank" not in found.layers
    assert UNTOLD in [reason for _, reason in found.skipped]
    right = isthmus.diagnose(Attention(("a", "b", "c", "d"), 2, 6), samples(20, 5, 12), jacobians=False)
    assert right.layers["qk_rank"].values[-1].tolist() == [6, 6]  # the control


FAMILIES: dict[str, dict[str, Any]] = {
    "GPT2LMHead": {"n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 4},
    "GPTBigCode": {"n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 4},
    "GPTNeoX": {**SMALL},
    "Bloom": {"hidden_size": 16, "n_head": 4, "n_layer": 1},
    "Falcon": {**SMALL, "new_decoder_architecture": True, "num_kv_heads": 2},
    "Phi3": {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0},
    "Olmo2": {**SMALL, "num_key_value_heads": 2},
    "Gemma2": {**SMALL, "num_key_value_heads": 2, "head_dim": 8},
    "GptOss": {**SMALL, "num_key_value_heads": 2, "head_dim": 4, "num_local_experts": 2, "num_experts_per_tok": 1},
}


@needs_transformers
@pytest.mark.parametrize("family", FAMILIES)
def test_heads_of_the_families_of_transformers_are_found(family: str) -> None:
    """Packed in three orders, apart, with keys that heads share, gates of softmax, and norms over all heads."""
    import transformers as t

    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        of = getattr(t, f"{family.removesuffix('LMHead')}Config")(vocab_size=13, **FAMILIES[family])
        module = getattr(t, family + ("Model" if family.endswith("Head") else "ForCausalLM"))(of)
    tokens = torch.randint(0, 13, (12, 8), generator=torch.Generator().manual_seed(0))
    found = isthmus.diagnose(module.eval(), {"input_ids": tokens}, jacobians=False)
    assert found.layers.sizes["head"] == 4
    assert UNTOLD not in [reason for _, reason in found.skipped]


@needs_transformers
@pytest.mark.parametrize("kind", ["gpt2", "bigcode, many keys", "bigcode, one key"])
def test_the_heads_that_are_read_compute_what_the_attention_does(kind: str) -> None:
    """Names are the same, and the rows of query, key and value stand in three orders."""
    import transformers as t

    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        shape: dict[str, Any] = {"vocab_size": 13, "n_positions": 8, "n_embd": 12, "n_layer": 1, "n_head": 3}
        model: nn.Module = (
            t.GPT2LMHeadModel(t.GPT2Config(**shape)) if kind == "gpt2"
            else t.GPTBigCodeForCausalLM(t.GPTBigCodeConfig(**shape, multi_query=kind.endswith("one key")))
        )  # fmt: skip
    module, x = model.get_submodule("transformer.h.0.attn").eval(), samples(2, 5, 12)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.zero_() if name.endswith("bias") else parameter.normal_()
        wanted = module(x)[0]
    heads = heads_within(module, x)
    q, k, v = (torch.einsum("btd,hsd->bhts", x.double(), part) for part in (heads.query, heads.key, heads.value))
    mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    found = torch.einsum("bhts,hds->btd", mixed, heads.out)
    assert torch.allclose(found.float(), wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


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
