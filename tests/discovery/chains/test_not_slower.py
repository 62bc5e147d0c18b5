"""Maps in two factors are written as one again only as far as it takes not to be slower."""

import numpy as np
import pytest
import torch
from torch import nn

from isthmus.discovery.chains import not_slower as room
from isthmus.discovery.chains.compression_search import Change, parameters
from isthmus.discovery.chains.error_bounds import RowErrors
from isthmus.discovery.chains.not_slower import REMULTIPLIED, not_slower
from isthmus.discovery.chains.proofs import Proved
from isthmus.discovery.chains.running_cost import TimedPasses
from isthmus.networks.chain import as_module
from isthmus.networks.stage_kinds import Stage

WIDTH, RANKS = 40, (2, 5, 9, 14)  # a map in factors of so many dimensions each


def made() -> tuple[nn.Module, Proved]:
    """Wide layers with ReLUs between, and the same with each in two factors."""
    torch.manual_seed(0)
    wide, thin = list[nn.Module](), list[Stage]()
    for number, rank in enumerate(RANKS):
        down, up = nn.Linear(WIDTH, rank, bias=False), nn.Linear(rank, WIDTH)
        whole = nn.Linear(WIDTH, WIDTH)
        with torch.no_grad():
            whole.weight.copy_(up.weight @ down.weight)
            whole.bias.copy_(up.bias)
        wide += [whole, nn.ReLU()]
        thin += [Stage(f"{number}.down", down), Stage(f"{number}.up", up), Stage(f"{number}.bend", nn.ReLU())]
    errors = RowErrors(np.zeros(20), np.ones(20))
    return nn.Sequential(*wide).eval(), Proved(thin, (Change("in factors", ("0", "3"), 1, 0.0),), errors)


@pytest.mark.parametrize("most_pairs", [4, 3, 2, 1, 0])
def test_those_that_save_least_are_joined_first_and_no_more_than_needed(
    most_pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, thin = made()

    def timed(before: nn.Module, after: nn.Module, x: torch.Tensor) -> TimedPasses:
        del before, x
        pairs = sum(isinstance(part, nn.Linear) for part in after.modules()) - len(RANKS)
        return TimedPasses([1.0] * 9, [1.0 if pairs <= most_pairs else 2.0] * 9)

    monkeypatch.setattr(room, "race", timed)
    x = torch.randn(30, WIDTH)
    found = not_slower(old, [thin], x, allow_slower=False)
    if not most_pairs:  # all of them as one are no smaller than what came
        assert found is None
        return
    assert found is not None
    left = [stage.module.out_features for stage in found.proved.stages if stage.name.endswith("down")
            and isinstance(stage.module, nn.Linear)]  # fmt: skip
    assert left == list(RANKS[:most_pairs])
    assert (found.proved.changes[-1].what == REMULTIPLIED) == (most_pairs < len(RANKS))
    assert parameters(found.proved.stages) == sum(p.numel() for p in found.module.parameters())
    with torch.no_grad():
        torch.testing.assert_close(found.module(x), as_module(thin.stages)(x), rtol=1e-4, atol=1e-5)
    whole = not_slower(old, [thin], x, allow_slower=True)
    assert whole is not None
    assert len(whole.proved.stages) == len(thin.stages)
