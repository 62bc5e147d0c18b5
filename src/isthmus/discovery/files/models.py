"""MODEL of the command line as a module: a run folder, safetensors, a state dict with a factory, an exported program.

Only a factory runs code, the user's own. Tensors from files: `files.state_dicts`. The checks of exported programs:
`files.programs`. Data for the module: `cli.model_data`.
"""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from isthmus.discovery.files.module_description import described_module, description_of_file
from isthmus.discovery.files.networks import read_network
from isthmus.discovery.files.programs import read_program
from isthmus.discovery.files.state_dicts import (
    INDEX,
    WEIGHTS,
    indexed_tensors,
    safe_tensors,
    unpickled_tensors,
    weights_in,
)
from isthmus.discovery.result import load
from isthmus.errors import DataError
from isthmus.tasks.arrays import counted
from isthmus.tasks.input_columns import InputColumn
from isthmus.tasks.names import shown as shown_name

PICKLED = (".pt", ".pth", ".bin", ".ckpt")
# what training frameworks put before every name of a state dict: data parallel, compiled, Lightning
_PREFIXES = ("module.", "_orig_mod.", "model.")


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """A module from a file.

    Attributes:
        module: in eval mode.
        what: where it came from, in words for the user.
        input_names: of the columns that it takes, where the file knows them; else empty.
        columns: how these were made from those of a table, where the file knows it; else None.
        note: what was done that the user should know (code that was run), or empty.
    """

    module: nn.Module
    what: str
    input_names: tuple[str, ...] = ()
    note: str = ""
    columns: tuple[InputColumn, ...] | None = None


def read_model_file(path: str | os.PathLike[str], *, factory: str | None = None, key: str | None = None) -> LoadedModel:
    """The module that a file or folder holds, in eval mode.

    Args:
        path: a folder that discover wrote (decoder o encoder, in the units of the data), safetensors written by
            isthmus, safetensors (one file, or several by their index) or a pickled state dict (.pt, .pth, .bin, .ckpt)
            with a factory, a folder of transformers or diffusers with one of these, or an exported program (.pt2).
            Tensors that the network ties to others may be left out, as transformers do.
        factory: "module:callable" that makes the module for a state dict. Importing and calling it runs that code; the
            folder of the process is searched first, as by python -m.
        key: where in a pickled file the state dict lies, "model_state" or "ema.model"; None: it is the only one.

    Returns:
        The module with what is known about it.

    Raises:
        DataError: the file is missing, damaged, would run code, needs a factory or takes none, or its tensors do not
            fit; one line says what and what to do.
    """
    place = Path(path)
    place = weights_in(place) or place
    if key is not None and place.suffix.lower() not in PICKLED:
        raise DataError(f"{place}: --key is for {', '.join(PICKLED)}, whose state dict lies in another. Leave it out.")
    if place.is_dir():
        _no_factory(place, factory)
        found = load(place)
        module = nn.Sequential(found.encoder, found.decoder).eval()
        what = f"decoder o encoder of {place}, through {counted(found.rank, 'dimension')}"
        return LoadedModel(module, what, tuple(found.input_names), columns=found.columns)
    if not place.exists():
        raise DataError(f"{place}: no such file. Give a folder that discover wrote, .safetensors, .pt or .pt2.")
    suffix = place.suffix.lower()
    if suffix == ".pt2":
        _no_factory(place, factory)
        return LoadedModel(read_program(place), f"the exported program {place}")
    if suffix == ".safetensors":
        return _from_safetensors(place, factory)
    if place.name.lower().endswith(INDEX):
        return _with_factory(place, factory, indexed_tensors(place))
    if suffix in PICKLED:
        tensors, note = unpickled_tensors(place, key=key)
        return _with_factory(place, factory, tensors, note)
    if suffix == ".onnx":
        raise DataError(
            f"{place}: networks in ONNX are not read. Export the one of torch that it came from as .pt2 "
            "(torch.export.save), or give its weights with --factory module:callable."
        )
    known = ", ".join((".safetensors", INDEX, *PICKLED, ".pt2"))
    raise DataError(f"{place}: unknown extension {suffix!r}. Give a folder that discover wrote, or one of {known}.")


def _from_safetensors(place: Path, factory: str | None) -> LoadedModel:
    if factory is not None:
        return _with_factory(place, factory, safe_tensors(place))
    description = description_of_file(place)
    if description is None:
        raise DataError(
            f"{place}: holds tensors but not the network they belong to. Add --factory module:callable, which makes it."
        )
    if description.get("class") == "FullyConnected":
        return LoadedModel(read_network(place).eval(), f"the network in {place}")
    return LoadedModel(described_module(description, safe_tensors(place), str(place)), f"the network in {place}")


def _with_factory(place: Path, factory: str | None, tensors: Mapping[str, Tensor], taken: str = "") -> LoadedModel:
    if factory is None:
        raise DataError(
            f"{place}: holds tensors but no network. Add --factory module:callable, which makes the network."
        )
    module = _made(factory)
    expected, ties = module.state_dict(keep_vars=True), _tied(module)
    tensors, prefix = _bare(tensors, expected, ties)
    tensors = _completed(place, tensors, ties)
    missing = [key for key in expected if key not in tensors]
    unexpected = [key for key in tensors if key not in expected]
    if missing or unexpected:
        raise DataError(
            f"{place}: does not fit the network of --factory {factory}: {_listing('lacks', missing)}"
            f"{' and ' if missing and unexpected else ''}{_listing('has besides', unexpected)}."
        )
    wrong = [key for key in expected if expected[key].shape != tensors[key].shape]
    if wrong:
        shapes = tuple(tensors[wrong[0]].shape), tuple(expected[wrong[0]].shape)
        raise DataError(
            f"{place}: {wrong[0]} has shape {shapes[0]}, the network of --factory {factory} needs {shapes[1]}"
            f"{f' ({len(wrong)} tensors differ)' if len(wrong) > 1 else ''}. Give the factory of this checkpoint."
        )
    mixed = [key for key in expected if _kind(expected[key]) != _kind(tensors[key])]
    if mixed:
        raise DataError(
            f"{place}: {mixed[0]} holds {tensors[mixed[0]].dtype}, the network of --factory {factory} needs "
            f"{expected[mixed[0]].dtype}. Give the factory of this checkpoint."
        )
    module.load_state_dict(dict(tensors))
    kinds = {t.dtype for t in tensors.values() if t.is_floating_point()}
    module = module.to(kinds.pop()) if len(kinds) == 1 else module
    note = f"--factory {factory} ran your code to make the network."
    note += f" Left out {prefix!r}, with which every name in {place} begins." if prefix else ""
    note += f" {taken}" if taken else ""
    return LoadedModel(module.eval(), f"{type(module).__name__} with the weights of {place}", (), note)


def _kind(tensor: Tensor) -> str:
    """Whether its numbers are floating, complex or whole: torch turns one into the other without a word."""
    return "complex" if tensor.is_complex() else "floating" if tensor.is_floating_point() else "whole"


def _tied(module: nn.Module) -> list[list[str]]:
    """Names of state dicts that stand for one tensor, several each."""
    names = dict[int, list[str]]()
    for name, tensor in module.state_dict(keep_vars=True).items():
        names.setdefault(id(tensor), []).append(name)
    return [tied for tied in names.values() if len(tied) > 1]


def _completed(place: Path, tensors: Mapping[str, Tensor], ties: Sequence[Sequence[str]]) -> Mapping[str, Tensor]:
    """The tensors, those that a file names once under all of their names.

    Raises:
        DataError: two names of one tensor have different numbers.
    """
    found = dict(tensors)
    for names in ties:
        first, *others = [name for name in names if name in found] or [""]
        if other := next((name for name in others if not torch.equal(found[first], found[name])), None):
            raise DataError(
                f"{place}: holds different numbers for {shown_name(first)} and {shown_name(other)}, which are one "
                "tensor in the network of the factory. Give one that does not tie them."
            )
        found |= {name: found[first] for name in names if first}
    return found


def _bare(
    tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], ties: Sequence[Sequence[str]]
) -> tuple[Mapping[str, Tensor], str]:
    """The tensors without what a wrapper put before all of their names, where that makes them fit; what it was."""
    found, left = dict(tensors), ""
    while (prefix := next((p for p in _PREFIXES if all(name.startswith(p) for name in found)), "")) and found:
        found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
        left += prefix
    spare = {name for names in ties if any(n in found for n in names) for name in names}
    fits = found.keys() <= expected.keys() <= found.keys() | spare
    return (found, left) if left and fits and not tensors.keys() <= expected.keys() else (tensors, "")


def _made(factory: str) -> nn.Module:
    """What the user's callable makes; this runs the user's code."""
    name, _, attribute = factory.partition(":")
    if not name or not attribute:
        raise DataError(f"--factory {factory}: needs module:callable, as in my_models:make_network.")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        make: object = importlib.import_module(name)
        for part in attribute.split("."):
            make = getattr(make, part)
        if not isinstance(make, Callable):
            raise DataError(f"--factory {factory}: {attribute} is a {type(make).__name__}, not callable.")
        module = make()
    except DataError:
        raise
    except Exception as error:  # the user's code raises what it likes
        detail = " ".join(str(error).split())[:200]
        raise DataError(f"--factory {factory}: failed ({type(error).__name__}: {detail}). Try it in Python.") from error
    finally:
        if added:
            sys.path.remove(here)
    if not isinstance(module, nn.Module):
        raise DataError(f"--factory {factory}: gave a {type(module).__name__}; needs a torch.nn.Module.")
    return module


def _listing(verb: str, keys: list[str]) -> str:
    if not keys:
        return ""
    shown = ", ".join(shown_name(key) for key in keys[:3]) + (", ..." if len(keys) > 3 else "")
    return f"it {verb} {len(keys)} tensor{'s' * (len(keys) != 1)} ({shown})"


def _no_factory(place: Path, factory: str | None) -> None:
    if factory is not None and place.is_dir():
        raise DataError(
            f"{place}: --factory is for weights, and there are none by the names that they have in such a folder "
            f"({', '.join(WEIGHTS)}). Name the file; for a folder that discover wrote leave out --factory."
        )
    if factory is not None:
        raise DataError(f"{place}: brings its network along. Leave out --factory.")
