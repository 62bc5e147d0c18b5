"""What becomes of a table with logarithms and units, and predictions back in the user's units."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isthmus
from isthmus import Limits, Verdict
from isthmus.discovery.data.checking import checked_data, with_powers
from isthmus.discovery.groups.powers import Powers, powers_argument
from isthmus.errors import DataError, DataWarning
from isthmus.reports.verdict import verdict_of
from isthmus.tasks import FORMULAS, formula

NAMES = (("length", "gravity", "mass", "amplitude"), ("period",))
UNITS = {"length": {"m": 1}, "gravity": {"m": 1, "s": -2}, "mass": {"kg": 1}, "amplitude": {}, "period": {"s": 1}}
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 30, size=(20, 4))
Y = 2 * np.pi * np.sqrt(X[:, :1] / X[:, 1:2])


def test_nothing_asked_changes_nothing() -> None:
    assert powers_argument(X, Y, NAMES, log=None) is None


def test_the_target_is_divided_by_powers_of_the_inputs_that_have_its_unit() -> None:
    found = powers_argument(X, Y, NAMES, log=None, units=UNITS)
    assert found is not None
    assert found.target_exponents == ((Fraction(1, 2), Fraction(-1, 2), Fraction(0), Fraction(0)),)
    assert np.allclose(found.targets(X, Y), 2 * np.pi), "the small pendulum has no group left"
    assert "period (gravity / length)^(1/2)" in found.sentence
    assert np.allclose(found.inputs(X)[:, :3], np.log(X[:, :3])), "a pure number needs no logarithm"
    assert np.array_equal(found.inputs(X)[:, 3], X[:, 3])


@pytest.mark.parametrize("log", [["mass"], ["mass", "period"], ["period"]])
@pytest.mark.parametrize("units", [None, UNITS], ids=["plain", "units"])
def test_predictions_come_back_in_the_users_units_and_through_a_file(log: list[str], units: object) -> None:
    found = powers_argument(X, Y, NAMES, log=log, units=units)
    assert found is not None
    again = Powers.of_plain(NAMES[0], found.as_plain())
    for powers in (found, again):
        assert np.allclose(powers.restored(X, powers.targets(X, Y)), Y, rtol=1e-12)
        assert np.array_equal(powers.inputs(X), found.inputs(X))
    assert np.allclose(found.targets(X, Y), Y) == (log == ["mass"] and units is None)


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ({**UNITS, "period": {"A": 1}}, "A"),
        ({name: unit for name, unit in UNITS.items() if name != "mass"}, "has no units for"),
        ({**UNITS, "mas": {"kg": 1}}, "mas"),
    ],
    ids=["a base unit that no input has", "a column without units", "units of no column"],
)
def test_units_that_do_not_fit_are_refused(units: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        powers_argument(X, Y, NAMES, log=None, units=units)


def test_logarithms_that_cannot_be_taken_are_refused() -> None:
    with pytest.raises(DataError, match=r"y: column 'period' holds -1 in row 4"):
        powers_argument(X, np.where(np.arange(20)[:, None] == 3, -1, Y), NAMES, log=["period"])
    with pytest.raises(DataError, match="needs targets, numbers or classes; the inputs themselves"):
        powers_argument(X, None, (NAMES[0], NAMES[0]), log=None, units=UNITS)
    with pytest.raises(ValueError, match=r"loss='poisson'\): takes the targets as they are"):
        isthmus.discover(pd.DataFrame(X, columns=list(NAMES[0])), pd.DataFrame(np.round(Y), columns=["period"]),
                         loss="poisson", log=["period"], effort="quick")  # fmt: skip


def test_each_of_several_targets_loses_its_own_unit() -> None:
    names = (NAMES[0], ("period", "share", "speed"))
    units = {**UNITS, "share": {}, "speed": {"m": 1, "s": -1}}
    y = np.hstack([Y, X[:, 3:], np.sqrt(X[:, :1] * X[:, 1:2])])
    found = powers_argument(X, y, names, log=["speed"], units=units)
    assert found is not None
    assert (
        "Targets were made pure numbers: period (gravity / length)^(1/2); speed (1 / (length gravity))^(1/2)."
        in found.sentence
    )
    values = found.targets(X, y)
    assert np.allclose(values[:, 0], 2 * np.pi)
    assert np.array_equal(values[:, 1], X[:, 3])
    assert np.allclose(values[:, 2], 0.0)
    for powers in (found, Powers.of_plain(NAMES[0], found.as_plain())):
        assert np.allclose(powers.restored(X, values), y, rtol=1e-12)
    with pytest.raises(DataError, match=r"the target 'speed' is in A"):
        powers_argument(X, y, names, log=None, units={**units, "speed": {"A": 1}})


def test_a_run_of_an_older_version_has_the_exponents_of_its_one_target() -> None:
    told = {"logged": ["length"], "target_logs": [0], "target_exponents": ["1/2", "-1/2", "0", "0"]}
    of = Powers.of_plain(NAMES[0], told)
    assert of.target_exponents == ((Fraction(1, 2), Fraction(-1, 2), Fraction(0), Fraction(0)),)
    assert np.allclose(of.targets(X, Y), 2 * np.pi)


def test_classes_have_no_unit_and_their_inputs_have() -> None:
    label = np.where(X[:, 0] / X[:, 1] > 1, "slow", "fast")
    units = {name: UNITS[name] for name in NAMES[0]}
    frame = pd.DataFrame(X, columns=list(NAMES[0]))
    asked = with_powers(checked_data(frame, label, "cross_entropy"), None, units).powers
    assert asked is not None
    assert asked.target_exponents is None
    assert asked.coordinates.logged == ("length", "gravity", "mass")
    with pytest.raises(DataError, match="no column 'period'"):
        with_powers(checked_data(frame, label, "cross_entropy"), None, UNITS)


@pytest.fixture(scope="module")
def pendulum() -> tuple[isthmus.Discovery, pd.DataFrame, np.ndarray]:
    known, task = FORMULAS["pendulum"], formula("pendulum", num_samples=400, noise=0.01, seed=3)
    x, y = pd.DataFrame(task.x, columns=list(known.columns)), pd.DataFrame(task.y, columns=[known.target])
    units = {name: dict(column.units) for name, column in known.columns.items()}
    units[known.target] = dict(known.target_units)
    assert task.y is not None
    few: dict[str, Any] = {"ridge": [3e-3, 1e-3], "starts": 1, "limits": Limits(evaluations=400), "workers": 1}
    with pytest.warns(DataWarning, match="made a pure number"):
        found = isthmus.discover(x, y, log=[*known.columns, known.target], units=units, **few, effort="quick")
    return found, x, task.y


@pytest.mark.slow
def test_the_group_of_the_large_pendulum_is_its_amplitude(pendulum: tuple[isthmus.Discovery, Any, Any]) -> None:
    found, x, y = pendulum
    assert (found.rank, found.verdict) == (1, Verdict.CONFIDENT), found.reasons
    assert found.groups == [{"amplitude": 1}]
    assert found.combinations is not None
    assert set(found.combinations.data_vars) >= {"loading", "cone", "angle", "exponent", "exponent_measured"}
    assert any("made a pure number" in warning for warning in found.warnings)
    error = np.square(np.log(found.predict(x)) - np.log(y)).mean() / np.log(y).var()
    assert error < 0.01, "predictions are periods in seconds"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:new rows lie far outside")  # in grams
def test_it_is_the_same_whatever_the_units_and_after_a_file(
    pendulum: tuple[isthmus.Discovery, Any, Any], tmp_path: Path
) -> None:
    found, x, _ = pendulum
    found.save(tmp_path / "run")
    loaded = isthmus.load(tmp_path / "run")
    assert loaded.groups == found.groups
    assert np.array_equal(loaded.predict(x), found.predict(x))
    grams = x.assign(mass=1000 * x["mass"])
    assert np.allclose(found.predict(grams), found.predict(x), rtol=1e-6), "mass has no part in it"
    feet = x.assign(length=3.28 * x["length"], gravity=3.28 * x["gravity"])
    assert np.allclose(found.predict(feet), found.predict(x), rtol=1e-6)
    assert not np.allclose(found.predict(x.assign(length=3.28 * x["length"])), found.predict(x), rtol=0.1)


@pytest.mark.slow
def test_a_group_of_one_column_is_not_said_to_have_been_rounded_to_itself(
    pendulum: tuple[isthmus.Discovery, Any, Any],
) -> None:
    found, *_ = pendulum
    said = {line.label: line.text for line in verdict_of(found).lines}
    assert said["Groups"] == "Pi_1 = amplitude. Groups are found up to powers and products of each other."
