from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from isthmus.discovery.groups.column_units import units_of_mapping
from isthmus.discovery.groups.dimensional_analysis import dimensionless_space
from isthmus.discovery.groups.group_search import EVALUATIONS, GroupFit, exponent_rows, held, simplest_groups
from isthmus.discovery.groups.rational_rows import Rows, as_row, rational_rank, same_space
from isthmus.discovery.groups.varimax import orthonormal_rows
from tolerances import rounding

SIMPLE = sorted({Fraction(p, q) for q in range(1, 7) for p in range(-2 * q, 2 * q + 1)})


def numbers(rows: Rows) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def perturbed(rows: Rows, angle: float, generator: np.random.Generator) -> np.ndarray:
    """A random basis of a span whose largest principal angle to these rows is `angle`."""
    basis = orthonormal_rows(numbers(rows))
    turn = generator.normal(size=basis.shape)
    turn -= turn @ basis.T @ basis
    turn *= np.tan(angle) / np.linalg.norm(turn, 2)
    found = generator.normal(size=(len(rows), len(rows))) @ (basis + turn)
    assert subspace_angles(found.T, basis.T).max() == pytest.approx(angle, rel=1e-6)
    return found


def bowl(rows: Rows, steepness: float = 2e4) -> Callable[[np.ndarray], float]:
    """1 + steepness sum sin^2 over the principal angles to these rows."""
    basis = orthonormal_rows(numbers(rows))

    def objective(directions: np.ndarray) -> float:
        frame = orthonormal_rows(directions)
        return 1 + steepness * float(((frame - frame @ basis.T @ basis) ** 2).sum())

    return objective


def random_groups(generator: np.random.Generator) -> Rows:
    """1 to 3 rows over 3 to 9 columns, in echelon form for some columns with entries of denominators up to 6."""
    k = int(generator.integers(1, 4))
    d = int(generator.integers(max(3, k + 1), 10))
    picked = generator.integers(len(SIMPLE), size=(k, d - k)) * (generator.random((k, d - k)) < 0.7)
    entries = [[SIMPLE[i] if i else Fraction(0) for i in line] for line in picked]
    rows = [[*(Fraction(int(i == j)) for j in range(k)), *entries[i]] for i in range(k)]
    order = generator.permutation(d)
    return tuple(tuple(row[j] for j in order) for row in rows)


def fitted(rows: Rows, angle: float, seed: int, **settings: float) -> GroupFit:
    generator = np.random.default_rng([seed, 7])
    columns = [f"x{i}" for i in range(len(rows[0]))]
    return simplest_groups(perturbed(rows, angle, generator), bowl(rows), columns=columns, **settings)  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 15))])
def test_random_groups_are_recovered_exactly(seed: int) -> None:
    rows = random_groups(np.random.default_rng(seed))
    found = fitted(rows, (0.001, 0.003, 0.01)[seed % 3], seed)
    assert found.is_exact
    assert same_space(found.exponents, rows)
    assert found.num_evaluations <= EVALUATIONS
    assert found.rise <= 0.01


@pytest.mark.slow
def test_control_directions_that_are_far_off_are_not_recovered() -> None:
    recovered = 0
    for seed in range(6):
        rows = random_groups(np.random.default_rng(seed))
        near, far = fitted(rows, 0.3, seed), fitted(rows, 0.3, seed, most_angle=1.0)
        assert not near.is_exact or not same_space(near.exponents, rows)
        recovered += far.is_exact and same_space(far.exponents, rows)
    assert recovered <= 2  # a round bowl leads to some even from there


PHYSICS = {
    "Blasius": ("y U nu x", ["2 1 -1 -1"]),
    "Colebrook": ("rho U D mu k", ["1 1 1 -1 0", "0 0 1 0 -1"]),
    "drag with Mach number": ("rho U D mu c", ["1 1 1 -1 0", "0 1 0 0 -1"]),
    "pendulum": ("l g theta mass", ["1 -1 0 0", "0 0 1 0"]),
    "Malkus wheel": ("r g nu q w", ["1 -1 0 0 0", "0 1 -2 1 0"]),
}


@pytest.mark.parametrize("name", PHYSICS)
@pytest.mark.parametrize("angle", [0.003, 0.03])
def test_groups_of_physics_come_out_as_they_are_written(name: str, angle: float) -> None:
    columns, groups = PHYSICS[name]
    rows = tuple(as_row(map(int, group.split())) for group in groups)
    generator = np.random.default_rng(1)
    found = simplest_groups(perturbed(rows, angle, generator), bowl(rows, 50.0), columns=columns.split(), slack=0.05)
    assert same_space(found.exponents, rows)
    assert sum(map(bool, sum(found.exponents, ()))) == sum(map(bool, sum(rows, ())))
    assert found.groups[0] == {n: v for n, v in zip(columns.split(), found.exponents[0], strict=True) if v}
    assert found.angle == pytest.approx(angle, rel=1e-6)


def test_exponents_before_rounding_are_those_of_the_measured_span() -> None:
    rows = (as_row([2, 1, -1, -1]),)
    directions = perturbed(rows, 0.01, np.random.default_rng(0))
    found = simplest_groups(directions, bowl(rows, 10.0), columns="yUnx")
    assert found.exponents == rows
    assert found.pivots == (0,)
    assert found.measured[0, 0] == pytest.approx(2)
    np.testing.assert_allclose(
        found.measured / found.measured[0, 0], directions / directions[0, 0], atol=rounding(size=10)
    )
    assert 0 < np.abs(found.measured - numbers(rows)).max() < 0.06


@pytest.mark.parametrize(
    ("share", "most_angle", "expected"),
    [(1.1, 0.1, (1, 1)), (0.9, 0.1, (4, 3)), (0.1, 0.1, (5, 4)), (0.01, 0.1, (6, 5)), (1.1, 0.04, (5, 4))],
)
def test_the_simplest_within_the_slack_and_the_angle_wins(
    share: float, most_angle: float, expected: tuple[int, int]
) -> None:
    truth = (as_row([6, 5, 0]),)
    directions = perturbed(truth, 1e-4, np.random.default_rng(0))
    apart = np.sin(np.arctan2(1, 1) - np.arctan2(5, 6)) ** 2  # the rise of x y in place of x^6 y^5
    found = simplest_groups(directions, bowl(truth, 1.0), columns="abc", slack=share * apart, most_angle=most_angle)
    assert found.exponents == (as_row([*expected, 0]),)


def test_negative_objectives_have_a_slack_too() -> None:
    truth = (as_row([2, 1, 0]),)
    directions = perturbed(truth, 1e-3, np.random.default_rng(0))
    found = simplest_groups(directions, lambda rows: bowl(truth, 1.0)(rows) - 3, columns="abc")
    assert found.exponents == truth
    assert found.rise >= 0


def test_where_nothing_is_accepted_the_echelon_form_is_left() -> None:
    directions = np.array([[1.0, 0.4142, 0.7321], [0.3, 1.0, 0.123]])
    found = simplest_groups(directions, lambda rows: float(np.abs(rows - directions).max() > 1e-9), columns="abc")
    assert not found.is_exact
    assert found.groups == []
    assert found.rise == np.inf
    np.testing.assert_allclose(found.measured[:, found.pivots], np.eye(2), atol=rounding(size=10))
    np.testing.assert_allclose(found.measured, held(directions, found.pivots), atol=rounding(size=100))


def test_the_objective_sees_the_directions_projected_and_failures_are_passed_over() -> None:
    truth = (as_row([1, 1, 1, -1, 0]), as_row([0, 0, 1, 0, -1]))
    directions = perturbed(truth, 0.01, np.random.default_rng(4))
    seen: list[np.ndarray] = []

    def objective(rows: np.ndarray) -> float:
        seen.append(rows.copy())
        return bowl(truth)(rows) if len(seen) % 3 else np.nan

    found = simplest_groups(directions, objective, columns="abcde", evaluations=30)
    assert len(seen) == found.num_evaluations <= 30
    np.testing.assert_array_equal(seen[0], directions)
    for rows in seen[1:]:
        assert rows.shape == directions.shape
        rest = directions - rows
        np.testing.assert_allclose(rest @ rows.T, 0, atol=1e-9 * np.abs(directions).max() ** 2)


UNITS = units_of_mapping(
    {"rho": "kg/m^3", "U": "m/s", "D": "m", "mu": "kg/(m s)", "k": "m", "g": "m/s^2"}, ""
)  # fmt: skip


def test_with_units_only_groups_without_dimensions_are_found() -> None:
    columns = ["rho", "U", "D", "mu", "k", "g"]
    space = dimensionless_space(UNITS, columns)
    truth = (as_row([1, 1, 1, -1, 0, 0]), as_row([0, 2, -1, 0, 0, -1]))  # Reynolds and Froude numbers
    generator = np.random.default_rng(5)
    N = space.orthonormal
    directions = perturbed(truth, 0.02, generator) @ N @ N.T
    found = simplest_groups(directions, bowl(truth, 100.0), columns=columns, within=space.basis)
    assert same_space(found.exponents, truth)
    assert rational_rank([*found.exponents, *space.basis]) == space.num_groups
    # as many groups as there are: nothing is rounded, whatever the directions say within the span
    full = simplest_groups(
        generator.normal(size=(3, 3)) @ N.T, bowl(space.basis, 1e9), columns=columns, within=space.basis
    )
    assert same_space(full.exponents, space.basis)
    assert full.angle < 1e-7


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ({"columns": "ab"}, "needs 2 columns"),
        ({"within": (as_row([1, 1]),)}, "needs 3 columns"),
        ({"within": (as_row([1, 1, 0]),)}, "2 directions, but only 1 groups"),
        ({"slack": -1.0}, "needs slack >= 0"),
        ({"evaluations": 1}, "at least 2 evaluations"),
        ({"most_angle": 0.0}, "most_angle > 0"),
        ({"objective": lambda _: float("nan")}, "the objective of the directions is nan"),
        ({"directions": np.ones((2, 3))}, "rows depend on each other"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call: dict[str, object], line: str) -> None:
    settings: dict[str, object] = {"directions": np.eye(3)[:2], "objective": lambda _: 1.0, "columns": "abc", **call}
    with pytest.raises(ValueError, match=line):
        simplest_groups(**settings)  # pyright: ignore[reportArgumentType]


def test_groups_become_rows_again() -> None:
    groups = [{"a": 1, "b": Fraction(-1, 2)}, {"c": 2}]
    assert exponent_rows(groups, ["a", "b", "c"]) == (as_row([1, Fraction(-1, 2), 0]), as_row([0, 0, 2]))
    with pytest.raises(ValueError, match="'z' is none of the columns"):
        exponent_rows([{"z": 1}], ["a"])
    with pytest.raises(ValueError, match="powers and products of the others"):
        exponent_rows([{"a": 1}, {"a": 2}], ["a"])
