"""What the page and the pictures say of the coordinates."""

import numpy as np
import xarray as xr

import discoveries
from isthmus import interpret
from isthmus.reports.meaning import meaning_pictures, meaning_table

MEANING = xr.Dataset(
    {
        "error_saved": ("coordinate", [0.25, 0.5]),
        "order": ("coordinate", [2, 1]),
        "attribution": (("coordinate", "input"), [[0.1, 0.9, 0.0, 0.3], [0.5, 0.2, 0.7, 0.6]]),
    },
    coords={"coordinate": [1, 2], "input": ["a", "b", "c", "d"]},
)
SEVERAL = MEANING.assign_coords(candidate=["age", "size"]).assign(
    distance_correlation=(("coordinate", "candidate"), np.array([[0.2, 0.95], [0.4, 0.1]]))
)


def test_the_inputs_a_coordinate_follows_are_named_largest_first() -> None:
    table = meaning_table(MEANING)
    assert table.headings == ("coordinate", "place by error saved", "error saved / variance", "follows most")
    assert table.rows == (("1", "2", "0.25", "b 0.9, d 0.3, a 0.1"), ("2", "1", "0.5", "c 0.7, d 0.6, a 0.5"))
    assert table.words == (3,)
    commas = meaning_table(MEANING.assign_coords(input=["a", "flow, L/min", "c", "d"]))
    assert commas.rows[0][-1] == "'flow, L/min' 0.9, d 0.3, a 0.1"


def test_candidates_have_a_column_and_a_picture_where_there_are_any() -> None:
    assert [row[-1] for row in meaning_table(SEVERAL).rows] == ["size 0.95, age 0.20", "age 0.40, size 0.10"]
    assert [p.name for p in meaning_pictures(MEANING)] == ["errors_saved", "attributions"]
    assert [p.name for p in meaning_pictures(SEVERAL)] == ["errors_saved", "attributions", "candidates"]
    turned = MEANING.assign_coords(transform=["turn"]).assign(symmetry_defect=("transform", [0.1]))
    assert [p.name for p in meaning_pictures(turned)] == ["errors_saved", "attributions", "symmetry_defects"]
    assert "4 inputs" in meaning_pictures(SEVERAL)[1].description


def test_what_interpret_returns_is_understood() -> None:
    x = discoveries.inputs()
    meaning = interpret(discoveries.discovery(), x, candidates={"first": x[:, 0]})
    rows = meaning_table(meaning).rows
    assert len(rows) == meaning.sizes["coordinate"]
    assert all(row[-1].startswith("first ") for row in rows)


def test_what_coordinates_follow_in_pictures_is_drawn_as_pictures() -> None:
    """64 pixels in a row say nothing of where they are."""
    pixels = MEANING.assign_coords(input=["pixel_0_0", "pixel_0_1", "pixel_1_0", "pixel_1_1"])
    (_, picture) = meaning_pictures(pixels)
    assert (picture.name, len(picture.draw().patches)) == ("attributions", 2)
    assert "each pixel" in picture.caption
    many = pixels.isel(coordinate=[0] * 20).assign_coords(coordinate=range(1, 21))
    assert "The first 12 of 20." in meaning_pictures(many)[1].caption
    line = MEANING.assign_coords(input=["pixel_0_0", "pixel_0_1", "pixel_0_2", "pixel_0_3"])
    for other in (line, MEANING.assign_coords(input=["pixel_0_0", "pixel_0_1", "pixel_1_0", "age"])):
        assert "4 inputs" in meaning_pictures(other)[1].description
