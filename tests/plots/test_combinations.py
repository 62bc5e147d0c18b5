"""What the pictures of a linear half show: bars of known loadings, few rows for many columns, classes apart."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PathCollection
from matplotlib.patches import Rectangle

from isthmus import plots
from isthmus.plots.combinations import has_profile
from isthmus.plots.style import SIZE
from pages import HOSTILE

ROWS = np.array([[0.6, -0.8, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])


def half(loading: np.ndarray = ROWS, *, kind: str = "index") -> xr.Dataset:
    count, width = loading.shape
    return xr.Dataset(
        {
            "loading": (("direction", "column"), loading),
            "takes_part": ("column", np.linalg.norm(loading, axis=0) >= 0.05),
            "is_logged": ("column", np.arange(width) == 1),
            "value": (("sample", "direction"), np.random.default_rng(0).normal(size=(30, count))),
            "spectrum": ("component", 0.1 ** np.arange(count)),
        },
        coords={"direction": np.arange(1, count + 1), "column": [f"c{j}" for j in range(width)]},
        attrs={"kind": kind},
    )


def bars(ax: object) -> list[tuple[float, float]]:
    """(row, signed length) of every bar."""
    found = [patch for patch in ax.patches if isinstance(patch, Rectangle)]  # pyright: ignore[reportAttributeAccessIssue]
    return sorted((round(p.get_y() + p.get_height() / 2, 6), round(p.get_width(), 6)) for p in found)


def test_bars_have_the_length_and_the_sign_of_the_loadings_largest_first() -> None:
    ax = plots.loadings(half())
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c2", "log c1", "c0", "c3"]
    assert bars(ax) == [(0, 1.0), (1, -0.8), (2, 0.6)]
    assert {bool(p.get_hatch()) for p in ax.patches if p.get_width() < 0} == {True}  # pyright: ignore[reportAttributeAccessIssue]
    assert not any(p.get_hatch() for p in ax.patches if p.get_width() > 0)  # pyright: ignore[reportAttributeAccessIssue]


def test_of_many_columns_only_those_that_take_part_have_a_row() -> None:
    loading = np.zeros((1, 40))
    loading[0, [3, 30]] = 0.8, 0.6
    loading[0, 7] = 0.012
    ax = plots.loadings(half(loading))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c3", "c30", "38 more, up to 0.012"]
    assert ax.get_xlabel() == "loading in the combination"


def test_a_table_of_forty_loadings_has_a_higher_figure_and_a_profile() -> None:
    loading = np.full((1, 40), 40**-0.5)
    figure = plots.loadings(half(loading)).get_figure()
    assert figure is not None
    assert figure.get_size_inches()[1] > SIZE[1]  # pyright: ignore[reportAttributeAccessIssue]
    assert has_profile(half(loading))
    assert not has_profile(half())
    line = plots.loading_profiles(half(loading, kind="mode")).get_lines()[0]
    np.testing.assert_array_equal(line.get_ydata(), loading[0])
    assert line.get_label() == "mode 1"


def test_intervals_are_whiskers_where_there_are_any() -> None:
    spread = {name: (("direction", "column"), ROWS + by) for name, by in (("low", -0.1), ("high", 0.1))}
    assert not plots.loadings(half()).collections
    lanes = plots.loadings(half().assign(spread)).collections
    assert len(lanes) == 2
    segments = np.array(lanes[0].get_segments())  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(segments[:, :, 0], [[-0.1, 0.1], [-0.9, -0.7], [0.5, 0.7], [-0.1, 0.1]], atol=1e-12)


def test_names_of_others_are_no_formulas_and_fit_the_axes() -> None:
    ax = plots.summary_curve(
        half()
        .assign_coords(column=[HOSTILE, "$x$", "long " * 30, "_d"], target_name="$y$")
        .assign(target=("sample", np.zeros(30))),
        direction=1,
    )
    assert ax.get_ylabel() == r"\$y\$"
    assert r"\$x\$" in ax.get_xlabel()
    assert len(ax.get_xlabel()) < 60


def test_classes_differ_by_marker_and_row() -> None:
    table = half().assign(label=("sample", np.arange(30) % 2)).assign(class_name=("class", ["no", "yes"]))
    ax = plots.summary_curve(table)
    points = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert [len(np.asarray(c.get_offsets())) for c in points] == [15, 15]
    assert [np.round(np.asarray(c.get_offsets())[:, 1]).tolist() for c in points] == [[0.0] * 15, [1.0] * 15]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["no", "yes"]
    plane = plots.summary_plane(table)
    shapes = [np.shape(c.get_paths()[0].vertices) for c in plane.collections if isinstance(c, PathCollection)]
    assert len(set(shapes)) == 2


def test_a_combination_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="needs one of 1 to 2"):
        plots.summary_curve(half().assign(target=("sample", np.zeros(30))), direction=3)


def test_the_spectrum_is_relative_and_says_what_is_zero_by_construction() -> None:
    ax = plots.direction_spectrum(half(), columns=4)
    np.testing.assert_allclose(np.asarray(ax.get_lines()[0].get_ydata()), [1.0, 0.1])
    assert [text.get_text() for text in ax.texts] == ["0 by\nconstruction", "rank 2"]
    assert [text.get_text() for text in plots.direction_spectrum(half(), columns=2).texts] == ["rank 2"]
