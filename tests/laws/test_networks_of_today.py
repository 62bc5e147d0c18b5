"""Networks and loaders as they come today: an answer that holds, or one line in words that says how far it came."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import isthmus
from isthmus.errors import IsthmusError
from laws.test_foreign_modules import X, narrow, state_of
from shape_checks import own_shape_checks


class Broken:
    """A data set that is gone behind two batches."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __iter__(self) -> Iterator[Tensor]:
        """20 rows each."""
        yield from X[:40].split(20)
        raise self.error


class Failing(TensorDataset):
    """No row can be had."""

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        """A row."""
        raise KeyError(index)

    def __len__(self) -> int:
        """So many."""
        return 8


def ends(last: object) -> Callable[[], object]:
    """Thirty rows, then something."""
    return lambda: iter([X[:30], last])


LOADERS: dict[str, tuple[Callable[[], object], str]] = {
    "raises": (lambda: Broken(RuntimeError("disk gone")), r"behind 2 batches \(40 rows\): RuntimeError: disk gone"),
    "raises at once": (lambda: DataLoader(Failing(), batch_size=4), r"behind 0 batches \(0 rows\): KeyError: "),
    "other widths": (ends(X[:, :9]), r"running Sequential on rows 31 to 60 failed: RuntimeError: mat1 and mat2"),
    "NaN": (ends(X * torch.nan), "600 entries of x are NaN"),
    "nothing": (ends(None), "got NoneType"),
    "an empty batch": (ends(X[:0]), "at least 1 rows"),
    "text by name": (lambda: iter([{"input": X, "name": ["a"] * 60}]), "got list as its entry 'name'. It holds text"),
    "text in a tuple": (lambda: iter([(X, ["a"] * 60)]), "got list as its entry 2. It holds text"),
}


@pytest.mark.parametrize("what", LOADERS)
def test_what_a_loader_does_midway_is_told_in_one_line(what: str) -> None:
    make, words = LOADERS[what]
    for whole in (lambda: iter(X.split(20)), make):
        net = narrow().train()
        before = state_of(net)
        with own_shape_checks():
            if whole is not make:  # the control
                assert isthmus.diagnose(net, iter(X.split(20))).rank.estimate == 3
            else:
                with pytest.raises((IsthmusError, TypeError), match=words) as caught:
                    isthmus.diagnose(net, whole())  # pyright: ignore[reportArgumentType]
                assert str(caught.value).count("\n") == 0
            assert [what for what, value in state_of(net).items() if before[what] != value] == []


def test_text_behind_the_input_of_a_list_has_no_part() -> None:
    """As a DataLoader collates (row, name): of a list the first entry counts."""
    assert isthmus.diagnose(narrow(), iter([[X[:30], ["a"] * 30], [X[30:], ["b"] * 30]])).rank.estimate == 3


def _tied() -> nn.Module:
    net = nn.Sequential(nn.Embedding(20, 12), nn.Linear(12, 3), nn.Linear(3, 12), nn.Linear(12, 20, bias=False))
    net[3].weight = net[0].weight
    return net


def _in_place() -> nn.Module:
    return nn.Sequential(narrow()[:4], nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(16, 4))


class Packed(nn.Module):
    """A GRU over sequences of two lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.last = nn.GRU(10, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3)."""
        lengths = torch.full((len(x),), x.shape[1]) - 2 * (torch.arange(len(x)) % 2)
        rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.last(self.steps(rows)[1][-1])


class Masked(nn.Module):
    """Tokens first, with a mask of the future and one of padding."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.last = nn.MultiheadAttention(10, 2), nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3)."""
        padding, tokens = torch.zeros(x.shape[:2], dtype=torch.bool), x.transpose(0, 1)
        padding[:, -1] = True
        future = torch.ones(len(tokens), len(tokens), dtype=torch.bool).triu(1)
        return self.last(self.mix(tokens, tokens, tokens, key_padding_mask=padding, attn_mask=future)[0].mean(0))


SEQUENCES = torch.randn(60, 5, 10, generator=torch.Generator().manual_seed(1))
TODAY: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "tied embeddings": (_tied, torch.randint(0, 20, (60, 5), generator=torch.Generator().manual_seed(1))),
    "bfloat16": (lambda: narrow().bfloat16(), X), "float16": (lambda: narrow().half(), X),
    "in place, with dropout": (_in_place, X),
    "packed sequences": (Packed, SEQUENCES), "masks, tokens first": (Masked, SEQUENCES),
}  # fmt: skip


@pytest.mark.slow  # what compress finds is timed beside the original for seconds
@pytest.mark.parametrize("what", TODAY)
def test_networks_of_today_are_read_in_any_way(what: str) -> None:
    make, x = TODAY[what]
    torch.manual_seed(0)
    net = make().train()
    monitor = isthmus.Monitor(net, x)
    monitor.record(0)
    with own_shape_checks():
        found = [isthmus.diagnose(net, x, jacobians=jacobians) for jacobians in (None, False)]
        small = isthmus.compress(net, x, tolerance=0.5)
    assert {one.layers.sizes["layer"] for one in found} == {monitor.history.sizes["layer"]}
    assert small.relative_error <= 0.5
    assert all(part.training for part in net.modules())
    assert {p.dtype for p in net.parameters()} == {p.dtype for p in make().parameters()}
