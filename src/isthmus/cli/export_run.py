"""What `factor` and `compress` write: modules as files, and export.json last, which says what they are.

Only files of isthmus are ever removed. The files themselves: `discovery.files.export`.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from isthmus import __version__
from isthmus.cli.export_folder import SUMMARY
from isthmus.discovery.files.export import files_of, write_module
from isthmus.discovery.files.json_values import plain
from isthmus.writing.atomic import remove_leftovers, write_text
from isthmus.writing.folder_lock import only_writer

FORMAT, FORMAT_VERSION = "isthmus export", 1
PARTS = ("encoder", "decoder", "network")


def write_export(
    folder: Path, modules: Mapping[str, tuple[nn.Module, Tensor]], facts: Mapping[str, object], *, onnx: bool
) -> list[str]:
    """Write every module with its samples into the folder, then export.json; returns the names of the files.

    Raises:
        DataError: a module cannot be exported.
        OSError: a file cannot be written.
    """
    with only_writer(folder):
        return _written(folder, modules, facts, onnx=onnx)


def _written(
    folder: Path, modules: Mapping[str, tuple[nn.Module, Tensor]], facts: Mapping[str, object], *, onnx: bool
) -> list[str]:
    # the summary first: without it the rest is no export
    for name in (SUMMARY, *(file for part in PARTS for file in files_of(part))):
        (folder / name).unlink(missing_ok=True)
    remove_leftovers(folder)
    written: list[str] = []
    described: dict[str, object] = {}
    try:
        for name, (module, x) in modules.items():
            own = write_module(folder, name, module, x, onnx=onnx)
            described[name] = own
            written += [str(file) for file in files_of(name) if (folder / file).exists()]
    except BaseException:
        for name in (file for part in modules for file in files_of(part)):
            (folder / name).unlink(missing_ok=True)
        raise
    versions = {"isthmus": __version__, "torch": str(torch.__version__)}
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "versions": versions}
    content = plain({**head, **facts, "modules": described}, "export")
    write_text(folder / SUMMARY, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [*written, SUMMARY]
