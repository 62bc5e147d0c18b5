"""Rows spread evenly over data: the first and the last among them, however many there are."""

import re
from pathlib import Path

import pytest
import torch

import isthmus
from isthmus.theory.spread_rows import AS_BEFORE, spread_rows

SRC = Path(isthmus.__file__).parent
IN_FLOAT32 = re.compile(r"torch\.linspace\((?![^\n]*float64)[^\n]*\.long\(\)")


@pytest.mark.parametrize("count", [1, 2, 57, 64, 65, 1000, 999_999, 10**6, 16_777_217, 20_000_000, 2**40])
@pytest.mark.parametrize("most", [1, 2, 20, 64, 256])
def test_they_ascend_from_the_first_row_to_the_last(count: int, most: int) -> None:
    rows = spread_rows(count, most)
    chosen = min(count, most)
    assert rows.dtype == torch.int64
    assert len(rows) == chosen
    assert int(rows[0]) == 0
    assert chosen == 1 or int(rows[-1]) == count - 1
    gaps = rows.diff()
    even = (count - 1) / max(chosen - 1, 1)
    assert bool((gaps > 0).all())
    assert bool(((gaps - even).abs() <= 1 + even / 2**20).all())


def test_few_rows_are_those_that_were_always_chosen() -> None:
    """What is read off a network at some of its rows must not move by one of them."""
    counts = [*range(1, 400, 7), 2000, 57_123, 404_258, 885_740, AS_BEFORE - 1]
    for count in counts:
        for most in (1, 20, 50, 64, 256, 1000):
            chosen = min(most, count)
            before = torch.linspace(0, count - 1, chosen, dtype=torch.float32).long()
            assert torch.equal(spread_rows(count, most), before), (count, most)


def test_the_form_that_float32_rounds_goes_beyond_the_last_row() -> None:
    count = 20_000_000  # the control: an index that is out of range
    assert int(torch.linspace(0, count - 1, 64, dtype=torch.float32).long()[-1]) == count


def test_no_other_file_chooses_rows_in_float32() -> None:
    assert IN_FLOAT32.search("x[torch.linspace(0, len(x) - 1, min(20, len(x))).long()]")
    found = [
        path.relative_to(SRC).as_posix()
        for path in sorted(SRC.rglob("*.py"))
        if IN_FLOAT32.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["theory/spread_rows.py"]
