"""Networks trained against the original are smaller at the same tolerance, which still holds on fresh rows."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

import isthmus
from foreign_modules import Residual, samples, seeded
from isthmus.discovery.chains.compression_search import Change, CompressionSearch
from isthmus.discovery.chains.polishing import DISTILLED, distilled, polished_attempts
from isthmus.networks.chain import read_chain, run
from isthmus.networks.stage_kinds import Stage

DOUBLE = torch.float64


def deep() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 2))


def error(stages: Sequence[Stage], x: Tensor, target: Tensor) -> float:
    with torch.no_grad():
        return float((run(stages, x) - target).norm() / (target - target.mean(0)).norm())


def test_training_moves_the_numbers_towards_the_target_and_leaves_the_steps() -> None:
    module, other = seeded(Residual).double(), seeded(Residual, 1).double()
    x = samples(200, 5, dtype=DOUBLE)
    stages, target = read_chain(module, x), other(x).detach()
    before = [p.clone() for stage in stages for p in stage.module.parameters()]
    new = distilled(stages, x, target)
    assert error(new, x, target) < error(stages, x, target) / 3
    assert [(s.name, s.reason, type(s.module)) for s in new] == [(s.name, s.reason, type(s.module)) for s in stages]
    assert all(
        torch.equal(p, b) for p, b in zip((p for s in stages for p in s.module.parameters()), before, strict=True)
    )
    assert not any(p.requires_grad for s in new for p in s.module.parameters())
    assert distilled(stages, x, module(x).detach())[0].module is stages[0].module  # nothing to better


class Written(nn.Module):
    """Its forward writes the type of its numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.to(torch.float16))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, DOUBLE])
def test_numbers_of_every_type_are_trained_and_stay_of_it(dtype: torch.dtype) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))

    module, other, x = seeded(make).to(dtype), seeded(make, 1).to(dtype), samples(200, 5).to(dtype)
    stages, target = read_chain(module, x), other(x).detach()
    new = distilled(stages, x, target)
    assert error(new, x, target) < error(stages, x, target) / 3
    for stage, old in zip(new, stages, strict=True):
        held = [[t.dtype for t in (*s.module.parameters(), *s.module.buffers())] for s in (stage, old)]
        assert held[0] == held[1]
        assert [t.dtype for t in stage.module.parameters()] == [dtype] * len([*stage.module.parameters()])


def test_what_takes_short_numbers_alone_is_left_as_it_is() -> None:
    stages, x = [Stage("", Written().half())], samples(50, 4).half()
    assert distilled(stages, x, samples(50, 3).half())[0].module is stages[0].module


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_networks_of_short_numbers_are_polished(dtype: torch.dtype) -> None:
    module = seeded(deep).to(dtype)
    found = isthmus.compress(module, samples(300, 6), tolerance=0.3, allow_slower=True, polish="distil")
    assert {p.dtype for p in found.module.parameters()} == {dtype}
    assert found.relative_error <= found.error_bound <= 0.3


@pytest.mark.slow
def test_a_compression_that_trains_is_smaller_and_keeps_its_tolerance() -> None:
    module = seeded(deep).double()
    x, fresh = samples(600, 6, dtype=DOUBLE), samples(4000, 6, seed=9, dtype=DOUBLE)
    plain = isthmus.compress(module, x, tolerance=0.03, allow_slower=True)
    found = isthmus.compress(module, x, tolerance=0.03, allow_slower=True, polish="distil")
    assert found.parameters_after < 0.9 * plain.parameters_after
    assert found.changes[-1].what == DISTILLED
    assert found.parameters_before - found.parameters_after == sum(c.parameters for c in found.changes)
    with torch.no_grad():
        wanted = module(fresh)
        off = float((found.module(fresh) - wanted).norm() / (wanted - wanted.mean(0)).norm())
    assert off <= found.error_bound <= 0.03


def test_where_training_helps_nowhere_all_moves_stay_as_they_are() -> None:
    module, x = seeded(Residual).double(), samples(200, 5, dtype=DOUBLE)
    search = CompressionSearch(read_chain(module, x), x, lambda _: 1.0, 0.1)
    search.changes, search.history = [Change("a", ("b", "c"), 1, 0.09)], [search.stages, search.stages]
    assert [one.changes for one in polished_attempts(search, module(x).detach())] == [tuple(search.changes)]


@pytest.mark.slow
def test_convolutions_are_trained_too() -> None:
    """Their rewritten weights were views, at which L-BFGS cannot look as one row."""

    def images(layout: torch.memory_format) -> nn.Module:
        layers = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(128, 3)).to(memory_format=layout)  # pyright: ignore[reportCallIssue]

    def series() -> nn.Module:
        return nn.Sequential(nn.Conv1d(4, 12, 3, padding=1), nn.ReLU(), nn.Conv1d(12, 12, 3), nn.ReLU(), nn.Flatten(),
                             nn.Linear(168, 3))  # fmt: skip

    for make, x in (
        (series, samples(100, 4, 16)),
        (lambda: images(torch.contiguous_format), samples(60, 3, 6, 6)),
        (lambda: images(torch.channels_last), samples(60, 3, 6, 6)),
    ):
        found = isthmus.compress(seeded(make).eval(), x, tolerance=0.5, polish="distil", allow_slower=True)
        assert found.parameters_after < found.parameters_before
        assert found.relative_error <= found.error_bound <= 0.5
