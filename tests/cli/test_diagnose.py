"""`isthmus diagnose` on real files: what is said, which page is written, what is refused in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import crafted_files
import discoveries
import isthmus
from command_lines import line_of, write_table
from foreign_modules import Images, Residual, samples, seeded
from isthmus.cli.diagnose_run import diagnosis_data, print_diagnosis
from isthmus.cli.main import run
from isthmus.discovery.files.models import read_model_file
from isthmus.discovery.files.networks import write_network
from isthmus.networks import FullyConnected

pytestmark = pytest.mark.usefixtures("blank_pictures")
DOUBLE = torch.float64


def narrow() -> FullyConnected:
    """5-8-2-8-3: everything passes through two neurons."""
    return FullyConnected(5, 3, width=(8, 2, 8), depth=4, linear=(2,), seed=0, dtype=DOUBLE)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with models as people have them, and data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    write_network("net.safetensors", narrow())
    torch.save(seeded(Images, 3).state_dict(), "images.pt")
    np.save("images.npy", samples(40, 1, 8, 8).numpy())
    x = samples(60, 5, dtype=DOUBLE)
    y = narrow()(x).detach() + 0.1
    names = ["a", "b", "c", "d", "e", "p", "q", "r"]
    write_table(tmp_path / "rows.csv", names[:5], x.numpy())
    write_table(tmp_path / "pairs.csv", names, torch.cat([x, y], 1).numpy())
    np.savez("pairs.npz", x=x.numpy(), y=y.numpy())
    return tmp_path


def rows_said(out: str) -> list[list[str]]:
    """The rows of the table on the terminal."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("layer"))
    return [line.split() for line in lines[start + 1 : lines.index("", start)]]


def test_the_rank_the_layers_and_the_page_are_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "net.safetensors", "--data", "rows.csv"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = isthmus.diagnose(narrow(), samples(60, 5, dtype=DOUBLE))
    assert found.rank.estimate == 2
    assert "works through 2 dimensions: less than 0.01 % of the output is lost there." in out
    assert "rank at 10 %" in out
    gaps = [row[2] if len(row) == len(rows_said(out)[0]) else "" for row in rows_said(out)]
    named = found.layers["dimension_activation"].values.tolist()
    assert gaps == ["" if np.isnan(gap) else f"{gap:g}" for gap in named]
    kernel = [float(row[-1]) for row in rows_said(out)]
    np.testing.assert_allclose(kernel, found.layers["tangent_kernel_trace"], rtol=1e-3)
    page = (here / "runs" / "net-diagnosis.html").read_text()
    assert "isthmus diagnose net.safetensors --data rows.csv" in page
    assert "rows.csv, 60 samples" in page
    assert f"Report: {Path('runs') / 'net-diagnosis.html'}" in out


def test_long_names_keep_one_line_and_their_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = isthmus.diagnose(narrow(), samples(60, 5, dtype=DOUBLE))
    name = "encoder.layer.11.attention.output.dense"
    found.layers["name"] = ("layer", [name] * 4)
    for columns, shown in (("160", name), ("78", "e.l.11.a.output.dense"), ("66", "…1.a.o.dense")):
        monkeypatch.setenv("COLUMNS", columns)
        print_diagnosis(found, Path("page.html"))
        assert [row[1] for row in rows_said(capsys.readouterr().out)] == [shown] * 4


def test_targets_and_a_ridge_give_loss_and_objective(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--data", "pairs.csv", "--target", "p,q,r", "--ridge", "0.01", "--out", "page.html"]
    assert run(["diagnose", "net.safetensors", *words]) == 0
    objective = 3 * 0.1**2 + 0.01 * float(narrow().penalty().detach())
    assert f"Data loss 0.03 (per sample), objective {objective:.4g}." in capsys.readouterr().out
    assert "--ridge 0.01" in (here / "page.html").read_text()


def test_targets_come_from_columns_and_archives(here: Path) -> None:
    model = read_model_file("net.safetensors")
    x = samples(60, 5, dtype=DOUBLE)
    wanted = narrow()(x).detach() + 0.1
    for data, target in (("pairs.csv", "p,q,r"), ("pairs.npz", "y")):
        given = diagnosis_data(data, model, target=target, classes=None)
        assert torch.equal(torch.as_tensor(given.x), x)
        assert given.y is not None
        assert torch.equal(given.y, wanted)
    labels = np.arange(60) % 3
    lines = [",".join([*map(repr, row), "uvw"[k]]) for row, k in zip(x.tolist(), labels, strict=True)]
    (here / "labels.csv").write_text("\n".join(["a,b,c,d,e,kind", *lines]) + "\n")
    np.savez("labels.npz", x=x.numpy(), y=np.array(list("uvw"))[labels])
    for data, classes in (("labels.csv", "kind"), ("labels.npz", "y")):
        given = diagnosis_data(data, model, target=None, classes=classes)
        assert given.y is not None
        assert given.y.tolist() == labels.tolist()


def test_constant_pixels_stay_without_a_word_beside_targets(here: Path) -> None:
    """Corners of images are often black: the network has an input for each of them."""
    x = samples(30, 2, 4, 5).numpy()
    x[:, :, 0, 0] = 0.0
    np.savez("corners.npz", x=x, y=np.arange(30) % 3)
    given = diagnosis_data("corners.npz", read_model_file("net.safetensors"), target=None, classes="y")
    assert tuple(torch.as_tensor(given.x).shape) == (30, 2, 4, 5)


class Inputs:
    """Arrays that modules take, each with what stays of it as samples."""

    images = np.random.default_rng(0).normal(size=(30, 2, 4, 5))
    rows = images[:, 0, 0]
    words = np.arange(90).reshape(30, 3) % 7


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("apart", ["numbers", "matrix", "maps", "labels", "a table"])
@pytest.mark.parametrize("data", ["images.npy", "rows.npy", "words.npy", "images.npz", "words.npz", "named.npz"])
def test_targets_in_a_file_of_their_own_leave_the_samples_as_they_are(data: str, apart: str) -> None:
    """Images had been flattened, and tokens had become numbers."""
    kind = data.removesuffix(".npy").removesuffix(".npz")
    array = Inputs.words if kind == "named" else getattr(Inputs, kind)
    if data.endswith("npy"):
        np.save(data, array)
    elif kind == "named":
        np.savez(data, ids=array)
    else:
        np.savez(data, x=array)
    codes = np.arange(30) % 3
    as_classes, file = apart in ("labels", "a table"), "targets.npy"
    wanted = {"numbers": codes[:, None] / 2, "matrix": Inputs.rows, "maps": Inputs.images}.get(apart, codes)
    if apart == "a table":
        file = "targets.csv"
        Path(file).write_text("kind\n" + "\n".join(np.array(list("uvw"))[codes]) + "\n")
    else:
        np.save(file, codes / 2 if apart == "numbers" else wanted)
    options = (None, file) if as_classes else (file, None)
    given = diagnosis_data(data, read_model_file("net.safetensors"), target=options[0], classes=options[1])
    assert given.y is not None
    np.testing.assert_array_equal(given.y.numpy(), wanted)
    samples_given = given.x["ids"] if isinstance(given.x, dict) else torch.as_tensor(given.x)
    assert isinstance(given.x, dict) is (kind == "named")
    np.testing.assert_array_equal(torch.as_tensor(samples_given).numpy(), array)
    assert (given.whole is not None) is (kind == "words")


@pytest.mark.usefixtures("here")
def test_named_inputs_may_have_their_targets_beside_them() -> None:
    np.savez("both.npz", ids=Inputs.words, mask=Inputs.words > 0, y=np.arange(30) / 2)
    given = diagnosis_data("both.npz", read_model_file("net.safetensors"), target="y", classes=None)
    assert isinstance(given.x, dict)
    assert list(given.x) == ["ids", "mask"]
    assert torch.as_tensor(given.y).tolist() == (np.arange(30) / 2).tolist()


@pytest.mark.parametrize(
    ("words", "is_told"),
    [((), True), (("--target", "y"), False), (("--no-jacobians",), False)],
    ids=["unasked", "asked", "no-jacobians"],
)
def test_targets_that_are_not_used_are_told(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], is_told: bool
) -> None:
    assert run(["diagnose", "net.safetensors", "--data", "pairs.npz", "--out", "page.html", *words]) == 0
    note = "note: pairs.npz: its y is not used. Add --target y, or --classes y, for the loss."
    assert (note in capsys.readouterr().err.splitlines()) is is_told
    assert (here / "page.html").exists()


@pytest.mark.usefixtures("here")
def test_a_zarr_is_taken_as_a_npy_or_an_npz() -> None:
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    images = np.load("images.npy")
    zarr.create_array("images.zarr", data=images)
    model = read_model_file("images.pt", factory="foreign_modules:Images")
    npy, found = (diagnosis_data(data, model, target=None, classes=None).x for data in ("images.npy", "images.zarr"))
    assert isinstance(npy, torch.Tensor)
    assert isinstance(found, torch.Tensor)
    assert found.shape == images.shape, "images keep their shape"
    assert torch.equal(npy, found)
    pairs = np.load("pairs.npz")
    group = zarr.open_group("pairs.zarr", mode="w")
    for name in ("x", "y"):
        group.create_array(name, data=pairs[name])
    net = read_model_file("net.safetensors")
    given = [diagnosis_data(data, net, target="y", classes=None) for data in ("pairs.npz", "pairs.zarr")]
    assert all(torch.equal(getattr(given[0], name), getattr(given[1], name)) for name in ("x", "y"))


@pytest.mark.slow
def test_images_with_a_factory_name_their_pixels_and_what_has_no_row(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["diagnose", "images.pt", "--data", "images.npy", "--factory", "foreign_modules:Images"]
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert line_of(err) == "note: --factory foreign_modules:Images ran your code to make the network."
    assert [row[1] for row in rows_said(out)] == ["conv1", "conv2", "fc1", "fc2"]
    assert "pixels are treated as samples in 2 of 4 layers" in out
    assert "2 modules without a row" in out
    assert "normalisation: no weight matrix" in (here / "runs" / "images-diagnosis.html").read_text()


def test_tokens_and_several_inputs_keep_their_kind(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "two.py").write_text(
        "import torch\n\nclass Two(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.table, self.last = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 2)\n\n"
        "    def forward(self, words, shift=0.0):\n        return self.last(self.table(words).mean(1) + shift)\n"
    )
    torch.save(
        {"table.weight": torch.randn(7, 4), "last.weight": torch.randn(2, 4), "last.bias": torch.randn(2)}, "t.pt"
    )
    words = np.arange(120).reshape(40, 3) % 7
    np.save("words.npy", words)
    assert run(["diagnose", "t.pt", "--data", "words.npy", "--factory", "two:Two", "--out", "p.html"]) == 0
    assert [row[1] for row in rows_said(capsys.readouterr().out)] == ["last"]
    np.savez("both.npz", words=words, shift=np.random.default_rng(0).normal(size=(40, 4)))
    given = diagnosis_data("both.npz", read_model_file("t.pt", factory="two:Two"), target=None, classes=None)
    assert isinstance(given.x, dict)
    assert {name: (t.dtype, tuple(t.shape)) for name, t in given.x.items()} == {
        "words": (torch.int64, (40, 3)),
        "shift": (DOUBLE, (40, 4)),
    }


@pytest.mark.slow
def test_a_discovery_and_a_program_are_models_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    discoveries.discovery().save("run")
    x = discoveries.inputs()
    write_table(here / "shuffled.csv", [discoveries.INPUTS[i] for i in (3, 0, 2, 4, 1)], x[:, [3, 0, 2, 4, 1]])
    model = read_model_file("run")
    given = diagnosis_data("shuffled.csv", model, target=None, classes=None)
    assert torch.equal(torch.as_tensor(given.x), torch.from_numpy(x))
    crafted_files.program(here / "net.pt2")
    assert run(["diagnose", "net.pt2", "--data", "rows.csv", "--out", "q.html"]) == 0
    assert len(rows_said(capsys.readouterr().out)) == 2


def test_energies_of_a_residual_stream_are_on_the_terminal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(seeded(Residual, 1).state_dict(), "residual.pt")
    words = ["residual.pt", "--data", "pairs.csv", "--target", "p,q,r", "--ridge", "1e-2", "--out", "p.html"]
    assert run(["diagnose", *words, "--factory", "foreign_modules:Residual"]) == 0
    out = capsys.readouterr().out
    assert "Hamilt." in out
    # identity and Hamiltonian at the two blocks; in two other rows no number of directions stands out
    assert [len(row) for row in rows_said(out)] == [7, 8, 10, 7, 10, 8]
    assert "The Hamiltonian along the residual stream." in (here / "p.html").read_text()


NET = ["net.safetensors", "--data"]
IMAGES = ["images.pt", "--data", "images.npy"]
FACTORY = ["--factory", "foreign_modules:Images"]
BAD = {
    "no model": (["gone.pt", "--data", "rows.csv"], "gone.pt: no such file"),
    "no data": ([*NET, "gone.csv"], "gone.csv: no such file"),
    "no --data": (["net.safetensors"], "Missing option '--data'"),
    "no factory": (IMAGES, "Add --factory"),
    "missing keys": (["partial.pt", "--data", "images.npy", *FACTORY], "it lacks 1 tensor (fc2.bias)"),
    "a factory that fails": ([*IMAGES, "--factory", "foreign_modules:Gone"], "failed (AttributeError"),
    "a damaged checkpoint": (["damaged.pt", "--data", "images.npy", *FACTORY], "is damaged or no file of torch.save"),
    "a checkpoint that runs code": (["evil.pt", "--data", "images.npy", *FACTORY], "refused without running it"),
    "a program that runs code": (["evil.pt2", "--data", "rows.csv"], "refused without running it"),
    "damaged safetensors": (["damaged.safetensors", "--data", "rows.csv"], "cannot be read as safetensors"),
    "a module of ours fails": ([*NET, "images.npy"], "running FullyConnected on the first rows of x failed"),
    "a module fails": (["images.pt", "--data", "rows.csv", *FACTORY], "running Images on the first rows of x failed"),
    "whole numbers fail too": ([*NET, "whole.npy"], "needs x of shape (n, 5)"),
    "NaN": ([*NET, "nan.npy"], "NaN"),
    "a batch of one": ([*NET, "one.npy"], "needs at least 2 rows"),
    "text": ([*NET, "text.csv"], "needs x of shape (n, 5)"),
    "complex numbers": ([*NET, "complex.npy"], "complex"),
    "pickled objects": ([*NET, "objects.npy"], "objects.npy"),
    "an unknown target": ([*NET, "pairs.csv", "--target", "z"], "has no column 'z'"),
    "a target of the wrong width": ([*NET, "pairs.npz", "--target", "y2"], "Give --target y"),
    "targets that do not fit": ([*NET, "thin.npz", "--target", "y"], "needs y of shape (60, 3)"),
    "targets of other rows": ([*NET, "pairs.npz", "--target", "one.npy"], "x has 60 rows and y has 1"),
    "targets with NaN": ([*NET, "pairs.npz", "--target", "nan.npy"], "nan.npy: column 3 holds a missing value"),
    "classes and targets": ([*NET, "pairs.csv", "--target", "p", "--classes", "q"], "exclude each other"),
    "a ridge alone": ([*NET, "rows.csv", "--ridge", "1e-3"], "is used together with targets"),
    "a negative ridge": ([*NET, "pairs.csv", "--target", "p,q,r", "--ridge", "-1"], "needs a positive number"),
    "too little memory": ([*NET, "rows.csv", "--memory", "0.001"], "Raise limits.memory"),
    "no weight matrix": (["norm.pt", "--data", "rows.csv", "--factory", "make_norm:make"], "while LayerNorm ran"),
    "a page in no folder": ([*NET, "rows.csv", "--out", "gone/page.html"], "its folder does not exist"),
    "a page that is a folder": ([*NET, "rows.csv", "--out", "."], "is a folder"),
}  # fmt: skip


def entries(folder: Path) -> list[str]:
    """What lies there, but for the bytecode that Python keeps of a module that it was told to import."""
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


DEAR = "a program that runs code"  # a program is exported for it: seconds


@pytest.mark.parametrize("case", [pytest.param(case, marks=pytest.mark.slow) if case == DEAR else case for case in BAD])
def test_bad_input_is_one_line_and_nothing_is_written(
    here: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    words, message = BAD[case]
    state = seeded(Images, 3).state_dict()
    torch.save({name: t for name, t in state.items() if name != "fc2.bias"}, "partial.pt")
    (here / "damaged.pt").write_bytes((here / "images.pt").read_bytes()[:4000])
    (here / "damaged.safetensors").write_bytes((here / "net.safetensors").read_bytes()[:50])
    torch.save({"x": crafted_files.Payload(here / "marker")}, "evil.pt")
    torch.save(nn.LayerNorm(5).state_dict(), "norm.pt")
    (here / "make_norm.py").write_text("import torch\n\ndef make():\n    return torch.nn.LayerNorm(5)\n")
    if case == DEAR:
        change = crafted_files.attacks(here / "marker", here)["sample inputs"]
        crafted_files.rewritten(crafted_files.program(here / "good.pt2"), here / "evil.pt2", change)
    np.save("nan.npy", np.where(np.arange(200).reshape(40, 5) == 7, np.nan, 1.0))
    np.save("one.npy", np.ones((1, 5)))
    np.save("whole.npy", np.arange(120).reshape(40, 3))
    np.save("complex.npy", np.ones((40, 5), dtype=complex))
    np.save("objects.npy", np.array([{"a": 1}] * 30, dtype=object), allow_pickle=True)
    np.savez("thin.npz", x=samples(60, 5).numpy(), y=np.zeros((60, 2)))
    (here / "text.csv").write_text("a,b\n" + "1.5,red\n2.5,blue\n" * 20)
    before = entries(here)
    assert run(["diagnose", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in line_of(err[err.rindex("isthmus:") :])
    assert all(line.startswith(("note:", "isthmus:")) for line in err.splitlines())
    assert entries(here) == before
    assert not (here / "marker").exists()


@pytest.mark.slow
def test_forward_passes_alone_end_where_they_are_told_to(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diagnose", "net.safetensors", "--data", "rows.csv", "--no-jacobians", "--rows", "33"]
    assert run([*words, "--max-seconds", "600"]) == 0
    out = capsys.readouterr().out
    assert "warning: The data were read at the limit of 33 rows: 33 samples; no cut has judged the rank." in out
    assert "kernel" not in out
    assert "rank at 10 %" not in out
    page = Path("runs/net-diagnosis.html").read_text()
    assert "--max-seconds 600 --rows 33 --no-jacobians" in page
    assert run([*words[:-2], "--max-seconds", "1e-9", "--replace"]) == 0
    assert "at the limit of 1e-09 seconds" in capsys.readouterr().out
    assert run([*words[:-3], "--jacobians", "--replace"]) == 0
    assert "kernel" in capsys.readouterr().out


@pytest.mark.slow
def test_what_forward_passes_summed_is_gone_on_from(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diagnose", "net.safetensors", "--data", "rows.csv", "--no-jacobians", "--json"]
    assert run(words) == 0
    whole = json.loads(capsys.readouterr().out)
    kept = [*words, "--checkpoint", "sums.pt", "--replace"]
    assert run([*kept, "--rows", "33"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"] != whole["layers"]
    assert run(kept) == 0
    found = json.loads(capsys.readouterr().out)
    for name in ("activation_singular_values", "rank_99", "rows"):
        expected = np.array(whole["layers"][name], dtype=float)
        np.testing.assert_allclose(np.array(found["layers"][name], dtype=float), expected, rtol=1e-6, atol=1e-9)
    assert "--checkpoint sums.pt" in Path("runs/net-diagnosis.html").read_text()
    Path("sums.pt").write_bytes(Path("net.safetensors").read_bytes())
    assert run(kept) == 2
    assert "checkpoint sums.pt: cannot be read" in line_of(capsys.readouterr().err)
    assert Path("sums.pt").read_bytes() == Path("net.safetensors").read_bytes()
    assert run([*kept[:-3], "--checkpoint", "net.safetensors"]) == 2
    assert "is an input of this command" in line_of(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rows", "9"], "--rows: ends a diagnosis by forward passes alone. Add --no-jacobians."),
        (["--checkpoint", "a.pt"], "--checkpoint: keeps a diagnosis by forward passes alone. Add --no-jacobians."),
        (["--no-jacobians", "--max-seconds", "0"], "--max-seconds 0: needs a positive number."),
        (["--no-jacobians", "--target", "p"], "--no-jacobians: forward passes alone take no targets."),
    ],
)
def test_limits_that_would_do_nothing_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run(["diagnose", "net.safetensors", "--data", "pairs.csv", *options]) == 2
    assert words in capsys.readouterr().err


def test_ranks_are_exported_for_other_tools(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", "net.safetensors", "--data", "rows.csv", "--export", "ranks.json"]) == 0
    assert "Ranks: ranks.json" in capsys.readouterr().out
    content = json.loads((here / "ranks.json").read_text())
    assert content["rank"] == 2
    assert content["rank_pattern"]["^weights\\.1"] <= 2
    assert run(["diagnose", "net.safetensors", "--data", "rows.csv", "--export", "ranks.txt"]) == 2
    assert "Use .json" in capsys.readouterr().err
    assert run(["diagnose", "net.safetensors", "--data", "rows.csv", "--export", "ranks.json"]) == 2
    assert "--export ranks.json: exists. Add --replace" in capsys.readouterr().err


def test_a_checkpoint_with_its_state_below_a_key_is_diagnosed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = seeded(Images, 3).state_dict()
    torch.save({"ema": state, "net": state}, here / "both.pt")
    asked = ["diagnose", "both.pt", "--data", "images.npy", "--factory", "foreign_modules:Images"]
    assert run([*asked, "--key", "net"]) == 0
    assert "--key net" in (here / "runs" / "both-diagnosis.html").read_text()
    capsys.readouterr()
    assert run([*asked, "--replace"]) == 2
    assert "Add --key NAME (ema, net)" in capsys.readouterr().err


def test_a_device_is_named_or_refused_in_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diagnose", "net.safetensors", "--data", "rows.csv", "--device"]
    assert run([*words, "cpu"]) == 0
    assert "--device cpu" in (here / "runs" / "net-diagnosis.html").read_text()
    capsys.readouterr()
    assert run([*words, "meta", "--replace"]) == 2
    assert "--device meta: needs cpu, cuda" in capsys.readouterr().err
