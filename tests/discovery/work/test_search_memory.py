"""The memory of a search: known before it begins, refused in one line where it is not there."""

import numpy as np
import pytest

import isthmus
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.search_memory import announce_memory, search_memory
from isthmus.errors import DataError
from isthmus.tasks.memory import VARIABLE
from isthmus.training.losses import SQUARED


def posed(rows: int, columns: int) -> Problem:
    x = np.random.default_rng(0).standard_normal((rows, columns))
    each = Standardiser.of(x)
    return pose(x, x, np.arange(rows) < rows // 5, loss=SQUARED, inputs=each, targets=Standardiser.of(x, total=True))


def test_more_rows_columns_and_workers_take_more() -> None:
    base = search_memory(posed(40, 30), Settings(), workers=1)
    for problem, settings, workers in [
        (posed(80, 30), Settings(), 1), (posed(40, 60), Settings(), 1), (posed(40, 30), Settings(width=128), 1),
        (posed(40, 30), Settings(), 2),
    ]:  # fmt: skip
        assert search_memory(problem, settings, workers=workers) > base


def test_the_estimate_stands_in_the_log(logged: list[str]) -> None:
    announce_memory(posed(40, 30), Settings(), workers=1)
    assert any("40 rows, 30 inputs and 30 outputs: about" in line for line in logged)


def test_a_search_beyond_the_memory_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((40, 300))
    monkeypatch.setenv(VARIABLE, "10M")
    with pytest.raises(DataError, match=r"40 rows, 300 inputs .* needs .* Take workers=1, fewer rows or columns, or"):
        isthmus.discover(x, workers=2)
    monkeypatch.setenv(VARIABLE, "unlimited")
    announce_memory(posed(40, 300), Settings(), workers=2)


@pytest.mark.parametrize(
    ("rows", "columns", "workers", "measured"), [(1797, 61, 2, 37), (1797, 61, 8, 160), (10_000, 50, 1, 144)]
)
def test_what_is_announced_is_within_a_factor_of_two_of_what_was_measured(
    rows: int, columns: int, workers: int, measured: int
) -> None:
    """Peaks of memory that no file stands for, in MiB, over what was there before; November 2026, torch 2.13.0 CPU."""
    announced = search_memory(posed(rows, columns), Settings(), workers=workers) / 2**20
    assert measured / 2 < announced < 2 * measured
