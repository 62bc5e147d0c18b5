"""What torch-pruning leaves of a network at an error, where it is installed: whole channels by their magnitude.

As it comes, without training behind it, as `compress` has none: BasePruner with global pruning, norms of order 2.
"""

import copy
import importlib
import importlib.util

import torch
from torch import Tensor, nn

HALVINGS = 9


def is_installed() -> bool:
    """Whether there is a torch-pruning to be compared with."""
    return importlib.util.find_spec("torch_pruning") is not None


def fewest_parameters_pruned(module: nn.Module, x: Tensor, fresh: Tensor, *, error: float) -> float:
    """Parameters at the largest share of channels that keeps to an error on fresh rows; NaN where it cannot prune."""
    with torch.no_grad():
        wanted = module(fresh).double()
    spread = (wanted - wanted.mean(0)).norm()
    least, low, high = sum(p.numel() for p in module.parameters()), 0.0, 1.0
    for _ in range(HALVINGS):
        share = (low + high) / 2
        try:
            smaller = _pruned(module, x, share)
            with torch.no_grad():
                off = float((smaller(fresh).double() - wanted).norm() / spread)
        except Exception:  # of a foreign library: attention in one kernel, shapes that it does not follow
            return float("nan")
        low, high = (share, high) if off <= error else (low, share)
        least = min(least, sum(p.numel() for p in smaller.parameters())) if off <= error else least
    return least


def _pruned(module: nn.Module, x: Tensor, share: float) -> nn.Module:
    pruning = importlib.import_module("torch_pruning")
    own = copy.deepcopy(module).requires_grad_()
    last = [part for part in own.modules() if isinstance(part, nn.Linear)][-1]
    pruner = pruning.pruner.BasePruner(
        own, x[:2], importance=pruning.importance.MagnitudeImportance(p=2), global_pruning=True, pruning_ratio=share,
        ignored_layers=[last],
    )  # fmt: skip
    pruner.step()
    return own.eval()
