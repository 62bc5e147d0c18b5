"""Every benchmark runs with --quick, exits without an error and states an answer in its header."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import comparison
import rank_recovery
from isthmus.errors import DataError
from measured.recovery_cases import SUITES, cases_of, name_of, smallest_first
from measured.rows import Rows, head

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: p.stem)
def test_it_runs_quickly(path: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(path), "--quick"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 2


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: p.stem)
def test_its_header_asks_one_question_and_answers_it(path: Path) -> None:
    header = path.read_text().split('"""')[1]
    assert header.startswith("Question: ")
    assert header.count("?") >= 1
    assert "Answer" in header
    assert "ANSWER" not in header


def test_measured_rows_are_kept_and_go_on_where_they_were(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    first = Rows.of(path, commit="abc")
    first.add("one", {"rank": 3, "scree": [0.5, 0.1]})
    again = Rows.of(path)
    assert (again.commit, again.found) == ("abc", {"one": {"rank": 3, "scree": [0.5, 0.1], "measured_at": head()}})
    again.add("two", {"rank": 1})
    assert list(Rows.of(path, commit="abc").found) == ["one", "two"]
    with pytest.raises(DataError, match=r"rows.json: holds the cases of commit abc, not of def. Leave out"):
        Rows.of(path, commit="def")
    path.write_text(json.dumps(["something else"]))
    with pytest.raises(DataError, match="is no file of measured rows"):
        Rows.of(path)


def test_without_a_file_rows_are_those_of_the_commit_that_is_checked_out() -> None:
    rows = Rows.of(None)
    rows.add("one", {"rank": 3})
    assert rows.commit == head()
    assert rows.found["one"]["rank"] == 3


@pytest.mark.parametrize(
    ("suite", "count"),
    [
        ("short", 48),
        ("issue6", 216),
        ("bijection", 80),
        ("large", 36),
        pytest.param("kuramoto", 5, marks=pytest.mark.slow),
    ],
)
def test_a_suite_has_its_cases_and_follows_the_commit(suite: str, count: int) -> None:
    cases = cases_of(suite, "abc")
    assert len({name_of(case) for case in cases}) == len(cases) == count
    assert cases == cases_of(suite, "abc") != cases_of(suite, "abd")
    ranks = Counter(case.rank for case in cases)
    assert set(ranks) == {"large": set(range(9, 21)), "kuramoto": {8}}.get(suite, set(range(1, 9)))
    assert len(set(ranks.values())) == 1
    lengths = [case.num_samples for case in smallest_first(cases)]
    assert lengths == sorted(lengths)
    task = min(cases, key=lambda c: c.num_samples).task()
    assert task.true_rank in ranks
    assert len(task.x) == min(lengths)


def test_what_accuracy_asks_for_is_counted_where_it_was_asked() -> None:
    case, other = cases_of("classes", "abc")[:2]
    found = {"rank": case.rank, "verdict": "DOUBTFUL", "seconds": 1.0}
    asked = found | {
        "accuracy_rank": case.rank + 1,
        "accuracy_rank_low": case.rank,
        "accuracy_rank_high": case.rank + 1,
    }
    assert rank_recovery.accuracy_of(found) is None
    assert rank_recovery.accuracy_of(asked) == (case.rank + 1, case.rank, case.rank + 1)
    assert "for accuracy" not in rank_recovery.summary([(case, found)])
    far = asked | {"accuracy_rank_low": case.rank + 1}
    told = rank_recovery.summary([(case, asked), (case, far), (other, found)])
    assert told.endswith("; for accuracy 0 of 2 right, 1 in its interval")


def test_the_suites_are_those_of_the_command() -> None:
    header = (ROOT / "benchmarks" / "rank_recovery.py").read_text().split('"""')[1]
    assert all(f"\n{suite} " in header for suite in SUITES)


def test_covariant_vectors_of_a_linear_flow_are_its_eigenvectors() -> None:
    """Exponents are logarithms of the eigenvalues, and angles those between the eigenvectors' spans."""
    from measured.covariant_vectors import covariant

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(4, 4))
    matrix = vectors @ np.diag([1.5, 1.1, 0.7, 0.2]) @ np.linalg.inv(vectors)
    found = covariant(
        lambda rows: np.concatenate([rows[:1], rows[1:] @ matrix.T]), np.zeros(4), count=4, time=2.0, warm=60,
        moments=5, cool=60,
    )  # fmt: skip
    assert found.exponents == pytest.approx(np.log([1.5, 1.1, 0.7, 0.2]) / 2, abs=1e-6)
    for j in range(1, 4):
        first, others = np.linalg.qr(vectors[:, :j])[0], np.linalg.qr(vectors[:, j:])[0]
        expected = np.arccos(np.linalg.norm(first.T @ others, 2))
        assert found.angles[:, j - 1] == pytest.approx(expected, abs=1e-6)
    assert np.ptp(found.angles[0]) > 0.01, "control: the angles differ"


@pytest.mark.slow
def test_the_waves_of_length_22_lie_in_eight_dimensions() -> None:
    from measured.covariant_vectors import covariant
    from tangent_angles import FLOWS, border

    flow = FLOWS["kuramoto-22"]()
    found = covariant(flow.lead, flow.state(), count=16, time=1.0, warm=300, moments=1000, cool=300)
    assert border(found.angles) == 8
    assert found.angles.min(0)[7] > 0.2 > 10 * found.angles.min(0)[:7].max()


def test_the_page_of_comparisons_has_the_rows_that_were_measured() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    tables = dict(comparison.tables(Rows.of(comparison.ROWS)))
    assert {suite: f"<!-- {suite} -->\n{table}\n<!-- end -->" in page for suite, table in tables.items()} == {
        "span": True, "count": True, "x": True, "cut": True
    }  # fmt: skip
    assert sum(len(table.splitlines()) - 2 for table in tables.values()) >= 13
