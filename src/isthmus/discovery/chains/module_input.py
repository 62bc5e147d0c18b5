"""Samples for a module that was made elsewhere: checked, cast to its type, and its own errors told as ours."""

import inspect
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from isthmus.diagnostics.samples import TARGETS, masks_nothing
from isthmus.discovery.chains.rows import batches
from isthmus.errors import DataError, ShapeError
from isthmus.networks.arguments import answer_of, answers_by_row, check_finite, tensor_argument, whole_numbers
from isthmus.networks.copies import on_copy
from isthmus.tasks.foreign import stacked


def samples_argument(x: object, where: str, module: nn.Module) -> Tensor:
    """The samples as one tensor: a data set or the batches of a loader side by side, without their targets.

    Of a dict the first input of the module, where nothing else is in it but targets and masks that mark no padding.

    Raises:
        DataError: it is no array of numbers, or a dict or tuple of several inputs.
    """
    if isinstance(x, Mapping):
        x = _only_input(x, where, module)
    if isinstance(x, Mapping) or (isinstance(x, tuple | list) and any(isinstance(part, Tensor) for part in x)):
        raise DataError(
            f"{where}: needs one tensor, got a {type(x).__name__} of several{_named(x)}. Wrap the module in one whose "
            "forward takes a single tensor (rows without padding need no mask), or torch.cat the batches."
        )
    return tensor_argument(stacked(x, where)[0] if isinstance(x, DataLoader | Dataset) else x, where)


def _only_input(x: Mapping[str, object], where: str, module: nn.Module) -> object:
    left = {name: value for name, value in x.items() if name not in TARGETS and not masks_nothing(name, value)}
    if len(left) != 1:
        return left
    [(name, value)], first = left.items(), next(iter(inspect.signature(module.forward).parameters), "")
    if name != first:
        raise DataError(
            f"{where}: got {name!r}, which is not the first input of {type(module).__name__} ({first}). Wrap the "
            "module in one whose forward takes a single tensor."
        )
    return value


def _check_positional(call: str, module: nn.Module) -> None:
    """Refuse a forward that takes its tensors by name alone."""
    kinds = [parameter.kind for parameter in inspect.signature(module.forward).parameters.values()]
    if kinds and kinds[0] is inspect.Parameter.KEYWORD_ONLY:
        raise DataError(
            f"{call}(module, x): the forward of {type(module).__name__} takes its inputs by name alone. Wrap it in a "
            "module whose forward takes a single tensor."
        )


def _named(x: object) -> str:
    return f" ({', '.join(map(str, x))})" if isinstance(x, Mapping) and x else ""


def checked_input(call: str, module: nn.Module, x: object, *, least_rows: int) -> Tensor:
    """The samples in the floating-point type and on the device of the module; whole numbers stay (they are indices).

    Raises:
        ShapeError: fewer than `least_rows` samples.
        DataError: NaN or infinite entries, or a module that takes its inputs by name alone.
    """
    _check_positional(call, module)
    x = samples_argument(x, f"{call}(module, x): x", module).detach()
    if x.ndim < 2 or len(x) < least_rows:
        raise ShapeError(
            f"{call}(module, x): needs at least {least_rows} samples, the first dimension of x; "
            f"got shape {tuple(x.shape)}. A single sample is x[None]."
        )
    check_finite(x, f"{call}(module, x)")
    like = next((p for p in [*module.parameters(), *module.buffers()] if p.is_floating_point()), None)
    if like is None:
        return x
    return x.to(like) if x.is_floating_point() else x.to(like.device)


def checked_output(call: str, module: nn.Module, x: Tensor, *, alone: bool = False) -> Tensor:
    """The output on samples, batch by batch.

    Args:
        call: who asks, for errors.
        module: gives a tensor, or several, of which the first is taken.
        x: samples.
        alone: whether several are refused.

    Raises:
        DataError: the module fails on the samples (its own error, with what was being done), gives no tensor with
            one entry per sample, several if that is refused, or NaN.
    """
    outputs: list[Tensor] = []
    with torch.no_grad():
        for rows in batches(x):
            try:
                output = on_copy(module, rows)
            except Exception as error:
                detail = " ".join(str(error).split())[:200]
                what = f"running {type(module).__name__} on x of shape {tuple(rows.shape)}"
                raise DataError(
                    f"{call}: {what} failed ({type(error).__name__}: {detail}). Give x as the module takes it."
                    f"{whole_numbers([rows])}"
                ) from error
            answer = answer_of(output, f"{call}: {type(module).__name__}")
            if answer.ndim < 1 or len(answer) != len(rows):
                raise DataError(
                    f"{call}: needs a module that gives one tensor with a row per sample; got {tuple(answer.shape)}. "
                    "Wrap it in a module whose forward picks that tensor."
                )
            if alone and (count := answers_by_row(output, len(rows))) > 1:
                raise DataError(
                    f"{call}: {type(module).__name__} returns {count} tensors with a row per sample, and errors are of "
                    "one. Wrap it in a module whose forward joins those that matter (torch.cat), or picks one."
                )
            outputs.append(answer)
    found = torch.cat(outputs)
    if not bool(torch.isfinite(found).all()):
        raise DataError(f"{call}: {type(module).__name__} returned NaN or infinity for finite data. Check its weights.")
    return found
