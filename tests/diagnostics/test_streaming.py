"""Forward passes over batches give the spectra that a diagnosis in memory gives, up to limits of rows and seconds."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import isthmus
from foreign_modules import samples
from isthmus.diagnostics.moments import SomeRows
from isthmus.errors import DataError, ShapeError
from isthmus.reports import report, verdict_of

DOUBLE = torch.float64
FROM_BOTH = (
    "weight_singular_values", "preactivation_singular_values", "activation_singular_values", "nonlinearity_impact",
    "dimension_participation", "rank_entropy", "identity_defect",
)  # fmt: skip


def network() -> nn.Sequential:
    """6-20-16-3 through a matrix of rank 4."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 16), nn.GELU(), nn.Linear(16, 3)).double()
    with torch.no_grad():
        u, s, vh = torch.linalg.svd(module.get_parameter("2.weight"), full_matrices=False)
        module.get_parameter("2.weight").copy_(u[:, :4] * s[:4] @ vh[:4])
    return module.eval()


def batches(x: Tensor, size: int = 7) -> Iterator[Tensor]:
    yield from x.split(size)


@pytest.mark.parametrize("how", ["memory", "iterator", "loader", "loader with targets", "tuples", "dicts"])
def test_batches_give_what_all_rows_at_once_give(how: str) -> None:
    module, x = network(), samples(100, 6, dtype=DOUBLE)
    whole = isthmus.diagnose(module, x)
    targets = TensorDataset(x, torch.zeros(100))
    given: dict[str, object] = {
        "memory": x, "iterator": batches(x), "loader": DataLoader(TensorDataset(x), batch_size=9),
        "loader with targets": DataLoader(targets, batch_size=33),
        "tuples": ((part,) for part in batches(x)), "dicts": ({"input": part} for part in batches(x)),
    }  # fmt: skip
    found = isthmus.diagnose(module, given[how], jacobians=False)  # pyright: ignore[reportArgumentType]
    for name in FROM_BOTH:
        assert np.allclose(found.layers[name], whole.layers[name], rtol=1e-6, atol=1e-7, equal_nan=True), name
    assert found.layers["rows"].values.tolist() == [100] * 3
    assert "jacobian_singular_values" not in found.layers
    assert found.rank.upper == whole.rank.upper == 3
    assert (found.rank.lower, found.rank.evidence) == (0, {"activation_gaps": whole.rank.evidence["activation_gaps"]})


@pytest.mark.parametrize("size", [1, 2, 9])
def test_batches_of_a_row_or_two_give_what_all_rows_give_and_are_cut_together(size: int) -> None:
    """Batches of one row were refused, and those of a few cut by the first alone."""
    module, x = network(), samples(100, 6, dtype=DOUBLE)
    module[4] = nn.Linear(16, 9, dtype=DOUBLE)
    whole = isthmus.diagnose(module, x, jacobians=False)
    found = isthmus.diagnose(module, DataLoader(TensorDataset(x), batch_size=size))
    for name in FROM_BOTH:
        assert np.allclose(found.layers[name], whole.layers[name], rtol=1e-6, atol=1e-7, equal_nan=True), name
    assert found.rank.estimate == whole.rank.estimate == 4
    assert found.cuts is not None
    assert found.cuts.attrs["judges"] == 32


def test_nothing_is_read_ahead_that_a_limit_may_leave_unread() -> None:
    read: list[int] = []

    def rows() -> Iterator[Tensor]:
        for i, row in enumerate(samples(100, 6, dtype=DOUBLE).split(1)):
            read.append(i)
            yield row

    isthmus.diagnose(network(), rows(), limits=isthmus.Limits(rows=10))
    assert len(read) <= 11
    read.clear()
    isthmus.diagnose(network(), rows(), limits=isthmus.Limits(seconds=1e-9))
    assert len(read) == 2


def test_rows_and_seconds_end_it_and_it_says_so() -> None:
    module, x = network(), samples(100, 6, dtype=DOUBLE)
    few = isthmus.diagnose(module, batches(x), limits=isthmus.Limits(rows=40))
    assert few.layers["rows"].values.tolist() == [40] * 3
    assert few.warnings == ("The data were read at the limit of 40 rows: 40 samples; no cut has judged the rank.",)
    exact = isthmus.diagnose(module, x[:40])
    both = (found.layers["activation_singular_values"] for found in (few, exact))
    assert np.allclose(*both, atol=1e-7, equal_nan=True)
    endless = (samples(5, 6, seed=i, dtype=DOUBLE) for i in range(10**9))
    said: list[str] = []
    timed = isthmus.diagnose(module, endless, limits=isthmus.Limits(seconds=0.2), progress=said.append)
    assert "at the limit of 0.2 seconds" in timed.warnings[0]
    assert "forward passes alone: no Jacobians" in said[0]


def test_rows_and_seconds_hold_where_derivatives_are_taken() -> None:
    """257 rows were read at a limit of 100 rows and no time at all, without a word."""
    module, x = network(), samples(257, 6, dtype=DOUBLE)
    y = module(x).detach()
    few = isthmus.diagnose(module, x, y, limits=isthmus.Limits(rows=100))
    whole = isthmus.diagnose(module, x[:100], y[:100])
    assert few.layers.drop_attrs().equals(whole.layers.drop_attrs())
    assert few.layers.attrs["data_loss"] == whole.layers.attrs["data_loss"]
    assert few.warnings == ("The data were read at the limit of 100 rows: 100 of 257 samples.", *whole.warnings)
    assert isthmus.diagnose(module, x, limits=isthmus.Limits(rows=257)).warnings == ()
    named = isthmus.diagnose(module, {"input": x}, limits=isthmus.Limits(rows=100), jacobians=True)
    assert named.layers["rows"].values.tolist() == [100] * 3
    with pytest.raises(DataError, match="at least 2 rows"):
        isthmus.diagnose(module, x, limits=isthmus.Limits(rows=1))

    timed = isthmus.diagnose(module, x, limits=isthmus.Limits(seconds=1e-9))
    assert timed.warnings[0] == "No Jacobians: a limit of seconds ends forward passes alone."
    assert "at the limit of 1e-09 seconds" in timed.warnings[1]
    with pytest.raises(ValueError, match="seconds ends forward passes alone. Leave out one"):
        isthmus.diagnose(module, x, jacobians=True, limits=isthmus.Limits(seconds=5.0))


class Tokens(nn.Module):
    """Attention over embedded tokens, as wide as asked for."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(50, width), nn.Linear(width, 50)
        self.layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.layer(self.table(words)))


@pytest.mark.slow
def test_dear_jacobians_are_left_out_and_it_is_said() -> None:
    words = torch.randint(0, 50, (40, 24), generator=torch.Generator().manual_seed(0))
    said: list[str] = []
    found = isthmus.diagnose(Tokens(96), words, progress=said.append)
    assert "more than ten passes" in said[0]
    assert found.warnings[0] == "No Jacobians: derivatives would cost more than ten passes over the data."
    assert found.layers["rows"].values.tolist() == [960] * found.layers.sizes["layer"]
    little = isthmus.diagnose(Tokens(96), words, limits=isthmus.Limits(memory=30 * 2**20))
    assert little.warnings[0].startswith("No Jacobians")
    assert "jacobian_singular_values" in isthmus.diagnose(Tokens(16), words[:4]).layers


@pytest.mark.slow
def test_it_has_a_page_and_a_verdict(tmp_path: Path) -> None:
    found = isthmus.diagnose(network(), batches(samples(100, 6, dtype=DOUBLE)))
    report(found, tmp_path / "page.html")
    text = verdict_of(found)
    assert "Jacobian" not in {line.label for line in text.lines}
    interval = next(line.text for line in text.lines if line.label == "Interval")
    assert interval == "At most 3: number of outputs; no Jacobian was taken, so nothing is known from below."
    assert "forward passes alone" in (tmp_path / "page.html").read_text()


def test_what_cannot_be_streamed_is_refused() -> None:
    module, x = network(), samples(20, 6, dtype=DOUBLE)
    with pytest.raises(ValueError, match="need data in memory"):
        isthmus.diagnose(module, batches(x), jacobians=True)
    with pytest.raises(DataError, match="gave no batch"):
        isthmus.diagnose(module, iter(()))
    with pytest.raises(DataError, match="at least 2 rows of finite numbers, got one"):
        isthmus.diagnose(module, batches(x[:1]))
    with pytest.raises(ShapeError, match="batches of one kind of row"):
        isthmus.diagnose(module, iter([x[:1], x[:1, :4]]))
    bad = x.clone()
    bad[15] = torch.nan
    with pytest.raises(DataError, match="finite"):
        isthmus.diagnose(module, batches(bad))
    with pytest.raises(DataError, match="needs at least .* of working memory without derivatives"):
        isthmus.diagnose(module, batches(x), limits=isthmus.Limits(memory=1000))


@pytest.mark.parametrize("size", [1, 3, 50])
def test_of_rows_whose_number_nobody_knows_some_stay_that_are_spread_evenly(size: int) -> None:
    rows = SomeRows(None, 16)
    for part in torch.arange(1000.0)[:, None].split(size):
        rows.add(part)
    state = vars(rows)  # the factor is centred
    kept = state["_rows"][: state["_count"], 0]
    assert 16 <= len(kept) <= 32
    assert len(set((kept[1:] - kept[:-1]).tolist())) == 1
    assert float(kept[0]) == 0.0
    assert float(kept[-1]) > 960
