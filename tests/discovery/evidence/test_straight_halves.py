"""What a linear half says, against closed forms: loadings, spectra, scores, and the text of a known direction."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import discoveries
from isthmus.discovery.data.scaling import CONSTANT
from isthmus.discovery.evidence.straight_halves import straight_half, targets_of
from isthmus.discovery.evidence.straight_terms import in_words, terms_of
from isthmus.discovery.halves import INDEX, MODE
from isthmus.errors import DataError, ShapeError
from isthmus.networks import FullyConnected, jacobians
from tolerances import rounding

KNOWN = np.array([[0.71, 0.69, -0.12, 0.01]]) / np.linalg.norm([0.71, 0.69, -0.12, 0.01])
SPREAD, SHIFT = np.array([1.0, 100.0, 1e-3, 5.0, 2.0, 0.3]), np.array([0.0, 3e3, 1.0, -2.0, 7.0, 0.0])
TRUTH = np.array([[0.8, 0.6, 0, 0, 0, 0], [0, 0, 0.6, -0.8, 0, 0], [0, 0, 0, 0, 1.0, 0]])


HUES = (("hue", "red"), ("hue", "blue"), ("mat", "tin"), ("mat", "zinc"))


def samples(width: int, count: int = 200) -> np.ndarray:
    """Rows of mean 0 and spread 1 in every column, exactly."""
    x = np.random.default_rng(0).normal(size=(count, width))
    return (x - x.mean(0)) / x.std(0)


X = samples(6) * SPREAD + SHIFT
FOUND = discoveries.straight(TRUTH, spread=SPREAD, shift=SHIFT, outputs=3)
MODES = discoveries.straight(TRUTH, kind="mode", outputs=4, spread=SPREAD)


def table(*arguments: object):
    half = straight_half(*arguments)  # pyright: ignore[reportArgumentType]
    assert half is not None
    return half


def projection(rows: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(rows) @ rows


@pytest.mark.parametrize(("found", "x"), [(FOUND, X), (FOUND, None), (MODES, samples(4)), (MODES, None)])
def test_loadings_are_orthonormal_rows_of_the_span_of_the_half(found: discoveries.Discovery, x: object) -> None:
    half = table(found, x)
    loading = half["loading"].values
    np.testing.assert_allclose(loading @ loading.T, np.eye(3), atol=rounding(size=6))
    rows = (found.encoder if half.attrs["kind"] == "index" else found.decoder).weights[0].detach().numpy()
    rows = rows.T if half.attrs["kind"] == "mode" else rows
    scaled = rows * (X.std(0) if half.attrs["kind"] == "index" and x is not None else 1.0)
    np.testing.assert_allclose(projection(loading), projection(scaled), atol=1e-9)


def test_directions_that_use_few_columns_are_found_again_in_standardised_columns() -> None:
    loading = table(FOUND, X)["loading"].values
    found = np.abs(loading @ TRUTH.T)
    np.testing.assert_allclose(np.sort(found, axis=1), [[0, 0, 1]] * 3, atol=1e-7)
    assert set(found.argmax(1)) == {0, 1, 2}


def test_coefficients_are_those_of_the_same_numbers_in_the_users_units() -> None:
    half = table(FOUND, X)
    values = X @ half["coefficient"].values.T
    np.testing.assert_allclose(half["value"].values, values - values.mean(0), atol=1e-9)
    assert half["takes_part"].values.tolist() == [True] * 5 + [False]


def test_a_known_direction_has_its_text() -> None:
    found = discoveries.straight(KNOWN, input_names=("a", "b", "c", "d"))
    for half in (table(found), table(found, samples(4))):
        (row,) = half["loading"].values
        assert in_words(terms_of(half), row) == "0.71 a + 0.69 b - 0.12 c"


def test_values_of_a_column_of_text_take_part_together_or_not_at_all() -> None:
    names = ("a", "hue=red", "hue=blue", "mat=tin", "mat=zinc", "b=1")
    made = (
        [{"made": "numeric"}] + [{"made": "one-hot", "column": c, "value": v} for c, v in HUES] + [{"made": "numeric"}]
    )
    rows = np.array([[0.8, 0.59, 0.04, 0.02, 0.03, 0.01]])
    found = discoveries.straight(rows / np.linalg.norm(rows), input_names=names)
    half = table(replace(found, settings={**found.settings, "input_columns": made}))
    assert half["source"].values.tolist() == ["a", "hue", "hue", "mat", "mat", "b=1"]
    assert half["takes_part"].values.tolist() == [True, True, True, False, False, False]
    assert in_words(terms_of(half), half["loading"].values[0]) == "0.80 a + hue (0.59 red)"
    assert table(found)["source"].values.tolist() == list(names)


def test_the_eigenvalues_are_those_of_the_gradient_covariance() -> None:
    y = FOUND.predict(X) * [1.0, 3.0, 0.2]
    half = table(FOUND, X, y)
    with torch.no_grad():
        points = torch.from_numpy(X)
        slopes = jacobians(FOUND.decoder, FOUND.encoder(points)) @ FOUND.encoder.weights[0]
        scaled = slopes * torch.from_numpy(X.std(0)) / torch.from_numpy(y.std(0))[:, None]
    expected = INDEX.spectrum(scaled).square().numpy()
    np.testing.assert_allclose(half["spectrum"].values, expected[:3], rtol=1e-8)
    assert expected[3] < 1e-20 * expected[0]
    along = np.square(scaled.numpy() @ half["loading"].values.T).mean(0)
    np.testing.assert_allclose(half["share"].values, along.sum(0) / along.sum(), rtol=1e-8)
    np.testing.assert_allclose(half["slope"].values, (along / along.sum(0)).T, rtol=1e-8)
    assert (np.diff(half["share"].values) <= 0).all()


def test_a_linear_map_has_the_eigenvalues_of_its_matrix() -> None:
    matrix = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
    decoder = FullyConnected.from_layers([torch.from_numpy(matrix)], [torch.zeros(3)])
    spectrum = table(replace(FOUND, decoder=decoder), X)["spectrum"].values
    np.testing.assert_allclose(spectrum / spectrum[0], [1.0, 0.25, 0.0625], rtol=1e-9)


def test_a_common_shift_of_the_scores_of_classes_counts_for_nothing() -> None:
    found = replace(
        FOUND, task="classification", settings={**FOUND.settings, "loss": "cross_entropy"}, target_names=("a", "b", "c")
    )
    weights, biases = [w.detach().clone() for w in found.decoder.weights], [b.detach() for b in found.decoder.biases]
    weights[-1] += torch.linspace(0, 3, weights[-1].shape[1], dtype=torch.float64)
    shifted = replace(found, decoder=FullyConnected.from_layers(weights, biases))
    np.testing.assert_allclose(table(shifted, X)["spectrum"].values, table(found, X)["spectrum"].values, rtol=1e-8)


def test_other_units_and_another_basis_of_the_coordinates_change_nothing() -> None:
    reference = table(FOUND, X)
    factors = np.array([10.0, 1e-4, 3.0, 1.0, 7.0, 1e5])
    other = discoveries.straight(TRUTH, spread=SPREAD * factors, shift=SHIFT * factors, outputs=3)
    np.testing.assert_allclose(table(other, X * factors)["loading"].values, reference["loading"].values, atol=1e-7)
    mixing = torch.tensor([[1.0, 0.5, 0.0], [0.2, 1.0, -0.4], [0.0, 0.3, 1.0]], dtype=torch.float64)
    encoder, decoder = FOUND.encoder, FOUND.decoder
    mixed = replace(
        FOUND,
        encoder=FullyConnected.from_layers([mixing @ encoder.weights[0]], [mixing @ encoder.biases[0]]),
        decoder=FullyConnected.from_layers(
            [decoder.weights[0] @ torch.linalg.inv(mixing), *list(decoder.weights)[1:]], list(decoder.biases)
        ),
    )
    for name in ("loading", "spectrum", "share"):
        np.testing.assert_allclose(table(mixed, X)[name].values, reference[name].values, atol=1e-6)


def test_modes_add_up_to_the_predictions_and_tangents_have_their_singular_values() -> None:
    x = samples(4) * [1.0, 20.0, 0.5, 3.0]
    y = MODES.predict(x)
    half = table(MODES, x, y)
    again = y.mean(0) + half["value"].values @ half["coefficient"].values
    np.testing.assert_allclose(again, y, atol=1e-9 * np.abs(y).max())
    scale = np.where(y.std(0) > CONSTANT, y.std(0), np.inf)
    with torch.no_grad():
        slopes = MODES.decoder.weights[0] @ jacobians(MODES.encoder, torch.from_numpy(x))
    scaled = slopes * torch.from_numpy(x.std(0)) / torch.from_numpy(scale)[:, None]
    np.testing.assert_allclose(half["spectrum"].values, MODE.spectrum(scaled).numpy()[:3], rtol=1e-8)
    assert half.attrs["standardised"]
    assert not table(MODES, x).attrs["standardised"]


def test_a_constant_input_takes_no_part() -> None:
    x = X.copy()
    x[:, 4] = 7.0
    half = table(FOUND, x)
    assert half.sizes["direction"] == 2
    assert half["takes_part"].values.tolist() == [True] * 4 + [False] * 2
    assert not half["coefficient"].values[:, 4].any()


def test_curved_halves_and_no_coordinates_have_none() -> None:
    assert straight_half(discoveries.discovery(), discoveries.inputs()) is None
    empty = FullyConnected.from_layers([torch.zeros(0, 6)], [torch.zeros(0)])
    assert straight_half(replace(FOUND, rank=0, encoder=empty), X) is None


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="needs the 6 input columns of the run, got 5"):
        straight_half(FOUND, X[:, :5])
    with pytest.raises(ShapeError, match="needs the 3 targets of the run, got 1"):
        straight_half(FOUND, X, X[:, 0])
    with pytest.raises(DataError, match="200"):
        straight_half(FOUND, X, X[:10, :3])


def test_classes_are_numbered_as_in_the_run_whatever_form_they_come_in() -> None:
    found = discoveries.straight(
        TRUTH[:, :5], outputs=2, task="classification", target_names=("no", "yes"),
        settings={**FOUND.settings, "loss": "cross_entropy"},
    )  # fmt: skip
    columns = pd.DataFrame({"yes": [1, 0], "never": [0, 0], "no": [0, 1]})
    for y in (["yes", "no"], np.array(["yes", "no"])[:, None], columns, np.array([[0, 1], [1, 0]])):
        numbers = targets_of(found, X[:2], y)
        assert numbers is not None
        assert numbers.tolist() == [[1.0], [0.0]]
    with pytest.raises(DataError, match="'maybe'"):
        targets_of(found, X[:1], ["maybe"])


def recorded(rows: np.ndarray) -> xr.Dataset:
    """As a search records them."""
    return xr.Dataset(
        {
            "loading": (("combination", "input"), rows),
            "loading_low": (("combination", "input"), rows - 0.1),
            "loading_high": (("combination", "input"), rows + 0.2),
            "cone": ("combination", 0.1 * np.arange(1, len(rows) + 1)),
        }
    )


def test_what_the_search_recorded_is_shown_with_its_scatter_and_needs_no_rows() -> None:
    found = replace(FOUND, combinations=recorded(TRUTH[::-1].copy()))
    without = table(found)
    assert without.attrs["standardised"]
    np.testing.assert_array_equal(without["loading"].values, TRUTH[::-1])
    half = table(found, X)
    np.testing.assert_array_equal(half["loading"].values, TRUTH[::-1])
    np.testing.assert_allclose(half["cone"].values, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(half["high"].values - half["loading"].values > 0.19, np.ones((3, 6), dtype=bool))
    np.testing.assert_allclose(half["loading"].values - half["low"].values, 0.1)
    np.testing.assert_allclose(half["spectrum"].values, table(FOUND, X)["spectrum"].values, rtol=1e-9)
    np.testing.assert_allclose(half["coefficient"].values, half["loading"].values / SPREAD, atol=1e-9)


def test_logarithms_are_taken_before_anything_is_said() -> None:
    told = {"logged": ["a", "c"], "target_logs": [1], "target_exponents": None}
    found = discoveries.straight(KNOWN, input_names=("a", "b", "c", "d"), target_names=("y",))
    found = replace(found, settings={**found.settings, "powers": told})
    rows = samples(4)
    x = rows.copy()
    x[:, [0, 2]] = np.exp(rows[:, [0, 2]])
    half = table(found, x)
    assert [term.name for term in terms_of(half)] == ["log a", "b", "log c", "d"]
    np.testing.assert_allclose(half["value"].values[:, 0], rows @ KNOWN[0], atol=1e-12)
    targets = targets_of(found, x, np.exp(rows[:, 1]))
    assert targets is not None
    np.testing.assert_allclose(targets[:, 0], rows[:, 1])


def test_means_and_log_variances_count_in_units_of_their_own() -> None:
    found = discoveries.straight(TRUTH, spread=SPREAD, shift=SHIFT, outputs=2, target_names=("y",))
    found = replace(found, settings={**found.settings, "loss": "gaussian"})
    y = X[:, :1] / 4
    with torch.no_grad():
        points = torch.from_numpy(X)
        slopes = jacobians(found.decoder, found.encoder(points)) @ found.encoder.weights[0]
        scaled = slopes * torch.from_numpy(X.std(0)) / torch.tensor([float(y.std()), 1.0])[:, None]
    half = table(found, X, y)
    np.testing.assert_allclose(half["spectrum"].values, INDEX.spectrum(scaled).square().numpy()[:3], rtol=1e-6)
    modes = discoveries.straight(np.eye(4)[:2], kind="mode", outputs=3, target_names=("a", "b"))
    modes = replace(modes, settings={**modes.settings, "loss": "gaussian"})
    names = ["mean of a", "mean of b", "log variance of a", "log variance of b"]
    assert table(modes)["column"].values.tolist() == names
