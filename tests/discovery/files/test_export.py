"""Exported modules read back, also by a process that knows nothing of them, for any number of samples."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from foreign_modules import Images, Residual, attention, samples, seeded
from isthmus.discovery.files.export import write_module
from isthmus.discovery.files.models import read_model_file
from isthmus.errors import DataError
from isthmus.networks import FullyConnected

SINGLE = 1e-5


def flat() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4), nn.GELU(approximate="tanh"), nn.AvgPool2d(2), nn.Flatten(),
        nn.LayerNorm(4), nn.LeakyReLU(0.2), nn.Linear(4, 3, bias=False),
    )  # fmt: skip


def network() -> FullyConnected:
    return FullyConnected(5, 3, width=(4, 6), depth=3, seed=0, negative_slope=0.2, linear=(1,), dtype=torch.float64)


CASES = {
    "ours": (network, samples(9, 5, dtype=torch.float64), True),
    "ours inside": (lambda: nn.Sequential(network(), nn.Tanh()), samples(9, 5, dtype=torch.float64), True),
    "plain layers": (flat, samples(9, 1, 6, 6), True),
    "residual": (Residual, samples(9, 5), False),
    "attention": (attention, samples(9, 4, 5), False),
}


@pytest.mark.dear(1)
@pytest.mark.parametrize("case", CASES)
def test_files_are_read_back_for_any_number_of_samples(tmp_path: Path, case: str) -> None:
    make, x, is_described = CASES[case]
    module = seeded(make)
    facts = write_module(tmp_path, "net", module, x)
    assert (facts["network"] is not None) == is_described
    assert facts["input_shape"] == list(x.shape[1:])
    names = ["net.pt2", *(["net.safetensors"] if is_described else [])]
    for name in names:
        read = read_model_file(tmp_path / name).module
        for rows in (x[:1], x[:2], x):
            assert torch.allclose(read(rows), module(rows), atol=1e-6)
    if not is_described:
        with pytest.raises(DataError, match="Add --factory"):
            read_model_file(tmp_path / "net.safetensors")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.pt2", "net.safetensors"]


@pytest.mark.slow
def test_a_program_needs_nothing_of_isthmus_in_a_fresh_process(tmp_path: Path) -> None:
    module, x = network(), samples(7, 5, dtype=torch.float64)
    write_module(tmp_path, "net", module, x)
    np.save(tmp_path / "x.npy", x.numpy())
    program = (
        "import sys, numpy as np, torch\n"
        "found = torch.export.load('net.pt2').module()(torch.from_numpy(np.load('x.npy')))\n"
        "np.save('y.npy', found.detach().numpy())\n"
        "assert not any(name.startswith('isthmus') for name in sys.modules)\n"
    )
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, env=env, capture_output=True)
    assert np.array_equal(np.load(tmp_path / "y.npy"), module(x).detach().numpy())


@pytest.mark.slow
@pytest.mark.parametrize("case", ["ours", "plain layers"])
def test_onnx_is_one_file_that_computes_the_same(tmp_path: Path, case: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    make, x, _ = CASES[case]
    module = seeded(make)
    facts = write_module(tmp_path, "net", module, x, onnx=True)
    assert isinstance(facts["onnx_deviation"], float)
    assert facts["onnx_deviation"] <= SINGLE
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.pt2", "net.safetensors"]
    session = runtime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    for rows in (x[:1], x):
        [found] = session.run(None, {"x": rows.float().numpy()})
        assert float(np.abs(found - module(rows).detach().numpy()).max()) <= SINGLE


@pytest.mark.slow
@pytest.mark.parametrize("make", [Images, Residual, attention])
def test_onnx_of_larger_networks(tmp_path: Path, make: object) -> None:
    pytest.importorskip("onnxruntime")
    x = {Images: samples(9, 1, 8, 8), Residual: samples(9, 5)}.get(make, samples(9, 4, 5))  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert float(str(write_module(tmp_path, "net", seeded(make), x, onnx=True)["onnx_deviation"])) <= SINGLE


class FixedCount(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(4, -1)[:, :2].repeat(len(x) // 4, 1)


def test_a_module_that_fixes_the_number_of_samples_has_its_numbers_written_and_no_program(tmp_path: Path) -> None:
    facts = write_module(tmp_path, "net", FixedCount(), samples(8, 3))
    assert facts["files"] == ["net.safetensors"]
    assert "cannot be exported with a free number of samples" in str(facts["no_program"])
    assert not (tmp_path / "net.pt2").exists()
    with pytest.raises(DataError, match="cannot be exported with a free number of samples"):
        write_module(tmp_path, "net", FixedCount(), samples(8, 3), onnx=True)


class Several(nn.Module):
    """Gives what models of transformers give: a loss, the answer, and what they keep for the next call."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        return {"loss": x.sum(), "logits": self.inner(x), "kept": [x, x]}


def test_the_program_of_what_gives_more_than_a_tensor_gives_the_answer(tmp_path: Path) -> None:
    module, x = seeded(Several), samples(9, 3)
    facts = write_module(tmp_path, "net", module, x)
    assert facts["output_shape"] == [2]
    program = read_model_file(tmp_path / "net.pt2").module
    for rows in (x[:1], x):
        assert torch.equal(program(rows), module(rows)["logits"])


def test_a_missing_extra_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # what Python itself takes for "not to be imported"
    with pytest.raises(DataError, match=r"^--onnx: needs the package onnxruntime. Install it with: pip install"):
        write_module(tmp_path, "net", network(), samples(9, 5, dtype=torch.float64), onnx=True)
    assert not (tmp_path / "net.onnx").exists()


SESSION = """
import sys
import onnx
from onnx import TensorProto, helper
if sys.argv[1] == "ours":
    from isthmus.discovery.files.export import check_onnx_extra
    check_onnx_extra()
import onnxruntime
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
"""


@pytest.mark.slow
def test_nobody_is_told_of_an_export(tmp_path: Path) -> None:
    """What onnxruntime would tell its maker it keeps in a folder first; no network is needed to see that."""
    pytest.importorskip("onnxruntime")
    unset = {key: value for key, value in os.environ.items() if key != "ORT_DISABLE_TELEMETRY"}
    kept: dict[str, list[Path]] = {}
    for who in ("theirs", "ours"):
        home = tmp_path / who
        home.mkdir()
        environment = unset | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(home)}
        subprocess.run([sys.executable, "-c", SESSION, who], cwd=home, env=environment, check=True, timeout=300)
        kept[who] = [path for path in home.rglob("*") if path.name == "deviceid"]
    if not kept["theirs"]:
        pytest.skip("this onnxruntime tells nobody")
    assert kept["ours"] == []
