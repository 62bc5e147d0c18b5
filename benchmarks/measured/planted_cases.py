"""Networks of random weights, a rank planted in one place of each, and their twins without. Who reads: `networks`.

A planted matrix has k singular values from .5 to 1 and others of .001; heads and gates are of rank k to rounding.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import xarray as xr
from torch import Tensor, nn

from isthmus.diagnostics.samples import Inputs

RANKS = (2, 3, 5, 7)
ROWS, TOKENS, VOCABULARY = 400, 6, 40
NOISE = 1e-3
WIDTH, HEADS = 48, 4  # of attention: heads of 12


@dataclass(slots=True)
class PlantedCase:
    """A network, its data, and the integers that a diagnosis must show.

    Attributes:
        name: kind, rank and whether it was planted.
        module: in eval mode.
        x: samples.
        wanted: what is read -> the planted number, or of a twin the most that there could be.
    """

    name: str
    module: nn.Module
    x: Inputs
    wanted: dict[str, int] = field(default_factory=dict[str, int])


def of_rank(matrix: Tensor, rank: int, noise: float = 0.0) -> Tensor:
    """A matrix with the singular vectors of another, and k singular values that stand out."""
    u, s, vh = torch.linalg.svd(matrix.double(), full_matrices=False)
    values = torch.full_like(s, noise)
    values[:rank] = torch.linspace(1.0, 0.5, rank, dtype=s.dtype)
    return ((u * values * s.mean()) @ vh).to(matrix)


class Residual(nn.Module):
    """x + F(x)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: Tensor) -> Tensor:
        """The stream."""
        return x + self.second(torch.relu(self.first(x)))


class Attending(nn.Module):
    """Self-attention and 3 outputs of the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.last = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Of sequences."""
        return self.last(self.mix(x, x, x, need_weights=False)[0].mean(1))


class Recurrent(nn.Module):
    """An LSTM and 3 outputs of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.last = nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Of sequences."""
        return self.last(self.steps(x)[0][:, -1])


def _rows(*shape: int) -> Tensor:
    return torch.randn(ROWS, *shape)


def _matrix_case(module: nn.Module, x: Inputs, place: str, rank: int | None) -> PlantedCase:
    """The weight of one layer: so many directions leave it."""
    layer = module.get_submodule(place)
    weight = layer.get_parameter("weight")
    flat = weight.data.flatten(1)
    if isinstance(layer, nn.ConvTranspose2d):  # (in, out, ..): the outputs are to be few
        flat = weight.data.transpose(0, 1).flatten(1)
    if rank is not None:
        new = of_rank(flat, rank, NOISE)
        if isinstance(layer, nn.ConvTranspose2d):
            new = new.reshape(weight.shape[1], weight.shape[0], *weight.shape[2:]).transpose(0, 1)
        weight.data.copy_(new.reshape(weight.shape))
    return PlantedCase("", module, x, {f"dimension_activation {place}": rank or min(flat.shape)})


def _mlp(rank: int | None) -> PlantedCase:
    module = nn.Sequential(
        nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 4)
    )
    return _matrix_case(module, _rows(20), "2", rank)


def _batch_norm(rank: int | None) -> PlantedCase:
    module = nn.Sequential(
        nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.Linear(32, 40), nn.BatchNorm1d(40),
        nn.ReLU(), nn.Linear(40, 4),
    )  # fmt: skip
    module(_rows(20))
    return _matrix_case(module, _rows(20), "3", rank)


def _layer_norm(rank: int | None) -> PlantedCase:
    module = nn.Sequential(
        nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 32), nn.LayerNorm(32), nn.Linear(32, 4)
    )
    return _matrix_case(module, _rows(20), "3", rank)


def _conv1d(rank: int | None) -> PlantedCase:
    module = nn.Sequential(
        nn.Conv1d(2, 16, 5), nn.ReLU(), nn.Conv1d(16, 20, 3), nn.Conv1d(20, 8, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(8 * 8, 3),
    )  # fmt: skip
    return _matrix_case(module, _rows(2, 16), "2", rank)


def _conv2d(rank: int | None) -> PlantedCase:
    module = nn.Sequential(
        nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 16, 3, padding=1),
        nn.Conv2d(16, 8, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 3),
    )  # fmt: skip
    return _matrix_case(module, _rows(3, 8, 8), "3", rank)


def _depthwise(rank: int | None) -> PlantedCase:
    module = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ReLU(),
        nn.Conv2d(16, 16, 1), nn.Conv2d(16, 8, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3),
    )  # fmt: skip
    return _matrix_case(module, _rows(3, 8, 8), "4", rank)


def _transposed(rank: int | None) -> PlantedCase:
    module = nn.Sequential(
        nn.Linear(12, 128), nn.ReLU(), nn.Unflatten(1, (8, 4, 4)), nn.ConvTranspose2d(8, 12, 4, stride=2, padding=1),
        nn.ConvTranspose2d(12, 2, 4, stride=2, padding=1), nn.Flatten(),
    )  # fmt: skip
    return _matrix_case(module, _rows(12), "3", rank)


def _residual(rank: int | None) -> PlantedCase:
    module = nn.Sequential(nn.Linear(20, 32), Residual(), Residual(), nn.Linear(32, 4))
    return _matrix_case(module, _rows(20), "1.second", rank)


def _heads(case: PlantedCase, parts: tuple[Tensor, ...], row: str, rank: int | None) -> PlantedCase:
    """QK of the first head and OV of the second: `parts` are Q, K, V, (out, d) each, and O, (d, out), as views."""
    size = WIDTH // HEADS
    query, _, value, _ = parts
    if rank is not None:
        query[:size] = of_rank(query[:size], rank)
        value[size : 2 * size] = of_rank(value[size : 2 * size], rank)
    for head in range(HEADS):
        case.wanted[f"qk_rank {row} {head}"] = rank if rank is not None and head == 0 else size
        case.wanted[f"ov_rank {row} {head}"] = rank if rank is not None and head == 1 else size
    return case


def _attention(rank: int | None) -> PlantedCase:
    module = Attending()
    packed = module.mix.in_proj_weight.data.chunk(3)
    return _heads(PlantedCase("", module, _rows(TOKENS, WIDTH)), (*packed, packed[0]), "mix.out_proj", rank)


def _encoder(rank: int | None) -> PlantedCase:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 96, batch_first=True, dropout=0.0)
    module = nn.Sequential(layer, nn.Flatten(), nn.Linear(TOKENS * WIDTH, 3))
    case = _matrix_case(module, _rows(TOKENS, WIDTH), "0.linear2", rank)
    packed = layer.self_attn.in_proj_weight.data.chunk(3)
    return _heads(case, (*packed, packed[0]), "0.self_attn.out_proj", rank)


def _lstm(rank: int | None) -> PlantedCase:
    """Units that are copies of k, and two gates of lower rank: of the input, of the states."""
    module = Recurrent()
    copies = list(range(24)) if rank is None else [i % rank for i in range(24)]
    for name, weight in module.steps.named_parameters():
        gates = weight.data.reshape(4, 24, -1)
        gates.mul_(2.0 if weight.ndim > 1 else 1.0).copy_(gates[:, copies].clone())
        if name.startswith("weight") and rank is not None:
            place = 1 if "ih" in name else 3
            gates[place, rank - 1] = 0.0
            gates[place] = gates[place][copies].clone()
    row = "steps.weight_ih_l0"
    case = PlantedCase("", module, _rows(TOKENS, 16), {f"state_dimension {row}": rank or 24})
    most = {"input": 16, "hidden": 24}
    for side, place in (("input", 1), ("hidden", 3)):
        for gate in range(4):
            full = most[side] if rank is None else rank
            case.wanted[f"gate_rank {row} {side} {gate}"] = full - (rank is not None and gate == place)
    return case


def _gpt2(rank: int | None) -> PlantedCase:
    import transformers as t

    settings: dict[str, Any] = {"n_layer": 2, "n_embd": WIDTH, "n_head": HEADS, "vocab_size": VOCABULARY}
    module = t.GPT2LMHeadModel(t.GPT2Config(**settings, n_positions=TOKENS, bos_token_id=0, eos_token_id=0))
    tokens = torch.randint(0, VOCABULARY, (ROWS, TOKENS))
    packed = module.get_parameter("transformer.h.1.attn.c_attn.weight").data.T.chunk(3)  # kept the other way round
    out = module.get_parameter("transformer.h.1.mlp.c_proj.weight").data
    if rank is not None:
        out.copy_(of_rank(out, rank, NOISE))
    case = PlantedCase("", module, {"input_ids": tokens})
    case.wanted["dimension_activation transformer.h.1.mlp.c_proj"] = rank or WIDTH
    return _heads(case, (*packed, packed[0]), "transformer.h.1.attn.c_proj", rank)


def _vit(rank: int | None) -> PlantedCase:
    import transformers as t

    settings: dict[str, Any] = {"num_hidden_layers": 2, "hidden_size": WIDTH, "num_attention_heads": HEADS}
    settings |= {"intermediate_size": 96, "image_size": 12, "patch_size": 4, "num_channels": 1}
    module = t.ViTForImageClassification(t.ViTConfig(**settings))
    attention = next(part for name, part in module.named_modules() if name.endswith("layers.1.attention"))
    name = next(name for name, part in module.named_modules() if part is attention)
    parts = [getattr(attention, f"{letter}_proj").weight.data for letter in "qkvo"]
    case = PlantedCase("", module, {"pixel_values": _rows(1, 12, 12)})
    return _heads(case, (*parts,), f"{name}.o_proj", rank)


KINDS: dict[str, Callable[[int | None], PlantedCase]] = {
    "mlp": _mlp, "batch norm": _batch_norm, "layer norm": _layer_norm, "conv1d": _conv1d, "conv2d": _conv2d,
    "depthwise": _depthwise, "transposed": _transposed, "residual": _residual, "attention": _attention,
    "encoder layer": _encoder, "lstm": _lstm, "gpt2": _gpt2, "vit": _vit,
}  # fmt: skip


def planted_case(kind: str, rank: int, *, seed: int, is_planted: bool) -> PlantedCase:
    """One network of a kind; without a planted rank it is the same otherwise."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        with torch.no_grad():
            case = KINDS[kind](rank if is_planted else None)
    case.module.eval()
    case.name = f"{kind} {rank if is_planted else 'none'} {seed}"
    return case


def planted_names(count: int) -> list[tuple[str, int]]:
    """Kinds in turn, and ranks."""
    kinds = list(KINDS)
    return [(kinds[i % len(kinds)], RANKS[(i // len(kinds)) % len(RANKS)]) for i in range(count)]


def read(table: xr.Dataset, what: str) -> float:
    """The number that a diagnosis shows for a key of `wanted`."""
    column, row, *where = what.split(" ")
    entry = table[column].isel(layer=[str(name) for name in table["name"].values].index(row))
    if column == "gate_rank":
        return float(entry.sel(side=where[0]).values[int(where[1])])
    return float(entry.values[int(where[0])] if where else entry.values)
