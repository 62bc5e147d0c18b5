import shlex

import pytest

from isthmus.cli.discover import DiscoverRequest
from isthmus.errors import DataError


def test_the_command_asks_for_the_same() -> None:
    request = DiscoverRequest(
        "my data.csv", target="a b,c", seed=3, max_seconds=90.0, ordered=True, ridge="1e-2,1e-3", starts=2
    )
    assert shlex.split(request.command) == [
        "isthmus", "discover", "my data.csv", "--target", "a b,c", "--seed", "3", "--max-seconds", "90", "--ordered",
        "--ridge", "1e-2,1e-3", "--starts", "2",
    ]  # fmt: skip
    assert DiscoverRequest("a.csv", depth_path=True).command == "isthmus discover a.csv --depth-path"
    assert DiscoverRequest("builtin:digits").command == "isthmus discover builtin:digits"


def test_candidates_are_names_of_columns() -> None:
    request = DiscoverRequest("a.csv", candidates="age, body size")
    assert request.candidate_names == ("age", "body size")
    assert shlex.split(request.command)[-2:] == ["--candidates", "age, body size"]
    assert DiscoverRequest("a.csv").candidate_names == ()
    with pytest.raises(DataError, match="--candidates: names no column"):
        DiscoverRequest("a.csv", candidates=" ,")


def test_ridges_are_numbers_largest_first() -> None:
    assert DiscoverRequest("a.csv", ridge="1e-3, 1e-2,1e-3").ridges == [1e-2, 1e-3]
    assert DiscoverRequest("a.csv").ridges is None


@pytest.mark.parametrize("ridge", ["", "a", "1e-2;1e-3", "0", "-1", "inf", "nan", "1e-2,"])
def test_what_is_no_ridge_is_refused(ridge: str) -> None:
    with pytest.raises(DataError, match="positive numbers separated by commas"):
        DiscoverRequest("a.csv", ridge=ridge)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_time_limit_is_positive(seconds: float) -> None:
    with pytest.raises(DataError, match="positive number of seconds"):
        DiscoverRequest("a.csv", max_seconds=seconds)
