"""State dicts from files, tensors and plain values only: pickles of torch, safetensors in one file or in several.

The modules that they belong to: `files.models`. What a pickle may name: `files.pickles`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from isthmus.discovery.files.pickles import is_torchscript, odd_global
from isthmus.errors import DataError
from isthmus.processes.shared_state import silenced
from isthmus.tasks.door import checked_file, in_one_line, through_door
from isthmus.tasks.names import quoted, shown
from isthmus.writing.checksums import Damaged, check_tensors, opened_json
from isthmus.writing.regular import contents

# what training frameworks put around a state dict: looked for first
_WRAPPERS = ("state_dict", "model_state_dict", "model")
INDEX = ".safetensors.index.json"
# in a folder of transformers, of diffusers: in several files, or in one
_INDICES = ("model" + INDEX, "diffusion_pytorch_model" + INDEX)
WEIGHTS = ("model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin")
# keys above a state dict that is found by itself: so many, or where none lies there more: optimisers have some too
USUAL_DEPTH, DEEPEST = 2, 6
MOST_NAMED = 5


class Unpickled(NamedTuple):
    """The tensors of a pickled file, and which of several state dicts they are; "" where there was one."""

    tensors: dict[str, Tensor]
    note: str


def safe_tensors(place: Path) -> dict[str, Tensor]:
    """The tensors of a file of safetensors.

    Raises:
        DataError: it cannot be read.
    """
    try:
        check_tensors(place)
        with safe_open(place, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (Damaged, SafetensorError, OSError) as error:
        raise DataError(f"{place}: cannot be read as safetensors ({' '.join(str(error).split())[:200]}).") from error


def weights_in(folder: Path) -> Path | None:
    """The file that holds the weights in a folder of transformers or diffusers, or their index; None elsewhere."""
    return next((folder / name for name in (*_INDICES, *WEIGHTS) if (folder / name).is_file()), None)


def unpickled_tensors(place: Path, *, key: str | None = None) -> Unpickled:
    """The state dict of a pickled file, by the unpickler of torch that makes tensors and plain values only.

    Args:
        place: a file of torch.save.
        key: where in the file the state dict lies, "model_state" or "ema.model"; None: what is the only one.

    Raises:
        DataError: it is damaged, holds more than tensors and plain values, or no state dict there.
    """
    try:
        with silenced():  # what torch and pickletools think of a file that is then refused
            content = _unpickled(place)
    except DataError:
        raise
    except Exception as error:  # torch, zip and pickle raise types of their own
        reason = f"{type(error).__name__}: {in_one_line(error)[:120].split('. ')[0]}"
        raise DataError(f"{place}: is damaged or no file of torch.save ({reason}). Save it again.") from error
    content, note = _state(place, content, key)
    if odd_kinds := [str(key) for key, tensor in content.items() if not _is_dense(tensor)]:
        raise DataError(
            f"{place}: {quoted(odd_kinds[0])} is sparse, quantised, nested or without numbers. Save dense weights."
        )
    return Unpickled({str(key): tensor for key, tensor in content.items()}, note)


def _unpickled(place: Path) -> object:
    content = contents(place)
    if is_torchscript(content):
        raise DataError(
            f"{place}: a TorchScript file holds a program that hides its layers. Save the module that was scripted "
            "or traced with torch.export.save (.pt2), or its state_dict() and add --factory."
        )
    if odd := odd_global(content):
        raise DataError(
            f"{place}: refused without running it: it holds more than tensors (it names {odd[:80]!r}). Save "
            "state_dict() only, best as safetensors."
        )
    return torch.load(place, weights_only=True, map_location="cpu")


def _is_dense(tensor: Tensor) -> bool:
    plain = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
    return plain and tensor.device.type == "cpu"


def indexed_tensors(place: Path) -> dict[str, Tensor]:
    """The tensors of several files of safetensors beside an index, {"weight_map": {tensor: file}}.

    Raises:
        DataError: the index is none, names a file elsewhere, or a file lacks a tensor that it should hold.
    """
    content = through_door(place, lambda path: opened_json(contents(path)), kind="an index of safetensors")
    listed = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(listed, dict) or not listed or not all(isinstance(file, str) for file in listed.values()):
        raise DataError(f"{place}: is no index of safetensors (it has no weight_map). Give the one beside the files.")
    found: dict[str, Tensor] = {}
    for file in dict.fromkeys(listed.values()):
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise DataError(f"{place}: names {file[:80]!r}, which is no .safetensors of its folder. Do not trust it.")
        own = safe_tensors(checked_file(place.parent / file))
        lacking = [name for name, where in listed.items() if where == file and name not in own]
        if lacking:
            raise DataError(f"{place.parent / file}: lacks {shown(lacking[0])}, which the index says it holds.")
        found |= {name: tensor for name, tensor in own.items() if listed.get(name) == file}
    return found


def _state(place: Path, content: object, key: str | None) -> tuple[Mapping[str, Tensor], str]:
    """The state dict in what a file held: at a key, of a known name, or the only one there is; and which of several."""
    if _is_state(content) and key is None:
        return content, ""  # pyright: ignore[reportReturnType]
    found = _states(content)
    if key is not None:
        at = content
        for part in key.split("."):
            at = at.get(part) if isinstance(at, Mapping) else None
        if not _is_state(at):
            raise DataError(f"{place}: --key {key}: holds no state dict of tensors there{_choices([*found])}.")
        return at, ""  # pyright: ignore[reportReturnType]
    usual = [name for name in _WRAPPERS if name in found]
    if not found:
        raise DataError(f"{place}: holds no state dict of tensors. Save module.state_dict().")
    if len(found) > 1 and not usual:
        raise DataError(f"{place}: holds {len(found)} state dicts. Add --key NAME{_choices([*found])}.")
    taken = usual[0] if usual else next(iter(found))
    others = [name for name in found if name != taken]
    note = f"Of the state dicts in {place} took {taken}; --key takes another{_choices(others)}." if others else ""
    return found[taken], note


def _is_state(value: object) -> bool:
    """Whether something is names with tensors."""
    return isinstance(value, Mapping) and bool(value) and all(isinstance(v, Tensor) for v in value.values())


def _states(content: object) -> dict[str, Mapping[str, Tensor]]:
    """Keys -> state dict, of those below at most two keys, else of those that lie less deep than all others."""
    found, level = dict[str, Mapping[str, Tensor]](), {"": content}
    for depth in range(1, DEEPEST + 1):
        level = {
            f"{above}.{name}" if above else name: value
            for above, values in level.items() if isinstance(values, Mapping) and not _is_state(values)
            for name, value in values.items() if isinstance(name, str)
        }  # fmt: skip
        found |= {path: value for path, value in level.items() if _is_state(value)}
        if found and depth >= USUAL_DEPTH:
            break
    return found


def _choices(names: list[str]) -> str:
    """The keys that there are, in brackets."""
    if not names:
        return ""
    listed = ", ".join(shown(name) for name in names[:MOST_NAMED])
    return f" ({listed}{', ...' if len(names) > MOST_NAMED else ''})"
