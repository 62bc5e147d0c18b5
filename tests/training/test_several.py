"""Several starts side by side: a dominated one is given up, a late winner is not, and threads change no bit."""

import itertools
from typing import Any

import pytest
import torch

from isthmus import FullyConnected, Limits, Outcome, fit
from isthmus.errors import ShapeError
from isthmus.training.culling import Culling
from isthmus.training.moves import rebalancing
from isthmus.training.several import Starts, fit_several
from isthmus.training.solvers.solver import LBFGS, Adam

RULE = Culling(every=20, first=60, margin=0.05)
SCHEDULE = (Adam(100, moves=(rebalancing,), move_every=10), LBFGS(100, plateau=0.0))


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    return x, torch.relu(x @ torch.randn(5, 3, generator=generator, dtype=torch.float64))


def starts() -> list[FullyConnected]:
    """Two good ones, one of a single neuron, which cannot follow, and one that lies behind for long and wins."""
    widths = (12, 12, 1, 12)
    made = [FullyConnected(5, 3, width=w, depth=4, seed=s, dtype=torch.float64) for s, w in enumerate(widths)]
    with torch.no_grad():
        for parameter in made[3].weights:
            parameter.mul_(0.3)
    return made


def several(**arguments: Any) -> Starts:
    return fit_several(starts(), *data(), ridge=0.003, solver=SCHEDULE, **arguments)


@pytest.fixture(scope="module")
def free() -> Starts:
    return several()


@pytest.fixture(scope="module")
def culled() -> Starts:
    return several(culling=RULE, workers=1)


def test_without_a_rule_each_start_is_that_of_fit(free: Starts) -> None:
    assert free.culled == {}
    alone = fit(starts()[1], *data(), ridge=0.003, solver=SCHEDULE)
    assert free.results[1].objective == alone.objective
    assert free.best == min(range(4), key=lambda j: free.results[j].objective)


def test_dominated_starts_are_given_up_and_the_others_end_as_they_would(free: Starts, culled: Starts) -> None:
    found = culled
    assert found.culled[2] == 60, "the hopeless one at the first mark"
    assert found.best == free.best == 3
    for j, (mine, whole) in enumerate(zip(found.results, free.results, strict=True)):
        if j in found.culled:
            assert mine.outcome is Outcome.INTERRUPTED
            assert mine.gradient_evaluations < whole.gradient_evaluations
            assert whole.objective > 1.05 * free.results[3].objective, "it could not have won"
        else:
            assert mine.objective == whole.objective


def test_the_winner_lay_behind_where_a_start_can_be_given_up(free: Starts) -> None:
    at_mark = [float(r.history.objective[r.history.evaluation <= 80].min()) for r in free.results]
    assert RULE.first <= 80
    assert at_mark[3] > (1 + RULE.margin) * min(at_mark), "objectives alone would have given it up"
    assert free.best == 3


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing(culled: Starts) -> None:
    one, many = culled, several(culling=RULE, workers=4)
    assert one.culled == many.culled
    for a, b in zip(one.results, many.results, strict=True):
        for p, q in zip(a.network.parameters(), b.network.parameters(), strict=True):
            assert torch.equal(p, q)


def marks(values: list[float], best: float, rule: Culling) -> list[bool]:
    left = range(len(values) - 2, -1, -1)
    return [
        rule.is_dominated(b, a, left=n * rule.every, best=best)
        for (a, b), n in zip(itertools.pairwise(values), left, strict=True)
    ]


def test_a_late_winner_is_kept_and_a_settled_loser_is_not() -> None:
    late = [1.0, 0.8, 0.65, 0.55, 0.48, 0.43, 0.39, 0.36, 0.34]  # the leader stands at 0.35 from the beginning
    assert not any(marks(late, 0.35, Culling()))
    settled = [1.0, 0.7, 0.6, 0.58, 0.575, 0.573, 0.572, 0.572, 0.572]
    given_up = marks(settled, 0.35, Culling())
    assert given_up.index(True) == 2
    # a rule that compares objectives alone would give up the winner
    assert late[3] > 1.05 * 0.35
    # within the margin nobody is given up: a rank dropped at the end may still be worth some per cent
    assert not any(marks([0.365] * 5, 0.35, Culling()))
    assert any(marks([0.365] * 5, 0.35, Culling(margin=0.0)))


def test_one_network_is_no_two_starts() -> None:
    network = FullyConnected(3, 2, width=4, depth=2, seed=0)
    with pytest.raises(ValueError, match="holds one network twice"):
        fit_several([network, network], torch.ones(4, 3), torch.ones(4, 2), ridge=1e-2)


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seed": 3}, "seed=.*would be one. Give each network a seed"),
        ({"checkpoint": "a.pt"}, "checkpoint=.*a file of its own"),
        ({"callback": lambda event: False}, "callback=.*or give culling"),
        ({"workers": -2}, "workers=-2.: needs a number of threads"),
        ({"workers": 1.5}, "needs a whole number, got float 1.5"),
    ],
    ids=["seed", "checkpoint", "callback", "fewer than none", "half a thread"],
)
def test_what_starts_cannot_share_is_refused(arguments: dict[str, Any], words: str) -> None:
    """One seed gave four starts the same weights, without a word."""
    with pytest.raises(ValueError, match=words):
        fit_several(starts(), *data(), ridge=0.01, solver=SCHEDULE, **arguments)
    assert fit_several(starts()[:1], *data(), ridge=0.01, solver=Adam(2), seed=None, workers=2).best == 0


def test_an_error_in_one_start_ends_all_and_is_told() -> None:
    mixed = [*starts()[:2], FullyConnected(5, 2, width=4, depth=3, seed=0, dtype=torch.float64)]
    with pytest.raises(ShapeError, match="the network has 2 outputs"):
        fit_several(mixed, *data(), ridge=0.01, solver=Adam(2 * RULE.every), culling=RULE)
    with pytest.raises(ValueError, match="at least one start, got none"):
        fit_several([], *data(), ridge=0.01)
    with pytest.raises(ValueError, match="needs every > 0"):
        Culling(every=0)


@pytest.mark.other_types
def test_one_network_is_no_list_and_a_generator_is_one() -> None:
    x = torch.ones(6, 3, dtype=torch.float64)
    with pytest.raises(TypeError, match="needs several networks in a list"):
        fit_several(FullyConnected(3, 2, width=4, depth=2), x, x[:, :2], ridge=0.1)  # pyright: ignore[reportArgumentType]
    starts = (FullyConnected(3, 2, width=4, depth=2, seed=seed) for seed in range(2))
    found = fit_several(starts, x, x[:, :2], ridge=0.1, limits=Limits(evaluations=3), workers=1)  # pyright: ignore[reportArgumentType]
    assert len(found.results) == 2
