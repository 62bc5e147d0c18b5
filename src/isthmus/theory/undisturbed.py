"""What a stranger's function or module must be found as, after it was called here: its state, and that of chance.

Samples are copied for every call: `differentiation`. Modules that are evaluated at length: `diagnostics.replica`.
"""

import functools
import inspect
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isthmus.processes.shared_state import held_in_common

# entries of a container, and of all that are no dicts, above which they are data, in which nothing is looked for
LARGEST_STATE, MOST_STATE = 10_000, 200_000
CONTAINERS = {dict, list, set, deque, OrderedDict, defaultdict}


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
    """Buffers, modes, gradients and attributes of the modules that a function is or calls are put back; so is chance.

    Args:
        function: a module, a method of one, or what names modules; of those that it reaches otherwise nothing is known.
        devices: as in `chance_kept`.
    """
    parts = [part for module in _modules_of(function) for part in module.modules()]
    modes = [(part, part.training) for part in parts]
    parameters = [p for part in parts for p in part.parameters(recurse=False)]
    gradients = [(p, p.grad, None if p.grad is None else p.grad.detach().clone()) for p in parameters]
    try:
        with chance_kept(*devices), ExitStack() as stack:
            for module in _modules_of(function):
                stack.enter_context(attributes_kept(module, copied=True))
            yield
    finally:
        for part, mode in modes:
            part.training = mode
        with torch.no_grad():
            for parameter, gradient, value in gradients:
                parameter.grad = None if gradient is None or value is None else gradient.copy_(value)


@contextmanager
def attributes_kept(module: nn.Module, *, copied: bool = False) -> Generator[None]:
    """What a module's parts hold in attributes is put back: counters, caches, tables that a first call makes, buffers.

    So is what lists, dicts, sets and deques in them hold, and objects of classes that stand beside the module's own.
    Hooks stay as they are: who holds their handles has put them there, or taken them off. Objects of other files are
    not looked into: what a trainer or a logger does meanwhile is theirs; nor are slots, nor containers of classes that
    are not Python's, which may refuse to be written.

    Args:
        module: with all modules that it holds, in lists too.
        copied: whether copies stand in the place of tensors meanwhile, but for parameters and views of them: what is
            written into one of them in place is put back too, and nothing is written into the tensors themselves.
    """
    found = [(held, _held_by(held)) for held in _holders(module)]
    scripted = [part for part in module.modules() if copied and isinstance(part, torch.jit.ScriptModule)]
    # of which buffers stand in no attribute
    numbers = [(b, b.detach().clone()) for part in scripted for b in part.buffers(recurse=False)]
    try:
        if copied:
            _put_copies(found, {_storage(p) for p in module.parameters()} - {0})
        yield
    finally:
        with torch.no_grad():
            for buffer, value in numbers:
                buffer.copy_(value)
        errors = [error for held, before in found if (error := _put_back(held, before)) is not None]
        if errors:
            raise errors[0]


def _holders(module: nn.Module) -> Iterator[Any]:
    """The dicts of attributes and the containers in which a module and all that it holds keep things, each once."""
    seen, left = set[int](), MOST_STATE
    waiting: list[tuple[Any, str]] = [(vars(module), type(module).__module__)]
    while waiting:
        held, file = waiting.pop()
        if id(held) in seen:
            continue
        seen.add(id(held))
        if type(held) in CONTAINERS:
            yield held
        if type(held) is not dict:
            left -= len(held)
        for value in _inside(held) if left > 0 or type(held) is dict else ():
            if isinstance(value, nn.Module):
                waiting.append((vars(value), type(value).__module__))
            elif isinstance(value, dict | list | tuple | set | deque):
                waiting.append((value, file))
            elif type(value).__module__ == file and not isinstance(value, Tensor) and hasattr(value, "__dict__"):
                waiting.append((vars(value), file))


def _inside(held: Any) -> Iterator[object]:
    """What may hold things in its turn: of an object's attributes and of a container that is no data."""
    if len(held) > LARGEST_STATE:
        return
    for key, value in held.items() if isinstance(held, dict) else ((None, value) for value in held):
        if not (isinstance(key, str) and "_hooks" in key):
            yield value


def _held_by(held: Any) -> Any:
    """What a container holds, in a plain one: the classes of strangers may copy themselves as they like."""
    return dict(held.items()) if isinstance(held, dict) else set(held) if isinstance(held, set) else list(held)


def _put_copies(found: list[tuple[Any, Any]], parameters: set[int]) -> None:
    copies = dict[int, Tensor]()
    for held, before in found:
        if isinstance(held, set):
            continue
        for key, value in before.items() if isinstance(held, dict) else enumerate(before):
            if isinstance(value, Tensor) and not isinstance(value, nn.Parameter) and _storage(value) not in parameters:
                held[key] = copies.setdefault(id(value), _copy_of(value))


def _copy_of(tensor: Tensor) -> Tensor:
    """A copy that takes no more memory than the tensor: one that is expanded stays so."""
    tensor = tensor.detach()
    if not _storage(tensor) or tensor.untyped_storage().nbytes() >= tensor.numel() * tensor.element_size():
        return tensor.clone()
    whole = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0).clone()
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _storage(tensor: Tensor) -> int:
    """Where its numbers lie; 0 where it has no storage of its own, as a sparse one."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError, ValueError):  # ValueError: a lazy one
        return 0


def _put_back(held: Any, before: Any) -> Exception | None:
    """Into the same container what it held; it is not written into where it still holds that. What was raised."""
    try:
        if isinstance(held, dict):
            if [*held] != [*before]:  # the order of a cache says what was used last
                held.clear()
            for key, value in before.items():
                if key not in held or held[key] is not value:
                    held[key] = value
        elif len(held) != len(before) or any(new is not old for new, old in zip(held, before, strict=True)):
            held.clear()
            held.update(before) if isinstance(held, set) else held.extend(before)
    except Exception as error:  # noqa: BLE001 - keys of strangers: all others are put back all the same
        return error
    return None


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
