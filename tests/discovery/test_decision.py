"""From readings to a verdict: every verdict and every doubt reached, and every mutation seen."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from isthmus.discovery.assembly import error_ratio, linear_rank_for
from isthmus.discovery.choices import (
    AS_READ,
    BY_LUCK,
    CLEAR_MARGIN,
    ENDED,
    FAINT_FOR_EACH,
    HANDFUL,
    HARDLY,
    KEPT_FOR_EACH,
    LOST_FAINT,
    LOST_KEPT,
    LOST_READ,
    LOST_UNSEEN,
    OUTVOTES,
    ROWS_FOR_STARTS,
    ROWS_TO_KEEP,
    ROWS_TO_SEE,
    SHARE_KEPT,
    SHARED_BY,
    SHARP,
    UNEVEN,
    UNEVEN_ERROR,
    UNLEARNT,
)
from isthmus.discovery.decision import decide
from isthmus.discovery.findings import Readings
from isthmus.discovery.halves import INDEX, MODE, RANK, RankKind
from isthmus.theory import Verdict
from isthmus.theory.comparison import in_nats
from isthmus.theory.curve_readings import CurveReading, Gain

CLEAR = Readings(
    ridge=1e-3,
    objective=CurveReading(3, 0.3),
    neighbours=((3e-3, CurveReading(3, 0.2)), (3e-4, CurveReading(3, 0.1))),
    scree=CurveReading(3, 0.5),
    jacobian_rank=3,
    widest=5,
    heldout_error=(1.0, 0.5, 0.2, 0.01, 0.0099, 0.0098),
    linear_error=(1.0, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05),
)
BELOW_SHARP, BELOW_CLEAR = math.nextafter(SHARP, 0), math.nextafter(CLEAR_MARGIN, 0)
LARGER, SMALLER = CLEAR.neighbours
FALLS_ON = (1.0, 0.5, 0.2, 0.01, 0.007, 0.005)
UNSHARP = replace(CLEAR, objective=CurveReading(3, 0.03))

# what is changed, and the doubt that it must raise
DOUBTS = {
    "objective": ({"objective": CurveReading(4, 0.3)}, "The objective curve at ridge 0.001 reads 4, not 3."),
    "scree": ({"scree": CurveReading(2, 0.5)}, "The held-out error bends at 2, not at 3."),
    "jacobian-below": ({"jacobian_rank": 2}, "The Jacobian has 2 directions, not 3[.]"),
    "jacobian-one": ({"jacobian_rank": 1}, "The Jacobian has 1 direction, not 3[.]"),
    "jacobian-above": ({"jacobian_rank": 4}, "4 directions, not 3[.]"),
    "smaller-ridge": ({"neighbours": (LARGER, (3e-4, CurveReading(4, 0.1)))}, "ridge 0.0003 .* reads 4[.]"),
    "larger-ridge": ({"neighbours": ((3e-3, CurveReading(2, 0.1)), SMALLER)}, "ridge 0.003 .* reads 2[.]"),
    "blunt": (
        {"objective": CurveReading(3, BELOW_SHARP)},
        "One dimension fewer than 3 raises the objective by 5.1 % o",
    ),
    "unclear": ({"scree": CurveReading(3, BELOW_CLEAR), "heldout_error": FALLS_ON}, "no clear bend"),
    "widest": ({"widest": 3}, r"the largest that was tried \(3\)"),
    "linear": (
        {"linear_error": (1.0, 0.6, 0.4, 0.0097, 0.2, 0.1, 0.05)},
        "A linear map through at most 3 dimensions",
    ),
    "all-columns": ({"columns": 3}, "All 3 columns are kept, so no dimension is saved"),
    "curved": ({"columns": 3, "deep": 1}, "All 3 columns are kept, but deeper networks do with 1"),
    "curved-perhaps": (
        {"columns": 3, "deep": 1, "deep_sure": False},
        "deeper networks may do with 1, curved; the rows",
    ),
    "surface": (
        {"columns": 3, "deep": 3, "local": 2.04},
        "All 3 columns are kept at every depth tried; around each, the rows seem 2.0-dimensional. Fewer",
    ),
    "unknown": ({"columns": 3, "deep": 3}, "All 3 columns are kept at every depth tried. Fewer coordinates"),
    "mean": ({"heldout_error": (1.0, 2.0, 1.5, 1.01, 1.0, 1.0)}, "no smaller than that of the mean"),
    "more than rows vary": (
        {"heldout_error": (4.0, 2.0, 1.5, 1.01, 1.0, 1.0)},
        "More is missed of held-out rows than the rows trained on vary",
    ),
    "hardly any by half": ({"medians": {3: 1e-9}}, "half of the held-out rows lose less than 0.1 %"),
    "uneven": ({"medians": {3: math.nextafter(UNEVEN, 0)}}, "half of the held-out rows lose less than 33 %"),
    "alone": ({"neighbours": ()}, "Only the ridge 0.001 counts"),
    "complaint": ({"complaints": ("Every start diverged at ridge 0.01; it is left out.",)}, "Every start diverged"),
}


@pytest.mark.parametrize(("kind", "noun"), [(INDEX, "combination"), (MODE, "mode"), (RANK, "direction")])
def test_reasons_about_a_linear_half_count_what_it_has(kind: RankKind, noun: str) -> None:
    straight = replace(CLEAR, straight=True, kind=kind)
    assert f"one {noun} fewer raises" in decide(straight).reasons[1]
    doubtful = replace(
        straight,
        widest=3,
        objective=CurveReading(3, BELOW_SHARP),
        scree=CurveReading(3, BELOW_CLEAR),
        linear_error=(1.0, 0.6, 0.4, 0.0097, 0.2, 0.1, 0.05),
    )
    text = "\n".join(decide(doubtful).reasons)
    assert f"One {noun} fewer than 3 raises" in text
    assert f"3 {noun}s are the most that were tried: there may be more." in text
    assert f"A linear map through at most 3 {noun}s predicts better" in text
    assert "dimension" not in text
    flat = "hardly rises below the rank that it reads; more data would sharpen it."
    assert f"The held-out error {'has no clear bend' if kind is RANK else flat}" in text
    other = "\n".join(decide(replace(straight, scree=CurveReading(2, 0.5))).reasons)
    assert f"The held-out error {'bends at 2, not at' if kind is RANK else 'is flat from 2 on, not from'} 3." in other
    moving = replace(doubtful, neighbours=(LARGER, (3e-4, CurveReading(4, 0.01))))
    assert f"one {noun} fewer costs little at each" in decide(moving).reasons[0]


def test_what_more_combinations_might_save_within_the_noise_is_a_doubt() -> None:
    straight = replace(CLEAR, straight=True, kind=INDEX)
    assert decide(replace(straight, gains={3: Gain(4, 0.01, 0.0004, 0.0001, 1e-3)})).verdict is Verdict.CONFIDENT
    assert decide(replace(straight, gains={2: Gain(3, 0.01, 0.01, 0.0, 1e-3)})).verdict is Verdict.CONFIDENT, (
        "of another rank"
    )
    doubtful = decide(replace(straight, gains={3: Gain(5, 0.01, 0.001, 0.002, 1e-3)}))
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    said = "The held-out error is 10.0 % larger than through 5 combinations (standard error 20.0 %): more data would"
    assert [reason.partition(" tell")[0] for reason in doubtful.reasons] == [said]
    gone = decide(replace(straight, gains={3: Gain(5, 0.0, 0.001, 0.002, 1e-3)}))  # as of two classes far apart
    said = "Through 5 combinations nothing is left of the held-out error: more data would"
    assert [reason.partition(" tell")[0] for reason in gone.reasons] == [said]
    nats = replace(straight, gains={3: Gain(4, 1.0, 0.05, 0.03, 1e-3)}, errors_compared=in_nats)
    assert "is 0.05 nats larger than through 4 combinations (standard error 0.03 nats)" in decide(nats).reasons[0]


def test_a_larger_ridge_that_predicts_worse_and_reads_fewer_is_no_doubt_where_a_smaller_one_reads_the_same() -> None:
    fewer, same, more = (CurveReading(rank, 0.5) for rank in (2, 3, 4))
    hidden = replace(CLEAR, neighbours=((3e-3, fewer), (3e-4, same)), useless=(3e-3,))
    decision = decide(hidden)
    assert (decision.rank, decision.verdict) == (3, Verdict.CONFIDENT)
    assert decision.reasons[2:] == (
        "The reading is the same at the neighbouring ridge 0.0003.",
        "At ridge 0.003, where networks predict clearly worse, it is 2.",
    )
    both = replace(CLEAR, neighbours=((3e-3, fewer), (1e-2, fewer), (3e-4, same)), useless=(3e-3, 1e-2))
    assert decide(both).reasons[-1] == "At ridges 0.003 and 0.01, where networks predict clearly worse, it is 2."
    for doubtful in (
        replace(hidden, useless=()),
        replace(hidden, neighbours=((3e-3, fewer),)),
        replace(hidden, neighbours=((3e-3, more), (3e-4, same))),
        replace(hidden, neighbours=((3e-3, fewer), (3e-4, more))),
        replace(hidden, neighbours=((3e-3, same), (3e-4, fewer)), useless=(3e-4,)),
    ):
        assert decide(doubtful).verdict is Verdict.DOUBTFUL


def test_what_unseen_rows_lose_beyond_those_trained_on_is_a_doubt_but_not_what_both_lose() -> None:
    errors, linear = (1.0, 0.8, 0.7, 0.4, 0.4, 0.4), (1.0, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7)
    noisy = replace(CLEAR, heldout_error=errors, linear_error=linear)
    for train in ({}, {3: 0.38}, {3: 0.41 - UNLEARNT}, {2: 0.0, 4: 0.0}):
        assert decide(replace(noisy, train_error=train)).verdict is Verdict.CONFIDENT
    doubtful = decide(replace(noisy, train_error={3: 0.39 - UNLEARNT}))
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    [reason] = doubtful.reasons
    assert "3 dimensions 40 % of the variance is missed on held-out rows, 9 % on those trained on" in reason
    assert decide(replace(noisy, train_error={3: 0.0}, classes=True)).verdict is Verdict.CONFIDENT
    useless = decide(replace(noisy, train_error={3: 0.0}, heldout_error=(1.0, 2.0, 1.5, 1.01, 1.0, 1.0)))
    assert len(useless.reasons) == 1, "that it is no better than the mean says it"


def test_of_few_rows_a_rank_that_hardly_a_start_keeps_is_a_doubt() -> None:
    few = replace(CLEAR, rows=ROWS_FOR_STARTS - 1, start_ranks=(4, 5, 4, 3, 4))
    doubtful = decide(few)
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    assert doubtful.reasons[0].startswith("Of 5 starts on 239 rows 1 keep 3 dimensions, most 4: by so few rows")
    enough = replace(few, start_ranks=(4, 5, 4, 3))
    for other in (enough, replace(few, rows=ROWS_FOR_STARTS), replace(few, start_ranks=()), replace(few, classes=True)):
        assert decide(other).verdict is Verdict.CONFIDENT


def test_few_rows_tell_no_combinations_from_noise() -> None:
    errors, linear = (1.0, 0.8, 0.5, math.nextafter(LOST_UNSEEN, 1), 0.1, 0.1), (1.0, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7)
    few = replace(CLEAR, straight=True, kind=INDEX, rows=ROWS_TO_SEE - 1, heldout_error=errors, linear_error=linear)
    doubtful = decide(few)
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    assert doubtful.reasons[0].startswith(
        "Of 99 rows 10 % of the variance is missed through 3 combinations: further comb"
    )
    seen = replace(few, heldout_error=(*errors[:3], LOST_UNSEEN, *errors[4:]))
    for other in (
        replace(few, rows=ROWS_TO_SEE),
        replace(few, straight=False, kind=RANK),
        replace(few, rows=None),
        seen,
    ):
        assert decide(other).verdict is Verdict.CONFIDENT


def test_where_fewer_dimensions_predict_as_well_doubts_of_few_rows_point_nowhere() -> None:
    """8 combinations for 5 of 480 rows, whose error is flat from 1 on: "further combinations", "more dimensions"."""
    errors = (1.0, 0.36, 0.36, 0.36, 0.36, 0.36, 0.36)
    few = replace(
        CLEAR, straight=True, kind=INDEX, rows=ROWS_TO_SEE - 1, heldout_error=errors, train_error={3: 0.0001},
    )  # fmt: skip
    noise = replace(few, scree=CurveReading(1, CLEAR_MARGIN))
    told, open_ = (" ".join(decide(one).reasons) for one in (few, noise))
    assert "further combinations cannot be told from noise by so few" in told
    assert "more dimensions may matter there" in told
    assert "how many combinations are noise cannot be told by so few" in open_
    assert "more or fewer dimensions may matter there" in open_
    assert not any(hint in open_ for hint in ("further combinations", "rows that more dimensions"))


def test_combinations_that_few_starts_keep_are_doubted_while_rows_are_few() -> None:
    errors, linear = (1.0, 0.8, 0.5, math.nextafter(LOST_KEPT, 1), 0.08, 0.08), (1.0, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7)
    few = replace(
        CLEAR, straight=True, kind=INDEX, rows=ROWS_TO_KEEP - 1, heldout_error=errors, linear_error=linear,
        start_ranks=(3, 4, 4),
    )  # fmt: skip
    assert 1 / 3 < SHARE_KEPT < 2 / 3
    doubtful = decide(few)
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    assert "further combinations cannot be told from noise" in doubtful.reasons[0]
    for other in (
        replace(few, rows=ROWS_TO_KEEP),
        replace(few, start_ranks=(3, 4, 3)),
        replace(few, start_ranks=()),
        replace(few, heldout_error=(*errors[:3], LOST_KEPT, *errors[4:])),
        replace(few, straight=False, kind=RANK),
    ):
        assert decide(other).verdict is Verdict.CONFIDENT


def test_many_columns_ask_for_more_rows_before_combinations_are_sure() -> None:
    """Of a row of four combinations in 30 columns hardly more is known by 600 rows than by 100 of one in 5."""
    linear = (1.0, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7)
    errors = (1.0, 0.8, 0.5, math.nextafter(LOST_KEPT, 1), 0.08, 0.08)
    few = replace(
        CLEAR, straight=True, kind=INDEX, rows=30 * KEPT_FOR_EACH - 1, inputs=30, heldout_error=errors,
        linear_error=linear, start_ranks=(3, 4, 4),
    )  # fmt: skip
    doubtful = decide(few)
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    assert doubtful.reasons[0].startswith("Of 899 rows of 30 columns 8 % of the variance is missed")
    for other in (
        replace(few, rows=30 * KEPT_FOR_EACH),
        replace(few, inputs=29),
        replace(few, kind=MODE),
        replace(few, start_ranks=(3, 4, 3)),
        replace(few, straight=False, kind=RANK),
    ):
        assert decide(other).verdict is Verdict.CONFIDENT
    faint = replace(
        few, rows=30 * FAINT_FOR_EACH - 1, start_ranks=(3, 3, 3),
        heldout_error=(*errors[:3], math.nextafter(LOST_FAINT, 1), 0.04, 0.04),
    )  # fmt: skip
    assert decide(faint).verdict is Verdict.DOUBTFUL
    for other in (
        replace(faint, rows=30 * FAINT_FOR_EACH),
        replace(faint, heldout_error=(*errors[:3], LOST_FAINT, 0.04, 0.04)),
        replace(faint, straight=False, kind=RANK),
    ):
        assert decide(other).verdict is Verdict.CONFIDENT


def test_of_few_rows_for_each_column_a_ridge_that_reads_more_counts_though_it_predicts_worse() -> None:
    """By eight held-out rows none surely does: 2 combinations in 41 rows of 10 columns were 1 with confidence."""
    errors = (*CLEAR.heldout_error[:3], math.nextafter(LOST_READ, 1), LOST_READ, LOST_READ)
    few = replace(
        CLEAR, straight=True, kind=INDEX, rows=41, inputs=10, start_ranks=(3, 3, 3), heldout_error=errors,
        neighbours=((3e-3, CurveReading(4, 0.2)),), useless=(3e-3,),
    )  # fmt: skip
    doubtful = decide(few)
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    assert doubtful.reasons[-1].startswith("Of 41 rows of 10 columns 2 % of the variance is missed")
    for other in (
        replace(few, rows=10 * FAINT_FOR_EACH),
        replace(few, neighbours=((3e-3, CurveReading(3, 0.2)),)),
        replace(few, heldout_error=(*errors[:3], LOST_READ, LOST_READ, LOST_READ)),
    ):
        assert "variance is missed" not in " ".join(decide(other).reasons)


def test_a_bend_of_many_dimensions_is_clear_where_the_fall_ends() -> None:
    """Each of eleven saves a fifth, so that no bend can stand out; after the last nothing more is saved."""
    steady = [1.0 * math.exp(-0.19 * rank) for rank in range(12)]
    blunt = CurveReading(11, BELOW_CLEAR)
    many = replace(
        CLEAR, objective=CurveReading(11, 0.18), neighbours=((3e-3, CurveReading(11, 0.1)),), scree=blunt,
        jacobian_rank=11, widest=14, linear_error=(*[1.0] * 12, 0.9, 0.9, 0.9),
        heldout_error=(*steady, steady[-1], 1.01 * steady[-1]),
    )  # fmt: skip
    assert decide(many).verdict is Verdict.CONFIDENT
    least = steady[-1] * math.exp(-0.19 * ENDED)
    edge = replace(many, heldout_error=(*steady, 1.0000001 * least, 0.5))
    assert decide(edge).verdict is Verdict.CONFIDENT
    falls_on = [math.exp(-0.19 * 11 - 0.12 * more) for more in range(1, 4)]
    little = [*steady[:11], steady[10] * math.exp(-0.99 * SHARP), steady[10]]
    for other in (
        replace(many, heldout_error=(*steady, 0.9999 * least, 0.5)),
        replace(many, heldout_error=(*steady, *falls_on)),
        replace(many, heldout_error=tuple(little)),
        replace(many, heldout_error=tuple(steady)),
        replace(many, straight=True, kind=INDEX),
    ):
        assert decide(other).verdict is Verdict.DOUBTFUL, "control"
    for rank, sure in ((SHARED_BY, True), (SHARED_BY - 1, False)):
        fewer = replace(
            many, objective=CurveReading(rank, 0.18), neighbours=((3e-3, CurveReading(rank, 0.1)),), jacobian_rank=rank,
            scree=CurveReading(rank, BELOW_CLEAR), heldout_error=(*steady[: rank + 1], steady[rank], steady[rank]),
        )  # fmt: skip
        assert decide(fewer).verdict is (Verdict.CONFIDENT if sure else Verdict.DOUBTFUL)


def test_what_is_hardly_predicted_may_be_chance() -> None:
    """Five kinds of 70 rows read 1, all agreeing, where 97 % of the loss of the constant was left in 14 rows."""
    errors, linear = (1.0, 0.99, 0.98, 0.95, 0.95, 0.95), (1.0, *[1.02] * 6)
    faint = replace(CLEAR, heldout_error=errors, linear_error=linear, beyond_chance={3: math.nextafter(BY_LUCK, 0)})
    doubtful = decide(faint)
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    assert doubtful.reasons[0].startswith(
        "Held-out rows lose 95 % of what the best constant loses, 2.0 standard errors"
    )
    for other in (
        replace(faint, beyond_chance={3: BY_LUCK}),
        replace(faint, beyond_chance={}),
        replace(faint, heldout_error=(1.0, 0.99, 0.98, HARDLY, 0.9, 0.9)),
    ):
        assert decide(other).verdict is Verdict.CONFIDENT
    assert decide(replace(faint, classes=True)).verdict is Verdict.DOUBTFUL


def test_classes_of_few_rows_for_their_columns_are_not_sure_where_little_is_known_between_rows() -> None:
    """Four kinds of 126 rows in 30 columns read 1 of 2, all agreeing: .63 of the loss missed, .12 of rows known."""
    errors, linear = (1.0, 0.9, 0.8, 0.63, 0.63, 0.63), (1.0, *[0.9] * 6)
    few = replace(
        CLEAR, classes=True, heldout_error=errors, linear_error=linear, train_error={3: 0.12}, inputs=30,
        rows=30 * FAINT_FOR_EACH - 1, objectives=(1.0, 0.9, 0.7, 0.5, 0.5, 0.5),
    )  # fmt: skip
    doubtful = decide(few)
    assert (doubtful.rank, doubtful.verdict) == (3, Verdict.DOUBTFUL)
    assert "63 % of the loss of the best constant is missed on held-out rows, 12 % on those" in doubtful.reasons[0]
    for other in (replace(few, rows=30 * FAINT_FOR_EACH), replace(few, train_error={3: 0.63 - UNLEARNT})):
        assert decide(other).verdict is Verdict.CONFIDENT


def test_agreement_everywhere_is_confident() -> None:
    decision = decide(CLEAR)
    assert (decision.rank, decision.verdict) == (3, Verdict.CONFIDENT)
    assert decision.reasons == (
        "The objective curve, the held-out error and the Jacobian all read 3.",
        "At ridge 0.001 one dimension fewer raises the objective by 35.0 %.",  # e^0.3 - 1
        "The reading is the same at the neighbouring ridges 0.0003 and 0.003.",
    )


def test_a_rise_that_doubles_is_a_factor_and_ridges_that_do_not_count_are_not_said_to_agree() -> None:
    steep = replace(CLEAR.objective, sharpness=math.log(12))
    worse = tuple((ridge, reading) for ridge, reading in CLEAR.neighbours if ridge > CLEAR.ridge)
    alone = replace(CLEAR, straight=True, kind=INDEX, objective=steep, neighbours=worse, useless=(3e-3,))
    assert decide(alone).reasons[1:] == (
        "At ridge 0.001 one combination fewer raises the objective by a factor of 12.",
        "At ridge 0.003, where networks predict clearly worse, it is 3.",
    )


@pytest.mark.parametrize(("change", "doubt"), DOUBTS.values(), ids=DOUBTS)
def test_one_change_makes_it_doubtful_and_says_why(change: dict[str, object], doubt: str) -> None:
    decision = decide(replace(CLEAR, **change))  # pyright: ignore[reportArgumentType] - the table names fields
    assert (decision.rank, decision.verdict) == (3, Verdict.DOUBTFUL)
    text = "\n".join(decision.reasons)
    with pytest.raises(AssertionError):
        assert_says("\n".join(decide(CLEAR).reasons), doubt)
    assert_says(text, doubt)


def assert_says(text: str, doubt: str) -> None:
    assert re.search(doubt, text), text


def test_the_identity_is_not_compared_with_itself() -> None:
    """Through all columns a linear map has no error, which says nothing of the network."""
    linear = (1.0, 0.6, 0.4, 1e-15)
    reasons = decide(replace(CLEAR, columns=3, linear_error=linear)).reasons
    assert len(reasons) == 1
    assert "columns are kept" in reasons[0]
    assert "A linear map" in decide(replace(CLEAR, columns=4, linear_error=(*linear, 0.0))).reasons[0]


@pytest.mark.parametrize(("medians", "error"), [({3: UNEVEN}, 0.01), ({4: 0.1}, 0.01), ({3: 0.1}, UNEVEN_ERROR)])
def test_who_loses_it_matters_through_the_rank_that_is_read_and_where_something_is_lost(
    medians: dict[int, float], error: float
) -> None:
    errors = (1.0, 0.5, 0.2, error, error, error)
    assert decide(replace(CLEAR, medians=medians, heldout_error=errors)).verdict is Verdict.CONFIDENT


def test_all_columns_are_confident_where_the_rows_fill_them_and_no_deeper_network_does_with_fewer() -> None:
    full = replace(CLEAR, columns=3, deep=3, local=2.6, linear_error=(1.0, 0.6, 0.4, 1e-15))
    assert decide(full).verdict is Verdict.CONFIDENT
    for local in (2.4, math.nan):
        assert decide(replace(full, local=local)).verdict is Verdict.DOUBTFUL


def test_deeper_networks_that_keep_fewer_speak_against_a_rank_of_what_is_autoencoded() -> None:
    for columns, deep in ((7, 3), (7, 4), (7, None), (None, 2), (3, 3)):
        assert not any(
            "deeper middle" in reason for reason in decide(replace(CLEAR, columns=columns, deep=deep)).reasons
        )
    decision = decide(replace(CLEAR, columns=7, deep=2))
    assert (decision.rank, decision.verdict) == (3, Verdict.DOUBTFUL)
    assert decision.reasons == ("Networks with a deeper middle keep 2 coordinates: 3 flat ones may be fewer, curved.",)


def test_the_thresholds_themselves_are_good_enough() -> None:
    at = replace(CLEAR, objective=CurveReading(3, SHARP), scree=CurveReading(3, CLEAR_MARGIN))
    assert decide(at).verdict is Verdict.CONFIDENT
    equal = replace(CLEAR, linear_error=(1.0, 0.6, 0.4, 0.01 / 1.02, 0.2, 0.1, 0.05))
    assert decide(equal).verdict is Verdict.CONFIDENT


@pytest.mark.parametrize("neighbour", [3e-3, 3e-4])
def test_a_blunt_reading_that_moves_is_no_sharp_rank(neighbour: float) -> None:
    moving = replace(UNSHARP, neighbours=((neighbour, CurveReading(5, 0.02)),))
    decision = decide(moving)
    assert decision.verdict is Verdict.NO_SHARP_RANK
    assert decision.rank == 3
    assert "3 at ridge 0.001" in decision.reasons[0]
    assert f"5 at ridge {neighbour:g}" in decision.reasons[0]


@pytest.mark.parametrize(
    "change",
    [
        {"objective": CurveReading(3, SHARP), "neighbours": ((3e-4, CurveReading(5, 0.02)),)},
        {"objective": CurveReading(3, 0.03), "neighbours": ((3e-4, CurveReading(5, SHARP)),)},
        {"objective": CurveReading(3, 0.03), "neighbours": ((3e-4, CurveReading(3, 0.02)),)},
        {"objective": CurveReading(3, 0.03), "neighbours": ()},
    ],
    ids=["sharp-here", "sharp-there", "not-moving", "no-neighbour"],
)
def test_no_sharp_rank_needs_both_moving_and_blunt_at_both(change: dict[str, object]) -> None:
    assert decide(replace(CLEAR, **change)).verdict is Verdict.DOUBTFUL  # pyright: ignore[reportArgumentType]


# classes: 3 is read twice and 2 once, between which the objective differs by 7 %
CLASSES = replace(CLEAR, classes=True, objectives=(2.0, 1.5, 1.07, 1.0, 1.0, 1.0), jacobian_rank=2)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"spread": math.log(1.071)}, Verdict.NO_SHARP_RANK),
        ({"spread": math.log(1.069)}, Verdict.DOUBTFUL),
        ({"spread": math.log(1.071), "classes": False}, Verdict.DOUBTFUL),
        ({"spread": SHARP, "jacobian_rank": 3}, Verdict.NO_SHARP_RANK),  # digits, of some seeds
        ({"spread": BELOW_SHARP, "jacobian_rank": 3}, Verdict.CONFIDENT),
        ({"scree": CurveReading(5, 0.5)}, Verdict.NO_SHARP_RANK),
        ({"scree": CurveReading(5, 0.5), "classes": False}, Verdict.DOUBTFUL),
        ({"jacobian_rank": 9, "spread": SHARP}, Verdict.NO_SHARP_RANK),  # beyond the curve, where nothing changes
        ({"jacobian_rank": 9, "spread": BELOW_SHARP}, Verdict.DOUBTFUL),  # minima are found well enough
        ({"objective": CurveReading(0, math.inf), "spread": 1.0}, Verdict.DOUBTFUL),  # the constant is the least
        ({"heldout_error": (1.0, 1.1, 1.0, 1.0, 1.0), "spread": 1.0}, Verdict.DOUBTFUL),  # nothing is learnt
    ],
    ids=[
        "blurred",
        "told-apart",
        "numbers",
        "agreed-and-blurred",
        "agreed",
        "all-differ",
        "numbers-all-differ",
        "beyond",
        "exact",
        "constant",
        "useless",
    ],
)
def test_classes_read_at_ranks_between_which_minima_cannot_tell_have_no_sharp_rank(
    change: dict[str, object], verdict: Verdict
) -> None:
    assert decide(replace(CLASSES, **change)).verdict is verdict  # pyright: ignore[reportArgumentType]


def test_why_classes_have_no_sharp_rank_is_said_first_and_the_doubts_after_it() -> None:
    blurred, apart = (decide(replace(CLASSES, spread=spread)) for spread in (math.log(1.1), 0.0))
    assert blurred.reasons[0] == (
        "Through 2 and through 3 dimensions the objective differs by 7.0 %, the minima that training found by 10.0 %: "
        "which rank the least has is not known."
    )
    assert blurred.reasons[1:] == apart.reasons
    differing = decide(replace(CLASSES, scree=CurveReading(5, 0.5)))
    assert differing.reasons[0] == "The three readings of these classes have nothing in common (2, 3, 5)."


@pytest.mark.parametrize(
    ("jacobian", "objective", "scree", "rank"),
    [(3, 3, 5, 3), (3, 5, 3, 3), (5, 3, 3, 3), (4, 3, 5, 4), (2, 3, 5, 2)],
    ids=["scree-out", "objective-out", "jacobian-out", "all-differ", "all-differ-below"],
)
def test_two_agree_or_the_jacobian_decides(jacobian: int, objective: int, scree: int, rank: int) -> None:
    readings = replace(
        CLEAR, jacobian_rank=jacobian, objective=CurveReading(objective, 0.3), scree=CurveReading(scree, 0.5)
    )
    decision = decide(readings)
    assert (decision.rank, decision.verdict) == (rank, Verdict.DOUBTFUL)


def test_all_linear_dimensions_tried_is_no_doubt() -> None:
    """The widest curve is no limit where the task has no more dimensions than that."""
    assert decide(replace(CLEAR, widest=3, linear_error=(1.0, 0.6, 0.4, 0.3))).verdict is Verdict.CONFIDENT


def test_nothing_below_is_said_as_such() -> None:
    readings = replace(CLEAR, objective=CurveReading(3, math.inf))
    assert "Nothing is below." in decide(readings).reasons


def test_error_of_one_dimension_fewer_and_linear_rank() -> None:
    errors = (1.0, 0.5, 0.1)
    assert [error_ratio(errors, rank) for rank in (0, 1, 2, 3)] == [None, 2.0, 5.0, None]
    assert [linear_rank_for(error, errors) for error in (2.0, 0.5, 0.49, 0.1, 0.01)] == [0, 1, 2, 2, None]


def test_a_neighbour_that_reads_what_the_held_out_error_reads_is_pointed_out() -> None:
    beside = (LARGER, (3e-4, CurveReading(4, 0.1)))
    doubts = decide(replace(CLEAR, neighbours=beside, scree=CurveReading(4, 0.5))).reasons
    assert "At the neighbouring ridge 0.0003 the objective curve reads 4, as the held-out error does." in doubts


LINEAR, EXACT = (1.0, 0.6, 0.35, 1e-3, 1e-3, 1e-3, 1e-3), (1.0, 0.6, 0.35, 1e-15, 1e-15, 1e-15, 1e-15)
NOT_LINEAR: dict[str, dict[str, Any]] = {
    "rows of a curve may have a curved coordinate": {"fills": 1.0},
    "not known how many the rows fill": {"fills": math.nan},
    "logistic maps of components": {"classes": True},
}


@pytest.mark.parametrize("linear", [LINEAR, EXACT], ids=["noise", "exact"])
def test_a_task_that_is_linear_is_no_doubt_where_rows_fill_as_many_dimensions(linear: tuple[float, ...]) -> None:
    found = decide(replace(CLEAR, linear_error=linear, fills=2.5, medians={3: 0.0}))
    assert found.verdict is Verdict.CONFIDENT
    assert found.reasons[-1].startswith("A linear map through 3 dimensions ")
    assert found.reasons[-1].endswith(
        "and one through fewer leaves 0.35: the task is linear, and that map is returned."
    )
    for changes in NOT_LINEAR.values():
        found = decide(replace(CLEAR, **{"linear_error": linear, "fills": 2.5, **changes}))
        assert found.verdict is Verdict.DOUBTFUL
        assert "A linear map through at most 3" in found.reasons[0]


@pytest.mark.parametrize(
    ("linear", "reason"),
    [
        ((1.0, 0.6, 0.35, 1e-3, 5e-4, 3e-4, 2e-4), ""),
        ((1.0, 0.6, 0.35, 1e-3, 4e-7, 4e-7, 4e-7), "A linear map through at most 3"),  # bends at 4
        ((1.0, 0.6, 0.81, 1e-3, 1e-3, 1e-3, 1e-3), "A linear map through at most 3"),  # a network through 2 is as good
        ((1.0, 0.6, 0.81, *[1e-15] * 4), "A linear map through 3 dimensions is exact, but through one fewer networks"),
        ((1.0, 0.6, 0.79, *[1e-15] * 4), ""),
        ((1.0, 0.6, 9e-3, 1e-6, 1e-6, 1e-6, 1e-6), "A linear map through at most 3"),  # one through 2 beats networks
        ((1.0, 0.6, 1e-15, 1e-15, 1e-15, 1e-15, 1e-15), "A linear map through at most 3"),
        ((1.0, 0.6, 0.35, 9.9e-3, 1e-2, 1e-2, 1e-2), "Through 3 dimensions half of"),  # a network does better through 5
    ],
)
def test_the_linear_map_has_to_bend_where_the_networks_do(linear: tuple[float, ...], reason: str) -> None:
    found = decide(replace(CLEAR, linear_error=linear, fills=2.5, medians={3: 0.0}))
    assert (found.verdict is Verdict.CONFIDENT) is not bool(reason)
    assert any(reason in said for said in found.reasons)


def test_a_linear_map_that_hardly_bends_leaves_a_doubt() -> None:
    """Its margin is .46: noise in all columns gives as much."""
    linear, error = (1.0, 0.6, 0.35, 0.2, 0.19, 0.18, 0.17), (1.0, 0.9, 0.5, 0.3, 0.3, 0.3)
    found = decide(replace(CLEAR, linear_error=linear, heldout_error=error, fills=2.5))
    assert found.verdict is Verdict.DOUBTFUL
    assert found.reasons[0].startswith("A linear map through at most 3")


def test_the_identity_is_no_linear_task() -> None:
    found = decide(replace(CLEAR, linear_error=EXACT, fills=2.5, columns=3))
    assert found.verdict is Verdict.DOUBTFUL
    assert found.reasons[0].startswith("All 3 columns are kept")


def test_networks_that_ended_short_of_an_exact_linear_map_are_not_believed_over_it() -> None:
    short = replace(
        CLEAR, objective=CurveReading(2, 0.01), jacobian_rank=2, neighbours=((3e-3, CurveReading(1, 0.2)),),
        linear_error=EXACT, fills=2.5,
    )  # fmt: skip
    found = decide(short)
    assert (found.rank, found.verdict) == (3, Verdict.CONFIDENT)
    assert found.reasons[-1] == "Networks only come near it; what they read, 2, is how they ended."
    assert decide(replace(short, linear_error=LINEAR)).rank == 2
    assert decide(replace(short, scree=CurveReading(2, 0.5))).rank == 2  # none of them sees it
    assert decide(replace(short, complaints=("Time ran out.",))).verdict is Verdict.DOUBTFUL


BLUNT_AT_4 = replace(
    CLEAR, objective=CurveReading(4, 0.03), jacobian_rank=4, scree=CurveReading(3, OUTVOTES),
    objectives=(9.0, 5.0, 2.0, 1.03, 1.0, 1.0),
)  # fmt: skip


def test_a_clear_held_out_error_outvotes_a_blunt_objective_in_doubt() -> None:
    decision = decide(BLUNT_AT_4)
    assert (decision.rank, decision.verdict) == (3, Verdict.DOUBTFUL)
    assert any("reads 4, not 3" in reason for reason in decision.reasons)


@pytest.mark.parametrize(
    "change",
    [
        {"scree": CurveReading(3, math.nextafter(OUTVOTES, 0))},
        {"objectives": (9.0, 5.0, 2.0, math.exp(SHARP) + 1e-9, 1.0, 1.0)},
        {"scree": CurveReading(5, OUTVOTES)},  # more dimensions than the objective asks for
        {"scree": CurveReading(0, OUTVOTES)},
    ],
    ids=["less clear", "dearer", "more", "none"],
)
def test_else_two_of_three_readings_decide(change: dict[str, Any]) -> None:
    assert decide(replace(BLUNT_AT_4, **change)).rank == 4


NOISY = replace(
    CLEAR, objective=CurveReading(5, 0.3), jacobian_rank=4, scree=CurveReading(1, CLEAR_MARGIN),
    objectives=(2.0, 1.5, 1.0, 0.5, 0.2, 0.1), heldout_error=(1.0, 0.4, 0.45, 0.86, 0.72, 0.51),
)  # fmt: skip


def test_dimensions_that_fit_noise_are_outvoted_by_a_clear_bend_of_the_held_out_error() -> None:
    found = decide(NOISY)
    assert (found.rank, found.verdict) == (1, Verdict.DOUBTFUL)


@pytest.mark.parametrize(
    "changes",
    [
        {"heldout_error": (1.0, 0.4, 0.45, 0.86, 0.72, 0.4 * AS_READ)},  # they predict nearly as well
        {"scree": CurveReading(1, BELOW_CLEAR)},
        {"scree": CurveReading(0, CLEAR_MARGIN)},  # the constant: a doubt of its own
        {"classes": True},
    ],
)
def test_what_may_be_more_than_noise_is_not_outvoted(changes: dict[str, Any]) -> None:
    assert decide(replace(NOISY, **changes)).rank == 4


def test_readings_of_a_handful_of_rows_agree_by_chance() -> None:
    """Four rows of a square read 1, confidently, once each of them had been held out."""
    assert decide(replace(CLEAR, rows=HANDFUL)).verdict is Verdict.CONFIDENT
    found = decide(replace(CLEAR, rows=HANDFUL - 1))
    assert found.verdict is not Verdict.CONFIDENT
    assert any("readings of so few agree by chance" in reason for reason in found.reasons)
