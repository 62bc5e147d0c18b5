"""Every result shows itself: in one line, as text, as JSON and back, as pictures, in a notebook."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

import discoveries
import isthmus
from isthmus.reports.looks import LOOKS
from isthmus.reports.verdict import verdict_of
from isthmus.writing.shown import Shown, plain_value


def fitted() -> isthmus.FitResult:
    network = isthmus.FullyConnected(2, 1, width=4, depth=3, seed=0)
    x = torch.linspace(-1, 1, 40).reshape(20, 2)
    return isthmus.fit(network, x, x[:, :1], ridge=1e-3, limits=isthmus.Limits(evaluations=30))


def compressed() -> isthmus.Compression:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 30), torch.nn.Linear(30, 3))
    return isthmus.compress(module, torch.randn(400, 6), tolerance=0.01)


RESULTS: dict[type[Shown], Callable[[], Shown]] = {
    isthmus.Discovery: discoveries.discovery,
    isthmus.Diagnosis: lambda: discoveries.discovery().diagnosis,
    isthmus.FitResult: fitted,
    isthmus.Compression: compressed,
}
each = pytest.mark.parametrize("make", RESULTS.values(), ids=[kind.__name__ for kind in RESULTS])


def test_every_kind_is_here() -> None:
    assert set(RESULTS) == set(LOOKS)
    # by name: a dataclass with slots leaves the class behind that it was made of
    assert {kind.__name__ for kind in LOOKS} == {kind.__name__ for kind in Shown.__subclasses__()}


@each
def test_a_result_in_one_line_and_in_sentences(make: Callable[[], Shown]) -> None:
    result = make()
    line = repr(result)
    assert line.startswith(f"<{type(result).__name__}: ")
    assert "\n" not in line
    assert len(line) < 300
    assert result.summary().startswith(line.split(": ", 1)[1][:-1] + "\n")


@each
def test_a_result_as_plain_values(make: Callable[[], Shown]) -> None:
    found = make().to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.slow
@each
def test_a_result_in_a_notebook_is_closed_and_names_no_colour_of_the_page(make: Callable[[], Shown]) -> None:
    result = make()
    text = result._repr_html_()  # pyright: ignore[reportPrivateUsage] - what a notebook calls
    assert text.count("<div") == text.count("</div>")
    assert "var(--" not in text
    assert text.count("<svg") == (2 if isinstance(result, isthmus.Discovery) else isinstance(result, isthmus.Diagnosis))


def test_pictures_by_name() -> None:
    found = discoveries.discovery()
    assert {"scree", "objective_curve", "starts"} <= set(dir(found.plot))
    for axes in (found.plot(), found.plot("scree"), found.plot.scree()):
        assert isinstance(axes, Axes)
        assert axes.get_ylabel() == found.plot.scree().get_ylabel()
    with pytest.raises(ValueError, match=r"plot\('nope'\): there is .*scree"):
        found.plot("nope")
    with pytest.raises(AttributeError, match="no picture is called 'nope'"):
        _ = found.plot.nope
    with pytest.raises(ValueError, match="there is no picture"):
        fitted().plot()
    with pytest.raises(TypeError, match=r"plot\.scree\(\): takes nothing; isthmus\.plots\.scree\(table, ax\)"):
        found.plot.scree(ax=found.plot())  # pyright: ignore[reportCallIssue]


def test_a_discovery_is_itself_and_goes_into_a_set() -> None:
    found = discoveries.discovery()
    assert {found, found} == {found}
    with pytest.raises(ValueError, match=r"save\(''\): needs the name of a folder"):
        found.save("")


def test_what_a_discovery_says_of_itself_is_its_verdict() -> None:
    found = discoveries.discovery()
    assert verdict_of(found).headline in repr(found)
    told = found.to_dict()
    assert (told["rank"], told["verdict"]) == (found.rank, found.verdict.name)
    assert told["scree"]["heldout_error"] == found.scree["heldout_error"].values.tolist()


def test_plain_values() -> None:
    values = {1: (np.float64("nan"), float("inf"), 2.0), "t": torch.ones(2), "v": isthmus.Verdict.DOUBTFUL, "n": None}
    assert plain_value(values) == {"1": [None, None, 2.0], "t": [1.0, 1.0], "v": "DOUBTFUL", "n": None}
