"""Models of the literature on sufficient dimension reduction: their directions are known. Random: `multi_index`."""

import math
from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.tasks.multi_index import orthonormal_rows
from isthmus.tasks.predictors import Predictors
from isthmus.tasks.task import Task
from isthmus.theory.home import at_home

ACTIVE = 2  # columns that the models depend on: the first two
FLOOR = 0.001  # inside the logarithm of model C
SMALL, SLOPE = 0.5, 0.7  # of the logarithm of the spread: its constant and how it rises


class ReductionModel(StrEnum):
    """The regressions of Chen et al. on the first two columns a and b; rows on their own.

    >>> [member.value for member in tasks.ReductionModel]
    ['A', 'B', 'C']
    """

    A = "A"
    B = "B"
    C = "C"

    def __call__(self, x: Float[Tensor, "*n d_in"]) -> Float[Tensor, "*n 1"]:
        """A: a / (1 + (1 + b)^2) + (1 + b)^2;  B: sin(pi (a + b) / 10) + a^2;  C: (a + b)^2 log(a^2 + b^2 + .001)."""
        a, b = x[..., :1], x[..., 1:2]
        if self is ReductionModel.A:
            return a / (1 + (1 + b).square()) + (1 + b).square()
        if self is ReductionModel.B:
            return torch.sin(math.pi * (a + b) / 10) + a.square()
        return (a + b).square() * torch.log(a.square() + b.square() + FLOOR)


@at_home
def reduction_model(
    model: ReductionModel,
    *,
    num_samples: int,
    predictors: Predictors = Predictors.NORMAL,
    d_in: int = 50,
    noise: float = 0.5,
    seed: int = 0,
) -> Task:
    """Regression y = f(a, b) + noise * N(0, 1) on the first two of many columns: models A, B and C.

    Args:
        model: which f.
        num_samples: number of rows.
        predictors: distribution of the columns.
        d_in: number of columns, at least 2.
        noise: standard deviation of the noise, in the units of f.
        seed: of rows and noise.

    Returns:
        Task with the first two unit vectors in `directions` and f, without noise, in `latent`; `true_rank` is 1.

    Raises:
        ValueError: fewer than 2 columns or 1 row, or a negative noise.

    Source: Chen, Jiao, Qiu and Yu, Annals of Statistics 2024. Test: tests/tasks/test_reduction.py.

    >>> tasks.reduction_model(tasks.ReductionModel.A, num_samples=20, d_in=6).x.shape
    (20, 6)
    """
    if d_in < ACTIVE or num_samples < 1 or not 0 <= noise < math.inf:
        raise ValueError(
            f"reduction_model(d_in={d_in}, num_samples={num_samples}, noise={noise}): needs d_in >= 2, num_samples >= "
            "1 and a finite noise >= 0."
        )
    generator = torch.Generator().manual_seed(seed)
    x = predictors.draw(num_samples, d_in, generator)
    f = model(x)
    y = f + noise * torch.randn(f.shape, generator=generator, dtype=torch.float64)
    source = f"reduction_model({model}, predictors={predictors}, noise={noise:g}, seed={seed})"
    eye = torch.eye(ACTIVE, d_in, dtype=torch.float64)
    return Task(x.numpy(), y.numpy(), 1, source, latent=f.numpy(), jacobian_rank=1, directions=eye.numpy())


@at_home
def spread_index(*, num_samples: int, d_in: int = 10, seed: int = 0) -> Task:
    """Regression whose mean depends on one combination of the inputs and whose spread on another.

        x ~ N(0, I);   y = f1(b1 x) + exp(f2(b2 x)) e,   f1(u) = u + sin(2 u),   f2(v) = .7 v - .5,   e ~ N(0, 1)

    with orthonormal b1 and b2. The mean alone has index rank 1, the distribution 2.

    Args:
        num_samples: number of rows.
        d_in: number of inputs, at least 2.
        seed: of rows, combinations and e.

    Returns:
        Task with b1 and b2 in `directions` and f1, f2 in `latent`. `true_rank` is 2, that of mean and spread together.

    Raises:
        ValueError: fewer than 2 columns or 1 row.

    Test: tests/tasks/test_reduction.py.

    >>> tasks.spread_index(num_samples=30).x.shape
    (30, 10)
    """
    if d_in < ACTIVE or num_samples < 1:
        raise ValueError(f"spread_index(d_in={d_in}, num_samples={num_samples}): needs d_in >= 2, num_samples >= 1.")
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_samples, d_in, generator=generator, dtype=torch.float64)
    directions = orthonormal_rows(ACTIVE, d_in, generator)
    u, v = (x @ directions.T).split(1, -1)
    f1, f2 = u + torch.sin(2 * u), SLOPE * v - SMALL
    y = f1 + torch.exp(f2) * torch.randn(f1.shape, generator=generator, dtype=torch.float64)
    latent = torch.cat([f1, f2], 1).numpy()
    return Task(x.numpy(), y.numpy(), 2, f"spread_index(seed={seed})", latent=latent, directions=directions.numpy())
