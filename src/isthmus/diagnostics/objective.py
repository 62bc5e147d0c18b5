"""The data loss of a module batch by batch, in the house's convention: summed over outputs, averaged over samples.

Training has its own, differentiated by hand: `training.losses`.
"""

import torch
from torch import Tensor

from isthmus.errors import DataError, ShapeError
from isthmus.networks.arguments import tensor_argument
from isthmus.training.losses import Loss, usual_loss


class LossOverData:
    """The loss that is named; else squared error for numbers, cross-entropy for whole numbers (classes).

    Args:
        y: targets, one row per sample: of the shape of the outputs, or classes (n,) or (n, tokens).
        num: number of samples.
        loss: None for the usual one.

    Raises:
        DataError: NaN or infinity in y, or targets that the loss has no value for.
    """

    def __init__(self, y: Tensor, num: int, loss: Loss | None = None) -> None:
        self.loss = loss
        self.y, self.num = tensor_argument(y, "diagnose(module, x, y): y"), num
        if self.y.ndim == 0:
            raise ShapeError(f"diagnose(module, x, y): needs one row of y per row of x, {num}; got a single number.")
        if self.y.dtype.is_floating_point and not bool(torch.isfinite(self.y).all()):
            raise DataError("diagnose(module, x, y): needs finite targets. Remove rows with NaN or infinity first.")
        if loss is not None:
            loss.check(self.y, "diagnose(module, x, y): y")

    def part(self, output: Tensor, start: int) -> Tensor:
        """What the rows from `start` on contribute to the mean over all samples."""
        y = self.y[start : start + len(output)].to(output.device)
        whole = not self.y.dtype.is_floating_point or (self.loss is not None and self.loss.classes)
        numbered = whole and output.ndim == y.ndim + 1 and output.shape[:-1] == y.shape
        loss = self.loss or usual_loss(classes=numbered)
        if loss.classes:
            if not numbered:
                raise ShapeError(
                    f"diagnose(module, x, y, loss={loss.name!r}): needs class numbers of shape "
                    f"{tuple(output.shape[:-1])}, got {tuple(y.shape)}."
                )
            if len(y) and not (int(y.min()) >= 0 and int(y.max()) < output.shape[-1]):
                odd = int(y.min()) if int(y.min()) < 0 else int(y.max())
                raise DataError(
                    f"diagnose(module, x, y): needs classes from 0 to {output.shape[-1] - 1}, as there are outputs; "
                    f"got {odd}. Leave out rows without a class."
                )
            return loss.summed(output, y) / (self.num * (y[0].numel() if len(y) else 1))
        y = y.to(output.dtype)
        y = y[:, None] if y.ndim == 1 and output.ndim == 2 else y
        asked = (*output.shape[:-1], output.shape[-1] // loss.per_target)
        if y.shape != asked or len(self.y) != self.num:  # broadcasting would compare every row with every other
            needed, got = (self.num, *asked[1:]), (len(self.y), *y.shape[1:])
            got = tuple(self.y.shape) if self.y.ndim == 1 and output.shape[1:] != (1,) else got
            raise ShapeError(f"diagnose(module, x, y): needs y of shape {needed}, as the network answers; got {got}.")
        return loss.summed(output, y) / self.num
