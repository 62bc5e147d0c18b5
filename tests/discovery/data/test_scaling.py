"""Standardisation and its folding into the two halves: exact to rounding, at any magnitude."""

import warnings

import numpy as np
import pytest
import torch

import isthmus
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.scaling import Scaling, Standardiser, num_holding, targets_among_inputs
from isthmus.discovery.settings import Settings
from isthmus.errors import DataError, DataWarning
from isthmus.networks import FullyConnected
from isthmus.tasks.input_columns import InputColumn, Made
from tolerances import rounding

MAGNITUDES = (1e-140, 1.0, 1e140)


def columns(magnitude: float = 1.0) -> np.ndarray:
    """Five columns of different mean and spread, the fourth constant."""
    values = np.random.default_rng(0).normal(size=(40, 5)) * [1.0, 3.0, 0.1, 0.0, 20.0] + [0.0, 2.0, -1.0, 7.0, 5.0]
    return values * magnitude


def condition(standardiser: Standardiser) -> float:
    """How much subtracting the mean amplifies roundings."""
    return 1 + float(np.abs(standardiser.mean[standardiser.kept] / standardiser.scale).max())


def weight_scale(network: FullyConnected) -> float:
    return float(np.prod([float(w.detach().norm()) + 1 for w in network.weights]))


def random_network(d_in: int, d_out: int, *, bias: bool = True) -> FullyConnected:
    network = FullyConnected(
        d_in, d_out, width=6, depth=3, negative_slope=0.2, linear=(2,), bias=bias, seed=1, dtype=torch.float64
    )
    with torch.no_grad():
        for b in network.biases:
            b.copy_(torch.linspace(-1, 1, len(b), dtype=torch.float64))
    return network


@pytest.mark.parametrize("magnitude", [*MAGNITUDES, 1e300])
@pytest.mark.parametrize("total", [False, True])
def test_columns_get_mean_0_and_variance_1(magnitude: float, total: bool) -> None:
    values = columns(magnitude)
    standardiser = Standardiser.of(values, total=total)
    z = standardiser.apply(values)
    allowed = rounding(size=len(values), condition=condition(standardiser))
    share = 1 / 4 if total else 1.0
    assert standardiser.kept.tolist() == [0, 1, 2, 4]
    assert np.abs(z.mean(0)).max() <= allowed
    assert np.abs(np.square(z).mean(0) - share).max() <= allowed


@pytest.mark.parametrize("magnitude", MAGNITUDES)
def test_restoring_undoes_the_scaling_and_puts_constants_back(magnitude: float) -> None:
    values = columns(magnitude)
    standardiser = Standardiser.of(values)
    restored = standardiser.restore(standardiser.apply(values))
    allowed = rounding(size=len(values), condition=condition(standardiser)) * np.abs(values).max(0)
    assert (np.abs(restored - values) <= allowed).all()
    np.testing.assert_array_equal(standardiser.restore(standardiser.apply(values)[3]), restored[3])


@pytest.mark.parametrize("magnitude", [*MAGNITUDES, 1e300])
def test_global_scaling_keeps_the_relative_scale_of_columns(magnitude: float) -> None:
    values = columns(magnitude)
    standardiser = Standardiser.of(values, scaling=Scaling.GLOBAL)
    z = standardiser.apply(values)
    allowed = rounding(size=len(values), condition=condition(standardiser))
    spread = np.sqrt(np.square(z).mean(0))
    expected = (values / magnitude).std(0)[standardiser.kept]
    assert np.square(spread).mean() == pytest.approx(1.0, rel=allowed)
    assert np.abs(spread / spread[0] - expected / expected[0]).max() <= allowed * expected.max() / expected.min()
    by_column = np.sqrt(np.square(Standardiser.of(values).apply(values)).mean(0))
    assert np.abs(by_column / by_column[0] - expected / expected[0]).max() > 0.5


def test_global_scaling_to_total_variance_1() -> None:
    values = columns()
    z = Standardiser.of(values, scaling=Scaling.GLOBAL, total=True).apply(values)
    assert np.square(z).sum(1).mean() == pytest.approx(1.0, rel=rounding(size=z.size))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("magnitude", MAGNITUDES)
@pytest.mark.parametrize("scaling", list(Scaling))
def test_the_folded_encoder_takes_the_users_units(scaling: Scaling, magnitude: float, bias: bool) -> None:
    values = columns(magnitude)
    standardiser = Standardiser.of(values, scaling=scaling)
    network = random_network(4, 3, bias=bias)
    folded = standardiser.fold_into_encoder(network)
    with torch.no_grad():
        expected = network(torch.from_numpy(standardiser.apply(values)))
        given = folded(torch.from_numpy(values))
        unfolded = network(torch.from_numpy(values[:, standardiser.kept]))
    allowed = rounding(size=10, condition=condition(standardiser) * weight_scale(network))
    assert folded.dimensions[0] == 5
    assert float((given - expected).abs().max()) <= allowed
    assert not float((unfolded - expected).abs().max()) <= allowed  # NaN-proof: an overflow is no agreement either


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("magnitude", MAGNITUDES)
def test_the_folded_decoder_gives_the_users_units_and_constants(magnitude: float, bias: bool) -> None:
    values = columns(magnitude)
    standardiser = Standardiser.of(values, total=True)
    network = random_network(3, 4, bias=bias)
    folded = standardiser.fold_into_decoder(network)
    inputs = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        given, inner = folded(inputs).numpy(), network(inputs).numpy()
    kept = standardiser.kept
    expected = inner * standardiser.scale + standardiser.mean[kept]
    allowed = rounding(size=10, condition=weight_scale(network)) * (
        standardiser.scale + np.abs(standardiser.mean[kept])
    )
    assert given.shape == (20, 5)
    assert (np.abs(given[:, kept] - expected) <= allowed).all()
    assert not (np.abs(given[:, kept] - inner * standardiser.scale) <= allowed).all()
    assert (np.abs(given[:, 3] - values[0, 3]) <= rounding(size=len(values)) * abs(values[0, 3])).all()


def test_constant_columns_are_named_and_left_out() -> None:
    values = columns()
    with pytest.warns(DataWarning, match=r"^1 constant input column not used: 'd'\.$"):
        Standardiser.of(values).warn_of_constants(values, "input", tuple("abcde"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Standardiser.of(values[:, :3]).warn_of_constants(values[:, :3], "input", tuple("abc"))


def test_what_varies_by_hardly_more_than_rounding_is_not_called_constant() -> None:
    """Time in nanoseconds since 1970 over a millisecond; targets like it were rank 0, confidently."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    faint = 1e14 + 10 * x[:, :1]
    for values in (np.hstack([x, faint]), np.hstack([faint, x])):
        with pytest.warns(
            DataWarning, match=r"^1 target column not used: '\w' \(varies by less than 1e-12 of its size:"
        ):
            Standardiser.of(values).warn_of_constants(values, "target", tuple("abc"))
    for given in ((faint, x), (x, faint), (faint, None)):
        with pytest.raises(
            DataError, match=r"no (input|target) column varies by more than 1e-12 .* Subtract an offset"
        ):
            isthmus.discover(*given, effort="quick")
    rounded = 0.1 + 0.2 * np.ones((60, 1)) + np.where(x[:, :1] > 0, 1e-16, 0.0)
    assert np.ptp(rounded) > 0
    assert isthmus.discover(x, rounded, effort="quick").rank == 0, "computed, and constant but for its last bit"
    with pytest.raises(DataError, match="identical but for rounding"):
        isthmus.discover(rounded, x, effort="quick")


def test_a_column_constant_to_rounding_is_constant_and_a_small_one_is_not() -> None:
    generator = np.random.default_rng(1)
    noise = generator.normal(size=(50, 1))
    values = np.concatenate([1e6 + 1e-10 * noise, 1e-200 * noise, 1e6 + 1e-3 * noise], 1)
    assert Standardiser.of(values).kept.tolist() == [1, 2]


def test_rows_without_any_varying_column_keep_nothing() -> None:
    standardiser = Standardiser.of(np.ones((5, 3)), scaling=Scaling.GLOBAL, total=True)
    assert len(standardiser.kept) == len(standardiser.scale) == 0
    assert standardiser.apply(np.ones((5, 3))).shape == (5, 0)


def test_whitened_inputs_are_the_same_whatever_linear_map_they_went_through() -> None:
    rng = np.random.default_rng(0)
    x, mix, offset = rng.normal(size=(80, 5)), rng.normal(size=(5, 5)), rng.normal(size=5)
    here, there = (Standardiser.of(v).whitened(v).apply(v) for v in (x, x @ mix + offset))
    for z in (here, there):
        assert np.allclose(z.T @ z / 80, np.eye(5), atol=1e-9)
        assert np.allclose(z.mean(0), 0, atol=1e-9)
    # up to a rotation: the same distances between rows
    assert np.allclose(here @ here.T, there @ there.T, atol=1e-6)
    plain = [Standardiser.of(v).apply(v) for v in (x, x @ mix)]
    assert not np.allclose(plain[0] @ plain[0].T, plain[1] @ plain[1].T, atol=0.1)


def test_whitening_folds_into_an_encoder_and_leaves_collinear_directions_out() -> None:
    rng = np.random.default_rng(1)
    free = rng.normal(size=(60, 3)) * [1e-6, 1, 1e6]
    x = np.column_stack([free, free[:, 0] * 2e3 + free[:, 1], np.full(60, 7.0)])
    found = Standardiser.of(x).whitened(x)
    z = found.apply(x)
    assert z.shape == (60, 3)
    assert np.allclose(found.restore(z), x, rtol=1e-6)
    network = FullyConnected(3, 2, width=4, depth=2, seed=0, dtype=torch.float64)
    with torch.no_grad():
        folded = found.fold_into_encoder(network)(torch.from_numpy(x))
        assert torch.allclose(folded, network(torch.from_numpy(z)), atol=1e-8)


def test_columns_that_depend_on_each_other_are_found_in_the_least_sets() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 9)) * 10.0 ** np.arange(-4, 5)
    x[:, 3] = 2 * x[:, 0] - x[:, 1] / 3  # 0, 1, 3
    x[:, 8] = 5 - x[:, 6]  # 6, 8
    x[:, 4] = 7.0  # constant, left out
    of = Standardiser.of(x)
    assert of.dependences == []
    assert of.whitened(x).dependences == [[0, 1, 3], [6, 8]]
    names = [InputColumn(f"x{i}") for i in range(9)]
    with pytest.warns(
        DataWarning, match="dependent: columns 'x0', 'x1', 'x3'; columns 'x6', 'x8'. Which of them a comb"
    ):
        of.whitened(x).warn_of_dependences(names)
    chain = np.column_stack([x[:, 0], x[:, 0] + 1e-4 * rng.normal(size=200), x[:, 2]])
    assert Standardiser.of(chain).whitened(chain).dependences == []  # nearly the same is not the same


def test_the_values_of_one_column_of_text_depend_on_each_other_silently() -> None:
    label = np.random.default_rng(0).integers(3, size=100)
    x = np.column_stack([np.eye(3)[label], np.arange(100.0)])
    whitened = Standardiser.of(x).whitened(x)
    assert whitened.dependences == [[0, 1, 2]]
    values = [InputColumn(f"hue={i}", Made.ONE_HOT, "hue", str(i)) for i in range(3)]
    whitened.warn_of_dependences([*values, InputColumn("a")])  # a warning would be an error
    with pytest.warns(DataWarning, match="columns 'a', 'b', 'c'"):
        whitened.warn_of_dependences([InputColumn(name) for name in "abcd"])


def test_a_target_that_is_an_input_is_named_with_it() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((400, 2))
    names = (("a", "b"), ("y", "z", "w"))
    y = np.column_stack([inputs[:, 0] ** 2, 3 - 1e5 * inputs[:, 1], np.full(400, 2.0)])
    told = "the target 'z' is the input 'b', but for scale and origin: leave that input out."
    assert targets_among_inputs(inputs, y, names) == told
    assert targets_among_inputs(inputs, y + 1e-3 * rng.standard_normal(y.shape) * y.std(0), names) == ""
    assert targets_among_inputs(inputs[:, [0, 0]], y, names) == ""  # inputs that are each other are not its matter
    many = (tuple(f"x{i}" for i in range(9)), tuple(f"y{i}" for i in range(9)))
    x = rng.standard_normal((50, 9))
    assert "the input 'x4' and 4 more, but" in targets_among_inputs(x, x, many)


@pytest.mark.parametrize("magnitude", [1e-150, 1.0, 1e150])
def test_wild_values_set_no_robust_scale(magnitude: float) -> None:
    rng = np.random.default_rng(5)
    tame = magnitude * rng.normal(size=(500, 3)) * [1.0, 5.0, 0.1]
    wild = np.where(rng.random(tame.shape) < 0.02, tame + 30 * tame.std(0) * rng.normal(size=tame.shape), tame)
    clean, robust, plain = (
        Standardiser.of(tame), Standardiser.of(wild, robust=True), Standardiser.of(wild)
    )  # fmt: skip
    np.testing.assert_allclose(robust.scale, clean.scale, rtol=0.15)
    np.testing.assert_allclose(robust.mean, clean.mean, atol=0.1 * float(clean.scale.max()))
    assert bool((plain.scale > 1.5 * clean.scale).all()), "control"


def test_values_that_are_not_wild_keep_their_scale() -> None:
    rng = np.random.default_rng(6)
    values = np.stack(
        [rng.uniform(size=400), rng.choice([-1.0, 1.0], size=400), rng.binomial(1, 0.1, size=400), np.arange(400) % 7],
        axis=1,
        dtype=np.float64,
        casting="unsafe",
    )
    robust, plain = Standardiser.of(values, robust=True), Standardiser.of(values)
    np.testing.assert_array_equal(robust.scale, plain.scale)
    np.testing.assert_array_equal(robust.mean, plain.mean)


@pytest.mark.parametrize(("loss", "as_clean"), [("huber", True), (None, False)])
def test_the_huber_loss_measures_targets_by_the_tame_ones(loss: str | None, *, as_clean: bool) -> None:
    """Of wild targets it was the squared error: all of them lay within its delta, and nothing was found."""
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(300, 4)), rng.normal(size=(300, 2))
    wild = y.copy()
    wild[::50] += 40 * rng.normal(size=(6, 2))
    settings = Settings()
    scales: list[np.ndarray] = []
    for targets in (y, wild):
        problem = Sample.of(checked_data(x, targets, loss), settings).posed(settings)
        assert problem is not None
        assert problem.outputs is not None
        scales.append(problem.outputs.scale)
    assert np.allclose(*scales, rtol=0.15) is as_clean


@pytest.mark.parametrize("sentinel", [1e30, -9.99e33, 1e9])
def test_one_wild_value_takes_no_digits_from_a_robust_scale(sentinel: float) -> None:
    """Others were constant beside it, to rounding."""
    values = np.random.default_rng(0).normal(size=(60, 2))
    wild = values.copy()
    wild[3, 0] = sentinel
    usual, found = (Standardiser.of(one, robust=True) for one in (values, wild))
    assert list(found.kept) == [0, 1]
    assert found.scale == pytest.approx(usual.scale, rel=0.2)


def test_as_many_columns_hold_the_variance_as_are_needed_for_most_of_it() -> None:
    assert num_holding(np.array([1.0, 100.0, 1.0])) == 1
    assert num_holding(np.array([1.0, 9.0, 9.0])) == 3, "two hold .947"
    assert num_holding(np.full(40, 3.0)) == 38
    assert num_holding(np.array([0.0, 5.0])) == 1
    assert num_holding(np.zeros(3)) == 0
