"""Rows spread evenly over data: the first and the last among them, however many there are."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import isthmus
from isthmus.discovery.halves import RANK
from isthmus.theory.spread_rows import AS_BEFORE, median_over_rows, spread_rows
from syntax_trees import parsed

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


@pytest.mark.parametrize("count", [1, 2, 3, 4, 63, 64])
def test_the_median_of_an_even_number_of_rows_lies_between_the_two_in_the_middle(count: int) -> None:
    rows = torch.randn(count, 3, 2, generator=torch.Generator().manual_seed(count), dtype=torch.float64)
    np.testing.assert_allclose(median_over_rows(rows).numpy(), np.median(rows.numpy(), 0), rtol=1e-15)
    assert torch.isnan(median_over_rows(torch.tensor([1.0, torch.nan, 2.0])))


@pytest.mark.parametrize("read", ["discovery", "diagnosis", "table"])
def test_spectra_at_an_even_number_of_points_are_read_at_their_median(read: str) -> None:
    """`torch.median` is the lower of the two in the middle: one direction of two points had been none."""
    slopes = torch.tensor([[[4.0, 0.0], [0.0, 0.0]], [[4.0, 0.0], [0.0, 4.0]]], dtype=torch.float64)
    if read == "discovery":
        assert RANK.spectrum(slopes).tolist() == [4.0, 2.0]
        return
    x = torch.tensor([[1.0, -1.0], [3.0, 1.0], [3.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    x = x if read == "diagnosis" else x[:2]
    eye = torch.eye(2, dtype=torch.float64)
    found = isthmus.diagnose(isthmus.FullyConnected.from_layers([2 * eye, 2 * eye]), x)
    if read == "table":
        assert found.layers["jacobian_singular_values"].values[0] == pytest.approx([4.0, 2.0])
    else:
        assert found.rank.evidence["jacobian_gap"] == 2


# files whose medians are those of xarray and pandas, which lie in the middle, as numpy's and the standard library's do
OF_TABLES = {
    "plots/sweeps.py", "discovery/depth/effective_depth.py", "figures/boundedness.py", "figures/rank_recovery.py",
    "figures/leaky_depth.py",
}  # fmt: skip


def medians(source: str) -> list[str]:
    """Calls of a method or function `median` that may be torch's."""
    return [
        f"line {node.lineno}"
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"median", "nanmedian"}
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id in {"np", "statistics"})
    ]


def test_no_median_of_torch_is_taken_elsewhere() -> None:
    assert medians("s.median(0).values") == medians("torch.median(s)") == ["line 1"]
    assert medians("np.median(s)") == []
    found = {path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py") if medians(path.read_text())}
    assert found == OF_TABLES | {"theory/spread_rows.py"}
