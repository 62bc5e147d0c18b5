"""Twelve networks trained here for some seconds on digits, MNIST and text; what is asked of them: `networks`.

Digits come with scikit-learn; MNIST from a file that is named, else digits in its place; text is the documentation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

STEPS, BATCH, RATE, DECAY = 600, 128, 2e-3, 1e-4
TOKENS, LETTERS = 32, 96  # printable ASCII and one for all others
GIVEN, FRESH = 2000, 6000  # rows that a compression gets, and by which it is judged
SOURCES = Path(__file__).parents[2] / "docs"


class Block(nn.Module):
    """x + F(x), convolutions with batch norms."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the block."""
        return torch.relu(x + self.body(x))


class Stream(nn.Module):
    """x + F(x), linear layers."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the block."""
        return x + self.second(functional.gelu(self.first(self.norm(x))))


class Letters(nn.Module):
    """A transformer over letters; the logits of the next letter at the last place."""

    def __init__(self, width: int = 48, layers: int = 2, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(LETTERS, width), nn.Parameter(torch.randn(TOKENS, width) / 10)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0, activation="gelu")
        self.inner = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False) if inner is None else inner
        self.head = nn.Linear(width, LETTERS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Of whole numbers (n, tokens)."""
        return self.head(self.inner(self.embed(tokens) + self.place)[:, -1])


class Convolved(nn.Module):
    """Convolutions over places in place of attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(width, 96, 5, padding=2), nn.GELU(), nn.Conv1d(96, width, 5, padding=2))

    def forward(self, x: Tensor) -> Tensor:
        """Of (n, tokens, width)."""
        return x + self.body(x.mT).mT


def _images(channels: int, side: int, *, residual: bool = False) -> nn.Module:
    body: list[nn.Module] = [nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
    if residual:
        body += [Block(channels), nn.MaxPool2d(2), Block(channels)]
    else:
        body += [nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU()]
    wide = channels if residual else 2 * channels
    del side
    return nn.Sequential(
        *body, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * wide, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def _mlp(d_in: int, *widths: int, d_out: int = 10) -> nn.Module:
    layers: list[nn.Module] = []
    for wide in widths:
        layers += [nn.Linear(d_in, wide), nn.ReLU()]
        d_in = wide
    return nn.Sequential(*layers, nn.Linear(d_in, d_out))


@dataclass(frozen=True, slots=True)
class TrainedCase:
    """One network and its data.

    Attributes:
        name: what it is.
        make: the network.
        data: of `DATA`.
        tolerance: of its compression.
        rebuilds: whether it is trained to give back its input.
    """

    name: str
    make: Callable[[], nn.Module]
    data: str
    tolerance: float
    rebuilds: bool = False

    def trained(self, mnist: Path | None) -> tuple[nn.Module, Tensor, Tensor]:
        """The network, the rows that are given, and fresh ones."""
        x, y = DATA[self.data](mnist)
        fresh, x, y = x[:FRESH], x[FRESH:], y[FRESH:]
        torch.manual_seed(0)
        module = self.make()
        optimiser = torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
        for _ in range(STEPS):
            rows = torch.randint(len(x), (BATCH,))
            answer = module(x[rows])
            loss = (answer - x[rows]).square().mean() if self.rebuilds else functional.cross_entropy(answer, y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        return module.eval(), x[torch.randperm(len(x))[:GIVEN]], fresh


def _digits(_: Path | None) -> tuple[Tensor, Tensor]:
    """The 1,797 digits and shifted, noisy copies of them, so that fresh rows are many."""
    images, classes = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    x, y = np.tile(images / 16, (9, 1)), np.tile(classes, 9)
    moved = np.stack([np.roll(row.reshape(8, 8), rng.integers(-1, 2), axis=1).ravel() for row in x])
    order = rng.permutation(len(x))
    noisy = moved + 0.05 * rng.standard_normal(moved.shape)
    return torch.tensor(noisy[order], dtype=torch.float32), torch.tensor(y[order])


def _mnist(path: Path | None) -> tuple[Tensor, Tensor]:
    if path is None:
        x, y = _digits(None)
        return functional.interpolate(x.reshape(-1, 1, 8, 8), size=28).flatten(1), y
    with np.load(path) as file:
        images, classes = (file[name] for name in ("x_train", "y_train"))
    x = torch.tensor(np.asarray(images[:20_000], dtype=np.float32).reshape(-1, 784)) / 255
    return x, torch.tensor(np.asarray(classes[:20_000], dtype=np.int64))


def _text(_: Path | None) -> tuple[Tensor, Tensor]:
    """Windows of the documentation, and the letter behind each."""
    text = "".join(path.read_text() for path in sorted(SOURCES.rglob("*.md")))
    letters = torch.tensor([min(max(ord(c) - 31, 0), LETTERS - 1) for c in text])
    starts = torch.randperm(len(letters) - TOKENS - 1, generator=torch.Generator().manual_seed(0))[:20_000]
    windows = letters[starts[:, None] + torch.arange(TOKENS)]
    return windows, letters[starts + TOKENS]


def _as_images(
    source: Callable[[Path | None], tuple[Tensor, Tensor]], side: int
) -> Callable[..., tuple[Tensor, Tensor]]:
    def of(path: Path | None) -> tuple[Tensor, Tensor]:
        x, y = source(path)
        return x.reshape(-1, 1, side, side), y

    return of


DATA: dict[str, Callable[[Path | None], tuple[Tensor, Tensor]]] = {
    "digits": _digits, "mnist": _mnist, "text": _text,
    "digit images": _as_images(_digits, 8), "mnist images": _as_images(_mnist, 28),
}  # fmt: skip

CASES: Sequence[TrainedCase] = (
    TrainedCase("mlp digits", lambda: _mlp(64, 128, 128), "digits", 0.05),
    TrainedCase("deep mlp digits", lambda: _mlp(64, 96, 96, 96, 96), "digits", 0.05),
    TrainedCase("mlp mnist", lambda: _mlp(784, 200, 100), "mnist", 0.05),
    TrainedCase("autoencoder digits", lambda: _mlp(64, 96, 12, 96, d_out=64), "digits", 0.05, rebuilds=True),
    TrainedCase("autoencoder mnist", lambda: _mlp(784, 128, 16, 128, d_out=784), "mnist", 0.05, rebuilds=True),
    TrainedCase("convolution digits", lambda: _images(16, 8), "digit images", 0.05),
    TrainedCase("convolution mnist", lambda: _images(12, 28), "mnist images", 0.05),
    TrainedCase("residual convolution", lambda: _images(16, 8, residual=True), "digit images", 0.1),
    TrainedCase(
        "residual mlp", lambda: nn.Sequential(nn.Linear(64, 64), Stream(64, 128), Stream(64, 128), nn.Linear(64, 10)),
        "digits", 0.05,
    ),
    TrainedCase("transformer text", Letters, "text", 0.1),
    TrainedCase("deep transformer text", lambda: Letters(32, 4), "text", 0.1),
    TrainedCase("convolution text", lambda: Letters(inner=nn.Sequential(Convolved(48), Convolved(48))), "text", 0.1),
)  # fmt: skip
