"""What a stranger's function or module must be found as, after it was called here: its state, and that of chance.

Samples are copied for every call: `differentiation`. Modules that are evaluated at length: `diagnostics.replica`.
"""

import functools
import inspect
import random
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import nn

from isthmus.processes.shared_state import held_in_common


@contextmanager
def chance_kept(*devices: torch.device) -> Generator[None]:
    """Random numbers drawn inside are not missed outside: torch, numpy and Python go on as if nothing had been.

    Args:
        devices: of which random numbers may be drawn, besides the CPU.
    """
    cuda = [device for device in devices if device.type == "cuda"]
    with ExitStack() as stack:
        for device in [None, *cuda]:  # after blocks of several threads chance is as the first of them found it
            stack.enter_context(_kept_for_all(device))
        stack.enter_context(_kept())
        stack.enter_context(torch.random.fork_rng(devices=cuda))
        yield


@held_in_common
@contextmanager
def _kept_for_all(device: torch.device | None) -> Generator[None]:
    """Chance of one device, or of the CPU and all libraries."""
    if device is None:
        with _kept(), torch.random.fork_rng(devices=[]):
            yield
    else:
        state = torch.cuda.get_rng_state(device)
        try:
            yield
        finally:
            torch.cuda.set_rng_state(state, device)


@contextmanager
def _kept() -> Generator[None]:
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - foreign modules may draw from it
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


@contextmanager
def left_as_found(function: object, *devices: torch.device) -> Generator[None]:
    """Buffers, modes and gradients of the modules that a function is or calls are put back; so is chance.

    Args:
        function: a module, a method of one, or what names modules; of those that it reaches otherwise nothing is known.
        devices: as in `chance_kept`.
    """
    parts = [part for module in _modules_of(function) for part in module.modules()]
    modes = [(part, part.training) for part in parts]
    buffers = [
        (part, name, buffer, buffer.detach().clone())
        for part in parts for name, buffer in part.named_buffers(recurse=False)
    ]  # fmt: skip
    parameters = [p for part in parts for p in part.parameters(recurse=False)]
    gradients = [(p, p.grad, None if p.grad is None else p.grad.detach().clone()) for p in parameters]
    try:
        with chance_kept(*devices):
            yield
    finally:
        for part, mode in modes:
            part.training = mode
        with torch.no_grad():
            for part, name, buffer, value in buffers:
                setattr(part, name, buffer.copy_(value))
            for parameter, gradient, value in gradients:
                parameter.grad = None if gradient is None or value is None else gradient.copy_(value)


def _modules_of(function: object) -> list[nn.Module]:
    """The function itself, whose method it is, its defaults, and what it names around itself."""
    if isinstance(function, functools.partial):
        bound: list[object] = [function.func, *function.args, *function.keywords.values()]
        return [module for each in bound for module in _modules_of(each)]
    given, named_only = (getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__"))
    named: list[object] = [
        function, getattr(function, "__self__", None), *(given or ()), *(named_only or {}).values()
    ]  # fmt: skip
    try:
        found = inspect.getclosurevars(function)  # pyright: ignore[reportArgumentType]
        named += [*found.nonlocals.values(), *found.globals.values()]
    except (TypeError, ValueError):  # no function of Python, or a name that stands for nothing yet
        pass
    return [each for each in named if isinstance(each, nn.Module)]
