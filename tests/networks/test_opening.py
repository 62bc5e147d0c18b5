"""Modules that are no chains: their parts become chains in their places, and compute the same."""

import importlib.util
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import isthmus
from foreign_modules import ImageBlock, attention, samples, seeded
from isthmus.networks.chain import as_module, read_chain, run
from isthmus.networks.opening import movable_parameters, opened, whole
from isthmus.networks.stage_kinds import inner_chains

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


class Gated(nn.Module):
    """A gate beside its value, and a forward that depends on the numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(6, 6) for _ in range(3))
        self.feed = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 6))
        self.tied = nn.Linear(6, 6)
        self.tied.weight = self.down.weight

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(torch.sigmoid(self.gate(x)) * self.up(x)) if x.sum() < 1e9 else x
        return self.tied(self.feed(x))


class Called(nn.Module):
    """A part that is called twice, one with two arguments, one that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.twice, self.never, self.two = nn.Linear(6, 6), nn.Linear(6, 6), nn.Bilinear(6, 6, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.twice(self.twice(x))
        return self.two(x, x) if x.sum() < 1e9 else x


def test_parts_of_a_module_become_chains_in_their_places() -> None:
    module, x = seeded(Gated), samples(12, 6)
    [stage] = whole(module, x, "why")
    chains = inner_chains(stage)
    assert {path: [s.name for s in steps] for path, steps in chains.items()} == {
        "inner.gate": ["gate"], "inner.up": ["up"], "inner.feed": ["feed.0", "feed.1", "feed.2"],
    }  # fmt: skip
    assert stage.reason == "why"
    assert movable_parameters([stage]) == 2 * 42 + 9 * 7 + 6 * 10
    with torch.no_grad():
        assert torch.allclose(run([stage], x), module(x), atol=1e-6)
        assert type(as_module([stage])) is Gated
    for parameter in as_module([stage]).parameters():
        parameter.data.zero_()
    assert all(bool(p.any()) for p in module.parameters())


def test_what_is_called_twice_or_with_more_than_a_tensor_stays() -> None:
    [stage] = whole(seeded(Called), samples(12, 6), "why")
    assert not inner_chains(stage)


def test_encoders_and_shortcuts_of_a_chain_are_opened() -> None:
    module, x = seeded(attention), samples(12, 4, 5)
    found = opened(read_chain(module, x), x)
    names = [s.name for stage in found for steps in inner_chains(stage).values() for s in steps]
    prefix = "1.layers.0."
    assert names == [
        *(f"{prefix}self_attn.{part}" for part in ("query", "key", "value", "out")),
        *(f"{prefix}feed.{i}" for i in range(3)),
    ]  # fmt: skip
    with torch.no_grad():
        assert torch.allclose(run(found, x), module(x), atol=1e-6)
    block, images = seeded(lambda: ImageBlock(4, 6)), samples(9, 4, 6, 6)
    found = opened(read_chain(block, images), images)
    assert movable_parameters(found) == sum(
        p.numel() for m in block.modules() if isinstance(m, nn.Conv2d) for p in m.parameters()
    )


@needs_transformers
def test_gpt2_is_opened_by_its_own_names() -> None:
    import transformers as t

    settings: dict[str, Any] = {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 13, "n_positions": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = seeded(lambda: t.GPT2LMHeadModel(t.GPT2Config(**settings, bos_token_id=0, eos_token_id=0)))
    tokens = torch.randint(0, 13, (12, 8), generator=torch.Generator().manual_seed(0))
    [stage] = whole(module, tokens, "why")
    assert [s.name for steps in inner_chains(stage).values() for s in steps] == [
        f"transformer.h.0.{part}"
        for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.act", "mlp.c_proj")
    ]  # fmt: skip
    with torch.no_grad():
        assert torch.allclose(run([stage], tokens), module(tokens).logits, atol=1e-5)
        assert torch.allclose(as_module([stage])(tokens).logits, module(tokens).logits, atol=1e-5)


@needs_transformers
def test_vit_is_opened_though_it_reads_the_type_of_its_first_weight() -> None:
    import transformers as t

    settings: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes: dict[str, Any] = {
        "intermediate_size": 16,
        "image_size": 4,
        "patch_size": 2,
        "num_channels": 1,
        "num_labels": 3,
    }
    module = seeded(lambda: t.ViTForImageClassification(t.ViTConfig(**settings, **sizes)))
    images = torch.randn(12, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    [stage] = whole(module, images, "why")
    names = [step.name for steps in inner_chains(stage).values() for step in steps]
    assert "vit.embeddings.patch_embeddings.projection" in names
    with torch.no_grad():
        assert torch.allclose(run([stage], images), module(images).logits, atol=1e-5)


class Owning(nn.Module):
    """Reads more off its layers than what they compute, as models of transformers read the type of a weight."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(10, 16), nn.Linear(16, 4)
        vars(self.first)["scale"] = 2.0
        with torch.no_grad():
            self.second.weight[1:] = self.second.weight[:1]  # of rank 1

    def forward(self, x: Tensor) -> Tensor:
        """(n, 4); nobody traces or exports it."""
        if float(x.sum()) > 1e9:
            return x
        x = torch.relu(self.first(x.to(self.second.weight.dtype)))
        scale: Any = self.first.scale
        return self.second(x * scale)


def test_a_part_that_is_more_to_its_owner_than_a_function_is_left_alone_and_the_others_are_opened() -> None:
    module, x = Owning().eval(), torch.randn(300, 10, generator=torch.Generator().manual_seed(1))
    [stage] = whole(module, x, "not traced")
    assert {step.name for steps in inner_chains(stage).values() for step in steps} == {"second"}
    with torch.no_grad():
        assert torch.equal(stage.module(x), module(x))
    small = isthmus.compress(module, x, tolerance=0.01, allow_slower=True)
    assert small.parameters_after <= small.parameters_before - 16 * 4 + 16 + 4
    with torch.no_grad():
        assert float((small.module(x) - module(x)).norm() / module(x).norm()) < 0.01
