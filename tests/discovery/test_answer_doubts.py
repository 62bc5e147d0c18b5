"""What an answer is held against once it is there; the order of several ranks: test_ranks."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.ndimage import gaussian_filter1d

import discoveries
import isthmus
from isthmus.discovery import Discovery
from isthmus.discovery.answer_doubts import (
    against_lost_columns,
    against_lost_targets,
    against_sets_of_rows,
    against_short_blocks,
    against_wild_rows,
)
from isthmus.discovery.data.checking import checked_data
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.scaling import Scaling
from isthmus.discovery.settings import Settings
from isthmus.errors import DataWarning
from isthmus.networks import FullyConnected
from isthmus.theory import Verdict


def test_a_series_that_resembles_itself_for_longer_than_its_blocks_is_in_doubt() -> None:
    rng, settings = np.random.default_rng(0), Settings(ordered=True)
    slow, fast = gaussian_filter1d(rng.normal(size=(300, 4)), 30, axis=0), rng.normal(size=(300, 2))
    sure = replace(discoveries.discovery(), rank=1, verdict=Verdict.CONFIDENT, reasons=("They agree.",))

    def decided(x: np.ndarray, y: np.ndarray | None, settings: Settings = settings) -> Discovery:
        return against_short_blocks(sure, Sample.of(checked_data(x, y, None), settings))

    for x, y in ((slow, None), (slow[:, :2], slow[:, 2:])):
        found = decided(x, y)
        assert found.verdict is Verdict.DOUBTFUL
        assert found.reasons[0].startswith("Rows resemble each other over ")
        assert "blocks of 15 are held out" in found.reasons[0]
    for x, y, how in ((fast, None, settings), (slow, fast, settings), (fast, slow, settings), (slow, None, Settings())):
        assert decided(x, y, how) is sure, "control"
    nothing = replace(sure, rank=0)
    assert against_short_blocks(nothing, Sample.of(checked_data(slow, None, None), settings)) is nothing


def test_rows_of_one_subject_on_both_sides_of_the_split_are_a_doubt() -> None:
    """Three of ten columns are those of a place: what is the same there would be predicted of rows beside it."""
    rng = np.random.default_rng(0)
    place = np.repeat(np.arange(40), 8)
    x = np.hstack([rng.normal(size=(40, 3))[place], rng.normal(size=(320, 7))])
    y, sure = rng.normal(size=(320, 2)), replace(discoveries.discovery(), rank=1, verdict=Verdict.CONFIDENT)
    found = against_sets_of_rows(sure, Sample.of(checked_data(x, y, None), Settings()))
    assert found.verdict is Verdict.DOUBTFUL
    assert found.reasons[0].startswith(
        "The columns 'x0', 'x1', 'x2' keep their values together in 40 sets of rows, as of one subject, run or place"
    )
    for sample in (
        Sample.of(checked_data(x, y, None), Settings(), groups=place),
        Sample.of(checked_data(x, y, None), Settings(ordered=True)),
        Sample.of(checked_data(x[:, 1:], rng.normal(size=(320, 2)), None), Settings(), groups=np.arange(320)),
        Sample.of(checked_data(x[:, [0, 3, 4, 5]], y, None), Settings()),
    ):
        assert against_sets_of_rows(sure, sample) is sure, "control"
    nothing = replace(sure, rank=0)
    assert against_sets_of_rows(nothing, Sample.of(checked_data(x, y, None), Settings())) is nothing


def test_a_target_that_nothing_predicts_is_named_and_costs_no_sureness() -> None:
    """Four targets through two dimensions and one of noise were one, and nothing said which target was lost."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    y = np.column_stack([x[:, 0], 2 * x[:, 1], x[:, 0] - x[:, 1], rng.normal(size=200), np.ones(200)])
    quick: dict[str, Any] = {"effort": "quick", "starts": 1, "ridge": 1e-2, "limits": isthmus.Limits(evaluations=60)}
    table = pd.DataFrame(y, columns=["a", "b", "c", "noise", "same"])
    with pytest.warns(DataWarning, match="same"):
        found = isthmus.discover(x, table, **quick)
    (told,) = [reason for reason in found.reasons if "hardly predicted" in reason]
    assert re.match(r"The target 'noise' \((9|1[0-3])\d%\) is hardly predicted|The target 'noise' \(1\d\d%\) is", told)
    known = isthmus.discover(x, table[["a", "b", "c"]], **quick)
    assert not any("hardly predicted" in reason for reason in known.reasons)
    nothing = isthmus.discover(x, rng.normal(size=(200, 2)), **quick)
    assert not any("hardly predicted" in reason for reason in nothing.reasons), "all are lost"


@pytest.mark.other_types
def test_a_target_of_which_rows_trained_on_tell_far_more_than_others_is_a_doubt() -> None:
    """One wild row, or a rare event, was two dimensions, sure, for three: all others were predicted."""
    x = np.random.default_rng(0).normal(size=(100, 4))
    problem = Sample.of(checked_data(x, x + 0.0, None), Settings()).posed(Settings())
    assert problem is not None
    network = FullyConnected.from_layers([torch.eye(4) / 2])  # exact: the targets have a total variance of 1
    sure = replace(discoveries.discovery(), rank=2, verdict=Verdict.CONFIDENT, reasons=("They agree.",))

    def decided(y_held: torch.Tensor) -> Discovery:
        posed = replace(problem, y_held=y_held)
        family = SimpleNamespace(problem=posed, network_of=lambda _: network)
        return against_lost_targets(sure, cast("Any", SimpleNamespace(family=family, scree={2: "halves"}, whole=None)))

    wild = problem.y_held.clone()
    wild[0, 3] += 10
    found = decided(wild)
    assert found.verdict is Verdict.DOUBTFUL
    assert re.match(
        r"Of the target 'flux 3' [\d,]+ % of the variance is missed on held-out rows, [\d.e-]+ % on those",
        found.reasons[0],
    )
    assert "'flux 3'" in found.reasons[-1], "nor is it predicted"
    assert decided(problem.y_held) is sure
    noise = torch.randn(problem.y_held.shape, generator=torch.Generator().manual_seed(0)) / 8
    assert decided(problem.y_held + noise).verdict is Verdict.CONFIDENT, "a sixteenth of all targets"


@pytest.mark.other_types
def test_an_answer_about_one_row_is_doubted_and_one_about_all_rows_is_not() -> None:
    """One row of 500 was a thousand times as large as others of three dimensions: 1 dimension, sure."""
    rng = np.random.default_rng(0)
    mixed, tail = rng.normal(size=(3, 10)), rng.standard_cauchy(size=500)
    sure = replace(discoveries.discovery(), rank=1, verdict=Verdict.CONFIDENT, reasons=("They agree.",))
    assert sure.probability is not None

    def decided(x: np.ndarray, axes: int = 1) -> Discovery:
        problem = Sample.of(checked_data(x, None, None), Settings()).posed(Settings())
        assert problem is not None
        largest = torch.linalg.svd(torch.cat([problem.x, problem.x_held]).double()).Vh[:axes]
        network = FullyConnected.from_layers([largest.mT @ largest / math.sqrt(10)])  # targets have a variance of 1
        findings: Any = SimpleNamespace(
            family=SimpleNamespace(problem=problem, network_of=lambda _: network), scree={1: "halves"}, whole=None
        )
        return against_wild_rows(sure, findings)

    factors = rng.normal(size=(500, 3))
    wild = factors @ mixed
    wild[7] *= 1000
    found = decided(wild)
    assert found.verdict is Verdict.DOUBTFUL
    assert re.match(
        r"One row holds 9[\d.]+% of what varies, and of what the others vary by [\d.]+% is", found.reasons[0]
    )
    assert found.probability is None
    assert decided(wild, axes=3) is sure, "nothing of the others is lost"
    for times in (100, 1e4, 1e6):
        wild[7] = times * factors[7] @ mixed
        assert decided(wild).verdict is Verdict.DOUBTFUL
    rare = np.zeros((500, 10))
    rare[[3, 50]] = rng.normal(size=(2, 10))
    assert decided(rare) is sure, "of the others nothing varies that could be lost"
    assert decided(factors @ mixed) is sure, "control: no row is wild"
    heavy = np.outer(tail, rng.normal(size=10))
    assert decided(heavy) is sure, "a factor with heavy tails"
    assert decided(heavy + np.abs(tail).max() * 0.01 * rng.normal(size=(500, 10))).verdict is Verdict.DOUBTFUL


@pytest.mark.other_types
def test_one_scale_that_we_chose_must_not_lose_columns_which_tell_of_each_other() -> None:
    """Twelve columns of a curve, in a unit a hundred times as small as 28 of five other numbers, were 1 dimension."""
    rng = np.random.default_rng(0)
    large, noise = 100 * rng.normal(size=(300, 12)), rng.normal(size=(300, 28))
    factors = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 28))
    sure = replace(discoveries.discovery(), rank=1, verdict=Verdict.CONFIDENT, reasons=("They agree.",))

    def decided(small: np.ndarray, scaling: Scaling = Scaling.GLOBAL, *, loses: bool = True) -> Discovery:
        x, settings = np.hstack([large, small]), replace(Settings(), scaling=scaling.value)
        problem = Sample.of(checked_data(x, None, None), settings).posed(settings)
        assert problem is not None
        kept = torch.tensor([1.0] * 12 + [0.0 if loses else 1.0] * 28).diag()
        network = FullyConnected.from_layers([kept / math.sqrt(40)])  # targets have a total variance of 1
        family = SimpleNamespace(problem=problem, settings=settings, written=lambda n: n, network_of=lambda _: network)
        findings: Any = SimpleNamespace(family=family, scree={1: "halves"}, whole=None)
        return against_lost_columns(sure, findings)

    found = decided(factors + 0.5 * noise)
    assert found.verdict is Verdict.DOUBTFUL
    assert found.reasons[0].startswith("With one scale for all columns 28 columns are lost, though others tell of them")
    assert decided(noise) is sure, "control: noise tells of nothing"
    assert decided(factors, Scaling.COLUMN) is sure, "each column counts"
    assert decided(factors, loses=False) is sure, "none is lost"
