"""Targets that depend on a few linear combinations of the inputs, which are chosen. Curved coordinates: `teachers`.

Each task is built from the same public map that the tests differentiate.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.tasks.gradients import Strength
from isthmus.tasks.links import Link, LinkMap
from isthmus.tasks.predictors import Inputs
from isthmus.tasks.task import Task
from isthmus.theory.home import at_home

LEAST_SLOPE, LEAST_SHARE, LEAST_JACOBIAN = 0.05, 0.05, 0.01  # what a link must have in its weakest direction
DRAWS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class MultiIndexMap:
    """x -> h(whiten B x): the function behind `multi_index`, its rows B orthonormal."""

    directions: Float[Tensor, "index_rank d_in"]
    whiten: Float[Tensor, "index_rank index_rank"]
    link: LinkMap

    def coordinates(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n index_rank"]:
        """The combinations, of covariance I over the distribution of the inputs."""
        return x @ self.directions.T @ self.whiten.T

    def __call__(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n d_out"]:
        """Noise-free targets before centring, samples as rows."""
        return self.link(self.coordinates(x))


@at_home
def multi_index(
    index_rank: int,
    *,
    d_in: int,
    num_samples: int,
    d_out: int = 1,
    inputs: Inputs = Inputs.NORMAL,
    link: Link = Link.TANH,
    noise: float = 0.0,
    seed: int = 0,
) -> Task:
    """Regression on targets that depend on exactly `index_rank` linear combinations of the inputs.

        y = h(B x) - mean + noise * std(y) * N(0, I),   B of orthonormal rows, uniformly drawn

    with a random link h. The link depends on every combination at measurable strength, or another one is drawn: with
    coordinates whitened and targets of variance 1, the smallest eigenvalue of the gradient covariance is at least .05
    of their mean, drawing the coordinate of its eigenvector anew changes at least .05 of the variance, and where
    d_out > 1 the Jacobian has min(index_rank, d_out) singular values within a factor 100 at some row.

    Args:
        index_rank: number of combinations, at least 1 and at most `d_in`.
        d_in: number of inputs.
        num_samples: number of rows, at least 2.
        d_out: number of targets.
        inputs: distribution of the rows.
        link: family of the link.
        noise: standard deviation of the noise on each target column, relative to that column's own.
        seed: of the rows, the combinations, the link and the noise.

    Returns:
        Task with B in `directions` and B x, whitened, in `latent`; `true_rank` is min(index_rank, d_out), *exact*.

    Raises:
        ValueError: a number is out of the ranges above, or no link of 1000 was strong enough.

    Source: the multi-index model, Li 1991. Test: tests/tasks/test_multi_index.py.

    >>> task = tasks.multi_index(2, d_in=6, num_samples=30)
    >>> task.x.shape, task.directions.shape
    ((30, 6), (2, 6))
    """
    if not 1 <= index_rank <= d_in or d_out < 1 or num_samples < 2 or not 0 <= noise < math.inf:
        raise ValueError(
            f"multi_index(index_rank={index_rank}, d_in={d_in}, d_out={d_out}, num_samples={num_samples}, "
            f"noise={noise}): needs 1 <= index_rank <= d_in, d_out >= 1, num_samples >= 2 and a finite noise >= 0."
        )
    generator = torch.Generator().manual_seed(seed)
    x, f = _drawn(index_rank, d_in, d_out, num_samples=num_samples, inputs=inputs, link=link, generator=generator)
    y = f(x)
    y = y - y.mean(0)
    y = y + noise * y.std(0, correction=0) * torch.randn(y.shape, generator=generator, dtype=torch.float64)
    source = f"multi_index(index_rank={index_rank}, inputs={inputs}, link={link}, noise={noise:g}, seed={seed})"
    rank = min(index_rank, d_out)
    return Task(
        x.numpy(), y.numpy(), rank, source, latent=f.coordinates(x).numpy(), jacobian_rank=rank,
        directions=f.directions.numpy(),
    )  # fmt: skip


def multi_index_map(
    index_rank: int,
    *,
    d_in: int,
    num_samples: int,
    d_out: int = 1,
    inputs: Inputs = Inputs.NORMAL,
    link: Link = Link.TANH,
    seed: int = 0,
) -> MultiIndexMap:
    """The map behind `multi_index` with the same arguments, to be evaluated or differentiated elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    return _drawn(index_rank, d_in, d_out, num_samples=num_samples, inputs=inputs, link=link, generator=generator)[1]


def _drawn(
    index_rank: int, d_in: int, d_out: int, *, num_samples: int, inputs: Inputs, link: Link, generator: torch.Generator
) -> tuple[Float[Tensor, "n d_in"], MultiIndexMap]:
    """Rows, and a map whose link depends on all of its coordinates on these rows."""
    x, covariance = inputs.draw(num_samples, d_in, generator)
    directions = orthonormal_rows(index_rank, d_in, generator)
    whiten = torch.linalg.inv(torch.linalg.cholesky(directions @ covariance @ directions.T))
    z = x @ directions.T @ whiten.T
    for _ in range(DRAWS):
        h = LinkMap.random(link, index_rank, d_out, generator=generator)
        strength = Strength.of(h, z)
        if (
            strength.slope >= LEAST_SLOPE
            and strength.share >= LEAST_SHARE
            and (d_out == 1 or strength.jacobian >= LEAST_JACOBIAN)
        ):
            return x, MultiIndexMap(directions, whiten, h)
    raise ValueError(
        f"multi_index(index_rank={index_rank}, link={link}, num_samples={num_samples}): none of {DRAWS} links depends "
        "on all combinations strongly enough. Ask for fewer combinations or another link."
    )


def orthonormal_rows(k: int, d: int, generator: torch.Generator) -> Float[Tensor, "k d"]:
    """A basis of a random subspace: the QR factor of a Gaussian matrix."""
    return torch.linalg.qr(torch.randn(d, k, generator=generator, dtype=torch.float64))[0].T.contiguous()
