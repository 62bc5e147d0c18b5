"""Names that look the same on a screen are the same column, aloud; what looks different is not."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discoveries
from isthmus.cli.data_of_run import rows_like
from isthmus.errors import DataError, DataWarning
from isthmus.tasks import names, read_table
from isthmus.tasks.input_columns import InputColumn
from isthmus.tasks.names import found_names, look_alikes, looks
from isthmus.tasks.table_options import TableOptions

SIGN, GREEK = "conc \u00b5M", "conc \u03bcM"
PAIRS = [(SIGN, GREEK), ("T \u00c5", "T A\u030a"), ("\u2126", "\u03a9"), ("a b", "a\u00a0b")]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_names_that_look_the_same_are_found(one: str, other: str) -> None:
    assert look_alikes([one, "x"], [other, "x"]) == {other: one}
    assert look_alikes([one], [one, other]) == {}  # there is one of that name
    assert look_alikes([one, other], [other]) == {}
    assert found_names([one], [other, "x"]) == (other,)
    assert found_names(["conc uM"], [one]) == ("conc uM",)


def test_what_looks_different_or_like_several_is_left() -> None:
    for one, other in (("m\u00b2", "m2"), ("a", "A"), ("K", "k"), ("x1", "x\u2081"), ("O", "0")):
        assert look_alikes([one], [other]) == {}
    assert look_alikes(["a b"], ["a\u00a0b", "a\u2007b"]) == {}


class Walked(list[str]):
    """How often it is gone through."""

    times = 0

    def __iter__(self) -> Iterator[str]:
        self.times += 1
        return super().__iter__()


def test_columns_are_gone_through_as_often_whatever_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each of 30,000 names took 37 s; and each was spelt out though all were there, of a picture six times."""
    times: list[int] = []
    for count in (2, 200):
        columns = Walked(f"b{i}" for i in range(count))
        assert look_alikes([f"a{i}" for i in range(count)], columns) == {}
        times.append(columns.times)
    assert times[0] == times[1] > 0
    monkeypatch.setattr(names, "looks", lambda _name: pytest.fail("it was asked what a name looks like"))
    assert look_alikes(["b1", "b0"], columns) == {}


def test_plain_names_look_like_what_they_are() -> None:
    plain = [chr(i) for i in range(128) if not chr(i).isspace()]
    assert [looks(c) for c in plain] == plain
    assert [unicodedata.normalize("NFKC", c) for c in plain] == plain
    assert {unicodedata.decomposition(c) for c in plain} == {""}
    assert looks(" a\t b\n") == looks("\u00a0a\u2007b") == "a b"


def test_new_rows_are_taken_whichever_sign_their_columns_have(tmp_path: Path) -> None:
    """The line had said that the table lacks the column that one saw in it."""
    found = discoveries.replace(discoveries.discovery(), input_names=(SIGN, "b", "c", "d", "e"))
    x = discoveries.inputs()
    table = pd.DataFrame(x, columns=[GREEK, "b", "c", "d", "e"])
    with pytest.warns(DataWarning, match=f"x: column '{GREEK}' is taken for what looks the same .*, column '{SIGN}'"):
        np.testing.assert_array_equal(found.transform(table[["e", GREEK, "c", "b", "d"]]), found.transform(x))
    table.to_csv(tmp_path / "d.csv", index=False)
    columns = [InputColumn(name) for name in found.input_names]
    with pytest.warns(DataWarning, match="is taken for what looks the same in the run"):
        np.testing.assert_array_equal(rows_like(str(tmp_path / "d.csv"), found.input_names, columns), x)
    with pytest.raises(DataError, match="lacks column"):
        found.transform(table.rename(columns={GREEK: "conc uM"}))
    task = read_table(tmp_path / "d.csv", target=SIGN, options=TableOptions(leave_out=("e",)))
    assert task.y_names == (GREEK,)
