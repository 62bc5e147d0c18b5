"""Second moments batch by batch: data far from zero, neurons that never fire, small values, products with weights."""

import pytest
import torch

from closeness import relative
from diagnostics.architectures import numbers
from isthmus.diagnostics import covariance_factor
from isthmus.diagnostics.covariance_factor import Factor, weight_values
from isthmus.diagnostics.moments import TILE, Covariance, SomeRows, TriangularFactor
from tolerances import rounding


def covariance_of(rows: torch.Tensor) -> Covariance:
    """In batches that are no multiple of a tile."""
    found = Covariance()
    for part in rows.split(3 * TILE // rows.shape[1] // 2):
        found.add(part)
    return found


def test_moments_keep_small_values_and_say_where_they_stop() -> None:
    """Values over 12 decades with a mean of 1e3: the QR factor keeps them, the covariance down to 1e-8."""
    left = torch.linalg.qr(numbers(500, 6).double() - numbers(500, 6).double().mean(0)).Q
    exact = torch.logspace(0, -12, 6, dtype=torch.float64)
    rows = left @ torch.diag(exact) @ torch.linalg.qr(numbers(6, 6, seed=3).double()).Q + 1.0
    truth = torch.linalg.svdvals(rows - rows.mean(0)) / 500**0.5
    for sums, kept in ((TriangularFactor(), 5), (Covariance(), 3), (SomeRows(500, 500), 5)):
        for part in rows.split(130):
            sums.add(part)
        found = sums.factor().values
        assert relative(found[:kept] / truth[:kept], torch.ones(kept).double()) <= 1e-3
        assert torch.allclose(found[0], truth[0], rtol=1e-12)
    covariance = Covariance()
    covariance.add(rows)
    assert abs(float(covariance.factor().values[5] / truth[5]) - 1) > 0.1, "the limit stated is real"


def test_the_covariance_of_sorted_rows_far_from_zero_is_that_of_all_rows() -> None:
    """Rows sorted by their first column drift away from the mean of the first tile, about which they are summed."""
    width = 300
    rows = numbers(3 * TILE // width, width).double() * torch.logspace(0, -4, width, dtype=torch.float64) + 100.0
    rows = rows[rows[:, 0].argsort()]
    truth = torch.linalg.svdvals(rows - rows.mean(0)) / len(rows) ** 0.5
    covariance = Covariance()
    for part in rows.split(1000):
        covariance.add(part)
    factor = covariance.factor()
    assert relative(factor.values, truth) <= 1e-9
    assert relative(factor.values[:, None] * factor.leading(width), factor.matrix) == 0.0
    axes = factor.leading(width)
    assert relative(axes @ axes.mT, torch.eye(width).double()) <= rounding(size=width)


def test_a_factor_is_what_its_values_and_axes_say() -> None:
    factor = Factor(numbers(9, 6).double())
    gram = factor.leading(6).mT @ torch.diag(factor.values.square()) @ factor.leading(6)
    assert relative(gram, factor.matrix.mT @ factor.matrix) <= rounding(size=54)
    weight = numbers(4, 6, seed=5).double()
    assert relative(factor.through(weight).values, torch.linalg.svdvals(factor.matrix @ weight.mT)) == 0.0


@pytest.mark.parametrize("shape", [(30, 80), (80, 30)])
@pytest.mark.parametrize("outputs", [20, 200])
def test_squares_give_what_the_decomposition_gives_down_to_1e_8(
    shape: tuple[int, int], outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values over 10 decades: those above 1e-8 of the largest, their axes, W on these and products taken in tiles."""
    monkeypatch.setattr(covariance_factor, "PRODUCT_ROWS", 7)
    u, _, vh = torch.linalg.svd(numbers(*shape).double(), full_matrices=False)
    values = torch.logspace(0, -10, 30, dtype=torch.float64)
    matrix, weight = (u * values) @ vh, numbers(outputs, shape[1], seed=5)
    exact, squared = Factor(matrix), Factor(matrix, is_squared=True)
    assert relative(squared.values, values) <= 1e-8
    k = int((values > 1e-4).sum())
    assert relative(squared.leading(k).abs(), exact.leading(k).abs()) <= 1e-7
    assert relative(squared.on_leading(weight, k), torch.linalg.svdvals(weight.double() @ vh[:k].mT)) <= 1e-7
    both = (factor.through(weight).values for factor in (squared, exact))
    assert relative(*both) <= 1e-8
    assert abs(float(squared.values[-1] / values[-1]) - 1) > 0.1, "the limit stated is real"


def test_values_of_a_weight_are_exact_unless_float32_rounds_it_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    u, _, vh = torch.linalg.svd(numbers(60, 40).double(), full_matrices=False)
    exact = torch.logspace(0, -12, 40, dtype=torch.float64)
    double = (u * exact) @ vh
    assert relative(weight_values(double), exact) <= rounding(size=60)
    assert abs(float(weight_values(double)[-1] / exact[-1]) - 1) <= 0.1
    single = double.float()
    truth = torch.linalg.svdvals(single.double())
    assert torch.equal(weight_values(single), truth), "small ones stay exact"
    for turned in (single, single.mT):
        monkeypatch.setattr(covariance_factor, "EXACT_WORK", 1000)
        monkeypatch.setattr(covariance_factor, "PRODUCT_ROWS", 7)
        found = weight_values(turned)
        assert relative(found, truth) <= 1e-8, "float32 rounds by 6e-8"
        assert not torch.equal(found, truth)
        assert relative(weight_values(turned.double()), truth) <= rounding(size=60)


def test_wide_rows_are_read_from_squares_only_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of 1e-10 are kept where rows times width squared allow it, and lost above."""
    u, _, vh = torch.linalg.svd(numbers(20, 50).double() - numbers(20, 50).double().mean(0), full_matrices=False)
    rows = (u[:, :10] * torch.logspace(0, -10, 10, dtype=torch.float64)) @ vh[:10]
    found: list[float] = []
    for work in (covariance_factor.EXACT_WORK, 1000):
        monkeypatch.setattr(covariance_factor, "EXACT_WORK", work)
        some = SomeRows(20, 20)
        some.add(rows)
        found.append(float(some.factor().values[9] * 20**0.5 / 1e-10) - 1)
    assert abs(found[0]) < 1e-2 < abs(found[1])


def test_a_mean_of_ten_thousand_deviations_costs_no_digits() -> None:
    """Float32 rows, whose squares are 1e8 times their variance, against the SVD of the same rows centred in float64."""
    rows = numbers(6 * TILE // 40, 40) + 1e4
    exact = rows.double()
    truth = torch.linalg.svdvals(exact - exact.mean(0)) / len(rows) ** 0.5
    found = covariance_of(rows).factor().values
    assert relative(found, truth) <= rounding(size=len(rows))


def test_columns_that_never_move_change_nothing() -> None:
    """Half of the neurons are dead or constant: no values of their own, and axes that do not touch them."""
    rows = torch.relu(numbers(5 * TILE // 60, 60)).double()
    rows[:, ::3], rows[:, 1::6] = 0.0, 0.25
    moving = rows.std(0) > 0
    factor = covariance_of(rows).factor()
    whole = torch.linalg.svdvals(rows - rows.mean(0)) / len(rows) ** 0.5
    assert len(factor.values) == int(moving.sum()) == 30
    assert relative(factor.values, whole[:30]) <= rounding(size=len(rows))
    assert not bool(factor.leading(len(factor.values))[:, ~moving].any())
    assert relative(
        factor.leading(len(factor.values)) @ factor.leading(len(factor.values)).mT, torch.eye(30).double()
    ) <= rounding(size=60)


@pytest.mark.parametrize("late", [0.25, 0.75])
def test_a_column_that_starts_to_move_late_counts(late: float) -> None:
    """Half of the columns stand still in the first batch, one of these moves in a later one: once, by little."""
    rows = torch.relu(numbers(5 * TILE // 60, 60))
    rows[:, ::2] = 0.1
    rows[int(late * len(rows)), 4] += 1e-3
    exact = rows.double()
    truth = torch.linalg.svdvals(exact - exact.mean(0)) / len(rows) ** 0.5
    found = covariance_of(rows).factor()
    assert len(found.values) == 31
    assert float((found.values - truth[:31]).abs().max()) <= 1e-8 * float(truth[0])
    assert bool(found.leading(31)[:, 4].any())


def test_a_mean_between_two_numbers_is_no_entry() -> None:
    """Columns alternate between neighbours of float32 first, and then stay at what their mean would be rounded to."""
    below = torch.tensor(0.1)
    both = torch.stack([below, torch.nextafter(below, torch.tensor(torch.inf))])
    middle = both.double().mean()
    rows = torch.full((3 * TILE // 20, 20), float(middle.float()))
    rows[: TILE // 20, :10] = both.repeat(TILE // 40)[:, None]
    rows[:, 10:] = 0.0
    exact = rows.double()
    truth = torch.linalg.svdvals(exact - exact.mean(0))[0] / len(rows) ** 0.5
    assert float(covariance_of(rows).factor().values[0] / truth) == pytest.approx(1.0, rel=1e-6)


def test_rows_that_are_all_the_same_have_no_spectrum() -> None:
    factor = covariance_of(torch.full((3 * TILE // 20, 20), 7.0)).factor()
    assert len(factor.values) == 0
    assert factor.through(numbers(5, 20).double()).values.numel() == 0


def test_a_spectrum_after_a_weight_matrix_is_that_of_the_rows_times_it() -> None:
    """A matrix that narrows and one that widens, to the 1e-8 of the largest that a covariance keeps."""
    rows = torch.relu(numbers(4 * TILE // 50, 50)) + 3.0
    centred = rows.double() - rows.double().mean(0)
    factor = covariance_of(rows).factor()
    for height in (20, 80):
        weight = numbers(height, 50, seed=height).double()
        truth = torch.linalg.svdvals(centred @ weight.mT) / len(rows) ** 0.5
        found = factor.through(weight).values
        assert len(found) == min(height, 50)
        assert float((found - truth[: len(found)]).abs().max()) <= 1e-8 * float(truth[0])
