"""How far inputs tell what a rank loses otherwise than through its coordinates: weak dimensions are, noise is not."""

import re
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import isthmus
from isthmus import Verdict
from isthmus.discovery import filled_dimensions
from isthmus.discovery import search as searching
from isthmus.discovery.choices import FORETOLD
from isthmus.discovery.data.problem import pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.evidence.foretold import (
    AlongOneDirection,
    Foretold,
    foretold,
    held_against_leftovers,
    shares_foretold,
)
from isthmus.discovery.factors import Factorisation
from isthmus.discovery.findings import Decision
from isthmus.discovery.halves import INDEX, RANK
from isthmus.discovery.search import Search
from isthmus.training.losses import SQUARED

RNG = np.random.default_rng(0)
N, D = 400, 12
X = RNG.normal(size=(N, D))
NOISE = RNG.normal(size=(N, 2))


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
    assert ("all read 2" in found.reasons) is is_sure, "no doubt beside what speaks for the rank"
    asked = held_against_leftovers(sure, left, ridge=3e-4, asked=True)
    assert is_sure or ("smaller ridges" in found.reasons[0] and "smaller ridges" not in asked.reasons[0])


@pytest.mark.other_types
@pytest.mark.parametrize(
    ("changed", "is_asked"),
    [
        ({}, True),
        ({"most_in": 2}, False),  # what two inputs tell, two coordinates could
        ({"most_out": 2}, False),  # and two targets are two dimensions at most
        ({"linear": True, "lost": 0.0}, True),  # a linear map leaves all that is bent
        ({"loss": SimpleNamespace(is_quadratic=False)}, False),
        ({"kind": INDEX, "most_out": 1}, True),  # one target may depend on many combinations
        ({"kind": INDEX, "most_in": 2}, False),
        ({"dimensions": 1}, False),
    ],
    ids=[
        "asked",
        "all of the inputs",
        "all of the targets",
        "linear",
        "other loss",
        "combinations",
        "all combinations",
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
        "kind": RANK,
    } | changed
    search: Any = Search.__new__(Search)
    known = {name: told[name] for name in ("loss", "most_in", "most_out")}
    search.problem = SimpleNamespace(**known, x=None, autoencoding=False)
    halves = SimpleNamespace(heldout_error=told["lost"], dimensions=told.get("dimensions", 2))
    search.readings, search.scree = SimpleNamespace(ridge=1e-3), {2: halves}
    family = SimpleNamespace(written=str, network_of=str, middle=1, problem=search.problem)
    family.settings = SimpleNamespace(rank_kind=told["kind"])
    search.size = SimpleNamespace(family=family)
    found = Foretold(0.9, 0.0)
    monkeypatch.setattr(Foretold, "of", lambda *_, exact=False: found if exact is told["linear"] else None)
    monkeypatch.setattr(filled_dimensions, "linear_network", lambda *_: "linear network")
    monkeypatch.setattr(searching, "is_linear", lambda *_: told["linear"])
    monkeypatch.setattr(filled_dimensions, "cut_network", lambda *_, **__: "halves")
    unknown = found if told["linear"] else None  # nothing is known of networks through 1
    for rank, left in ((2, found if is_asked else None), (1, unknown)):
        held = search._held_against_leftovers(Decision(rank, Verdict.CONFIDENT, ()))  # noqa: SLF001
        assert search.left_over is left
        assert held.verdict is (Verdict.CONFIDENT if left is None else Verdict.DOUBTFUL)


@pytest.mark.other_types
def test_one_target_of_many_with_a_dimension_of_its_own_is_named() -> None:
    """Of 20 targets one had 5 % of its variance from an input of its own: .25 % of all, a fifth of what noise left."""
    rng = np.random.default_rng(3)
    x, noise = rng.normal(size=(400, 5)), 0.1 * rng.normal(size=(400, 20))
    own = np.zeros((400, 20))
    own[:, 7] = 0.3 * np.sin(1.5 * x[:, 4])
    held = np.arange(400) % 5 == 0
    nothing: Any = Factorisation(lambda x: x[:, :2], lambda z: z.new_zeros(len(z), 20), 2, 1, 0.0)  # pyright: ignore[reportArgumentType]

    def left(residuals: np.ndarray, names: tuple[str, ...] = ()) -> Foretold:
        inputs, targets = Standardiser.of(x), Standardiser.of(residuals, total=True)
        problem = pose(x, residuals, held, loss=SQUARED, inputs=inputs, targets=targets)
        return Foretold.of(nothing, replace(problem, target_names=names))

    named = left(noise + own, tuple("abcdefghijklmnopqrst"))
    assert named.counts
    assert named.target == "the target 'h'"
    said = held_against_leftovers(Decision(2, Verdict.CONFIDENT, ()), named, ridge=3e-4).reasons[0]
    assert "of what is lost of the target 'h' on held-out rows" in said
    assert left(noise + own).target == "the target '7'", "its number, where names are not known"
    assert not left(noise).counts
    assert left(noise).target is None
    through = own.copy()
    through[:, 7] = 0.3 * np.sin(1.5 * x[:, 1])
    assert not left(noise + through).counts, "what the coordinates tell is how training ended"
    everywhere = left(noise + own[:, 7:8])
    assert everywhere.counts
    assert everywhere.target is None, "all targets"


def test_of_noise_no_column_is_told() -> None:
    rng = np.random.default_rng(4)
    for rows, columns in ((40, 3), (60, 30), (300, 100)):
        x, e = rng.normal(size=(rows, 4)), rng.normal(size=(rows, columns))
        fitted = rows * 4 // 5
        each = shares_foretold(x[:fitted], e[:fitted], x[fitted:], e[fitted:])[1]
        assert each.shape == (2, columns)
        assert each.min(axis=0).max() < FORETOLD
    weak = np.sin(2 * x[:, :1]) + 0.3 * e
    total, each = shares_foretold(x[:fitted], weak[:fitted], x[fitted:], weak[fitted:])
    assert total == foretold(x[:fitted], weak[:fitted], x[fitted:], weak[fitted:])
    assert each.min() > 0.5


@pytest.mark.other_types
def test_what_two_nearly_equal_targets_differ_by_is_a_dimension() -> None:
    """A column of the inputs, a twentieth of both targets, was not told: training left as much of what they share."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 4))
    shared = 0.15 * np.sin(3 * x[:, 0]) * rng.normal(size=400)
    residuals = np.column_stack([shared, shared + 0.07 * x[:, 1]]) - 0.035 * x[:, 1:2]
    signs: Any = Factorisation(lambda x: x[:, :1], lambda z: z.sign() @ z.new_full((1, 2), 0.5**0.5), 1, 1, 0.0)  # pyright: ignore[reportArgumentType]

    def left(residuals: np.ndarray) -> Foretold:
        # in units of which the targets have a total variance of 1, and nothing is off in the mean
        y = np.sign(x[:, :1]) * 0.5**0.5 + residuals
        targets = Standardiser(np.zeros(2), np.ones(2), np.arange(2))
        inputs = Standardiser(np.zeros(4), np.ones(4), np.arange(4))
        return Foretold.of(signs, pose(x, y, np.arange(400) % 5 == 0, loss=SQUARED, inputs=inputs, targets=targets))

    found = left(residuals)
    assert found.counts
    assert found.target == "a combination of the targets"
    assert "of what is lost of a combination of the targets on held-out rows" in found.words
    assert not left(0.05 * residuals).counts, "less than a hundred-thousandth of both is what rounding leaves"
    assert not left(residuals[:, :1] * [1.0, 1.0]).counts, "control: nothing but noise of what they share"


def autoencoded(
    x: np.ndarray, kept: int, *, weight: np.ndarray | None = None, exact: bool = False
) -> AlongOneDirection:
    """What the first principal components leave along one direction."""
    scaled = Standardiser.of(x)
    problem = pose(
        x,
        x,
        np.arange(len(x)) % 5 == 0,
        loss=SQUARED,
        inputs=scaled,
        targets=Standardiser.of(x, total=True),
        weight=weight,
    )
    back = torch.linalg.svd(problem.x.double(), full_matrices=False)[2][:kept]
    halves: Any = Factorisation(lambda x: x @ back.T, lambda z: z @ back / x.shape[1] ** 0.5, kept, 1, 0.0)  # pyright: ignore[reportArgumentType]
    return AlongOneDirection.of(halves, problem, exact=exact)


@pytest.mark.other_types
def test_a_factor_too_weak_for_its_ridge_is_what_is_lost_along_one_direction() -> None:
    """An independent factor of .3 % of 16 columns was left out of 2 curved dimensions, sure, at 99.8 %."""
    rng = np.random.default_rng(6)
    z, along = rng.normal(size=(500, 3)), rng.normal(size=(3, 16))
    x = z[:, :2] @ along[:2] + 0.1 * z[:, 2:] @ along[2:]
    noise = rng.normal(size=(500, 16))
    weak = autoencoded(x + 0.02 * noise, 2)
    assert weak.counts
    assert weak.more > 0.7
    assert re.search("9.% lies along one direction, and these coordinates tell .% of that", weak.words)
    assert not autoencoded(z[:, :2] @ along[:2] + 0.1 * noise, 2).counts, "noise lies along all"
    bent = z[:, :2] @ along[:2] + 0.1 * (z[:, :1] ** 2 - 1) @ along[2:]
    assert not autoencoded(bent + 0.02 * noise, 2).counts, "what coordinates tell is how training ended"
    of_one = x[:, :1] * 0 + z[:, :2] @ along[:2] + 0.02 * noise * ([12] + [1] * 15)
    assert not autoencoded(of_one, 2).counts, "the noise of one column"
    assert not autoencoded(x[:, :5] + 0.02 * noise[:, :5], 2).counts, "along three directions noise has one as well"
    assert autoencoded(x, 3).more == 0, "next to nothing is lost"
    assert autoencoded(x, 3, exact=True).more == 0, "nor of a linear map more than rounding"
    faint = z[:, :2] @ along[:2] + 0.02 * z[:, 2:] @ along[2:] + 0.002 * noise
    assert autoencoded(faint, 2, exact=True).counts, "a linear map leaves no more than there is,"
    assert autoencoded(faint, 2).more == 0, "a network what its training does"
    weights = np.where(np.arange(500) < 400, 1.0, 1e-9)
    other = np.where(np.arange(500)[:, None] < 400, z[:, :2] @ along[:2] + 0.1 * noise, x + 0.02 * noise)
    assert not autoencoded(other, 2, weight=weights).counts, "rows that hardly weigh"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a linear map", "one combination", "one target of twenty"])
def test_what_is_weak_is_not_left_out_without_a_doubt(kind: str) -> None:
    """Each was sure of a dimension less, at 99.4 %: of a product of three inputs, or of what one target has alone."""
    rng = np.random.default_rng(102)
    x, truth = rng.normal(size=(400, 6)), 3
    product = x[:, 0] * x[:, 1] * x[:, 2]
    if kind == "a linear map":
        y = x @ rng.normal(size=(6, 2)) @ rng.normal(size=(2, 5)) + 0.12 * product[:, None] * rng.normal(size=5)
    elif kind == "one combination":
        y, truth = np.tanh(x[:, 3]) + 0.1 * product, 4
    else:
        y = np.tanh(x[:, :2] @ rng.normal(size=(2, 8))) @ rng.normal(size=(8, 20))
        y = y / y.std(axis=0)
        y[:, 19] += 0.25 * np.sin(1.5 * x[:, 5])
        y += 0.1 * rng.normal(size=y.shape)
    found = isthmus.discover(x, y, effort="quick", workers=1)
    assert found.rank == truth or "further dimension" in found.reasons[0], found.summary()
    assert found.rank == truth or found.verdict is Verdict.DOUBTFUL
