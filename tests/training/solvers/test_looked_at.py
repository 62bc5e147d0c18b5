"""A solver that is looked at once on its way."""

import pytest
import torch
from torch import nn

from isthmus import FullyConnected
from isthmus.training import fit
from isthmus.training.solvers.looked_at import LookedAt
from isthmus.training.solvers.solver import LBFGS


class Look:
    """A verdict given beforehand, with what was looked at."""

    def __init__(self, *, fails: bool) -> None:
        self.fails, self.seen = fails, list[torch.Tensor]()

    def __call__(self, network: nn.Module) -> bool:
        self.seen.append(torch.cat([p.detach().reshape(-1) for p in network.parameters()]))
        return self.fails

    def __repr__(self) -> str:
        return "Look"


@pytest.mark.parametrize("fails", [True, False])
def test_it_ends_after_the_look_only_where_that_fails(*, fails: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(40, d, generator=generator) for d in (5, 3))
    trained = [FullyConnected(5, 3, width=8, depth=3, seed=0) for _ in range(3)]
    look = Look(fails=fails)
    ended = fit(trained[0], x, y, ridge=1e-3, solver=LookedAt(LBFGS(90), 30, look))
    [seen] = look.seen
    alone = fit(trained[1], x, y, ridge=1e-3, solver=LBFGS(90))
    assert (ended.gradient_evaluations < 40) == fails
    assert (ended.objective == alone.objective) == (not fails)
    assert torch.equal(seen, torch.cat([p.detach().reshape(-1) for p in trained[0].parameters()])) == fails
