"""Targets that move in a few directions, which are chosen: y = B g(x) + c. Combinations of inputs: `multi_index`."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.tasks.gradients import gradients
from isthmus.tasks.links import Link, LinkMap
from isthmus.tasks.multi_index import orthonormal_rows
from isthmus.tasks.predictors import Inputs
from isthmus.tasks.task import Task
from isthmus.theory.home import at_home

WEAKEST = 0.5  # standard deviation of the weakest mode; that of the strongest is 1
LEAST_JACOBIAN = 0.01
DRAWS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class MultiModeMap:
    """x -> whiten (h(A x) - mean) scaled, then led into the targets by orthonormal modes."""

    directions: Float[Tensor, "index_rank d_in"]
    link: LinkMap
    mean: Float[Tensor, " mode_rank"]
    scores: Float[Tensor, "mode_rank mode_rank"]
    modes: Float[Tensor, "mode_rank d_out"]
    constant: Float[Tensor, " d_out"]

    def curved(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n mode_rank"]:
        """g(x), uncorrelated on the rows it was made from."""
        return (self.link(x @ self.directions.T) - self.mean) @ self.scores

    def __call__(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n d_out"]:
        """Noise-free targets, samples as rows."""
        return self.curved(x) @ self.modes + self.constant


@at_home
def multi_mode(
    mode_rank: int,
    *,
    d_in: int,
    d_out: int,
    num_samples: int,
    index_rank: int | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> Task:
    """Regression on targets that take values in an affine space of exactly `mode_rank` dimensions.

        x ~ N(0, I);   y = g(A x) B + c + noise * size * N(0, I),   B of orthonormal rows, uniformly drawn

    with a random tanh network g whose `mode_rank` outputs are uncorrelated on the rows, of standard deviations from 1
    down to .5, so that every mode moves; size is the root mean square of y - c over rows and columns. A has
    `index_rank` orthonormal rows; with fewer of them than modes the targets lie on a curved surface in that space.

    Args:
        mode_rank: number of modes, at least 1 and at most `d_out`.
        d_in: number of inputs.
        d_out: number of targets.
        num_samples: number of rows, more than `mode_rank`.
        index_rank: number of combinations of inputs that y depends on; `d_in` unless given.
        noise: standard deviation of the noise on every target column, relative to the size of y.
        seed: of the rows, the maps and the noise.

    Returns:
        Task with B in `modes` and A in `directions`; `true_rank` is min(mode_rank, index_rank), *exact*.

    Raises:
        ValueError: a number is out of the ranges above, or no network of 1000 had a Jacobian of that rank.

    Test: tests/tasks/test_multi_mode.py.

    >>> task = tasks.multi_mode(2, d_in=5, d_out=6, num_samples=30)
    >>> task.y.shape, int(np.linalg.matrix_rank(task.y - task.y.mean(0), tol=1e-9))
    ((30, 6), 2)
    """
    k = d_in if index_rank is None else index_rank
    if not (1 <= mode_rank <= d_out and 1 <= k <= d_in and mode_rank < num_samples and 0 <= noise < math.inf):
        raise ValueError(
            f"multi_mode(mode_rank={mode_rank}, d_in={d_in}, d_out={d_out}, num_samples={num_samples}, "
            f"index_rank={index_rank}, noise={noise}): needs 1 <= mode_rank <= d_out, 1 <= index_rank <= d_in, more "
            "rows than modes and a finite noise >= 0."
        )
    generator = torch.Generator().manual_seed(seed)
    x, f = _drawn(mode_rank, k, d_in=d_in, d_out=d_out, num_samples=num_samples, generator=generator)
    clean = f(x)
    size = (clean - f.constant).square().mean().sqrt()
    y = clean + noise * size * torch.randn(clean.shape, generator=generator, dtype=torch.float64)
    source = f"multi_mode(mode_rank={mode_rank}, index_rank={k}, noise={noise:g}, seed={seed})"
    rank = min(mode_rank, k)
    return Task(
        x.numpy(), y.numpy(), rank, source, latent=f.curved(x).numpy(), jacobian_rank=rank,
        directions=f.directions.numpy(), modes=f.modes.numpy(),
    )  # fmt: skip


def multi_mode_map(
    mode_rank: int, *, d_in: int, d_out: int, num_samples: int, index_rank: int | None = None, seed: int = 0
) -> MultiModeMap:
    """The map behind `multi_mode` with the same arguments."""
    generator, k = torch.Generator().manual_seed(seed), d_in if index_rank is None else index_rank
    return _drawn(mode_rank, k, d_in=d_in, d_out=d_out, num_samples=num_samples, generator=generator)[1]


def _drawn(
    mode_rank: int, k: int, *, d_in: int, d_out: int, num_samples: int, generator: torch.Generator
) -> tuple[Float[Tensor, "n d_in"], MultiModeMap]:
    """Rows, and a map whose Jacobian has full rank on some of them and whose scores are uncorrelated."""
    x, _ = Inputs.NORMAL.draw(num_samples, d_in, generator)
    directions = orthonormal_rows(k, d_in, generator)
    modes = orthonormal_rows(mode_rank, d_out, generator)
    constant = torch.randn(d_out, generator=generator, dtype=torch.float64)
    sizes = torch.linspace(1.0, WEAKEST, mode_rank, dtype=torch.float64)
    for _ in range(DRAWS):
        h = LinkMap.random(Link.TANH, k, mode_rank, generator=generator)
        z = x @ directions.T
        values = h(z)
        factor = torch.linalg.cholesky(torch.cov(values.T, correction=0).reshape(mode_rank, mode_rank))
        scores = torch.linalg.inv(factor).T * sizes
        s = torch.linalg.svdvals(scores.T @ gradients(h, z))
        if float((s[:, -1] / s[:, 0]).max()) >= LEAST_JACOBIAN:
            return x, MultiModeMap(directions, h, values.mean(0), scores, modes, constant)
    raise ValueError(f"multi_mode(mode_rank={mode_rank}): none of {DRAWS} networks has a Jacobian of that rank.")
