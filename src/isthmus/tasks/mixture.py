"""Classes around centres in a few hidden coordinates: their rank is chosen, and how much they overlap.

Numbers to predict: `teachers`. Classes in the plane that can be looked at: `planar`.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from isthmus.tasks.images import one_hot
from isthmus.tasks.task import Kind, Task
from isthmus.tasks.teachers import ShallowNetwork, latent_dim_for
from isthmus.theory.home import at_home

REACH = 1.2  # mean distance of the centres from 0, relative to that of the latent points


@at_home
def mixture_classes(
    rank: int,
    *,
    d_in: int,
    num_classes: int,
    num_samples: int,
    latent_dim: int | None = None,
    overlap: float = 0.0,
    seed: int = 0,
) -> Task:
    """Classification by the nearest of some centres in `rank` of the coordinates behind x.

        z ~ N(0, I);   x = g(z);   P(class j) ~ exp(-|(z_1, .., z_rank) - c_j|^2 / (2 overlap))

    with a random shallow network g and Gaussian centres c_j. The logarithms of P differ by affine functions of
    (z_1, .., z_rank), so that the best prediction has rank `rank` *exactly* where classes overlap. Without overlap the
    class is that of the nearest centre; `rank` dimensions are enough, and fewer may be, for a few rows on borders.

    Args:
        rank: number of latent coordinates that the class depends on, at least 1.
        d_in: number of inputs, at least 2 `latent_dim` + 1, so that x determines z.
        num_classes: number of centres, at least `rank` + 1, so that they span `rank` dimensions.
        num_samples: number of rows, at least `num_classes`.
        latent_dim: number of latent coordinates behind x; unless given as for `teacher`.
        overlap: variance of the classes around their centres; that of each latent coordinate is 1.
        seed: of the latent points, the map, the centres and the classes.

    Returns:
        Task with one 0/1 column per class that occurs and z in `latent`; `true_rank` is `rank` where classes overlap or
        rank is 1, else None.

    Raises:
        ValueError: a number is out of the ranges above, or `overlap` is negative.

    Test: tests/tasks/test_mixture.py.

    >>> task = tasks.mixture_classes(2, d_in=5, num_classes=4, num_samples=60)
    >>> task.x.shape, task.y.shape
    ((60, 5), (60, 4))
    """
    latent_dim = latent_dim_for(rank, d_in, latent_dim, what="mixture_classes")
    if not 1 <= rank < num_classes <= num_samples or not 0 <= overlap < math.inf:
        raise ValueError(
            f"mixture_classes(rank={rank}, num_classes={num_classes}, num_samples={num_samples}, overlap={overlap}): "
            "needs 1 <= rank < num_classes <= num_samples and a finite overlap >= 0."
        )
    generator = torch.Generator().manual_seed(seed)
    observe = ShallowNetwork.random(latent_dim, d_in, generator=generator, dtype=torch.float64)
    centres = torch.randn(num_classes, rank, generator=generator, dtype=torch.float64)
    centres *= REACH * math.sqrt(rank) / centres.norm(dim=1).mean()
    z = torch.randn(num_samples, latent_dim, generator=generator, dtype=torch.float64)
    scores = class_scores(z[:, :rank], centres)
    if overlap > 0:
        label = torch.multinomial((scores / overlap).softmax(1), 1, generator=generator)[:, 0]
    else:
        label = scores.argmax(1)
    y, names = one_hot(label.numpy())
    source = (
        f"mixture_classes(rank={rank}, num_classes={num_classes}, latent_dim={latent_dim}, overlap={overlap:g}, "
        f"seed={seed})"
    )
    known = rank if overlap > 0 or rank == 1 else None
    return Task(observe(z).numpy(), y, known, source, Kind.CLASSIFICATION, y_names=names, latent=z.numpy())


def class_scores(z: Float[Tensor, "*n rank"], centres: Float[Tensor, "classes rank"]) -> Float[Tensor, "*n classes"]:
    """-|z - c_j|^2 / 2 up to what is the same for all classes: z . c_j - |c_j|^2 / 2."""
    return z @ centres.T - centres.square().sum(1) / 2
