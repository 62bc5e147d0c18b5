import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import discoveries
from isthmus.discovery.evidence.straight_halves import targets_of
from isthmus.reports import write_pictures
from isthmus.reports.layer_pictures import layer_pictures
from isthmus.reports.picture import Picture, inline_svg
from isthmus.reports.pictures import pictures_of
from isthmus.theory import Verdict

NAMES = ["scree", "objective_curve", "layer_spectra", "jacobian_spectrum", "starts"]


@pytest.mark.slow
def test_every_picture_is_written_as_png_and_svg_and_nothing_else(tmp_path: Path) -> None:
    write_pictures(discoveries.discovery(), tmp_path / "plots", discoveries.inputs())
    names = [*NAMES, "coordinates_1_2", "coordinates_1_3", "coordinates_2_3"]
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {f"{n}.{s}" for n in names for s in ("png", "svg")}
    for name in names:
        image = matplotlib.image.imread(tmp_path / "plots" / f"{name}.png")
        assert image.shape[:2] == (620, 880)
        assert image[..., :3].std() > 0.01
        root = ElementTree.parse(tmp_path / "plots" / f"{name}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("verdict", Verdict)
def test_a_rank_that_does_not_stand_out_is_marked_nowhere(verdict: Verdict) -> None:
    pictures = [p for p in pictures_of(discoveries.discovery(verdict=verdict)) if p.name in NAMES[:4]]
    assert len(pictures) == 4
    is_sharp = verdict in {Verdict.CONFIDENT, Verdict.DOUBTFUL}
    for picture in pictures:
        assert ("rank 3" in [text.get_text() for text in picture.draw().texts]) is is_sharp, picture.name
        assert ("marked" in picture.description) is is_sharp


def test_a_depth_path_is_shown_where_there_is_one() -> None:
    found = discoveries.discovery(depth_path=discoveries.depth_path())
    assert [picture.name for picture in pictures_of(found)] == [*NAMES[:4], "starts", "depth_path"]


@pytest.mark.parametrize(
    ("rank", "names"), [(0, []), (1, ["coordinate_1"]), (2, ["coordinates_1_2"])], ids=["none", "one", "two"]
)
def test_coordinates_are_shown_as_far_as_there_are_any(rank: int, names: list[str]) -> None:
    found = discoveries.discovery(rank=rank)
    assert [picture.name for picture in pictures_of(found, discoveries.inputs())] == [*NAMES, *names]


def test_a_table_without_spectra_has_no_spectra_pictures() -> None:
    diagnosis = discoveries.discovery().diagnosis
    bare = diagnosis.layers.drop_vars(["activation_singular_values", "jacobian_singular_values"])
    found = discoveries.discovery(diagnosis=type(diagnosis)(bare, diagnosis.rank, []))
    assert [picture.name for picture in pictures_of(found)] == ["scree", "objective_curve", "starts"]


def test_whose_jacobian_is_shown_is_said() -> None:
    found = discoveries.discovery()
    of_task, of_network = (
        next(one for one in pictures_of(what) if one.name == "jacobian_spectrum") for what in (found, found.diagnosis)
    )
    assert "that is returned" in of_task.caption
    assert "before it was cut" in of_task.caption
    assert "returned" not in of_network.caption


def test_of_one_singular_value_there_is_no_spectrum() -> None:
    diagnosis = discoveries.discovery().diagnosis
    spectra = diagnosis.layers["jacobian_singular_values"]
    for count in (1, 2):
        layers = diagnosis.layers.assign(jacobian_singular_values=spectra.where(spectra["component"] < count))
        names = [picture.name for picture in layer_pictures(layers, 1)]
        assert ("jacobian_spectrum" in names) is (count > 1)


def test_a_name_of_somebody_elses_stands_in_no_attribute() -> None:
    """Settings are part of names, and an index of a sweep may hold any: a page had gone where one of them said."""
    evil = 'd"></svg><meta http-equiv="refresh" content="0;url=http:x"><h1 \\1'
    picture = Picture(evil, "words.", "shown", lambda: Figure().add_subplot())
    text = inline_svg(picture)
    assert "<meta" not in text
    assert "<h1" not in text
    assert text.count("<svg") == text.count("</svg>") == 1
    assert re.fullmatch(r"[\w.-]+-title", _first_id(text))


def test_two_names_have_two_ids() -> None:
    names = ["a b", "a-b", "a_b", "a.b", "a  b", "a.20.b", "ä b", "a/b"]
    found = [_first_id(inline_svg(Picture(name, "", "", lambda: Figure().add_subplot()))) for name in names]
    assert len(set(found)) == len(names)


def _first_id(svg: str) -> str:
    return svg.split('aria-labelledby="', 1)[1].split(" ", 1)[0]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_columns_of_data_frames_are_taken_by_name_wherever_they_stand(task: str) -> None:
    """`transform` takes them so; the picture of coordinates had taken them as they stood."""
    found = discoveries.discovery(task=task)
    x = pd.DataFrame(discoveries.inputs(), columns=list(discoveries.INPUTS))
    values = found.predict(x)
    labels = values if task == "regression" else np.eye(values.shape[1], dtype=int)[values.argmax(1)]
    y = pd.DataFrame(labels, columns=list(discoveries.TARGETS))

    def points(x: pd.DataFrame, y: pd.DataFrame) -> list[np.ndarray]:
        picture = next(one for one in pictures_of(found, x, y=y) if one.name == "coordinates_1_2")
        return [np.asarray(points.get_offsets()) for points in picture.draw().collections] + [
            np.asarray(points.get_array()) for points in picture.draw().collections if points.get_array() is not None
        ]

    if task == "regression":
        np.testing.assert_array_equal(targets_of(found, found.in_order(x), y.iloc[:, ::-1]), y.to_numpy())
    turned = points(x.iloc[:, ::-1], y.iloc[:, ::-1].assign(beside=0))
    for one, other in zip(points(x, y), turned, strict=True):
        np.testing.assert_array_equal(one, other)
