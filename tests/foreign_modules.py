"""Networks as people bring them: nested, convolutional, residual, with attention, with functions in their forward."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """x + W relu(V x)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(F.relu(self.first(x)))


class Residual(nn.Module):
    """Two residual blocks between linear layers."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(5, width), nn.Linear(width, 3)
        self.blocks = nn.Sequential(Block(width), Block(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(torch.tanh(self.blocks(F.gelu(self.enter(x)))))


class ImageBlock(nn.Module):
    """relu(shortcut(x) + norm(conv(relu(norm(conv(x)))))), as in a ResNet; the sum is in place."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.norm2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.shortcut = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        out += self.shortcut(x)
        return F.relu(out)


class ResidualImages(nn.Module):
    """A block that keeps the channels, one with a convolution on its shortcut, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, 6, 3, padding=1)
        self.blocks = nn.Sequential(ImageBlock(6, 6), ImageBlock(6, 8))
        self.leave = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(F.adaptive_avg_pool2d(self.blocks(F.relu(self.enter(x))), 1).flatten(1))


class TiedTokens(nn.Module):
    """Tokens embedded, mixed, and read off by the matrix that embeds them, as in a GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.inner, self.head = nn.Embedding(8, 5), nn.Linear(5, 5), nn.Linear(5, 8, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(torch.tanh(self.inner(self.embed(tokens))))


class InTurn(nn.Module):
    """Rows one after the other, as many as there are in numbers of Python: no graph holds that."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        rows = [self.leave(torch.tanh(self.enter(row))) for row in x]
        return torch.stack(rows) if float(x.sum()) != 0.5 else torch.stack(rows[::-1])


class PreNorm(nn.Module):
    """x + W gelu(V norm(x)), as in a transformer, between linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm, self.leave = nn.Linear(5, 6), nn.LayerNorm(6), nn.Linear(6, 2)
        self.inner = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(), nn.Linear(16, 6))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        x = self.inner(self.norm(x)) + x
        return self.leave(x)


class Images(nn.Module):
    """Two convolutions with batch norm and pooling, flattened by view, two linear layers with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 12, 3, padding=1)
        self.fc1, self.norm2, self.fc2 = nn.Linear(12 * 16, 20), nn.BatchNorm1d(20), nn.Linear(20, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.relu(self.conv2(x))
        x = x.view(x.size(0), -1)
        return self.fc2(self.norm2(F.gelu(F.dropout(self.fc1(x), 0.5, self.training))))


class Branching(nn.Module):
    """A forward that depends on the numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) if x.sum() > 0 else -self.layer(x)


class Checked(nn.Module):
    """A forward that looks at shapes, and uses its weights twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] != 5:
            raise ValueError("needs five features")
        return self.layer(F.silu(self.layer(x)))


def attention() -> nn.Module:
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.Sequential(nn.Linear(5, 8), nn.TransformerEncoder(encoder, 1), nn.Linear(8, 2))


def nested() -> nn.Module:
    inner = nn.Sequential(nn.GELU(), nn.Dropout(), nn.Linear(6, 7))
    return nn.Sequential(nn.Linear(5, 6), inner, nn.LayerNorm(7), nn.SiLU(), nn.Linear(7, 2))


def seeded(make: type[nn.Module] | object, seed: int = 0) -> nn.Module:
    """A module made with a seed, with batch norms that have seen data, in eval mode."""
    assert callable(make)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = make()
        assert isinstance(module, nn.Module)
        for part in module.modules():
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                for tensor in (part.running_mean, part.running_var, part.weight, part.bias):
                    assert tensor is not None
                    tensor.data.uniform_(0.5, 1.5)
    return module.eval()


def samples(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
