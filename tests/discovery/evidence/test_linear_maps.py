"""Linear maps that every row is held out of: what they read, against regressions of one's own; when they tell."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import isthmus
from isthmus.discovery.choices import AS_LINEAR, MAPPED
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import FOLDS, folds
from isthmus.discovery.decision import decide, is_linear
from isthmus.discovery.evidence.baseline import SPLIT_ROWS, SPLITS, linear_maps_tell, linear_reading
from isthmus.discovery.findings import LinearReading, Readings
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings
from isthmus.theory import Verdict
from isthmus.theory.curve_readings import CurveReading, plateau_reading


def table(seed: int, *, rank: int = 3, noise: float = 0.1, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Eight normal columns, and five targets of so many linear combinations of them in noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 8))
    y = x @ rng.normal(size=(8, rank)) @ rng.normal(size=(rank, 5))
    return x, y / y.std() + noise * rng.normal(size=y.shape)


def read(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, *, groups: np.ndarray | None = None
) -> LinearReading:
    settings = Settings()
    return linear_reading(Sample.of(checked_data(x, y, None, weight), settings, groups=groups), settings, most=5)


def regressed(x: np.ndarray, y: np.ndarray, weight: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """Losses of each row through 0 to 5 dimensions, by normal equations: another way to the same maps."""
    losses, y = np.zeros((6, len(x))), y / y.std(0)
    splits = 1 if 0.8 * len(x) > SPLIT_ROWS else SPLITS
    for split in range(splits):
        for held in folds(len(x), seed=split, count=FOLDS, groups=groups, ordered=False):
            w = weight[~held] / weight[~held].sum()
            low, means = w @ x[~held], w @ y[~held]
            a, b = x[~held] - low, y[~held] - means
            slopes = np.linalg.solve(a.T @ (w[:, None] * a), a.T @ (w[:, None] * b))
            values, axes = np.linalg.eigh(slopes.T @ (a.T @ (w[:, None] * a)) @ slopes)
            axes = axes[:, values.argsort()[::-1]]
            for k in range(6):
                off = y[held] - means - (x[held] - low) @ slopes @ axes[:, :k] @ axes[:, :k].T
                losses[k, held] += np.square(off).mean(1) / splits
    return losses


@pytest.mark.parametrize("way", ["plain", "weighted", "grouped", "many"])
def test_they_read_what_reduced_rank_regressions_of_ones_own_lose_of_rows_held_out(way: str) -> None:
    many = way == "many"
    x, y = table(12 if way == "grouped" else 0, noise=4.0 if many else 0.9, rows=1300 if many else 40)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.2, 5.0, size=40) if way == "weighted" else np.ones(len(x))
    groups = np.repeat(np.arange(8), 5) if way == "grouped" else None
    if groups is not None:  # what a group has in common
        y += 0.4 * rng.normal(size=(8, 5))[groups]
    found = read(x, y, weight if way == "weighted" else None, groups=groups)
    losses = regressed(x, y, weight, groups)
    errors = losses @ (weight / weight.sum())
    rank, least = (
        plateau_reading(losses, ranks=range(6), weight=weight, together=groups, noise=noise, slack=AS_LINEAR).rank
        for noise in (1.0, 2.0)
    )
    assert (found.rank, found.least, found.most) == (rank, least, errors.argmin())
    assert found.errors == pytest.approx(errors / errors[0], rel=1e-4)  # rows are float32 in a search
    other = regressed(x, y, np.ones(len(x)))
    if way == "plain":
        assert found.least < found.rank < found.most
    if way == "grouped":
        assert plateau_reading(losses, ranks=range(6), noise=2.0).rank > found.least, "groups are few"
    if way in {"weighted", "grouped"}:
        assert found.errors[2] != pytest.approx(other[2].mean() / other[0].mean(), rel=1e-3), "control"


def test_of_sixty_rows_they_read_the_rank_of_linear_tables_and_none_of_noise() -> None:
    known = [(1 + seed % 4, read(*table(seed, rank=1 + seed % 4))) for seed in range(24)]
    assert sum(found.rank == rank for rank, found in known) >= 22
    sure = [(rank, found.rank) for rank, found in known if found.least == found.rank == found.most]
    assert len(sure) >= 18
    assert sum(rank == said for rank, said in sure) >= len(sure) - 1
    x, y = table(0)
    assert read(x, np.random.default_rng(5).permutation(y)).rank == 0


def test_of_many_rows_they_read_a_direction_far_below_the_noise_and_no_fiftieth_of_the_error() -> None:
    rng = np.random.default_rng(5)
    x, sides, noise = rng.normal(size=(6000, 8)), rng.normal(size=(3, 5)), rng.normal(size=(6000, 5))

    def read_with(weak: float) -> LinearReading:
        return read(x, x[:, :3] @ (sides * [[1.0], [1.0], [weak]]) + noise)

    found = read_with(0.2)
    assert (found.least, found.rank, found.most) == (3, 3, 3)
    assert AS_LINEAR < found.errors[2] / found.errors[3] < 1.05
    weaker = read_with(0.08)
    assert (weaker.rank, weaker.most) == (2, 3)
    assert 1.0 < weaker.errors[2] / weaker.errors[3] < AS_LINEAR, "control"


ERRORS = (1.0, 0.7, 0.2, 0.02, 0.02, 0.02)
LINEAR = Readings(
    ridge=1e-3, objective=CurveReading(1, 0.03), neighbours=(), scree=CurveReading(2, 0.1), jacobian_rank=1, widest=4,
    heldout_error=(1.0, 0.6, 0.2, 0.1, 0.1), linear_error=(1.0, 0.7, 0.2, 0.02, 0.02),
    mapped=LinearReading(3, 3, 3, ERRORS),
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, True),
        ({"mapped": None}, False),
        ({"mapped": LinearReading(0, 0, 0, ERRORS)}, False),
        ({"mapped": LinearReading(5, 5, 5, ERRORS)}, False),  # of which the rows held out first say nothing
        ({"heldout_error": (1.0, 0.6, 0.2, 0.1, 0.0185)}, True),
        ({"heldout_error": (1.0, 0.6, 0.2, 0.1, 0.018)}, False),  # a network does better
        ({"heldout_error": (1.0, 0.6, 0.024, 0.03, 0.03)}, False),  # and nearly as well through fewer, curved
        ({"heldout_error": (1.0, 0.6, 0.026, 0.03, 0.03)}, True),
        ({"heldout_error": (1.0, 0.6, 0.024, 0.03, 0.03), "linear_error": (1.0, 0.7, 0.0235, 0.02, 0.02)}, True),
    ],
)
def test_linear_maps_are_believed_where_no_curve_does_as_well(change: dict[str, Any], told: bool) -> None:
    assert linear_maps_tell(replace(LINEAR, **change)) is told


@pytest.mark.parametrize(
    ("change", "verdict", "word"),
    [
        ({}, Verdict.CONFIDENT, "held out of them, each row once"),
        ({"mapped": LinearReading(3, 2, 3, ERRORS)}, Verdict.DOUBTFUL, "through 2 to 3 dimensions"),
        ({"mapped": LinearReading(3, 3, 4, ERRORS)}, Verdict.DOUBTFUL, "through 3 to 4 dimensions, within two"),
        ({"mapped": LinearReading(3, 3, 3, (1.0, 0.7, 0.2, 2 * MAPPED))}, Verdict.DOUBTFUL, "miss 0.1 of the variance"),
        ({"complaints": ("Time was over.",)}, Verdict.DOUBTFUL, "Time was over."),
    ],
)
def test_what_they_leave_open_is_a_doubt(change: dict[str, Any], verdict: Verdict, word: str) -> None:
    readings = replace(LINEAR, **change)
    found = decide(readings)
    assert (found.rank, found.verdict) == (3, verdict)
    assert word in found.reasons[-1]
    assert [is_linear(readings, rank) for rank in range(5)] == [False, False, False, True, False]
    alone = decide(replace(readings, mapped=None))
    assert (alone.rank, alone.verdict) == (1, Verdict.DOUBTFUL), "control"


def test_what_networks_are_sure_of_is_in_doubt_where_linear_maps_read_another_rank() -> None:
    """Four times of four the linear maps were right: 40 rows of 9 columns, 4 combinations in noise, read 3, sure."""
    sure = replace(
        LINEAR, objective=CurveReading(3, 0.3), neighbours=((3e-3, CurveReading(3, 0.2)),), scree=CurveReading(3, 0.5),
        jacobian_rank=3, heldout_error=(1.0, 0.75, 0.4, 0.0203, 0.0203), linear_error=(1.0, 0.7, 0.3, 0.0202, 0.0195),
    )  # fmt: skip
    assert decide(replace(sure, mapped=None)).verdict is Verdict.CONFIDENT
    assert decide(sure) == decide(replace(sure, mapped=None))
    other = replace(sure, mapped=LinearReading(4, 4, 4, ERRORS))
    assert (decide(other).rank, decide(other).verdict) == (4, Verdict.DOUBTFUL)
    assert decide(other).reasons == (
        "Networks read 3 without a doubt; linear maps, which predict as well, 4 of all rows, each held out of them "
        "once: more rows would tell.",
    )
    assert is_linear(other, 4)
    assert not is_linear(other, 3)
    better = replace(other, heldout_error=(1.0, 0.75, 0.4, 0.017, 0.017))
    assert decide(better).verdict is Verdict.CONFIDENT, "control: networks predict better"
    by_luck = replace(better, errors_of_all=(1.0, 0.75, 0.4, 0.0203))
    assert decide(by_luck).verdict is Verdict.DOUBTFUL, "of few rows: all rows say more"
    by_bad_luck = replace(other, errors_of_all=(1.0, 0.75, 0.4, 0.017))
    assert decide(by_bad_luck).verdict is Verdict.CONFIDENT
    nearly = replace(other, heldout_error=(1.0, 0.75, 0.4, 0.0201, 0.0201))
    assert not linear_maps_tell(nearly), "three curved coordinates do nearly as well"
    assert decide(nearly).verdict is Verdict.CONFIDENT
    lost = {"heldout_error": (1.0, 0.9, 0.5, 0.181, 0.181), "linear_error": (1.0, 0.9, 0.4, 0.19, 0.18)}
    much = decide(replace(nearly, **lost, mapped=LinearReading(4, 4, 4, (1.0, 0.9, 0.4, 0.19, 0.18))))
    assert (much.rank, much.verdict) == (3, Verdict.DOUBTFUL), "much is lost"
    assert "more rows would tell whether 3, curved, would do" in much.reasons[0]
    unclear = replace(other, mapped=LinearReading(4, 4, 5, ERRORS))
    assert decide(unclear).verdict is Verdict.CONFIDENT, "what is not clear itself speaks against nothing"
    fewer = decide(replace(nearly, mapped=LinearReading(2, 2, 2, ERRORS), linear_error=(1.0, 0.7, 0.02, 0.02, 0.02)))
    assert (fewer.rank, fewer.verdict) == (2, Verdict.DOUBTFUL)
    curved = replace(
        sure, mapped=LinearReading(2, 2, 2, ERRORS), heldout_error=(1.0, 0.0245, 0.0225, 0.0203, 0.0203),
        linear_error=(1.0, 0.7, 0.02, 0.02, 0.02),
    )  # fmt: skip
    assert decide(replace(curved, mapped=None)).verdict is Verdict.CONFIDENT
    assert not linear_maps_tell(curved)
    assert (decide(curved).rank, decide(curved).verdict) == (2, Verdict.DOUBTFUL), "fewer straight ones do as well"
    assert decide(replace(sure, mapped=LinearReading(3, 3, 3, ERRORS))) == decide(replace(sure, mapped=None))


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, True),
        ({"autoencoding": True}, False),
        ({"loss": SimpleNamespace(is_quadratic=False)}, False),
        ({"x": np.zeros((100_000, 8))}, True),
        ({"x": np.zeros((15, 8))}, False),
        ({"x": np.zeros((16, 8))}, True),
        ({"settings": Settings(ridges=(1e-3,))}, False),
        ({"out_of_time": True}, False),
        ({"heldout_error": (1.0, 0.01)}, False),
        ({"heldout_error": (1.0, 0.01), "errors_of_all": (1.0, 0.03)}, True),
    ],
)
def test_they_are_asked_of_numbers_that_networks_tell_no_better_while_there_is_time(
    change: dict[str, Any], asked: bool
) -> None:
    given: dict[str, Any] = {
        "autoencoding": False, "d_in": 8, "loss": SimpleNamespace(is_quadratic=True), "x": np.zeros((50, 8)),
        "errors_compared": LINEAR.errors_compared,
    }  # fmt: skip
    settled: list[LinearReading] = []
    read_so = {key: change[key] for key in ("heldout_error", "errors_of_all") if key in change}
    search: Any = SimpleNamespace(
        problem=SimpleNamespace(**{**given, **change}), _most_linear=4,
        size=SimpleNamespace(settings=change.get("settings", Settings())),
        readings=replace(LINEAR, **read_so), mapped=None,
        settle=lambda: settled.append(search.mapped),
        runner=SimpleNamespace(out_of_time=lambda: "out_of_time" in change),
    )  # fmt: skip
    sample: Any = Sample.of(checked_data(*table(0), None), Settings())
    Search.read_linear_maps(search, sample)
    assert bool(settled) is asked
    if asked:
        assert settled[0] == read(*table(0))


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["quick", "default"])
def test_a_table_that_networks_do_not_learn_is_answered_by_a_linear_map(
    effort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    x, true = rng.normal(size=(80, 5)), rng.normal(size=(5, 3)) @ rng.normal(size=(3, 4))
    y = x @ true
    y += 0.05 * y.std() * rng.normal(size=y.shape)
    short = isthmus.Limits(evaluations=20)
    found = isthmus.discover(x, y, effort=effort, limits=short)
    assert (found.rank, found.verdict, found.is_linear) == (3, Verdict.CONFIDENT, True)
    assert not found.remedies
    assert 0 < (found.readings["linear_error_of_all"] or 0.0) < MAPPED
    assert "held out of them, each row once" in found.reasons[0]
    new = np.random.default_rng(0).normal(size=(1000, 5))
    off = found.predict(new) - new @ true
    assert np.square(off).mean() < 0.01 * np.square(new @ true).mean()
    bent = isthmus.discover(x, np.tanh(3 * x[:, :1] - 2 * x[:, 1:2]) + 0 * y, effort=effort, limits=short)
    assert not bent.is_linear, "control"
    assert "linear_error_of_all" not in bent.readings
    monkeypatch.setattr(Search, "read_linear_maps", lambda *_: None)
    assert isthmus.discover(x, y, effort="quick", limits=short).verdict is not Verdict.CONFIDENT, "control"


@pytest.mark.slow
@pytest.mark.parametrize("searched", [None, 2500])
def test_many_rows_of_a_linear_map_are_answered_by_one(searched: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve dimensions of 30 columns were 11, in doubt, with the advice to give more data; of 1,000 rows 12, sure."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3000, 30))
    y = x @ rng.normal(size=(30, 12)) @ rng.normal(size=(12, 15))
    found = isthmus.discover(x, y, effort="quick", rows=searched)
    assert (found.rank, found.verdict, found.is_linear) == (12, Verdict.CONFIDENT, True)
    assert np.square(found.predict(x) - y).mean() < 1e-9 * y.var()
    monkeypatch.setattr(Search, "read_linear_maps", lambda *_: None)
    assert isthmus.discover(x, y, effort="quick", rows=searched).verdict is not Verdict.CONFIDENT, "control"
