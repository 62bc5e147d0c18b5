"""One diagnosis in a process of its own: what it announced and what it took, as JSON. Who asks: `networks.py`."""

import json
import re
import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn

import isthmus
from isthmus.training.sharded.process_group import peak_memory


class LastState(nn.Module):
    """The last hidden state of an LSTM, then 3 outputs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.steps, self.last = nn.LSTM(16, width, batch_first=True), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Of sequences (n, tokens, 16)."""
        return self.last(self.steps(x)[0][:, -1])


class Attending(nn.Module):
    """Self-attention, then 3 outputs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix, self.last = nn.MultiheadAttention(width, 4, batch_first=True), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Of sequences (n, tokens, width)."""
        return self.last(self.mix(x, x, x)[0].mean(1))


class Residual(nn.Module):
    """x + F(x), convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the block."""
        return x + self.second(torch.relu(self.first(x)))


def _encoder(w: int) -> nn.Module:
    return nn.TransformerEncoderLayer(w, 4, 4 * w, batch_first=True, dropout=0.0)


def _pooled(*layers: nn.Module, features: int, pool: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, pool, nn.Flatten(), nn.Linear(features, 4))


def _mlp(w: int) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 16 * w), nn.ReLU(), nn.Linear(16 * w, 16 * w), nn.ReLU(), nn.Linear(16 * w, 5))


def _layer_norm(w: int) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 16 * w), nn.LayerNorm(16 * w), nn.GELU(), nn.Linear(16 * w, 5))


def _conv1d(w: int) -> nn.Module:
    first, second = nn.Conv1d(1, w, 64, stride=4, padding=32), nn.Conv1d(w, w, 16, padding=8)
    layers = (first, nn.ReLU(), nn.MaxPool1d(2), second, nn.ReLU())
    return _pooled(*layers, features=4 * w, pool=nn.AdaptiveAvgPool1d(4))


def _conv2d(w: int) -> nn.Module:
    first, second = nn.Conv2d(3, w, 5, padding=2), nn.Conv2d(w, 2 * w, 3, padding=1)
    layers = (first, nn.BatchNorm2d(w), nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU())
    return _pooled(*layers, features=8 * w, pool=nn.AdaptiveAvgPool2d(2))


def _depthwise(w: int) -> nn.Module:
    spread = nn.Conv2d(2 * w, 2 * w, 5, padding=2, groups=2 * w)
    layers = (nn.Conv2d(3, 2 * w, 1), nn.ReLU(), spread, nn.ReLU(), nn.Conv2d(2 * w, 2 * w, 1), nn.ReLU())
    return _pooled(*layers, features=2 * w, pool=nn.AdaptiveAvgPool2d(1))


def _transposed(w: int) -> nn.Module:
    first, second = (nn.ConvTranspose2d(w, out, 4, stride=2, padding=1) for out in (w, 1))
    return nn.Sequential(
        nn.Linear(8, 16 * w), nn.ReLU(), nn.Unflatten(1, (w, 4, 4)), first, nn.ReLU(), second, nn.Flatten()
    )


def _residual(w: int) -> nn.Module:
    layers = (nn.Conv2d(3, w, 3, padding=1), Residual(w), Residual(w))
    return _pooled(*layers, features=w, pool=nn.AdaptiveAvgPool2d(1))


# kind -> (size -> module, size -> shape of a sample)
KINDS: dict[str, tuple[Callable[[int], nn.Module], Callable[[int], tuple[int, ...]]]] = {
    "mlp": (_mlp, lambda _: (64,)),
    "layer norm": (_layer_norm, lambda _: (64,)),
    "conv1d": (_conv1d, lambda _: (1, 1024)),
    "conv2d": (_conv2d, lambda _: (3, 32, 32)),
    "depthwise": (_depthwise, lambda _: (3, 24, 24)),
    "transposed": (_transposed, lambda _: (8,)),
    "residual": (_residual, lambda _: (3, 20, 20)),
    "attention": (lambda w: Attending(4 * w), lambda w: (32, 4 * w)),
    "encoder layer": (
        lambda w: nn.Sequential(_encoder(4 * w), nn.Flatten(), nn.Linear(64 * w, 4)), lambda w: (16, 4 * w)
    ),
    "lstm": (lambda w: LastState(8 * w), lambda _: (40, 16)),
}  # fmt: skip


def resident() -> float:
    """MiB that were resident at the most so far."""
    return peak_memory(torch.device("cpu")) / 2**20


def measured(kind: str, size: int, num_rows: int, memory: float, jacobians: bool | None = None) -> dict[str, object]:
    """What a diagnosis of a random network announced and took, in MiB; without Jacobians in float32."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    make, shape = KINDS[kind]
    module, x = make(size).eval(), torch.randn(num_rows, *shape(size))
    small, y = make(8).eval(), torch.randn(4, *shape(8))
    # libraries are loaded, threads started
    isthmus.diagnose(small, y, jacobians=jacobians, limits=isthmus.Limits(memory=2**30))
    with torch.no_grad():
        module(x[:2])
    before = resident()
    said: list[str] = []
    limits = isthmus.Limits(memory=int(memory * 2**20))
    isthmus.diagnose(module, x, jacobians=jacobians, limits=limits, progress=said.append)
    found = re.search(r"at most ([\d,.]+) MiB", said[0])
    assert found
    return {"announced": float(found[1].replace(",", "")), "peak": resident() - before}


if __name__ == "__main__":
    told = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    print(json.dumps(measured(*told, False if "forward" in sys.argv[5:] else None)))
