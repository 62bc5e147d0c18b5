"""The table of dimensions: its rows, its verdicts, and the rivals that it compares with. The run: test_benchmarks."""

from typing import Any

import numpy as np
import pytest
import torch

from intrinsic_dimension import all_cases, line, summary
from isthmus import tasks
from isthmus.discovery.data.problem import pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.data.splitting import heldout_rows
from isthmus.discovery.evidence.baseline import linear_errors
from isthmus.tasks import Kind, Task
from isthmus.training.losses import SQUARED
from measured.rivals import explained, heldout_errors

ASKED = {"helix": 1, "swiss_roll": 2, "circle": 2, "torus": 3, "M1_Sphere": 11, "M6_Nonlinear": 6, "cube_17": 17}
ROW: dict[str, Any] = {
    "rows": 2500, "columns": 3, "intrinsic": 1, "embedding": 2, "rank": 3, "answer": 2, "verdict": "CONFIDENT",
    "flat": 3, "deep": 2, "switch": 7.5, "two_nn": 1.1, "mle": 1.2, "mom": 2.4, "corr": 1.0, "pca": 3.0,
    "heldout_error": 0.01, "pca_error": 0.2, "seconds": 60.0, "scree": [0.5, 0.01],
}  # fmt: skip


def test_every_row_that_is_asked_for_is_there_and_gets_its_depth_path() -> None:
    cases = all_cases(None)
    assert {name: cases[name].make().true_rank for name in ASKED} == ASKED
    assert all(cases[name].depth_path for name in ASKED)
    assert set(tasks.BENCHMARK_MANIFOLDS) <= set(cases)
    assert not cases["M10d_Cubic"].depth_path
    symmetry = cases["symmetry"].make()
    assert (symmetry.x.shape[1], symmetry.target.shape[1], symmetry.true_rank) == (20, 20, 2)
    assert {"digits", "digits_classes", "diabetes", "linnerud", "wine", "breast_cancer"} <= set(cases)


def test_principal_components_err_as_the_baseline_of_a_discovery_does() -> None:
    x = tasks.swiss_roll(num_samples=300).x @ np.random.default_rng(0).normal(size=(3, 5))
    scaled = Standardiser.of(x), Standardiser.of(x, total=True)
    problem = pose(x, x, heldout_rows(300, seed=0), loss=SQUARED, inputs=scaled[0], targets=scaled[1])
    expected = linear_errors(problem, most=3)
    task = Task(x, None, None, "", Kind.AUTOENCODING)
    for k in (1, 2):
        found = heldout_errors(task, k)
        assert found.keys() == {"pca_error"}
        # the discovery holds its data in float32
        assert found["pca_error"] == pytest.approx(expected[k], rel=300 * torch.finfo(torch.float32).eps)
    assert expected[1] > 1.5 * expected[2]


@pytest.mark.slow
def test_the_error_of_guessing_classes_at_random_is_one() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(500, 2)), rng.integers(0, 3, 500)
    guessed = heldout_errors(Task(x, np.eye(3)[labels], None, "", Kind.CLASSIFICATION), 1)
    assert guessed["pca_error"] == pytest.approx(1.0, abs=0.05)
    told = heldout_errors(Task(x, np.eye(2)[(x[:, 0] > 0).astype(int)], None, "", Kind.CLASSIFICATION), 2)
    assert told["forest_error"] < told["pca_error"] < 0.2


def test_statistics_are_explained_where_one_set_of_numbers_fixes_the_other() -> None:
    a = np.random.default_rng(0).normal(size=(2000, 2))
    bent = np.stack([a[:, 0] * 3, a[:, 1] + a[:, 0] ** 2], 1)
    assert explained(bent, a) > 0.95
    folded = np.stack([np.abs(a[:, 0]), a[:, 1]], 1)
    assert explained(a, folded) > 0.95
    assert explained(folded, a) < 0.2


def test_a_line_says_what_is_right_and_who_is_worse() -> None:
    assert " 2   yes confident" in line("M5a_Helix1d", ROW)
    assert " 3    NO confident" in line("M5a_Helix1d", ROW | {"answer": 3})
    table = ROW | {"embedding": None, "ridge_error": 0.1, "forest_error": 0.3}
    assert "WORSE" not in line("wine", table)
    assert line("wine", table | {"heldout_error": 0.21}).endswith("WORSE than PCA")


def test_the_summary_counts_the_collection_alone() -> None:
    rows = {"M5a_Helix1d": ROW, "M7_Roll": ROW | {"answer": 3, "intrinsic": 2}, "helix": ROW}
    told = "\n".join(summary(rows))
    assert "2 of the 24" in told
    assert "discover   1 right,  25 % off; 0 the manifold's own" in told
    assert "MOM        2 right,  20 % off" in told
    assert told.endswith("wrong without a warning: M7_Roll")
    assert summary({"helix": ROW}) == []
