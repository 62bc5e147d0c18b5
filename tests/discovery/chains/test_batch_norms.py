"""Batch norms are folded where that is the same function, whatever axis they normalise, and else left with a reason."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import isthmus
from foreign_modules import samples, seeded
from isthmus.discovery.chains import compression, not_slower
from isthmus.discovery.chains.batch_norms import without_batch_norms
from isthmus.discovery.chains.running_cost import TimedPasses
from isthmus.networks.chain import as_module, read_chain
from tolerances import rounding

DOUBLE = torch.float64


class Doubling(nn.BatchNorm1d):
    """Twice a batch norm, in a forward that cannot be traced."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - as torch calls it
        return 2 * super().forward(input) if float(input.sum()) < 1e9 else input


def tokens(count: int, features: int) -> Tensor:
    return samples(90, count, features, dtype=DOUBLE)


# module, samples, whether all of its norms can be folded, whether one is said to be left alone
CASES: dict[str, tuple[Callable[[], nn.Module], Tensor, bool, bool]] = {
    "tokens behind a layer": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(16, 4)),
        tokens(5, 8), False, True,
    ),
    "tokens before a layer": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(5), nn.Linear(16, 4)),
        tokens(5, 8), False, True,
    ),
    "as many tokens as features": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)),
        tokens(16, 8), False, True,
    ),
    "first of all": (lambda: nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 4)), tokens(8, 8), False, True),
    "last of all": (lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), tokens(8, 8), False, True),
    "pixels": (
        lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Linear(3, 2)),
        samples(60, 3, 5, 4, dtype=DOUBLE), False, True,
    ),
    "behind a convolution and before a layer of pixels": (
        lambda: nn.Sequential(nn.Conv1d(8, 6, 1), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 2)),
        tokens(8, 6), False, True,
    ),
    "behind a convolution": (
        lambda: nn.Sequential(nn.Conv1d(8, 6, 1), nn.BatchNorm1d(6), nn.Linear(6, 2)),
        tokens(8, 6), True, False,
    ),
    "flattened behind": (
        lambda: nn.Sequential(nn.Tanh(), nn.BatchNorm1d(5), nn.Flatten(), nn.Linear(40, 2)),
        tokens(5, 8), True, False,
    ),
    "flattened before, with a function behind": (
        lambda: nn.Sequential(
            nn.Conv1d(5, 6, 3), nn.ReLU(), nn.Flatten(), nn.BatchNorm1d(36), nn.ReLU(), nn.Linear(36, 2)
        ),
        tokens(5, 8), False, False,
    ),
    "rows": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)),
        samples(90, 8, dtype=DOUBLE), True, False,
    ),
    "a class of one's own": (
        lambda: nn.Sequential(nn.Linear(8, 16), Doubling(16), nn.ReLU(), nn.Linear(16, 4)),
        samples(90, 8, dtype=DOUBLE), False, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_folded_computes_the_same(case: str) -> None:
    make, x, is_folded, is_named = CASES[case]
    module = seeded(make).double()
    stages, names = without_batch_norms(read_chain(module, x))
    assert bool(names) == is_folded
    assert any(stage.reason for stage in stages) == is_named
    with torch.no_grad():
        assert torch.allclose(as_module(stages)(x), module(x), rtol=rounding(size=200), atol=rounding(size=200))


@pytest.mark.parametrize("case", CASES)
def test_such_networks_are_compressed_within_the_tolerance(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, x, is_folded, _ = CASES[case]
    for module in (not_slower, compression):  # no race is run: all take as long
        monkeypatch.setattr(module, "race", lambda *_: TimedPasses([1.0] * 9, [1.0] * 9))
    module = seeded(make).double()
    found = isthmus.compress(module, x, tolerance=0.5, allow_slower=True)
    with torch.no_grad():
        wanted, new = module(x), found.module(x)
    assert float((new - wanted).norm() / (wanted - wanted.mean(0)).norm()) <= 0.5
    assert is_folded == any("batch norm folded" in change.what for change in found.changes)


@pytest.mark.parametrize("case", ["tokens behind a layer", "pixels"])
def test_the_reason_is_told(case: str) -> None:
    make, x, *_ = CASES[case]
    found = isthmus.compress(seeded(make).double(), x, tolerance=1e-6, allow_slower=True)
    assert any(name == "1" and "tokens or pixels one by one" in why for name, why in found.refused)
    assert ("0", "its neurons are fixed by what follows ('1')") in found.refused
