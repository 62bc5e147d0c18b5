"""Models from files: what fits is read, what would run code is not run, what is damaged is one line."""

import json
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import crafted_files
import discoveries
import isthmus
from foreign_modules import Images, samples, seeded
from isthmus.discovery.files.models import read_model_file
from isthmus.discovery.files.networks import write_network
from isthmus.errors import DataError
from isthmus.networks import FullyConnected

FACTORY = "foreign_modules:Images"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crafted_files.program(tmp_path_factory.mktemp("program") / "good.pt2")


def test_state_dicts_give_the_module_back(tmp_path: Path) -> None:
    module, x = seeded(Images, 3), samples(4, 1, 8, 8)
    torch.save(module.state_dict(), tmp_path / "bare.pt")
    torch.save({"epoch": 3, "state_dict": module.state_dict()}, tmp_path / "wrapped.ckpt")
    save_file(module.state_dict(), tmp_path / "net.safetensors")
    for name in ("bare.pt", "wrapped.ckpt", "net.safetensors"):
        found = read_model_file(tmp_path / name, factory=FACTORY)
        assert torch.equal(found.module(x), module(x))
        assert not found.module.training
        assert "ran your code" in found.note


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # older torch of its own files
def test_networks_of_ours_programs_and_discoveries_need_no_factory(tmp_path: Path, program: Path) -> None:
    network = FullyConnected(5, 3, width=4, depth=3, seed=0)
    write_network(tmp_path / "net.safetensors", network)
    x = samples(4, 5)
    assert torch.equal(read_model_file(tmp_path / "net.safetensors").module(x), network(x))
    found = discoveries.discovery()
    found.save(tmp_path / "run")
    read = read_model_file(tmp_path / "run")
    assert read.input_names == tuple(found.input_names)
    rows = discoveries.inputs()
    assert torch.equal(read.module(torch.from_numpy(rows)).detach(), torch.from_numpy(found.predict(rows)))
    reference = torch.export.load(program).module()
    assert torch.equal(read_model_file(program).module(x), reference(x))


def test_a_pickle_that_would_run_a_command_is_refused_without_running_it(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    torch.save({"weight": crafted_files.Payload(marker)}, tmp_path / "evil.pt")
    with pytest.raises(DataError, match="refused without running it.*more than tensors"):
        read_model_file(tmp_path / "evil.pt", factory=FACTORY)
    assert not marker.exists()
    torch.load(tmp_path / "evil.pt", weights_only=False)
    assert marker.exists(), "the payload is live: only the reader stood between"


ATTACKS = list(crafted_files.attacks(Path("m"), Path()))


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_program_that_would_run_a_command_is_refused_without_running_it(
    tmp_path: Path, program: Path, attack: str
) -> None:
    marker = tmp_path / "marker"
    change = crafted_files.attacks(marker, tmp_path)[attack]
    path = crafted_files.rewritten(program, tmp_path / "evil.pt2", change)
    with pytest.raises(DataError, match="refused without running it"):
        read_model_file(path)
    assert not marker.exists()
    if attack == "an opaque constant" and torch.__version__ < "2.13":
        return  # of which older ones know nothing
    crafted_files.run_by_torch(path)
    assert marker.exists(), "the payload is live: only the reader stood between"


@pytest.mark.parametrize("name", list(crafted_files.other_changes()))
def test_programs_that_call_or_import_something_else_are_refused(tmp_path: Path, program: Path, name: str) -> None:
    path = crafted_files.rewritten(program, tmp_path / "odd.pt2", crafted_files.other_changes()[name])
    words = "no exported program" if name == "no graph" else "refused without running it"
    with pytest.raises(DataError, match=words):
        read_model_file(path)


@pytest.mark.parametrize("name", ["an object in place of a tensor", "a constant that is no tensor"])
def test_what_is_no_tensor_is_refused_as_such(tmp_path: Path, program: Path, name: str) -> None:
    """By the rule itself: torch would take these for objects, and whether it fails on them is no defence."""
    path = crafted_files.rewritten(program, tmp_path / "odd.pt2", crafted_files.other_changes()[name])
    with pytest.raises(DataError, match=r"refused without running it: its member \S+ (holds|names) .*is no tensor"):
        read_model_file(path)


def test_two_members_of_one_name_are_refused(tmp_path: Path, program: Path) -> None:
    def change(members: crafted_files.Members) -> None:
        members["data/sample_inputs/MODEL.pt"] = b"never looked at"

    path = crafted_files.rewritten(program, tmp_path / "twice.pt2", change)
    with pytest.raises(DataError, match="two of its members share a name"):
        read_model_file(path)


def test_an_unchanged_copy_of_the_program_is_read(tmp_path: Path, program: Path) -> None:
    path = crafted_files.rewritten(program, tmp_path / "same.pt2", lambda _: None)
    x = samples(6, 5)
    assert torch.equal(read_model_file(path).module(x), read_model_file(program).module(x))


def state() -> dict[str, torch.Tensor]:
    return dict(seeded(Images).state_dict())


def missing(path: Path) -> None:
    torch.save({k: v for k, v in state().items() if not k.startswith("fc")}, path)


def unexpected(path: Path) -> None:
    torch.save(state() | {"head.weight": torch.zeros(2)}, path)


def wrong_shape(path: Path) -> None:
    torch.save(state() | {"fc2.weight": torch.zeros(10, 21)}, path)


def whole_module(path: Path) -> None:
    torch.save(seeded(Images), path)


def truncated(path: Path) -> None:
    torch.save(state(), path)
    path.write_bytes(path.read_bytes()[:2000])


def raw_pickle(path: Path) -> None:
    """As pickle.dump leaves it: torch warns of its protocol before it gives up."""
    path.write_bytes(pickle.dumps(crafted_files.Payload(path.parent / "marker"), protocol=4))


def scripted(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript says that it is old
        torch.jit.script(torch.nn.Linear(3, 2)).save(path)


def noise(path: Path) -> None:
    path.write_bytes(os.urandom(500))


def no_tensors(path: Path) -> None:
    torch.save({"epoch": 3}, path)


def tensors_only(path: Path) -> None:
    save_file(state(), path)


def wrong_description(path: Path) -> None:
    text = '{"class": "Sequential", "layers": [{"class": "Linear", "in_features": 9, "out_features": 2, "bias": true}]}'
    save_file({"0.weight": torch.zeros(2, 3), "0.bias": torch.zeros(2)}, path, metadata={"isthmus": text})


def nothing(_path: Path) -> None:
    pass


BAD: dict[str, tuple[Callable[[Path], None], str, str | None, str]] = {
    "missing keys": (missing, "a.pt", FACTORY, r"lacks 4 tensors \(fc1.weight, fc1.bias, fc2.weight, \.\.\.\)"),
    "unexpected keys": (unexpected, "a.pt", FACTORY, r"has besides 1 tensor \(head.weight\)"),
    "wrong shape": (wrong_shape, "a.pt", FACTORY, r"fc2.weight has shape \(10, 21\).* needs \(10, 20\)"),
    "a whole module": (whole_module, "a.pt", FACTORY, "holds more than tensors"),
    "TorchScript": (scripted, "a.pt", None, r"a TorchScript file .* torch.export.save \(.pt2\), or its state_dict\(\)"),
    "truncated": (truncated, "a.pt", FACTORY, "is damaged or no file of torch.save"),
    "a raw pickle": (raw_pickle, "a.pt", FACTORY, r"is damaged or no file of torch.save \(UnpicklingError"),
    "noise .pt": (noise, "a.pt", FACTORY, "is damaged or no file of torch.save"),
    "noise .pt2": (noise, "a.pt2", None, "is damaged or no exported program"),
    "noise .safetensors": (noise, "a.safetensors", None, "cannot be read as safetensors"),
    "no tensors": (no_tensors, "a.pt", FACTORY, "holds no state dict"),
    "no factory .pt": (missing, "a.pt", None, "Add --factory"),
    "no factory .safetensors": (tensors_only, "a.safetensors", None, "Add --factory"),
    "a factory too many": (noise, "a.pt2", FACTORY, "Leave out --factory"),
    "wrong description": (wrong_description, "a.safetensors", None, "do not fit its description"),
    "no file": (nothing, "a.pt", FACTORY, "no such file"),
    "onnx": (noise, "a.onnx", None, "networks in ONNX are not read"),
    "extension": (noise, "a.h5", None, "unknown extension '.h5'"),
    "factory form": (unexpected, "a.pt", "Images", "needs module:callable"),
    "factory module": (unexpected, "a.pt", "no_such_module:f", "failed .ModuleNotFoundError"),
    "factory name": (unexpected, "a.pt", "foreign_modules:Nope", "failed .AttributeError"),
    "factory result": (unexpected, "a.pt", "foreign_modules:F.relu.__name__.upper", "gave a str"),
    "factory no call": (unexpected, "a.pt", "foreign_modules:__name__", "is a str, not callable"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, case: str) -> None:
    make, name, factory, words = BAD[case]
    make(tmp_path / name)
    with pytest.raises(DataError, match=words) as caught:
        read_model_file(tmp_path / name, factory=factory)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.", "module._orig_mod."])
def test_what_a_wrapper_puts_before_every_name_is_left_out_and_said(tmp_path: Path, prefix: str) -> None:
    torch.save({f"{prefix}{name}": tensor for name, tensor in state().items()}, tmp_path / "a.pt")
    found = read_model_file(tmp_path / "a.pt", factory=FACTORY)
    x = samples(6, 1, 8, 8)
    assert torch.equal(found.module(x), seeded(Images)(x))
    assert f"Left out '{prefix}'" in found.note
    torch.save({f"{prefix}{n}": t for n, t in state().items() if n != "fc1.bias"}, tmp_path / "b.pt")
    with pytest.raises(DataError, match=rf"lacks 18 tensors .*has besides 17 tensors \({prefix}conv1.weight"):
        read_model_file(tmp_path / "b.pt", factory=FACTORY)


@pytest.mark.slow
def test_nothing_is_imported_from_a_checkpoint_of_a_module_in_a_fresh_process(tmp_path: Path) -> None:
    """A pickled module names its class; reading it must not import the file that defines it."""
    (tmp_path / "their_models.py").write_text(
        f"import pathlib, torch\npathlib.Path({str(tmp_path / 'marker')!r}).touch()\n"
        "class Net(torch.nn.Linear):\n    pass\n"
    )
    save = "import torch, their_models; torch.save(their_models.Net(2, 2), 'net.pt')"
    subprocess.run([sys.executable, "-c", save], check=True, cwd=tmp_path)
    (tmp_path / "marker").unlink()
    read = (
        "from isthmus.discovery.files.models import read_model_file\nfrom isthmus.errors import DataError\n"
        "try:\n    read_model_file('net.pt', factory='their_models:Net')\nexcept DataError as e:\n    print(e)"
    )
    env = os.environ | {"PYTHONPATH": str(Path(isthmus.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-c", read], check=True, cwd=tmp_path, capture_output=True, text=True, env=env
    )
    assert "holds more than tensors" in found.stdout
    assert not (tmp_path / "marker").exists()


def test_a_sequence_of_plain_layers_is_not_rebuilt_larger_than_its_tensors(tmp_path: Path) -> None:
    layer = {"class": "Linear", "in_features": 10**9, "out_features": 10**9, "bias": False}
    text = json.dumps({"class": "Sequential", "layers": [layer]})
    save_file({"0.weight": torch.zeros(2, 3)}, tmp_path / "a.safetensors", metadata={"isthmus": text})
    with pytest.raises(DataError, match="do not fit its description"):
        read_model_file(tmp_path / "a.safetensors")
