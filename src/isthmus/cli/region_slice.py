"""--slice of `isthmus region`: the plane through three rows, or of two input columns, and the box drawn on it."""

from dataclasses import dataclass

import numpy as np

from isthmus.cli.region_model import Model
from isthmus.errors import DataError

_MARGIN = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """x(u, v) = origin + u basis_1 + v basis_2 for (u, v) in a box.

    Attributes:
        origin: shape (d_in,).
        basis: two rows.
        lower: least u and v.
        upper: largest u and v.
        points: (u, v) of the rows that lie on the plane by their making; none for a plane of two columns.
        axis_names: what u and v are.
        what: the plane in words.
    """

    origin: np.ndarray
    basis: np.ndarray
    lower: tuple[float, float]
    upper: tuple[float, float]
    points: np.ndarray
    axis_names: tuple[str, str]
    what: str


def plane(model: Model, through: str, at: int | None) -> Plane:
    """The plane that the options name.

    Raises:
        DataError: neither three rows nor two columns, rows or columns that are not there, rows on one line.
    """
    parts = [part.strip() for part in through.split(",")]
    if len(parts) == 3 and all(part.isdigit() for part in parts):
        if at is not None:
            raise DataError("--at: fixes the inputs that a slice of two columns leaves; three rows leave none.")
        return _through_rows(model.rows, [int(part) for part in parts])
    if len(parts) == 2:
        return _of_columns(model, parts, at)
    raise DataError(f"--slice {through}: needs three row numbers, as in 1,2,3, or two input columns.")


def _through_rows(rows: np.ndarray, numbers: list[int]) -> Plane:
    for number in numbers:
        if not 1 <= number <= len(rows):
            raise DataError(f"--slice: has no row {number}; rows are numbered 1 to {len(rows)}.")
    first, second, third = rows[[number - 1 for number in numbers]]
    along, across = second - first, third - first
    length = float(np.linalg.norm(along))
    across = across - along * (float(along @ across) / length**2 if length > 0 else 0.0)
    if not length > 0 or float(np.linalg.norm(across)) <= 1e-9 * float(np.linalg.norm(third - first)):
        raise DataError(f"--slice: rows {numbers[0]}, {numbers[1]} and {numbers[2]} lie on one line. Choose others.")
    basis = np.stack([along / length, across / np.linalg.norm(across)])
    points = np.stack([first - first, second - first, third - first]) @ basis.T
    lower, upper = _box(points)
    listed = ", ".join(map(str, numbers))
    return Plane(
        first, basis, lower, upper, points,
        (f"distance from row {numbers[0]} towards row {numbers[1]}", f"distance towards row {numbers[2]}"),
        f"the plane through rows {listed}",
    )  # fmt: skip


def _of_columns(model: Model, names: list[str], at: int | None) -> Plane:
    if names[0] == names[1]:
        raise DataError(f"--slice: names column {names[0]!r} twice. Give two different columns.")
    for name in names:
        if name not in model.input_names:
            listed = ", ".join(model.input_names[:20])
            raise DataError(f"--slice: there is no input column {name!r}. The inputs are {listed}.")
    if at is not None and at > len(model.rows):
        raise DataError(f"--at {at}: rows are numbered 1 to {len(model.rows)}.")
    places = [model.input_names.index(name) for name in names]
    values = model.rows[:, places]
    if (values.min(0) == values.max(0)).any():
        raise DataError(f"--slice: column {names[int((values.min(0) == values.max(0)).argmax())]!r} does not vary.")
    origin = model.rows.mean(0) if at is None else model.rows[at - 1].copy()
    origin[places] = 0.0
    lower, upper = _box(values)
    # rows are marked only where the plane passes through them
    on_plane = np.abs(np.delete(model.rows - origin, places, axis=1)).max(axis=1, initial=0.0) == 0
    fixed = "their means" if at is None else f"row {at}"
    what = f"columns {names[0]} and {names[1]}" + (f", the others at {fixed}" if model.rows.shape[1] > 2 else "")
    return Plane(
        origin, np.eye(model.rows.shape[1])[places], lower, upper, values[on_plane], (names[0], names[1]), what
    )


def _box(points: np.ndarray) -> tuple[tuple[float, float], tuple[float, float]]:
    low, high = points.min(0), points.max(0)
    margin = _MARGIN * (high - low)
    (u0, v0), (u1, v1) = (low - margin).tolist(), (high + margin).tolist()
    return (u0, v0), (u1, v1)
