"""Small networks of every kind that `diagnose` must read: one list, joined by a row per network.

What is asked of each of them: `test_architectures`. All come in training mode, with gradients and a hook, so that
whatever a diagnosis leaves behind is seen.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from isthmus import FullyConnected, LeakyResNet, ResNet

Data = Tensor | tuple[Tensor, ...] | dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Architecture:
    """A network and data for it.

    Attributes:
        make: builds the network.
        data: the samples.
        layers: names that the table must have, in order.
        skipped: name and a word of the reason of every leaf that must not be in the table.
    """

    make: Callable[[], nn.Module]
    data: Callable[[], Data]
    layers: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(*shape: int, below: int = 13) -> Tensor:
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(0))


def mlp(*between: nn.Module) -> nn.Sequential:
    """5 - 6 - 6 - 3 with the same modules after both hidden layers."""
    return nn.Sequential(nn.Linear(5, 6), *between, nn.Linear(6, 6), *between, nn.Linear(6, 3))


class Functional(nn.Module):
    """Activations as functions, one of them in place."""

    def __init__(self, *activations: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.activations = activations
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in activations)

    def forward(self, x: Tensor) -> Tensor:
        for layer, activation in zip(self.layers, self.activations, strict=True):
            x = activation(layer(x))
        return x


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 4, 3)
        self.fc1, self.fc2, self.fc3 = nn.Linear(16, 8), nn.Linear(8, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(x.flatten(1))))))


class BasicBlock(nn.Module):
    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        is_same = c_in == c_out and stride == 1
        self.downsample = None if is_same else nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride), nn.BatchNorm2d(c_out))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.top = nn.Linear(3, 4), nn.Linear(2, 4), nn.Linear(8, 2)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        both = torch.cat([torch.tanh(self.left(a)), self.right(b).relu()], 1)
        return self.top(both), {"hidden": both}


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.again, self.unused = nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.again(self.first(x))
        return x


class Branches(nn.Module):
    """A Sequential branch beside a stream: A + F(A)."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(5, 6), nn.Linear(6, 2)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 6)) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.into(x)
        for block in self.blocks:
            x = x + block(x)
        return self.out(x)


class Gated(nn.Module):
    """SwiGLU: an activation times another layer."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(5, 7), nn.Linear(5, 7), nn.Linear(7, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.TransformerDecoderLayer(8, 2, 12, activation="gelu", batch_first=True)

    def forward(self, target: Tensor, memory: Tensor) -> Tensor:
        return self.decoder(target, memory)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.steps(x)[0][:, -1])


def encoder(*, norm_first: bool, batch_first: bool) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(8, 2, 12, norm_first=norm_first, batch_first=batch_first, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def gpt() -> nn.Module:
    # its import takes seconds, which every worker would pay for the list of names alone
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(n_layer=2, n_embd=8, n_head=2, vocab_size=13, n_positions=8, bos_token_id=0, eos_token_id=0)
    )


def llama() -> nn.Module:
    """A decoder with rotations by position, gates and norms by the root mean square."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(num_hidden_layers=1, hidden_size=8, intermediate_size=12, num_attention_heads=2, vocab_size=13)
    )


def bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    return BertModel(
        BertConfig(
            num_hidden_layers=1, hidden_size=8, intermediate_size=12, num_attention_heads=2, vocab_size=13,
            max_position_embeddings=8,
        ),
        add_pooling_layer=False,
    )  # fmt: skip


def exported(make: Callable[[], nn.Module], *shape: int) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        rows = {0: torch.export.Dim("n", min=2)}
        program = torch.export.export(make().eval(), (numbers(*shape),), dynamic_shapes=(rows,))
        return program.module()

    return build


_ATTENTION = tuple(f"in_proj_weight[{i}]" for i in range(3))
_ENCODER = tuple(
    f"layers.{l}.{part}"
    for l in range(2)
    for part in (*(f"self_attn.{name}" for name in (*_ATTENTION, "out_proj")), "linear1", "linear2")
)
_ENCODER_SKIPPED = tuple(
    (f"layers.{l}.{part}", reason)
    for l in range(2)
    for part, reason in (
        ("dropout", "dropout"), ("norm1", "normalisation"), ("norm2", "normalisation"), ("dropout1", "dropout"),
        ("dropout2", "dropout"),
    )
)  # fmt: skip
_THREE = ("0", "2", "4")
_GPT = (
    *(
        f"transformer.h.{l}.{part}"
        for l in range(2)
        for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    ),
    "lm_head",
)
_ROWS = functools.partial(numbers, 12, 5)


def _activated(reason: str = "activation", layers: tuple[str, ...] = ("1", "3")) -> tuple[tuple[str, str], ...]:
    return tuple((name, reason) for name in layers)


def _mlp(activation: Callable[[], nn.Module]) -> Architecture:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 6), activation(), nn.Linear(6, 6), activation(), nn.Linear(6, 3))

    return Architecture(make, _ROWS, _THREE, _activated())


ARCHITECTURES = {
    "mlp-relu": _mlp(nn.ReLU),
    "mlp-relu-in-place": _mlp(functools.partial(nn.ReLU, inplace=True)),
    "mlp-gelu": _mlp(nn.GELU),
    "mlp-silu": _mlp(nn.SiLU),
    "mlp-tanh": _mlp(nn.Tanh),
    "mlp-leaky": _mlp(nn.LeakyReLU),
    "mlp-prelu": _mlp(nn.PReLU),
    "mlp-softplus": _mlp(nn.Softplus),
    "mlp-dropout": Architecture(
        lambda: nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3)), _ROWS, ("0", "3"),
        (("1", "activation, read with layer 0"), ("2", "dropout")),
    ),
    "mlp-batch-norm": Architecture(
        lambda: nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)), _ROWS, ("0", "3"),
        (("1", "normalisation"), ("2", "activation, read with layer 0")),
    ),
    "mlp-layer-norm": Architecture(
        lambda: nn.Sequential(nn.Linear(5, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 3)), _ROWS, ("0", "3"),
        (("1", "activation"), ("2", "normalisation")),
    ),
    "functional": Architecture(
        lambda: Functional(torch.relu, functional.gelu, functional.silu, torch.tanh, lambda z: z * torch.sigmoid(z)),
        _ROWS, tuple(f"layers.{i}" for i in range(5)),
    ),
    "functional-in-place": Architecture(
        lambda: Functional(functional.relu_, lambda z: functional.leaky_relu(z, 0.1, inplace=True), Tensor.relu_),
        _ROWS, tuple(f"layers.{i}" for i in range(3)),
    ),
    "nested": Architecture(
        lambda: nn.Sequential(nn.Sequential(nn.Linear(5, 4), nn.ReLU()), nn.Sequential(nn.Linear(4, 2))), _ROWS,
        ("0.0", "1.0"), (("0.1", "activation"),),
    ),
    "float64": Architecture(lambda: mlp().double(), lambda: _ROWS().double(), ("0", "1", "2")),
    "bfloat16": Architecture(lambda: mlp().bfloat16(), lambda: _ROWS().bfloat16(), ("0", "1", "2")),
    "weight-norm": Architecture(
        lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(5, 4)), nn.ReLU(), nn.Linear(4, 2)), _ROWS,
        ("0", "2"), (("1", "activation"), ("0.parametrizations.weight.0", "no weight matrix")),
    ),
    "lenet": Architecture(LeNet, lambda: numbers(6, 1, 12, 12), ("conv1", "conv2", "fc1", "fc2", "fc3")),
    "conv1d": Architecture(
        lambda: nn.Sequential(nn.Conv1d(2, 3, 3, stride=2, dilation=2), nn.Tanh(), nn.AvgPool1d(4), nn.Flatten()),
        lambda: numbers(6, 2, 11), ("0",), (("1", "activation"), ("2", "pooling"), ("3", "regroups")),
    ),
    "conv3d": Architecture(
        lambda: nn.Sequential(nn.Conv3d(1, 2, 2, padding="same"), nn.ReLU(), nn.Flatten(), nn.Linear(54, 2)),
        lambda: numbers(5, 1, 3, 3, 3), ("0", "3"), (("1", "activation"), ("2", "regroups")),
    ),
    "depthwise": Architecture(
        lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU6(), nn.Conv2d(4, 2, 1), nn.Flatten()),
        lambda: numbers(5, 4, 5, 5), ("0", "2"), (("1", "activation"), ("3", "regroups")),
    ),
    "resnet": Architecture(
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), BasicBlock(4, 4, 1), BasicBlock(4, 6, 2), nn.AvgPool2d(3), nn.Flatten(),
            nn.Linear(6, 3),
        ),
        lambda: numbers(5, 2, 6, 6), ("0", "1.conv1", "1.conv2", "2.downsample.0", "2.conv1", "2.conv2", "5"),
        (
            ("1.bn1", "normalisation"), ("1.relu", "activation, read with layer 1.conv1"), ("1.bn2", "normalisation"),
            ("2.bn1", "normalisation"), ("2.relu", "activation"), ("2.bn2", "normalisation"),
            ("2.downsample.1", "normalisation"), ("3", "pooling"), ("4", "regroups"),
        ),
    ),
    "autoencoder": Architecture(
        lambda: nn.Sequential(
            nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2), nn.Linear(2, 2), nn.Linear(2, 7), nn.ReLU(), nn.Linear(7, 5)
        ),
        _ROWS, ("0", "2", "3", "4", "6"), _activated(layers=("1", "5")),
    ),
    "two-inputs": Architecture(
        TwoInputs, lambda: (numbers(12, 3), numbers(12, 2, seed=1)), ("left", "right", "top")
    ),
    "named-inputs": Architecture(
        TwoInputs, lambda: {"b": numbers(12, 2, seed=1), "a": numbers(12, 3)}, ("left", "right", "top")
    ),
    "shared": Architecture(
        Shared, _ROWS, ("first", "first#2", "first#3"), (("again", "read with layer first"), ("unused", "never called"))
    ),
    "residual": Architecture(
        Branches, _ROWS, ("into", "blocks.0.1", "blocks.0.3", "blocks.1.1", "blocks.1.3", "out"),
        tuple((f"blocks.{l}.{i}", r) for l in range(2) for i, r in ((0, "normalisation"), (2, "activation"))),
    ),
    "gated": Architecture(Gated, _ROWS, ("gate", "up", "down")),
    "transformer-post-norm": Architecture(
        lambda: encoder(norm_first=False, batch_first=True), lambda: numbers(6, 4, 8), _ENCODER, _ENCODER_SKIPPED
    ),
    "transformer-pre-norm-sequence-first": Architecture(
        lambda: nn.Sequential(Swapped(), encoder(norm_first=True, batch_first=False), Swapped()),
        lambda: numbers(6, 4, 8), tuple(f"1.{name}" for name in _ENCODER),
        (("0", "no weight"), *((f"1.{name}", reason) for name, reason in _ENCODER_SKIPPED), ("2", "no weight")),
    ),
    "transformer-decoder": Architecture(
        Decoder, lambda: (numbers(5, 3, 8), numbers(5, 4, 8, seed=1)),
        (
            *(f"decoder.{a}.{name}" for a in ("self_attn", "multihead_attn") for name in (*_ATTENTION, "out_proj")),
            "decoder.linear1", "decoder.linear2",
        ),
        (
            ("decoder.dropout", "dropout"), ("decoder.norm1", "norm"), ("decoder.norm2", "norm"),
            ("decoder.norm3", "norm"), ("decoder.dropout1", "dropout"), ("decoder.dropout2", "dropout"),
            ("decoder.dropout3", "dropout"),
        ),
    ),
    "gpt2": Architecture(
        gpt, lambda: {"input_ids": tokens(6, 5)}, _GPT,
        (
            ("transformer.wte", "lookup"), ("transformer.wpe", "lookup"), ("transformer.drop", "dropout"),
            *(
                (f"transformer.h.{l}.{part}", reason)
                for l in range(2)
                for part, reason in (
                    ("ln_1", "norm"), ("attn.attn_dropout", "never called"), ("attn.resid_dropout", "dropout"),
                    ("ln_2", "norm"), ("mlp.act", f"read with layer transformer.h.{l}.mlp.c_fc"),
                    ("mlp.dropout", "dropout"),
                )
            ),
            ("transformer.ln_f", "norm"),
        ),
    ),
    "llama": Architecture(
        llama, lambda: {"input_ids": tokens(6, 5)},
        (
            *(f"model.layers.0.self_attn.{letter}_proj" for letter in "qkvo"),
            *(f"model.layers.0.mlp.{part}_proj" for part in ("gate", "up", "down")), "lm_head",
        ),
        (
            ("model.embed_tokens", "lookup"), ("model.layers.0.mlp.act_fn", "read with layer model.layers.0.mlp.gate"),
            ("model.layers.0.input_layernorm", "norm"), ("model.layers.0.post_attention_layernorm", "norm"),
            ("model.norm", "norm"), ("model.rotary_emb", "rotation"),
        ),
    ),
    "bert": Architecture(
        bert, lambda: {"input_ids": tokens(6, 5)},
        (
            *(f"encoder.layer.0.attention.self.{part}" for part in ("query", "key", "value")),
            *(f"encoder.layer.0.{part}.dense" for part in ("attention.output", "intermediate", "output")),
        ),
        (
            *((f"embeddings.{part}_embeddings", "lookup") for part in ("word", "position", "token_type")),
            ("embeddings.LayerNorm", "norm"), ("embeddings.dropout", "dropout"),
            ("encoder.layer.0.attention.self.dropout", "never called"),
            ("encoder.layer.0.intermediate.intermediate_act_fn", "read with layer encoder.layer.0.intermediate.dense"),
            *(
                (f"encoder.layer.0.{part}.{leaf}", reason)
                for part in ("attention.output", "output")
                for leaf, reason in (("LayerNorm", "norm"), ("dropout", "dropout"))
            ),
        ),
    ),
    "recurrent": Architecture(Recurrent, lambda: numbers(6, 3, 4), ("steps.weight_ih_l0", "head"), ()),
    "exported": Architecture(
        exported(lambda: nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Dropout(), nn.Linear(6, 3)), 4, 5), _ROWS,
        ("0", "3"), (("_guards_fn", "no weight matrix"),),
    ),
    "exported-lenet": Architecture(
        exported(LeNet, 4, 1, 12, 12), lambda: numbers(6, 1, 12, 12), ("conv1", "conv2", "fc1", "fc2", "fc3"),
        (("_guards_fn", "no weight matrix"),),
    ),
    "isthmus-fully-connected": Architecture(
        lambda: FullyConnected(5, 3, width=6, depth=3, seed=0), _ROWS, ("weights.0", "weights.1", "weights.2")
    ),
    "isthmus-resnet": Architecture(
        lambda: ResNet(5, 3, width=6, depth=2, block_depth=2, seed=0), _ROWS,
        ("embedding", *(f"block_weights.{i}" for i in range(4)), "unembedding"),
    ),
    "isthmus-leaky": Architecture(
        lambda: LeakyResNet(5, 3, width=6, depth=3, effective_depth=2.0, seed=0), _ROWS,
        ("embedding", "weights.0", "weights.1", "weights.2", "unembedding"),
    ),
}  # fmt: skip


class Swapped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)
