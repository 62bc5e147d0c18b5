"""A residual sum x + branch(x), the branch a chain of steps: it can be rewritten while the stream keeps its width.

Finding them in a graph: `networks.graph_stages`. Rewriting the branch: `discovery.chains.compression_search`.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from isthmus.networks.stage_kinds import Stage


class ResidualSum(nn.Module):
    """x + branch(x), the branch being steps one after the other.

    Args:
        steps: of the branch; x itself where there is none.
    """

    def __init__(self, steps: Sequence[Stage]) -> None:
        super().__init__()
        self.branch = nn.Sequential(*(step.module for step in steps))
        self.names = tuple(step.name for step in steps)
        self.reasons = tuple(step.reason for step in steps)

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the sum, of the shape of x."""
        return x + self.branch(x)

    @property
    def steps(self) -> list[Stage]:
        """The steps of the branch."""
        return [Stage(*step) for step in zip(self.names, self.branch, self.reasons, strict=True)]


def with_branch(stage: Stage, steps: Sequence[Stage]) -> Stage:
    """The step of a residual sum with other steps in its branch."""
    return Stage(stage.name, ResidualSum(steps), stage.reason)


def branch_of(stage: Stage) -> list[Stage] | None:
    """The steps of the branch of a residual sum; None for any other step."""
    return stage.module.steps if isinstance(stage.module, ResidualSum) else None
