"""How probabilities are judged: by suites that nothing was fitted to, and what is said of them is what is drawn."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibration
from calibration import TABLE, LeftOut, Line, bins_of, calibration_error, drawn, left_out, together

KIND = "rank, autoencoding"


@pytest.fixture(scope="module")
def tasks() -> list[Line]:
    """Some that were measured, of three suites."""
    table = pd.read_csv(TABLE)
    suites = [table[(table["kind"] == KIND) & (table["suite"] == one)] for one in ("planes", "pictures", "few-kinds")]
    return pd.DataFrame(pd.concat([suite.head(30) for suite in suites])).to_dict("records")


def with_truth(tasks: list[Line], suite: str, change: int) -> list[Line]:
    """The tasks, each of one suite with another truth."""
    return [line | {"truth": line["truth"] + change} if line["suite"] == suite else line for line in tasks]


def test_no_suite_is_told_by_what_it_turned_out_to_be(tasks: list[Line]) -> None:
    told = {part.suite: part.told for part in left_out(tasks)}
    assert len(told) == 3
    other = {part.suite: part.told for part in left_out(with_truth(tasks, "planes", 1))}
    assert np.array_equal(told["planes"], other["planes"])
    for suite in ("pictures", "few-kinds"):
        assert not np.allclose(told[suite], other[suite], atol=0.05), "what others turned out to be counts"


def test_of_one_suite_alone_nothing_is_left_out(tasks: list[Line]) -> None:
    assert left_out([line for line in tasks if line["suite"] == "planes"]) == []


def test_the_error_is_that_of_chance_where_odds_are_right_and_their_distance_where_not() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=40_000)
    right = (rng.uniform(size=len(p)) < p).astype(float)
    assert calibration_error(p, right) < 0.01
    assert calibration_error(np.full(len(p), 0.97), (rng.uniform(size=len(p)) < 0.7).astype(float)) == pytest.approx(
        0.27, abs=0.01
    )
    assert sum(int(here.sum()) for _, _, here in bins_of(p)) == len(p)


def test_the_picture_has_a_point_and_an_interval_for_each_bin(tasks: list[Line], tmp_path: Path) -> None:
    parts = left_out(tasks)
    first, again, other = tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "c.svg"
    drawn({KIND: parts}, first)
    drawn({KIND: parts}, again)
    assert first.read_bytes() == again.read_bytes()
    drawn({KIND: [wrong(part) for part in parts]}, other)
    assert other.read_bytes() != first.read_bytes()
    lines = first.read_text().count('<g id="line2d_')
    drawn({KIND: parts, "rank, regression": parts}, again)
    bins = len(bins_of(together(parts)[0]))
    assert again.read_text().count('<g id="line2d_') == 2 * lines
    assert lines >= 1 + 2 * bins


def wrong(part: LeftOut) -> LeftOut:
    """With all that was right wrong."""
    return replace(part, right=1 - part.right)


def test_every_kind_that_is_judged_has_a_name_to_draw_it_by() -> None:
    table = pd.read_csv(TABLE)
    judged = {kind for kind in set(table["kind"]) if len(set(table["suite"][table["kind"] == kind])) > 1}
    assert judged <= set(calibration.NAMED)
    assert KIND in judged
