"""Random smooth functions of a few coordinates. How strongly they depend on each: `gradients`."""

import math
from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

HIDDEN = 40  # features of a tanh network


class Link(StrEnum):
    """What a link is made of: weighted sums of bent linear functions of the coordinates.

    >>> [member.value for member in tasks.Link]
    ['tanh', 'polynomial', 'ratio', 'sine', 'even']
    """

    TANH = "tanh"
    POLYNOMIAL = "polynomial"
    RATIO = "ratio"
    SINE = "sine"
    EVEN = "even"

    def bend(self, u: Float[Tensor, "*n features"]) -> Float[Tensor, "*n bent"]:
        """Tanh u; u, u^2 and u^3; s / (1 + t^2); sin u; cos u, log(1 + u^2) and exp(-u^2 / 2): part by part."""
        if self is Link.TANH:
            return torch.tanh(u)
        if self is Link.SINE:
            return torch.sin(u)
        if self is Link.RATIO:
            s, t = u.chunk(2, -1)
            return s / (1 + t.square())
        first, second, third = u.chunk(3, -1)
        if self is Link.POLYNOMIAL:
            # divided by the roots of the factorials, as if each power were a normalised Hermite polynomial
            return torch.cat([first, second.square() / math.sqrt(2), third**3 / math.sqrt(6)], -1)
        return torch.cat([torch.cos(first), torch.log1p(second.square()), torch.exp(-third.square() / 2)], -1)

    def features(self, k: int) -> int:
        """Number of linear functions before they are bent."""
        return {Link.TANH: HIDDEN, Link.SINE: k + 2, Link.RATIO: 2 * (k + 1)}.get(self, 3 * (k + 1))

    @property
    def steepness(self) -> float:
        """Root mean square of the linear functions over coordinates of variance 1."""
        return {Link.TANH: 1.5, Link.SINE: 1.5, Link.EVEN: 1.5}.get(self, 1.0)

    @property
    def shift(self) -> float:
        """Standard deviation of the constants: none in even functions."""
        return {Link.TANH: 1.0, Link.SINE: 2.0, Link.EVEN: 0.0}.get(self, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class LinkMap:
    """h(z) = bend(z U^T + b) V: differentiable, rows on their own."""

    link: Link
    inner: Float[Tensor, "features k"]
    bias: Float[Tensor, " features"]
    outer: Float[Tensor, "bent d_out"]

    @classmethod
    def random(cls, link: Link, k: int, d_out: int, *, generator: torch.Generator) -> "LinkMap":
        """Gaussian weights of the scales that the family has."""
        features = link.features(k)
        inner = link.steepness * torch.randn(features, k, generator=generator, dtype=torch.float64) / math.sqrt(k)
        bias = link.shift * torch.randn(features, generator=generator, dtype=torch.float64)
        bent = len(link.bend(bias))
        return cls(link, inner, bias, torch.randn(bent, d_out, generator=generator, dtype=torch.float64))

    def __call__(self, z: Float[Tensor, "*n k"]) -> Float[Tensor, "*n d_out"]:
        """Values, samples as rows."""
        return self.link.bend(z @ self.inner.T + self.bias) @ self.outer
