"""Certified intervals: right on halves of known rank in any units, and no more than the independent check grants."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import discoveries
from command_lines import line_of
from isthmus.cli.main import run
from isthmus.discovery.data.problem import Problem, pose
from isthmus.discovery.data.scaling import Standardiser
from isthmus.discovery.evidence.certificates import certified_interval
from isthmus.discovery.factorisation import joined
from isthmus.discovery.halves import INDEX, MODE, RANK, RankKind
from isthmus.networks import FullyConnected, jacobians
from isthmus.recheck import check
from isthmus.theory import RankEstimate
from isthmus.training.losses import SQUARED
from isthmus.writing.checksums import opened_json
from tolerances import rounding


def halves(rank: int, *, seed: int = 0, inner: int | None = None) -> tuple[FullyConnected, FullyConnected]:
    """Random halves that meet in `rank` coordinates, of which the decoder uses `inner`."""
    encoder = FullyConnected(9, rank, width=20, depth=3, seed=seed, dtype=torch.float64)
    decoder = FullyConnected(rank, 8, width=20, depth=3, negative_slope=0.3, seed=seed + 1, dtype=torch.float64)
    if inner is not None:
        with torch.no_grad():
            decoder.weights[0][:, inner:] = 0
    return encoder, decoder


def posed(networks: tuple[FullyConnected, FullyConnected], units: np.ndarray) -> tuple[Problem, Any]:
    """Data of these halves in given units of the inputs and of the outputs, and the halves in those units."""
    encoder, decoder = networks
    x = np.random.default_rng(3).normal(size=(80, 9))
    with torch.no_grad():
        y = decoder(encoder(torch.from_numpy(x))).numpy()
    into, out = Standardiser(np.zeros(9), units, np.arange(9)), Standardiser(np.ones(8), units[:8], np.arange(8))
    data, target = x * units, y * units[:8] + 1
    problem = pose(
        data, target, np.arange(80) >= 60, loss=SQUARED,
        inputs=Standardiser.of(data), targets=Standardiser.of(target),
    )  # fmt: skip
    return problem, (into.fold_into_encoder(encoder), out.fold_into_decoder(decoder))


def assert_interval(found: RankEstimate, lower: int, upper: int) -> None:
    assert (found.lower, found.upper) == (lower, upper), f"{found.lower_reason}; {found.upper_reason}"


@pytest.mark.parametrize("units", [np.ones(9), 10.0 ** np.arange(-9, 9, 2)], ids=["one unit", "18 decades"])
@pytest.mark.parametrize("rank", [1, 3, 7])
def test_random_halves_have_the_rank_of_their_coordinates(rank: int, units: np.ndarray) -> None:
    problem, networks = posed(halves(rank), units)
    assert_interval(certified_interval(networks, problem, rank), rank, rank)


def test_coordinates_that_the_decoder_does_not_use_are_not_claimed() -> None:
    problem, networks = posed(halves(5, inner=3), np.ones(9))
    found = certified_interval(networks, problem, 5)
    assert_interval(found, 3, 5)
    with pytest.raises(AssertionError):
        assert_interval(found, 4, 5)


@pytest.mark.slow
def test_a_direction_that_is_rounding_is_not_claimed() -> None:
    encoder, decoder = halves(3)
    with torch.no_grad():
        decoder.weights[0][:, 2] = decoder.weights[0][:, 0] * (1 + 1e-17)  # two columns that are the same
    problem, networks = posed((encoder, decoder), np.ones(9))
    assert_interval(certified_interval(networks, problem, 3), 2, 3)


def test_a_constant_has_rank_0() -> None:
    encoder, decoder = halves(2, inner=0)
    problem, _ = posed(halves(2), np.ones(9))
    assert_interval(certified_interval((encoder, decoder), problem, 2), 0, 2)


def test_a_forged_claim_is_refused() -> None:
    encoder, decoder = halves(3)
    networks = {
        name: {
            "weights": [w.detach().numpy() for w in half.weights],
            "biases": [b.detach().numpy() for b in half.biases],
            "negative_slope": half.negative_slope,
        }
        for name, half in (("encoder", encoder), ("decoder", decoder))
    }
    witness = {"kind": "jacobian_rank", "x": [0.3, -0.2, 0.5, 0.1, 1.0, -1.0, 0.7, 0.2, 0.4], **networks}
    three, four = [0, 1, 2], [0, 1, 2, 3]
    assert check({**witness, "claim": 3, "rows": three, "columns": three}).refusal is None
    assert "is rounding" in str(check({**witness, "claim": 4, "rows": four, "columns": four}).refusal)
    kinks = {"half": {"biases": [np.zeros(20), np.zeros(20), np.zeros(3)]}}
    encoder_at_kink = {**networks["encoder"], **kinks["half"]}
    at_kink = {**witness, "encoder": encoder_at_kink, "x": [0.0] * 9, "claim": 3, "rows": three, "columns": three}
    assert "kink of layer 1" in str(check(at_kink).refusal)
    assert check({"kind": "factorisation", "claim": 3, **networks}).refusal is None
    assert "3 coordinates, not 2" in str(check({"kind": "factorisation", "claim": 2, **networks}).refusal)


@pytest.mark.parametrize("kind", [RANK, INDEX, MODE], ids=lambda kind: kind.name)
def test_many_columns_are_certified_as_few_are(kind: RankKind) -> None:
    encoder = FullyConnected(90, 3, width=12, depth=1 if kind is INDEX else 3, seed=0, dtype=torch.float64)
    decoder = FullyConnected(3, 80, width=12, depth=1 if kind is MODE else 3, seed=1, dtype=torch.float64)
    x = np.random.default_rng(3).normal(size=(40, 90)) * np.linspace(1, 2, 90)
    x[:, 7] = 4.0
    with torch.no_grad():
        y = decoder(encoder(torch.from_numpy(x))).numpy()
    inputs, targets = Standardiser.of(x), Standardiser.of(y, total=True)
    problem = pose(x, y, np.arange(40) >= 30, loss=SQUARED, inputs=inputs, targets=targets)
    found = certified_interval((encoder, decoder), problem, 3, kind=kind)
    assert_interval(found, 3, 3)
    rows = list(problem.rows) if kind is not RANK else [int(str(found.evidence["witness_row"]))]
    whole = jacobians(joined(encoder, decoder), torch.from_numpy(x[np.array(rows)]))[:, :, inputs.kept].numpy()
    whole = torch.from_numpy(whole * inputs.scale / targets.scale[:, None])
    layouts = {"rank": whole[0], "index": whole.flatten(0, 1), "mode": whole.movedim(0, -1).flatten(1, 2)}
    expected = torch.linalg.svdvals(layouts[kind.name]).numpy()[:3]
    spread = np.array(found.evidence["witness_singular_values"])
    assert len(spread) <= 12, "a Jacobian of all columns was taken"
    assert np.abs(spread[:3] - expected).max() <= rounding(size=90) * expected[0]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    found = discoveries.discovery()
    x = discoveries.inputs()
    target = found.predict(x)
    problem = pose(
        x, target, np.arange(len(x)) >= 50, loss=SQUARED,
        inputs=Standardiser.of(x), targets=Standardiser.of(target),
    )  # fmt: skip
    interval = certified_interval((found.encoder, found.decoder), problem, found.rank)
    discoveries.discovery(interval=interval).save(tmp_path / "run")
    return tmp_path / "run"


def forge(folder: Path, *keys: str | int, value: object) -> None:
    content = opened_json((folder / "result.json").read_bytes())
    holder = content
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    (folder / "result.json").write_text(json.dumps(content))


def test_verify_proves_the_interval_of_a_run(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(saved)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "factorisation: proves 3", "jacobian_rank: proves 3", "interval: proves 3 to 3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("interval", "lower"), 4, "the certificates prove 3 to 3"),
        (("interval", "upper"), 2, "the certificates prove 3 to 3"),
        (("interval", "evidence", "certificates", 1, "claim"), 4, "the minor is not k x k"),
        (("interval", "evidence", "certificates", 1, "x", 0), float("nan"), "no finite array"),
        (("interval", "evidence", "certificates"), [], "prove 0 to nothing"),
    ],
)
def test_verify_refuses_what_was_changed(
    saved: Path, capsys: pytest.CaptureFixture[str], keys: tuple[str | int, ...], value: object, words: str
) -> None:
    forge(saved, *keys, value=value)
    assert run(["verify", str(saved)]) == 3
    assert words in capsys.readouterr().out


def test_verify_says_what_is_no_run(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path)]) == 2
    assert "holds no finished run" in line_of(capsys.readouterr().err)
    weights = saved / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8] + b"12345678")
    assert run(["verify", str(saved)]) == 2
    assert "its checksum differs" in line_of(capsys.readouterr().err)
    (saved / "result.json").write_text("{}")
    assert run(["verify", str(saved)]) == 2
    assert "lack 'checksums'" in line_of(capsys.readouterr().err)
