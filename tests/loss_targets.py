"""One row for each loss: targets of its own kind made of any numbers, for every test that runs over the losses."""

from collections.abc import Callable

from torch import Tensor

from isthmus.training.losses import LOSSES, Loss

OF: dict[str, Callable[[Tensor], Tensor]] = {
    "squared": lambda y: y,
    "cross_entropy": lambda y: y.argmax(1),
    "huber": lambda y: y,
    "poisson": lambda y: y.exp().mul(2).floor(),
    "gaussian": lambda y: y,
}
assert set(OF) == set(LOSSES), "a loss without targets to test it on"


def targets_of(loss: Loss, y: Tensor) -> Tensor:
    """Targets of the rows of `y` (n, d_out), numbers around 0."""
    return OF[loss.kind](y)
