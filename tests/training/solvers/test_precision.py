"""A warm-up in float32 or bfloat16 of a float64 fit: in that precision, resumable, and polished beyond it."""

from pathlib import Path

import pytest
import torch

from isthmus import FullyConnected, Outcome, fit
from isthmus.training.losses import SQUARED, DataLoss
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.sharded.team import Team
from isthmus.training.solvers.precision import BURST, InPrecision
from isthmus.training.solvers.schedule import cheaper
from isthmus.training.solvers.solver import LBFGS, Adam
from isthmus.training.steps.step import step_of


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    return x, torch.relu(x @ torch.randn(5, 3, generator=generator, dtype=torch.float64))


def network(dtype: torch.dtype = torch.float64) -> FullyConnected:
    return FullyConnected(5, 3, width=8, depth=3, seed=0, dtype=torch.float64).to(dtype)


def test_the_warm_up_is_the_fit_of_a_network_in_that_precision() -> None:
    solver = Adam(BURST + 5)
    narrow = fit(network(torch.float32), *data(), ridge=0.01, solver=solver)
    found = fit(network(), *data(), ridge=0.01, solver=InPrecision(solver))
    for a, b in zip(found.network.parameters(), narrow.network.parameters(), strict=True):
        assert torch.equal(a, b.double())
    assert found.gradient_evaluations == BURST + 5
    exact = fit(network(), *data(), ridge=0.01, solver=solver)
    assert not torch.equal(next(exact.network.parameters()), next(found.network.parameters()))
    reread = DataLoss(SQUARED, data()[1]).value(found.network(data()[0]).detach())
    assert found.data_loss == pytest.approx(reread, rel=1e-14), "what is reported is float64"


def test_polishing_reaches_what_the_warm_up_cannot() -> None:
    affine = [FullyConnected(5, 3, width=1, depth=1, seed=0, dtype=torch.float64) for _ in range(2)]
    solver = InPrecision(LBFGS(100, plateau=0.0, tolerance=1e-9))
    rough = fit(affine[0], *data(), ridge=0.01, solver=solver)
    polished = fit(affine[1], *data(), ridge=0.01, solver=(solver, LBFGS(100, plateau=0.0)))
    assert polished.outcome is Outcome.CONVERGED
    assert polished.stationarity <= 1e-6 < rough.stationarity < 1e-3
    assert polished.objective <= rough.objective


def test_bfloat16_comes_near() -> None:
    start = fit(network(), *data(), ridge=0.01, solver=Adam(1)).objective
    found = fit(network(), *data(), ridge=0.01, solver=InPrecision(Adam(200), torch.bfloat16))
    assert found.objective < start / 2
    assert all(torch.equal(p, p.bfloat16().double()) for p in found.network.parameters())


def test_a_stopped_warm_up_goes_on_bit_for_bit(tmp_path: Path) -> None:
    schedule = (InPrecision(LBFGS(3 * BURST, plateau=0.0)), LBFGS(10, plateau=0.0))
    whole, stopped, path = network(), network(), tmp_path / "fit.pt"
    fit(whole, *data(), ridge=0.01, solver=schedule)
    stops = 0
    while True:
        part = fit(stopped, *data(), ridge=0.01, solver=schedule, checkpoint=path, callback=lambda _: True)
        if part.outcome is not Outcome.INTERRUPTED:
            break
        stops += 1
        stopped = network()
    assert stops >= 3
    for a, b in zip(whole.parameters(), stopped.parameters(), strict=True):
        assert torch.equal(a, b)


def test_rows_that_are_gone_over_in_runs_stay_so() -> None:
    x, y = data()
    steps = [
        step_of(network(), x, DataLoss(SQUARED, y), 0.01),
        ShardedStep(network(), x, DataLoss(SQUARED, y), 0.01, total=60, team=Team(), at_once=7),
    ]
    with torch.no_grad():
        for step in steps:
            solver = InPrecision(LBFGS(15))
            state = solver.start(step)
            solver.advance(step, state)
    torch.testing.assert_close(steps[0].theta, steps[1].theta, rtol=1e-3, atol=1e-3)


def test_its_settings_are_checked_and_its_rate_is_lowered() -> None:
    (gentler,) = cheaper((InPrecision(Adam(5, rate=0.3)),), rate=0.5)
    assert gentler == InPrecision(Adam(5, rate=0.15))
    with pytest.raises(ValueError, match="needs a floating-point type"):
        InPrecision(Adam(5), torch.int32)
