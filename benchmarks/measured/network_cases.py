"""Small networks trained here for a second, with any number of fresh rows. What is asked of them: `networks.py`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

STEPS, BATCH, RATE = 200, 128, 3e-3
SIDE = 8  # of the images
TOLERANCES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
ROWS = (60, 100, 200, 350, 600)


class ResidualBlock(nn.Module):
    """x + F(x) with one hidden layer."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the block."""
        return x + self.second(torch.relu(self.first(x)))


def mlp() -> nn.Module:
    """20-64-64-6."""
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 6))


def convolution() -> nn.Module:
    """1-12-16 channels with a batch norm, then 6."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 6),
    )  # fmt: skip


def residual() -> nn.Module:
    """20-32, two blocks of 48 hidden neurons, 6."""
    return nn.Sequential(nn.Linear(20, 32), ResidualBlock(32, 48), ResidualBlock(32, 48), nn.ReLU(), nn.Linear(32, 6))


KINDS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "convolution": convolution, "residual": residual}


def bare_convolution() -> nn.Module:
    """1-8-12 channels without a normalisation, whose gradient in evaluation is not that of the training; then 6."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.Tanh(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(48, 6),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class NetworkCase:
    """One network and its data.

    Attributes:
        name: kind, tolerance, rows and seed.
        kind: key of `KINDS`.
        tolerance: of its compression.
        num_rows: rows that are given.
        seed: of the weights, the task and the rows.
    """

    kind: str
    tolerance: float
    num_rows: int
    seed: int

    @property
    def name(self) -> str:
        """As a row is called."""
        return f"{self.kind} {self.tolerance:g} {self.num_rows} {self.seed}"

    def rows(self, count: int, *, seed: int) -> Tensor:
        """So many rows of the distribution of this case: inputs of five strong dimensions, with tails of a t of 5."""
        own = torch.Generator().manual_seed(self.seed)
        width = SIDE * SIDE if self.kind == "convolution" else 20
        mixing = torch.randn(5, width, generator=own)
        generator = torch.Generator().manual_seed(1000 * self.seed + seed)
        latent = torch.randn(count, 5, generator=generator)
        tails = (torch.randn(count, 5, generator=generator).square().mean(1, keepdim=True)).rsqrt()
        x = (latent * tails) @ mixing / 5**0.5 + 0.3 * torch.randn(count, width, generator=generator)
        return x.reshape(count, 1, SIDE, SIDE) if self.kind == "convolution" else x

    def network(self) -> nn.Module:
        """A network of this kind, trained by Adam on products and sines of combinations of the inputs."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            module = KINDS[self.kind]()
            directions = torch.randn(self.rows(1, seed=0).numel(), 12) / 4
            optimiser = torch.optim.Adam(module.parameters(), lr=RATE, weight_decay=1e-4)
            for step in range(STEPS):
                x = self.rows(BATCH, seed=step + 1)
                z = x.flatten(1) @ directions
                y = torch.sin(z[:, :6]) + 0.3 * z[:, 6:]
                optimiser.zero_grad()
                (module(x) - y).square().mean().backward()
                optimiser.step()
        return module.eval()


def compression_cases(count: int) -> list[NetworkCase]:
    """Kinds, tolerances and numbers of rows in turn, each pair of the last two as often as any other."""
    kinds = list(KINDS)
    return [
        NetworkCase(kinds[i % 3], TOLERANCES[i % 5], ROWS[(i // 5) % 5], seed) for seed, i in enumerate(range(count))
    ]


DECAYED_KINDS: dict[str, Callable[[], nn.Module]] = {**KINDS, "convolution": bare_convolution}
DECAYS = (0.003, 0.005, 0.01, 0.02, 0.03)
FALLING_RATES = ((3e-3, 1500), (1e-3, 700), (2e-4, 500))  # of Adam, each for so many steps over all rows


@dataclass(frozen=True, slots=True)
class DecayedCase:
    """A classifier that Adam with L2 trains on all rows at once, until nothing moves any more.

    Attributes:
        name: kind, decay and seed.
        kind: key of `DECAYED_KINDS`.
        decay: of the optimiser, which adds it times the weights to the gradient.
        seed: of the weights, the rows and their classes.
    """

    kind: str
    decay: float
    seed: int

    @property
    def name(self) -> str:
        """As a row is called."""
        return f"{self.kind} {self.decay:g} {self.seed}"

    def trained(self) -> tuple[nn.Module, Tensor, Tensor]:
        """The network, its 200 rows and their classes."""
        x = NetworkCase(self.kind, 0.0, 0, self.seed).rows(200, seed=1)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            module = DECAYED_KINDS[self.kind]()
            classes = (x.flatten(1) @ torch.randn(x[0].numel(), 6)).argmax(1)
            classes = classes.unique(return_inverse=True)[1]
            optimiser = torch.optim.Adam(module.parameters(), weight_decay=self.decay)
            for rate, steps in FALLING_RATES:
                optimiser.param_groups[0]["lr"] = rate
                for _ in range(steps):
                    optimiser.zero_grad()
                    nn.functional.cross_entropy(module(x), classes).backward()
                    optimiser.step()
        return module.eval(), x, classes


def decayed_cases(count: int) -> list[DecayedCase]:
    """Kinds and decays in turn."""
    kinds = list(DECAYED_KINDS)
    return [DecayedCase(kinds[i % 3], DECAYS[i % 5], i) for i in range(count)]
