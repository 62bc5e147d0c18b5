"""Statistics of rows that several processes share, for one process; several: cli/test_fit."""

import numpy as np
import pytest

from isthmus.discovery.data.scaling import Standardiser, shared_standardiser
from isthmus.training.sharded.team import Team
from tolerances import rounding


@pytest.mark.parametrize("total", [False, True])
def test_it_is_the_standardiser_of_all_rows(total: bool) -> None:
    values = np.random.default_rng(0).normal(3.0, [1.0, 1e-3, 1e200, 5.0], size=(5000, 4))
    values[:, 3] = 7.0  # a constant column
    ours, theirs = (
        shared_standardiser(values, rows=5000, team=Team(), total=total),
        Standardiser.of(values, total=total),
    )
    assert ours.kept.tolist() == theirs.kept.tolist() == [0, 1, 2]
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=rounding(size=5000))
    np.testing.assert_allclose(ours.scale, theirs.scale, rtol=rounding(size=5000, condition=10.0))
