"""What running a network costs: parameters, floating-point operations, and seconds measured side by side."""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

SECONDS, LEAST_ROUNDS, MOST_ROUNDS = 1.0, 5, 50


def num_parameters(module: nn.Module) -> int:
    """Number of parameters, shared ones once."""
    return sum(p.numel() for p in module.parameters())


def flops(module: nn.Module, x: Tensor) -> int:
    """Floating-point operations of matrix products and convolutions for one sample (*exact* count of torch).

    Args:
        module: any module; run once on the first sample.
        x: samples.
    """
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(x[:1])
    return int(counter.get_total_flops())


def seconds_of_passes(modules: Sequence[nn.Module], x: Tensor) -> list[list[float]]:
    """Seconds of forward passes of each module, in turn, so that a busy machine slows all of them alike.

    Args:
        modules: in eval mode.
        x: samples of one forward pass.

    Returns:
        One list per module, after one pass that is not counted; 5 to 50 rounds, about a second in all.
    """
    with torch.no_grad():
        once = sum(_seconds(lambda m=module: m(x)) for module in modules)
        rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, int(SECONDS / max(once, 1e-9))))
        times = [[_seconds(lambda m=module: m(x)) for module in modules] for _ in range(rounds)]
    return [[*column] for column in zip(*times, strict=True)]


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start
