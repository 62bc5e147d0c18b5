"""The error through each number of dimensions: never above what the cut gives, and flat beyond the rank."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from discoveries import discovery
from isthmus import factorise, scree
from isthmus.discovery.data.splitting import heldout_rows
from isthmus.discovery.scree import BEYOND, REFINE_RIDGE
from isthmus.errors import ShapeError
from isthmus.networks import FullyConnected
from tolerances import rounding

RANK = 2


def samples() -> torch.Tensor:
    return torch.randn(60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def through_rank() -> FullyConnected:
    """ReLU, linear and ReLU layers with a middle matrix of rank `RANK`."""
    network = FullyConnected(5, 4, width=(8, 6, 8), depth=4, linear=(2,), seed=1, dtype=torch.float64)
    with torch.no_grad():
        u, _, vh = torch.linalg.svd(network.weights[1])
        network.weights[1].copy_(u[:, :RANK] @ vh[:RANK])
    return network


@pytest.mark.slow
def test_the_curve_falls_to_nothing_at_the_rank_of_the_network() -> None:
    network, x = through_rank(), samples()
    curve = scree(network, x)
    assert curve["rank"].values.tolist() == list(range(1, min(RANK + BEYOND, 4) + 1))
    held = torch.from_numpy(heldout_rows(60, seed=0))
    with torch.no_grad():
        y = network(x)
        variance = float((y - y.mean(0)).square().sum(1).mean())
    for rank, error in zip(curve["rank"].values, curve["train_error"].values, strict=True):
        halves = factorise(network, x[~held], int(rank))
        with torch.no_grad():
            cut = float((halves.decoder(halves.encoder(x[~held])) - y[~held]).square().sum(1).mean()) / variance
        norm = float((halves.encoder.penalty() + halves.decoder.penalty()).detach())
        # one-sided: refining lowers error + REFINE_RIDGE * norm from where the cut starts
        assert error <= cut + REFINE_RIDGE * norm + rounding(size=1000)
    errors = curve["heldout_error"].values
    assert errors[RANK - 1 :].max() <= 2e-2 * errors[0]  # refined for a small norm too: .0001 to .006 of other starts


@pytest.mark.slow
def test_targets_of_ones_own_are_compared_with_all_rows() -> None:
    network, x = through_rank(), samples()
    y = network(x).detach()
    own = scree(network, x, y, ranks=[1, 2], seed=3)
    assert own.equals(scree(network, x, ranks=[1, 2], seed=3))
    noisy = scree(network, x, y + torch.randn(60, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))
    assert noisy["heldout_error"].values.min() > 10 * own["heldout_error"].values.min()


def test_the_seed_and_the_share_decide_what_is_held_out() -> None:
    network, x = through_rank(), samples()
    first = scree(network, x, ranks=[1])
    assert first.equals(scree(network, x, ranks=[1]))
    for other in (scree(network, x, ranks=[1], seed=1), scree(network, x, ranks=[1], heldout=0.5)):
        assert abs(float(other["heldout_error"][0]) - float(first["heldout_error"][0])) > 1e-6


def test_a_discovery_has_its_curve_already() -> None:
    result = discovery()
    assert scree(result).equals(result.scree)
    chosen = scree(result, ranks=[2, 4])
    assert chosen["rank"].values.tolist() == [2, 4]
    assert np.array_equal(chosen["train_error"].values, result.scree["train_error"].values[[1, 3]])


@pytest.mark.parametrize(
    ("given", "change", "error", "message"),
    [
        (discovery(), {"ranks": [7]}, ValueError, "has the ranks"),
        (nn.Linear(5, 4), {}, TypeError, "Discovery or FullyConnected, got Linear"),
        (through_rank(), {"x": None}, ValueError, "needs the data x"),
        (through_rank(), {"y": torch.zeros(59, 4)}, ShapeError, "as many rows in x as in y, got 60 and 59"),
        (through_rank(), {"y": torch.ones(60, 4)}, ValueError, "do not vary"),
        (through_rank(), {"ranks": [9]}, ValueError, "rank=9"),
    ],
    ids=["rank", "module", "no-data", "rows", "constant", "too-wide"],
)
def test_bad_input_is_refused(given: Any, change: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {"x": samples()}
    with pytest.raises(error, match=message):
        scree(given, **(arguments | change))
