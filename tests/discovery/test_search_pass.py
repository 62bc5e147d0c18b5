"""A pass whose truncated networks end nowhere, at one ridge or at all."""

from collections.abc import Sequence

import numpy as np
import pytest

import isthmus
from isthmus.discovery import search_pass
from isthmus.discovery.arguments import checked_data
from isthmus.discovery.curves import Result
from isthmus.discovery.ladder import Ladder
from isthmus.discovery.objective_curves import Curves, Train, objective_curves
from isthmus.discovery.progress import silent
from isthmus.discovery.request import Request
from isthmus.discovery.settings import Settings
from isthmus.discovery.splitting import heldout_rows
from isthmus.errors import NotConverged

SMALL = Settings(
    width=9, linear_width=3, ridges=(1e-2, 1e-3), starts=("linear",), adam_steps=30, lbfgs_evaluations=40,
    polish_evaluations=20, raise_evaluations=5, refine_evaluations=20,
)  # fmt: skip
X = np.random.default_rng(0).uniform(-1, 1, size=(100, 3))


def discovered() -> isthmus.Discovery:
    held = heldout_rows(len(X), seed=0, fraction=0.2, groups=None, ordered=False)
    request = Request(
        data=checked_data(X, None, None, None), held=held, settings=SMALL, folder=None, seconds=None, progress=silent,
        control=False, depth_path=False, workers=1,
    )  # fmt: skip
    return request.answered()


def lose(monkeypatch: pytest.MonkeyPatch, *, chosen_too: bool) -> None:
    """Let truncated networks diverge, at the neighbouring ridge or at both."""

    def losing(ladders: Sequence[Ladder], train: Train, *, constant: float) -> Curves:
        def some(wanted: Sequence[tuple[Ladder, int]]) -> list[Result]:
            return [r for r in train(wanted) if r["ridge"] == ladders[0].ridge and not chosen_too]

        return objective_curves(ladders, some, constant=constant)

    monkeypatch.setattr(search_pass, "objective_curves", losing)


def test_a_ridge_at_which_nothing_ends_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovered().objective_curve.sizes["ridge"] == 2
    lose(monkeypatch, chosen_too=False)
    found = discovered()
    assert found.objective_curve.sizes["ridge"] == 1
    assert any("no network of any rank ended; its objective curve is left out" in text for text in found.warnings)
    assert found.verdict.name != "CONFIDENT"


def test_where_nothing_ends_at_the_chosen_ridge_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    lose(monkeypatch, chosen_too=True)
    with pytest.raises(NotConverged, match="no network of any rank ended; give other ridges"):
        discovered()
