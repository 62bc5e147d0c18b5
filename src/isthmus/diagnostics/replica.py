"""The network that is evaluated: a float64 copy in evaluation mode, or the module itself, put back as it was."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from isthmus.diagnostics.samples import Samples
from isthmus.errors import DataError
from isthmus.networks.arguments import answer_of, other_answers
from isthmus.networks.copies import copied_module
from isthmus.networks.devices import device_of
from isthmus.processes.shared_state import silenced
from isthmus.tasks.arrays import counted
from isthmus.theory.undisturbed import attributes_kept, chance_kept


@dataclass(frozen=True, slots=True)
class Replica:
    """A module that may be evaluated.

    Attributes:
        module: in evaluation mode, without gradients of parameters.
        dtype: that of floating-point inputs; None leaves them as the user gave them.
        device: where inputs must be.
        noted: what it returned beside its answer, in sentences.
        calls: names of the calls of weight matrices that every evaluation must make; empty until they are known.
    """

    module: nn.Module
    dtype: torch.dtype | None
    device: torch.device
    noted: set[str] = field(default_factory=set[str], compare=False)
    calls: list[str] = field(default_factory=list[str], compare=False)

    def __call__(self, samples: Samples) -> Tensor:
        """The first floating-point tensor that the module returns, and that is more than one number (a loss)."""
        found = self.module(*samples.positional, **samples.named)
        if not self.noted and (sentence := other_answers(found, type(self.module).__name__)):
            self.noted.add(sentence)
        return answer_of(found, f"diagnose(module, x): {type(self.module).__name__}")

    def check_rows(self, output: Tensor, size: int, for_each: float) -> None:
        """Refuse an answer for so many samples that has not so many rows for each.

        Raises:
            DataError: says of which shape it is.
        """
        if not output.ndim or for_each < 1 or len(output) != size * for_each:
            raise DataError(
                f"diagnose(module, x): needs a module that gives one tensor with a row per sample; "
                f"{type(self.module).__name__} gave {tuple(output.shape)} for {counted(size, 'sample')}. Wrap it in a "
                "module whose forward picks that tensor."
            )

    def doubts(self, output: Tensor, again: Tensor) -> tuple[str, ...]:
        """What answers for some rows, and for the same with others behind them, show where they differ; else none."""
        again = again[: len(output)]
        allowed = torch.finfo(output.dtype).eps ** 0.5 * output.norm()
        is_same = output.shape != again.shape or bool((output - again).norm() <= allowed)
        if is_same or not bool(output.isfinite().all()):
            return ()
        sentence = (
            f"{type(self.module).__name__} answers the same rows in other ways: it draws random numbers, or mixes rows "
            "(statistics of the batch). What is read here counts that too."
        )
        return (sentence,)


def float_type_of(module: nn.Module) -> torch.dtype | None:
    """The floating-point type of the first such parameter, None without one."""
    return next((p.dtype for p in module.parameters() if p.dtype.is_floating_point), None)


def float64_copy(module: nn.Module) -> Replica | None:
    """A float64 copy; None where the module cannot be copied."""
    try:
        with silenced():  # torch warns about its own copies of exported programs
            twin = copied_module(module)
    except Exception:  # noqa: BLE001 - whatever a foreign __deepcopy__ raises: the module itself is used then
        return None
    _evaluating(twin).requires_grad_(False).double()
    device = device_of(twin)
    return Replica(twin, torch.float64, device)


def _evaluating(module: nn.Module) -> nn.Module:
    for part in module.modules():  # exported programs refuse .eval(); they hold no training mode
        part.training = False
    return module


@contextmanager
def lent(module: nn.Module) -> Generator[Replica]:
    """The module itself in its own precision, with copies of its buffers and caches; all is put back afterwards.

    Nothing is written into its own tensors: what waits for a backward pass may hold them.
    """
    modes = [(part, part.training) for part in module.modules()]
    # tensors of inference mode have no gradients, and take no flag outside of it
    flags = [(p, p.requires_grad) for p in module.parameters() if not p.is_inference()]
    with attributes_kept(module, copied=True):
        try:
            _evaluating(module)
            for p, _ in flags:
                p.requires_grad_(False)
            yield Replica(module, float_type_of(module), device_of(module))
        finally:
            for part, mode in modes:
                part.training = mode
            for p, flag in flags:
                p.requires_grad_(flag)


@contextmanager
def undisturbed(module: nn.Module) -> Generator[None]:
    """What happens inside is not noticed outside: random numbers go on as if nothing had been, the module is as it was.

    Also where copies of it are called: hooks of theirs may write into the module itself.
    """
    with chance_kept(device_of(module)), attributes_kept(module):
        yield


@contextmanager
def replica_of(module: nn.Module) -> Generator[Replica]:
    """A float64 copy, or where there is none the module itself, put back afterwards."""
    twin = float64_copy(module)
    if twin is not None:
        yield twin
        return
    with lent(module) as replica:
        yield replica
