"""The sentences, the table and the line of the verdict about a linear half, of directions that are known."""

import numpy as np
import pytest
import xarray as xr

import discoveries
from isthmus.discovery.evidence.straight_halves import straight_half
from isthmus.reports import verdict_of
from isthmus.reports.straight_words import StraightText, lead, straight_section
from isthmus.theory import Verdict

NAMES = ("a", "b", "c", "d", "e")
ROW = np.array([[0.71, 0.69, -0.12, 0.01, 0.0]])
ONE = discoveries.straight(ROW / np.linalg.norm(ROW), input_names=NAMES, target_names=("yield",))
FOUR = discoveries.straight(np.eye(5)[:4], input_names=NAMES, outputs=3)
MODES = discoveries.straight(np.eye(5)[:2], kind="mode", outputs=4, target_names=NAMES)
DRAWN = np.random.default_rng(0).normal(size=(300, 5))
X = (DRAWN - DRAWN.mean(0)) / DRAWN.std(0)


def section(found: discoveries.Discovery, *rows: np.ndarray) -> StraightText:
    half = straight_half(found, *rows)
    assert half is not None
    return straight_section(found, half)


def line(found: discoveries.Discovery, label: str, *rows: np.ndarray) -> str:
    (text,) = [line.text for line in verdict_of(found, *rows).lines if line.label == label]
    return text


@pytest.mark.parametrize(
    ("found", "changes", "text"),
    [
        (ONE, {}, "yield depends on 1 combination of the 5 inputs."),
        (ONE, {"verdict": Verdict.DOUBTFUL}, "yield probably depends on 1 combination of the 5 inputs."),
        (FOUR, {}, "The 3 targets depend on 4 combinations of the 5 inputs."),
        (FOUR, {"verdict": Verdict.NO_SHARP_RANK},
         "No number of combinations stands out; 4 combinations, the best single reading, would be these."),
        (FOUR, {"task": "classification"}, "The class depends on 4 combinations of the 5 inputs."),
        (FOUR, {"task": "autoencoding"}, "The 5 columns can be rebuilt from 4 combinations of them."),
        (MODES, {}, "The 5 targets move in 2 modes."),
    ],
)  # fmt: skip
def test_the_lead_says_what_depends_on_how_many(
    found: discoveries.Discovery, changes: dict[str, object], text: str
) -> None:
    assert lead(discoveries.replace(found, **changes)) == text  # pyright: ignore[reportArgumentType] - the table names fields


def test_the_table_has_each_combination_in_both_units_and_its_share() -> None:
    spread = np.array([1.0, 100.0, 0.5, 1.0, 1.0])
    found = discoveries.straight(ROW / np.linalg.norm(ROW), input_names=NAMES, spread=spread)
    text = section(found, X * spread)
    assert text.title == "Combinations of the inputs"
    assert text.table.headings == (
        "combination", "share of the squared slopes", "in standardised columns", "the same in your units",
    )  # fmt: skip
    assert text.table.rows == (("1", "100 %", "0.71 a + 0.69 b - 0.12 c", "0.712 a + 0.00692 b - 0.241 c"),)
    assert text.table.words == (0, 2, 3)
    without = section(found)
    assert without.table.headings == ("combination", "in your units, of length 1")
    assert without.table.rows == (("1", "0.947 a - 0.32 c"),)


def test_inputs_that_take_no_part_are_named_and_how_small_they_are() -> None:
    assert section(ONE, X).notes[0] == (
        "2 inputs are ignored by this network: d, e. Each has in standardised columns a loading below 0.05."
    )
    assert section(FOUR, X).notes[0] == (
        "1 input is ignored by this network: e. It has in standardised columns a loading below 0.05 in every "
        "combination."
    )
    assert section(discoveries.straight(np.full((1, 4), 0.5)), X[:, :4]).notes[0].startswith("All 4 inputs take part")
    assert section(MODES).notes[0].startswith("3 outputs do not move with this network: c, d, e.")


def test_the_span_is_said_to_be_determined_and_the_rotation_to_be_a_choice() -> None:
    assert "What the data determine is the span of the combinations" in section(FOUR, X).notes[1]
    assert "is a choice" in section(FOUR, X).notes[1]
    assert "determined but for its sign" in section(ONE, X).notes[1]


def test_the_verdict_has_the_short_text() -> None:
    assert line(ONE, "Combinations", X) == "In standardised columns: 0.71 a + 0.69 b - 0.12 c."
    assert line(ONE, "Combinations") == "In your units, of length 1: 0.71 a + 0.69 b - 0.12 c."
    text = line(discoveries.straight(np.eye(6)[:5]), "Combinations")
    assert text.endswith("; and 1 more.")
    assert text.count("1.00 ") == 4
    assert line(MODES, "Modes") == "In your units, of length 1: (1) 1.00 a; (2) 1.00 b."
    labels = [line.label for line in verdict_of(discoveries.discovery(), discoveries.inputs()).lines]
    assert not {"Combinations", "Modes"} & set(labels)


def test_a_linear_half_is_counted_in_its_own_words() -> None:
    assert verdict_of(FOUR).headline == "This task needs 4 combinations of the inputs."
    assert "up to 6 combinations of the inputs." in line(FOUR, "Linear maps")
    unsharp = discoveries.replace(MODES, verdict=Verdict.NO_SHARP_RANK)
    assert verdict_of(unsharp).headline.startswith("No sharp rank: no number of modes stands out")
    nothing = discoveries.replace(ONE, rank=0, verdict=Verdict.DOUBTFUL)
    assert verdict_of(nothing).headline == (
        "Probably no combination, but this is doubtful: held-out data are predicted better through 3 combinations of "
        "the inputs."
    )
    flat = discoveries.replace(nothing, readings={**nothing.readings, "scree_rank": 0})
    assert verdict_of(flat).headline.startswith("No combination was found to help")
    sure = discoveries.replace(ONE, rank=0)
    assert verdict_of(sure).headline == "0 combinations of the inputs: the targets do not depend on the inputs."


def test_how_far_each_combination_is_uncertain_stands_beside_it() -> None:
    rows = np.eye(5)[:4]
    both = {f"loading_{end}": (("combination", "input"), rows) for end in ("low", "high")}
    parts = {"loading": (("combination", "input"), rows), "cone": ("combination", np.radians([1.0, 2, 3, 4.25]))}
    text = section(discoveries.replace(FOUR, combinations=xr.Dataset({**parts, **both})))
    assert text.table.headings == ("combination", "uncertain by", "in standardised columns")
    assert [row[1] for row in text.table.rows] == ["1°", "2°", "3°", "4.2°"]
    assert [row[2] for row in text.table.rows] == ["1.00 a", "1.00 b", "1.00 c", "1.00 d"]


def test_a_column_of_text_is_one_input() -> None:
    made = [{"made": "numeric"}, *({"made": "one-hot", "column": c, "value": v} for c, v in ("hr", "hb", "mt", "mz"))]
    names = ("a", "h=r", "h=b", "m=t", "m=z")
    found = discoveries.straight(np.array([[0.8, 0.6, 0.0, 0.0, 0.0]]), input_names=names, target_names=("y",))
    found = discoveries.replace(found, settings={**found.settings, "input_columns": made})
    assert lead(found) == "y depends on 1 combination of the 3 inputs."
    ignored, chosen = section(found, X).notes
    assert ignored == "1 input is ignored by this network: m. It has in standardised columns a loading below 0.05."
    assert chosen.endswith("Of the values of h, m only differences count, since they add up to 1 in every row.")
    assert line(found, "Combinations", X) == "In standardised columns: 0.80 a + h (0.60 r)."
    assert "differences" not in section(ONE, X).notes[1]


def steep(*, apart: tuple[float, ...], angle: tuple[float, ...] | None = None) -> discoveries.Discovery:
    """Three combinations of which the slopes are known."""
    found = discoveries.straight(np.eye(5)[:3], input_names=NAMES, target_names=("yield",))
    rows = np.array([[0.6, 0.8, 0, 0, 0], [-0.8, 0.6, 0, 0, 0], [0, 0, 1.0, 0, 0]])
    names = ("combination", "input")
    parts = {"loading": (names, np.eye(5)[:3]), "gradient_direction": (("leading", "input"), rows)}
    parts |= {
        "gradient_share": ("leading", np.array([0.9, 0.08, 0.02])),
        "least_loss_angle": ("leading", list(apart)),
    }
    return discoveries.replace(
        found, combinations=xr.Dataset(parts | ({"gradient_angle": ("leading", list(angle))} if angle else {}))
    )


def test_directions_of_largest_slope_stand_beside_the_combinations() -> None:
    found = steep(apart=(0.05, 0.02, np.nan), angle=(0.01, 0.02, 0.03))
    text = section(found)
    assert text.steepest is not None
    assert text.steepest.headings == (
        "direction", "share of the squared slopes", "the first so many uncertain by", "in standardised columns",
    )  # fmt: skip
    assert text.steepest.rows[0] == ("1", "90 %", "0.57°", "0.80 b + 0.60 a")
    assert text.steepest_notes[1] == (
        "Through fewer combinations alone least is lost along nearly the same, at most 2.9° from the steepest."
    )
    assert line(found, "Slopes") == (
        "90 % of the squared ones lie along 0.80 b + 0.60 a (uncertain by 0.57°); 98 % along 2, 100 % along 3 "
        "directions."
    )
    assert section(FOUR).steepest is None  # a run from before they were recorded
    assert section(ONE, X).steepest is None
    assert "Slopes" not in [line.label for line in verdict_of(FOUR, X).lines]


def test_it_is_said_where_what_is_steep_is_not_what_matters() -> None:
    differs = "Through fewer combinations alone least is lost along others, 86° from the first 1, 29° from the first 2"
    sentence = section(steep(apart=(1.5, 0.5, np.nan), angle=(0.01, 0.02, 0.03))).steepest_notes[1]
    assert differs.lower() in sentence.lower()
    assert "Steep is not what matters most" in line(steep(apart=(1.5, 0.5, np.nan)), "Slopes")
    # as far as trainings on halves of the rows go, it says nothing
    blurred = section(steep(apart=(1.5, 0.5, np.nan), angle=(0.9, 0.3, 0.03))).steepest_notes[1]
    assert blurred == "Whether they are those through which least is lost, these rows do not tell."
    assert section(steep(apart=(np.nan,) * 3)).steepest_notes[1] == ""


def test_a_rank_says_what_it_leaves_out() -> None:
    scree = xr.Dataset({"heldout_error": ("rank", [0.2, 0.0012])}, coords={"rank": [1, 2]})
    two = discoveries.straight(np.eye(5)[:2], target_names=("yield",))
    told: dict[str, float | int | None] = {"heldout_error": 0.0012}
    found = discoveries.replace(two, scree=scree, readings={**two.readings, **told})
    assert line(found, "Error") == (
        "Through 2 combinations of the inputs, 0.12 % of the variance is missed on held-out data; no other combination "
        "of the inputs does more than that, and some that do less may be missing."
    )
    modes = discoveries.replace(MODES, scree=scree, readings={**MODES.readings, **told})
    assert "no other" not in line(modes, "Error")


def test_what_stands_still_is_said_of_modes_where_they_are_counted() -> None:
    assert section(MODES).notes[0].endswith(" in every mode.")
