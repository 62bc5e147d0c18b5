"""A unit of work is known by its key: no two computations of one discovery may share one, remedies or not."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

import isthmus
from isthmus import Limits
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.remedies import remedy, training
from isthmus.discovery.remedies.anew import SmallerRidges
from isthmus.discovery.remedies.remedy import Case
from isthmus.discovery.remedies.training import Descent, LongerTraining, MoreStarts
from isthmus.discovery.work.runner import UnitRunner
from isthmus.discovery.work.unit import Unit

TRAINS = (Descent, LongerTraining, MoreStarts, SmallerRidges)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_a_key_stands_for_one_computation_whatever_is_done_about_doubts(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, tuple[object, bytes]] = {}
    shared: list[str] = []
    run = UnitRunner._results  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - those trained ahead too

    def recorded(self: UnitRunner, units: Sequence[Unit]) -> list[Minimum]:
        for unit in units:
            compute = unit.compute
            assert isinstance(compute, partial)
            base = compute.keywords.get("base")
            what = (compute.func.__name__, base.theta.numpy().tobytes() if base is not None else b"")
            if asked.setdefault(unit.key, what) != what:
                shared.append(unit.key)
        return run(self, units)

    monkeypatch.setattr(UnitRunner, "_results", recorded)
    # whatever start is drawn and however sure its answer: all that trains more is done, as often as it may be
    monkeypatch.setattr(training, "is_of_training", lambda _search: True)
    monkeypatch.setattr(SmallerRidges, "answers", lambda *_: True)
    monkeypatch.setattr(remedy, "PASSES_THOROUGH", 400.0)  # 40 sufficed from 24 of 25 starts
    for name in ("settled", "idle"):
        monkeypatch.setattr(Case, name, property(lambda _case: False))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 5))
    y = np.tanh(x @ rng.normal(size=(5, 3))) @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(120, 4))
    found = isthmus.discover(
        x, y, ridge=(1e-2, 3e-3, 1e-3), starts=1, limits=Limits(evaluations=12), workers=workers, effort="thorough"
    )
    done = Counter(str(one["name"]) for one in found.remedies)
    assert {kind.name: done[kind.name] for kind in TRAINS} == {kind.name: kind.most for kind in TRAINS}
    assert not shared
