"""What networks share: the penalty of any module, frozen parameters among them."""

import pytest
import torch
from torch import nn

from isthmus import diagnose, fit
from isthmus.networks.network import penalised, penalty_of
from isthmus.training.solvers.solver import LBFGS


def half_frozen() -> nn.Sequential:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    module[0].requires_grad_(False)
    return module


def squares(module: nn.Module) -> float:
    return sum(float(p.detach().square().sum()) for p in module.parameters())


def test_parameters_that_are_not_trained_cost_nothing() -> None:
    module = half_frozen()
    assert penalised(module) == {"2.weight", "2.bias"}
    assert float(penalty_of(module).detach()) == pytest.approx(squares(module[2]), rel=1e-12)
    assert squares(module[0]) > 0.1  # which would have shown


def test_a_fit_and_a_diagnosis_agree_on_the_objective_of_a_network_with_frozen_parameters() -> None:
    module = half_frozen()
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = x[:, :2].relu()
    result = fit(module, x, y, ridge=0.1, solver=LBFGS(20))
    assert diagnose(module, x, y, ridge=0.1).layers.attrs["objective"] == pytest.approx(result.objective, rel=1e-12)
    assert result.objective == pytest.approx(result.data_loss + 0.1 * squares(module[2]), rel=1e-12)
    assert [p.requires_grad for p in module.parameters()] == [False, False, True, True]


def test_of_a_network_that_is_frozen_as_a_whole_everything_counts() -> None:
    module = half_frozen().requires_grad_(False)
    assert float(penalty_of(module).detach()) == pytest.approx(squares(module), rel=1e-12)
    assert float(penalty_of(nn.ReLU())) == 0.0
