import pytest
import torch

from isthmus.diagnostics import leaky_diagnosis
from isthmus.networks import LeakyResNet
from isthmus.tasks import teacher
from isthmus.training import Outcome, fit
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from isthmus.training.solvers.solver import LBFGS
from leaky_networks import RIDGE, small_data, trained

pytestmark = pytest.mark.theorem("LEAKY-25")


@pytest.mark.slow
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


@pytest.mark.slow
def test_at_80_layers_the_averaged_hamiltonian_is_constant_within_3_per_cent() -> None:
    task = teacher(2, d_in=6, d_out=6, num_samples=40, seed=0)
    x, y = torch.from_numpy(task.x), torch.from_numpy(task.target)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean(0)) / y.std(0)
    network = LeakyResNet(6, 6, width=20, depth=80, effective_depth=5.0, seed=0, dtype=torch.float64)
    solver = PreconditionedLBFGS(smoothing=(0.1,), tolerance=1e-6, evaluations=20_000)
    assert fit(network, x, y, ridge=0.02, solver=solver).outcome is Outcome.CONVERGED
    table = leaky_diagnosis(network, x, y, ridge=0.02)

    def spread(name: str) -> float:
        return float((table[name].max() - table[name].min()) / abs(table[name].median()))

    assert spread("hamiltonian") <= 0.03
    with pytest.raises(AssertionError):
        assert spread("hamiltonian_mixed") <= 0.03
