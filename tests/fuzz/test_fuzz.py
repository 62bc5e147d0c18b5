"""Every reader takes 10^5 mutants in the slow tier, and all of them a fixed 2,000 in the default one."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.fuzzing import Hang, budget, failures, trial
from fuzz.readers import READERS, Reader
from isthmus.errors import DataError
from isthmus.tasks import read_table

# what one input costs differs a hundredfold: those that take whole folders or run commands get fewer of the 2,000
DEAR = {"run folder": 6, "sweep run": 12, "netcdf": 20, "xlsx": 40, "zarr": 40, "cost": 60}
MOST = 100_000
OTHERS = (2000 - sum(DEAR.values())) // (len(READERS) - len(DEAR))
_CELLS = (
    "1", "2.5", "-3e5", "", " ", "nan", "inf", "1e400", "9" * 400, "0x1F", "1_0", "1,234", "a", "b", "$x^$", "True",
    '"', '""', "\n", "'", ";", "\t", "\u202e", "\ufeff", "=1+1", "x" * 200,
)  # fmt: skip
CELLS = st.sampled_from(_CELLS)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_says_one_line_or_reads(name: str) -> None:
    found, tried = failures(name, DEAR.get(name, OTHERS))
    assert found == {}
    assert tried == DEAR.get(name, OTHERS)


def test_there_are_two_thousand() -> None:
    assert sum(DEAR.get(name, OTHERS) for name in READERS) > 1950


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_a_hundred_thousand(name: str) -> None:
    found, tried = failures(name, MOST)
    assert found == {}
    assert tried == MOST


@given(rows=st.lists(st.lists(CELLS, min_size=1, max_size=5), min_size=1, max_size=6), end=st.sampled_from("\n\r"))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_table_of_odd_cells_is_read_or_refused(tmp_path: Path, rows: list[list[str]], end: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(end.join(",".join(row) for row in rows), encoding="utf-8", newline="")
    refusal = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = read_table(path, drop_constant=False)
        except DataError as error:
            refusal, found = str(error), None
    assert "\n" not in refusal
    if found is not None:
        assert found.x.shape[1] == len(found.x_names) == len(found.x_columns)
        assert np.isfinite(found.x).all()


BROKEN = {
    "an error of a library": RuntimeError("no"),
    "a hang": Hang(),
    "two lines": DataError("two\nlines."),
    "no end": DataError("d.csv: cannot be read"),
}


@pytest.mark.parametrize("error", BROKEN.values(), ids=list(BROKEN))
def test_the_fuzzer_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def read(_path: Path) -> None:
        raise error

    monkeypatch.setitem(READERS, "csv", Reader(".csv", READERS["csv"].good, read))
    with budget() as folder:
        assert trial("csv", b"1,2", folder)


def test_the_fuzzer_sees_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_path: Path) -> None:
        warnings.warn("of a library", RuntimeWarning, stacklevel=1)

    monkeypatch.setitem(READERS, "csv", Reader(".csv", READERS["csv"].good, read))
    with budget() as folder:
        assert "warns RuntimeWarning" in trial("csv", b"w", folder)


@pytest.mark.slow
def test_the_fuzzer_sees_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[np.ndarray] = []
    monkeypatch.setitem(READERS, "csv", Reader(".csv", READERS["csv"].good, lambda _path: kept.append(np.ones(10**8))))
    with budget() as folder:
        assert "MiB" in trial("csv", b"m", folder)
