"""What a page says about a depth path, from tables whose answer is known."""

from pathlib import Path

import numpy as np
import pytest

import discoveries
from isthmus.discovery.depth.path import DepthPath
from isthmus.reports.depth_words import depth_sentence, depth_table
from isthmus.reports.page import report
from isthmus.reports.verdict import verdict_of


def test_the_flat_and_the_deep_rank_are_said_with_what_each_pays() -> None:
    # regularity of rank r at 32 middle layers: 1000 constant - 1 - 7 r
    assert depth_sentence(discoveries.depth_path()) == (
        "3 dimensions when shallow (1 middle layer, error 0.002, regularity -10), 1 when deep (32, error 0.002, "
        "regularity 22), switching at about 9."
    )


def test_a_rank_that_cuts_the_data_open_is_named() -> None:
    text = depth_sentence(discoveries.depth_path(glued=True))
    assert "2 when deep" in text
    assert text.endswith(
        "A lower objective through dimension 1 comes from cutting the data open, not from coordinates."
    )


def test_a_deep_rank_that_may_cut_the_data_open_is_said_to() -> None:
    table = discoveries.depth_path().table.copy(deep=True)
    table["unsure"] = table["holds"] & (table["rank"] < 3)
    text = "The rows lie too far apart to tell whether 1 dimension cuts the data open."
    assert text in depth_sentence(DepthPath.of(table))
    assert text not in depth_sentence(discoveries.depth_path())
    words = [row[-1] for row in depth_table(DepthPath.of(table)).rows]
    assert words == ["may cut the data open"] * 12 + [""] * 6


def test_ranks_far_below_what_coordinates_fill_are_said_to_be_left_out() -> None:
    table = discoveries.depth_path().table.copy(deep=True)
    for name in ("objective", "true_rank"):
        table[name].loc[{"rank": 1}] = np.nan
    table["holds"].loc[{"rank": 1}] = False
    assert depth_sentence(DepthPath.of(table)).endswith("not tried: 2 and 3 cut the data open already.")
    filled = DepthPath.of(table.assign_attrs(filled=2.9))
    assert depth_sentence(filled).endswith(
        "Fewer than 2 were not tried: the coordinates of the rows fill 2.9 dimensions."
    )


def test_ranks_that_a_long_curve_leaves_out_are_named() -> None:
    table = discoveries.depth_path().table.copy(deep=True)
    assert "were tried" not in depth_sentence(DepthPath.of(table))
    for name in ("objective", "true_rank"):
        table[name].loc[{"rank": 2}] = np.nan
    table["holds"].loc[{"rank": 2}] = False
    assert depth_sentence(DepthPath.of(table)).endswith("Of 1 to 3 dimensions only 1, 3 were tried.")


def test_the_table_has_a_row_for_every_rank_and_depth() -> None:
    table = depth_table(discoveries.depth_path(glued=True))
    assert len(table.rows) == 18
    assert table.headings[:3] == ("dimensions", "middle layers", "objective")
    assert table.rows[0][:3] == ("1", "1", "0.031")
    assert [row[-1] for row in table.rows] == ["cuts the data open"] * 6 + [""] * 12


@pytest.mark.slow
def test_the_page_shows_the_depth_path(tmp_path: Path) -> None:
    found = discoveries.discovery(depth_path=discoveries.depth_path())
    report(found, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "Rank by depth" in text
    assert 'id="figure-depth_path"' in text
    assert [line.label for line in verdict_of(found).lines].count("Depth") == 1
    report(discoveries.discovery(), tmp_path / "other.html")
    assert "Rank by depth" not in (tmp_path / "other.html").read_text()
