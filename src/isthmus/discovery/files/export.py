"""A module as files for other programs: safetensors, an exported program (.pt2), ONNX; each whole or absent.

Reading them back: `files.models`. What safetensors can say about a network: `files.module_description`.
"""

import json
import os
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from isthmus.discovery.files.module_description import description_of
from isthmus.discovery.files.networks import METADATA
from isthmus.errors import DataError
from isthmus.networks import FullyConnected
from isthmus.networks.arguments import Answer, answer_of
from isthmus.networks.chain import as_module, read_chain
from isthmus.networks.copies import copied_module, on_copy
from isthmus.networks.export_noise import without_export_noise
from isthmus.writing.atomic import atomic_path, write_bytes
from isthmus.writing.checksums import sealed_tensors

SUFFIXES = (".safetensors", ".pt2", ".onnx")
ONNX_EXTRA = ("onnx", "onnxscript", "onnxruntime")
LARGEST_DEVIATION = 1e-5


def check_onnx_extra() -> None:
    """Raise `DataError` unless the packages of the extra `onnx` can be imported."""
    # before it is imported: onnxruntime 1.31 tells its maker, over the network, of the sessions that are made
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    for name in ONNX_EXTRA:
        try:
            import_module(name)
        except ImportError:
            raise DataError(
                f"--onnx: needs the package {name}. Install it with: pip install 'isthmus[onnx]'."
            ) from None


def write_module(folder: Path, name: str, module: nn.Module, x: Tensor, *, onnx: bool = False) -> dict[str, object]:
    """Write a module into a folder as name.safetensors, name.pt2 and, if asked for, name.onnx.

    The number of samples is free in all of them. The tensors of a network of ours or of a sequence of plain layers are
    stored with its description, so that `read_model_file` rebuilds it; of others the program alone is complete. Of what
    gives more than a tensor, as models of transformers do, the program gives the answer.

    Args:
        folder: where to; it must exist.
        name: of the files, without suffix.
        module: takes one tensor with samples first and gives one; it is not changed.
        x: at least two samples as the module takes them.
        onnx: write name.onnx too, one file in float32, and compare it with the module through onnxruntime.

    Returns:
        What was written, in terms of JSON: `files`, `input_shape`, `output_shape` (per sample), `dtype`, `network` (the
        description, or None), `onnx_deviation` where there is an ONNX file, and `no_program`, why there is none where
        the module cannot be exported with a free number of samples: its tensors are written all the same.

    Raises:
        DataError: the module gives no tensor; with `onnx`, it cannot be exported, the extra is missing, or the ONNX
            file deviates from the module by more than 1e-5 of the largest output.
        OSError: a file cannot be written.
    """
    module = copied_module(module).eval().requires_grad_(False)
    with torch.no_grad():
        example = torch.cat([x, x])[: max(2, min(len(x), 8))]
        given: object = on_copy(module, example)
    output = answer_of(given, f"export: {type(module).__name__}")
    described = description_of(module)
    _write_tensors(folder / f"{name}.safetensors", module, described)
    facts: dict[str, object] = {
        "files": [f"{name}.safetensors"],
        "input_shape": list(example.shape[1:]),
        "output_shape": list(output.shape[1:]),
        "dtype": str(example.dtype).removeprefix("torch."),
        "network": described,
    }
    plain = _plain(module, example) if isinstance(given, Tensor) else Answer(module)
    try:
        program = _program(plain, example)
    except DataError as error:
        if onnx:
            raise
        return facts | {"no_program": str(error).removeprefix("export: ")}
    with atomic_path(folder / f"{name}.pt2") as temporary, without_export_noise():
        torch.export.save(program, temporary)
    facts["files"] = [f"{name}.safetensors", f"{name}.pt2"]
    if onnx:
        deviation = _write_onnx(folder / f"{name}.onnx", plain, x)
        facts |= {"files": files_of(name), "onnx_deviation": deviation}
    return facts


def files_of(name: str) -> list[str]:
    """The names of all files of a module."""
    return [f"{name}{suffix}" for suffix in SUFFIXES]


def _write_tensors(path: Path, module: nn.Module, described: dict[str, object] | None) -> None:
    # tensors that share memory are stored once each: safetensors refuse views of one another
    tensors = {key: t.detach().cpu().clone().contiguous() for key, t in module.state_dict().items()}
    if isinstance(module, FullyConnected):
        tensors = {f"network.{key}": tensor for key, tensor in tensors.items()}
    metadata = {METADATA: json.dumps(described)} if described else None
    write_bytes(path, sealed_tensors(save(tensors, metadata=metadata)))


def _plain(module: nn.Module, x: Tensor) -> nn.Module:
    """The module with networks of ours written out as layers of torch: programs need nothing of isthmus."""
    if any(isinstance(part, FullyConnected) for part in module.modules()):
        return as_module(read_chain(module, x))
    return module


def _program(module: nn.Module, example: Tensor) -> torch.export.ExportedProgram:
    rows = torch.export.Dim("rows", min=1)
    try:
        with without_export_noise():
            return torch.export.export(module, (example,), dynamic_shapes=({0: rows},))
    except Exception as error:  # the exporter raises what it likes about a stranger's forward
        detail = " ".join(str(error).split())[:200]
        raise DataError(f"export: the module cannot be exported with a free number of samples ({detail}).") from error


def _write_onnx(path: Path, module: nn.Module, x: Tensor) -> float:
    """Write a module as one ONNX file in float32, and return how far onnxruntime is from it on the samples."""
    check_onnx_extra()
    # onnxruntime has no float64 version of several activations
    program = _program(copied_module(module).float(), _single(x[:2]))
    try:
        with atomic_path(path) as temporary, without_export_noise():
            torch.onnx.export(
                program, (), temporary, dynamo=True, external_data=False, verbose=False, input_names=["x"],
                output_names=["y"],
            )  # fmt: skip
            deviation = _deviation(temporary, module, x)
            if not deviation <= LARGEST_DEVIATION:
                what = f"{path} deviates from the module by {deviation:.2g}, above {LARGEST_DEVIATION:g}"
                raise DataError(f"export: {what}. Leave out --onnx.")
    except (DataError, OSError):
        raise
    except Exception as error:  # the exporter and the runtime raise types of their own
        detail = " ".join(str(error).split())[:200]
        raise DataError(f"export: {path} cannot be written as ONNX ({detail}). Leave out --onnx.") from error
    return deviation


def _single(x: Tensor) -> Tensor:
    return x.float() if x.is_floating_point() else x


def _deviation(path: Path, module: nn.Module, x: Tensor) -> float:
    """Largest difference of outputs over the largest output (over 1 where that is smaller)."""
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    worst, largest = 0.0, 1.0
    with torch.no_grad():
        for rows in (x[:1], x[:256]):  # the number of samples is free
            [found] = session.run(None, {session.get_inputs()[0].name: _single(rows).cpu().numpy()})
            wanted = on_copy(module, rows).cpu().numpy()
            worst = max(worst, float(np.abs(found - wanted).max(initial=0.0)))
            largest = max(largest, float(np.abs(wanted).max(initial=0.0)))
    return worst / largest
