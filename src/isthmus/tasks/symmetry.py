"""The losses along gradient descent as a task whose hidden symmetry leaves two coordinates (FC-51)."""

import numpy as np
from jaxtyping import Float64

from isthmus.tasks.task import Task


def descent_losses(
    v: Float64[np.ndarray, "n d"], target: Float64[np.ndarray, "d d"], *, step_size: float, num_steps: int
) -> Float64[np.ndarray, "n steps"]:
    """|v v^T - A|_F^2 after 1, .., `num_steps` steps v <- v - 4 eta (v v^T - A) v from each row of v, A symmetric."""
    losses = np.empty((len(v), num_steps))
    constant = (target**2).sum()
    for t in range(num_steps):
        v = v - 4 * step_size * (v * (v**2).sum(1, keepdims=True) - v @ target)
        losses[:, t] = (v**2).sum(1) ** 2 - 2 * (v * (v @ target)).sum(1) + constant
    return losses


def gradient_descent_symmetry(
    *,
    num_samples: int = 3000,
    dimension: int = 30,
    num_steps: int = 30,
    step_size: float = 0.02,
    noise: float = 0.0,
    seed: int = 0,
) -> Task:
    """Regression from a starting point to the losses along its gradient descent on |v v^T - (w w^T + E)|_F^2.

        x = v(0) ~ N(0, I / 16);   y = (loss(v(1)), .., loss(v(T)));   |w| = 1, E symmetric with entries of size `noise`

    Without E the losses depend on v(0) through a^2 = (w . v)^2 and b^2 = |v|^2 - a^2 alone, whose recursion is closed:
    a^2 <- a^2 (1 - 4 eta (r - 1))^2, b^2 <- b^2 (1 - 4 eta r)^2 with r = a^2 + b^2. The rank is 2 (*exact*).

    Args:
        num_samples: number of starting points.
        dimension: of v, at least 2.
        num_steps: number of losses T, at least 2.
        step_size: eta.
        noise: standard deviation of the entries of E; the symmetry then holds up to its size.
        seed: of w, E and the starting points.

    Returns:
        Task with (a^2, b^2) of v(0) in `latent`. The losses differ in scale by orders: standardise each column.

    Raises:
        ValueError: an argument is out of the ranges above, or the descent diverges.

    Source: Jacot 2023b, Figure 2 (FC-51).

    >>> tasks.gradient_descent_symmetry(num_samples=20, dimension=4, num_steps=3).x.shape
    (20, 4)
    """
    if dimension < 2 or num_steps < 2:
        raise ValueError(
            f"gradient_descent_symmetry(dimension={dimension}, num_steps={num_steps}): needs both at least 2."
        )
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(dimension)
    w /= np.linalg.norm(w)
    e = noise * rng.standard_normal((dimension, dimension))
    x = 0.25 * rng.standard_normal((num_samples, dimension))
    with np.errstate(over="ignore", invalid="ignore"):
        y = descent_losses(x, np.outer(w, w) + (e + e.T) / 2**0.5, step_size=step_size, num_steps=num_steps)
    if not np.isfinite(y).all():
        raise ValueError(
            f"gradient_descent_symmetry(step_size={step_size}): the descent diverges. Pass a smaller step."
        )
    a2 = (x @ w) ** 2
    latent = np.stack([a2, (x**2).sum(1) - a2], axis=1)
    source = f"gradient_descent_symmetry(dimension={dimension}, num_steps={num_steps}, noise={noise:g}, seed={seed})"
    return Task(x, y, 2, source, latent=latent, jacobian_rank=2 if noise == 0 else None)
