import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from command_lines import line_of
from isthmus.cli.main import run
from isthmus.constructions import balanced_linear_network
from isthmus.theory import resnet_cost
from theorem_checks import assert_close

VALUES = (3.0, 0.5, 1e-3)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    """A 4 x 3 matrix of singular values 3, 1/2 and 1/1000."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(d, 3)))[0] for d in (4, 3))
    np.save(tmp_path / "a.npy", left @ np.diag(VALUES) @ right.T)
    return tmp_path / "a.npy"


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(["cost", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_connected_cost_is_the_norm_of_the_network_that_attains_it(
    matrix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, matrix, "--depth", 7, "--kind", "connected")
    network = balanced_linear_network(torch.from_numpy(np.load(matrix)), depth=7)
    assert_close(found["cost"], float(network.penalty().detach()))
    assert_close(found["cost_per_layer"], found["cost"] / 7)
    logs = np.log(VALUES)
    expansion = torch.tensor([3, 2 * logs.sum(), 2 * (logs**2).sum()])
    assert_close(torch.tensor(found["expansion"], dtype=torch.float64), expansion, relative=1e-11)
    assert found["dropped"] == []
    with pytest.raises(AssertionError, match="off by"):
        assert_close(found["cost"], 7 * (np.array(VALUES) ** (1 / 7)).sum())


def test_a_rank_says_what_the_next_value_would_cost(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, matrix, "--depth", 5, "--kind", "connected", "--rank", 2)
    sums = 5 * np.cumsum(np.array(VALUES) ** (2 / 5))
    for key, expected in zip(("cost_one_fewer", "cost", "cost_one_more"), sums, strict=True):
        assert_close(found[key], float(expected), relative=1e-11)
    assert_close(found["dropped"][0], 1e-3, relative=1e-11)
    assert_close(found["last_kept"], 0.5)


def test_values_that_are_rounding_are_said_to_be_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.csv").write_text("1,2,3\n2,4,6\n0,1,1\n")
    asked = ["cost", str(tmp_path / "m.csv"), "--depth", "10", "--kind", "connected"]
    for rank, above, told in ((3, 2, "3 x 3, rank 2; of the 3 singular values that were asked for 1 is rounding"),
                              (2, 2, "3 x 3, rank 2 network"), (1, 1, "3 x 3, rank 1 network")):  # fmt: skip
        assert run([*asked, "--rank", str(rank)]) == 0
        assert told in " ".join(capsys.readouterr().out.split())
        assert run([*asked, "--rank", str(rank), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["rank"], found["above_rounding"]) == (rank, above)


@pytest.mark.parametrize(("kind", "block_depth"), [("resnet1", 1), ("resnet2", 2)])
def test_the_residual_cost_and_its_limit(
    matrix: Path, capsys: pytest.CaptureFixture[str], kind: str, block_depth: int
) -> None:
    found = answer(capsys, matrix, "--depth", 9, "--kind", kind, "--residual-weight", 0.1)
    values = torch.tensor(VALUES, dtype=torch.float64)
    for key, depth in (("cost", 9), ("infinite_depth", None)):
        expected = resnet_cost(values, residual_weight=0.1, depth=depth, block_depth=block_depth)
        assert_close(found[key], expected, relative=1e-11)
    assert found["infinite_depth"] < found["cost"]
    assert found["expansion"] is None
    other = answer(capsys, matrix, "--depth", 9, "--kind", kind)
    with pytest.raises(AssertionError, match="off by"):
        assert_close(other["cost"], found["cost"])


def test_diagonal_networks_take_a_row_or_a_diagonal_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.csv").write_text("2,0,-0.5\n")
    np.save(tmp_path / "w.npy", np.diag([2, 0, -0.5]))
    for name in ("w.csv", "w.npy"):
        found = answer(capsys, tmp_path / name, "--depth", 4, "--kind", "diagonal")
        assert_close(found["cost"], 4 * (2**0.5 + 0.5**0.5))
        assert found["rank"] == 2


def test_zero_and_single_matrices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zero.csv").write_text("0,0\n0,0\n")
    (tmp_path / "one.csv").write_text("4\n")
    zero = answer(capsys, tmp_path / "zero.csv", "--depth", 3, "--kind", "connected")
    assert (zero["cost"], zero["rank"], zero["expansion"]) == (0, 0, [0, 0, 0])
    assert_close(answer(capsys, tmp_path / "one.csv", "--depth", 1, "--kind", "connected")["cost"], 16.0)
    kept = answer(capsys, tmp_path / "zero.csv", "--depth", 3, "--kind", "connected", "--rank", 1)
    assert kept["expansion"][1] is None  # the logarithm of a zero that was asked for
    assert run(["cost", str(tmp_path / "zero.csv"), "--depth", "3", "--kind", "connected", "--rank", "1"]) == 0
    out = capsys.readouterr().out
    assert "none, as some of the singular values that count are 0" in out
    assert "inf" not in out.replace("infinite", "")
    assert "nan" not in out


def test_the_table_shows_the_same_numbers(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, matrix, "--depth", 5, "--kind", "connected", "--rank", 2)
    assert run(["cost", str(matrix), "--depth", "5", "--kind", "connected", "--rank", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for number in (found["cost"], found["cost_per_layer"], found["cost_one_more"], found["truncated"]):
        assert f"{number:.12g}" in out
    assert "4 x 3, rank 2" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--depth", "0", "--kind", "connected"], "Invalid value for '--depth'"),
        (["--kind", "connected"], "Missing option '--depth'"),
        (["--depth", "2", "--kind", "deep"], "Invalid value for '--kind'"),
        (["--depth", "2", "--kind", "connected", "--residual-weight", "1"], "means nothing for --kind connected"),
        (["--depth", "2", "--kind", "resnet1", "--residual-weight", "0"], "--residual-weight 0: needs a positive"),
        (["--depth", "2", "--kind", "resnet1", "--residual-weight", "nan"], "--residual-weight nan: needs a positive"),
        (["--depth", "2", "--kind", "connected", "--rank", "4"], "has 3 singular values"),
        (["--depth", "2", "--kind", "diagonal"], "is not diagonal"),
    ],
)
def test_cost_refuses_in_one_line(
    matrix: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert run(["cost", str(matrix), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in line_of(err)


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cost", str(tmp_path / "a.npy"), "--depth", "2", "--kind", "connected"]) == 2
    assert "no such file" in line_of(capsys.readouterr().err)
