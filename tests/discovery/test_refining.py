"""Refined halves are those of less held-out error: the refined ones, or the halves as they were cut."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from isthmus import tasks
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.kinds.family import UNREFINED, Family
from isthmus.discovery.minimum import flat_parameters
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.unit import Session
from isthmus.networks import FullyConnected
from isthmus.training import FitResult, Outcome, fit
from isthmus.training.solvers.looked_at import LookedAt
from isthmus.training.solvers.solver import LBFGS
from minima import connected, minimum

SETTINGS = Settings(width=12, linear_width=4, refine_evaluations=60, refine_ridge=1e-3, heldout=0.5)
RIDGE = 3e-3


def posed_with_noise(noise: float, rows: int) -> Problem:
    task = tasks.teacher(1, d_in=10, d_out=4, num_samples=rows, latent_dim=4, noise=noise, seed=2)
    data = checked_data(task.x, task.y, "squared", None)
    found = Sample.of(data, SETTINGS).posed(SETTINGS)
    assert found is not None
    return found


def begun(problem: Problem, seed: int) -> FullyConnected:
    """A network of one coordinate, trained at the ridge."""
    family = connected(SETTINGS, problem)
    network = family.narrow(1, middle=1, seed=seed)
    family.trained(network, RIDGE, LBFGS(60), Session())
    return network


def refined_freely(problem: Problem, seed: int) -> tuple[FullyConnected, float, bool]:
    """The training of `refine` without the look and the way back: its end, and whether the error had risen by then."""
    network = begun(problem, seed)
    before, risen = problem.heldout_error(network), list[bool]()

    def note(at_a_third: nn.Module) -> bool:
        risen.append(problem.heldout_error(at_a_third) > before)
        return False

    solver = LookedAt(LBFGS(SETTINGS.refine_evaluations), SETTINGS.refine_evaluations // 3, note)
    ended = connected(SETTINGS, problem).trained(network, RIDGE * SETTINGS.refine_ridge, solver, Session())
    return network, ended.objective, risen[0]


@pytest.mark.parametrize(("noise", "rows", "helps"), [(0.0, 300, True), (1.0, 40, False)])
def test_refining_never_raises_the_held_out_error(noise: float, rows: int, helps: bool) -> None:  # noqa: FBT001
    """Where the error has risen after a third, the rest is spared; where it has at the end, halves are as they were."""
    problem = posed_with_noise(noise, rows)
    for seed in range(16):  # up to the first start that shows the case that is asked for
        network, (free, objective, risen) = begun(problem, seed), refined_freely(problem, seed)
        before, parameters = problem.heldout_error(network), flat_parameters(network)
        falls = problem.heldout_error(free) < before
        ended = connected(SETTINGS, problem).refine(network, RIDGE, Session())
        assert (ended.objective == objective) == (not risen)
        assert (ended.gradient_evaluations < 0.5 * SETTINGS.refine_evaluations) == risen
        wanted = flat_parameters(free) if falls and not risen else parameters
        assert torch.equal(flat_parameters(network), wanted)
        if (falls, risen) == (helps, not helps):
            return
    raise AssertionError("no start shows this case")


@pytest.mark.parametrize("outcome", [Outcome.DIVERGED, Outcome.COLLAPSED])
def test_halves_that_are_put_back_are_those_of_the_cut_however_refining_ended(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank was dropped, or called a constant, though the network that was kept had never diverged."""
    problem = posed_with_noise(0.2, 60)
    family = connected(SETTINGS, problem)
    cut = begun(problem, 0)
    base = minimum(theta=flat_parameters(cut), ridge=RIDGE, rank=1, middle=1, outcome=Outcome.CONVERGED)

    def failing(network: nn.Module, *_: object, **__: object) -> FitResult:
        end = fit(network, problem.x, problem.y, ridge=RIDGE, solver=LBFGS(1))
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.fill_(torch.nan)
        return replace(end, outcome=outcome)

    monkeypatch.setattr(family, "trained", failing)
    found = family.refined(Session(), base=base)
    assert torch.equal(found.theta, flat_parameters(family.halves_of(base)))
    assert (found.outcome, found.kind, found.usable, found.collapsed) == (Outcome.CONVERGED, UNREFINED, True, False)
    assert found.heldout_error == pytest.approx(problem.heldout_error(family.halves_of(base)))


@pytest.mark.parametrize(("kind", "share"), [("", SETTINGS.refine_ridge), (UNREFINED, 1.0)])
def test_all_rows_are_trained_on_at_the_ridge_at_which_refining_left_the_halves(
    kind: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, ridges = posed_with_noise(0.2, 60), list[float]()
    family = connected(SETTINGS, problem)
    theta = flat_parameters(begun(problem, 0))
    trained = Family.trained

    def noted(self: Any, network: nn.Module, ridge: float, *rest: Any) -> FitResult:
        ridges.append(ridge)
        return trained(self, network, ridge, *rest)

    monkeypatch.setattr(Family, "trained", noted)
    family.on_all_rows(Session(), base=minimum(theta=theta, ridge=RIDGE, rank=1, middle=1, kind=kind))
    assert ridges == [pytest.approx(share * RIDGE)]
