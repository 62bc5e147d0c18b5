"""Copies of modules that strangers made, whole, with weights as plain numbers, and of samples for them.

What exporters say: `export_noise`.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.utils import parametrize, prune, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.utils import _pytree

from isthmus.networks.export_noise import without_deprecations

M = TypeVar("M", bound=nn.Module)
T = TypeVar("T")


def copied_module(module: M, *, but: Iterable[Tensor] = ()) -> M:
    """A copy that shares nothing; of a graph too, whose copying warns about itself.

    What a module keeps of its last pass, attention weights or features, comes along as numbers: torch copies no tensor
    that hangs in a graph of gradients.

    Args:
        module: any.
        but: tensors that the copy shares all the same.
    """
    kept = (
        leaf for part in module.modules() for leaf in _pytree.tree_leaves(list(vars(part).values()))
        if isinstance(leaf, Tensor) and not leaf.is_leaf
    )  # fmt: skip
    with without_deprecations():  # copies log and print nothing
        known = {id(tensor): tensor.detach().clone() for tensor in kept} | {id(tensor): tensor for tensor in but}
        return copy.deepcopy(module, known)


def on_copy(module: Callable[[Any], T], x: object) -> T:
    """What a module gives for samples: it gets a copy of them, since it may work in place.

    What one part of a chain hands to the next may be several tensors, in whatever holds them.
    """
    return module(_pytree.tree_map_only(Tensor, Tensor.clone, x))


def plain_copy(module: nn.Module) -> nn.Module:
    """A copy in eval mode, without gradients, whose weights are numbers and no longer computed from others.

    So layers under `torch.nn.utils.parametrizations`, under the older norms of `torch.nn.utils` and under its masks of
    pruning are layers like any other (*exact*: the weights are those that the module uses).
    """
    own = copied_module(module).eval()
    for part in own.modules():
        if parametrize.is_parametrized(part):
            _make_plain(part)
        for hook in list(vars(part)["_forward_pre_hooks"].values()):
            if isinstance(hook, prune.BasePruningMethod):
                prune.remove(part, vars(hook)["_tensor_name"])
            elif isinstance(hook, WeightNorm):
                remove_weight_norm(part, hook.name)
            elif isinstance(hook, SpectralNorm):
                remove_spectral_norm(part, hook.name)
    return own.requires_grad_(False)


def _make_plain(part: nn.Module) -> None:
    """Its parametrised tensors as parameters; torch's own function for it takes them from all copies of the module."""
    names = [name for name, _ in part.get_submodule("parametrizations").named_children()]
    values = {name: getattr(part, name).detach().clone() for name in names}
    part.__class__ = type(part).__bases__[0]  # what torch derived a class of one's own from
    del part.parametrizations
    for name, value in values.items():
        part.register_parameter(name, nn.Parameter(value, requires_grad=False))
