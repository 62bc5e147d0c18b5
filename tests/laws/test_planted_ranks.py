"""Law: a rank that a diagnosis tells is the planted one, and it tells none where none is: with Jacobians and without.

A number of channels, of what a token shows or of what spectra alone suggest is no rank of samples: each was one once.
"""

import json
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import isthmus
from isthmus.diagnostics.judged_rank import judged
from isthmus.diagnostics.rank_budgets import rank_budgets
from isthmus.discovery.factors import LITTLE_LOST
from isthmus.theory import RankEstimate


def chain(*widths: int, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    parts = [part for a, b in zip(widths, widths[1:], strict=False) for part in (nn.Linear(a, b), act())]
    return nn.Sequential(*parts[:-1])


class Residual(nn.Module):
    """A residual block before a waist."""

    def __init__(self, waist: int) -> None:
        super().__init__()
        self.enter, self.block = nn.Linear(12, 30), chain(30, 30, 30)
        self.waist, self.leave = nn.Linear(30, waist), chain(waist, 30, 10)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 10)."""
        h = self.enter(x)
        return self.leave(torch.tanh(self.waist(h + self.block(h))))


class Kept(nn.Module):
    """Five of thirty neurons go on."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(12, 30), chain(30, 30, 20)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 20)."""
        h = torch.relu(self.enter(x))
        return self.leave(torch.cat([h[:, :5], torch.zeros_like(h[:, 5:])], 1))


class Times(nn.Module):
    """A recurrence over times that come first inside, with numbers for every time."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.head = nn.LSTM(4, 16), nn.Linear(16, 12)

    def forward(self, x: Tensor) -> Tensor:
        """(n, times, 12)."""
        return self.head(self.steps(x.transpose(0, 1))[0].transpose(0, 1))


class Words(nn.Module):
    """Attention over tokens, and numbers for every token through so many."""

    def __init__(self, waist: int) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(50, 16), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.waist, self.head = nn.Linear(16, waist), nn.Linear(waist, 50)

    def forward(self, words: Tensor) -> Tensor:
        """(n, tokens, 50)."""
        return self.head(self.waist(self.layer(self.table(words))))


def images(*between: nn.Module) -> nn.Sequential:
    ends = nn.Conv2d(2, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU()
    return nn.Sequential(*ends, *between)


def autoencoder() -> nn.Module:
    waist = nn.Flatten(), nn.Linear(128, 5), nn.Linear(5, 64), nn.Unflatten(1, (4, 4, 4))
    return images(*waist, nn.ConvTranspose2d(4, 2, 2, 2))


GENERATOR = torch.Generator().manual_seed(3)
X, PICTURES = torch.randn(400, 12, generator=GENERATOR), torch.randn(200, 2, 8, 8, generator=GENERATOR)
SERIES, WORDS = torch.randn(200, 6, 4, generator=GENERATOR), torch.randint(0, 50, (200, 6), generator=GENERATOR)
CASES: dict[str, tuple[Callable[[], nn.Module], Tensor, int | None]] = {
    "a waist": (lambda: chain(12, 40, 3, 40, 12), X, 3),
    "a waist behind a residual block": (lambda: Residual(4), X, 4),
    "some neurons alone": (Kept, X, 5),
    "a waist between convolutions": (autoencoder, PICTURES, 5),
    "a waist of every token": (lambda: Words(3), WORDS, 18),
    "none, of neurons": (lambda: chain(12, 40, 40, 12, act=nn.Tanh), X, None),
    "none, of normalised tokens": (lambda: Words(16), WORDS, None),
    "none, of convolutions": (lambda: images(nn.Conv2d(8, 6, 3, padding=1)), PICTURES, None),
    "none, of a classifier of pictures": (lambda: images(nn.Flatten(), chain(128, 64, 10)), PICTURES, None),
    "none, of a recurrence": (Times, SERIES, None),
}


@pytest.mark.dear(1)
@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_rank_is_the_planted_one_or_none(name: str, jacobians: bool) -> None:
    make, x, planted = CASES[name]
    for seed in range(2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            found = isthmus.diagnose(make().eval(), x, jacobians=jacobians)
        rank = found.rank
        if planted is None and jacobians and rank.lower == rank.upper:  # all that go in or come out, which is proved
            assert rank.upper_reason in ("number of inputs", "number of outputs")
            continue
        assert rank.estimate == planted
        told = json.loads(json.dumps(found.to_dict()))
        assert told["rank"] == planted == rank_budgets(found)["rank"]
        assert ("to work through" in told["headline"]) is (planted is not None and rank.lower < rank.upper)


# what can be cut at a layer that is not the output
CUT = [
    name
    for name in CASES
    if name not in ("a waist of every token", "none, of normalised tokens", "none, of a recurrence")
]


@pytest.mark.parametrize("name", CUT)
def test_a_cut_takes_the_rank_that_is_read_or_the_fewest_coordinates_that_lose_little(name: str) -> None:
    """A gap of one spectrum was taken: 1 where a diagnosis reads 3, and half of the output lost."""
    make, x, planted = CASES[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = make().eval()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        halves = isthmus.factorise(module, x)
    assert planted is None or halves.rank == planted == isthmus.diagnose(module, x).rank.estimate
    if planted is None:
        assert halves.relative_error <= LITTLE_LOST < cut(module, x, halves.rank - 1)
    passing = halves.encoder(x[:1]).numel()
    told = [str(warning.message) for warning in caught if "no narrowing" in str(warning.message)]
    ending = f"{passing} numbers pass for each sample, and {x[0].numel()} go in: that is no narrowing."
    assert [ending in message for message in told] == [True] * (passing >= x[0].numel())


def cut(module: nn.Module, x: Tensor, rank: int) -> float:
    """What the best cut loses, where nobody is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return isthmus.factorise(module, x, rank).relative_error


def test_without_a_cut_there_is_no_rank_but_why() -> None:
    module = autoencoder().eval()
    few = isthmus.diagnose(module, PICTURES, jacobians=False, limits=isthmus.Limits(rows=150))
    assert few.rank.missing == "no cut has judged one: the data were read at the limit of 150 rows"
    assert str(few.to_dict()["headline"]).startswith("No number of dimensions stands out: no cut has judged one: ")
    six = isthmus.diagnose(module, PICTURES[:6], jacobians=False)
    assert (six.rank.estimate, six.rank.missing) == (None, "no cut has judged one: that takes 8 rows at least")
    through = isthmus.diagnose(nn.Sequential(Beside()), X, jacobians=False)
    assert through.rank.missing == "no cut has judged one, since no layer lets everything pass"


class Beside(nn.Module):
    """A branch of rank 2 beside a stream that carries everything."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = chain(12, 2, 12)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 12)."""
        return x + self.branch(x)


def test_what_is_proved_needs_no_cut() -> None:
    proved = RankEstimate(3, 3, 3, "a witness", "a matrix", 1e-9)
    assert judged(proved, None, hindrance="", narrower_than=12) is proved
    assert judged(RankEstimate(3, 2, 3, "", "", 1e-9), None, hindrance="", narrower_than=12).estimate is None
