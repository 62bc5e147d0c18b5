"""More rows are searched where a sample leaves doubts, and the answer is then theirs."""

import numpy as np
import pytest

import isthmus
from isthmus import Limits
from isthmus.errors import DataWarning

RNG = np.random.default_rng(1)
X = RNG.normal(size=(300, 6))
# a weak second direction, which few rows do not show
Y = np.tanh(X[:, :1]) * np.ones((1, 3)) + 0.3 * np.sin(2 * X[:, 1:2]) * np.array([[1.0, -1.0, 0.5]])


def found(rows: int | None, effort: str, X: np.ndarray = X) -> isthmus.Discovery:
    limits = Limits(evaluations=40)
    return isthmus.discover(X, Y, rows=rows, effort=effort, ridge=[3e-3], starts=1, workers=1, limits=limits)


@pytest.mark.slow
def test_doubts_of_a_sample_end_in_a_larger_one() -> None:
    with pytest.warns(DataWarning, match="constant input column") as said:
        treated = found(60, "default", X=np.column_stack([X, np.ones(len(X))]))
    assert len(said) == 1
    names = [remedy["name"] for remedy in treated.remedies]
    assert "more rows" in names
    words = next(str(r["words"]) for r in treated.remedies if r["name"] == "more rows")
    assert words == "searched 240 rows instead of 60"
    assert int(str(treated.settings["rows"])) >= 240
    assert treated.settings["first_rows"] == 60


@pytest.mark.slow
def test_all_rows_leave_nothing_to_add() -> None:
    treated = found(None, "default")
    assert "more rows" not in [remedy["name"] for remedy in treated.remedies]
    assert "unseen_error" not in treated.readings
