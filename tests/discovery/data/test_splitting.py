"""Held-out rows: how many, which stay together, and that the seed decides."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d
from sklearn.datasets import load_digits

from isthmus.discovery.choices import REPEATED
from isthmus.discovery.data import splitting
from isthmus.discovery.data.splitting import (
    BLOCKS,
    LEVELS,
    copies,
    folds,
    heldout_rows,
    joins,
    memory_of,
    near_sets,
    sets_of_rows,
    settings_of,
)  # fmt: skip


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.5, 0.99])
@pytest.mark.parametrize("num_rows", [2, 3, 19, 21, 500])
def test_some_rows_are_held_out_and_never_all(num_rows: int, fraction: float, ordered: bool) -> None:
    mask = heldout_rows(num_rows, seed=0, fraction=fraction, ordered=ordered)
    assert mask.shape == (num_rows,)
    assert 1 <= mask.sum() <= num_rows - 1


def test_a_fifth_is_held_out_unless_asked_otherwise() -> None:
    assert heldout_rows(500, seed=0).sum() == 100
    assert heldout_rows(500, seed=0, fraction=0.3).sum() == 150
    assert heldout_rows(500, seed=0, ordered=True).sum() == 100


def test_the_seed_decides_which() -> None:
    first, again, other = (heldout_rows(200, seed=seed) for seed in (3, 3, 4))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


@pytest.mark.parametrize("num_rows", [1, 3, 5, 23])
def test_every_row_is_in_one_fold(num_rows: int) -> None:
    masks = folds(num_rows, seed=2)
    sizes = [int(mask.sum()) for mask in masks]
    assert (np.sum(masks, axis=0) == 1).all()
    assert len(masks) == min(5, num_rows)
    assert max(sizes) - min(sizes) <= 1


def test_folds_keep_groups_and_blocks_whole() -> None:
    labels = np.repeat(np.arange(13), 7)
    for masks, kept in ((folds(91, seed=0, groups=labels), labels),
                        (folds(400, seed=0, ordered=True), np.arange(400) * BLOCKS // 400)):  # fmt: skip
        assert len(masks) == 5
        assert (np.sum(masks, axis=0) == 1).all()
        for mask in masks:
            assert not set(kept[mask]) & set(kept[~mask])
    torn = folds(91, seed=0)
    assert set(labels[torn[0]]) & set(labels[~torn[0]])
    assert len(folds(91, seed=0, groups=np.arange(91) % 2)) == 2


def runs(mask: np.ndarray) -> list[int]:
    """Lengths of the stretches of held-out rows."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return (edges[1::2] - edges[::2]).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_ordered_rows_are_held_out_in_whole_blocks(seed: int) -> None:
    size = 25
    mask = heldout_rows(size * BLOCKS, seed=seed, ordered=True)
    assert all(length % size == 0 for length in runs(mask))
    shuffled = heldout_rows(size * BLOCKS, seed=seed)
    assert not all(length % size == 0 for length in runs(shuffled))


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_one_group_stay_on_one_side(seed: int) -> None:
    groups = np.repeat([f"patient {i}" for i in range(12)], 7)
    mask = heldout_rows(len(groups), seed=seed, groups=groups)
    held, kept = set(groups[mask]), set(groups[~mask])
    assert held
    assert kept
    assert held.isdisjoint(kept)
    torn = heldout_rows(len(groups), seed=seed)
    assert not set(groups[torn]).isdisjoint(groups[~torn])


@pytest.mark.parametrize(
    ("groups", "ordered", "message"),
    [
        (np.zeros(10), True, "give one of the two"),
        (np.arange(9), False, "one label per row, 10"),
        (np.zeros(10), False, "at least two different labels"),
    ],
    ids=["both", "length", "one-label"],
)
def test_groups_that_cannot_be_split_are_refused(groups: np.ndarray, ordered: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        heldout_rows(10, seed=0, groups=groups, ordered=ordered)


@pytest.mark.parametrize("seed", [0, 2**32, 2**40, 2**63 - 1])
def test_every_seed_splits_groups(seed: int) -> None:
    mask = heldout_rows(40, seed=seed, groups=np.arange(40) // 4)
    assert mask.sum() == 8


RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(200, 3)), RNG.normal(size=(200, 2))


@pytest.mark.parametrize("order", ["one after the other", "the whole again", "shuffled"])
def test_copies_of_rows_are_found_wherever_they_stand(order: str) -> None:
    rows = {
        "one after the other": np.repeat(np.arange(200), 3),
        "the whole again": np.tile(np.arange(200), 3),
        "shuffled": RNG.integers(0, 200, 600),
    }[order]
    for y in (Y, None):
        x = X[rows]
        found = copies(x, x if y is None else y[rows])
        assert found is not None
        expected = [int(np.flatnonzero(rows == row)[0]) for row in rows]
        assert found.tolist() == expected


def test_rows_with_other_targets_are_no_copies_and_zero_has_no_sign() -> None:
    x = np.tile(X, (3, 1))
    assert copies(x, RNG.normal(size=(600, 2))) is None
    signed = np.where(RNG.random((200, 3)) < 0.1, 0.0, X)
    both = np.concatenate([signed, np.where(signed == 0, -0.0, signed)])
    assert copies(both, both) is not None
    swapped = np.concatenate([np.hstack([X, Y[:, :1]]), np.hstack([Y[:, :1], X])])
    assert copies(swapped[:, :1].copy(), swapped[:, 1:].copy()) is None


def test_a_few_copies_are_let_be() -> None:
    few = int(REPEATED * 200)
    for count, found in ((few, False), (2 * few + 1, True)):
        x = np.concatenate([X, X[:count]])
        assert (copies(x, x) is not None) is found


@pytest.mark.parametrize(
    "x",
    [
        np.array(np.meshgrid([0.0, 1.0], [0.0, 1.0])).reshape(2, 4).T,
        np.array(np.meshgrid(range(3), range(3), range(3))).reshape(3, 27).T.astype(float),
        RNG.integers(0, 10, size=(400, 1)).astype(float),
        RNG.integers(0, 4, size=(400, 4)).astype(float),
    ],
    ids=["truth table", "factorial design", "counts", "categories"],
)
def test_columns_of_few_values_repeat_themselves_by_chance(x: np.ndarray) -> None:
    rows = np.tile(x, (20, 1))[RNG.permutation(20 * len(x))[:400]]
    assert len(np.unique(rows, axis=0)) < (1 - REPEATED) * len(rows), "rows are repeated"
    assert copies(rows, rows.sum(1, keepdims=True)) is None


def test_copies_are_found_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.tile(X, (2, 1))
    whole = copies(x, x)
    assert whole is not None
    monkeypatch.setattr(splitting, "in_parts", lambda rows: (rows[i : i + 7] for i in range(0, len(rows), 7)))
    parts = copies(x, x)
    assert parts is not None
    assert parts.tolist() == whole.tolist()


@pytest.mark.parametrize("lag", [1, 3, 10, 40])
def test_the_memory_of_a_series_is_that_of_its_correlation(lag: int) -> None:
    """rho(l) = exp(-(l / 2 s)^2) of white noise smoothed over s rows, which falls below 1/e at 2 s."""
    series = gaussian_filter1d(np.random.default_rng(0).normal(size=(20_000, 2)), lag, axis=0)
    assert memory_of(series) == pytest.approx(2 * lag, rel=0.1, abs=1)
    assert memory_of(np.random.default_rng(0).permutation(series)) == 1, "control: their order is what counts"


def test_the_slowest_column_counts_and_what_does_not_vary_has_no_memory() -> None:
    time, noise = np.arange(300.0)[:, None], np.random.default_rng(0).normal(size=(300, 3))
    assert memory_of(noise) == 1
    assert memory_of(np.hstack([noise, time])) > 50
    assert memory_of(np.ones((300, 2))) == 0
    assert memory_of(np.hstack([np.ones((300, 1)), noise])) == 1
    wide = np.hstack([noise] * 100)
    assert memory_of(wide) == 1
    assert memory_of(1e200 * time) == memory_of(time)
    assert memory_of(time[:, 0]) == memory_of(time)


def trajectories(noise: float = 0.0, *, count: int = 10, length: int = 200) -> np.ndarray:
    """So many swings of a pendulum, each from a state of its own, one after another."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(count):
        angle, speed = rng.uniform(-2, 2, 2)
        for _ in range(length):
            speed -= 0.05 * np.sin(angle)
            angle += 0.05 * speed
            rows.append((angle, speed))
    swings = np.array(rows)
    return swings + noise * swings.std(0) * rng.normal(size=swings.shape)


@pytest.mark.parametrize("scale", [1e-290, 1.0, 1e290])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_series_of_several_tells_where_each_starts(noise: float, scale: float) -> None:
    found = joins(trajectories(noise) * scale)
    assert {*found.tolist()} <= {*range(200, 2000, 200)}, "nowhere else"
    assert len(found) >= 5, "but where one starts close to the end of the last"


@pytest.mark.parametrize(
    "kind",
    [
        "one",
        "stray rows",
        "modulo a turn",
        "angles of six",
        "heavy tails",
        "no series",
        "a column",
        "constant",
        "short",
    ],
)
def test_one_series_starts_anew_nowhere(kind: str) -> None:
    rng, swing = np.random.default_rng(0), trajectories(count=1, length=1000)
    phase = np.arange(1000) * 0.1
    stray = swing.copy()
    stray[[100, 500]] += 5
    series: dict[str, np.ndarray] = {
        "one": swing,
        "stray rows": stray,
        "modulo a turn": np.stack([phase % (2 * np.pi), np.cos(phase)], 1),
        "angles of six": np.stack([phase % np.pi, -phase % np.pi, *(np.sin(phase + i) for i in range(4))], 1),
        "heavy tails": rng.standard_t(3, size=(2000, 3)).cumsum(0),
        "no series": rng.normal(size=(2000, 4)) * rng.standard_t(1, size=(2000, 1)),
        "a column": trajectories()[:, :1],
        "constant": np.ones((100, 3)),
        "short": trajectories(length=2, count=2),
    }
    assert len(joins(series[kind])) == 0


def test_rows_measured_under_the_same_inputs_are_found_and_designs_let_be() -> None:
    rng = np.random.default_rng(0)
    x, shuffled = np.repeat(rng.normal(size=(50, 3)), 4, axis=0), rng.permutation(200)
    found = settings_of(x[shuffled])
    assert found is not None
    assert len(np.unique(found)) == 50
    np.testing.assert_array_equal(x[shuffled][found], x[shuffled])
    assert settings_of(rng.normal(size=(200, 3))) is None
    levels = rng.integers(0, LEVELS, size=(40, 3)).astype(np.float64)
    assert settings_of(np.repeat(levels, 5, axis=0)) is None, "a design"
    assert settings_of(np.vstack([x[:4], rng.normal(size=(200, 3))])) is None, "a few"


@pytest.mark.parametrize("columns", [2, 5, 40])
@pytest.mark.parametrize("kind", ["as it stands", "shuffled", "with rows alone", "far numbers", "two to seven"])
def test_rows_whose_inputs_hardly_differ_are_found(kind: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    run = np.repeat(np.arange(60), rng.integers(2, 8, size=60) if kind == "two to seven" else 4)
    if kind == "with rows alone":
        run = np.append(run, 60 + np.arange(40))
    order = np.arange(len(run)) if kind == "as it stands" else rng.permutation(len(run))
    x = rng.normal(size=(100, columns))[run] + 1e-3 * rng.normal(size=(len(run), columns))
    found = near_sets((x * 1e300 if kind == "far numbers" else x)[order])
    assert found is not None
    same = run[order][:, None] == run[order]
    assert (same == (found[:, None] == found)).mean() > 0.999


def clouds() -> dict[str, np.ndarray]:
    rng, t = np.random.default_rng(5), np.random.default_rng(6).uniform(size=500)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 40), np.linspace(0, 1, 10)), -1).reshape(-1, 2)
    return {
        "normal": rng.normal(size=(300, 3)),
        "uniform": rng.uniform(size=(2000, 1)),
        "wide": np.exp(3 * rng.normal(size=(300, 5))),
        "without a variance": rng.standard_cauchy(size=(300, 2)),
        "whole numbers": rng.integers(0, 6, size=(300, 2)).astype(float),
        "yes and no": np.column_stack([rng.integers(0, 2, size=(300, 5)), rng.normal(size=300)]),
        "grid": grid,
        "jittered grid": grid + 1e-4 * rng.normal(size=grid.shape),
        "helix": np.column_stack([np.cos(40 * t), np.sin(40 * t), t]),
        "classes": rng.normal(size=(15, 4))[rng.integers(0, 15, size=400)] + 1e-2 * rng.normal(size=(400, 4)),
        "equal rows": np.repeat(rng.normal(size=(50, 3)), 4, axis=0),
        "a few": np.vstack([rng.normal(size=(200, 3)), rng.normal(size=3) + 1e-4 * rng.normal(size=(8, 3))]),
        "constant": np.ones((50, 3)),
        "a wall of digits": np.asarray(load_digits(return_X_y=True)[0]),
    }


@pytest.mark.parametrize("kind", clouds())
def test_no_sets_of_near_rows_are_seen_where_there_are_none(kind: str) -> None:
    assert near_sets(clouds()[kind]) is None


PLACES = np.repeat(np.arange(40), 6)


def of_places(width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(40, width))[PLACES]


@pytest.mark.parametrize("kind", ["as it stands", "shuffled", "with rows alone", "far numbers"])
def test_columns_that_keep_together_tell_sets_of_rows(kind: str) -> None:
    rng = np.random.default_rng(3)
    sex = rng.integers(0, 2, size=40).astype(np.float64)[PLACES]
    x = np.column_stack([rng.normal(size=(240, 2)), of_places(2), sex]).astype(np.float64)
    number = PLACES
    if kind == "with rows alone":
        x, number = np.vstack([x, rng.normal(size=(30, 5))]), np.append(PLACES, 40 + np.arange(30))
    if kind == "far numbers":
        x = x * 1e300
    order = np.arange(len(x)) if kind == "as it stands" else rng.permutation(len(x))
    found = sets_of_rows(np.asarray(x[order], dtype=np.float64))
    assert found is not None
    assert found.columns.tolist() == [2, 3, 4]
    same = number[order][:, None] == number[order]
    np.testing.assert_array_equal(found.labels[:, None] == found.labels, same)


def test_what_is_made_of_one_column_or_is_rarely_other_than_zero_tells_no_sets() -> None:
    rng = np.random.default_rng(4)
    age = rng.integers(18, 90, size=500).astype(np.float64)
    hour = rng.integers(0, 24, size=500) * (np.pi / 12)
    sparse = np.zeros((500, 6))
    sparse[rng.integers(0, 500, size=6), np.arange(6)] = 1
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 25), np.linspace(0, 1, 25)), -1).reshape(-1, 2)
    for x in (
        np.column_stack([age, age**2, age // 10, np.abs(age - 50), rng.normal(size=500)]),
        np.column_stack([hour, np.sin(hour), np.cos(hour), rng.normal(size=500)]),
        np.column_stack([np.sin(hour), np.cos(hour), rng.normal(size=500)]),
        np.column_stack([age, sparse]),
        grid,
        rng.integers(0, 256, size=(500, 16)).astype(float),
        rng.normal(size=(240, 3)),
    ):
        assert sets_of_rows(np.asarray(x, dtype=np.float64)) is None


@pytest.mark.parametrize("sizes", [(59, 1), (58, 1, 1), (60, 10, 10, 10, 10), (30, 30), (20, 20, 20)], ids=str)
def test_at_most_half_of_the_rows_are_held_out_whatever_their_groups(sizes: tuple[int, ...]) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(12):
        mask = heldout_rows(len(groups), seed=seed, groups=groups)
        assert 0 < 2 * mask.sum() <= len(groups)
        assert not set(groups[mask]) & set(groups[~mask])
    if len(sizes) > 3:
        assert all(len({*groups[~heldout_rows(len(groups), seed=seed, groups=groups)]}) > 1 for seed in range(12))
