"""Targets made by random networks whose bottleneck rank is chosen. Networks written down by hand: `constructions`.

Each task is built from the same public generating maps that the tests differentiate.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.networks import ResNet
from isthmus.tasks.task import Task
from isthmus.theory.home import at_home

INNER_WIDTH = 100  # of the shallow networks, as in the experiments of the first paper (FC-47)
LEAK = 0.3  # slope of the leaky teachers for negative inputs
Map = Callable[[Tensor], Tensor]


class Activation(StrEnum):
    """What bends a teacher.

    >>> tasks.Activation.TANH.value
    'tanh'
    """

    RELU = "relu"
    LEAKY = "leaky"
    TANH = "tanh"

    def __call__(self, x: Tensor) -> Tensor:
        """Values, entry by entry: max(x, 0); x, or 0.3 x where that is larger; tanh x."""
        if self is Activation.TANH:
            return torch.tanh(x)
        return torch.relu(x) if self is Activation.RELU else torch.nn.functional.leaky_relu(x, LEAK)


@dataclass(frozen=True, slots=True, eq=False)
class ShallowNetwork:
    """x -> sigma(x A^T + b) B^T with Gaussian weights: the random function out of which teachers are made."""

    inner: Float[Tensor, "width d_in"]
    bias: Float[Tensor, " width"]
    outer: Float[Tensor, "d_out width"]
    activation: Activation = Activation.RELU

    @classmethod
    def random(
        cls,
        d_in: int,
        d_out: int,
        *,
        generator: torch.Generator,
        dtype: torch.dtype,
        activation: Activation = Activation.RELU,
    ) -> "ShallowNetwork":
        """Weights of variance 1/fan-in, biases of standard deviation 0.1."""
        # 4 neurons per input keep the inner layer injective for inputs too many for the usual width
        width = max(INNER_WIDTH, 4 * d_in)
        inner = torch.randn(width, d_in, generator=generator, dtype=dtype) / math.sqrt(d_in)
        outer = torch.randn(d_out, width, generator=generator, dtype=dtype) / math.sqrt(width)
        return cls(inner, torch.randn(width, generator=generator, dtype=dtype) * 0.1, outer, activation)

    def __call__(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n d_out"]:
        """Outputs, samples as rows."""
        return self.activation(x @ self.inner.T + self.bias) @ self.outer.T


@dataclass(frozen=True, slots=True, eq=False)
class TeacherMaps:
    """The two maps of a teacher: x = observe(z), y = respond(z_1, .., z_rank)."""

    observe: ShallowNetwork
    respond: ShallowNetwork
    rank: int

    def target(self, z: Float[Tensor, "*n latent_dim"]) -> Float[Tensor, "*n d_out"]:
        """Noise-free target of latent points, before centring."""
        return self.respond(z[..., : self.rank])


@at_home
def teacher(
    rank: int,
    *,
    d_in: int,
    d_out: int,
    num_samples: int,
    latent_dim: int | None = None,
    noise: float = 0.0,
    activation: Activation = Activation.RELU,
    seed: int = 0,
) -> Task:
    """Regression task that factors through exactly `rank` dimensions: y depends on `rank` of the coordinates behind x.

        z ~ N(0, I);   x = g(z);   y = h(z_1, .., z_rank) - mean + noise * std(y) * N(0, I)

    with random shallow networks g and h.

    Args:
        rank: number of latent coordinates that y depends on, at least 1 and at most `d_out`.
        d_in: number of inputs, at least 2 `latent_dim` + 1, so that x determines z.
        d_out: number of outputs.
        num_samples: number of rows.
        latent_dim: number of latent coordinates behind x; unless given, max(8, rank + 4) or as many as `d_in` allows.
        noise: standard deviation of the noise on each target column, relative to that column's own.
        activation: of both networks.
        seed: of the latent points, both maps and the noise.

    Returns:
        Task whose `true_rank` is `rank` (*exact* for the noise-free map), with z in `latent`.

    Raises:
        ValueError: a dimension is out of the ranges above, or `noise` is negative.

    Source: Jacot 2023a, Figure 1 (FC-47), with the rank a parameter. Test: tests/tasks/test_teachers.py.

    >>> task = tasks.teacher(2, d_in=8, d_out=4, num_samples=30, noise=0.05, seed=0)
    >>> task.x.shape, task.y.shape, task.true_rank
    ((30, 8), (30, 4), 2)
    """
    latent_dim = latent_dim_for(rank, d_in, latent_dim)
    if not 1 <= rank <= d_out:
        raise ValueError(f"teacher(rank={rank}, d_out={d_out}): needs 1 <= rank <= d_out.")
    if num_samples < 1 or not noise >= 0:
        raise ValueError(f"teacher(num_samples={num_samples}, noise={noise}): needs num_samples >= 1 and noise >= 0.")
    generator = torch.Generator().manual_seed(seed)
    maps = _teacher_maps(rank, latent_dim, d_in=d_in, d_out=d_out, generator=generator, activation=activation)
    z = torch.randn(num_samples, latent_dim, generator=generator, dtype=torch.float64)
    y = maps.target(z)
    y = y - y.mean(0)
    y = y + noise * y.std(0, correction=0) * torch.randn(y.shape, generator=generator, dtype=torch.float64)
    bent = "" if activation is Activation.RELU else f", activation={activation}"
    source = f"teacher(rank={rank}, latent_dim={latent_dim}, noise={noise:g}{bent}, seed={seed})"
    return Task(maps.observe(z).numpy(), y.numpy(), rank, source, latent=z.numpy(), jacobian_rank=rank)


@at_home
def composed_teacher(dimensions: Sequence[int], *, num_samples: int, residual: bool = False, seed: int = 0) -> Task:
    """Regression task y = g_m(.. g_1(x)) on inputs that fill their space: its rank is the least inner dimension.

        x ~ N(0, I) in R^(d_0);   h_0 = x,  h_i = g_i(h_{i-1}) with columns of mean 0 and variance 1

    Args:
        dimensions: d_0, .., d_m: of the inputs, between the maps, of the outputs; at least one inner one.
        num_samples: number of rows.
        residual: whether the g_i are random ResNets (two blocks of two matrices, stream of 100) or shallow networks.
        seed: of the points and the maps.

    Returns:
        Task whose `true_rank` is the least of all dimensions, x and y with columns of mean 0 and variance 1.

    Raises:
        ValueError: fewer than three dimensions, one below 1, or fewer than two samples.

    Source: Jacot and Kaiser 2024, appendix B; sizes of the maps are ours. Test: tests/tasks/test_teachers.py.

    >>> tasks.composed_teacher([5, 2, 4], num_samples=30).true_rank
    2
    """
    sizes = tuple(int(d) for d in dimensions)
    if len(sizes) < 3 or min(sizes) < 1 or num_samples < 2:
        raise ValueError(
            f"composed_teacher(dimensions={sizes}, num_samples={num_samples}): needs three dimensions or more, each "
            ">= 1, and two samples."
        )
    points = torch.Generator().manual_seed(seed + 1)  # others than the weights are made of
    x = _standardised(torch.randn(num_samples, sizes[0], generator=points, dtype=torch.float64))
    y = x
    for g in composed_maps(sizes, residual=residual, seed=seed):
        y = _standardised(g(y))
    source = f"composed_teacher({sizes}, residual={residual}, seed={seed})"
    return Task(x.numpy(), y.numpy(), min(sizes), source, jacobian_rank=min(sizes))


def composed_maps(dimensions: Sequence[int], *, residual: bool = False, seed: int = 0) -> list[Map]:
    """The maps g_1, .., g_m behind `composed_teacher` with the same arguments."""
    generator, random = torch.Generator().manual_seed(seed), _random_resnet if residual else _random_shallow
    return [random(d_in, d_out, generator) for d_in, d_out in pairwise(dimensions)]


def _standardised(values: Tensor) -> Tensor:
    return (values - values.mean(0)) / values.std(0, correction=0).clamp_min(torch.finfo(values.dtype).tiny)


def _random_shallow(d_in: int, d_out: int, generator: torch.Generator) -> Map:
    return ShallowNetwork.random(d_in, d_out, generator=generator, dtype=torch.float64)


def _random_resnet(d_in: int, d_out: int, generator: torch.Generator) -> Map:
    seed = int(torch.randint(2**31, (), generator=generator))
    made = ResNet(d_in, d_out, width=max(INNER_WIDTH, d_in), depth=2, block_depth=2, seed=seed, dtype=torch.float64)
    with torch.no_grad():
        for bias in made.biases:
            bias.copy_(0.1 * torch.randn(bias.shape, generator=generator, dtype=torch.float64))
    return made.requires_grad_(False)


def teacher_maps(
    rank: int,
    *,
    d_in: int,
    d_out: int,
    latent_dim: int | None = None,
    activation: Activation = Activation.RELU,
    seed: int = 0,
) -> TeacherMaps:
    """The maps behind `teacher` with the same arguments, to be evaluated or differentiated elsewhere."""
    latent_dim, generator = latent_dim_for(rank, d_in, latent_dim), torch.Generator().manual_seed(seed)
    return _teacher_maps(rank, latent_dim, d_in=d_in, d_out=d_out, generator=generator, activation=activation)


def _teacher_maps(
    rank: int, latent_dim: int, *, d_in: int, d_out: int, generator: torch.Generator, activation: Activation
) -> TeacherMaps:
    shallow = partial(ShallowNetwork.random, generator=generator, dtype=torch.float64, activation=activation)
    observe = shallow(latent_dim, d_in)
    return TeacherMaps(observe, shallow(rank, d_out), rank)


def latent_dim_for(rank: int, d_in: int, latent_dim: int | None, *, what: str = "teacher") -> int:
    """As many hidden coordinates as asked, or max(8, rank + 4), or as many as the inputs can tell apart."""
    most = (d_in - 1) // 2
    if latent_dim is None:
        latent_dim = max(rank, min(most, max(8, rank + 4)))
    if latent_dim < rank:
        raise ValueError(f"{what}(rank={rank}, latent_dim={latent_dim}): needs latent_dim >= rank.")
    if latent_dim > most:
        raise ValueError(
            f"{what}(d_in={d_in}, latent_dim={latent_dim}): needs d_in >= 2 latent_dim + 1 = {2 * latent_dim + 1}, "
            f"so that x determines the latent point. Raise d_in or pass latent_dim <= {most}."
        )
    return latent_dim


@at_home
def teacher_reference(*, num_samples: int = 256, seed: int = 0) -> Task:
    """The small teacher of rank 5 on which solvers are compared: 50 inputs, 50 outputs, 15 latent coordinates.

    Both x and y are centred; the mean of |x|^2 over samples is 50, that of |y|^2 is 1, so a data loss of 1 is the
    constant prediction. Drawn in float32, so the numbers do not depend on the default type.

    Args:
        num_samples: number of rows.
        seed: of the points and the maps; 0 is the problem that benchmarks quote.

    Source: Jacot 2023a, Figure 1 (FC-47).

    >>> tasks.teacher_reference(num_samples=30).true_rank
    5
    """
    generator = torch.Generator().manual_seed(1000 + seed)
    z = torch.randn(num_samples, 15, generator=generator, dtype=torch.float32)
    respond = _reference_network(5, generator)
    observe = _reference_network(15, generator)
    y, x = _spread_to_50(respond(z[:, :5])).double() / math.sqrt(50), _spread_to_50(observe(z)).double()
    source = f"teacher_reference(num_samples={num_samples}, seed={seed})"
    return Task(x.numpy(), y.numpy(), 5, source, latent=z.double().numpy(), jacobian_rank=5)


def _reference_network(d_in: int, generator: torch.Generator) -> ShallowNetwork:
    return ShallowNetwork.random(d_in, 50, generator=generator, dtype=torch.float32)


def _spread_to_50(values: Float[Tensor, "n 50"]) -> Float[Tensor, "n 50"]:
    centred = values - values.mean(0)
    return centred / centred.pow(2).sum(1).mean().sqrt() * math.sqrt(50)
