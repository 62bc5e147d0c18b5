"""A matrix of chosen rank between two bijections: tasks for which every notion of rank agrees (FC-04).

Networks that attain closed-form costs: `constructions`. Teachers that hide the rank behind more inputs: `teachers`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.tasks.task import Task
from isthmus.theory.home import at_home


@dataclass(frozen=True, slots=True, eq=False)
class LeakyBijection:
    """x -> sigma_a(x Q_l^T + b_l), layer after layer, with orthogonal Q_l and slope 0 < a < 1: a bijection."""

    rotations: tuple[Float[Tensor, "d d"], ...]
    biases: tuple[Float[Tensor, " d"], ...]
    negative_slope: float

    @classmethod
    def random(cls, d: int, *, depth: int, negative_slope: float, generator: torch.Generator) -> "LeakyBijection":
        """Rotations from the QR factors of Gaussian matrices, biases of standard deviation 0.3."""
        pairs = [
            (
                torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64))[0],
                0.3 * torch.randn(d, generator=generator, dtype=torch.float64),
            )
            for _ in range(depth)
        ]
        return cls(tuple(q for q, _ in pairs), tuple(b for _, b in pairs), negative_slope)

    def __call__(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """Images, samples as rows."""
        for rotation, bias in zip(self.rotations, self.biases, strict=True):
            x = torch.nn.functional.leaky_relu(x @ rotation.T + bias, self.negative_slope)
        return x

    def inverse(self, y: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """The points whose images are y."""
        for rotation, bias in zip(reversed(self.rotations), reversed(self.biases), strict=True):
            y = (torch.where(y < 0, y / self.negative_slope, y) - bias) @ rotation
        return y


@dataclass(frozen=True, slots=True, eq=False)
class BijectiveMap:
    """f = outer o A o inner, with bijections and a matrix A whose nonzero singular values lie between 1 and 2."""

    inner: LeakyBijection
    matrix: Float[Tensor, "d_out d_in"]
    outer: LeakyBijection

    def __call__(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n d_out"]:
        """Values, samples as rows."""
        return self.outer(self.inner(x) @ self.matrix.T)


def bijective_map(
    rank: int, *, d_in: int, d_out: int, depth: int = 2, negative_slope: float = 0.3, seed: int = 0
) -> BijectiveMap:
    """The map behind `bijective_rank` with the same arguments."""
    if not 0 <= rank <= min(d_in, d_out):
        raise ValueError(
            f"bijective_rank(rank={rank}, d_in={d_in}, d_out={d_out}): needs 0 <= rank <= min(d_in, d_out)."
        )
    if depth < 1 or not 0 < negative_slope < 1:
        raise ValueError(
            f"bijective_rank(depth={depth}, negative_slope={negative_slope}): needs depth >= 1 and a slope between 0 "
            "and 1; at 0 the layers would not be bijections."
        )
    generator = torch.Generator().manual_seed(seed)
    inner, outer = (
        LeakyBijection.random(d, depth=depth, negative_slope=negative_slope, generator=generator) for d in (d_in, d_out)
    )
    left, right = (
        torch.linalg.qr(torch.randn(d, rank, generator=generator, dtype=torch.float64))[0] for d in (d_out, d_in)
    )
    values = 1 + torch.rand(rank, generator=generator, dtype=torch.float64)
    return BijectiveMap(inner, left * values @ right.T, outer)


@at_home
def bijective_rank(
    rank: int,
    *,
    d_in: int,
    d_out: int,
    num_samples: int,
    depth: int = 2,
    negative_slope: float = 0.3,
    seed: int = 0,
) -> Task:
    """Regression on f = outer o A o inner, with A a matrix of this rank between piecewise linear bijections.

        x ~ N(0, I);   y = f(x);   Jacobian rank = rank of the infinite-depth cost = bottleneck rank = rank A

    Args:
        rank: rank of A, at most min(d_in, d_out).
        d_in: number of inputs.
        d_out: number of outputs.
        num_samples: number of rows.
        depth: layers of each bijection.
        negative_slope: slope a of the bijections' activation, 0 < a < 1.
        seed: of the map and the points.

    Returns:
        Task whose three ranks are *exact*.

    Raises:
        ValueError: an argument is out of the ranges above.

    Source: Jacot 2023a, after Theorem 1 (FC-04). Test: tests/tasks/test_bijective.py.

    >>> task = tasks.bijective_rank(2, d_in=5, d_out=4, num_samples=30)
    >>> task.x.shape, task.y.shape, task.true_rank
    ((30, 5), (30, 4), 2)
    """
    f = bijective_map(rank, d_in=d_in, d_out=d_out, depth=depth, negative_slope=negative_slope, seed=seed)
    generator = torch.Generator().manual_seed(seed + 2**32)
    x = torch.randn(num_samples, d_in, generator=generator, dtype=torch.float64)
    source = f"bijective_rank(rank={rank}, depth={depth}, negative_slope={negative_slope:g}, seed={seed})"
    return Task(x.numpy(), f(x).numpy(), rank, source, jacobian_rank=rank)
