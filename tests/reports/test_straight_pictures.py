"""Which pictures a linear half has, what they say, and the page around them."""

from pathlib import Path

import numpy as np
import pytest
import torch

import discoveries
import isthmus
from isthmus import interpret
from isthmus.networks import jacobians
from isthmus.reports.pictures import pictures_of
from pages import HOSTILE, Page

X = np.random.default_rng(0).normal(size=(80, 6))
HALF = ["loadings", "direction_spectrum"]


def found_of(rank: int, outputs: int = 1, **changes: object) -> discoveries.Discovery:
    return discoveries.straight(np.eye(6)[:rank], outputs=outputs, **changes)  # pyright: ignore[reportArgumentType]


def classes() -> discoveries.Discovery:
    found = found_of(2, 2, task="classification", target_names=("no", "yes"))
    return discoveries.replace(found, settings={**found.settings, "loss": "cross_entropy"})


@pytest.mark.parametrize(
    ("rank", "outputs", "names"),
    [
        (1, 1, ["summary_1"]),
        (2, 1, ["summary_1_2"]),
        (2, 2, ["summary_1_2_target_1", "summary_1_2_target_2"]),
        (3, 1, ["summary_1_2", "summary_1", "summary_2", "summary_3"]),
    ],
)
def test_outputs_are_drawn_against_one_or_two_combinations(rank: int, outputs: int, names: list[str]) -> None:
    found = found_of(rank, outputs)
    y = found.predict(X)
    drawn = [picture.name for picture in pictures_of(found, X, None, y)]
    assert drawn[: drawn.index("scree")] == [*HALF[: 1 + (rank > 1)], *names]
    assert [picture.name for picture in pictures_of(found)][:2] == ["loadings", "scree"]


def test_many_targets_are_those_that_move_most() -> None:
    found = found_of(1, 8)
    with torch.no_grad():
        slopes = jacobians(found.decoder, found.encoder(torch.from_numpy(X)))
    strongest = np.argsort(-slopes.square().mean(0).sum(-1).numpy())[:3]
    summaries = [p.name for p in pictures_of(found, X) if p.name.startswith("summary")]
    assert summaries == [f"summary_1_target_{target + 1}" for target in sorted(strongest)]


def test_targets_that_were_not_given_are_said_to_be_predicted() -> None:
    found = found_of(1)
    labels = {}
    for y in (None, found.predict(X)):
        (picture,) = [p for p in pictures_of(found, X, None, y) if p.name == "summary_1"]
        labels[y is None] = picture.draw().get_ylabel()
    assert labels == {True: "predicted y0", False: "y0"}


def test_classes_are_colours_and_modes_have_no_summaries() -> None:
    y = np.where(X[:, 0] > 0, "yes", "no")
    names = [picture.name for picture in pictures_of(classes(), X, None, y)]
    assert names[:3] == [*HALF, "summary_1_2"]
    modes = discoveries.straight(np.eye(6)[:2], kind="mode", outputs=3)
    assert [p.name for p in pictures_of(modes, X[:, :3])][:3] == [*HALF, "scree"]
    fields = discoveries.straight(np.linalg.qr(np.ones((30, 2)) + np.eye(30)[:, :2])[0].T, kind="mode", outputs=3)
    assert pictures_of(fields)[0].name == "loading_profiles"


def test_curves_count_combinations() -> None:
    scree, objective = (p for p in pictures_of(found_of(2)) if p.name in {"scree", "objective_curve"})
    assert scree.draw().get_xlabel() == "combinations"
    assert objective.draw().get_xlabel() == "combinations allowed"
    assert "number of combinations" in scree.caption
    (curved, *_) = pictures_of(discoveries.discovery())
    assert curved.draw().get_xlabel() == "dimensions"


@pytest.mark.usefixtures("blank_pictures")
def test_the_page_says_it_first_and_tells_the_coordinates_apart(tmp_path: Path) -> None:
    found = found_of(2, target_names=("yield",))
    isthmus.report(found, tmp_path / "a.html", x=X, y=found.predict(X), meaning=interpret(found, X))
    words = " ".join(Page((tmp_path / "a.html").read_text()).text)
    assert "yield depends on 2 combinations of the 6 inputs." in words
    assert words.index("Combinations of the inputs") < words.index("Evidence")
    assert words.count("another basis") == 2  # of the table of coordinates, and of the picture of what they follow
    isthmus.report(discoveries.discovery(), tmp_path / "b.html")
    assert "Combinations of the inputs" not in (tmp_path / "b.html").read_text()


@pytest.mark.slow
def test_hostile_names_are_shown_not_run(tmp_path: Path) -> None:
    names = (HOSTILE, "$x$", "_hidden", "‮left", "a\nb", "long " * 30)
    found = found_of(3, input_names=names, target_names=(HOSTILE,))
    isthmus.report(found, tmp_path / "page.html", x=X, y=found.predict(X), meaning=interpret(found, X))
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert len(page.attributes("script")) == 1  # our own
    assert "<script>document" not in text
    assert "‮" not in text
    assert f"{HOSTILE} depends on 3 combinations" in " ".join(page.text)


def test_a_target_is_named_as_the_network_has_it() -> None:
    found = found_of(1, target_names=("yield",))
    told = {"logged": [], "target_logs": [1], "target_exponents": None}
    found = discoveries.replace(found, settings={**found.settings, "powers": told})
    (picture,) = [p for p in pictures_of(found, X, None, np.exp(X[:, 0])) if p.name == "summary_1"]
    ax = picture.draw()
    assert ax.get_ylabel() == "log yield"
    heights = np.asarray(ax.collections[0].get_offsets())[:, 1]
    np.testing.assert_allclose(heights, X[:, 0])
    told = {**told, "target_exponents": ["1", "-1/2", "0", "0", "0", "0"], "logged": ["x0", "x1"]}
    pure = discoveries.replace(found, settings={**found.settings, "powers": told})
    (picture,) = [p for p in pictures_of(pure, np.exp(X), None, np.exp(X[:, 0])) if p.name == "summary_1"]
    assert picture.draw().get_ylabel() == "log yield x1^(1/2) / x0"


@pytest.mark.usefixtures("blank_pictures")
def test_other_ranks_of_the_task_have_their_sections_and_pictures(tmp_path: Path) -> None:
    modes = discoveries.straight(np.eye(3)[:2], kind="mode", outputs=6)
    curved = discoveries.replace(
        discoveries.discovery(), input_names=modes.input_names, target_names=modes.target_names, encoder=modes.encoder,
        decoder=modes.decoder, rank=2, others={"index": found_of(2, 3), "mode": modes},
    )  # fmt: skip
    names = [picture.name for picture in pictures_of(curved, X)]
    assert names[: names.index("scree")] == [  # three targets are all drawn, whichever of them moves most
        "index_loadings",
        "index_direction_spectrum",
        *(f"index_summary_1_2_target_{target}" for target in (1, 2, 3)),
        "mode_loadings",
        "mode_direction_spectrum",
    ]
    isthmus.report(curved, tmp_path / "page.html", x=X)
    words = " ".join(Page((tmp_path / "page.html").read_text()).text)
    assert "The 3 targets depend on 2 combinations of the 6 inputs." in words
    assert "The 3 targets move in 2 modes." in words


def test_the_spread_of_a_target_is_drawn_with_its_mean() -> None:
    found = found_of(3, 2, target_names=("y",))
    found = discoveries.replace(found, settings={**found.settings, "loss": "gaussian"})
    for y in (None, X[:, 0]):
        names = [p.name for p in pictures_of(found, X, None, y)]
        assert names[2:6] == ["summary_1_2", "summary_1", "summary_2", "summary_3"]


def test_loadings_over_pixels_are_pictures() -> None:
    found = discoveries.replace(
        found_of(2), input_names=tuple(f"row {i} column {j}" for i in (1, 2) for j in (1, 2, 3))
    )
    picture = pictures_of(found, X)[0]
    assert (picture.name, len(picture.draw().patches)) == ("loading_maps", 2)
    assert "blue where positive" in picture.caption
    assert "Whiskers" not in picture.caption
