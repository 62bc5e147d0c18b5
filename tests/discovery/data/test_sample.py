"""Which of many rows are searched, and what the others say of an answer."""

import dataclasses

import numpy as np
import pytest
import torch

import isthmus
from isthmus import Limits
from isthmus.discovery.asked import rows_argument
from isthmus.discovery.data import sample as module
from isthmus.discovery.data.checking import CheckedData, checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.settings import Settings
from isthmus.errors import DataError
from isthmus.reports import verdict_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 3))
SETTINGS = Settings()


def data(y: np.ndarray | None = None, loss: str | None = None, weight: np.ndarray | None = None) -> CheckedData:
    return checked_data(X, y, loss, weight)


@pytest.mark.parametrize("settings", [SETTINGS, dataclasses.replace(SETTINGS, ordered=True)])
@pytest.mark.parametrize("most", [20, 333, 999, 1000, 5000])
def test_no_more_rows_are_taken_than_asked_for_and_each_once(settings: Settings, most: int) -> None:
    found = Sample.of(data(), settings, most=most)
    assert len(found.held) == len(found.data.x) == int(found.taken.sum()) <= min(most, 1000)
    assert len(found.held) >= min(most, 1000) / 2
    assert np.array_equal(found.data.x, X[found.taken])
    assert found.num_unseen == 1000 - len(found.held)


def test_a_sample_of_all_rows_is_the_data_themselves() -> None:
    everything = data()
    assert Sample.of(everything, SETTINGS, most=1000).data is everything
    assert Sample.of(everything, SETTINGS, most=999).data is not everything
    small = Sample.of(everything, SETTINGS, most=50).data
    assert small.y is small.x


def test_other_rows_in_their_place_keep_the_split_and_the_groups() -> None:
    """The surrogate of a sample with groups could not be cut into fifths, hours after the search began."""
    labels = np.arange(1000) // 10
    found = Sample.of(data(), SETTINGS, groups=labels, most=300)
    others = found.of_others(checked_data(RNG.normal(size=(300, 3)), None, None))
    assert others.num_unseen == 0
    assert len(others.folds(SETTINGS, 5)) == 5
    assert [part.held.tolist() for part in others.folds(SETTINGS, 5)] == [
        part.held.tolist() for part in found.folds(SETTINGS, 5)
    ]
    assert others.groups is not None
    assert others.groups.tolist() == labels[found.taken].tolist()


def test_rows_that_repeat_others_are_one_row_by_the_weight_of_all() -> None:
    """Noise in 40 rows, each about 15 times, was 3 dimensions with confidence: copies of fitted rows were held out."""
    rows, own = RNG.integers(0, 40, 600), RNG.uniform(0.5, 2.0, size=600)
    x, y = X[rows], np.sin(X[rows])
    for weight in (None, own):
        sample = Sample.of(checked_data(x, y, None, weight), SETTINGS)
        assert (len(sample.held), sample.data.num_copies) == (40, 560)
        total = np.bincount(rows, weights=weight, minlength=40)
        assert sample.data.weight is not None
        for row, value, number in zip(sample.data.x, sample.data.weight, sample.data.numbers, strict=True):  # type: ignore[arg-type]  # pyright: ignore
            assert value == pytest.approx(total[rows[number]])
            assert (row == x[number]).all()
        assert sample.data.weight.sum() == pytest.approx(600 if weight is None else own.sum())
        assert "560 of 600 rows repeat others: the 40 that differ" in sample.everything.notes()[0]
    kept = Sample.of(checked_data(x, y, None), dataclasses.replace(SETTINGS, ordered=True))
    grouped = Sample.of(checked_data(x, y, None), SETTINGS, groups=rows)
    assert len(kept.held) == len(grouped.held) == 600, "control: there the split itself keeps them together"
    assert not Sample.of(data(), SETTINGS).data.num_copies


@pytest.mark.parametrize("differ", [2, 3])
def test_fewer_than_three_rows_that_differ_are_refused_in_words(differ: int) -> None:
    x = np.tile(RNG.normal(size=(differ, 20)), (100, 1))
    if differ > 2:
        assert len(Sample.of(checked_data(x, x[:, :2], None), SETTINGS).held) == differ
        return
    with pytest.raises(DataError, match=r"has 2 rows that differ, of 200; needs at least 3"):
        Sample.of(checked_data(x, x[:, :2], None), SETTINGS)


def test_losses_of_copies_are_those_of_the_rows_they_repeat() -> None:
    rows = RNG.integers(0, 40, 600)
    x, y = X[rows], np.sin(X[rows])
    whole = Sample.of(checked_data(x, y, None), SETTINGS).posed(SETTINGS)
    assert whole is not None
    network = torch.nn.Linear(3, 3, dtype=torch.float64)
    everything = whole.on_all_rows()
    assert everything.weight is not None
    with torch.no_grad():
        each = (network(everything.x.double()) - everything.y.double()).square().sum(1)
        mean = float(each @ everything.weight)
        z = torch.from_numpy(whole.inputs.apply(x)).float().double()
        assert whole.targets is not None
        t = torch.from_numpy(whole.targets.apply(y)).float().double()
        assert mean == pytest.approx(float((network(z) - t).square().sum(1).mean()), rel=1e-6)


def test_a_larger_sample_holds_the_smaller_one() -> None:
    small = Sample.of(data(), SETTINGS, most=100)
    large = small.larger(4, SETTINGS)
    assert (len(large.held), large.larger(4, SETTINGS).num_unseen) == (400, 0)
    assert not (small.taken & ~large.taken).any()
    other = Sample.of(data(), dataclasses.replace(SETTINGS, seed=1), most=400)
    assert (small.taken & ~other.taken).any()


def test_a_time_series_is_thinned_evenly() -> None:
    taken = np.flatnonzero(Sample.of(data(), dataclasses.replace(SETTINGS, ordered=True), most=250).taken)
    assert np.diff(taken).tolist() == [4] * 249


def test_every_class_keeps_its_share() -> None:
    labels = np.repeat([0, 1, 2], [900, 90, 10])
    found = Sample.of(data(labels, "cross_entropy"), SETTINGS, most=100)
    assert np.bincount(found.data.y.astype(int)).tolist() == [90, 9, 1]
    by_chance = np.bincount(labels[np.random.default_rng(2).permutation(1000)[:100]], minlength=3)
    assert by_chance.tolist() != [90, 9, 1]


def test_groups_stay_whole_and_on_one_side() -> None:
    labels = np.arange(1000) // 25
    found = Sample.of(data(), SETTINGS, groups=labels, most=310)
    own = labels[found.taken]
    assert np.unique(own, return_counts=True)[1].tolist() == [25] * 12
    assert not set(own[found.held]) & set(own[~found.held])
    with pytest.raises(DataError, match=r"one label per row, 1000; got shape \(999,\)"):
        Sample.of(data(), SETTINGS, groups=labels[1:], most=310)


@pytest.mark.parametrize("groups", [None, np.arange(1000) // 25])
@pytest.mark.parametrize("most", [None, 300])
def test_without_its_held_out_rows_others_are_held_out(groups: np.ndarray | None, most: int | None) -> None:
    weight = RNG.uniform(1, 2, size=1000)
    found = Sample.of(data(weight=weight), SETTINGS, groups=groups, most=most)
    inner = found.without_held(SETTINGS)
    assert np.array_equal(inner.data.x, found.data.x[~found.held])
    assert np.array_equal(inner.data.x, X[inner.taken])
    assert len(inner.held) == len(inner.data.x)
    assert 0.1 < inner.held.mean() < 0.3
    assert inner.data.weight is not None
    assert np.array_equal(inner.held_weight, inner.data.weight[inner.held])
    if groups is not None:
        own = groups[inner.taken]
        assert not set(own[inner.held]) & set(own[~inner.held])
    assert not set(map(tuple, inner.data.x)) & set(map(tuple, found.data.x[found.held]))
    assert np.array_equal(Sample.of(data(), SETTINGS).held_weight, np.ones(200))


def test_of_the_one_group_that_is_left_any_rows_are_held_out() -> None:
    found = Sample.of(data(), SETTINGS, groups=np.arange(1000) // 500)
    inner = found.without_held(SETTINGS)
    assert 0 < inner.held.sum() < len(inner.held) == 500


@pytest.mark.parametrize("loss", ["squared", "poisson", "cross_entropy", "gaussian"])
def test_the_error_of_unseen_rows_is_that_of_one_pass_over_all_of_them(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 77)
    y = RNG.integers(0, 3, size=1000) if loss == "cross_entropy" else RNG.poisson(4.0, size=(1000, 2)).astype(float)
    weight = RNG.uniform(0.5, 2.0, size=1000)
    found = Sample.of(data(y, loss, weight), SETTINGS, most=300)
    problem = found.posed(SETTINGS)
    assert problem is not None
    network = torch.nn.Linear(3, problem.d_out, dtype=torch.float64)
    left = ~found.taken
    weighted, plain = (problem.with_held(X[left], found.everything.y[left], w) for w in (weight[left], None))
    whole, unweighted = (
        one.heldout_error(network) / (one.heldout_error_of_constant() if problem.loss.is_quadratic else 1.0)
        for one in (weighted, plain)
    )
    assert found.unseen_error(problem, network) == pytest.approx(whole, rel=1e-12)
    assert abs(unweighted - whole) > 1e-6 * whole


def test_the_error_of_unseen_rows_is_a_share_of_their_own_variance() -> None:
    """That of the sample is another where a few rows hold most of it."""
    y = np.exp(3 * X[:, :2])
    found = Sample.of(checked_data(X, y, None), SETTINGS, most=200)
    problem = found.posed(SETTINGS)
    assert problem is not None
    left, constant = ~found.taken, problem.best_constant()
    network = torch.nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        network.weight.zero_()
        network.bias.copy_(constant)
    assert found.unseen_error(problem, network) == pytest.approx(1.0, rel=1e-12)
    assert not 0.9 < problem.with_held(X[left], y[left], None).heldout_error(network) < 1.1, (
        "of the variance of the sample"
    )


def test_of_a_series_only_rows_between_held_out_ones_check_the_answer() -> None:
    """The others lie beside a row that was fitted: what resembles its neighbours is predicted by them."""
    settings = dataclasses.replace(SETTINGS, ordered=True)
    found = Sample.of(data(), settings, most=200)
    trained, held = (np.flatnonzero(found.taken)[part] for part in (~found.held, found.held))
    checked = np.flatnonzero(found.unseen)
    assert 0 < len(checked) < found.num_unseen
    for row in checked:
        assert {row - row % 5, row - row % 5 + 5} <= set(held.tolist())
    assert np.abs(checked[:, None] - trained).min() > 5, "a fitted row is farther off than the step of the sample"
    beside = np.flatnonzero(~found.taken & ~found.unseen)
    assert np.abs(beside[:, None] - trained).min() < 5, "control"
    assert Sample.of(data(), SETTINGS, most=200).unseen.sum() == 800
    assert not Sample.of(data(), settings, most=1000).unseen.any()


def test_a_series_whose_held_out_rows_have_nothing_between_them_is_not_checked() -> None:
    settings = dataclasses.replace(SETTINGS, ordered=True)
    found = Sample.of(data(), settings, most=20)
    assert len(np.flatnonzero(found.held)) == 4
    assert found.unseen.sum() == 49 * int((np.diff(np.flatnonzero(found.held)) == 1).sum())


@pytest.mark.parametrize("most", [200, None])
def test_rows_keep_their_numbers_where_others_are_left_out(most: int | None) -> None:
    weight = np.where(np.arange(1000) % 3 == 0, 0.0, 1.0)
    problem = Sample.of(data(X[:, :2], weight=weight), SETTINGS, most=most).posed(SETTINGS)
    assert problem is not None
    given = problem.inputs.restore(problem.x.double().numpy())
    np.testing.assert_allclose(given, X[list(problem.rows)], rtol=1e-4, atol=1e-6)
    assert list(problem.rows) != list(range(len(problem.rows))), "control"


def test_all_rows_together_keep_the_weights_that_were_given() -> None:
    weight = np.where(np.arange(1000) < 500, 1.0, 1000.0)
    sample = Sample.of(data(X[:, :2], weight=weight), SETTINGS)
    problem = sample.posed(SETTINGS)
    assert problem is not None
    whole = problem.on_all_rows()
    assert whole.weight is not None
    order = np.concatenate([np.flatnonzero(~sample.held), np.flatnonzero(sample.held)])
    np.testing.assert_allclose(whole.weight.numpy(), weight[order] / weight.sum(), rtol=1e-12)
    by_number = len(problem.x) / 1000
    assert abs(problem.trained_share - by_number) > 1e-3, "control: rows held out weigh another share"  # pyright: ignore


def test_rows_given_anew_are_posed_as_the_held_out_ones_were() -> None:
    y = RNG.poisson(4.0, size=(1000, 2)).astype(float)
    for loss in ("squared", "poisson"):
        found = Sample.of(data(y, loss), SETTINGS, most=300)
        problem = found.posed(SETTINGS)
        assert problem is not None
        again = problem.with_held(found.data.x[found.held], found.data.y[found.held], None)
        assert torch.equal(again.x_held, problem.x_held)
        assert torch.allclose(again.y_held, problem.y_held, rtol=1e-6)


@pytest.mark.parametrize("rows", [19, 0, -1])
def test_a_number_of_rows_that_is_none_is_refused(rows: int) -> None:
    with pytest.raises(ValueError, match="whole number of at least 20"):
        rows_argument(rows, 3)


def test_more_columns_ask_for_more_rows() -> None:
    assert [rows_argument(None, columns) for columns in (3, 1000, 4900)] == [10_000, 10_000, 49_000]
    assert rows_argument(77, 4900) == 77


@pytest.mark.slow
def test_a_discovery_of_a_sample_is_checked_on_the_others() -> None:
    y = np.tanh(X[:, :1]) @ np.ones((1, 2)) + 0.01 * RNG.normal(size=(1000, 2))
    found = isthmus.discover(
        X, y, rows=200, effort="quick", ridge=[3e-3, 1e-3], workers=1, limits=Limits(evaluations=200)
    )
    assert [found.settings[name] for name in ("rows", "unseen_rows", "first_rows")] == [200, 800, 200]
    seen = Sample.of(checked_data(X, y, None), SETTINGS, most=200)
    off = float(((found.predict(X[~seen.taken]) - y[~seen.taken]) ** 2).mean() / y[seen.taken].var())
    assert found.readings["unseen_error"] == pytest.approx(off, rel=0.05)
    line = next(line.text for line in verdict_of(found).lines if line.label == "Rows")
    assert line.startswith("200 of 1,000 were searched; on the others")


@pytest.mark.slow
def test_a_sample_that_lacks_what_the_others_hold_is_in_doubt() -> None:
    x = np.concatenate([X, RNG.normal(size=X.shape)])
    y = np.tanh(x[:, :1]) @ np.ones((1, 2))
    taken = Sample.of(checked_data(x, y, None), SETTINGS, most=200).taken
    y[~taken] = np.tanh(x[~taken, 1:2])  # of another column
    found = isthmus.discover(
        x, y, rows=200, effort="quick", ridge=[3e-3, 1e-3], workers=1, limits=Limits(evaluations=200)
    )
    assert found.verdict is not isthmus.Verdict.CONFIDENT
    assert any("the sample lacks what they hold" in reason for reason in found.reasons)


@pytest.mark.parametrize("kind", ["equal inputs", "most columns", "measured inputs"])
def test_rows_that_share_their_inputs_stay_on_one_side_unless_groups_say_otherwise(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four replicates of runs with shifts of their own were 5 dimensions for 2, confidently: .008 missed for .9."""
    rng, run = np.random.default_rng(0), np.repeat(np.arange(60), 4)
    x = rng.normal(size=(60, 5))[run]
    if kind == "most columns":
        x = np.column_stack([x, np.tile(np.arange(4.0), 60)])
    if kind == "measured inputs":
        x = x + 1e-3 * rng.normal(size=x.shape)
    data = checked_data(x, rng.normal(size=(240, 2)), None)
    sample = Sample.of(data, Settings())
    assert sample.by_inputs
    assert not set(run[sample.held]) & set(run[~sample.held])
    told = {
        "equal inputs": "240 rows have 60 different inputs",
        "most columns": "The inputs are 60 sets of rows whose values are the same in most columns",
        "measured inputs": "The inputs are 60 sets of rows that hardly differ, far from each other",
    }
    assert sample.notes()[-1].startswith(f"{told[kind]}: such rows are held out together")
    together = sample.together
    assert together is not None
    assert len(np.unique(together)) == 60
    assert {run[part.held].size for part in sample.folds(Settings(), 5)} == {48}
    monkeypatch.setattr(module, "MOST_IN_SETS", 239)
    assert Sample.of(data, Settings()).by_inputs == (kind == "equal inputs"), "rows on disk are not copied"
    monkeypatch.undo()
    for other in (
        Sample.of(data, Settings(), groups=np.arange(240)),
        Sample.of(data, Settings(ordered=True)),
        Sample.of(checked_data(rng.normal(size=(240, 5)), data.y, None), Settings()),
    ):
        assert not other.by_inputs
        assert other.notes() == []


@pytest.mark.parametrize(("groups", "told"), [(2, "1 group held out of 2"), (8, "2 groups held out of 8"), (30, "")])
def test_errors_that_rest_on_few_groups_say_so(groups: int, told: str) -> None:
    """Of eight trajectories two are held out: what was told was a 45th to 2.7 times the error of new ones."""
    data = checked_data(X[:240], X[:240, :2], None)
    notes = Sample.of(data, Settings(), groups=np.arange(240) % groups).notes()
    assert notes == [] if not told else notes[0].startswith(f"Errors rest on {told}")


@pytest.mark.parametrize("most", [None, 120])
def test_several_series_given_as_one_are_told_from_where_on(most: int | None) -> None:
    """Held-out blocks of each lie among fitted rows of the same: errors are those of series that were seen."""
    t = np.arange(60) * 0.05
    several = np.concatenate([np.stack([np.cos(t + 2 * i), np.sin(t + 2 * i), t * i], 1) for i in range(4)])
    notes = Sample.of(checked_data(several, None, None), Settings(ordered=True), most=most).notes()
    assert len(notes) == 1
    assert notes[0].startswith("The series starts anew at 3 places, first near row 61: ")
    for one in (Sample.of(checked_data(several[:60], None, None), Settings(ordered=True)), Sample.of(data(), SETTINGS)):
        assert one.notes() == []
    data_of_all = checked_data(several, None, None)
    for known in (Sample.of(data_of_all, Settings(), groups=np.arange(240) // 60), Sample.of(data_of_all, Settings())):
        assert not any("starts anew" in note for note in known.notes())
