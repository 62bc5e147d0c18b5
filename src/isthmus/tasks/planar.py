"""Tasks in the plane that can be looked at: the X-cross, whose two ranks differ, and classes in S-shaped bands.

Curves and surfaces to autoencode: `manifolds`.
"""

import numpy as np
from jaxtyping import Float64

from isthmus.tasks.images import one_hot
from isthmus.tasks.task import Kind, Task


def x_cross_map(x: Float64[np.ndarray, "n 2"]) -> Float64[np.ndarray, "n 2"]:
    """f(x) = m (sign x_0, sign x_1) with m = min(|x_0|, |x_1|): zero on the axes, the identity on the diagonals."""
    return np.sign(x) * np.abs(x).min(1, keepdims=True)


def x_cross(*, num_samples: int = 1000, seed: int = 0) -> Task:
    """Regression on the map that has Jacobian rank 1 everywhere and bottleneck rank 2, x uniform in [-1, 1]^2.

    On the diagonals it is the identity, and their cross does not embed in a line. (The map as printed in the paper has
    its two cases swapped and jumps at the axes; this is the continuous one.)

    Source: Jacot 2023a, Example 1 (FC-05).

    >>> task = tasks.x_cross(num_samples=30)
    >>> task.true_rank, task.jacobian_rank
    (2, 1)
    """
    x = np.random.default_rng(seed).uniform(-1, 1, (num_samples, 2))
    return Task(x, x_cross_map(x), 2, f"x_cross(num_samples={num_samples}, seed={seed})", jacobian_rank=1)


def inverted_s_classes(
    *, num_samples: int = 1000, num_classes: int = 4, amplitude: float = 1.6, gap: float = 1.0, seed: int = 0
) -> Task:
    """Classification of bands shaped like an inverted S, copies of each other shifted to the right.

        class j = { (u - amplitude sin(pi v / 2), v) : |u - j gap| <= gap / 4, |v| <= 2 }

    The bands overhang each other but stay gap / 2 apart along the first axis, so u alone tells the class: the
    bottleneck rank is *exactly* 1, in a coordinate that no linear map gives.

    Args:
        num_samples: number of rows.
        num_classes: number of bands, at least 2.
        amplitude: half the width of one S; above `gap` bands overhang.
        gap: shift from one band to the next, positive.
        seed: of the points.

    Returns:
        Task with one 0/1 column per class and (u, v) in `latent`.

    Raises:
        ValueError: fewer than 2 classes or fewer rows than classes, or `gap` is not positive.

    Source: Jacot 2023a, Figure 2 (FC-48), whose geometry the paper leaves open.

    >>> tasks.inverted_s_classes(num_samples=20).kind.value
    'classification'
    """
    if not 2 <= num_classes <= num_samples or not gap > 0:
        raise ValueError(
            f"inverted_s_classes(num_samples={num_samples}, num_classes={num_classes}, gap={gap}): needs "
            "2 <= num_classes <= num_samples and gap > 0."
        )
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(num_samples) % num_classes)
    u = gap * (label + rng.uniform(-0.25, 0.25, num_samples))
    v = rng.uniform(-2, 2, num_samples)
    x = np.stack([u - amplitude * np.sin(np.pi * v / 2), v], axis=1)
    y, names = one_hot(label)
    source = f"inverted_s_classes(num_samples={num_samples}, num_classes={num_classes}, seed={seed})"
    return Task(x, y, 1, source, Kind.CLASSIFICATION, y_names=names, latent=np.stack([u, v], axis=1))
