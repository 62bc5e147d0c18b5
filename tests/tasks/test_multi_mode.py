"""Targets move in the stated modes and in no other direction, and depend on the stated combinations."""

from typing import Any

import numpy as np
import pytest
import torch

from isthmus.tasks import gradients, multi_mode
from isthmus.tasks.multi_mode import multi_mode_map
from tolerances import rounding

SETTINGS: dict[str, Any] = {"d_in": 10, "d_out": 14, "num_samples": 300}


@pytest.mark.parametrize(("mode_rank", "index_rank"), [(1, None), (3, None), (6, None), (5, 2), (2, 4)])
def test_values_fill_exactly_the_modes(mode_rank: int, index_rank: int | None) -> None:
    arguments: dict[str, Any] = SETTINGS | {"index_rank": index_rank, "seed": 1}
    task, f = multi_mode(mode_rank, **arguments), multi_mode_map(mode_rank, **arguments)
    s = np.linalg.svd(task.target - task.target.mean(0), compute_uv=False) / np.sqrt(300)
    np.testing.assert_allclose(s[:mode_rank], np.linspace(1, 0.5, mode_rank), rtol=rounding(size=300, condition=1e3))
    assert s[mode_rank:].max() <= rounding(size=300)
    jacobians = gradients(f, torch.from_numpy(task.x))
    ranks = torch.linalg.matrix_rank(jacobians, rtol=rounding(size=100, condition=10))
    k = min(mode_rank, index_rank or 10)
    assert int(ranks.max()) == task.true_rank == task.jacobian_rank == k
    assert (task.mode_rank, task.index_rank) == (mode_rank, index_rank or 10)
    assert task.modes is not None
    assert task.directions is not None
    q = task.directions.T
    off = jacobians.numpy() - jacobians.numpy() @ q @ q.T
    assert np.abs(off).max() <= rounding(size=100) * float(jacobians.abs().max())


def test_noise_leaves_the_modes_and_the_seed_decides() -> None:
    clean, noisy = (multi_mode(2, **SETTINGS, noise=n, seed=3) for n in (0.0, 0.1))
    off = noisy.target - clean.target
    size = np.sqrt(((clean.target - multi_mode_map(2, **SETTINGS, seed=3).constant.numpy()) ** 2).mean())
    assert off.std() / size == pytest.approx(0.1, rel=5 / np.sqrt(2 * off.size))
    assert not np.array_equal(multi_mode(2, **SETTINGS, seed=4).x, clean.x)


@pytest.mark.parametrize(
    "arguments",
    [{"mode_rank": 0}, {"mode_rank": 15}, {"index_rank": 11}, {"index_rank": 0}, {"noise": -1.0}, {"num_samples": 3}],
)
def test_impossible_tasks_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs 1 <= mode_rank <= d_out"):
        multi_mode(**{"mode_rank": 3, **SETTINGS, **arguments})
