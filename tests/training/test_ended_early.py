"""Wherever a limit ends a fit, what is returned is no worse than what its history said last.

Held by every solver that goes from one point to a lower one of the same objective. Not by these, and why:

    Adam, GradientDescent   what they note is the objective before the step
    MiniBatches             what it notes is the mean over batches
    AdaptiveSteps           the last minimum is put back; what came after it had other steps
    PreconditionedLBFGS     of several widths: the last one is put in; what was noted had the width of its stage
    a second attempt        its first phase has a tenth of the ridge
"""

import copy
import functools
from pathlib import Path

import pytest
import torch

from isthmus import FitResult, FullyConnected, LeakyResNet, Limits, Outcome, ResNet, fit
from isthmus.networks.network import Network
from isthmus.training.solvers.looked_at import LookedAt
from isthmus.training.solvers.precision import InPrecision
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.rank_raising import raise_rank
from isthmus.training.solvers.schedule import Schedule, default_schedule
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.solvers.trials import ExactMoves, RankTrials
from tolerances import rounding

RIDGE, EVALUATIONS = 0.01, 100
X = torch.randn(60, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = X[:, :1] * torch.ones(5, dtype=torch.float64) + 0.3 * torch.relu(X[:, 1:2])
TRIALS = RankTrials(LBFGS(40), most=3)
USUAL = default_schedule(FullyConnected(5, 5, width=8, depth=4), evaluations=180)
BEGUN = "fully connected"
# which network, and what trains it
SOLVERS: dict[str, tuple[str, Schedule]] = {
    "L-BFGS": (BEGUN, (LBFGS(EVALUATIONS),)),
    "rank trials": (BEGUN, (TRIALS,)),
    "raised ranks": ("linear middle", (RankTrials(LBFGS(40), most=2, attempt=raise_rank),)),
    "trials, looked at": (BEGUN, (LookedAt(TRIALS, 50, lambda _: False),)),
    "trials, in float32": (BEGUN, (InPrecision(RankTrials(LBFGS(100), most=3)),)),
    "usual, without its warm-up": (BEGUN, USUAL[1:]),
    "float32": ("float32", (ExactMoves(), LBFGS(30), TRIALS)),
    "one width": ("leaky", (PreconditionedLBFGS(40, smoothing=(0.1,)),)),
    "blocks": ("residual", (LBFGS(30),)),
}


@functools.cache
def begun(name: str) -> Network:
    """A network on its way: trials begin at once."""
    kinds = {
        BEGUN: lambda: FullyConnected(5, 5, width=8, depth=4, seed=1, dtype=torch.float64),
        "linear middle": lambda: FullyConnected(5, 5, width=8, depth=5, linear=(2, 3), seed=1, dtype=torch.float64),
        "float32": lambda: FullyConnected(5, 5, width=8, depth=4, seed=1),
        "leaky": lambda: LeakyResNet(5, 5, width=6, depth=4, effective_depth=2.0, seed=1, dtype=torch.float64),
        "residual": lambda: ResNet(5, 5, width=6, depth=2, block_depth=2, seed=1, dtype=torch.float64),
    }
    network: Network = kinds[name]()
    solver = PreconditionedLBFGS(30, smoothing=(0.1,)) if name == "leaky" else (Adam(100), LBFGS(60))
    fit(network, X, Y, ridge=RIDGE, solver=solver)
    return network


def ended(name: str, evaluations: int | None, path: Path | None = None, *, at: int | None = None) -> FitResult:
    """That fit, ended by its gradients, or by a callback after so many."""
    kind, solver = SOLVERS[name]
    return fit(
        copy.deepcopy(begun(kind)), X, Y, ridge=RIDGE, solver=solver, limits=Limits(evaluations=evaluations),
        checkpoint=path, callback=lambda event: at is not None and event.evaluations >= at,
    )  # fmt: skip


def above_its_history(result: FitResult, name: str) -> bool:
    last = float(result.history["objective"][-1])
    coarse = SOLVERS[name][0] == "float32" or "float32" in name
    dtype = torch.float32 if coarse else torch.float64
    return not result.objective <= last * (1 + rounding(size=len(X), dtype=dtype))


@pytest.mark.parametrize("name", SOLVERS)
def test_what_a_limit_leaves_is_no_worse_than_the_history_says(name: str) -> None:
    for evaluations in range(13, EVALUATIONS, 26):
        result = ended(name, evaluations)
        assert not above_its_history(result, name), evaluations
    result = ended(name, None, at=EVALUATIONS // 2)
    assert not above_its_history(result, name)


@pytest.mark.parametrize("name", ["rank trials", "trials, in float32"])
def test_a_fit_that_ended_in_a_trial_goes_on_from_there_bit_for_bit(name: str, tmp_path: Path) -> None:
    whole = ended(name, None)
    stopped = ended(name, None, tmp_path / "fit.pt", at=13)
    resumed = ended(name, None, tmp_path / "fit.pt")
    assert stopped.outcome is Outcome.INTERRUPTED
    assert stopped.gradient_evaluations < resumed.gradient_evaluations == whole.gradient_evaluations
    assert resumed.history.equals(whole.history)
    assert resumed.objective == whole.objective
