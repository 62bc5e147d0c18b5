import numpy as np
import pytest

from isthmus.discovery.groups.column_units import units_of_mapping
from isthmus.discovery.groups.dimensional_analysis import dimensionless_space
from isthmus.discovery.groups.logarithms import LogCoordinates, log_coordinates
from isthmus.errors import DataError, ShapeError
from tolerances import rounding

COLUMNS = ("rho", "angle", "U", "D", "mu")
UNITS = units_of_mapping({"rho": "kg/m^3", "U": "m/s", "D": "m", "mu": "kg/(m s)", "angle": "1"}, "")
LOGGED = ("rho", "U", "D", "mu")


def rows(seed: int = 0) -> np.ndarray:
    x = np.exp(np.random.default_rng(seed).normal(size=(7, 5)))
    x[:, 1] -= 1
    return x


def test_with_units_only_groups_and_pure_columns_are_left() -> None:
    found = log_coordinates(COLUMNS, LOGGED, UNITS)
    x = rows()
    z = found.coordinates(x)
    reynolds = np.log(x[:, 0] * x[:, 2] * x[:, 3] / x[:, 4])
    assert z.shape == (7, 2)
    np.testing.assert_allclose(np.abs(z[:, 0]), np.abs(reynolds) / 2, atol=rounding(size=100))
    np.testing.assert_array_equal(z[:, 1], x[:, 1])
    np.testing.assert_array_equal(log_coordinates(("angle",), (), UNITS).coordinates(x[:, 1:2]), x[:, 1:2])


def test_directions_are_those_over_the_columns() -> None:
    found = log_coordinates(COLUMNS, LOGGED, UNITS)
    A = np.array([[0.6, 0.8], [-0.8, 0.6]])
    x = rows()
    D = found.directions(A)
    np.testing.assert_allclose(found.transformed(x) @ D.T, found.coordinates(x) @ A.T, atol=rounding(size=100))
    np.testing.assert_allclose(D @ D.T, np.eye(2), atol=rounding(size=10))


def test_without_units_the_columns_stay_apart() -> None:
    found = log_coordinates(COLUMNS, ("U",))
    x = rows()
    expected = x.copy()
    expected[:, 2] = np.log(x[:, 2])
    np.testing.assert_array_equal(found.coordinates(x), expected)
    assert found.is_logged == (False, False, True, False, False)


def test_new_rows_are_checked() -> None:
    found = log_coordinates(COLUMNS, LOGGED, UNITS)
    x = rows()
    x[3, 4] = 0
    with pytest.raises(DataError, match="x: column 'mu' holds 0 in row 4; its logarithm was taken"):
        found.coordinates(x)
    with pytest.raises(ShapeError, match="need rows of 5 columns, got shape \\(7, 4\\)"):
        found.coordinates(x[:, :4])


def test_units_that_leave_nothing_are_refused() -> None:
    with pytest.raises(DataError, match="column 'U' is in m s\\^-1 and gets no logarithm"):
        log_coordinates(COLUMNS, ("rho", "D", "mu"), UNITS)
    with pytest.raises(
        DataError, match="no powers of the columns 'rho' \\(kg m\\^-3\\), 'D' \\(m\\) are a pure number"
    ):
        log_coordinates(("rho", "D"), ("rho", "D"), UNITS)
    with pytest.raises(ValueError, match="needs the space of the columns with logarithms"):
        LogCoordinates(COLUMNS, ("U",), dimensionless_space(UNITS, ("U", "D")))
