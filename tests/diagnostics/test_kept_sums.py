"""A diagnosis by forward passes that was ended goes on from its checkpoint, to the bits of one that was not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import xarray as xr
from torch import Tensor, nn

from foreign_modules import samples
from isthmus import Diagnosis, Limits, diagnose
from isthmus.diagnostics import kept_sums
from isthmus.errors import CheckpointError, DataError

Batch = Tensor | dict[str, Tensor]
NUM, ROWS = 20, 12  # batches, of so many rows: more than are read ahead


class Overwriting(nn.Module):
    """Works in place on its input, beside a residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Of (n, 6)."""
        x.mul_(0.5)
        return self.second(x + torch.relu(self.first(x)))


class Masked(nn.Module):
    """Attention over tokens some of which are padding."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor, key_padding_mask: Tensor) -> Tensor:
        """Of (n, tokens, 8)."""
        return self.layer(x, src_key_padding_mask=key_padding_mask)


def rows(*shape: int) -> list[Batch]:
    return [samples(ROWS, *shape, seed=seed) for seed in range(NUM)]


def masked_rows() -> list[Batch]:
    padding = torch.zeros(ROWS, 5, dtype=torch.bool)
    padding[::2, 3:] = True
    return [{"x": samples(ROWS, 5, 8, seed=seed), "key_padding_mask": padding} for seed in range(NUM)]


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[], list[Batch]]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 2)), lambda: rows(6)),
    "in place": (Overwriting, lambda: rows(6)),
    "convolution": (lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 2, 1)), lambda: rows(2, 5, 5)),
    "wide": (lambda: nn.Sequential(nn.Linear(6, 2100), nn.ReLU(), nn.Linear(2100, 2)), lambda: rows(6)),
    "recurrent": (lambda: nn.LSTM(4, 3, batch_first=True), lambda: rows(5, 4)),
    "padding": (Masked, masked_rows),
}


@pytest.fixture(autouse=True)
def _written_after_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(kept_sums, "SECONDS", 0.0)
    monkeypatch.setattr(kept_sums, "SHARE", 0)


def made(kind: str) -> tuple[nn.Module, list[Batch]]:
    """The same module and batches each time."""
    module, data = KINDS[kind]
    torch.manual_seed(3)
    return module().eval(), data()


def broken(batches: list[Batch]) -> Iterator[Batch]:
    yield from batches
    raise OSError("the disk went away")


def table(found: Diagnosis) -> xr.Dataset:
    return found.layers.drop_attrs()


def rows_in(path: Path) -> int:
    return torch.load(path, weights_only=True)["num"]


@pytest.mark.dear(1)
@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_where_a_loader_broke(kind: str, tmp_path: Path) -> None:
    whole = diagnose(made(kind)[0], iter(made(kind)[1]))
    path = tmp_path / "sums.pt"
    with pytest.raises(DataError, match="the disk went away"):
        diagnose(made(kind)[0], broken(made(kind)[1][:17]), checkpoint=path)
    assert rows_in(path) == 17 * ROWS
    again = diagnose(made(kind)[0], iter(made(kind)[1]), checkpoint=path)
    assert rows_in(path) == NUM * ROWS
    # the control: what comes after alone is another answer
    rest = diagnose(made(kind)[0], iter(made(kind)[1][17:]))
    once_more = diagnose(made(kind)[0], iter(made(kind)[1]), checkpoint=path)
    for found in (again, once_more):
        xr.testing.assert_identical(table(found), table(whole))
        assert found.rank == whole.rank
    with pytest.raises(AssertionError):
        xr.testing.assert_identical(table(rest), table(whole))


@pytest.mark.parametrize("rows", [2 * ROWS, 31])
def test_a_limit_ends_it_and_a_larger_one_goes_on(rows: int, tmp_path: Path) -> None:
    module, path, batches = made("mlp")[0], tmp_path / "sums.pt", made("mlp")[1]
    few = diagnose(module, iter(batches), limits=Limits(rows=rows), checkpoint=path)
    assert few.layers.attrs["samples"] == rows_in(path) == rows
    heard: list[str] = []
    more = diagnose(module, iter(batches), limits=Limits(rows=100), checkpoint=path, progress=heard.append)
    assert f"diagnose: goes on behind {rows} rows, which {path} holds." in heard
    at_once = diagnose(module, iter(batches), limits=Limits(rows=100))
    xr.testing.assert_allclose(
        table(more), table(at_once), rtol=1e-6, atol=1e-6
    )  # in float32, other batches round otherwise
    with pytest.raises(CheckpointError, match="holds 100 rows"):
        diagnose(module, iter(batches), limits=Limits(rows=50), checkpoint=path)


@pytest.mark.slow
def test_a_limit_of_seconds_ends_it_and_it_goes_on(tmp_path: Path) -> None:
    module, batches = made("mlp")
    whole = diagnose(module, iter(batches))
    found = whole
    for _ in range(NUM):
        found = diagnose(module, iter(batches), limits=Limits(seconds=1e-9), checkpoint=tmp_path / "sums.pt")
        assert any("at the limit of 1e-09 seconds" in text for text in found.warnings)
    xr.testing.assert_identical(table(found), table(whole))


def test_data_in_memory_go_on_too(tmp_path: Path) -> None:
    module, batches = made("mlp")
    x = torch.cat([batch for batch in batches if isinstance(batch, Tensor)])
    whole = diagnose(module, x, jacobians=False)
    diagnose(module, x, jacobians=False, limits=Limits(rows=50), checkpoint=tmp_path / "sums.pt")
    again = diagnose(module, x, jacobians=False, checkpoint=tmp_path / "sums.pt")
    xr.testing.assert_allclose(
        table(again), table(whole), rtol=1e-6, atol=1e-6
    )  # in float32, other batches round otherwise
    with pytest.raises(ValueError, match="Pass jacobians=False"):
        diagnose(module, x, checkpoint=tmp_path / "sums.pt")


def test_what_is_not_its_own_is_refused(tmp_path: Path) -> None:
    module, path, batches = made("mlp")[0], tmp_path / "sums.pt", made("mlp")[1]
    diagnose(module, iter(batches), limits=Limits(rows=60), checkpoint=path)
    with pytest.raises(CheckpointError, match="its 60 rows are not the first of these data"):
        diagnose(module, iter(batches[::-1]), checkpoint=path)
    with pytest.raises(CheckpointError, match="holds 60 rows, and the data have 48"):
        diagnose(module, iter(batches[:4]), checkpoint=path)
    other = KINDS["mlp"][0]()
    with pytest.raises(CheckpointError, match="belongs to another diagnosis"):
        diagnose(other, iter(batches), checkpoint=path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="cannot be read"):
        diagnose(module, iter(batches), checkpoint=path)
    assert path.read_bytes() == content
    for foreign in (torch.ones(3), module.state_dict()):
        torch.save(foreign, path)
        with pytest.raises(CheckpointError, match="holds no saved work of isthmus; give another file"):
            diagnose(module, iter(batches), checkpoint=path)
        assert path.exists()
