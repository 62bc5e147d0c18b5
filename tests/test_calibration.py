"""How probabilities are judged: by suites that nothing was fitted to, and what is said of them is what is drawn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import calibration
from calibration import TABLE, Line, bins_of, calibration_error, diagram, left_out, together

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


def test_the_picture_has_the_share_and_its_interval_of_each_bin(tasks: list[Line]) -> None:
    parts = left_out(tasks)
    p, right = together(parts)
    figure = diagram({KIND: parts, "rank, regression": [replace(part, right=1 - part.right) for part in parts]})
    for ax, shares in zip(figure.axes, (right, 1 - right), strict=True):
        lines = {name: [line for line in ax.get_lines() if line.get_label() == name] for name in ("share", "interval")}
        points = [np.ravel(line.get_xydata()) for line in lines["share"]]
        bins = [here for _, _, here in bins_of(p)]
        assert np.allclose(points, [(p[here].mean(), shares[here].mean()) for here in bins])
        for line, (told, share) in zip(lines["interval"], points, strict=True):
            x, ends = np.asarray(line.get_xydata()).T
            assert np.allclose(x, told)
            assert 0 <= ends[0] <= share <= ends[1] <= 1
            assert ends[1] - ends[0] > 0.05, "of so few tasks no share is known closely"
        assert [text.get_text() for text in ax.texts] == [str(int(here.sum())) for here in bins]
    assert "error" in figure.axes[0].get_title()


def test_every_kind_that_is_judged_has_a_name_to_draw_it_by() -> None:
    table = pd.read_csv(TABLE)
    judged = {kind for kind in set(table["kind"]) if len(set(table["suite"][table["kind"] == kind])) > 1}
    assert judged <= set(calibration.NAMED)
    assert KIND in judged
