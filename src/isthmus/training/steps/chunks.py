"""How many rows a gradient goes over at once, so that their activations fit into the memory that a fit may take.

The steps themselves: `steps` (all rows at once), `sharded.row_step` (run by run, added up in a fixed order).
"""

from torch import Tensor, nn

from isthmus.training.losses import DataLoss
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.sharded.team import Team
from isthmus.training.steps.step import Step, maker_of, step_of

MEMORY = 2_000_000_000  # bytes of working memory where `Limits` names none
FEWEST = 256  # rows at once, however little memory there is
VECTORS = 45  # as long as the parameters, that L-BFGS works on: its pairs, gradients, directions


def step_within(network: nn.Module, x: Tensor, data: DataLoss, ridge: float, *, memory: int | None) -> Step:
    """The fastest exact step whose activations fit into `memory` bytes: all rows at once if that is possible.

    Objective and gradient are the same up to rounding, whatever the number of rows at once, of a network that treats
    each row on its own (as batch normalisation in training does not).
    """
    rows = FEWEST if len(x) <= FEWEST else rows_at_once(network, x, MEMORY if memory is None else memory)
    if len(x) <= rows:
        return step_of(network, x, data, ridge)
    return ShardedStep(network, x, data, ridge, total=len(x), team=Team(), at_once=rows)


def rows_at_once(network: nn.Module, x: Tensor, memory: int) -> int:
    """Rows whose activations fit into what the vectors of the solver leave of the memory; at least 256."""
    parameters = sum(p.numel() * p.element_size() for p in network.parameters())
    return max((memory - VECTORS * parameters) // maker_of(network).bytes_of_row(network, x), FEWEST)
