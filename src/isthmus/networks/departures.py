"""The one place that decides whether a module computes what its class and its weights say.

Whoever reads weights in the place of calling the module asks here first: hooks, a forward of one's own and tensors
that are recomputed at every access let it compute something else. Steps that are read from a graph: `stage_kinds`.
"""

from functools import cache
from types import FunctionType

from torch import nn
from torch.nn.modules import module as calls
from torch.nn.utils import parametrize

# what a subclass may define and a module still compute the same
_HARMLESS = frozenset(
    {
        "__init__", "__doc__", "__module__", "__qualname__", "__dict__", "__weakref__", "__annotations__",
        "__parameters__", "__orig_bases__", "__abstractmethods__", "__firstlineno__", "__static_attributes__",
        "__annotate__", "__annotate_func__", "__annotations_cache__", "__repr__", "_abc_impl", "extra_repr",
        "description", "from_description", "from_layers", "reseed", "reset_parameters",
    }
)  # fmt: skip
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_EVERYWHERE = ("_global_forward_hooks", "_global_forward_pre_hooks")
_TENSORS = ("weight", "bias", "weights", "biases", "embedding", "unembedding", "block_weights")


def departure(module: nn.Module, *kinds: type[nn.Module]) -> str:
    """What lets a module compute something else than the one of these classes that it is of; empty if nothing does.

    Args:
        module: any.
        kinds: classes whose forward is known; a subclass may add to them, and override nothing that they have.

    Returns:
        Words that go on after "it has": a hook, a method of its own, a tensor that is computed at every access, or one
        that stands in two places, which counts once. Hooks that change nothing are not told from others.

    >>> networks.departures.departure(torch.nn.Linear(2, 2), torch.nn.Linear)
    ''
    """
    kind = next((kind for kind in kinds if isinstance(module, kind)), None)
    if kind is None:
        return f"the class {type(module).__name__}"
    own = _overridden(type(module), kind) | (vars(module).keys() & _methods(kind))
    if own and not parametrize.is_parametrized(module):
        return f"a {min(own)} of its own"
    if any(vars(calls)[name] for name in _EVERYWHERE):
        return "a forward hook, as every module"
    every = [id(p) for _, p in module.named_parameters(remove_duplicate=False)]
    if len(set(every)) < len(every):
        return "a weight in two places"
    return next((why for name, part in module.named_modules() if (why := _altered(name, part))), "")


def check_as_written(call: str, module: nn.Module, *kinds: type[nn.Module]) -> None:
    """Raise unless a module computes what its weights say.

    Raises:
        ValueError: says what lets it compute something else.
    """
    refuse(call, module, departure(module, *kinds))


def refuse(call: str, module: object, why: str) -> None:
    """Raise where there is a reason, a `departure`, why the weights of a module need not say what it computes.

    Raises:
        ValueError: with the reason.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"{call}: needs a network; got {type(module).__name__}.")
    if why:
        raise ValueError(
            f"{call}: reads the weights of {type(module).__name__}, which need not say what it computes: it has {why}. "
            "Remove that, or write what it computes as weights."
        )


def _altered(name: str, part: nn.Module) -> str:
    where = f" on {name!r}" if name else ""
    if any(vars(part)[hooks] for hooks in _HOOKS):
        return f"a forward hook{where}"
    if parametrize.is_parametrized(part):
        return f"a parametrization{where}"
    computed = [tensor for tensor in _TENSORS if hasattr(type(part), tensor)]
    return f"{computed[0]}{where} computed at every access" if computed else ""


@cache
def _methods(kind: type[nn.Module]) -> frozenset[str]:
    return (
        frozenset(
            name
            for base in kind.__mro__
            for name, value in vars(base).items()
            if isinstance(value, FunctionType | property | classmethod | staticmethod)
        )
        - _HARMLESS
    )


@cache
def _overridden(own: type[nn.Module], kind: type[nn.Module]) -> frozenset[str]:
    there = {name for base in kind.__mro__ for name in vars(base)}
    added = {name for base in own.__mro__ if base not in kind.__mro__ for name in vars(base)}
    return frozenset(added & there - _HARMLESS)
