from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import discoveries
import isthmus
from isthmus import diagnose
from isthmus.diagnostics import Diagnosis
from isthmus.discovery.choices import FORETOLD
from isthmus.discovery.findings import CUT_SHORT
from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.reports.tables import cut_table
from isthmus.reports.verdict import verdict_of, verdict_of_control
from isthmus.reports.words import VerdictText, dimensions, numbered, percent
from isthmus.theory import RankEstimate, Verdict


def said(text: VerdictText) -> dict[str, str]:
    return {line.label: line.text for line in text.lines}


@pytest.mark.parametrize(
    ("rank", "verdict", "start"),
    [
        (3, Verdict.CONFIDENT, "This task needs 3 dimensions."),
        (1, Verdict.CONFIDENT, "This task needs 1 dimension."),
        (3, Verdict.DOUBTFUL, "Probably 3 dimensions, but this is doubtful."),
        (3, Verdict.NO_SHARP_RANK, "No sharp rank: no number of dimensions stands out (best single reading: 3)."),
        (0, Verdict.CONFIDENT, "0 dimensions: the targets do not depend on the inputs."),
    ],
)
def test_the_headline_gives_the_rank_and_how_sure(rank: int, verdict: Verdict, start: str) -> None:
    assert verdict_of(discoveries.discovery(rank=rank, verdict=verdict)).headline == start


def test_what_is_less_likely_than_not_is_not_called_probable() -> None:
    """19 dimensions whose readings were 1 to 20, of a probability of .37, were "probably 19"."""
    other = {"objective_rank": 20, "scree_rank": 1, "jacobian_rank": 9, "sharpness": 0.01, "scree_margin": 0.0}
    found = discoveries.discovery(verdict=Verdict.DOUBTFUL)
    readings = {**found.readings, **other, "resample_share": 0.1}
    unlikely = discoveries.discovery(verdict=Verdict.DOUBTFUL, readings=readings, task="autoencoding")
    assert (found.probability or 0.0) > 0.5 > (unlikely.probability or 1.0)
    assert verdict_of(found).headline.startswith("Probably 3")
    assert verdict_of(unlikely).headline == "Perhaps 3 dimensions, but this is doubtful."


def test_an_answer_about_a_few_rows_says_whose_it_is() -> None:
    found = discoveries.discovery(verdict=Verdict.DOUBTFUL, readings={"others_lost": 0.026})
    told = "3 dimensions for the few rows that hold most of what varies, but the others may need more."
    assert verdict_of(found).headline == told


def test_what_the_clock_cut_short_is_not_called_probable() -> None:
    """100,000 rows on 3 dimensions, 90 s on a busy machine: an 11 that had no probability was "probably 11"."""
    short = discoveries.discovery(verdict=Verdict.DOUBTFUL, warnings=(CUT_SHORT,))
    assert verdict_of(short).headline.startswith("So far 3 dimensions, but this is doubtful: the time was over")
    sure = discoveries.discovery(warnings=(CUT_SHORT,))
    assert verdict_of(sure).headline == "This task needs 3 dimensions."


def test_what_is_sure_against_a_reading_does_not_say_that_they_agree() -> None:
    agreed = discoveries.discovery()
    other = {**agreed.readings, "scree_rank": 2}
    sure, doubtful = (
        said(verdict_of(discoveries.discovery(readings=other, verdict=v)))["How sure"]
        for v in (Verdict.CONFIDENT, Verdict.DOUBTFUL)
    )
    assert sure == "Confident, though not all readings agree: see why."
    assert doubtful.startswith("Doubtful: ")


def test_what_linear_maps_tell_does_not_say_that_curves_are_sharp() -> None:
    readings = {**discoveries.discovery().readings, "linear_error_of_all": 0.03}
    sure, doubtful = (
        said(verdict_of(discoveries.discovery(readings=readings, verdict=v)))["How sure"]
        for v in (Verdict.CONFIDENT, Verdict.DOUBTFUL)
    )
    assert sure == "Confident: linear maps tell each row from the others as well as networks do, and agree on the rank."
    assert doubtful.startswith("Doubtful: ")


def test_the_lines_give_the_evidence() -> None:
    lines = said(verdict_of(discoveries.discovery(control=True)))
    assert "tasks of known rank (estimate)" in lines.pop("Probability")  # its number is measured anew now and then
    assert lines == {
        "How sure": "Confident: the readings agree and the curves are sharp.",
        "Why": "The objective curve, the scree curve and the Jacobian gap all read 3.",
        "Error": "Through 3 dimensions, 0.097 % of the variance is missed on held-out data; a further dimension that "
        "saves less than about 0.057 % would cost more than that at ridge 0.001.",  # (2 ridge)^(4/3) (3/2)^2
        "One fewer": "With 2 dimensions the error is 101 times as large.",
        "Linear maps": "A linear map (reduced-rank regression) does not reach this error with any rank tried, "
        "up to 6 dimensions.",
        "Proved": "For the network found: at least 3 (Jacobian of rank 3 at sample 0), "
        "at most 3 (explicit factorisation).",
        "Control": "Random data of the same covariance, through the same steps, give no sharp rank "
        "(best single reading: 4), as it should be.",
    }


@pytest.mark.parametrize(
    ("rank", "targets", "start"),
    [
        (1, ("yield",), "The rank cannot exceed the number of targets, so the one target that was given could not show "
                        "more than 1 dimension, however many combinations of the inputs it depends on."),
        (2, ("yield", "purity"), "The rank cannot exceed the number of targets, so the 2 targets that were given"),
        (1, ("yield", "purity"), None),
        (0, ("yield",), None),
    ],
)  # fmt: skip
def test_a_rank_that_could_not_be_larger_is_said_to_be_so(
    rank: int, targets: tuple[str, ...], start: str | None
) -> None:
    line = said(verdict_of(discoveries.discovery(rank=rank, target_names=targets))).get("Limit")
    assert line is None if start is None else (line or "").startswith(start)
    for task in ("autoencoding", "classification"):
        found = discoveries.discovery(rank=rank, target_names=targets, task=task)
        assert "Limit" not in said(verdict_of(found))


def test_how_often_the_rank_comes_back_is_said() -> None:
    found = discoveries.discovery(readings={"resample_share": 0.985, "start_share": 0.5})
    assert said(verdict_of(found))["How stable"] == (
        "The held-out error bends at 3 in 98 % of the resamples of the held-out rows, and 50 % of the starts keep "
        "as many before any number is imposed."
    )
    assert "How stable" not in said(verdict_of(discoveries.discovery()))
    remedy = {"name": "every row held out", "words": "held out every row once", "rank": 3, "verdict": "CONFIDENT"}
    folded = said(verdict_of(replace(found, remedies=(remedy,))))["How stable"]
    assert "of the rows that were held out first, and" in folded, "all rows, held out once each, read something else"


@pytest.mark.parametrize(("name", "was"), [("one fewer", "was sure, and held against"), ("descent", "was in doubt,")])
def test_it_says_whether_the_first_answer_was_in_doubt(name: str, was: str) -> None:
    remedy = {"name": name, "words": "trained long", "rank": 3, "verdict": "CONFIDENT"}
    line = said(verdict_of(discoveries.discovery(remedies=(remedy,))))["Doubts"]
    assert f"the first answer {was}" in line.lower()
    assert line.endswith("so the search trained long (3, confident).")


def test_one_fewer_than_one_is_none() -> None:
    found = discoveries.discovery(rank=1, readings={"one_fewer": 306.0})
    assert said(verdict_of(found))["One fewer"] == "With none the error is 306 times as large."


def test_where_hardly_anything_is_lost_the_loss_through_one_fewer_is_said() -> None:
    """A ratio to rounding is no number that anyone can use."""
    for ratio, text in ((9e3, "the error is 9000 times as large"), (2.6e13, "2.6 % of the variance is missed")):
        found = discoveries.discovery(readings={"one_fewer": ratio, "heldout_error": 1e-15})
        assert said(verdict_of(found))["One fewer"] == f"With 2 dimensions {text}."


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({}, True),
        ({"ridge": 0.01}, False),  # more than all that is missed
        ({"task": "classification"}, False),  # whose loss has no variance
        ({"network": LeakyResNet(4, 3, width=5, depth=2, effective_depth=1.0)}, False),
    ],
    ids=["as-found", "large-ridge", "classes", "residual"],
)
def test_what_is_too_weak_to_be_counted_is_told_where_so_much_is_missed(changes: dict[str, Any], is_told: bool) -> None:
    ridge = changes.pop("ridge", 0.001)
    found = discoveries.discovery(**changes)
    found = replace(found, readings={**found.readings, "ridge": ridge})
    assert ("further dimension" in said(verdict_of(found))["Error"]) is is_told


def test_a_linear_map_that_is_returned_is_said_to_be() -> None:
    encoder, decoder = (FullyConnected.from_layers([torch.eye(3)], [torch.zeros(3)]) for _ in range(2))
    found = discoveries.discovery(encoder=encoder, decoder=decoder)
    assert found.is_linear
    assert not discoveries.discovery(encoder=encoder).is_linear
    text = "does as well as networks through 3 dimensions, and is what is returned."
    assert said(verdict_of(found))["Linear maps"] == f"A linear map (reduced-rank regression) {text}"


def test_an_autoencoder_is_compared_with_pca() -> None:
    found = discoveries.discovery(task="autoencoding", readings={"linear_rank": 13, "one_fewer": 1.01})
    assert said(verdict_of(found))["PCA"] == "PCA needs 13 dimensions for the same error."
    assert said(verdict_of(found))["One fewer"] == "With 2 dimensions the error is not larger."


def test_classes_have_a_loss_and_no_variance() -> None:
    text = said(verdict_of(discoveries.discovery(task="classification")))["Error"]
    assert text == "Through 3 dimensions, 0.097 % of the loss of the best constant is left on held-out data."
    assert "Accuracy" not in said(verdict_of(discoveries.discovery(task="classification")))


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ([0.5, 0.7, 0.985, 0.99, 0.99, 0.99], "1 dimension, 70 % through 2, 98 % through 3, 99 % through 4."),
        ([0.99] * 6, "1 dimension."),
        ([0.5, 0.75, 0.5, 0.5, 0.5, 0.75], "1 dimension, 75 % through 2, 50 % through 3, 50 % through 4, 50 % through "
        "5, 75 % through 6."),
    ],
)  # fmt: skip
def test_how_many_classes_are_right_is_said_up_to_the_last_change(shares: list[float], text: str) -> None:
    scree = discoveries.curves()[0].assign(heldout_accuracy=("rank", shares))
    found = said(verdict_of(discoveries.discovery(task="classification", scree=scree)))["Accuracy"]
    assert found == f"{shares[0]:.0%} of the held-out classes are right through {text}".replace("%", " %", 1)


def test_the_rank_for_accuracy_is_told_with_what_one_fewer_tells_and_two_classes_why_they_have_no_probability() -> None:
    scree = discoveries.curves()[0].assign(
        fold_accuracy=("rank", [0.6, 0.806, 0.913, 0.915, 0.914, 0.91]), fold_accuracy_error=("rank", [0.012] * 6)
    )
    asked = {"accuracy_rank": 3, "accuracy_rank_low": 3, "accuracy_rank_high": 4}
    found = discoveries.discovery(task="classification", scree=scree)
    found = replace(found, readings={**found.readings, **asked})
    lines = said(verdict_of(found))
    assert lines["For accuracy"].startswith(
        "Through 3 dimensions as many classes are right as through any, within a standard error: 91.3% +- 1.2%, 80.6% "
        "through one fewer."
    )
    assert "(3 to 4 on 95 % of resampled rows)" in lines["For accuracy"]
    two = replace(found, settings={**found.settings, "encoder_side": "linear"})
    assert "too few such tasks" in said(verdict_of(two))["Probability"]
    lowest = said(verdict_of(replace(found, readings={**found.readings, **asked, "accuracy_rank": 1})))
    assert "60.0% +- 1.2%. Each row" in lowest["For accuracy"], "nothing is known through none"


def test_a_sharp_control_is_said_to_be_suspicious() -> None:
    found = discoveries.discovery(control=True)
    assert found.control is not None
    found = replace(found, control=replace(found.control, verdict=Verdict.CONFIDENT))
    assert "a confident 4, so the rank above may come from the covariance alone" in said(verdict_of(found))["Control"]


def test_a_control_makes_no_claim_about_a_task() -> None:
    for verdict in Verdict:
        text = verdict_of_control(discoveries.discovery(verdict=verdict))
        assert text.headline.startswith("Random data of the same covariance")
        assert set(said(text)) == {"How sure", "Why", "Error", "One fewer"}


def test_where_no_rank_stands_out_none_has_a_probability() -> None:
    """It was measured on tasks that have one."""
    for verdict in Verdict:
        found = discoveries.discovery(verdict=verdict)
        assert found.probability is not None
        assert ("Probability" in said(verdict_of(found))) is (
            verdict not in {Verdict.NO_SHARP_RANK, Verdict.TOO_FEW_DATA}
        )


def test_constant_targets_are_sure_because_nothing_varies() -> None:
    found = isthmus.discover(np.random.default_rng(0).normal(size=(50, 3)), np.ones((50, 1)))
    assert said(verdict_of(found))["How sure"] == "Confident: nothing varies that could be predicted."
    trained = discoveries.discovery(verdict=Verdict.CONFIDENT)
    assert "the readings agree" in said(verdict_of(trained))["How sure"]


@pytest.mark.parametrize(("foretold", "is_told"), [(None, True), (FORETOLD, True), (FORETOLD + 0.01, False)])
def test_a_rank_that_is_known_to_be_too_small_has_no_probability(foretold: float | None, *, is_told: bool) -> None:
    """92 % was told of 2 beside the sentence that there is a further dimension; no task that was measured had such."""
    found = discoveries.discovery(verdict=Verdict.DOUBTFUL)
    told = replace(found, readings={**found.readings, "foretold": foretold})
    assert (told.probability is not None) is is_told
    assert ("Probability" in said(verdict_of(told))) is is_told


def test_a_set_of_all_ranks_is_said_to_tell_nothing() -> None:
    found = discoveries.discovery(verdict=Verdict.DOUBTFUL)
    wide = replace(found, readings={**found.readings, "jacobian_rank": found.most_rank, "scree_rank": 1})
    assert wide.rank_set == tuple(range(found.most_rank + 1))
    assert "can leave no rank out" in said(verdict_of(wide))["Probability"]
    fewer = replace(found, readings={**wide.readings, "most_rank": found.most_rank - 1})
    assert max(fewer.rank_set) == found.most_rank - 1, "columns made of others add no rank"
    sure = replace(found, verdict=Verdict.CONFIDENT)
    assert len(sure.rank_set) < found.most_rank
    assert "the truth was" in said(verdict_of(sure))["Probability"]


def test_what_is_not_known_is_not_said() -> None:
    scree = discoveries.curves()[0]
    scree["heldout_error"][2] = np.nan
    found = discoveries.discovery(readings={"one_fewer": None}, scree=scree)
    assert set(said(verdict_of(found))) == {"How sure", "Why", "Proved"}
    beyond = discoveries.discovery(rank=9, readings={"one_fewer": float("inf")})
    assert set(said(verdict_of(beyond))) == {"How sure", "Why", "Proved"}


def diagnosed(gaps: Sequence[float], jacobian: int, *, lower: int = 3, **columns: list[float]) -> Diagnosis:
    found = discoveries.discovery().diagnosis
    rank = RankEstimate(3, lower, 3, "a witness", "a matrix", 1e-6, {"jacobian_gap": jacobian})
    added = {name: ("layer", np.array(values)) for name, values in {"dimension_activation": gaps, **columns}.items()}
    return Diagnosis(found.layers.assign(added), rank, [])


def test_a_diagnosis_gives_the_rank_its_interval_and_the_layers() -> None:
    found = diagnosed([7, 3, 3, 3], 3, identity_defect=[0.7, 0.04, 0.1, 0.3])
    found.layers.attrs |= {"data_loss": 0.25, "objective": 0.5}
    text = verdict_of(found)
    assert text.headline == "The network works through 3 dimensions."
    assert said(text) == {
        "Interval": "At least 3: a witness, counting those above 1e-06 of the largest; at most 3: a matrix.",
        "Jacobian": "The median singular values of df/dx have their largest gap after 3.",
        "Layers": "The centred activations have their largest gap after 3 in layers 2 to 4 of 4, up to 7 elsewhere.",
        "Agreement": "The Jacobian and the narrowest layer give the same number.",
        "Near identity": "Layer 2 of 4 only rotates what enters, within 10 %.",
        "Loss": "Data loss 0.25 (per sample), objective 0.5.",
    }


def test_a_diagnosis_says_where_its_readings_differ() -> None:
    assert "more than the Jacobian" in said(verdict_of(diagnosed([7, 5, 5, 6], 3)))["Agreement"]
    fewer = said(verdict_of(diagnosed([7, 2, 5, 6], 3)))["Agreement"]
    assert fewer.startswith("Layer 2 may seem to have fewer directions than the Jacobian")
    wide = verdict_of(diagnosed([7, 2, 5, 6], 3, lower=2, hamiltonian=[np.nan, -2.0, -1.5, np.nan]))
    assert wide.headline == "The network seems to work through 3 dimensions."
    assert said(wide)["Hamiltonian"] == "Between -2 and -1.5 over depth."


def test_a_wide_layer_with_a_gap_after_few_says_nothing_against_layers_that_agree() -> None:
    text = said(verdict_of(diagnosed([1, 3, 3, 7], 3)))
    assert text["Agreement"] == "The Jacobian and layers 2, 3 give the same number."
    without = said(verdict_of(diagnosed([np.nan, 3, np.nan, 7], 3)))
    assert without["Layers"].endswith("after 3 in layer 2 of 4, up to 7 elsewhere; 2 have none.")
    assert without["Agreement"] == "The Jacobian and the narrowest layer give the same number."
    assert said(verdict_of(diagnosed([np.nan, 3, 3, 7], 3)))["Layers"].endswith("; 1 has none.")
    nowhere = said(verdict_of(diagnosed([np.nan] * 4, 3)))
    assert "no number of directions stands out" in nowhere["Layers"]
    assert "Agreement" not in nowhere


def test_a_sketch_that_shows_all_it_can_gives_no_more_than_a_lower_bound() -> None:
    """A network of rank 80 with 200 outputs, of which 64 combinations are differentiated; 20 rows; one of rank 3."""
    torch.manual_seed(0)
    cases = ((95, 80, 64), (20, 80, 19), (20, 3, None))
    for rows, rank, most in cases:
        headline = f"The network seems to work through {most} dimensions or more." if most else None
        found = diagnose(nn.Sequential(nn.Linear(90, rank), nn.Linear(rank, 200)), torch.randn(rows, 90))
        text = verdict_of(found)
        lost = "The network works through 3 dimensions: less than 0.01 % of the output is lost there."
        assert text.headline == (headline or lost)
        assert (f"cannot show more than {most} dimensions" in said(text)["Jacobian"]) is (headline is not None)
        assert ("Agreement" in said(text)) is (headline is None)
        assert str(found.rank) == (f"{most} or more" if headline else "3")
        assert found.rank.is_at_least is (headline is not None)


def test_a_narrow_place_counts_where_the_outputs_lose_less() -> None:
    """3 of 10 outputs is narrow nowhere here but in layer 3 of 4, which is 40 wide."""
    cuts = xr.Dataset(
        {
            "rank": (("place", "loss"), [[3.0], [3.0]]),
            "lost": (("place", "loss"), [[0.03], [0.0]]),
            "width": ("place", [40, 3]),
            "lost_at_suggested": ("place", [0.03, 0.0]),
        },
        coords={"layer": ("place", [3, 4]), "loss": [0.1]},
        attrs={"widest": 40, "judges": 20, "left_out": [], "not_cut": []},
    )
    found = replace(diagnosed([7, 3, 3, 3], 3), cuts=cuts)
    assert verdict_of(found).headline == "The network works through 3 dimensions: 3 % of the output is lost there."
    outputs = replace(found, cuts=cuts.isel(place=[1]))
    assert verdict_of(outputs).headline.endswith("less than 0.01 % of the output is lost there, where 3 numbers pass.")
    all_of_them = replace(outputs, rank=replace(outputs.rank, upper_reason="number of outputs"))
    assert verdict_of(all_of_them).headline == (
        "No narrow place: the network works through 3 dimensions, as many as it has outputs."
    )
    inside = replace(found, rank=replace(found.rank, upper_reason="number of outputs"))
    assert verdict_of(inside).headline == (
        "The network works through 3 dimensions, as many as it has outputs: 3 % of the output is lost there."
    )


def test_what_the_readings_suggest_is_not_said_twice() -> None:
    cuts = xr.Dataset(
        {
            "rank": (("place", "loss"), [[2.0], [3.0]]),
            "lost": (("place", "loss"), [[0.06], [0.0]]),
            "width": ("place", [64, 3]),
            "lost_at_suggested": ("place", [0.06, 0.17]),
        },
        coords={"layer": ("place", [3, 4]), "loss": [0.1]},
        attrs={"widest": 64, "judges": 20, "left_out": [], "not_cut": [], "suggested": 2},
    )
    found = replace(diagnosed([7, 3, 3, 3], 3), cuts=cuts)
    found = replace(found, rank=replace(found.rank, estimate=None, missing="no gap", lower=1, upper=3))
    said = verdict_of(found).headline
    assert said == "Through 2 dimensions, which its readings suggest, 6 % of the output is lost."
    less = cuts.assign(lost_at_suggested=("place", [0.06, 0.014]))
    assert verdict_of(replace(found, cuts=less)).headline == (
        "Through 2 dimensions, which its readings suggest, 6 % of the output is lost; behind another layer 1.4 % is."
    )
    cuts.attrs["suggested"] = 3
    assert verdict_of(found).headline.startswith("Through 2 dimensions 6 % of the output is lost")


@pytest.mark.parametrize("lost", [[0.079, 0.004], [0.004, 0.079]], ids=str)
def test_of_layers_that_need_as_many_directions_the_least_loss_is_told(lost: list[float]) -> None:
    cuts = xr.Dataset(
        {
            "rank": (("place", "loss"), [[3.0], [3.0]]),
            "lost": (("place", "loss"), [[share] for share in lost]),
            "width": ("place", [64, 6]),
            "lost_at_suggested": ("place", [0.06, 0.003]),
        },
        coords={"layer": ("place", [1, 2]), "loss": [0.1]},
        attrs={"widest": 64, "judges": 20, "left_out": [], "suggested": 4},
    )
    found = replace(diagnosed([7, 3, 3, 3], 3), cuts=cuts)
    found = replace(found, rank=replace(found.rank, estimate=None, missing="no gap", lower=1, upper=6))
    assert verdict_of(found).headline.startswith("Through 3 dimensions 0.4 % of the output is lost; through 4 ")


def test_more_directions_than_there_are_outputs_are_no_narrow_place() -> None:
    """Through 2 of 3 outputs 17 % is lost, behind a layer of width 64 through 4 directions 6 %."""
    cuts = xr.Dataset(
        {
            "rank": (("place", "loss"), [[4.0], [3.0]]),
            "lost": (("place", "loss"), [[0.06], [0.0]]),
            "width": ("place", [64, 3]),
            "lost_at_suggested": ("place", [0.26, 0.17]),
        },
        coords={"layer": ("place", [3, 4]), "loss": [0.1]},
        attrs={"widest": 64, "judges": 20, "left_out": [], "not_cut": []},
    )
    found = replace(diagnosed([7, 3, 3, 3], 3), cuts=cuts)
    rank = replace(found.rank, estimate=2, lower=2, upper=3)
    assert verdict_of(replace(found, rank=rank)).headline.startswith("Through 4 dimensions 6 % of the output is lost")
    outputs = replace(rank, upper_reason="number of outputs")
    assert verdict_of(replace(found, rank=outputs)).headline == (
        "No narrow place: through 2 dimensions, which its readings suggest, 17 % of the output is lost."
    )


def test_a_loss_that_is_rounding_is_not_written_with_its_digits() -> None:
    cuts = xr.Dataset(
        {
            "name": ("place", ["a", "b", "c"]),
            "rank": (("place", "loss"), [[3.0]] * 3),
            "width": ("place", [40, 3, 3]),
            "lost_at_suggested": ("place", [0.03, 5e-16, np.nan]),
        },
        coords={"layer": ("place", [3, 4, 5]), "loss": [0.1]},
        attrs={"suggested": 3},
    )
    table = cut_table(replace(diagnosed([7, 3, 3, 3], 3), cuts=cuts))
    assert table is not None
    assert [row[-1] for row in table.rows] == ["3 %", "< 0.01 %", ""]
    assert len(table.headings) - 1 not in table.words, "numbers stand to the right"


def test_numbers_are_drawn_together_where_they_follow_each_other() -> None:
    assert numbered("layer", [3]) == "layer 3"
    assert numbered("layer", [1, 2, 4, 5, 6, 9]) == "layers 1, 2, 4 to 6, 9"


def test_counts_agree_in_number() -> None:
    assert [dimensions(k) for k in (0, 1, 2)] == ["0 dimensions", "1 dimension", "2 dimensions"]


class Picked(nn.Module):
    """One number of what a network gives, as a column or as a number for each row."""

    def __init__(self, *widths: int, squeezed: bool) -> None:
        super().__init__()
        parts = [part for a, b in zip(widths, widths[1:], strict=False) for part in (nn.Linear(a, b), nn.Tanh())]
        self.inner, self.squeezed = nn.Sequential(*parts[:-1]), squeezed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 1) or (n,)."""
        found = self.inner(x)
        return found[:, 0] if self.squeezed else found[:, :1]


@pytest.mark.parametrize("jacobians", [True, False])
@pytest.mark.parametrize("squeezed", [True, False])
@pytest.mark.parametrize(
    ("widths", "needs"),
    [
        ((8, 24, 2, 24, 1), "2 dimensions behind layer"),
        ((8, 24, 2, 24, 6), "2 dimensions behind layer"),
        ((8, 24, 24, 1), "8 dimensions behind layer 1"),
        ((8, 1), "no cut inside has judged"),
        ((8, 24, 1, 24, 1), "1 dimension behind layer"),
    ],
    ids=["waist", "waist-then-pick", "none", "linear", "waist-of-one"],
)
def test_one_output_is_told_by_what_it_needs_inside(
    widths: tuple[int, ...], needs: str, squeezed: bool, jacobians: bool
) -> None:
    """Through 1 dimension, which its readings suggest, 99 % of the output is lost: of one output that is nothing."""
    torch.manual_seed(0)
    module, x = Picked(*widths, squeezed=squeezed), torch.randn(300, 8)
    told = verdict_of(diagnose(module, x, jacobians=jacobians))
    assert needs in told.headline
    assert "No narrow place" not in told.headline
    assert told.headline.startswith("The one output needs ") is ("behind" in needs)
    cuts = said(told).get("Cuts", "")
    assert (f"{needs.split()[0]} at 1 % lost" in cuts) is ("behind" in needs), "the output itself is no place inside"


@pytest.mark.parametrize("jacobians", [True, False])
def test_a_headline_of_nothing_lost_does_not_deny_a_narrow_place(jacobians: bool) -> None:
    """No narrow place: less than 0.01 % is lost there: where a place of 24 numbers keeps all by as many as come out."""
    torch.manual_seed(0)
    x = torch.randn(300, 4) @ torch.randn(4, 12)
    told = verdict_of(diagnose(nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 4)), x, jacobians=jacobians))
    assert not (told.headline.startswith("No narrow place") and "which its readings suggest" in told.headline)
    assert "as many as it has outputs" in told.headline


def test_a_share_that_is_all_but_rounding_is_all() -> None:
    assert [percent(share) for share in (1 - 2e-16, 1.0, 0.9996)] == ["100 %", "100 %", "99.96 %"]


@pytest.mark.parametrize("effort", ["quick", "default"])
@pytest.mark.parametrize("verdict", list(Verdict), ids=str)
def test_quick_effort_says_that_it_left_doubts(effort: str, verdict: Verdict) -> None:
    found = discoveries.discovery(verdict=verdict)
    found = replace(found, settings={**found.settings, "effort": effort})
    is_told = effort == "quick" and verdict in {Verdict.DOUBTFUL, Verdict.NO_SHARP_RANK}
    assert ("Doubts" in said(verdict_of(found))) is is_told


def test_the_scaling_is_said_and_how_many_columns_count() -> None:
    kept = replace(discoveries.discovery(), task="autoencoding")
    of = {**kept.settings, "scaling": "global"}
    one_scale = replace(kept, settings=of, readings={**kept.readings, "columns_holding": 2})
    assert said(verdict_of(kept))["Scaling"] == (
        "Each column was given variance 1, so that all count alike, however little one varies."
    )
    assert said(verdict_of(one_scale))["Scaling"] == (
        "All columns were divided by one number, so that those count that vary most: 2 of 4 hold 95 % of the variance, "
        "the others hardly count."
    )
    targets = replace(one_scale, task="regression")
    assert said(verdict_of(targets))["Scaling"].startswith("All targets were divided by one number")
    assert "Scaling" not in said(verdict_of(replace(kept, task="regression"))), "as usual"
    classes = replace(one_scale, task="classification", settings={**of, "loss": "cross_entropy"})
    assert "Scaling" not in said(verdict_of(classes)), "of classes nothing is scaled"
    lone = replace(one_scale, target_names=("flux",))
    assert "Scaling" not in said(verdict_of(lone)), "one column counts alone"
