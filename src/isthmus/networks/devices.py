"""On which device something is computed: what a caller may say, where a module lies, and a module elsewhere meanwhile.

On a device lie the networks while they are trained and the tensors of their solvers. What is read off them, kept in
files or handed to a caller lies in the memory of the CPU, so that a machine without the device can go on.
"""

import copy
import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from torch import nn

from isthmus.theory.home import CPU as CPU

M = TypeVar("M", bound=nn.Module)
P = ParamSpec("P")
R = TypeVar("R")
_usual: ContextVar[torch.device | None] = ContextVar("usual device", default=None)


def device_argument(device: torch.device | str | None, said: str) -> torch.device | None:
    """The device that a caller means; None is left as it is.

        "cpu"     "cuda", "cuda:1": a GPU that torch sees     "auto": the GPU where there is one, else the CPU

    Args:
        device: by name or as an object of torch.
        said: what the caller wrote, for errors.

    Raises:
        ValueError: none of these, or a GPU that torch does not see.
    """
    if device is None:
        return None
    there = torch.cuda.device_count()
    if device == "auto":
        return torch.device("cuda", torch.cuda.current_device()) if there else CPU
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type not in {"cpu", "cuda"} or (found.type == "cpu" and found.index):
        raise ValueError(f"{said[:80]}: needs cpu, cuda, cuda:1 and so on, or auto.")
    if found.type == "cuda" and (found.index or 0) >= there:
        seen = {0: "no CUDA device", 1: "one CUDA device"}.get(there, f"{there} CUDA devices")
        raise ValueError(
            f"{said[:80]}: torch {torch.__version__} sees {seen}. Give cpu, or auto, which is a GPU where there is one."
        )
    return found if found.type == "cpu" else torch.empty(0, device=found).device  # with its number


def device_of(module: nn.Module) -> torch.device:
    """Where the parameters are; the CPU for a module without."""
    tensor = next(iter([*module.parameters(), *module.buffers()]), None)
    return tensor.device if tensor is not None else CPU


def on_device(module: M, device: torch.device | None) -> M:
    """The module, or where it is elsewhere a copy of it there."""
    if device is None or device_of(module) == device:
        return module
    return copy.deepcopy(module).to(device)


def made_on_cpu(call: Callable[P, R]) -> Callable[P, R]:
    """A function that makes its tensors on the CPU whatever `torch.set_default_device` says, and draws them there."""

    @functools.wraps(call)
    def called(*arguments: P.args, **named: P.kwargs) -> R:
        # a device that is set costs time in every call of torch
        if torch.get_default_device() == CPU or _relies_on_it(*arguments, *named.values()):
            return call(*arguments, **named)
        with CPU:
            return call(*arguments, **named)

    return called


def with_gradients(call: Callable[P, R]) -> Callable[P, R]:
    """A function that takes derivatives also where it is called within `torch.inference_mode`."""

    @functools.wraps(call)
    def called(*arguments: P.args, **named: P.kwargs) -> R:
        if not torch.is_inference_mode_enabled():
            return call(*arguments, **named)
        with torch.inference_mode(False):
            return call(*arguments, **named)

    return called


def _relies_on_it(*given: object) -> bool:
    """Whether one is a stranger's module on another device, which may make tensors where torch makes them."""
    return any(
        isinstance(one, nn.Module) and device_of(one) != CPU and not type(one).__module__.startswith("isthmus.")
        for one in given
    )


def _plain(value: object) -> object:
    """A whole number of numpy as Python's own, of which torch takes sizes."""
    return int(value) if isinstance(value, np.integer) else value


def drawn_on_cpu(init: Callable[Concatenate[M, P], None]) -> Callable[Concatenate[M, P], None]:
    """A module's `__init__` that draws on the CPU, the same for a seed, and puts weights where torch would.

    Sizes may be numbers of numpy.
    """
    begin: Callable[..., None] = init  # whose arguments are changed on the way

    @functools.wraps(init)
    def called(module: M, /, *given: P.args, **by_name: P.kwargs) -> None:
        arguments: tuple[Any, ...] = tuple(map(_plain, given))
        named = {name: _plain(value) for name, value in by_name.items()}
        if (usual := torch.get_default_device()) == CPU:
            return begin(module, *arguments, **named)
        with CPU:
            begin(module, *arguments, **named)
        module.to(usual)
        return None

    return called


@contextmanager
def trained_on(device: torch.device | None) -> Generator[None]:
    """Where `fit` trains in this thread while the block runs, unless its caller says where; None changes nothing."""
    before = _usual.set(device or _usual.get())
    try:
        yield
    finally:
        _usual.reset(before)


def usual_device() -> torch.device | None:
    """What `trained_on` says here."""
    return _usual.get()


@contextmanager
def lying_on(module: nn.Module, device: torch.device | None) -> Generator[None]:
    """The module itself lies there while the block runs, and afterwards where it was."""
    before = device_of(module)
    if device is None or before == device:
        yield
        return
    module.to(device)
    try:
        yield
    finally:
        module.to(before)
