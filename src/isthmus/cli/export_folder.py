"""The folder that `factor` and `compress` write, before they write: new, or an older export that may be replaced.

What is written into it: `export_run`.
"""

from pathlib import Path

from isthmus.cli.run_folder import check_writable
from isthmus.errors import DataError

SUMMARY = "export.json"


def chosen_export_folder(model: Path, out: Path | None, command: str, *, replace: bool) -> Path:
    """The folder to write, after checking that it may be written: --out, or runs/MODEL-command.

    Raises:
        DataError: it holds an older export and `replace` is false, or other files, or cannot be written.
    """
    folder = out if out is not None else Path("runs") / f"{model.stem}-{command}"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not (folder / SUMMARY).is_file():
            raise DataError(f"{folder}: holds other files. Give a new or empty folder with --out.")
        if not replace:
            raise DataError(f"{folder}: holds an older export. Add --replace, or give another folder with --out.")
    check_writable(folder)
    return folder
