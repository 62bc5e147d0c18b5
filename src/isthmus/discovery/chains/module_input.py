"""Samples for a module that was made elsewhere: checked, cast to its type, and its own errors told as ours."""

import torch
from torch import Tensor, nn

from isthmus.discovery.chains.rows import BATCH
from isthmus.errors import DataError, ShapeError
from isthmus.networks.arguments import answer_of, module_argument, tensor_argument


def checked_input(call: str, module: nn.Module, x: Tensor, *, least_rows: int) -> Tensor:
    """The samples in the floating-point type and on the device of the module; whole numbers stay (they are indices).

    Raises:
        ShapeError: fewer than `least_rows` samples.
        DataError: NaN or infinite entries.
    """
    module_argument(module, f"{call}(module, x)")
    x = tensor_argument(x, f"{call}(module, x): x").detach()
    if x.ndim < 2 or len(x) < least_rows:
        raise ShapeError(
            f"{call}(module, x): needs at least {least_rows} samples, the first dimension of x; "
            f"got shape {tuple(x.shape)}. A single sample is x[None]."
        )
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        count = int((~torch.isfinite(x)).sum())
        raise DataError(
            f"{call}(module, x): {count} entries of x are NaN or infinite, shape {tuple(x.shape)}. Remove them."
        )
    like = next((p for p in [*module.parameters(), *module.buffers()] if p.is_floating_point()), None)
    if like is None:
        return x
    return x.to(like) if x.is_floating_point() else x.to(like.device)


def checked_output(call: str, module: nn.Module, x: Tensor) -> Tensor:
    """The output on samples, batch by batch.

    Raises:
        DataError: the module fails on the samples (its own error, with what was being done), or gives no tensor with
            one entry per sample.
    """
    outputs: list[Tensor] = []
    with torch.no_grad():
        for rows in x.split(BATCH):
            try:
                output = module(rows)
            except Exception as error:
                detail = " ".join(str(error).split())[:200]
                what = f"running {type(module).__name__} on x of shape {tuple(rows.shape)}"
                raise DataError(
                    f"{call}: {what} failed ({type(error).__name__}: {detail}). Give x as the module takes it."
                ) from error
            answer = answer_of(output, f"{call}: {type(module).__name__}")
            if answer.ndim < 1 or len(answer) != len(rows):
                raise DataError(
                    f"{call}: needs a module that gives one tensor with a row per sample; got {tuple(answer.shape)}. "
                    "Wrap it in a module whose forward picks that tensor."
                )
            outputs.append(answer)
    return torch.cat(outputs)
