"""The bound holds as often as it says, for few rows, long tails and what few rows do not show; others do not."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import isthmus
from isthmus.discovery.chains.error_bounds import RowErrors, exceeding, upper_ratio
from isthmus.discovery.chains.rows import spacing, three_parts

# no number that is drawn is above the last one of a row: the premise of the bound
DRAWS: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float, float]] = {
    "uniform": (lambda rng, n: rng.uniform(size=n), 0.5, 1.0),
    "squares": (lambda rng, n: rng.uniform(size=n) ** 4, 0.2, 1.0),
    "one row in a hundred": (lambda rng, n: 1.0 * (rng.uniform(size=n) < 0.01), 0.01, 1.0),
    "one row in ten": (lambda rng, n: 1.0 * (rng.uniform(size=n) < 0.1), 0.1, 1.0),
    "half of them": (lambda rng, n: rng.uniform(size=n) * (rng.uniform(size=n) < 0.5), 0.25, 1.0),
}


def missed(limit: Callable[[np.ndarray, float, float], bool], name: str, rows: int) -> float:
    """How often a limit is below the mean, of 400."""
    draw, mean, largest = DRAWS[name]
    rng = np.random.default_rng(0)
    return float(np.mean([limit(draw(rng, rows), largest, mean) for _ in range(400)]))


def by_the_premise(values: np.ndarray, largest: float, mean: float) -> bool:
    """Whether the bound is below the mean: there the tail is 5 % (`test_the_bound_is_where_its_tail_is`)."""
    return exceeding(np.append(values, largest) - mean) <= 0.05


def by_what_was_seen(values: np.ndarray, _: float, mean: float) -> bool:
    return exceeding(np.append(values, values.max()) - mean) <= 0.05


def by_student(values: np.ndarray, _: float, mean: float) -> bool:
    return values.mean() + stats.t.ppf(0.95, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5 < mean


@pytest.mark.parametrize("rows", [12, 40, 120])
@pytest.mark.parametrize("name", DRAWS)
def test_it_misses_at_most_one_mean_in_twenty_where_its_premise_holds(name: str, rows: int) -> None:
    assert missed(by_the_premise, name, rows) <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5  # z = 3


@pytest.mark.parametrize(("name", "rows"), [("one row in a hundred", 40), ("one row in a hundred", 120),
                                            ("one row in ten", 12)])  # fmt: skip
def test_without_a_premise_on_what_was_not_seen_nothing_holds(name: str, rows: int) -> None:
    """As a neuron that is silent on all rows but one in a hundred: where it was not seen, all that remains is 0."""
    silent = (1 - DRAWS[name][1]) ** rows
    for limit in (by_what_was_seen, by_student):
        assert missed(limit, name, rows) > 0.8 * silent > 0.2


def test_the_bound_is_where_its_tail_is() -> None:
    rng = np.random.default_rng(3)
    e, v = rng.uniform(size=40) ** 4, rng.uniform(0.5, 1.5, size=40)
    found = RowErrors(e, v, 1.2).bound ** 2
    y = np.append(e - found * v, (1.44 - found) * v.mean())
    assert exceeding(y) == pytest.approx(0.05, rel=1e-5)


@pytest.mark.parametrize("rows", [2, 5, 20, 500])
def test_of_rows_without_an_error_the_rule_of_three_is_left(rows: int) -> None:
    found = RowErrors(np.zeros(rows), np.ones(rows), 0.1).bound
    assert found == pytest.approx(0.1 * (1 - 0.05 ** (1 / rows)) ** 0.5, rel=5e-3)  # of a saddle point


@pytest.mark.parametrize("rows", [3, 12, 60])
def test_the_tail_is_that_of_draws(rows: int) -> None:
    rng = np.random.default_rng(rows)
    e, v = rng.exponential(size=rows) ** 2, rng.exponential(size=rows) + 0.1
    drawn = rng.exponential(size=(40_000, rows))
    found = upper_ratio(e, v)
    assert exceeding(e - found * v) == pytest.approx(0.05, rel=1e-5)
    share = float((drawn @ (e - found * v) > 0).mean())
    assert share == pytest.approx(0.05, abs=0.005)  # z = 3 of 40,000 draws is .0033, and a saddle point is one


def test_the_bound_of_a_quotient_scales_with_it() -> None:
    rng = np.random.default_rng(1)
    found = RowErrors(0.01 * rng.exponential(size=80), rng.exponential(size=80) + 0.1)
    assert found.relative_error == pytest.approx((found.squares.sum() / found.spreads.sum()) ** 0.5)
    assert found.relative_error < found.bound < 2 * found.relative_error
    for scale in (9.0, 1e-24, 1e24):
        assert RowErrors(scale * found.squares, found.spreads).bound == pytest.approx(scale**0.5 * found.bound)
        assert RowErrors(found.squares, scale * found.spreads).bound == pytest.approx(scale**-0.5 * found.bound)
    farther = RowErrors(found.squares, found.spreads, unseen=2.0)
    assert farther.bound > 1.5 * found.bound
    assert RowErrors(found.squares, found.spreads, unseen=1e-3).bound == found.bound


def test_no_error_is_bounded_by_nothing_and_one_row_proves_nothing() -> None:
    assert RowErrors(np.zeros(5), np.ones(5)).bound == 0.0
    assert RowErrors(np.full(5, 0.04), np.ones(5)).bound == pytest.approx(0.2)
    assert RowErrors(np.full(1, 0.04), np.ones(1)).bound == np.inf
    assert RowErrors(np.array([np.nan, 1.0]), np.ones(2)).bound == RowErrors(np.array([np.nan]), np.ones(1)).bound


def rows_of(law: str, count: int, generator: torch.Generator) -> torch.Tensor:
    """Ten columns; in some laws the last five are small in all rows but a few."""
    z = torch.randn(count, 10, generator=generator)
    if law == "normal":
        return z
    if law == "log-normal":
        return z * torch.randn(count, 1, generator=generator).exp()
    few = torch.rand(count, generator=generator) < float(law)
    z[:, 5:] *= 0.02
    z[few, 5:] *= 100
    return z


@pytest.mark.parametrize("law", ["0.01", "0.03", "0.1", "log-normal"])
def test_rare_kinds_and_heavy_tails_are_reached_out_for_and_normal_rows_are_not(law: str) -> None:
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        x = rows_of(law, 300, generator)
        found, usual = spacing(x), spacing(rows_of("normal", 300, generator))
        assert found is not None
        assert usual is not None
        apart = found.apart
        _, _, report = three_parts(300, seed=0, apart=apart)
        assert int(apart.argmax()) in report
        far = int((apart[report] > 3 * np.median(apart)).sum())
        assert far >= 1
        alone = found.reach(np.array([int(apart.argmax())]))
        assert alone > 1.5
        assert found.reach(report) <= alone
        assert usual.reach(np.arange(300)) < 1.2


def test_of_tokens_and_of_many_rows_no_distance_is_taken() -> None:
    assert spacing(torch.zeros(20, 3, dtype=torch.long)) is None
    assert spacing(torch.zeros(5000, 1)) is None
    for width in (3, 300):
        found = spacing(torch.zeros(20, width))
        assert found is not None
        assert found.reach(np.arange(20)) == 1.0


def test_the_worst_of_few_rare_rows_is_taken_further() -> None:
    rng = np.random.default_rng(1)
    e, v = rng.uniform(size=60), np.ones(60)
    assert RowErrors(e, v, reach=3.0).bound == pytest.approx(RowErrors(e, v, unseen=3 * e.max() ** 0.5).bound)
    assert RowErrors(e, v, reach=3.0).bound > RowErrors(e, v).bound


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "0.03"])
def test_the_tolerance_is_kept_on_fresh_rows_where_a_rare_kind_was_seen(law: str) -> None:
    """Of 14 networks 5 exceeded it where 3 rows in 100 are of another kind."""
    kept = 0
    for seed in range(8):
        generator = torch.Generator().manual_seed(1000 + seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            module = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 6))
        x = rows_of(law, 256, generator)
        optimiser = torch.optim.Adam(module.parameters(), lr=3e-3, weight_decay=1e-4)
        for _ in range(150):
            optimiser.zero_grad()
            target = torch.sin(x[:, :3]).sum(1, keepdim=True) + 0.5 * x[:, 4:10]
            nn.functional.mse_loss(module(x), target).backward()
            optimiser.step()
        found = isthmus.compress(module.eval(), rows_of(law, 300, generator), tolerance=0.1, allow_slower=True)
        fresh = rows_of(law, 5000, generator)
        with torch.no_grad():
            wanted, got = module(fresh), found.module(fresh)
        kept += float((got - wanted).norm() / (wanted - wanted.mean(0)).norm()) <= found.error_bound
    assert kept >= 7
