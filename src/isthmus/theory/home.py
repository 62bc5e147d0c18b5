"""Functions that compute in the memory of the CPU, and take and give tensors and networks of any device.

Spectra, small systems and exact pieces in float64 gain nothing on a GPU, and libraries for the CPU find them.
"""

import copy
import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor, nn

P = ParamSpec("P")
R = TypeVar("R")
CPU = torch.device("cpu")


def at_home(function: Callable[P, R]) -> Callable[P, R]:
    """The function, on the CPU: what lies elsewhere comes there as a copy, and what is found goes where that lies."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.get_default_device() != CPU:  # a device that is set costs time in every call of torch
            with CPU:  # which older versions of torch do not tell of
                return here(*args, **kwargs)
        return here(*args, **kwargs)

    def here(*args: P.args, **kwargs: P.kwargs) -> R:
        away = abroad((args, kwargs))
        if away is None:
            return function(*args, **kwargs)
        moved: Any = functools.partial(function, *carried(args, CPU, away), **carried(kwargs, CPU, away))
        return carried(moved(), away, CPU)

    return call


def abroad(value: object) -> torch.device | None:
    """The first device that is not the CPU, of tensors and modules in lists, dictionaries and dataclasses; or None."""
    if isinstance(value, Tensor):
        return None if value.device == CPU or value.is_meta else value.device
    if isinstance(value, nn.Module):
        return next(filter(None, map(abroad, (*value.parameters(), *value.buffers()))), None)
    if is_dataclass(value) and not isinstance(value, type):
        return abroad([getattr(value, part.name) for part in fields(value)])
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next(filter(None, map(abroad, cast("Any", entries))), None)


def carried(value: Any, device: torch.device, before: torch.device) -> Any:
    """Tensors, modules and what holds them, on another device; a function takes its tensors there and answers here."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, nn.Module):
        return value if device == CPU and abroad(value) is None else copy.deepcopy(value).to(device)
    if isinstance(value, dict):
        return {key: carried(entry, device, before) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = [carried(entry, device, before) for entry in cast("list[Any]", value)]
        if hasattr(value, "_fields"):
            return type(value)(*entries)
        return entries if isinstance(value, list) else tuple(entries)
    if is_dataclass(value) and not isinstance(value, type):
        there = {part.name: carried(getattr(value, part.name), device, before) for part in fields(value) if part.init}
        return replace(value, **there)
    if callable(value) and not isinstance(value, type):
        return lambda *given: carried(value(*carried(given, before, device)), device, before)
    return value
