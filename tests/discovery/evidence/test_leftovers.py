"""What residuals still say of other combinations: linear and square ones are seen, chance and unequal rows are not."""

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import isthmus
from isthmus import Limits, Verdict
from isthmus.discovery import filled_dimensions
from isthmus.discovery import search as searching
from isthmus.discovery.choices import FORETOLD
from isthmus.discovery.data.problem import pose
from isthmus.discovery.data.scaling import MOST_COMPARED, Standardiser
from isthmus.discovery.evidence.leftovers import Foretold, foretold, held_against_leftovers, leftover, told_by_others
from isthmus.discovery.factors import Factorisation
from isthmus.discovery.findings import Decision
from isthmus.discovery.halves import INDEX, RANK
from isthmus.discovery.search import Search
from isthmus.training.losses import SQUARED

RNG = np.random.default_rng(0)
N, D = 400, 12
X = RNG.normal(size=(N, D))
A = np.eye(D)[:1]
NOISE = RNG.normal(size=(N, 2))


def test_noise_of_unequal_rows_is_chance_and_so_is_what_the_coordinate_itself_left() -> None:
    unequal = NOISE * (1 + X[:, 1:2] ** 2)
    curved = 0.5 * (X[:, :1] ** 3 - X[:, :1]) + NOISE
    for residuals in (NOISE, unequal, curved):
        found = leftover(X, A, residuals)
        assert found is not None
        assert found.deviations < 4
        assert not found.counts


@pytest.mark.parametrize("weak", [X[:, 3:5].sum(1, keepdims=True), X[:, 3:4] ** 2 - 1], ids=["linear", "square"])
def test_a_weak_combination_that_was_not_found_is_seen(weak: np.ndarray) -> None:
    found = leftover(X, A, 0.5 * weak + NOISE)
    assert found is not None
    assert found.counts
    assert found.deviations > 8
    theirs = leftover(X, np.vstack([A, np.eye(D)[3:5]]), 0.5 * weak + NOISE)
    assert theirs is not None
    assert not theirs.counts, "it is one of the combinations"


def test_its_share_is_that_of_the_residuals() -> None:
    found = leftover(X, A, X[:, 3:4] + NOISE[:, :1])
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.08)


def test_what_is_small_does_not_count_however_sure_it_is() -> None:
    x = RNG.normal(size=(20_000, 3))
    found = leftover(x, np.eye(3)[:1], 0.15 * x[:, 1:2] + RNG.normal(size=(20_000, 1)))
    assert found is not None
    assert found.deviations > 6
    assert not found.counts


def test_few_rows_nothing_left_and_exact_fits_say_nothing() -> None:
    assert leftover(X[:40], A, NOISE[:40]) is None
    assert leftover(X, np.eye(D), NOISE) is None
    assert leftover(X, A, np.zeros((N, 1))) is None
    doubled = leftover(np.hstack([X, X]), np.hstack([A, A]), NOISE)
    assert doubled is not None
    assert not doubled.counts


@pytest.mark.slow
def test_an_answer_that_misses_a_weak_combination_is_in_doubt_and_says_so() -> None:
    y = X[:, 0] ** 2 + 0.35 * X[:, 3] + 0.6 * NOISE[:, 0]
    asked = {"ridge": 0.03, "starts": 1, "effort": "quick", "workers": 1, "limits": Limits(evaluations=250)}
    found = isthmus.discover(X, y, **asked)  # pyright: ignore[reportArgumentType]
    assert (found.rank, found.verdict) == (1, Verdict.DOUBTFUL)
    assert "depends on other combinations of the inputs too" in found.reasons[-1]
    weighted = isthmus.discover(X, y, sample_weight=np.ones(N), **asked)  # pyright: ignore[reportArgumentType]
    assert "other combinations" not in " ".join(weighted.reasons), "residuals of weighted rows are not asked"


def linear_map(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A of the least squares, and what they leave."""
    lifted = np.column_stack([x, np.ones(len(x))])
    found = np.linalg.lstsq(lifted, y, rcond=None)[0]
    return found[:-1].T, y - lifted @ found


@pytest.mark.parametrize("frequency", [1.5, 3.0, 5.0])
@pytest.mark.parametrize("turned", [False, True])
def test_a_weak_wave_of_a_column_that_a_linear_map_leaves_is_seen(frequency: float, turned: bool) -> None:
    """y = 2 x0 + .1 cos 3 x1 had been linear, for sure; the rows that are searched may be turned."""
    a, residuals = linear_map(X, 2 * X[:, :1] + 0.1 * np.cos(frequency * X[:, 1:2]) + 0.02 * NOISE[:, :1])
    turn = np.linalg.qr(RNG.normal(size=(D, D)))[0] if turned else np.eye(D)
    found = leftover(X @ turn, a @ turn, residuals, columns=X)
    assert found is not None
    assert found.counts


@pytest.mark.parametrize("kind", ["noise", "unequal", "its own wave", "rounded"])
@pytest.mark.parametrize("inputs", ["normal", "uniform", "whole numbers"])
def test_what_a_linear_map_may_leave_is_no_other_combination(kind: str, inputs: str) -> None:
    rng = np.random.default_rng(3)
    draw = {"normal": rng.normal, "uniform": rng.uniform, "whole numbers": lambda size: rng.integers(0, 4, size) * 1.0}
    x = np.asarray(draw[inputs](size=(N, 6)))
    z = x @ (rng.normal(size=(6, 1)) + 6 * np.eye(6)[:, :1])  # nearly one column: waves of it are near those of z
    left = {
        "noise": 0.1 * rng.normal(size=(N, 1)),
        "unequal": 0.1 * rng.normal(size=(N, 1)) * (1 + np.abs(x[:, :1])),
        "its own wave": 0.05 * np.cos(3 * z / z.std()) + 0.01 * rng.normal(size=(N, 1)),
        "rounded": np.round(z, 1) - z,
    }
    a, residuals = linear_map(x, z + left[kind])
    found = leftover(x, a, residuals, columns=x)
    assert found is None or not found.counts


@pytest.mark.slow
def test_a_task_with_a_weak_wave_is_not_called_linear_for_sure() -> None:
    """Of 600 rows of 8 columns; without the wave it is, and a bent coordinate is none."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 8))
    wave = isthmus.discover(x, 2 * x[:, 0] + 0.1 * np.cos(3 * x[:, 1]), effort="quick", workers=1)
    assert wave.verdict is not Verdict.CONFIDENT
    assert any("linear map leaves over depends on other combinations" in reason for reason in wave.reasons)
    plain = isthmus.discover(x, 2 * x[:, 0] + 0.02 * rng.normal(size=600), effort="quick", workers=1)
    assert plain.verdict is Verdict.CONFIDENT


WEAK = {"column": X[:, 1], "product": X[:, 1] * X[:, 2], "sine": np.sin(2 * X[:, 1])}


@pytest.mark.parametrize("kind", WEAK)
def test_inputs_foretell_what_a_further_dimension_does_and_coordinates_do_not(kind: str) -> None:
    x, weak = X[:, :4], np.outer(WEAK[kind], [1.0, -2.0])
    residuals = weak / weak.std() + 0.3 * NOISE

    def told_by(columns: np.ndarray) -> float:
        return foretold(columns[:300], residuals[:300], columns[300:], residuals[300:])

    assert 0.5 < told_by(x) < 0.95  # 1 / 1.09 of the variance is that of the weak dimension
    assert told_by(x[:, :1]) < 0.1
    assert Foretold(told_by(x), told_by(x[:, :1])).counts


def test_noise_is_foretold_by_nothing_and_units_and_means_do_not_matter() -> None:
    assert foretold(X[:300], NOISE[:300], X[300:], NOISE[300:]) < 0.05
    weak = WEAK["product"][:, None] + 0.3 * NOISE
    one = foretold(X[:300, :3], weak[:300], X[300:, :3], weak[300:])
    units = 10.0 ** np.arange(-3, 0)
    other = foretold(X[:300, :3] * units + 5, 1e-4 * weak[:300] + 1, X[300:, :3] * units + 5, 1e-4 * weak[300:] + 1)
    assert other == pytest.approx(one, abs=1e-6)


def test_of_many_rows_some_are_fitted_and_nothing_that_varies_is_no_error() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 2))
    residuals = x[:, :1] * x[:, 1:]
    assert foretold(x[:4000], residuals[:4000], x[4000:], residuals[4000:]) > 0.9
    assert foretold(x[:40] * 0, residuals[:40] * 0, x[40:50] * 0, residuals[40:50] * 0) <= 1


def test_many_held_out_rows_are_told_in_parts() -> None:
    """200,000 of them took 1.6 GB."""
    x = RNG.normal(size=(10_000, 2))
    residuals = x[:, :1] * x[:, 1:]
    tracemalloc.start()
    told = foretold(x[:200], residuals[:200], x, residuals)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told > 0.9
    assert peak < 10_000 * 200 * 8 * 2, "twice the products of all rows; it had been three times"


@pytest.mark.other_types
def test_what_rows_that_hardly_weigh_leave_over_is_not_asked() -> None:
    """Rows of another law, of weight .001, had told a further dimension."""
    x, odd = X[:, :3], X[:, 2] > 0.8
    residuals = 0.1 * NOISE + np.outer(odd * X[:, 1], [3.0, -2.0])
    weight = np.where(odd, 1e-6, 1.0)

    def told(*weights: np.ndarray) -> float:
        return foretold(x[:300], residuals[:300], x[300:], residuals[300:], *weights)

    assert told() > FORETOLD
    assert told(weight[:300], weight[300:]) < 0.1
    assert told(np.full(300, 0.2), np.full(100, 7.0)) == pytest.approx(told())
    weak = residuals + 0.3 * np.outer(X[:, 0], [1.0, 1.0])
    few, many = np.flatnonzero(~odd[:300]), 300 + np.flatnonzero(~odd[300:])
    alone = foretold(x[few], weak[few], x[many], weak[many])
    beside = foretold(x[:300], weak[:300], x[300:], weak[300:], weight[:300], weight[300:])
    assert beside == pytest.approx(alone, abs=0.01)
    inputs, targets, held = Standardiser.of(x), Standardiser.of(residuals, total=True), np.arange(N) >= 300
    nothing: Any = Factorisation(lambda x: x[:, :1], lambda z: 0 * z, 1, 1, 0.0)  # pyright: ignore[reportArgumentType]
    for given, counts in ((None, True), (weight, False)):
        problem = pose(x, residuals, held, loss=SQUARED, inputs=inputs, targets=targets, weight=given)
        assert Foretold.of(nothing, problem).counts is counts


@pytest.mark.parametrize(
    ("left", "is_sure"),
    [
        (None, True),
        (Foretold(FORETOLD - 0.01, 0.0), True),
        (Foretold(FORETOLD - 0.01, -1.0), True),  # what the coordinates make worse is no evidence
        (Foretold(0.9, 0.9 - FORETOLD + 0.01), True),
        (Foretold(FORETOLD + 0.01, 0.0), False),
    ],
    ids=["unknown", "little", "little-worse", "told-by-both", "told-by-inputs"],
)
def test_a_rank_is_in_doubt_where_inputs_tell_more_than_its_coordinates(left: Foretold | None, is_sure: bool) -> None:
    sure = Decision(2, Verdict.CONFIDENT, ("all read 2",))
    found = held_against_leftovers(sure, left, ridge=3e-4)
    assert found.rank == 2
    assert found.verdict is (Verdict.CONFIDENT if is_sure else Verdict.DOUBTFUL)
    assert is_sure or ("further dimension" in found.reasons[0] and "0.0003" in found.reasons[0])
    asked = held_against_leftovers(sure, left, ridge=3e-4, asked=True)
    assert is_sure or ("smaller ridges" in found.reasons[0] and "smaller ridges" not in asked.reasons[0])


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("changed", "is_asked"),
    [
        ({}, True),
        ({"lost": 1e-3}, False),
        ({"most_in": 2}, False),  # what two inputs tell, two coordinates could
        ({"most_out": 2}, False),  # and two targets are two dimensions at most
        ({"linear": True}, False),
        ({"loss": SimpleNamespace(is_quadratic=False)}, False),
        ({"classes": True}, False),
        ({"kind": INDEX}, False),
        ({"dimensions": 1}, False),
    ],
    ids=[
        "asked",
        "exact",
        "all of the inputs",
        "all of the targets",
        "linear",
        "other loss",
        "classes",
        "index",
        "fewer dimensions",
    ],
)
def test_what_is_lost_is_asked_of_curved_coordinates_fewer_than_inputs_and_targets(
    changed: dict[str, Any], is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "lost": 2e-3,
        "most_in": 3,
        "most_out": 3,
        "linear": False,
        "loss": SQUARED,
        "classes": False,
        "kind": RANK,
    } | changed
    search: Any = Search.__new__(Search)
    known = {name: told[name] for name in ("loss", "most_in", "most_out", "classes")}
    search.problem = SimpleNamespace(**known, x=None, autoencoding=False)
    halves = SimpleNamespace(heldout_error=told["lost"], dimensions=told.get("dimensions", 2))
    search.readings, search.scree = SimpleNamespace(ridge=1e-3), {2: halves}
    family = SimpleNamespace(written=str, network_of=str, middle=1, problem=search.problem)
    family.settings = SimpleNamespace(rank_kind=told["kind"])
    search.size = SimpleNamespace(family=family)
    found = Foretold(0.9, 0.0)
    monkeypatch.setattr(Foretold, "of", lambda *_: found)
    monkeypatch.setattr(searching, "is_linear", lambda *_: told["linear"])
    monkeypatch.setattr(filled_dimensions, "cut_network", lambda *_, **__: "halves")
    for rank, left in ((2, found if is_asked else None), (1, None)):  # nothing is known of 1
        held = search._held_against_leftovers(Decision(rank, Verdict.CONFIDENT, ()))  # noqa: SLF001
        assert search.left_over is left
        assert held.verdict is (Verdict.CONFIDENT if left is None else Verdict.DOUBTFUL)


def test_columns_tell_of_each_other_where_they_share_factors_and_noise_tells_of_none() -> None:
    rng = np.random.default_rng(1)
    factors, noise = rng.normal(size=(400, 5)), rng.normal(size=(400, 28))
    waves = np.sin(0.7 * factors @ rng.normal(size=(5, 28)) + rng.uniform(0, 6, 28))
    assert told_by_others(waves + 0.25 * noise).sum() > 20
    assert told_by_others(np.hstack([waves, noise])).tolist()[28:] == [False] * 28
    assert not told_by_others(noise).any()
    assert not told_by_others(noise[:60]).any(), "nor of as few rows as that, in halves of 30"
    assert told_by_others(np.hstack([noise[:, :1]] * 2)).all()
    assert not told_by_others(noise[:, :1]).any(), "one has no others"
    assert not told_by_others(noise[:, :0]).any()
    assert told_by_others(np.hstack([waves, np.zeros((400, 1))])).tolist()[-1] is False, "nor does what is constant"
    many = np.hstack([waves[:, :1] + 0.1 * noise[:, :1]] * (MOST_COMPARED + 1))
    assert 0 < told_by_others(many).sum() <= MOST_COMPARED
