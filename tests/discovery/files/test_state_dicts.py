"""State dicts are found where training scripts put them, safetensors in several files by their index; safely."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import crafted_files
from foreign_modules import Images, TiedTokens, samples, seeded
from isthmus.discovery.files.models import read_model_file
from isthmus.errors import DataError

FACTORY = "foreign_modules:Images"
INDEX = "model.safetensors.index.json"


def state() -> dict[str, Tensor]:
    return dict(seeded(Images, 3).state_dict())


def same(found: torch.nn.Module) -> bool:
    x = samples(4, 1, 8, 8)
    return torch.equal(found(x), seeded(Images, 3)(x))


def adam() -> dict[str, object]:
    """The state of an optimiser, which has names with tensors too."""
    return {"state": {0: {"step": torch.ones(()), "exp_avg": torch.ones(3)}}, "param_groups": [{"lr": 0.1}]}


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (lambda: {"epoch": 3, "model_state": state(), "optimizer": adam()}, None),
        (lambda: {"trainer": {"network": state(), "step": 7}}, None),
        (lambda: {"run": {"trainer": {"part": {"network": state()}}, "optimizer": adam()}}, None),
        (lambda: {"network": state(), "optimizer": {"state": {"one": {"step": {"w": torch.ones(2)}}}}}, None),
        (lambda: {"ema": {"w": torch.ones(2)}, "net": state()}, "net"),
        (lambda: {"ema": {"model": state(), "other": {"w": torch.ones(2)}}}, "ema.model"),
    ],
)
def test_a_state_dict_is_found_by_itself_or_by_its_key(
    tmp_path: Path, content: Callable[[], object], key: str | None
) -> None:
    torch.save(content(), tmp_path / "a.pt")
    assert same(read_model_file(tmp_path / "a.pt", factory=FACTORY, key=key).module)


def shards(folder: Path) -> dict[str, str]:
    """Two files of safetensors; which tensor lies where."""
    tensors = state()
    names = list(tensors)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, own in files.items():
        save_file({name: tensors[name] for name in own}, folder / file)
    return {name: file for file, own in files.items() for name in own}


def test_several_files_of_safetensors_are_read_by_their_index(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": shards(tmp_path)}))
    assert same(read_model_file(tmp_path / INDEX, factory=FACTORY).module)
    assert same(read_model_file(tmp_path, factory=FACTORY).module)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda listed: {"weight_map": listed | {"conv1.bias": "../model-00001-of-00002.safetensors"}}, "Do not trust"),
        (lambda listed: {"weight_map": listed | {"conv1.bias": "evil.pt"}}, "Do not trust"),
        (lambda listed: {"weight_map": listed | {"conv1.bias": "model-3.safetensors"}}, "no such file"),
        (lambda listed: {"weight_map": listed | {"extra": "model-00001-of-00002.safetensors"}}, "lacks extra"),
        (lambda listed: {"weight_map": {}}, "is no index"),
        (lambda listed: [*listed], "is no index"),
    ],
)
def test_an_index_that_leads_elsewhere_or_lies_is_refused(
    tmp_path: Path, change: Callable[[dict[str, str]], object], words: str
) -> None:
    (tmp_path / INDEX).write_text(json.dumps(change(shards(tmp_path))))
    with pytest.raises(DataError, match=words) as caught:
        read_model_file(tmp_path / INDEX, factory=FACTORY)
    assert "\n" not in str(caught.value)


def test_what_is_not_clear_is_asked_for_and_what_is_no_key_is_said(tmp_path: Path) -> None:
    torch.save({"net": state(), "ema": state()}, tmp_path / "two.pt")
    with pytest.raises(DataError, match=r"holds 2 state dicts. Add --key NAME \(net, ema\)"):
        read_model_file(tmp_path / "two.pt", factory=FACTORY)
    with pytest.raises(DataError, match=r"--key gone: holds no state dict of tensors there \(net, ema\)"):
        read_model_file(tmp_path / "two.pt", factory=FACTORY, key="gone")
    torch.save({"ema": state(), "nets": {"second": state()}}, tmp_path / "two.pt")
    with pytest.raises(DataError, match=r"holds 2 state dicts. Add --key NAME \(ema, nets.second\)"):
        read_model_file(tmp_path / "two.pt", factory=FACTORY)
    save_file(state(), tmp_path / "one.safetensors")
    with pytest.raises(DataError, match="--key is for .pt"):
        read_model_file(tmp_path / "one.safetensors", factory=FACTORY, key="net")


def test_which_of_several_was_taken_is_said(tmp_path: Path) -> None:
    """The weights that were averaged are others than those that were trained: no figure is of both."""
    torch.save({"ema": {"w": torch.ones(2)}, "model": state(), "epoch": 3}, tmp_path / "a.pt")
    found = read_model_file(tmp_path / "a.pt", factory=FACTORY)
    assert same(found.module)
    assert f"Of the state dicts in {tmp_path / 'a.pt'} took model; --key takes another (ema)." in found.note
    assert "took" not in read_model_file(tmp_path / "a.pt", factory=FACTORY, key="model").note


@pytest.mark.parametrize("prefix", ["", "module.", "model."])
def test_tensors_that_the_network_ties_may_be_left_out(tmp_path: Path, prefix: str) -> None:
    """As transformers leave them out of what save_pretrained writes; under any of their names, and behind wrappers."""
    tokens = torch.arange(6).reshape(2, 3)
    wanted = seeded(TiedTokens, 3)
    for left_out in ({"head.weight"}, {"embed.weight"}, set[str]()):
        kept = {prefix + name: t.clone() for name, t in wanted.state_dict().items() if name not in left_out}
        save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
        found = read_model_file(tmp_path / "model.safetensors", factory="foreign_modules:TiedTokens").module
        assert torch.equal(found(tokens), wanted(tokens))
        assert found.get_parameter("head.weight") is found.get_parameter("embed.weight")
        assert torch.equal(
            read_model_file(tmp_path, factory="foreign_modules:TiedTokens").module(tokens), wanted(tokens)
        )
    own = dict(wanted.state_dict())
    save_file({"inner.bias": own["inner.bias"], "inner.weight": own["inner.weight"]}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match=r"lacks 2 tensors \(embed.weight, head.weight\)"):
        read_model_file(tmp_path, factory="foreign_modules:TiedTokens")


def test_two_numbers_for_one_tensor_are_refused(tmp_path: Path) -> None:
    own = {name: t.clone() for name, t in seeded(TiedTokens, 3).state_dict().items()}
    save_file(own | {"head.weight": own["head.weight"] + 1}, tmp_path / "a.safetensors")
    with pytest.raises(DataError, match="different numbers for embed.weight and head.weight"):
        read_model_file(tmp_path / "a.safetensors", factory="foreign_modules:TiedTokens")


@pytest.mark.parametrize("name", ["model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin"])
def test_a_folder_with_one_file_of_weights_is_read_as_one_with_an_index(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match=r"--factory is for weights, and there are none.*model\.safetensors"):
        read_model_file(tmp_path, factory=FACTORY)
    torch.save(state(), tmp_path / name) if name.endswith(".bin") else save_file(state(), tmp_path / name)
    assert same(read_model_file(tmp_path, factory=FACTORY).module)
    with pytest.raises(DataError, match="Add --factory module:callable"):
        read_model_file(tmp_path)
    torch.save({"model": state(), "optimizer": adam()}, tmp_path / "a.pt")
    assert "took" not in read_model_file(tmp_path / "a.pt", factory=FACTORY).note


def test_a_key_does_not_open_what_would_run_a_command(tmp_path: Path) -> None:
    torch.save({"net": crafted_files.Payload(tmp_path / "marker")}, tmp_path / "a.pt")
    with pytest.raises(DataError, match="holds more than tensors"):
        read_model_file(tmp_path / "a.pt", factory=FACTORY, key="net")
    assert not (tmp_path / "marker").exists()


def test_an_odd_name_in_a_pickle_is_refused_without_a_word_of_python(tmp_path: Path) -> None:
    """pickletools reads names as string literals, and warns of a wrong escape in one."""
    stream = io.BytesIO()
    torch.save(state(), stream, _use_new_zipfile_serialization=False)
    (tmp_path / "a.pt").write_bytes(stream.getvalue().replace(b"_rebuild_tensor_v2", b"_rebuild\\N{x}_v2"))
    with pytest.raises(DataError, match="holds more than tensors"):  # warnings are errors
        read_model_file(tmp_path / "a.pt", factory=FACTORY)
