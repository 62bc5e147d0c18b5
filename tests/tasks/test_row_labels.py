"""Rows that are paired by position: labels that say otherwise are refused or said."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import discoveries
import isthmus
from isthmus import Limits
from isthmus.errors import DataError, DataWarning
from isthmus.tasks.foreign import check_row_labels
from isthmus.training.batched.fit_batch import fit_batch
from isthmus.training.solvers.solver import LBFGS, Adam

LABELLED = pd.DataFrame({"a": range(4), "b": range(4)}, index=list("pqrs"))


@pytest.mark.parametrize("kind", ["frame", "series"])
def test_rows_by_the_same_labels_in_another_order_are_refused(kind: str) -> None:
    """They were taken as they stand, which pairs each row with the target of another."""
    y = LABELLED if kind == "frame" else LABELLED["a"]
    check_row_labels(LABELLED, {"y": y, "groups": None, "sample_weight": [1.0] * 4})
    with pytest.raises(DataError, match=r"groups: has the row labels .* another order\. Pass groups\.loc\[x\.index\]"):
        check_row_labels(LABELLED, {"y": y, "groups": y.iloc[::-1]})
    numbered = LABELLED.reset_index(drop=True)
    with pytest.raises(DataError, match="another order"):
        check_row_labels(numbered, {"y": numbered.iloc[[1, 0, 3, 2]]})


def test_other_labels_are_said_unless_they_are_numbers_of_rows() -> None:
    with pytest.warns(DataWarning, match="y: has other row labels"):
        check_row_labels(LABELLED, {"y": LABELLED.set_axis(list("tuvw"))})
    check_row_labels(LABELLED, {"y": LABELLED.reset_index(drop=True)})  # warnings are errors here
    check_row_labels(LABELLED.reset_index(drop=True), {"y": LABELLED})
    check_row_labels(
        LABELLED, {"y": LABELLED.set_axis(list("pppp")).reset_index(drop=True), "groups": LABELLED.index.to_numpy()}
    )


NUMBERED = pd.DataFrame({"a": range(8)})


@pytest.mark.parametrize(
    ("rows", "labels", "same"),
    [(range(8), range(1, 9), 7), ([0, 1, 2, 4, 5, 6, 7, 8], range(8), 7), (range(8), [1, 2, 3, 4, 5, 7, 8, 9], 6)],
    ids=["shifted", "lost", "lost in y"],
)
def test_labels_that_stand_beside_others_are_said(rows: Sequence[int], labels: Sequence[int], same: int) -> None:
    """Each side lost a row of its own, say: nothing had been said where one side numbers its rows."""
    with pytest.warns(DataWarning, match=rf"y: has {same} of the 8 row labels .* as they stand.*\.intersection\(y\.i"):
        check_row_labels(NUMBERED.set_axis(list(rows)), {"y": NUMBERED.set_axis(list(labels))})


KINDS = {
    "categories": pd.CategoricalIndex,
    "ordered categories": partial(pd.CategoricalIndex, ordered=True),
    "text": pd.Index,
    "pairs": lambda labels: pd.MultiIndex.from_product([["p"], labels]),
    "intervals": lambda labels: pd.IntervalIndex.from_breaks([*map(ord, [*labels, "z"])]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_every_kind_are_held_against_each_other(kind: str) -> None:
    """Those of categories, of which each side has its own, ended in an error of pandas."""
    rows, labels = (KINDS[kind](list(letters)) for letters in ("abcdefgh", "bcdefghi"))
    with pytest.warns(DataWarning, match="y: has . of the 8 row labels .* as they stand"):
        check_row_labels(NUMBERED.set_axis(rows), {"y": NUMBERED.set_axis(labels)})
    check_row_labels(NUMBERED.set_axis(rows), {"y": NUMBERED.set_axis(rows)})


@pytest.mark.parametrize(
    "labels",
    [range(8), [7, 3, 1, 9, 0, 2, 5, 12], range(4, 12), [0, 1, 2, 3, 4, 5, 6, 9]],
    ids=["same", "drawn", "half", "one renamed"],
)
def test_numbers_of_rows_say_nothing_of_rows_that_were_drawn(labels: Sequence[int]) -> None:
    check_row_labels(NUMBERED, {"y": NUMBERED.set_axis(list(labels))})  # warnings are errors here
    check_row_labels(NUMBERED.set_axis(list(labels)), {"y": NUMBERED})


def doors(folder: Path) -> dict[str, Callable[[Any, Any], object]]:
    """What takes inputs and targets row for row, as scikit-learn does, besides `discover`."""
    network = isthmus.FullyConnected(5, 4, width=3, depth=2, seed=0)
    leaky = isthmus.LeakyResNet(5, 4, width=6, depth=2, effective_depth=1.0, seed=0)
    arguments: dict[str, Any] = {"effort": "quick", "starts": 1, "ridge": 1e-2, "evaluations": 10}
    return {
        "fit": lambda x, y: isthmus.fit(network, x, y, ridge=0.1, limits=Limits(evaluations=2)),
        "fit_batch": lambda x, y: fit_batch([network], x, y, ridges=[0.1], solver=(Adam(1), LBFGS(1))),
        "diagnose": lambda x, y: isthmus.diagnose(network, x, y, ridge=0.1),
        "scree": lambda x, y: isthmus.scree(network, x, y, ranks=[1]),
        "forensics": lambda x, y: isthmus.forensics(network, x, y),
        "leaky_diagnosis": lambda x, y: isthmus.leaky_diagnosis(leaky, x, y, ridge=1e-2),
        "report": lambda x, y: isthmus.report(discoveries.discovery(), folder / "page.html", x=x, y=y, pictures=[]),
        "regressor": isthmus.BottleneckRegressor(**arguments).fit,
        "classifier": lambda x, y: isthmus.BottleneckClassifier(**arguments).fit(x, y.iloc[:, 0] > 0),
        "autoencoder": lambda x, y: isthmus.BottleneckAutoencoder(**arguments).fit(x, sample_weight=y.iloc[:, 0] ** 2),
    }


DOORS = [
    "fit", "fit_batch", "diagnose", "scree", "forensics", "leaky_diagnosis", "report", "regressor", "classifier",
    "autoencoder",
]  # fmt: skip


@pytest.mark.other_types
@pytest.mark.filterwarnings("ignore:leaky_diagnosis. the network is far:isthmus.errors.NumericalWarning")
@pytest.mark.parametrize("door", DOORS)
def test_rows_by_the_same_labels_in_another_order_are_said_where_position_counts(tmp_path: Path, door: str) -> None:
    take = doors(tmp_path)[door]
    x = pd.DataFrame(discoveries.inputs(40), columns=list(discoveries.INPUTS))
    y = pd.DataFrame(discoveries.discovery().predict(x), columns=list(discoveries.TARGETS), index=x.index)
    take(x, y)
    with pytest.warns(DataWarning, match=r"in another order; rows are taken as they stand.*\.loc\[x\.index\]"):
        take(x, y.iloc[::-1])
