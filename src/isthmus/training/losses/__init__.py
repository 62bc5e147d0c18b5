"""Data losses: one class each, and the registry by which they are asked for.

A loss is an object that training, discovery, tables and words ask for what depends on it (`loss`); with targets and
weights it is a `DataLoss`. Here alone a name becomes a loss.
"""

from dataclasses import fields, replace

from isthmus.training.losses.cross_entropy import CrossEntropy
from isthmus.training.losses.data_loss import CONSTANT, DataLoss, Digest, identify, is_constant
from isthmus.training.losses.gaussian import Gaussian
from isthmus.training.losses.huber import Huber
from isthmus.training.losses.loss import Loss, weighted_mean
from isthmus.training.losses.poisson import Poisson
from isthmus.training.losses.squared import Squared

SQUARED, CROSS_ENTROPY = Squared(), CrossEntropy()
LOSSES: dict[str, Loss] = {loss.kind: loss for loss in (SQUARED, CROSS_ENTROPY, Huber(), Poisson(), Gaussian())}

__all__ = [
    "CONSTANT", "CROSS_ENTROPY", "LOSSES", "SQUARED", "DataLoss", "Digest", "Loss", "identify", "is_constant", "known",
    "loss_argument", "usual_loss", "weighted_mean",
]  # fmt: skip


def loss_argument(loss: str | Loss, where: str) -> Loss:
    """The loss that is meant: one itself, or its kind as a word with parameters behind colons.

    Raises:
        ValueError: an unknown one, or a parameter that it refuses; begins with `where` and lists the known ones.
    """
    if isinstance(loss, Loss):
        return loss
    kind, *numbers = str(loss).split(":")
    try:
        usual = LOSSES[kind]
        names = [field.name for field in fields(usual)]
        return replace(usual, **dict(zip(names, map(float, numbers), strict=True))) if numbers else usual
    except (KeyError, ValueError):
        raise ValueError(f"{where}(loss={loss!r}): needs one of {known()}.") from None


def known() -> str:
    """The losses that there are, as they are typed."""
    return ", ".join(repr(kind) for kind in LOSSES) + "".join(
        f", or '{':'.join([kind, *(field.name.upper() for field in fields(loss))])}'"
        for kind, loss in LOSSES.items() if fields(loss)
    )  # fmt: skip


def usual_loss(*, classes: bool) -> Loss:
    """What is meant where no loss is named: squared error of numbers, cross-entropy of classes."""
    return CROSS_ENTROPY if classes else SQUARED
