from dataclasses import replace

import numpy as np
import pytest

import discoveries
from isthmus.reports.verdict import VerdictText, dimensions, verdict_of
from isthmus.theory import Verdict


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


def test_the_lines_give_the_evidence() -> None:
    found = discoveries.discovery(control=True)
    assert said(verdict_of(found)) == {
        "How sure": "Confident: the readings agree and the curves are sharp.",
        "Why": "The objective curve, the scree curve and the Jacobian gap all read 3.",
        "Error": "Through 3 dimensions, 0.097 % of the variance is missed on held-out data.",
        "One fewer": "With 2 dimensions the error is 101 times as large.",
        "Linear maps": "A linear map (reduced-rank regression) does not reach this error with any rank tried, "
        "up to 6 dimensions.",
        "Proved": "For the network found: at least 3 (Jacobian of rank 3 at sample 0), "
        "at most 3 (explicit factorisation).",
        "Control": "Random data of the same covariance, through the same steps, give no sharp rank "
        "(best single reading: 4), as it should be.",
    }


def test_an_autoencoder_is_compared_with_pca() -> None:
    found = discoveries.discovery(task="autoencoding", readings={"linear_rank": 13, "one_fewer": 1.01})
    assert said(verdict_of(found))["PCA"] == "PCA needs 13 dimensions for the same error."
    assert said(verdict_of(found))["One fewer"] == "With 2 dimensions the error is not larger."


def test_classes_have_a_loss_and_no_variance() -> None:
    text = said(verdict_of(discoveries.discovery(task="classification")))["Error"]
    assert text == "Through 3 dimensions, 0.097 % of the loss of the best constant is left on held-out data."


def test_a_sharp_control_is_said_to_be_suspicious() -> None:
    found = discoveries.discovery(control=True)
    assert found.control is not None
    found = replace(found, control=replace(found.control, verdict=Verdict.CONFIDENT))
    assert "a confident 4, so the rank above may come from the covariance alone" in said(verdict_of(found))["Control"]


def test_what_is_not_known_is_not_said() -> None:
    scree = discoveries.curves()[0]
    scree["heldout_error"][2] = np.nan
    found = discoveries.discovery(readings={"one_fewer": None}, scree=scree)
    assert set(said(verdict_of(found))) == {"How sure", "Why", "Proved"}
    beyond = discoveries.discovery(rank=9, readings={"one_fewer": float("inf")})
    assert set(said(verdict_of(beyond))) == {"How sure", "Why", "Proved"}


def test_a_diagnosis_has_a_verdict_too() -> None:
    text = verdict_of(discoveries.discovery().diagnosis)
    assert text.headline == "The network works through 3 dimensions."
    assert said(text)["Proved"].startswith("For the network found: at least 3 (Jacobian of rank 3")


def test_counts_agree_in_number() -> None:
    assert [dimensions(k) for k in (0, 1, 2)] == ["0 dimensions", "1 dimension", "2 dimensions"]
