"""The Huber loss: its closed form, its limits, and a rank that wrong targets hide from the squared error."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isthmus import Discovery, FullyConnected, Limits, Verdict, discover, fit, tasks
from isthmus.discovery.work.unit import Progress
from isthmus.errors import DataError, DataWarning
from isthmus.training.losses import SQUARED, DataLoss, loss_argument
from isthmus.training.losses.huber import Huber
from tolerances import closed_form


def test_it_is_the_square_near_the_targets_and_a_line_far_from_them() -> None:
    y = torch.zeros(1, 4, dtype=torch.float64)
    outputs = torch.tensor([[0.1, -0.5, 2.0, -3.0]], dtype=torch.float64)
    entries = Huber(0.5).entries(outputs, y)[0].tolist()
    assert entries == pytest.approx([0.01, 0.25, 2 * 0.5 * 2.0 - 0.25, 2 * 0.5 * 3.0 - 0.25], rel=closed_form())
    value, gradient = DataLoss(Huber(0.5), y).value_and_gradient(outputs)
    assert value == pytest.approx(sum(entries), rel=closed_form())
    assert gradient[0].tolist() == pytest.approx([0.2, -1.0, 1.0, -1.0], rel=closed_form())


def test_a_large_delta_is_the_squared_error() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(40, d, generator=generator, dtype=torch.float64) for d in (3, 2))
    ends = [
        fit(
            FullyConnected(3, 2, width=6, depth=3, seed=0, dtype=torch.float64), x, y, ridge=1e-2, loss=loss,
            limits=Limits(evaluations=100),
        ).objective
        for loss in (SQUARED, "huber:1e6", "huber:0.1")
    ]  # fmt: skip
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)
    assert ends[2] < 0.5 * ends[0]


def test_the_best_constant_goes_from_the_mean_to_the_median() -> None:
    y = torch.tensor([[0.0], [1.0], [2.0], [3.0], [100.0]], dtype=torch.float64)
    constants = [float(Huber(delta).best_constant(y, None, 1)) for delta in (1e3, 10.0, 0.1)]
    # in between: 4 residuals c - y and one of -delta add up to 0
    assert constants == pytest.approx([float(y.mean()), (6 + 10) / 4, 2.0], abs=closed_form(100))


@pytest.mark.parametrize("name", ["huber:0", "huber:-1", "huber:nan", "huber:inf", "huber:x", "huber:"])
def test_a_delta_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"needs one of .*'huber', .*or 'huber:DELTA'"):
        loss_argument(name, "here")


def found(loss: str) -> tuple[Discovery, float]:
    """A teacher of rank 1 with one row in twenty wrong: what is found, and its error on the rows that are right."""
    task = tasks.teacher(1, d_in=12, d_out=6, latent_dim=4, num_samples=300, noise=0.02, seed=1)
    assert task.y is not None
    rng, y = np.random.default_rng(0), task.y.copy()
    wrong = rng.random(len(y)) < 0.05
    y[wrong] += 8 * y.std() * rng.standard_t(2, size=(wrong.sum(), y.shape[1]))
    result = discover(
        task.x, y, loss=loss, ridge=(3e-3, 1e-3), starts=1, limits=Limits(evaluations=240), effort="quick"
    )
    missed, spread = result.predict(task.x) - task.y, task.y - task.y.mean(0)
    return result, float(np.square(missed[~wrong]).sum() / np.square(spread[~wrong]).sum())


@pytest.mark.slow
def test_the_rank_is_found_behind_wrong_targets() -> None:
    robust, error = found("huber:0.1")
    assert (robust.rank, robust.verdict) == (1, Verdict.CONFIDENT)
    assert robust.settings["loss"] == "huber:0.1"
    with pytest.warns(DataWarning, match="or take the Huber loss"):
        squared, pulled = found("squared")
    assert squared.verdict is not Verdict.CONFIDENT
    assert error < 0.02 < 0.2 < pulled


def test_work_under_one_loss_is_not_gone_on_with_under_another(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    few: dict[str, Any] = {"ridge": 1e-2, "starts": 1, "workers": 1, "limits": Limits(evaluations=200)}

    def stop(progress: Progress) -> None:
        if progress.fraction > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        discover(x, x[:, :2], loss="huber:0.5", out=tmp_path, progress=stop, **few, effort="quick")
    for loss in ("squared", "huber", "huber:0.3"):
        with pytest.raises(DataError, match="another|other"):
            discover(x, x[:, :2], loss=loss, out=tmp_path, **few, effort="quick")
