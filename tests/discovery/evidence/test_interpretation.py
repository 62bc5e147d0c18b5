"""What coordinates mean, on networks whose coordinates are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import discoveries
from isthmus import Discovery, FullyConnected, interpret, symmetry_defect
from isthmus.discovery.evidence.interpretation import by_error_saved, distance_correlation, errors_saved
from isthmus.discovery.factors import Factorisation
from isthmus.errors import DataError, ShapeError
from isthmus.reports.pictures import pictures_of

SCALE = np.array([1.0, 2.0, 0.5, 1.0, 1.0])
X = np.random.default_rng(0).normal(size=(300, 5)) * SCALE


def linear(weight: list[list[float]]) -> FullyConnected:
    matrix = torch.tensor(weight, dtype=torch.float64)
    return FullyConnected.from_layers([matrix], [torch.zeros(len(weight), dtype=torch.float64)])


def known() -> Discovery:
    """z1 = x0, z2 = 3 x1, z3 = x2 + x3; the outputs are 0.1 z1 + 2 z2 and z3."""
    encoder = linear([[1, 0, 0, 0, 0], [0, 3, 0, 0, 0], [0, 0, 1, 1, 0]])
    decoder = linear([[0.1, 2, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    return discoveries.discovery(encoder=encoder, decoder=decoder)


def in_units(scaling: str) -> Discovery:
    return replace(known(), settings={**known().settings, "scaling": scaling})


def test_the_error_saved_is_that_of_holding_a_coordinate_at_its_mean() -> None:
    table = interpret(in_units("global"), X)
    z = known().transform(X)
    expected = np.array([0.01, 4.0, 1.0]) * z.var(0)
    total = (z @ np.array([[0.1, 2, 0], [0, 0, 1]]).T).var(0).sum()
    np.testing.assert_allclose(table["error_saved"], expected / total, rtol=1e-10)
    assert table["order"].values.tolist() == [3, 1, 2]


def test_output_columns_count_alike_where_the_discovery_scaled_each() -> None:
    z, first = known().transform(X), known().predict(X)[:, 0]
    expected = np.array([0.01 * z[:, 0].var() / first.var(), 4 * z[:, 1].var() / first.var(), 1.0]) / 2
    table = interpret(in_units("column"), X)
    np.testing.assert_allclose(table["error_saved"], expected, rtol=1e-10)
    assert table["order"].values.tolist() == [3, 2, 1]
    constant = known().decoder
    with torch.no_grad():
        constant.biases[0][2] = 12345.678  # a constant output, whose mean is rounded
    same = interpret(replace(in_units("column"), decoder=constant), X)
    np.testing.assert_allclose(same["error_saved"], expected, rtol=1e-10)
    classes = replace(in_units("column"), task="classification")
    assert interpret(classes, X).identical(interpret(in_units("global"), X))


def test_a_coordinate_of_little_variance_that_matters_more_comes_first() -> None:
    halves = Factorisation(known().encoder, known().decoder, 3, 1, 0.0)
    x = torch.from_numpy(X)
    slight = X.copy()
    slight[:, 1] *= 0.12  # the second coordinate now varies less than the first and moves the outputs most
    for samples, order in ((X, [1, 2, 0]), (slight, [1, 2, 0]), (X * [1, 0.001, 1, 1, 1], [2, 0, 1])):
        sorted_halves = by_error_saved(halves, torch.from_numpy(samples))
        with torch.no_grad():
            assert torch.allclose(sorted_halves.encoder(x), halves.encoder(x)[:, order], rtol=1e-14)
            whole = halves.decoder(halves.encoder(x))
            assert torch.allclose(sorted_halves.decoder(sorted_halves.encoder(x)), whole, rtol=1e-14)
    with torch.no_grad():
        z = by_error_saved(halves, torch.from_numpy(slight)).encoder(torch.from_numpy(slight)).numpy()
    assert z[:, 0].var() < z[:, 2].var()
    saved = errors_saved(by_error_saved(halves, torch.from_numpy(slight)).decoder, z)
    assert (np.diff(saved) < 0).all()


def test_attribution_names_the_inputs_in_their_own_units() -> None:
    table = interpret(known(), X)["attribution"]
    sums = np.std(X[:, 2] + X[:, 3])
    expected = np.zeros((3, 5))
    expected[0, 0] = expected[1, 1] = 1.0  # each is one input, whatever its scale and factor
    expected[2, 2:4] = X[:, 2:4].std(0) / sums
    np.testing.assert_allclose(table, expected, atol=1e-12)
    assert table["input"].values.tolist() == list(discoveries.INPUTS)


@pytest.mark.parametrize("scaling", ["global", "column"])
@pytest.mark.parametrize("unit", [1e-200, 1e-160, 1e130])
def test_what_coordinates_mean_has_no_units(scaling: str, unit: float) -> None:
    """Squares of these overflow or vanish."""
    found = in_units(scaling)
    encoder, decoder = found.encoder, found.decoder
    (into,), (out,) = encoder.written_layers()[0], decoder.written_layers()[0]
    scaled = replace(found, encoder=linear((into / unit).tolist()), decoder=linear((unit * out).tolist()))
    usual, other = interpret(found, X), interpret(scaled, unit * X)
    for name in ("error_saved", "attribution"):
        np.testing.assert_allclose(other[name], usual[name], rtol=1e-9, atol=1e-12)
    assert usual["attribution"].values.max() > 0.5


def test_columns_of_a_frame_are_found_by_name() -> None:
    frame = pd.DataFrame(X, columns=list(discoveries.INPUTS))
    np.testing.assert_array_equal(
        interpret(known(), frame.iloc[:, ::-1])["attribution"], interpret(known(), X)["attribution"]
    )


def test_candidates_are_recognised_also_where_no_line_fits() -> None:
    variables = {"first": X[:, 0], "square": X[:, 0] ** 2, "other": X[:, 4]}
    found = interpret(known(), X, candidates=variables)["distance_correlation"]
    assert float(found.sel(coordinate=1, candidate="first")) == pytest.approx(1.0)
    assert abs(np.corrcoef(X[:, 0], X[:, 0] ** 2)[0, 1]) < 0.15
    assert float(found.sel(coordinate=1, candidate="square")) > 0.4
    assert float(found.sel(coordinate=1, candidate="other")) < 0.2


def test_distance_correlation_of_two_points_and_of_a_similarity() -> None:
    a = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, -2.0]])
    turned = 7 * a @ np.array([[0.6, -0.8], [0.8, 0.6]]) + 5
    assert distance_correlation(a, turned) == pytest.approx(1.0)
    # by hand for 0, 1, 2 against 0, 1, 0: sums AB = 72 / 81, AA = 360 / 81, BB = 144 / 81
    assert distance_correlation([0.0, 1.0, 2.0], [0.0, 1.0, 0.0]) == pytest.approx((72 / np.sqrt(360 * 144)) ** 0.5)
    assert distance_correlation([1.0, 1.0, 1.0], [0.0, 1.0, 2.0]) == 0.0
    other = X[:, 0] + X[:, 1] ** 2
    for unit in (1e-300, 1e-200, 1e130):  # squares of distances vanish or overflow
        assert distance_correlation(unit * X[:, 0], other) == pytest.approx(distance_correlation(X[:, 0], other))


def test_a_symmetry_of_the_encoder_has_no_defect_and_another_has() -> None:
    radius = FullyConnected.from_layers(
        [torch.tensor([[1.0], [-1.0]], dtype=torch.float64), torch.ones(1, 2, dtype=torch.float64)],
        [torch.zeros(2, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)],
    )  # |x|
    x = X[:, :1]
    assert symmetry_defect(radius, lambda v: -v, x) == pytest.approx(0.0, abs=1e-15)
    shuffled = np.random.default_rng(1).permutation(len(x))
    assert symmetry_defect(radius, lambda v: v[shuffled], x) == pytest.approx(1.0, abs=0.2)
    assert symmetry_defect(radius, lambda v: v + 1, x) > 0.2


def test_transformations_under_which_the_coordinates_stay_have_no_defect() -> None:
    swap = [0, 1, 3, 2, 4]
    transforms = {"swap": lambda v: v[:, swap], "flip": lambda v: -v, "last": lambda v: v * [1, 1, 1, 1, 9]}
    table = interpret(known(), X, transforms=transforms)["symmetry_defect"]
    assert float(table.sel(transform="swap")) == pytest.approx(0.0, abs=1e-30)
    assert float(table.sel(transform="last")) == 0.0
    z = known().transform(X)
    assert float(table.sel(transform="flip")) == pytest.approx(2 * (z**2).mean(0).sum() / z.var(0).sum())
    assert "transform" not in interpret(known(), X).sizes


def test_a_network_of_fewer_coordinates_than_the_rank_is_described_as_it_is() -> None:
    found = discoveries.discovery(rank=4, encoder=known().encoder, decoder=known().decoder)
    assert interpret(found, X)["order"].values.tolist() == [3, 2, 1]
    names = [picture.name for picture in pictures_of(found, X)]
    assert "coordinates_2_3" in names


@pytest.mark.other_types
def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match="shape"):
        interpret(known(), X, transforms={"first two": lambda v: v[:, :2]})
    with pytest.raises(ShapeError, match="needs the 5 input columns"):
        interpret(known(), X[:, :3])
    with pytest.raises(DataError, match=r"'first' has 10 rows, x has 300"):
        interpret(known(), X, candidates={"first": X[:10, 0]})
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(300)], columns=list(known().input_names))
    for candidates in ({"z": frame.iloc[::-1, 0]}, frame.iloc[::-1, :1]):
        with pytest.raises(DataError, match="row labels .* in another order"):
            interpret(known(), frame, candidates=candidates)
    named = interpret(known(), X, candidates={name: X[:, 0] for name in ("x", "in_order")})  # as arguments are
    assert named["candidate"].values.tolist() == ["x", "in_order"]
    twice = pd.DataFrame(X[:, :2]).set_axis(["a", "a"], axis=1)
    both = interpret(known(), X, candidates=twice)  # of the first nothing had been said
    alone = interpret(known(), X, candidates={"a": X[:, 0], "b": X[:, 1]})
    assert both["candidate"].values.tolist() == ["a", "a"]
    np.testing.assert_array_equal(both["distance_correlation"], alone["distance_correlation"])
    for wrong in ({"candidates": X[:, :1]}, {"transforms": [abs]}, {"transforms": {"n": 3}}):
        with pytest.raises(TypeError, match=f"{[*wrong][0]}=...\\): needs"):
            interpret(known(), X, **wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="needs what discover returned, got int"):
        interpret(3, X)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="rank 0"):
        interpret(discoveries.discovery(rank=0), X)
    with pytest.raises(ShapeError, match="same|shape"):
        symmetry_defect(known().encoder, lambda v: v[:, :2], X)


def test_what_the_documents_say_of_the_size_of_a_distance_correlation() -> None:
    rng = np.random.default_rng(0)
    for rows, usual in ((100, 0.17), (300, 0.10), (1000, 0.05)):
        drawn = [distance_correlation(rng.normal(size=rows), rng.normal(size=rows)) for _ in range(12)]
        assert np.mean(drawn) == pytest.approx(usual, abs=3 * float(np.std(drawn)) / 12**0.5 + 0.005)
    normal = rng.normal(size=1000)
    assert distance_correlation(normal, normal**3) == pytest.approx(0.87, abs=0.02)
    assert distance_correlation(normal, 2 - 3 * normal) == pytest.approx(1.0)
