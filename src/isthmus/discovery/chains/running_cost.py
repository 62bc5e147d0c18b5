"""What running a network costs: parameters, floating-point operations, and seconds measured side by side."""

import math
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from isthmus.networks.copies import on_copy
from isthmus.processes.shared_state import held_in_common, silenced

LEAST_ROUNDS, MOST_ROUNDS = 7, 400
SECONDS, PATIENCE = 0.7, 6.0  # of a race that is decided, and of one that is not
Z = 2.0  # of the interval: 95 %
# slower is what takes longer by more than the spread of its turns, and by so many seconds: below, eleven neurons take
# longer than twelve. As fast is what is known to take at most so many times as long
NOTICED, AS_FAST = 2e-5, 1.05


def num_parameters(module: nn.Module) -> int:
    """Number of parameters, shared ones once."""
    return sum(p.numel() for p in module.parameters())


def flops(module: nn.Module, x: Tensor) -> int:
    """Floating-point operations of matrix products and convolutions for one sample (*exact* count of torch).

    Args:
        module: any module; run once on the first sample, those of attention and recurrent layers written out.
        x: samples.
    """
    try:
        return _flops_of(module, x[:1])
    except ValueError:  # a batch norm without running statistics normalises no single sample
        return _flops_of(module, x[:2]) // 2


def _flops_of(module: nn.Module, x: Tensor) -> int:
    counter = FlopCounterMode(display=False)
    counter.mod_tracker = _OneForAll()  # pyright: ignore[reportAttributeAccessIssue] - a stand-in
    with _written_out(), counter, torch.no_grad():
        on_copy(module, x)
    return int(counter.get_total_flops())


class _OneForAll(AbstractContextManager[None]):
    """In the place of torch's tracker of modules, which hooks into all modules of the process."""

    parents = frozenset({"Global"})

    def __exit__(self, *error: object) -> None:
        return None


@held_in_common
@contextmanager
def _written_out() -> Generator[None]:
    """Nothing goes through kernels for whole layers: torch counts none in those of LSTMs, attention and encoders."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with (
            silenced(),  # flags of oneDNN speak of accelerators that nobody asked for
            sdpa_kernel(SDPBackend.MATH),
            torch.backends.mkldnn.flags(enabled=False),
            torch.backends.cudnn.flags(enabled=False),
        ):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@dataclass(slots=True)
class TimedPasses:
    """Seconds of forward passes of two networks in turn, one right after the other: a busy machine slows both alike.

    Attributes:
        before: of the first.
        after: of the second, each beside one of the first.
    """

    before: list[float] = field(default_factory=list[float])
    after: list[float] = field(default_factory=list[float])

    @property
    def times_as_fast(self) -> tuple[float, float, float]:
        """Median over the turns of before over after, and its interval of 95 % (*exact* for independent turns)."""
        ratios = sorted(b / max(a, 1e-12) for b, a in zip(self.before, self.after, strict=True))
        outside = max(0, math.floor((len(ratios) - Z * len(ratios) ** 0.5) / 2))
        return median(ratios), ratios[outside], ratios[-1 - outside]

    @property
    def is_slower(self) -> bool | None:
        """Whether the second takes longer by more than the spread of the turns; None while they do not tell."""
        usual, (_, least, most) = median(self.before), self.times_as_fast
        if usual * (1 / most - 1) > NOTICED:
            return True
        if usual * (1 / least - 1) <= max(NOTICED, (AS_FAST - 1) * usual):
            return False
        return None


def race(before: nn.Module, after: nn.Module, x: Tensor) -> TimedPasses:
    """Forward passes of both in turn until it is known which is slower, .7 to 6 seconds or 400 turns.

    Args:
        before: in eval mode.
        after: likewise.
        x: samples of one forward pass.
    """
    found, start = TimedPasses(), time.perf_counter()
    with torch.no_grad():
        for module in (before, after, before, after):  # the first passes are not counted
            on_copy(module, x)
        while len(found.before) < MOST_ROUNDS:
            pair = [(before, found.before), (after, found.after)]
            for module, seconds in pair if len(found.before) % 2 else reversed(pair):
                rows = x.clone()  # of its own for each pass: a module may work in place
                seconds.append(_seconds(lambda m=module, rows=rows: m(rows)))
            passed, turns = time.perf_counter() - start, len(found.before)
            if turns < LEAST_ROUNDS or passed < SECONDS:
                continue
            if passed >= PATIENCE or (turns % 5 == 0 and found.is_slower is not None):
                break
    return found


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start
