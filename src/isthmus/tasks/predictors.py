"""Distributions of the inputs of random tasks, and of models of the literature. The tasks: the sibling files."""

import math
from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

DEGREES = 5  # of Student's t: the fewest with a finite fourth moment, so that spans can be estimated at all
MIXING = 0.5  # how far the columns of correlated inputs are mixed


class Inputs(StrEnum):
    """How the rows of x are drawn; mean 0, variance 1 but for the correlated ones.

    >>> [member.value for member in tasks.Inputs]
    ['normal', 'uniform', 'correlated', 'heavy-tailed']
    """

    NORMAL = "normal"
    UNIFORM = "uniform"
    CORRELATED = "correlated"
    HEAVY_TAILED = "heavy-tailed"

    def draw(
        self, num_samples: int, d_in: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "n d_in"], Float[Tensor, "d_in d_in"]]:
        """Rows and the covariance of the distribution that they are drawn from.

        Independent normal columns; uniform ones; normal ones times I + N / (2 sqrt(d_in)) with a Gaussian matrix N;
        Student's t with 5 degrees of freedom.
        """
        shape, eye = (num_samples, d_in), torch.eye(d_in, dtype=torch.float64)
        if self is Inputs.UNIFORM:
            return 3**0.5 * (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1), eye
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        if self is Inputs.HEAVY_TAILED:
            squares = torch.randn((*shape, DEGREES), generator=generator, dtype=torch.float64).square().sum(-1)
            return x * ((DEGREES - 2) / squares).sqrt(), eye
        if self is Inputs.CORRELATED:
            noise = torch.randn(d_in, d_in, generator=generator, dtype=torch.float64)
            mixing = eye + MIXING * noise / d_in**0.5
            return x @ mixing, mixing.T @ mixing
        return x, eye


class Predictors(StrEnum):
    """How the columns of these models are drawn, independently.

    >>> [member.value for member in tasks.Predictors]
    ['normal', 'poisson', 't4']
    """

    NORMAL = "normal"
    POISSON = "poisson"
    T4 = "t4"

    def draw(self, num_samples: int, d_in: int, generator: torch.Generator) -> Float[Tensor, "n d_in"]:
        """N(0, 1/2); counts of mean 1; Student's t with 4 degrees of freedom."""
        shape = (num_samples, d_in)
        if self is Predictors.POISSON:
            return torch.poisson(torch.ones(shape, dtype=torch.float64), generator=generator)
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        if self is Predictors.NORMAL:
            return x * math.sqrt(0.5)
        squares = torch.randn((*shape, 4), generator=generator, dtype=torch.float64).square().sum(-1)
        return x * (4 / squares).sqrt()
