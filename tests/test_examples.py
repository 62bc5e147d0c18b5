"""Every example runs and prints what it is about."""

import runpy
from pathlib import Path

import pytest

import isthmus

EXAMPLES = Path(__file__).parents[1] / "examples"
SAID = {
    "rank_of_a_table": ["2 dimensions: ", "certified: 2 to 2"],
    "sweep_of_depths": [
        "8 runs, of which 4 were there already",
        "same numbers as before: True",
        "another start ends at the same objective: True",
    ],
    "gated_resnet": ["10 rows in the table by layer", "cut at layer "],
    "layers_of_a_network": [
        "rank of the middle 2",
        "layer 4: 2 dimensions",
        "through 2 dimensions",
    ],
    "rank_of_an_autoencoder": [
        "narrow layers: 8, 8, 8, 8, 8; rank of the whole: 8",
        *(f"layer {layer}: 8 dimensions" for layer in range(3, 8)),
        "rank of the weights 20",
    ],
}


def test_every_example_is_listed() -> None:
    assert {p.stem for p in EXAMPLES.glob("*.py")} == set(SAID)


@pytest.mark.slow
def test_every_run_of_the_sweep_ends_at_a_minimum_of_the_rank_that_the_plan_says() -> None:
    """These are linear networks, whose minima are all global: the rank is a property of depth and ridge alone."""
    found = isthmus.sweep(EXAMPLES / "depth_sweep.toml", workers=0)
    assert set(found["outcome"].values) == {"CONVERGED"}
    assert found["rank"].values.tolist() == [2, 4, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_it_runs_and_says_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert [words for words in SAID[name] if words not in printed] == [], printed
