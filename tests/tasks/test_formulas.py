"""Formulas depend on their groups alone, do not care about units, and have the limits of textbooks."""

import numpy as np
import pytest

from isthmus.tasks import FORMULAS, Formula, formula
from isthmus.tasks.formulas import BASE_UNITS, Column
from tolerances import rounding

NAMES = list(FORMULAS)
EXACT = rounding(size=1000, condition=1e3)  # of iterations and quadratures that run on slightly different numbers
FACTORS = np.array([0.453592, 0.3048, 60.0, 1.8])  # pounds, feet, minutes, degrees of Rankine


def answer(one: Formula, x: np.ndarray) -> np.ndarray:
    return np.log(one(x)[:, 0]) if one.log_target else one(x)[:, 0]


def null_space(rows: np.ndarray) -> np.ndarray:
    return np.linalg.svd(rows)[2][len(rows) :]


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", NAMES)
def test_the_target_does_not_change_along_what_leaves_the_groups(name: str) -> None:
    one = FORMULAS[name]
    x = one.draw(200, np.random.default_rng(0))
    for direction in null_space(one.exponents):
        moved = answer(one, x * np.exp(0.3 * direction))
        assert np.abs(moved - answer(one, x)).max() <= EXACT * np.abs(answer(one, x)).max()


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", NAMES)
def test_the_target_changes_along_every_combination_of_the_groups(name: str) -> None:
    one = FORMULAS[name]
    x = one.draw(500, np.random.default_rng(0))
    basis, step = np.linalg.qr(one.exponents.T)[0], 1e-4
    slopes = np.stack(
        [(answer(one, x * np.exp(step * b)) - answer(one, x * np.exp(-step * b))) / (2 * step) for b in basis.T], 1
    )
    eigenvalues = np.linalg.eigvalsh(slopes.T @ slopes / len(x))
    assert eigenvalues[0] > 0.01 * eigenvalues[-1]
    # moving the weakest by one standard deviation moves the target measurably
    weakest = basis @ np.linalg.eigh(slopes.T @ slopes)[1][:, 0]
    assert np.sqrt(eigenvalues[0]) * (np.log(x) @ weakest).std() > 0.1 * answer(one, x).std()


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_units_changes_nothing_but_the_units_of_the_target(name: str) -> None:
    one = FORMULAS[name]
    x = one.draw(200, np.random.default_rng(1))
    target = np.prod(FACTORS ** [one.target_units.get(base, 0) for base in BASE_UNITS])
    np.testing.assert_allclose(one(x * np.prod(FACTORS**one.units, 1)), one(x) * target, rtol=EXACT)
    wrong = x.copy()
    wrong[:, np.abs(one.exponents).max(0).argmax()] *= 2.54  # the control: one column in other units
    assert not np.allclose(one(wrong), one(x) * target, rtol=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_groups_have_no_units_but_where_the_target_has_them(name: str) -> None:
    one = FORMULAS[name]
    units = one.exponents @ one.units
    target = np.array([one.target_units.get(base, 0) for base in BASE_UNITS])
    for row in units:
        assert np.array_equal(row, 0 * row) or np.array_equal(row, target)
    assert np.linalg.matrix_rank(one.exponents, tol=rounding(size=10)) == len(one.groups)
    assert (len(one.groups), one.log_target) == EXPECTED[name]


EXPECTED = {
    "rayleigh_plate": (1, False), "blasius": (1, False), "pendulum": (2, True), "colebrook": (2, False),
    "sphere_drag": (2, False), "waterwheel": (2, True), "convection": (2, True), "projectile": (2, True),
}  # fmt: skip


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", NAMES)
def test_rows_lie_within_bounds_span_a_decade_and_carry_noise(name: str) -> None:
    one, task = FORMULAS[name], formula(name, num_samples=2000, noise=0.05, seed=3)
    spans = np.log10(task.x.max(0) / task.x.min(0))
    assert (task.x > 0).all()
    assert spans.min() > 1
    for group, (low, high) in one.bounds:
        values = np.prod([task.x[:, list(one.columns).index(c)] ** e for c, e in group.items()], axis=0)
        assert (values > low).all()
        assert (values < high).all()
    relative = np.log(task.target[:, 0] / one(task.x)[:, 0])
    assert (relative.mean(), relative.std()) == (pytest.approx(0, abs=0.005), pytest.approx(0.05, rel=0.08))
    assert task.x_names == tuple(one.columns)
    np.testing.assert_array_equal(formula(name, num_samples=50, seed=3).x, formula(name, num_samples=50, seed=3).x)


def test_impossible_formulas_are_refused() -> None:
    with pytest.raises(ValueError, match="needs one of rayleigh_plate, blasius"):
        formula("reynolds", num_samples=10)
    with pytest.raises(ValueError, match="finite noise >= 0"):
        formula("blasius", num_samples=10, noise=-1.0)
    one = FORMULAS["blasius"]
    empty = Formula(
        "empty", {"height": Column(1, 2)}, ({"height": 1},), one.law, "y", bounds=(({"height": 1}, (3, 4)),)
    )
    with pytest.raises(ValueError, match="hardly any row lies within its bounds"):
        empty.draw(5, np.random.default_rng(0))
