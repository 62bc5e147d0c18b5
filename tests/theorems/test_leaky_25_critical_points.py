import pytest
import torch

from isthmus.networks import LeakyResNet
from isthmus.tasks import teacher
from isthmus.training import Outcome, fit
from isthmus.training.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers import LBFGS
from leaky_networks import RIDGE, small_data, trained

pytestmark = pytest.mark.theorem("LEAKY-25")


def test_the_preconditioned_solver_reaches_a_critical_point_and_the_plain_one_does_not() -> None:
    network, result = trained()
    assert result.outcome is Outcome.CONVERGED
    assert result.stationarity <= 1e-8
    assert float(network.smoothing) == pytest.approx(0.1)
    x, y = small_data()
    plain = LeakyResNet(3, 3, width=5, depth=8, effective_depth=3.0, seed=0, dtype=torch.float64)
    end = fit(plain, x, y, ridge=RIDGE, solver=LBFGS(result.gradient_evaluations))
    with pytest.raises(AssertionError):
        assert end.stationarity <= 1e-3


@pytest.mark.slow
def test_the_small_net_of_the_ledger_is_solved_to_1e_7() -> None:
    task = teacher(2, d_in=6, d_out=6, num_samples=40, seed=0)
    x, y = torch.as_tensor(task.x).double(), torch.as_tensor(task.y).double()
    y = (y - y.mean(0)) / y.std(0)
    network = LeakyResNet(6, 6, width=20, depth=20, effective_depth=5.0, seed=0, dtype=torch.float64)
    result = fit(network, x, y, ridge=0.02, solver=PreconditionedLBFGS(tolerance=1e-7, evaluations=10_000))
    assert result.outcome is Outcome.CONVERGED
    assert result.stationarity <= 1e-7
