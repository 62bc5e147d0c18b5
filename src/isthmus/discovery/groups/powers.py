"""A table as a search with logarithms sees it, and predictions back: which columns, what takes units away, both ways.

Logarithms: `logarithms`; units: `column_units`, `dimensional_analysis`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.discovery.groups.column_units import ColumnUnits
from isthmus.discovery.groups.dimensional_analysis import target_exponents
from isthmus.discovery.groups.group_words import made_dimensionless
from isthmus.discovery.groups.logarithms import ALL, LogCoordinates, log_columns, log_coordinates
from isthmus.discovery.groups.rational_rows import Row
from isthmus.discovery.groups.unit_files import units_argument
from isthmus.errors import DataError
from isthmus.tasks.arrays import listing
from isthmus.tasks.names import quoted

Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Powers:
    """What becomes of inputs and targets.

        t_j = log x_j where chosen, else x_j;   v_i = y_i / prod_j x_j^(a_ij) with units, log y_i where chosen

    Attributes:
        coordinates: the inputs, with the powers that have no unit.
        target_logs: for each target whether it is a logarithm.
        target_exponents: a row of a for each target; None where all are pure numbers or units were not given.
        sentence: what is said of it.
    """

    coordinates: LogCoordinates
    target_logs: tuple[bool, ...]
    target_exponents: tuple[Row, ...] | None
    sentence: str = ""

    def inputs(self, x: Rows) -> Rows:
        """t(x).

        Raises:
            ShapeError, DataError: other columns, or no logarithm.
        """
        return self.coordinates.transformed(x)

    def targets(self, x: Rows, y: Rows) -> Rows:
        """v(x, y)."""
        values = y / self._unit(x)
        return np.where(self.target_logs, np.log(np.where(self.target_logs, values, 1.0)), values)

    def restored(self, x: Rows, values: Rows) -> Rows:
        """The targets at rows x of which v was predicted; outputs of targets that are as they were stay as they are."""
        if any(self.target_logs):
            values = np.where(self.target_logs, np.exp(np.where(self.target_logs, values, 0.0)), values)
        return values * self._unit(x)

    def _unit(self, x: Rows) -> Rows | float:
        if self.target_exponents is None:
            return 1.0
        return np.column_stack([_product(x, exponents) for exponents in self.target_exponents])

    def as_plain(self) -> dict[str, object]:
        """For a file; the powers without a unit are not kept, since encoders have them."""
        exponents = None if self.target_exponents is None else [[str(a) for a in row] for row in self.target_exponents]
        logged, target_logs = list(self.coordinates.logged), [int(log) for log in self.target_logs]
        return {"logged": logged, "target_logs": target_logs, "target_exponents": exponents}

    @classmethod
    def of_plain(cls, columns: Sequence[str], plain: Mapping[str, Any]) -> "Powers":
        """What `as_plain` told, of these columns."""
        exponents = plain["target_exponents"]
        if exponents and isinstance(exponents[0], str):  # an older version knew one target only
            exponents = [exponents]
        return cls(
            LogCoordinates(tuple(columns), tuple(map(str, plain["logged"]))),
            tuple(bool(log) for log in plain["target_logs"]),
            None if exponents is None else tuple(tuple(Fraction(str(a)) for a in row) for row in exponents),
        )


def _product(x: Rows, exponents: Row) -> Rows:
    """prod_j x_j^(a_j) of each row."""
    taken = np.flatnonzero([bool(exponent) for exponent in exponents])
    return np.exp(np.log(x[:, taken]) @ np.array([float(exponents[place]) for place in taken]))


def powers_argument(
    x: Rows,
    y: Rows | None,
    names: tuple[Sequence[str], Sequence[str]],
    *,
    log: str | Sequence[str] | None,
    units: object = None,
) -> Powers | None:
    """What `log` and `units` of `discover` ask for; None where they ask for nothing.

    Args:
        x: inputs.
        y: targets; None where they are the inputs, or no numbers.
        names: of the inputs and of the targets; no targets where these are classes.
        log: "all" positive inputs that span more than a decade, or names of inputs and targets.
        units: of inputs and targets: a file, a mapping or a `ColumnUnits`.

    Raises:
        DataError: a logarithm that cannot be taken, units that do not fit the data or each other.
    """
    if log is None and units is None:
        return None
    inputs, targets = names
    wanted = log if log is None or log == ALL else [log] if isinstance(log, str) else list(log)
    logs = tuple(isinstance(wanted, list) and name in wanted for name in targets) if y is not None else (False,)
    known = None
    if units is not None:
        if y is None and targets:
            raise DataError(
                "discover(units=...): needs targets, numbers or classes; the inputs themselves cannot be rebuilt from "
                "what has no unit. Name a target, or leave out the units."
            )
        known = units_argument(units, inputs=inputs, targets=targets)
    of_inputs = (
        [name for name in wanted if name not in targets or name in inputs] if isinstance(wanted, list) else wanted
    )
    chosen = log_columns(x, inputs, of_inputs or None, units=known)
    coordinates = log_coordinates(inputs, chosen.columns, known)
    exponents = None if known is None else _target_exponents(known, chosen.columns, inputs, targets)
    found = Powers(
        coordinates, logs, exponents, " ".join(filter(None, [chosen.sentence, _of_targets(exponents, inputs, targets)]))
    )
    if y is not None:
        _check_targets(y, targets, logs)
    return found


def _target_exponents(
    units: ColumnUnits, logged: Sequence[str], inputs: Sequence[str], targets: Sequence[str]
) -> tuple[Row, ...] | None:
    rows = [dict(zip(logged, target_exponents(units, logged, target), strict=True)) for target in targets]
    found = tuple(tuple(row.get(name, Fraction(0)) for name in inputs) for row in rows)
    return found if any(map(any, found)) else None


def _of_targets(exponents: tuple[Row, ...] | None, inputs: Sequence[str], targets: Sequence[str]) -> str:
    if exponents is None:
        return ""
    made = [made_dimensionless(name, inputs, row) for name, row in zip(targets, exponents, strict=True) if any(row)]
    what = "The target was made a pure number" if len(targets) == 1 else "Targets were made pure numbers"
    return f"{what}: {'; '.join(made)}."


def _check_targets(y: Rows, names: Sequence[str], logs: Sequence[bool]) -> None:
    for place in [place for place, log in enumerate(logs) if log]:
        wrong = np.flatnonzero(~(y[:, place] > 0))
        if len(wrong):
            rows = listing((int(row) + 1 for row in wrong), "row")
            raise DataError(
                f"y: column {quoted(names[place])} holds {y[wrong[0], place]:g} in {rows}; a logarithm needs numbers "
                "above 0. Leave the target or these rows out."
            )
