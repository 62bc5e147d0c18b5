"""What a refined network is looked at for on its way, see `Family.refine`; what ends there: `solvers.looked_at`."""

import copy

from torch import nn

from isthmus.discovery.data.problem import Problem


class HeldOutRises:
    """Whether the held-out error of a network lies above what it was."""

    def __init__(self, problem: Problem, error: float) -> None:
        self.problem, self.error = problem, error

    def __call__(self, network: nn.Module) -> bool:
        """Of a network on any device."""
        return not self.problem.heldout_error(copy.deepcopy(network).to(self.problem.x.device)) <= self.error

    def __repr__(self) -> str:
        return f"HeldOutRises({self.error!r})"  # by which a fit knows its checkpoint in every process
