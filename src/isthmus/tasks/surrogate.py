"""Negative controls: data with the linear structure of a task and nothing else. The tasks: sibling files."""

import numpy as np
from jaxtyping import Float64

from isthmus.tasks.task import Kind, Task


def covariance_surrogate(
    x: Float64[np.ndarray, "n d_in"], seed: int = 0, *, y: Float64[np.ndarray, "n_y d_out"] | None = None
) -> Task:
    """Gaussian data with the mean and covariance of `x` (jointly with `y`): what the second moments alone would say.

        rows ~ N(mean(x), cov(x)),   as many as x has

    All nonlinear structure is gone, so a reading of the rank that stays is a reading of the covariance. The rows are
    independent, and no sharp rank is expected below the rank of the covariance.

    Args:
        x: inputs of the task.
        seed: of the draw.
        y: targets of the task, unless it autoencodes.

    Returns:
        Task of the same kind of targets, without a true rank.

    Raises:
        ValueError: fewer than 2 rows, or y of another length.

    >>> tasks.covariance_surrogate(np.random.default_rng(0).normal(size=(30, 4))).x.shape
    (30, 4)
    """
    if len(x) < 2 or (y is not None and len(y) != len(x)):
        raise ValueError(
            f"covariance_surrogate(x, y): needs at least 2 rows and as many of y as of x, got {len(x)} of x"
            + ("." if y is None else f" and {len(y)} of y.")
        )
    joint = x if y is None else np.hstack([x, y])
    mean = joint.mean(0)
    _, s, axes = np.linalg.svd(joint - mean, full_matrices=False)
    normal = np.random.default_rng(seed).standard_normal((len(x), len(s)))
    drawn = mean + (normal * s / np.sqrt(len(x) - 1)) @ axes
    source = f"covariance_surrogate(seed={seed})"
    if y is None:
        return Task(drawn, None, None, source, Kind.AUTOENCODING)
    d_in = x.shape[1]
    return Task(np.ascontiguousarray(drawn[:, :d_in]), np.ascontiguousarray(drawn[:, d_in:]), None, source)
