"""Law: a size of the output, an upper bound or all that a sketch can show is never a rank: in Python, JSON or words.

Where no spectrum has a gap that stands out there is no integer, but why; the control is the same networks with a rank.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isthmus
from isthmus.diagnostics.rank_budgets import rank_budgets
from isthmus.reports import report, verdict_of
from isthmus.theory import RankEstimate

DOUBLE = torch.float64


def falling(rows: int, columns: int, ratio: float, rank: int | None) -> nn.Linear:
    """Singular values that fall by one ratio; with a rank, a thousandth of that behind it."""
    layer = nn.Linear(columns, rows, bias=False, dtype=DOUBLE)
    u, s, vh = torch.linalg.svd(layer.weight.detach(), full_matrices=False)
    values = ratio ** -torch.arange(len(s), dtype=DOUBLE)
    if rank is not None:
        values[:rank], values[rank:] = 1.0, 1e-3 * values[rank:]
    layer.weight.data.copy_((u * values) @ vh)
    return layer


class Tokens(nn.Module):
    """Of a language model: a table, one layer and logits for every token."""

    def __init__(self, rank: int | None) -> None:
        super().__init__()
        self.table, self.layer, self.head = (
            nn.Embedding(50, 40),
            falling(40, 40, 1.15, rank),
            falling(50, 40, 1.15, None),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits, (n, tokens, 50)."""
        return self.head(self.layer(self.table(tokens).double()))


def tokens(rows: int, each: int) -> Tensor:
    return torch.randint(0, 50, (rows, each), generator=torch.Generator().manual_seed(1))


def rows(width: int) -> Tensor:
    return torch.randn(300, width, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))


def chain(*widths: int, ratio: float) -> Callable[[int | None], nn.Module]:
    """Linear layers, the middle one with the rank."""

    def made(rank: int | None) -> nn.Module:
        first = falling(widths[1], widths[0], ratio, None)
        return nn.Sequential(first, nn.Tanh(), falling(widths[2], widths[1], ratio if rank is None else 1.0, rank))

    return made


def wider_than_its_output(rank: int | None) -> nn.Module:
    """20 directions stand out where 9 numbers come out; the control has fewer."""
    return nn.Sequential(falling(40, 40, 1.0, rank or 20), falling(9, 40, 1.4, None))


# (with a rank or without -> module), samples, whether derivatives are taken, what is said of the rank without
CASES: dict[str, tuple[Callable[[int | None], nn.Module], Tensor, bool, str]] = {
    "logits of every token": (Tokens, tokens(200, 6), False, "none"),
    "rows": (chain(40, 40, 40, ratio=1.15), rows(40), False, "none"),
    "an output narrower than the input": (chain(40, 40, 30, ratio=1.15), rows(40), False, "none"),
    "a gap beyond what can come out": (wider_than_its_output, rows(40), False, "none"),
    "a sketch that shows all it can": (chain(300, 300, 300, ratio=1.0), rows(300), True, "64 or more"),
    "a Jacobian without a gap": (chain(100, 100, 200, ratio=1.15), rows(100), True, "64 or more"),
}


def made(name: str, rank: int | None) -> tuple[nn.Module, Tensor, bool]:
    make, x, jacobians, _ = CASES[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make(rank).eval(), x, jacobians


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_number_is_no_rank(name: str, tmp_path: Path) -> None:
    module, x, jacobians = made(name, None)
    found = isthmus.diagnose(module, x, jacobians=jacobians)
    rank, headline = found.rank, verdict_of(found).headline
    assert rank.estimate is None
    assert rank.missing
    assert str(rank) == CASES[name][3]
    assert rank.is_at_least is (str(rank) != "none")
    asked = json.loads(json.dumps({k: found.to_dict()[k] for k in ("rank", "rank_missing", "interval", "headline")}))
    assert asked == {
        "rank": None, "rank_missing": rank.missing, "interval": [rank.lower, rank.upper], "headline": headline
    }  # fmt: skip
    assert rank_budgets(found)["rank"] is None
    assert not re.search(r"works through \d+ dimensions[^ ]*$|works through \d+ dimensions[.:]", headline), headline
    report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert not re.search(r"rank (None|nan|\d+) is marked", page)
    assert "lost at nan" not in page


@pytest.mark.dear(1)
@pytest.mark.parametrize("name", CASES)
def test_control_the_same_network_with_a_rank(name: str) -> None:
    module, x, jacobians = made(name, 4)
    found = isthmus.diagnose(module, x, jacobians=jacobians)
    planted = 4 * 6 if name == "logits of every token" else 4  # of a sample, whose six tokens have 4 each
    told = (found.rank.estimate, found.rank.missing, str(found.rank), found.rank.is_at_least)
    assert told == (planted, "", str(planted), False)
    assert found.to_dict()["rank_missing"] is None


def test_all_outputs_are_a_rank_where_a_jacobian_proves_them() -> None:
    """No gap, but as many values above rounding as outputs: the interval is one point."""
    module, x, _ = made("an output narrower than the input", None)
    rank = isthmus.diagnose(module, x).rank
    assert (rank.lower, rank.estimate, rank.upper) == (30, 30, 30)


def test_a_monitor_has_no_number_where_a_table_has_none() -> None:
    for name in ("rows", "an output narrower than the input"):
        for rank in (None, 4):
            module, x, _ = made(name, rank)
            monitor = isthmus.Monitor(module, x, num_samples=len(x))
            monitor.record(0)
            told = monitor.history["dimension_activation"].values[0]
            table = isthmus.diagnose(module, x, jacobians=False).layers["dimension_activation"].values
            assert np.array_equal(told, table, equal_nan=True)
            assert np.isnan(told[-1]) == (rank is None)


def test_an_estimate_and_its_absence_exclude_each_other() -> None:
    for estimate, missing in ((None, ""), (2, "no gap")):
        with pytest.raises(ValueError, match="either an estimate or why it is missing"):
            RankEstimate(estimate, 0, 3, "", "", 0.0, missing=missing)
