"""The three ranks of one task in one run: their order, their files, and the sentence that tells them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import discoveries
import isthmus
from isthmus import Limits, Verdict
from isthmus.discovery import Discovery, search
from isthmus.discovery.answer_doubts import in_order
from isthmus.discovery.findings import Decision
from isthmus.discovery.work.unit import Progress
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.reports.verdict import ranks_sentence
from isthmus.writing.checksums import opened_json, sealed_json

FEW: dict[str, Any] = {"ridge": [1e-2], "starts": 1, "workers": 1, "limits": Limits(evaluations=12)}


def task(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three combinations of eight inputs, which act through two curved coordinates and move in four modes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 8))
    z = x[:, :3] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    g, t = np.hypot(z[:, 0], z[:, 1]), z[:, 2]
    return x, np.stack([np.sin(g), np.cos(g), t, g * t], 1) @ rng.normal(size=(4, 9))


@pytest.fixture(scope="module")
def rough() -> Discovery:
    return isthmus.discover(*task(30), ranks=True, **FEW, effort="quick")


def test_every_kind_is_there_and_none_is_below_the_rank(rough: Discovery) -> None:
    assert (rough.kind, set(rough.others)) == ("rank", {"index", "mode"})
    assert all(other.kind == kind for kind, other in rough.others.items())
    assert all(rough.ranks["rank"] <= other.rank for other in rough.others.values() if other.is_counted)
    assert rough.others["index"].directions is not None
    kinds = {one.kind: set(one.runs["kind"].values) - {"raised"} for one in (rough, *rough.others.values())}
    assert kinds == {"rank": {"linear"}, "index": {"random"}, "mode": {"random"}}
    assert rough.others["mode"].decoder.linear == frozenset(range(1, rough.others["mode"].decoder.depth))


def test_a_larger_reading_of_the_rank_gives_way_to_halves_through_fewer() -> None:
    found = discoveries.discovery()
    other = replace(found, rank=found.rank - 1, settings={**found.settings, "decoder_side": "linear"})
    assert replace(found, others={"mode": other}).ranks == {"rank": found.rank - 1, "mode": found.rank - 1}
    assert found.ranks == {"rank": found.rank}


def ranks_found(own: tuple[int, Verdict], **others: tuple[int, Verdict]) -> Discovery:
    """A discovery of a rank with others beside, as their searches answered."""
    found = replace(discoveries.discovery(), rank=own[0], verdict=own[1], reasons=("as it was",))
    sides = {"index": {"encoder_side": "linear"}, "mode": {"decoder_side": "linear"}}
    beside = {
        kind: replace(found, rank=rank, verdict=verdict, settings={**found.settings, **sides[kind]})
        for kind, (rank, verdict) in others.items()
    }
    return replace(found, others=beside)


def test_a_rank_above_one_that_bounds_it_is_in_doubt_and_says_so(tmp_path: Path) -> None:
    sure, unsure = Verdict.CONFIDENT, Verdict.DOUBTFUL
    kept = in_order(ranks_found((3, sure), index=(3, sure), mode=(4, unsure)))
    assert (kept.verdict, kept.reasons, kept.readings["bound"]) == (sure, ("as it was",), 3)
    both = in_order(ranks_found((3, sure), index=(2, sure), mode=(4, sure)))
    assert (both.verdict, both.others["index"].verdict, both.others["mode"].verdict) == (unsure, unsure, sure)
    assert both.reasons == both.others["index"].reasons
    said = "both halves curved 3 dimensions were found, 3 of them proved of its network, with one linear 2 combinations"
    assert said in both.reasons[0]
    assert (both.rank, both.ranks["rank"], both.readings["bound"]) == (3, 2, 2)
    both.save(tmp_path / "run")
    assert (isthmus.load(tmp_path / "run").readings["bound"], both.rank) == (2, 3)
    one = in_order(ranks_found((3, unsure), index=(2, sure)))
    assert (one.reasons[0], one.verdict, one.others["index"].verdict) == ("as it was", unsure, sure)
    assert "2 combinations of the inputs" in one.reasons[1]
    blurred = in_order(ranks_found((5, Verdict.NO_SHARP_RANK), mode=(4, unsure)))
    assert (blurred.verdict, blurred.others["mode"].verdict) == (Verdict.NO_SHARP_RANK, unsure)
    assert all(len(found.reasons) == 2 for found in (blurred, blurred.others["mode"]))
    alone = ranks_found((3, sure))
    assert in_order(alone) is alone


@pytest.mark.parametrize(
    ("rank", "verdict", "error"),
    [(0, Verdict.DOUBTFUL, 1.0), (0, Verdict.TOO_FEW_DATA, 1.0), (2, Verdict.TOO_FEW_DATA, 1.2)],
    ids=["none", "too few data", "worse than the mean"],
)
def test_a_search_that_found_nothing_bounds_nothing(tmp_path: Path, rank: int, verdict: Verdict, error: float) -> None:
    """Beside 3 dimensions proved of the network stood `ranks` of 0, and 0 combinations on which targets depend."""
    sure = Verdict.CONFIDENT
    found = ranks_found((3, sure), index=(rank, verdict), mode=(3, sure))
    lost = replace(found.others["index"], readings={**found.readings, "heldout_error": error})
    found = in_order(replace(found, others={**found.others, "index": lost}))
    assert (found.verdict, found.reasons, found.readings["bound"]) == (sure, ("as it was",), 3)
    assert found.ranks == {"rank": 3, "index": rank, "mode": 3}
    found.save(tmp_path / "run")
    assert isthmus.load(tmp_path / "run").ranks == found.ranks
    assert ranks_sentence(found) == (
        "the targets act through 3 curved coordinates, move in 3 modes of the outputs. Combinations of the inputs "
        "could not be counted: no network through them predicts held-out data."
    )
    alone = in_order(replace(found, others={"index": lost}, readings={}))
    assert (alone.ranks["rank"], alone.readings) == (3, {})
    beside = in_order(replace(lost, others={"rank": replace(found, others={}), "mode": found.others["mode"]}))
    assert (beside.ranks["rank"], beside.others["rank"].verdict) == (3, sure)
    counts = replace(lost, rank=0, readings={**lost.readings, "heldout_error": 0.0})  # of a constant target
    assert in_order(replace(found, others={"index": counts})).ranks["rank"] == 0


def test_an_answer_in_doubt_is_a_bound_and_said_to_be_in_doubt() -> None:
    found = in_order(ranks_found((3, Verdict.CONFIDENT), index=(1, Verdict.DOUBTFUL)))
    assert (found.ranks["rank"], found.readings["bound"], found.verdict) == (1, 1, Verdict.DOUBTFUL)
    assert "(not sure: bottleneck rank, index rank)" in ranks_sentence(found)


def test_a_rank_of_its_own_that_predicts_nothing_is_no_count_in_words() -> None:
    lost = Verdict.TOO_FEW_DATA
    own = in_order(ranks_found((0, lost), index=(2, Verdict.CONFIDENT), mode=(0, lost)))
    assert ranks_sentence(own) == (
        "the targets depend on 2 combinations of the inputs. Curved coordinates and modes of the outputs could not be "
        "counted: no network through them predicts held-out data."
    )
    nothing = in_order(ranks_found((0, lost), index=(0, lost), mode=(0, lost)))
    assert ranks_sentence(nothing).startswith(
        "Combinations of the inputs, curved coordinates and modes of the outputs c"
    )


@pytest.mark.slow
def test_the_order_is_looked_at_where_ranks_are_found_together(monkeypatch: pytest.MonkeyPatch) -> None:
    read = iter((2, 1, 1))
    monkeypatch.setattr(search, "decide", lambda _: Decision(next(read), Verdict.CONFIDENT, ("as if read so",)))
    found = isthmus.discover(*task(30), ranks=True, **FEW, effort="quick")
    assert found.rank == 2
    assert any("with one linear 1 combination of the inputs" in reason for reason in found.reasons)
    assert found.readings["bound"] == 1


@pytest.mark.slow
def test_one_target_has_no_modes() -> None:
    x, y = task(30)
    found = isthmus.discover(x, y[:, :1], ranks=True, **FEW, effort="quick")
    assert (found.kind, set(found.others)) == ("index", {"rank"})
    assert found.ranks["rank"] <= 1
    with pytest.raises(ValueError, match=r"ranks=True, network='leaky'"):
        isthmus.discover(x, y, ranks=True, network="leaky", **FEW, effort="quick")


def test_they_are_one_run_folder(rough: Discovery, tmp_path: Path) -> None:
    rough.save(tmp_path / "run")
    loaded = isthmus.load(tmp_path / "run")
    assert loaded.ranks == rough.ranks
    x, _ = task(30)
    for kind, other in rough.others.items():
        assert np.array_equal(loaded.others[kind].predict(x), other.predict(x))
    content = opened_json((tmp_path / "run" / "result.json").read_bytes())
    content.pop("isthmus_checksum", None)
    (tmp_path / "run" / "result.json").write_bytes(sealed_json({**content, "others": ["../../etc"]}))
    with pytest.raises(DataError, match="damaged"):
        isthmus.load(tmp_path / "run")


@pytest.mark.slow
def test_a_stopped_run_of_all_ranks_goes_on_with_the_same_bits(rough: Discovery, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.stage.startswith("mode: "):
            raise KeyboardInterrupt

    x, y = task(30)
    with pytest.raises(KeyboardInterrupt):
        isthmus.discover(x, y, ranks=True, out=tmp_path / "run", progress=stop, **FEW, effort="quick")
    again = isthmus.discover(x, y, ranks=True, out=tmp_path / "run", **FEW, effort="quick")
    for one, other in ((again, rough), *((again.others[kind], rough.others[kind]) for kind in rough.others)):
        assert np.array_equal(one.predict(x), other.predict(x))


def test_the_sentence_names_all_of_them_and_what_is_not_sure() -> None:
    found = replace(discoveries.discovery(), rank=2, verdict=Verdict.CONFIDENT)
    sides = {"index": {"encoder_side": "linear"}, "mode": {"decoder_side": "linear"}}
    others = {
        kind: replace(found, rank=rank, settings={**found.settings, **sides[kind]})
        for kind, rank in (("index", 3), ("mode", 4))
    }
    text = ranks_sentence(replace(found, others=others))
    assert text == (
        "the targets depend on 3 combinations of the inputs, act through 2 curved coordinates, move in 4 modes of the "
        "outputs."
    )
    doubtful = {**others, "mode": replace(others["mode"], verdict=Verdict.DOUBTFUL)}
    assert ranks_sentence(replace(found, others=doubtful)).endswith("(not sure: mode rank).")
    assert ranks_sentence(found) == ""
    half = FullyConnected.from_layers([torch.eye(2)], [torch.zeros(2)])
    linear = replace(found, others=others, encoder=half, decoder=half)
    assert "act through 2 coordinates, " in ranks_sentence(linear)


@pytest.mark.slow
def test_the_three_ranks_of_a_task_differ_and_are_in_doubt_for_want_of_data_alone() -> None:
    """Whether the error of one split falls a little beyond the rank is chance: 3 of 7 searches of modes were sure.
    Whether the first pass finds the minimum through three combinations is another: the search answers that doubt."""
    found = isthmus.discover(*task(700), ranks=True)
    assert found.ranks == {"rank": 2, "index": 3, "mode": 4}
    assert found.verdict is Verdict.CONFIDENT
    for one in found.others.values():
        assert one.verdict is Verdict.CONFIDENT or ["more data" in reason for reason in one.reasons] == [True]
