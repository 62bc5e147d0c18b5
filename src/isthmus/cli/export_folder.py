"""The folder that `factor` and `compress` write, before they write: new, or an older export that may be replaced.

What is written into it: `export_run`.
"""

from pathlib import Path

from isthmus.cli.run_folder import check_writable, is_free
from isthmus.errors import DataError

SUMMARY = "export.json"


def chosen_export_folder(model: Path, data: str, out: Path | None, command: str, *, replace: bool) -> Path:
    """The folder to write, after checking that it may be written: --out, or runs/MODEL-command.

    Raises:
        DataError: it holds an older export and `replace` is false, or other files, or the model or the data, or cannot
            be written.
    """
    folder = out if out is not None else Path("runs") / f"{model.name if model.is_dir() else model.stem}-{command}"
    if not is_free(folder):
        if not (folder / SUMMARY).is_file():
            raise DataError(f"{folder}: holds other files. Give a new or empty folder with --out.")
        for given in (model, Path(data)):
            if given.exists() and folder.resolve() in {given.resolve(), *given.resolve().parents}:
                raise DataError(f"{folder}: {given} is an input of this command. Give another folder with --out.")
        if not replace:
            raise DataError(f"{folder}: holds an older export. Add --replace, or give another folder with --out.")
    check_writable(folder)
    return folder
