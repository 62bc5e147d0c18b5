from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.quiver import Quiver

import discoveries
from isthmus import plots
from isthmus.diagnostics import reconstruction_arrows, representation_path
from isthmus.discovery import interpret
from isthmus.discovery.choices import SLACK
from isthmus.discovery.evidence.straight_halves import straight_half
from isthmus.plots.style import INK, PALETTE, SIZE, SURFACE
from isthmus.tasks.input_columns import pixel_places
from isthmus.theory.comparison import in_nats

SRC = Path(__file__).parents[2] / "src"
FOUND = discoveries.discovery()
DEPTHS = discoveries.depth_path(glued=True)
MEANING = interpret(
    FOUND, discoveries.inputs(), candidates={"probe": discoveries.inputs()[:, 0]}, transforms={"flip": lambda v: -v}
)
COORDINATES = xr.Dataset({"coordinates": (("sample", "coordinate"), FOUND.transform(discoveries.inputs()))})
_STRAIGHT = discoveries.straight(np.linalg.qr(np.random.default_rng(2).normal(size=(7, 2)))[0].T)
_ROWS = np.random.default_rng(3).normal(size=(50, 7))
_HALF = straight_half(_STRAIGHT, _ROWS)
assert _HALF is not None
HALF = _HALF.assign(target=("sample", _ROWS[:, 0])).assign_coords(target_name="flux")
OF_CLASSES = _HALF.assign(label=("sample", np.arange(50) % 3), class_name=("class", ["cat", "cow", "dog"]))
TRIANGLES = [[[0, 0], [1, 0], [0, 1]], [[1, 0], [1, 1], [0, 1]]]
SWEEP = pd.DataFrame({"network.depth": [4, 8, 4, 8], "objective": [0.3, 0.2, 0.31, 0.22]})
DEPTH = xr.Dataset(
    {
        "dimension_activation": ("layer", [8, 3, 3]),
        "dimension_participation": ("layer", [5.5, 2.5, 2.0]),
        "nonlinearity_impact": ("layer", [0.4, 0.0, np.nan]),
        "identity_defect": ("layer", [0.9, 0.05, 0.3]),
        "tangent_kernel_trace": ("layer", [30.0, 0.0, 2.0]),
        "balance_residual": ("layer", [0.2, np.nan, 1e-3]),
        "position": ("layer", [np.nan, 0.4, 1.0]),
        "cost_of_identity": ("layer", [np.nan, 3.2, 3.1]),
        "kinetic_energy": ("layer", [np.nan, 0.2, 0.1]),
        "hamiltonian": ("layer", [np.nan, -3.0, -2.9]),
    },
    coords={"layer": [1, 2, 3]},
)
PATH = representation_path(discoveries.networks()[0], torch.from_numpy(discoveries.inputs()))
ARROWS = reconstruction_arrows(torch.nn.Linear(5, 5), torch.from_numpy(discoveries.inputs()))
_TRIANGLE = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [np.nan, np.nan]]
_QUADRANGLE = [[1.0, 0.0], [1.0, 1.0], [0.5, 1.0], [0.0, 1.0]]
CLASSES = xr.Dataset(
    {
        "vertices": (("piece", "vertex", "component"), [_TRIANGLE, _QUADRANGLE]),
        "label": ("piece", [0, 2]),
        "class_name": ("class", ["cat", "cow", "dog"]),
        "tripoints": (("tripoint", "component"), [[0.5, 0.5]]),
    }
)
IMAGES = xr.Dataset(
    {"images": (("version", "sample", "pixel"), np.linspace(-0.2, 1.4, 2 * 3 * 16).reshape(2, 3, 16))},
    coords={"version": ["noisy", "depth 8"]},
)
PIXELS = xr.Dataset(
    {
        "attribution": (("coordinate", "input"), np.linspace(0, 1, 36).reshape(3, 12)),
        "loading": (("direction", "column"), np.linspace(-0.6, 0.3, 24).reshape(2, 12)),
    },
    coords={
        "coordinate": [1, 2, 3],
        "direction": [1, 2],
        "input": (pixels := [f"row {i} column {j}" for i in range(1, 4) for j in range(1, 5)]),
        "column": pixels,
    },
)
Drawing = Callable[[Axes | None], Axes]
TRAINING = xr.Dataset(
    {"dimension_activation": (("step", "layer"), np.array([[6, 6], [3, 4], [1, 2]]))},
    coords={"step": [0, 50, 100], "layer": ["0", "2"]},
)
DRAWINGS: dict[str, Drawing] = {
    "scree": lambda ax: plots.scree(FOUND.scree, ax, rank=3),
    "objective_curve": lambda ax: plots.objective_curve(FOUND.objective_curve, ax, rank=3),
    "layer_spectra": lambda ax: plots.layer_spectra(FOUND.diagnosis.layers, ax, rank=3),
    "jacobian_spectrum": lambda ax: plots.jacobian_spectrum(FOUND.diagnosis.layers, ax, rank=3),
    "depth_path": lambda ax: plots.depth_path(DEPTHS.table, ax, switch=DEPTHS.reading.switch),
    "rank_over_training": lambda ax: plots.rank_over_training(TRAINING, ax),
    "errors_saved": lambda ax: plots.errors_saved(MEANING, ax),
    "attributions": lambda ax: plots.attributions(MEANING, ax),
    "candidates": lambda ax: plots.candidates(MEANING, ax),
    "symmetry_defects": lambda ax: plots.symmetry_defects(MEANING, ax),
    "loadings": lambda ax: plots.loadings(HALF, ax),
    "loading_profiles": lambda ax: plots.loading_profiles(HALF, ax),
    "summary_curve": lambda ax: plots.summary_curve(HALF, ax, direction=2),
    "summary_plane": lambda ax: plots.summary_plane(HALF, ax),
    "direction_spectrum": lambda ax: plots.direction_spectrum(HALF, ax, columns=7),
    "starts": lambda ax: plots.starts(FOUND.runs, ax),
    "coordinates": lambda ax: plots.coordinates(COORDINATES, ax),
    "regions": lambda ax: plots.regions(
        TRIANGLES, [1, 2], ax, names={1: "rank 1", 2: "rank 2"}, tripoints=[[0.5, 0.5]]
    ),
    "sweep_lines": lambda ax: plots.sweep_lines(SWEEP, ax, axis="network.depth", quantity="objective"),
    "dimensions": lambda ax: plots.dimensions(DEPTH, ax, rank=3),
    "departures": lambda ax: plots.departures(DEPTH, ax),
    "tangent_kernel": lambda ax: plots.tangent_kernel(DEPTH, ax),
    "balance": lambda ax: plots.balance(DEPTH, ax),
    "energies": lambda ax: plots.energies(DEPTH, ax),
    "hamiltonian": lambda ax: plots.hamiltonian(DEPTH, ax),
    "representation_path": lambda ax: plots.representation_path(PATH, ax),
    "autoencoder_arrows": lambda ax: plots.autoencoder_arrows(ARROWS, ax),
    "image_rows": lambda ax: plots.image_rows(IMAGES, ax),
    "attribution_maps": lambda ax: plots.attribution_maps(PIXELS, ax),
    "loading_maps": lambda ax: plots.loading_maps(PIXELS, ax),
    "decision_regions": lambda ax: plots.decision_regions(CLASSES, ax),
}


def drawn(ax: Axes) -> Figure:
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    return figure


def labelled(ax: Axes, start: str) -> Line2D:
    (line,) = [line for line in ax.get_lines() if str(line.get_label()).startswith(start)]
    return line


def test_a_single_coordinate_has_no_ticks_between_whole_numbers() -> None:
    ax = plots.errors_saved(xr.Dataset({"error_saved": ("coordinate", [1.1])}, coords={"coordinate": [1]}))
    drawn(ax)
    assert [tick for tick in ax.get_xticks() if tick % 1] == []


def test_every_public_plot_is_drawn_here() -> None:
    assert set(DRAWINGS) == set(plots.__all__)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_plot_labels_its_axes_and_fits_a_small_figure(name: str) -> None:
    ax = DRAWINGS[name](None)
    figure = drawn(ax)
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert tuple(figure.get_size_inches()) == SIZE
    box, width_height = figure.get_tightbbox(), figure.get_size_inches()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= width_height[0]
    assert box.y1 <= width_height[1]


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_plot_draws_into_the_axes_it_is_given(name: str) -> None:
    ax = Figure().add_subplot()
    assert DRAWINGS[name](ax) is ax


@pytest.mark.parametrize("name", ["scree", "objective_curve", "layer_spectra", "jacobian_spectrum"])
def test_the_chosen_rank_is_marked(name: str) -> None:
    ax = DRAWINGS[name](None)
    assert [text.get_text() for text in ax.texts if "rank" in text.get_text()] == ["rank 3"]


def test_scree_shows_the_errors_of_the_table() -> None:
    ax = plots.scree(FOUND.scree)
    for label, name in {"held out": "heldout_error", "training": "train_error", "linear": "linear_error"}.items():
        np.testing.assert_array_equal(labelled(ax, label).get_ydata(), FOUND.scree[name])
    assert ax.get_yscale() == "log"


def test_a_depth_path_has_one_line_for_each_rank_and_hollow_marks_where_the_data_are_cut() -> None:
    ax = DRAWINGS["depth_path"](None)
    for rank in (1, 2, 3):
        np.testing.assert_array_equal(
            labelled(ax, f"rank {rank}").get_ydata(), DEPTHS.table["objective"].sel(rank=rank)
        )
    hollow = [line for line in ax.get_lines() if line.get_markerfacecolor() == SURFACE]
    assert [len(np.asarray(line.get_xdata())) for line in hollow] == [6, 0, 0]
    assert [text.get_text() for text in ax.texts] == ["switch"]


def test_the_cells_of_a_map_carry_their_numbers() -> None:
    ax = DRAWINGS["attributions"](None)
    numbers = [text.get_text() for text in ax.texts]
    assert numbers == [f"{value:.2f}" for value in MEANING["attribution"].values.ravel()]
    bars = [bar.get_height() for bar in DRAWINGS["errors_saved"](None).patches]  # pyright: ignore
    assert bars == MEANING["error_saved"].values.tolist()
    bars = [bar.get_height() for bar in DRAWINGS["symmetry_defects"](None).patches]  # pyright: ignore
    assert bars == MEANING["symmetry_defect"].values.tolist()


@pytest.mark.parametrize(("rank", "shown"), [(24, [*range(1, 25)]), (50, [*range(1, 50, 3)])])
def test_the_names_of_many_coordinates_do_not_run_into_each_other(rank: int, shown: list[int]) -> None:
    table = xr.Dataset(
        {"attribution": (("coordinate", "input"), np.ones((rank, 2)))},
        coords={"coordinate": np.arange(1, rank + 1), "input": ["a", "b"]},
    )
    ax = plots.attributions(table)
    assert [int(label.get_text()) for label in ax.get_yticklabels()] == shown


def test_a_linear_map_that_is_exact_does_not_squash_the_scree() -> None:
    exact = FOUND.scree["linear_error"].copy()
    exact[-1] = 1e-15
    table = FOUND.scree.assign(linear_error=exact)
    least = min(float(table[name].min()) for name in ("heldout_error", "train_error"))
    assert plots.scree(table).get_ylim()[0] == pytest.approx(least / 30)
    ordinary = plots.scree(FOUND.scree).get_ylim()[0]
    assert least / 30 < ordinary < float(FOUND.scree["linear_error"].min())


def test_scree_without_a_baseline_or_with_an_error_of_zero() -> None:
    table = FOUND.scree.drop_vars("linear_error")
    table["heldout_error"][2] = 0.0
    ax = plots.scree(table)
    drawn(ax)
    assert np.isnan(np.asarray(labelled(ax, "held out").get_ydata())[2])
    assert [line.get_label() for line in ax.get_lines()] == ["held out", "training", "best constant"]
    assert np.asarray(labelled(ax, "best constant").get_ydata()).tolist() == [1.0, 1.0], "the unit of the axis"


def test_the_objective_curve_shows_the_excess_and_the_threshold() -> None:
    ax = plots.objective_curve(FOUND.objective_curve)
    objective = FOUND.objective_curve["objective"].sel(ridge=1e-3).values
    line = labelled(ax, "ridge 0.001 (chosen)")
    expected = np.clip(100 * (objective / objective[-1] - 1), 0.01, None)
    np.testing.assert_allclose(np.asarray(line.get_ydata()), expected, rtol=1e-4)
    others = [labelled(ax, f"ridge {ridge}") for ridge in ("0.01", "0.003")]
    assert line.get_linewidth() > max(other.get_linewidth() for other in others)
    assert _flat(ax) == pytest.approx([100 * SLACK])
    nats = plots.objective_curve(FOUND.objective_curve, compared=in_nats)
    line = labelled(nats, "ridge 0.001 (chosen)")
    np.testing.assert_allclose(np.asarray(line.get_ydata()), np.clip(objective - objective[-1], 5e-5, None), atol=1e-12)
    assert _flat(nats) == pytest.approx([SLACK / 2], rel=SLACK)
    assert nats.get_ylabel() == "objective above its least, nats"


def _flat(ax: Axes) -> list[float]:
    """The heights of the lines right across."""
    return [float(y[0]) for line in ax.get_lines() if len(y := np.asarray(line.get_ydata())) == 2 and y[0] == y[1]]


def test_the_objective_curve_skips_ridges_that_were_not_reached() -> None:
    table = FOUND.objective_curve.copy(deep=True)
    table["objective"][0] = np.nan
    table["objective"][1, 4:] = np.nan
    ax = plots.objective_curve(table)
    drawn(ax)
    assert len(labelled(ax, "ridge 0.003").get_xdata()) == 4  # pyright: ignore[reportArgumentType] - an array
    assert not [line for line in ax.get_lines() if str(line.get_label()).startswith("ridge 0.01")]


def test_layer_spectra_are_relative_to_each_layer() -> None:
    table = FOUND.diagnosis.layers
    (cells,) = plots.layer_spectra(table).collections
    shown = np.ma.asarray(cells.get_array()).reshape(table["activation_singular_values"].shape)
    np.testing.assert_array_equal(shown[:, 0], 1.0)
    values = table["activation_singular_values"].values
    np.testing.assert_allclose(shown[0, 1], values[0, 1] / values[0, 0], rtol=1e-12)
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.isnan(values))


@pytest.mark.parametrize(("rank", "shown"), [(None, 24), (3, 24), (40, 60), (90, 100)])
def test_layer_spectra_reach_beyond_the_rank_and_say_what_is_left_out(rank: int | None, shown: int) -> None:
    values = np.tile(np.logspace(0, -3, 100), (2, 1))
    values[1, 50:] = np.nan
    table = xr.Dataset({"activation_singular_values": (("layer", "component"), values)})
    ax = plots.layer_spectra(table, rank=rank)
    assert np.ma.asarray(ax.collections[0].get_array()).size == 2 * shown
    assert ("the first" in ax.get_xlabel()) == (shown < 100)
    assert shown == 100 or f"the first {shown} of 100;" in ax.get_xlabel()
    assert ax.get_xlim()[1] == shown + 0.5


def test_a_dead_layer_and_a_zero_jacobian_are_drawn_blank() -> None:
    table = FOUND.diagnosis.layers.copy(deep=True)
    table["activation_singular_values"][1] = 0.0
    table["jacobian_singular_values"][0, :4] = 0.0
    ax = plots.layer_spectra(table)
    drawn(ax)
    assert np.ma.getmaskarray(np.ma.asarray(ax.collections[0].get_array()).reshape(4, 12))[1].all()
    drawn(plots.jacobian_spectrum(table))


def test_the_jacobian_is_that_of_the_whole_network() -> None:
    """Layer by layer the table holds df/da_{l-1}: the first is df/dx."""
    table = FOUND.diagnosis.layers.copy(deep=True)
    table["jacobian_singular_values"][-1, :4] = [5.0, 4.0, 3.0, 2.0]
    values = table["jacobian_singular_values"].values[0, :4]
    drawn_values = np.asarray(plots.jacobian_spectrum(table).get_lines()[0].get_ydata())
    np.testing.assert_allclose(drawn_values, np.clip(values / values[0], 1e-6, None), rtol=1e-12)


def test_the_jacobian_over_points_is_a_median_with_a_band() -> None:
    values = np.array([[1.0, 0.5], [2.0, 0.2], [4.0, 1.2]])
    ax = plots.jacobian_spectrum(xr.Dataset({"jacobian_singular_values": (("sample", "component"), values)}))
    np.testing.assert_allclose(np.asarray(ax.get_lines()[0].get_ydata()), [1.0, 0.3], rtol=1e-12)
    assert len(ax.collections) == 1


def test_starts_are_ratios_to_the_least_at_their_ridge() -> None:
    ax = plots.starts(FOUND.runs)
    np.testing.assert_allclose(np.asarray(labelled(ax, "linear").get_ydata()), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(labelled(ax, "random").get_ydata()), [1.02, 1.11] * 3, rtol=1e-12)
    assert sorted(text.get_text() for text in ax.texts) == ["3"] * 6 + ["4"] * 3


@pytest.mark.parametrize(("worse", "fills"), [(1 + 2e-4, 0.02), (1.5, 0.5)])
def test_starts_that_differ_by_less_than_the_slack_do_not_look_apart(worse: float, fills: float) -> None:
    table = FOUND.runs.copy(deep=True)
    table["objective"] = table["objective"].isel(run=slice(0, 1)).values[0] * (1 + (worse - 1) * (table["start"] > 0))
    table["ridge"] = table["ridge"] * 0 + 1e-3
    ax = plots.starts(table)
    low, high = ax.get_ylim()
    assert bool((worse - 1) / (high - low) > fills) is (worse > 1.1)
    drawn(ax)
    assert ax.yaxis.get_offset_text().get_text() == ""


def test_starts_that_diverged_are_left_out() -> None:
    table = FOUND.runs.copy(deep=True)
    table["objective"][1] = np.nan
    ax = plots.starts(table)
    drawn(ax)
    assert len(ax.texts) == 8


def test_one_coordinate_is_a_histogram_and_a_missing_one_is_refused() -> None:
    ax = plots.coordinates(COORDINATES.isel(coordinate=[0]))
    assert ax.get_ylabel() == "samples"
    assert sum(patch.get_height() for patch in ax.patches) == discoveries.NUM_SAMPLES  # pyright: ignore[reportAttributeAccessIssue] - bars
    with pytest.raises(ValueError, match=r"two of the coordinates 0\.\.2"):
        plots.coordinates(COORDINATES, pair=(0, 3))


@pytest.mark.parametrize("pair", [True, False])
def test_samples_are_coloured_by_their_class(pair: bool) -> None:
    count = discoveries.NUM_SAMPLES
    names = np.array(["red", "white", "rose"])[np.arange(count) % 3]
    table = (COORDINATES if pair else COORDINATES.isel(coordinate=[0])).assign(shown=("sample", names))
    ax = plots.coordinates(table)
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["red", "rose", "white"]
    if pair:
        assert sum(len(np.asarray(points.get_offsets())) for points in ax.collections) == count
        assert len({tuple(np.asarray(points.get_facecolor())[0].tolist()) for points in ax.collections}) == 3
    else:
        # stacked: as many samples as without classes
        assert sum(p.get_height() for p in ax.patches) == count  # pyright: ignore[reportAttributeAccessIssue]
    many = COORDINATES.assign(shown=("sample", np.arange(count).astype(str)))
    assert plots.coordinates(many).get_legend() is None


@pytest.mark.parametrize("dimensions", [1, 2])
def test_classes_whose_names_begin_alike_are_all_drawn(dimensions: int) -> None:
    names = np.array(
        ["a very long name of a class, which is number one", "a very long name of a class, which is no one"]
    )
    table = COORDINATES.isel(coordinate=list(range(dimensions)))
    which = names[np.arange(table.sizes["sample"]) % 2]
    ax = plots.coordinates(table.assign(shown=("sample", which)))
    legend = ax.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 2
    if dimensions == 2:
        assert sum(len(np.asarray(found.get_offsets())) for found in ax.collections) == table.sizes["sample"]


def test_samples_are_coloured_by_a_target_that_a_bar_explains() -> None:
    numbers = xr.DataArray(np.linspace(0, 1, discoveries.NUM_SAMPLES), dims="sample", attrs={"name": "yield"})
    ax = plots.coordinates(COORDINATES.assign(shown=numbers))
    assert [other.get_ylabel() for other in ax.figure.axes if other is not ax] == ["yield"]
    assert ax.collections[0].get_array().tolist() == numbers.values.tolist()  # pyright: ignore[reportOptionalMemberAccess]
    (bar,) = (other for other in ax.figure.axes if other is not ax)
    assert bar.yaxis.label.get_color() == INK  # black of its own, as matplotlib's is, is not seen on a dark page
    assert {label.get_color() for label in bar.get_yticklabels()} == {INK}
    assert len(plots.coordinates(COORDINATES).figure.axes) == 1


def test_no_line_is_drawn_across_a_layer_without_a_gap() -> None:
    layers = xr.Dataset({"dimension_activation": ("layer", [5.0, np.nan, 3.0])}, coords={"layer": [1, 2, 3]})
    drawn = np.asarray(labelled(plots.dimensions(layers), "gap").get_ydata())
    np.testing.assert_array_equal(drawn, [5.0, np.nan, 3.0])


def contrast(first: str, second: str) -> float:
    """The contrast ratio of the web's accessibility rules, 1 to 21."""
    luminance: list[float] = []
    for color in (first, second):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
        luminance.append(float(np.dot([0.2126, 0.7152, 0.0722], linear)) + 0.05)
    return max(luminance) / min(luminance)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "muted", "blue", "orange", "green", "purple"])
def test_every_colour_stands_out_from_its_background(name: str, scheme: int) -> None:
    assert contrast(PALETTE[name][scheme], PALETTE["surface"][scheme]) >= (7 if name == "ink" else 3)


def test_the_contrast_of_black_on_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21, rel=1e-12)


def test_regions_have_a_colour_per_label_and_one_label_per_polygon() -> None:
    ax = plots.regions(TRIANGLES, [4, 0], names={0: "cat", 4: "dog"}, points=[[0.2, 0.2]])
    (pieces,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    faces = np.asarray(pieces.get_facecolor())
    box = ax.get_legend()
    assert box is not None
    assert [text.get_text() for text in box.get_texts()] == ["cat", "dog", "samples"]
    patches = [to_rgb(p.get_facecolor()) for p in box.get_patches()]
    assert patches == [tuple(faces[1][:3]), tuple(faces[0][:3])]
    assert patches[0] != patches[1]
    with pytest.raises(ValueError, match="one label per polygon"):
        plots.regions(TRIANGLES, [1], names={1: "a"})


def test_regions_of_one_label_are_told_apart_by_their_shade() -> None:
    """One colour for all of a network's pieces would be a rectangle that says nothing."""
    ax = plots.regions(TRIANGLES, [2, 2], names={2: "rank 2"}, shades=[0.5, 1.5])
    (pieces,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    faces = np.asarray(pieces.get_facecolor())
    assert brightness(faces[0]) > brightness(faces[1]) + 0.3
    figure = ax.get_figure(root=True)
    assert figure is not None
    assert [other.get_ylabel() for other in figure.axes if other is not ax] == [
        "largest singular value, rank 2 everywhere"
    ]
    several = plots.regions(TRIANGLES, [1, 2], names={1: "rank 1", 2: "rank 2"}, shades=[0.5, 1.5])
    assert several.get_legend() is not None


def brightness(colour: np.ndarray) -> float:
    return float(colour[:3].mean())


def test_profiles_show_the_numbers_of_the_table_where_there_are_any() -> None:
    line = labelled(plots.departures(DEPTH), "nonlinearity")
    assert np.asarray(line.get_xdata()).tolist() == [1, 2]
    assert np.asarray(line.get_ydata()).tolist() == [0.4, 0.0]
    along = labelled(plots.energies(DEPTH), "kinetic")
    assert np.asarray(along.get_xdata()).tolist() == [0.4, 1.0]
    low, high = plots.hamiltonian(DEPTH).get_ylim()
    assert low < -3.0
    assert high >= 0.0
    with pytest.raises(ValueError, match="needs numbers in balance_residual; the table has label"):
        plots.balance(CLASSES[["label"]])


def test_a_trace_of_zero_stays_in_sight_on_its_logarithmic_axis() -> None:
    ax = plots.tangent_kernel(DEPTH)
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(np.asarray(labelled(ax, "tangent").get_ydata()), [30.0, 1e-12, 2.0])


def test_arrows_go_from_samples_to_reconstructions() -> None:
    ax = plots.autoencoder_arrows(ARROWS)
    (arrows,) = [c for c in ax.collections if isinstance(c, Quiver)]
    step = np.stack([np.asarray(arrows.U), np.asarray(arrows.V)], 1)
    np.testing.assert_allclose(step, (ARROWS["end"] - ARROWS["start"]).values, rtol=1e-12)


def test_arrows_beside_what_was_trained_on_have_their_names() -> None:
    ax = plots.autoencoder_arrows(
        ARROWS.assign(data=(("row", "component"), [[0.0, 1.0], [2.0, 3.0]])), names=("noisy input", "output")
    )
    box = ax.get_legend()
    assert box is not None
    assert [text.get_text() for text in box.get_texts()] == ["training data", "noisy input", "output"]
    np.testing.assert_array_equal(np.asarray(labelled(ax, "training").get_xydata()), [[0, 1], [2, 3]])


def test_images_stand_in_rows_by_version_on_one_scale() -> None:
    ax = plots.image_rows(IMAGES)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["noisy", "depth 8"]
    drawn_images = ax.get_images()
    assert len(drawn_images) == 6
    assert {image.get_clim() for image in drawn_images} == {(0.0, float(IMAGES["images"][0].max()))}
    np.testing.assert_array_equal(np.asarray(drawn_images[4].get_array()).ravel(), IMAGES["images"].values[1, 1])
    tops = [image.get_extent()[3] for image in drawn_images]
    assert tops[0] == tops[2] < tops[3]
    with pytest.raises(ValueError, match="needs square images; got 15 pixels"):
        plots.image_rows(IMAGES.isel(pixel=slice(15)))


def test_decision_regions_name_their_classes_and_drop_padding() -> None:
    ax = plots.decision_regions(CLASSES)
    (pieces,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert [len(np.asarray(path.vertices)) for path in pieces.get_paths()] == [4, 5]  # with the point that closes each
    box = ax.get_legend()
    assert box is not None
    assert [text.get_text() for text in box.get_texts()] == ["cat", "dog", "tripoints"]


def test_a_path_is_drawn_through_the_layers_that_share_components() -> None:
    ax = plots.representation_path(PATH)
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    shared = PATH["path"].values[PATH["group"].values == 0]
    assert len(shared) == 3
    np.testing.assert_array_equal(np.asarray(lines.get_segments()), shared.transpose(1, 0, 2))
    assert ax.get_title() == "layers 1 to 3"


def test_of_many_inputs_some_are_named_by_what_they_are_called() -> None:
    """Wavelengths had been numbered 0, 50, 100."""
    names = [f"{400 + 2 * i}nm" for i in range(200)]
    table = xr.Dataset(
        {"attribution": (("coordinate", "input"), np.ones((2, 200)))}, coords={"coordinate": [1, 2], "input": names}
    )
    ax = plots.attributions(table)
    ticks = {int(place): label.get_text() for place, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)}
    assert 10 <= len(ticks) <= 24
    assert all(label == names[place] for place, label in ticks.items())


@pytest.mark.parametrize(("above", "drawn_ones"), [(2, 8), (40, 60), (250, 256)])
def test_a_spectrum_of_many_zeros_is_drawn_as_far_as_it_says_something(above: int, drawn_ones: int) -> None:
    values = np.where(np.arange(256) < above, 0.99 ** np.arange(256), 0.0)
    ax = plots.jacobian_spectrum(xr.Dataset({"jacobian_singular_values": (("sample", "component"), values[None])}))
    assert len(np.asarray(ax.get_lines()[0].get_xdata())) == drawn_ones
    assert ax.get_xlabel() == f"component of the Jacobian{', of 256' if drawn_ones < 256 else ''}"


def cells_of(ax: Axes) -> list[np.ndarray]:
    arrays = [mesh.get_array() for mesh in ax.collections if isinstance(mesh, QuadMesh)]
    return [np.ma.filled(array, np.nan) for array in arrays if array is not None]


def test_a_few_pixels_of_a_map_are_no_picture() -> None:
    """Two pixels had been drawn in a picture of 600,000,000."""
    apart = [
        ["pixel_0_0", f"pixel_{line}_{place}"] for line, place in ((20_000, 30_000), (999_999, 999_999), (999, 999))
    ]
    assert [pixel_places(names) is None for names in apart] == [True, True, False]


def test_numbers_of_pixels_stand_where_the_pixels_do() -> None:
    for number, cells in enumerate(cells_of(plots.attribution_maps(PIXELS))):
        np.testing.assert_array_equal(cells.reshape(3, 4), PIXELS["attribution"].values[number].reshape(3, 4))
    order = np.random.default_rng(0).permutation(11)  # in any order, and one is left out
    cells = cells_of(plots.loading_maps(PIXELS.isel(column=order)))[1].reshape(3, 4)
    expected = PIXELS["loading"].values[1].reshape(3, 4).copy()
    expected[2, 3] = np.nan
    np.testing.assert_array_equal(cells, expected)
    bands = PIXELS.isel(input=slice(4)).assign_coords(
        input=["row 1 column 1 red", "row 1 column 1 green", "row 1 column 2 red", "row 2 column 2 red"]
    )
    strongest = bands["attribution"].values[0]
    np.testing.assert_array_equal(
        cells_of(plots.attribution_maps(bands))[0].reshape(2, 2), [strongest[1:3], [np.nan, strongest[3]]]
    )


def test_of_many_coordinates_the_first_are_drawn_as_pictures() -> None:
    many = PIXELS.isel(coordinate=[0] * 40).assign_coords(coordinate=range(1, 41))
    assert [text.get_text() for text in plots.attribution_maps(many).texts] == [str(i) for i in range(1, 13)]
    with pytest.raises(ValueError, match="columns called as pixels"):
        plots.attribution_maps(MEANING)


def test_all_loadings_have_one_scale_whose_middle_is_nothing() -> None:
    meshes = [mesh for mesh in plots.loading_maps(PIXELS).collections if isinstance(mesh, QuadMesh)]
    assert {mesh.get_clim() for mesh in meshes} == {(-0.6, 0.6)}
    below, nothing, above = meshes[0].get_cmap()([0.1, 0.5, 0.9])
    assert nothing[3] < 0.02 < min(below[3], above[3])
    assert not np.allclose(below[:3], above[:3])
