"""`isthmus factor` and `isthmus compress` on real files: what is written, what is said, what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import crafted_files
import discoveries
from command_lines import line_of, write_table
from foreign_modules import Block, Images, InTurn, TiedTokens, samples, seeded
from isthmus.cli.main import run
from isthmus.discovery.files.models import read_model_file
from isthmus.discovery.files.networks import write_network
from isthmus.networks import FullyConnected

DOUBLE = torch.float64


def doubled() -> FullyConnected:
    """5-12-3 whose hidden neurons come in pairs."""
    network = FullyConnected(5, 3, width=12, depth=2, seed=0, dtype=DOUBLE)
    with torch.no_grad():
        network.weights[0][6:] = network.weights[0][:6].clone()
    return network


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a network of ours, images with a state dict, and a table."""
    monkeypatch.chdir(tmp_path)
    write_network("net.safetensors", doubled())
    torch.save(seeded(Images, 3).state_dict(), "images.pt")
    np.save("images.npy", samples(40, 1, 8, 8).numpy())
    write_table(tmp_path / "rows.csv", list("abcde"), samples(60, 5, dtype=DOUBLE).numpy())
    return tmp_path


@pytest.mark.slow
def test_factor_writes_two_halves_that_compute_what_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["factor", "net.safetensors", "--data", "rows.csv", "--rank", "3", "--layer", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    folder = here / "runs" / "net-factor"
    said = json.loads((folder / "export.json").read_text())
    assert (said["rank"], said["layer"]) == (3, 1)
    x = torch.from_numpy(np.loadtxt("rows.csv", delimiter=",", skiprows=1))
    with torch.no_grad():
        wanted = doubled()(x)
        for suffix in (".safetensors", ".pt2"):
            encoder, decoder = (read_model_file(folder / f"{half}{suffix}").module for half in ("encoder", "decoder"))
            error = float((decoder(encoder(x)) - wanted).norm() / (wanted - wanted.mean(0)).norm())
            assert error == pytest.approx(said["relative_error"], rel=1e-9)
    assert f"{said['relative_error']:.3g} on 60 samples" in out
    assert f"{said['heldout_error']:.3g} on rows that the cut has not seen" in out
    assert said["heldout_error"] > said["relative_error"]
    assert "through 3 coordinates" in out


def test_factor_on_few_rows_says_loudly_that_its_error_is_none(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("few.npy", samples(7, 5, dtype=DOUBLE).numpy())
    words = ["factor", "net.safetensors", "--data", "few.npy", "--rank", "4", "--layer", "1", "--out", "few"]
    assert run(words) == 0
    assert "7 rows are few for 4 coordinates" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_compress_finds_the_pairs_and_says_before_and_after(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compress", "net.safetensors", "--data", "rows.csv", "--tolerance", "1e-9", "--allow-slower"]
    assert run([*words, "--out", "small"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    said = json.loads((here / "small" / "export.json").read_text())
    assert (said["parameters_before"], said["parameters_after"]) == (12 * 6 + 13 * 3, 6 * 6 + 7 * 3)
    assert (said["flops_before"], said["flops_after"]) == (2 * (60 + 36), 2 * (30 + 18))
    assert "111" in out
    assert "57" in out
    assert "dead, constant or parallel neurons removed" in out
    small = read_model_file(here / "small" / "network.safetensors").module
    assert isinstance(small, FullyConnected)
    assert small.dimensions == (5, 6, 3)
    x = samples(30, 5, dtype=DOUBLE)
    assert torch.allclose(small(x), doubled()(x), atol=1e-12)


@pytest.mark.slow
def test_images_with_a_factory_are_compressed_and_the_run_code_is_said(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["images.pt", "--data", "images.npy", "--tolerance", "0.1", "--factory", "foreign_modules:Images"]
    assert run(["compress", *words, "--allow-slower", "--out", "small"]) == 0
    out, err = capsys.readouterr()
    assert line_of(err) == "note: --factory foreign_modules:Images: runs your code to make the network."
    assert "batch norm folded into its neighbour" in out
    x = samples(40, 1, 8, 8)
    small = read_model_file(here / "small" / "network.pt2").module
    old = seeded(Images, 3)
    assert sum(p.numel() for p in small.parameters()) < sum(p.numel() for p in old.parameters())
    with torch.no_grad():
        assert float((small(x) - old(x)).norm() / (old(x) - old(x).mean(0)).norm()) <= 0.3


def test_tokens_are_given_as_whole_numbers_where_the_module_takes_no_others(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "words.py").write_text(
        "import torch\n\nclass Words(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.table, self.last = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 2)\n\n"
        "    def forward(self, words):\n        return self.last(self.table(words).mean(1))\n"
    )
    tensors = {"table.weight": samples(7, 4), "last.weight": samples(2, 4, seed=1), "last.bias": samples(2, seed=2)}
    torch.save(tensors, "words.pt")
    words = np.arange(120).reshape(40, 3) % 7
    np.save("words.npy", words)
    told = ["words.pt", "--data", "words.npy", "--factory", "words:Words"]
    assert run(["compress", *told, "--tolerance", "0.1", "--out", "small"]) in {0, 3}, capsys.readouterr().err
    found = read_model_file(here / "small" / "network.pt2").module(torch.from_numpy(words))
    wanted = tensors["table.weight"][words].mean(1) @ tensors["last.weight"].T + tensors["last.bias"]
    assert float((found - wanted).norm() / (wanted - wanted.mean(0)).norm()) <= 0.3
    assert run(["factor", *told, "--out", "halves"]) == 2
    assert "needs a hidden linear layer" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.slow
def test_a_discovery_is_a_model_that_knows_its_columns(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    discoveries.discovery().save("run")
    x = discoveries.inputs()
    shuffled = [3, 0, 2, 4, 1]
    write_table(here / "shuffled.csv", [discoveries.INPUTS[i] for i in shuffled], x[:, shuffled])
    write_table(here / "plain.csv", list(discoveries.INPUTS), x)
    for data in ("shuffled", "plain"):
        words = ["factor", "run", "--data", f"{data}.csv", "--rank", "2", "--layer", "1", "--out", data]
        assert run(words) == 0, capsys.readouterr().err
    errors = [json.loads((here / name / "export.json").read_text())["relative_error"] for name in ("shuffled", "plain")]
    assert errors[0] == pytest.approx(errors[1], rel=1e-12)


def test_what_cannot_be_taken_apart_is_written_as_it_came_with_exit_code_3(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(nn.LayerNorm(5).state_dict(), "norm.pt")
    (here / "make_norm.py").write_text("import torch\n\ndef make():\n    return torch.nn.LayerNorm(5)\n")
    words = ["norm.pt", "--data", "rows.csv", "--tolerance", "0.1", "--factory", "make_norm:make", "--out", "same"]
    assert run(["compress", *words]) == 3
    out, _ = capsys.readouterr()
    assert "normalisation couples the features" in " ".join(out.split())
    assert "the network that is written is the one that came" in " ".join(out.split())


@pytest.mark.slow
def test_many_places_are_one_line_of_each_kind_and_the_summary_has_them_all(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (here / "blocks.py").write_text(
        "import torch\nfrom foreign_modules import Block\n\ndef make():\n"
        "    return torch.nn.Sequential(*(Block(5) for _ in range(9)))\n"
    )
    torch.save(seeded(lambda: nn.Sequential(*(Block(5) for _ in range(9)))).state_dict(), "blocks.pt")
    words = ["blocks.pt", "--data", "rows.csv", "--tolerance", "1e-6", "--factory", "blocks:make", "--out", "same"]
    assert run(["compress", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = " ".join(" ".join(lines).split())
    assert "9 a skip connection or parallel branches: 0, 1, 2 and 6 more" in said
    assert len(lines) <= 25
    refused = json.loads((here / "same" / "export.json").read_text())["refused"]
    assert [name for name, why in refused if why.startswith("a skip")] == [str(i) for i in range(9)]
    assert sum("(an error of" in why for _, why in refused) >= 9


def test_a_module_that_gives_no_tensor_of_rows_is_told_what_to_wrap(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pairs.py").write_text(
        "import torch\n\nclass Pair(torch.nn.Linear):\n    def forward(self, x):\n"
        "        return super().forward(x).sum(), 'words'\n\ndef make():\n    return Pair(5, 2)\n"
    )
    torch.save(nn.Linear(5, 2).state_dict(), "pairs.pt")
    words = ["pairs.pt", "--data", "rows.csv", "--factory", "pairs:make"]
    for command in (["factor", *words], ["compress", *words, "--tolerance", "0.1"]):
        assert run(command) == 2
        assert "got (). Wrap it in a module whose forward picks" in capsys.readouterr().err.splitlines()[-1]


def test_an_older_export_is_replaced_only_when_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["factor", "net.safetensors", "--data", "rows.csv", "--rank", "2", "--out", "halves"]
    assert run(words) == 0
    first = (here / "halves" / "export.json").read_bytes()
    (here / "halves" / "mine.txt").write_text("not of isthmus")
    capsys.readouterr()
    assert run(words) == 2
    assert "Add --replace" in line_of(capsys.readouterr().err)
    assert (here / "halves" / "export.json").read_bytes() == first
    words[words.index("2")] = "3"
    assert run([*words, "--replace"]) == 0
    assert (here / "halves" / "export.json").read_bytes() != first
    assert (here / "halves" / "mine.txt").exists()


BAD = {
    "no model": (["factor", "gone.pt", "--data", "rows.csv"], "gone.pt: no such file"),
    "no data": (["factor", "net.safetensors", "--data", "gone.csv"], "gone.csv: no such file"),
    "no factory": (["compress", "images.pt", "--data", "images.npy", "--tolerance", "0.1"], "Add --factory"),
    "too many columns": (["factor", "net.safetensors", "--data", "wide.csv"], "needs x of shape (n, 5)"),
    "images as rows": (["compress", "net.safetensors", "--data", "images.npy", "--tolerance", "0.1"], "failed"),
    "NaN": (["compress", "net.safetensors", "--data", "nan.npy", "--tolerance", "0.1"], "NaN"),
    "one row": (["factor", "net.safetensors", "--data", "one.npy"], "needs at least 2 samples"),
    "rank": (["factor", "net.safetensors", "--data", "rows.csv", "--rank", "99"], "the layer's width 12"),
    "layer": (["factor", "net.safetensors", "--data", "rows.csv", "--layer", "7"], "needs a hidden layer, 1..1"),
    "layer name": (["factor", "net.safetensors", "--data", "rows.csv", "--layer", "fc"], "have numbers, 1..1"),
    "tolerance": (["compress", "net.safetensors", "--data", "rows.csv", "--tolerance", "0"], "needs a positive number"),
    "no tolerance": (["compress", "net.safetensors", "--data", "rows.csv"], "Missing option '--tolerance'"),
    "other files": (["factor", "net.safetensors", "--data", "rows.csv", "--out", "."], "holds other files"),
    "a command": (["factor", "evil.pt2", "--data", "rows.csv"], "refused without running it"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(
    here: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    words, message = BAD[case]
    write_table(here / "wide.csv", list("abcdefg"), samples(60, 7, dtype=DOUBLE).numpy())
    np.save("nan.npy", np.where(np.arange(200).reshape(40, 5) == 7, np.nan, 1.0))
    np.save("one.npy", np.ones((1, 5)))
    if case == "a command":
        change = crafted_files.attacks(here / "marker", here)["sample inputs"]
        crafted_files.rewritten(crafted_files.program(here / "good.pt2"), here / "evil.pt2", change)
    before = sorted(p.name for p in here.iterdir())
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in line_of(err)
    assert sorted(p.name for p in here.iterdir()) == before
    assert not (here / "marker").exists()


def test_tokens_by_their_name_are_taken_and_a_network_without_a_program_has_its_numbers_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `diagnose` takes them: masks that mark nothing are no input, and what cannot be exported is said, not lost."""
    torch.save(seeded(TiedTokens, 3).state_dict(), "tokens.pt")
    tokens = np.arange(400).reshape(100, 4) * 7 % 8
    mask = np.ones((100, 4), dtype=np.int64)
    np.savez("tokens.npz", tokens=tokens, attention_mask=mask)
    told = ["--factory", "foreign_modules:TiedTokens", "--data", "tokens.npz", "--tolerance", "0.5"]
    assert run(["compress", "tokens.pt", *told, "--out", "small"]) in {0, 3}, capsys.readouterr().err
    assert (here / "small" / "network.pt2").exists()
    mask[0, 3] = 0
    np.savez("tokens.npz", tokens=tokens, attention_mask=mask)
    assert run(["compress", "tokens.pt", *told, "--out", "other"]) == 2
    assert "got a dict of several (tokens, attention_mask)" in " ".join(capsys.readouterr().err.split())
    np.savez("tokens.npz", rows=tokens)
    assert run(["compress", "tokens.pt", *told, "--out", "other"]) == 2
    assert "is not the first input of TiedTokens (tokens)" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_what_cannot_be_exported_is_said_and_its_numbers_are_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(seeded(InTurn, 3).state_dict(), "turn.pt")
    words = ["compress", "turn.pt", "--factory", "foreign_modules:InTurn", "--data", "rows.csv", "--tolerance", "0.5"]
    assert run([*words, "--out", "small"]) in {0, 3}
    out, err = capsys.readouterr()
    assert "network.pt2 is not written: the module cannot be exported" in " ".join(err.split())
    assert "network.safetensors, export.json" in out
    assert sorted(p.name for p in (here / "small").iterdir()) == ["export.json", "network.safetensors"]
    assert (
        "cannot be exported"
        in json.loads((here / "small" / "export.json").read_text())["modules"]["network"]["no_program"]
    )
